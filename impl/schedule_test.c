/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule_test.c - which keys the ring hands to the inner step, in which order, on which threads.
 *
 * Instead of a kernel the ring gets a spy that computes nothing and writes down what it is given.
 * No result would show a wrong visiting order, shifted chunk boundaries, or ranks that share a
 * thread; here they are compared with what is written out.
 */
#include "impl/ring.h"

#include "impl/test_data.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RANKS        4
#define ROWS         32 /* query rows of a rank: one tile */
#define BLOCKS_MAX   32

/* One call of a pass's step. */
struct seen {
    int64_t pass;
    int64_t source;
    int64_t first_key;
    int64_t visible[ROWS];
    float scale;
    pthread_t thread;
};

struct log {
    struct seen blocks[BLOCKS_MAX];
    int64_t blocks_n;
    int64_t queries_n;
};

/* The spy's functions get no context of ours, hence statics. A rank's tile is one thread's. */
static struct mla_ring_args args;
static uint16_t *q[RANKS], *kv[RANKS], *gathered[RANKS], *out[RANKS];
static const uint16_t *q_in[RANKS], *kv_in[RANKS];
static struct log logs[RANKS];
static atomic_int strange_n; /* calls that fit nowhere; asserted on the test's own thread */

static size_t spy_scratch(const struct mla_attend_shape *shape)
{
    (void)shape;
    return 64;
}

/* The tile's rank is the owner of its queries; kept where a kernel would keep them. */
static void spy_query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                      const uint16_t *main, const uint16_t *rope)
{
    int64_t rank = 0;
    while (rank < RANKS && main != q[rank] + row * shape->main_n) {
        rank++;
    }
    memcpy(scratch, &rank, sizeof rank);
    if (rank == RANKS || rope != NULL) {
        atomic_fetch_add(&strange_n, 1);
        return;
    }
    logs[rank].queries_n++;
}

static void note(int64_t pass, const struct mla_attend_shape *shape, const void *scratch,
                 int64_t rows_n, const int64_t *visible, const struct mla_attend_keys *keys,
                 float scale)
{
    int64_t rank;
    memcpy(&rank, scratch, sizeof rank);
    if (rank == RANKS || rows_n != ROWS || logs[rank].blocks_n == BLOCKS_MAX) {
        atomic_fetch_add(&strange_n, 1);
        return;
    }
    struct seen *seen = &logs[rank].blocks[logs[rank].blocks_n++];
    const int64_t own = (keys->main - kv[rank]) / shape->main_n;
    const int64_t other = (keys->main - gathered[rank]) / shape->main_n;
    const bool is_own = own >= 0 && own < args.kv_rows;
    if (!is_own && (other < 0 || other >= args.gathered_rows)) {
        atomic_fetch_add(&strange_n, 1);
    }
    *seen = (struct seen){.pass = pass,
                          .source = is_own ? rank : other / args.kv_rows,
                          .first_key = is_own ? own : other % args.kv_rows,
                          .scale = scale,
                          .thread = pthread_self()};
    memcpy(seen->visible, visible, sizeof seen->visible);
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

/* By number of passes. */
static const struct mla_attend spies[MLA_ATTEND_PASSES] = {
    {.sums_n = 1,
     .rows_n = 32,
     .scratch_bytes = spy_scratch,
     .query = spy_query,
     .block = {spy_first},
     .finish = spy_finish},
    {.sums_n = 1,
     .rows_n = 32,
     .scratch_bytes = spy_scratch,
     .query = spy_query,
     .block = {spy_first, spy_second},
     .finish = spy_finish},
};

static void begin(int64_t kv_rows, int64_t logical_n, int64_t head_dim)
{
    memset(logs, 0, sizeof logs);
    args = (struct mla_ring_args){.struct_size = sizeof args,
                                  .ring_size = RANKS,
                                  .batch = 1,
                                  .heads = 1,
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
        q_in[rank] = q[rank] = test_tensor(ROWS * head_dim, 1);
        kv_in[rank] = kv[rank] = test_tensor(kv_rows * head_dim, 2);
        gathered[rank] = test_alloc((size_t)(RANKS * kv_rows * head_dim) * 2);
        out[rank] = test_alloc(ROWS * 32 * 2);
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

static void run(int64_t passes_n)
{
    char message[300];
    memset(logs, 0, sizeof logs);
    atomic_store(&strange_n, 0);
    const int32_t status = mla_ring_run(&args, &spies[passes_n - 1], message, sizeof message);
    if (status != MLA_OK) {
        fail_msg("status %d: %s", (int)status, message);
    }
    assert_int_equal(atomic_load(&strange_n), 0);
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

static void expect_blocks(int64_t rank, const int64_t *order, int64_t k_chunk, int64_t passes_n)
{
    const struct log *log = &logs[rank];
    int64_t block = 0;
    for (int64_t turn = 0; turn < passes_n * RANKS; turn++) {
        const int64_t step = turn % RANKS;
        const int64_t most = order[step] > rank ? 64 : 96;
        for (int64_t key = 0; key < most; key += k_chunk) {
            const struct seen *seen = &log->blocks[block++];
            assert_int_equal(seen->pass, turn / RANKS);
            assert_int_equal(seen->source, order[step]);
            assert_int_equal(seen->first_key, key);
            for (int64_t row = 0; row < ROWS; row++) {
                int64_t want = visible_of(rank, order[step], row) - key;
                want = want < 0 ? 0 : want;
                want = want > k_chunk ? k_chunk : want;
                assert_int_equal(seen->visible[row], want);
            }
        }
    }
    assert_int_equal(log->blocks_n, block);
    assert_int_equal(log->queries_n, passes_n * RANKS * ROWS);
}

static void test_order_and_chunks(void **state)
{
    static const int64_t chunks[] = {32, 64, 96, 128};
    static const int64_t threads[] = {0, 1, 3, 4, 9};
    (void)state;
    begin(96, RANKS * 96, 64);
    for (int32_t topology = 0; topology <= 1; topology++) {
        for (size_t i = 0; i < 2 * COUNT(chunks) * COUNT(threads); i++) {
            args.topology = topology;
            args.k_chunk_size = chunks[i % COUNT(chunks)];
            args.threads = threads[i / COUNT(chunks) % COUNT(threads)];
            const int64_t passes_n = 1 + (int64_t)(i / (COUNT(chunks) * COUNT(threads)));
            run(passes_n);
            for (int64_t rank = 0; rank < RANKS; rank++) {
                expect_blocks(rank, orders[topology][rank], args.k_chunk_size, passes_n);
            }
        }
    }
    end();
}

/* Contiguous, 70 keys: shard 3 is empty, shard 2 holds 6 keys, and no rank sees a later one's. */
static void test_inactive_steps(void **state)
{
    static const int64_t ring[RANKS][3] = {{0}, {1, 0}, {2, 1, 0}, {0, 2, 1}};
    static const int64_t line[RANKS][3] = {{0}, {1, 0}, {2, 1, 0}, {2, 1, 0}};
    static const int64_t steps_n[RANKS] = {1, 2, 3, 3};
    (void)state;
    begin(32, 70, 64);
    for (int32_t topology = 0; topology <= 1; topology++) {
        args.topology = topology;
        run(1);
        for (int64_t rank = 0; rank < RANKS; rank++) {
            const int64_t *order = topology == MLA_TOPOLOGY_RING ? ring[rank] : line[rank];
            assert_int_equal(logs[rank].blocks_n, steps_n[rank]);
            assert_int_equal(logs[rank].queries_n, steps_n[rank] * ROWS);
            for (int64_t step = 0; step < steps_n[rank]; step++) {
                const struct seen *seen = &logs[rank].blocks[step];
                assert_int_equal(seen->source, order[step]);
                assert_int_equal(seen->first_key, 0);
                for (int64_t row = 0; row < ROWS; row++) {
                    int64_t want = order[step] == rank ? row + 1 : 32;
                    want = order[step] == 2 && want > 6 ? 6 : want;
                    assert_int_equal(seen->visible[row], want);
                }
            }
        }
    }
    end();
}

/* threads = 0: each rank has a thread of its own; one thread serves all when that is asked for. */
static void test_threads(void **state)
{
    (void)state;
    begin(96, RANKS * 96, 64);
    for (int64_t threads = 0; threads <= 1; threads++) {
        args.threads = threads;
        run(1);
        for (int64_t rank = 0; rank < RANKS; rank++) {
            const struct log *log = &logs[rank];
            for (int64_t i = 0; i < log->blocks_n; i++) {
                assert_true(pthread_equal(log->blocks[i].thread, log->blocks[0].thread));
            }
            for (int64_t other = 0; other < rank; other++) {
                assert_true((pthread_equal(log->blocks[0].thread, logs[other].blocks[0].thread) !=
                             0) == (threads == 1));
            }
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
    (void)state;
    for (size_t i = 0; i < COUNT(head_dims); i++) {
        begin(32, RANKS * 32, head_dims[i]);
        for (int32_t has_scale = 0; has_scale <= 1; has_scale++) {
            uint32_t got;
            args.has_scale = has_scale;
            args.scale = 3.0f; /* counts only with the flag */
            run(1);
            memcpy(&got, &logs[1].blocks[0].scale, sizeof got);
            assert_int_equal(got, has_scale != 0 ? 0x40400000 : bits[i]);
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_chunks),
        cmocka_unit_test(test_inactive_steps),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
