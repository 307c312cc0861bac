/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule_test.c - which keys the ring hands to the inner step, in which order, on which threads.
 *
 * Instead of a kernel the ring gets a spy that computes nothing and writes down what it is given.
 * No result would show a wrong visiting order, shifted chunk boundaries, a tile that is cut badly,
 * or threads that wait for one another; here they are compared with what is written out. The spy
 * also looks whether the keys it is given have arrived.
 */
#include "impl/ring.h"

#include "impl/test_data.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RANKS        4
#define ROWS         32 /* query rows of a rank */
#define HEADS        3
#define LINES        (ROWS * HEADS)
#define BLOCKS_MAX   32
#define TILES_MAX    64
#define PATIENCE     20 /* seconds until a meeting has failed */

/* One call of a pass's step. */
struct seen {
    int64_t pass;
    int64_t source;
    int64_t first_key;
    int64_t next_n;
    int64_t visible[LINES];
    float scale;
};

/* One tile, in the order in which they were begun. */
struct tile {
    int64_t rank;
    int64_t first_line; /* query * HEADS + head */
    int64_t rows_n;
    pthread_t thread;
    int64_t blocks_n;
    struct seen blocks[BLOCKS_MAX];
};

/* Who comes to its first block waits until enough tiles have been begun. */
enum meeting {
    MEET_NOBODY,
    MEET_ALL,  /* every tile's thread, for as many tiles as there are ranks */
    MEET_LAST, /* the last rank's first tile, for all tiles of the call */
};

/* The spy's functions get no context of ours, hence statics. A tile is one thread's. */
static struct mla_ring_args args;
static struct mla_attend spy;
static uint16_t *q[RANKS], *kv[RANKS], *gathered[RANKS], *out[RANKS];
static const uint16_t *q_in[RANKS], *kv_in[RANKS];
static struct tile tiles[TILES_MAX];
static atomic_int tiles_n;
static atomic_int strange_n; /* calls that fit nowhere; asserted on the test's own thread */
static enum meeting meeting;
static int64_t meeting_n; /* tiles to be begun */

static size_t spy_scratch(const struct mla_attend_shape *shape)
{
    (void)shape;
    return 64;
}

static void strange_unless(bool is_right)
{
    if (!is_right) {
        atomic_fetch_add(&strange_n, 1);
    }
}

/* A tile begins with its row 0; where it is noted is kept where a kernel would keep its queries. */
static void spy_query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                      const uint16_t *main, const uint16_t *rope)
{
    int64_t rank = 0;
    int64_t at = 0; /* head * ROWS + query, as q has them */
    for (; rank < RANKS; rank++) {
        at = (main - q[rank]) / shape->main_n;
        if (at >= 0 && at < LINES && main == q[rank] + at * shape->main_n) {
            break;
        }
    }
    const int64_t line = at % ROWS * HEADS + at / ROWS;
    struct tile *tile;
    if (row == 0) {
        const int number = atomic_fetch_add(&tiles_n, 1);
        tile = &tiles[number % TILES_MAX];
        strange_unless(number < TILES_MAX);
        *tile = (struct tile){.rank = rank, .first_line = line, .thread = pthread_self()};
        memcpy(scratch, &tile, sizeof tile);
    }
    memcpy(&tile, scratch, sizeof tile);
    strange_unless(rank < RANKS && rank == tile->rank && rope == NULL);
    strange_unless(row == tile->rows_n && line == tile->first_line + row);
    tile->rows_n++;
}

static void meet(const struct tile *tile)
{
    const bool is_last = tile->rank == RANKS - 1 && tile->first_line + tile->rows_n == LINES;
    const struct timespec nap = {.tv_nsec = 200000};
    if (tile->blocks_n > 0 || meeting == MEET_NOBODY || (meeting == MEET_LAST && !is_last)) {
        return;
    }
    for (int64_t i = 0; atomic_load(&tiles_n) < meeting_n; i++) {
        if (i == PATIENCE * INT64_C(5000)) {
            strange_unless(false);
            return;
        }
        nanosleep(&nap, NULL);
    }
}

/* Are these the n keys that lie `later` rows behind the block's first in their source's kv? */
static bool has_arrived(const struct seen *seen, const struct mla_attend_shape *shape,
                        int64_t later, const struct mla_attend_keys *keys, int64_t n)
{
    return memcmp(keys->main, kv[seen->source] + (seen->first_key + later) * shape->main_n,
                  (size_t)(n * shape->main_n) * 2) == 0;
}

static void note(int64_t pass, const struct mla_attend_shape *shape, const void *scratch,
                 int64_t rows_n, const int64_t *visible, const struct mla_attend_keys *keys,
                 float scale)
{
    struct tile *tile;
    int64_t most = 0;
    memcpy(&tile, scratch, sizeof tile);
    meet(tile);
    if (rows_n != tile->rows_n || rows_n > spy.rows_n || tile->blocks_n == BLOCKS_MAX ||
        !pthread_equal(tile->thread, pthread_self())) {
        strange_unless(false);
        return;
    }
    struct seen *seen = &tile->blocks[tile->blocks_n++];
    const int64_t own = (keys->main - kv[tile->rank]) / shape->main_n;
    const int64_t other = (keys->main - gathered[tile->rank]) / shape->main_n;
    const bool is_own = own >= 0 && own < args.kv_rows;
    strange_unless(is_own || (other >= 0 && other < args.gathered_rows));
    strange_unless(keys->index == NULL && keys->rope == NULL);
    *seen = (struct seen){.pass = pass,
                          .source = is_own ? tile->rank : other / args.kv_rows,
                          .first_key = is_own ? own : other % args.kv_rows,
                          .scale = scale};
    for (int64_t r = 0; r < rows_n; r++) {
        seen->visible[r] = visible[r];
        most = visible[r] > most ? visible[r] : most;
    }
    strange_unless(most > 0 && most <= shape->keys_n);
    strange_unless(has_arrived(seen, shape, 0, keys, most));
    if (keys->next != NULL) {
        seen->next_n = keys->next_n;
        strange_unless(keys->next->main == keys->main + most * shape->main_n &&
                       keys->next->index == NULL && keys->next_n > 0);
        strange_unless(has_arrived(seen, shape, most, keys->next, keys->next_n));
    }
}

static void spy_first(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                      const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                      const struct mla_attend_state *state)
{
    (void)state;
    note(0, shape, scratch, rows_n, visible, keys, scale);
}

static void spy_second(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                       const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                       const struct mla_attend_state *state)
{
    (void)state;
    note(1, shape, scratch, rows_n, visible, keys, scale);
}

static float spy_finish(const struct mla_attend_shape *shape, const struct mla_attend_state *state,
                        int64_t row)
{
    (void)shape;
    return state->sum[row]; /* nobody added to it */
}

static struct mla_attend spy_of(int64_t passes_n, int64_t rows_n, int64_t block_keys)
{
    return (struct mla_attend){.sums_n = 1,
                               .rows_n = rows_n,
                               .block_keys = block_keys,
                               .scratch_bytes = spy_scratch,
                               .query = spy_query,
                               .block = {spy_first, passes_n > 1 ? spy_second : NULL},
                               .finish = spy_finish};
}

static void begin(int64_t kv_rows, int64_t logical_n, int64_t head_dim)
{
    args = (struct mla_ring_args){.struct_size = sizeof args,
                                  .ring_size = RANKS,
                                  .batch = 1,
                                  .heads = HEADS,
                                  .q_rows = ROWS,
                                  .kv_rows = kv_rows,
                                  .kv_batch = 1,
                                  .kv_heads = 1,
                                  .kv_head_dim = head_dim,
                                  .gathered_rows = RANKS * kv_rows,
                                  .gathered_batch = 1,
                                  .head_dim = head_dim,
                                  .head_dim_v = 32,
                                  .logical_n = logical_n,
                                  .num_links = 1,
                                  .q_chunk_size = 32,
                                  .k_chunk_size = 32,
                                  .dim = 2,
                                  .q = q_in,
                                  .kv = kv_in,
                                  .gathered = gathered,
                                  .out = out};
    for (int64_t rank = 0; rank < RANKS; rank++) {
        q_in[rank] = q[rank] = test_tensor(LINES * head_dim, 1);
        kv_in[rank] = kv[rank] = test_tensor(kv_rows * head_dim, 2 + (uint64_t)rank);
        gathered[rank] = test_alloc((size_t)(RANKS * kv_rows * head_dim) * 2);
        out[rank] = test_alloc(LINES * 32 * 2);
    }
}

static void end(void)
{
    for (int64_t rank = 0; rank < RANKS; rank++) {
        free(q[rank]);
        free(kv[rank]);
        free(gathered[rank]);
        free(out[rank]);
    }
}

/* Tiles of a rank as they should be: every line in one of them, none longer than the spy's. */
static void expect_tiles(void)
{
    int64_t met[RANKS][LINES];
    memset(met, 0, sizeof met);
    for (int64_t i = 0; i < atomic_load(&tiles_n); i++) {
        assert_true(tiles[i].rows_n <= spy.rows_n);
        for (int64_t r = 0; r < tiles[i].rows_n; r++) {
            met[tiles[i].rank][tiles[i].first_line + r]++;
        }
    }
    for (int64_t rank = 0; rank < RANKS; rank++) {
        for (int64_t line = 0; line < LINES; line++) {
            assert_int_equal(met[rank][line], 1);
        }
    }
}

/* Also what nobody attends has passed through every rank. */
static void expect_everywhere(void)
{
    for (int64_t rank = 0; rank < RANKS; rank++) {
        for (int64_t source = 0; source < RANKS; source++) {
            const int64_t n = args.kv_rows * args.head_dim;
            assert_memory_equal(gathered[rank] + source * n, kv[source], (size_t)n * 2);
        }
    }
}

static void run(const struct mla_attend *attend)
{
    char message[300];
    spy = *attend;
    atomic_store(&tiles_n, 0);
    atomic_store(&strange_n, 0);
    for (int64_t rank = 0; rank < RANKS; rank++) {
        memset(gathered[rank], 0xff, (size_t)(RANKS * args.kv_rows * args.head_dim) * 2);
    }
    const int32_t status = mla_ring_run(&args, &spy, message, sizeof message);
    if (status != MLA_OK) {
        fail_msg("status %d: %s", (int)status, message);
    }
    assert_int_equal(atomic_load(&strange_n), 0);
    expect_tiles();
    expect_everywhere();
}

static const int64_t orders[2][RANKS][RANKS] = {
    {{0, 1, 3, 2}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 0, 2, 1}}, /* ring */
    {{0, 1, 2, 3}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 2, 1, 0}}, /* line */
};

/*
 * A cache of three slabs of 32 rows, full: shard s holds positions s*32 .. in each round of 128,
 * the queries of rank d are positions 256 + d*32 .. So all see rows 0 .. 63 of every shard, and of
 * rows 64 .. 95 all for s < d, r + 1 for s == d, none for s > d.
 */
static int64_t visible_of(int64_t rank, int64_t source, int64_t row)
{
    if (source > rank) {
        return 64;
    }
    return source < rank ? 96 : 64 + row + 1;
}

static int64_t clamp(int64_t value, int64_t most)
{
    if (value < 0) {
        return 0;
    }
    return value > most ? most : value;
}

/* What a tile should have been given, from the visible keys of each of its rows. */
static void expect_blocks(const struct tile *tile, const int64_t *order, int64_t steps_n,
                          int64_t (*visible)(int64_t rank, int64_t source, int64_t row),
                          int64_t k_chunk, int64_t passes_n)
{
    int64_t block = 0;
    for (int64_t turn = 0; turn < passes_n * steps_n; turn++) {
        const int64_t source = order[turn % steps_n];
        int64_t most = 0;
        for (int64_t r = 0; r < tile->rows_n; r++) {
            const int64_t n = visible(tile->rank, source, (tile->first_line + r) / HEADS);
            most = n > most ? n : most;
        }
        for (int64_t key = 0; key < most; key += k_chunk) {
            const struct seen *seen = &tile->blocks[block++];
            const int64_t next_n = clamp(most - key - k_chunk, k_chunk);
            assert_int_equal(seen->pass, turn / steps_n);
            assert_int_equal(seen->source, source);
            assert_int_equal(seen->first_key, key);
            /* Of another's shard what follows may not have arrived. */
            assert_true(seen->next_n == next_n || (seen->next_n == 0 && source != tile->rank));
            for (int64_t r = 0; r < tile->rows_n; r++) {
                const int64_t query = (tile->first_line + r) / HEADS;
                assert_int_equal(seen->visible[r],
                                 clamp(visible(tile->rank, source, query) - key, k_chunk));
            }
        }
    }
    assert_int_equal(tile->blocks_n, block);
}

static void test_order_and_chunks(void **state)
{
    static const int64_t chunks[] = {32, 64, 96, 128};
    static const int64_t threads[] = {0, 1, 3, 4, 9};
    static const int64_t rows[] = {7, 24, 32, 128};
    (void)state;
    begin(96, RANKS * 96, 64);
    for (int32_t topology = 0; topology <= 1; topology++) {
        for (size_t i = 0; i < 2 * COUNT(chunks) * COUNT(threads) * COUNT(rows); i++) {
            const int64_t passes_n = 1 + (int64_t)(i % 2);
            const int64_t block_keys = i / 2 % 3 == 0 ? 40 : 0; /* for every third the spy's own */
            args.topology = topology;
            args.k_chunk_size = chunks[i / 2 % COUNT(chunks)];
            args.threads = threads[i / 2 / COUNT(chunks) % COUNT(threads)];
            args.num_links = 1 + (int64_t)i % 5;
            const struct mla_attend attend =
                spy_of(passes_n, rows[i / 2 / COUNT(chunks) / COUNT(threads)], block_keys);
            run(&attend);
            for (int64_t t = 0; t < atomic_load(&tiles_n); t++) {
                expect_blocks(&tiles[t], orders[topology][tiles[t].rank], RANKS, visible_of,
                              block_keys > 0 ? block_keys : args.k_chunk_size, passes_n);
            }
        }
    }
    end();
}

/* Contiguous, 70 keys: shard 3 is empty, shard 2 holds 6 keys, and no rank sees a later one's. */
static int64_t short_visible_of(int64_t rank, int64_t source, int64_t row)
{
    const int64_t shard_n = source == 2 ? 6 : 32;
    return source == rank ? clamp(row + 1, shard_n) : shard_n;
}

static void test_inactive_steps(void **state)
{
    static const int64_t ring[RANKS][3] = {{0}, {1, 0}, {2, 1, 0}, {0, 2, 1}};
    static const int64_t line[RANKS][3] = {{0}, {1, 0}, {2, 1, 0}, {2, 1, 0}};
    static const int64_t steps_n[RANKS] = {1, 2, 3, 3};
    (void)state;
    begin(32, 70, 64);
    for (int32_t topology = 0; topology <= 1; topology++) {
        const struct mla_attend attend = spy_of(1, 32, 0);
        args.topology = topology;
        run(&attend);
        for (int64_t t = 0; t < atomic_load(&tiles_n); t++) {
            const int64_t rank = tiles[t].rank;
            expect_blocks(&tiles[t], topology == MLA_TOPOLOGY_RING ? ring[rank] : line[rank],
                          steps_n[rank], short_visible_of, 32, 1);
        }
    }
    end();
}

/* Alone a thread goes from rank to rank, and in each from the late queries to the early ones. */
static void test_alone(void **state)
{
    const struct mla_attend attend = spy_of(1, 24, 0);
    (void)state;
    begin(96, RANKS * 96, 64);
    args.threads = 1;
    run(&attend);
    assert_int_equal(atomic_load(&tiles_n), RANKS * 4);
    for (int64_t t = 0; t < RANKS * 4; t++) {
        assert_true(pthread_equal(tiles[t].thread, pthread_self()));
        assert_int_equal(tiles[t].rank, t / 4);
        assert_int_equal(tiles[t].first_line, (3 - t % 4) * 24);
    }
    end();
}

/*
 * threads = 0: at least one for each rank. Four threads that wait for one another in their first
 * tiles are all there, and with just as many as ranks each has begun with a rank of its own.
 */
static void test_threads(void **state)
{
    const struct mla_attend attend = spy_of(1, 24, 0);
    (void)state;
    begin(96, RANKS * 96, 64);
    meeting = MEET_ALL;
    meeting_n = RANKS;
    for (int64_t threads = 0; threads <= RANKS; threads += RANKS) {
        args.threads = threads;
        run(&attend);
        for (int64_t t = 0; t < RANKS; t++) {
            for (int64_t other = 0; other < t; other++) {
                assert_false(pthread_equal(tiles[t].thread, tiles[other].thread));
                assert_true(threads == 0 || tiles[t].rank != tiles[other].rank);
            }
        }
    }
    meeting = MEET_NOBODY;
    end();
}

/* A thread that is held up in its rank's first tile: the others do the rank's other tiles. */
static void test_help(void **state)
{
    const struct mla_attend attend = spy_of(1, 24, 0);
    (void)state;
    begin(32, RANKS * 32, 64); /* contiguous: the last rank has most to do anyway */
    meeting = MEET_LAST;
    meeting_n = RANKS * 4;
    for (int64_t threads = 2; threads <= 5; threads++) {
        args.threads = threads;
        run(&attend);
        assert_int_equal(atomic_load(&tiles_n), RANKS * 4);
    }
    meeting = MEET_NOBODY;
    end();
}

static atomic_int queries_n[RANKS];

static void count_query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                        const uint16_t *main, const uint16_t *rope)
{
    (void)scratch;
    (void)row;
    (void)rope;
    for (int64_t rank = 0; rank < RANKS; rank++) {
        const int64_t at = (main - q[rank]) / shape->main_n;
        atomic_fetch_add(&queries_n[rank], at >= 0 && at < LINES);
    }
}

static void ignore_block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                         const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                         const struct mla_attend_state *state)
{
    (void)shape;
    (void)scratch;
    (void)rows_n;
    (void)visible;
    (void)keys;
    (void)scale;
    (void)state;
}

/* Rotation: the new positions 32 .. 95 are ranks 1 and 2; of pad rows no query is taken. */
static void test_pad_rows(void **state)
{
    struct mla_attend attend = spy_of(1, 32, 0);
    (void)state;
    begin(96, 96, 64);
    args.has_prior = 1;
    args.kv_actual_isl = 32;
    attend.query = count_query;
    attend.block[0] = ignore_block;
    assert_int_equal(mla_ring_run(&args, &attend, NULL, 0), MLA_OK);
    for (int64_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(atomic_load(&queries_n[rank]), rank == 1 || rank == 2 ? LINES : 0);
        for (int64_t i = 0; i < LINES * 32; i++) {
            assert_int_equal(out[rank][i], 0);
        }
    }
    end();
}

/*
 * The scale handed on, to the bit: 1/sqrt(head_dim) in double, rounded once; or the one given. In
 * float arithmetic throughout, 96 and 288 would give another bit.
 */
static void test_scale(void **state)
{
    static const int64_t head_dims[] = {64, 96, 288, 576};
    static const uint32_t bits[] = {0x3e000000, 0x3dd105ec, 0x3d715bef, 0x3d2aaaab};
    const struct mla_attend attend = spy_of(1, 32, 0);
    (void)state;
    for (size_t i = 0; i < COUNT(head_dims); i++) {
        begin(32, RANKS * 32, head_dims[i]);
        for (int32_t has_scale = 0; has_scale <= 1; has_scale++) {
            args.has_scale = has_scale;
            args.scale = 3.0f; /* counts only with the flag */
            run(&attend);
            for (int64_t t = 0; t < atomic_load(&tiles_n); t++) {
                uint32_t got;
                memcpy(&got, &tiles[t].blocks[0].scale, sizeof got);
                assert_int_equal(got, has_scale != 0 ? 0x40400000 : bits[i]);
            }
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_chunks),
        cmocka_unit_test(test_inactive_steps),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_pad_rows),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
