/* SPDX-License-Identifier: Apache-2.0
 *
 * lists_test.c - which keys the sparse operation hands to the inner step, and what it announces.
 *
 * As in schedule_test.c a spy stands in for the kernel. For every (query row, head) it writes down
 * the keys it is given, block by block, and checks that each block is the one announced before, and
 * that a row's last block announces the beginning of another row. The lists are compared with the
 * definition, written out below.
 */
#include "impl/sparse.h"

#include "impl/test_data.h"

#include <stdatomic.h>
#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LATENT       512
#define ROPE         32
#define HEADS        48
#define QUERIES      5
#define KEYS         1300
#define TOPK         640
#define TAKEN_MAX    (2 * KEYS)

/* What a line (query * HEADS + head) was given, passes one after the other. */
struct taken {
    int64_t n;
    int64_t blocks_n;
    int64_t surprises_n; /* blocks that were not announced */
    int64_t announcements_n;
    int64_t foreseen_n; /* announcements of another row */
    int32_t keys[TAKEN_MAX];
};

/* At the head of the spy's scratch: the group at work, and the block announced for it. */
struct group {
    int64_t line;
    int64_t rows_n;
    int64_t announced_n;
    const uint16_t *announced_main;
    const int32_t *announced_index;
    int32_t announced[MLA_ATTEND_KEYS];
};

static struct mla_sparse_args args;
static struct mla_attend spy;
static uint16_t *lift, *pe, *cache, *rope_cache, *out;
static int32_t flat[QUERIES * TOPK];
static int32_t tiled[16 * 128 * TOPK / 16];
static struct taken taken[QUERIES * HEADS];
static atomic_int strange_n;
static atomic_int in_place_n; /* blocks that lie in the caller's list */

static void strange_unless(bool is_right)
{
    if (!is_right) {
        atomic_fetch_add(&strange_n, 1);
    }
}

static size_t spy_scratch(const struct mla_attend_shape *shape)
{
    (void)shape;
    return sizeof(struct group);
}

static void spy_query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                      const uint16_t *main, const uint16_t *rope)
{
    struct group *group = scratch;
    const int64_t line = (main - lift) / LATENT;
    strange_unless(rope == pe + line * ROPE && shape->rope_n == ROPE);
    if (row == 0) {
        *group = (struct group){.line = line};
    }
    strange_unless(row == group->rows_n && line == group->line + row);
    group->rows_n++;
}

static int32_t key_at(const struct mla_attend_keys *keys, int64_t i)
{
    const int64_t first = (keys->main - cache) / LATENT;
    strange_unless(keys->rope == rope_cache + first * ROPE);
    return (int32_t)(first + (keys->index != NULL ? keys->index[i] : i));
}

/* The definition; q_pos_offset is 0 where there is none. */
static int64_t keys_of(int64_t query, int32_t *keys)
{
    const bool is_limited = args.dense != 0 || args.has_q_pos_offset != 0;
    int64_t n = 0;
    for (int64_t j = 0; j < (args.dense != 0 ? KEYS : TOPK); j++) {
        const int32_t key = args.dense != 0 ? (int32_t)j : flat[query * TOPK + j];
        if (!is_limited || key - query <= args.q_pos_offset) {
            keys[n++] = key;
        }
    }
    return n;
}

/* After a row's last block: one thread knows what comes next, several can only guess. */
static void expect_foresight(const struct mla_attend_shape *shape, const struct group *group,
                             const struct mla_attend_keys *keys)
{
    const int64_t own = group->line / HEADS;
    const int64_t next = (group->line + group->rows_n) / HEADS;
    int32_t want[TOPK > KEYS ? TOPK : KEYS];
    const bool is_last = next == QUERIES || keys_of(next, want) == 0;
    bool is_found = false;
    strange_unless(args.threads > 1 || (keys->next == NULL) == is_last);
    for (int64_t query = own; keys->next != NULL && query < QUERIES; query++) {
        const int64_t all = keys_of(query, want);
        bool is_same = keys->next_n == (all < shape->keys_n ? all : shape->keys_n);
        for (int64_t i = 0; is_same && i < keys->next_n; i++) {
            is_same = key_at(keys->next, i) == want[i];
        }
        is_found = is_found || (is_same && (args.threads > 1 || query == next));
    }
    strange_unless(keys->next == NULL || is_found);
}

static void spy_block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                      const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                      const struct mla_attend_state *state)
{
    struct group *group = scratch;
    const int64_t n = visible[0];
    const bool is_announced = group->announced_n > 0;
    (void)scale;
    (void)state;
    strange_unless(rows_n == group->rows_n && rows_n <= spy.rows_n);
    strange_unless(n > 0 && n <= shape->keys_n);
    strange_unless(!is_announced ||
                   (n == group->announced_n && keys->main == group->announced_main &&
                    keys->index == group->announced_index));
    atomic_fetch_add(&in_place_n, keys->index >= flat && keys->index < flat + QUERIES * TOPK);
    for (int64_t i = 0; i < n; i++) {
        strange_unless(!is_announced || key_at(keys, i) == group->announced[i]);
    }
    /* of the pass; keys taken so far are those of whole passes */
    int32_t all[TOPK > KEYS ? TOPK : KEYS];
    const bool is_end = (taken[group->line].n + n) % keys_of(group->line / HEADS, all) == 0;
    for (int64_t r = 0; r < rows_n; r++) {
        struct taken *mine = &taken[group->line + r];
        strange_unless(visible[r] == n && mine->n + n <= TAKEN_MAX);
        for (int64_t i = 0; i < n && mine->n < TAKEN_MAX; i++) {
            mine->keys[mine->n++] = key_at(keys, i);
        }
        mine->blocks_n++;
        mine->surprises_n += is_announced ? 0 : 1;
        mine->announcements_n += keys->next != NULL && !is_end ? 1 : 0;
        mine->foreseen_n += keys->next != NULL && is_end ? 1 : 0;
    }
    group->announced_n = 0;
    if (is_end) {
        expect_foresight(shape, group, keys);
    } else if (keys->next != NULL) {
        strange_unless(n == shape->keys_n && keys->next_n > 0 && keys->next_n <= shape->keys_n);
        group->announced_n = keys->next_n;
        group->announced_main = keys->next->main;
        group->announced_index = keys->next->index;
        for (int64_t i = 0; i < keys->next_n; i++) {
            group->announced[i] = key_at(keys->next, i);
        }
    }
}

static float spy_finish(const struct mla_attend_shape *shape, const struct mla_attend_state *state,
                        int64_t row)
{
    (void)shape;
    return state->sum[row];
}

static void run(int64_t passes_n)
{
    char message[300];
    const int64_t block = spy.block_keys > 0 ? spy.block_keys : MLA_SPARSE_BLOCK;
    memset(taken, 0, sizeof taken);
    atomic_store(&strange_n, 0);
    atomic_store(&in_place_n, 0);
    const int32_t status = mla_sparse_run(&args, &spy, message, sizeof message);
    if (status != MLA_OK) {
        fail_msg("status %d: %s", (int)status, message);
    }
    assert_int_equal(atomic_load(&strange_n), 0);
    for (int64_t line = 0; line < QUERIES * HEADS; line++) {
        int32_t want[TOPK > KEYS ? TOPK : KEYS];
        const int64_t n = keys_of(line / HEADS, want);
        assert_int_equal(taken[line].n, passes_n * n);
        assert_int_equal(taken[line].blocks_n, passes_n * ((n + block - 1) / block));
        /* All but the first block of a pass are announced, and nothing that does not come. */
        assert_int_equal(taken[line].surprises_n, n > 0 ? passes_n : 0);
        assert_int_equal(taken[line].announcements_n,
                         taken[line].blocks_n - taken[line].surprises_n);
        for (int64_t pass = 0; pass < passes_n && n > 0; pass++) {
            assert_memory_equal(taken[line].keys + pass * n, want, (size_t)n * sizeof want[0]);
        }
    }
}

static void make(void)
{
    lift = test_tensor(QUERIES * HEADS * LATENT, 1);
    pe = test_tensor(QUERIES * HEADS * ROPE, 2);
    cache = test_tensor(KEYS * LATENT, 3);
    rope_cache = test_tensor(KEYS * ROPE, 4);
    out = test_alloc(QUERIES * HEADS * LATENT * 2);
    memset(tiled, 0xff, sizeof tiled);
    for (int64_t q = 0; q < QUERIES; q++) {
        for (int64_t j = 0; j < TOPK; j++) {
            const int32_t key = (int32_t)(test_mix(5, (uint64_t)(q * TOPK + j)) % KEYS);
            flat[q * TOPK + j] = key;
            tiled[(16 * (q % 8) + j % 16) * (TOPK / 16) + j / 16] = key;
        }
    }
    args = (struct mla_sparse_args){.struct_size = sizeof args,
                                    .batch = 1,
                                    .queries = QUERIES,
                                    .keys = KEYS,
                                    .heads = HEADS,
                                    .latent = LATENT,
                                    .rope = ROPE,
                                    .topk = TOPK,
                                    .cores = 1,
                                    .softmax_scale = 1.0f,
                                    .q_lift = lift,
                                    .q_pe = pe,
                                    .c_kv = cache,
                                    .k_pe = rope_cache,
                                    .out = out};
}

static void destroy(void)
{
    free(out);
    free(rope_cache);
    free(cache);
    free(pe);
    free(lift);
}

static struct mla_attend spy_of(int64_t passes_n, int64_t rows_n, int64_t block_keys)
{
    return (struct mla_attend){.sums_n = 1,
                               .rows_n = rows_n,
                               .block_keys = block_keys,
                               .scratch_bytes = spy_scratch,
                               .query = spy_query,
                               .block = {spy_block, passes_n > 1 ? spy_block : NULL},
                               .finish = spy_finish};
}

/* No offset; one that drops nearly everything, much, hardly anything, nothing. */
static const int64_t offsets[] = {-1, 0, 500, KEYS - 2, INT64_MAX};

static void test_lists(void **state)
{
    static const int64_t blocks[] = {0, 100, MLA_ATTEND_KEYS};
    static const int64_t rows[] = {16, 32, 128};
    (void)state;
    make();
    for (size_t i = 0; i < COUNT(offsets) * 3 * COUNT(blocks) * COUNT(rows) * 2; i++) {
        const int64_t offset = offsets[i % COUNT(offsets)];
        const int kind = (int)(i / COUNT(offsets) % 3); /* flat, tiled, dense */
        const int64_t block = blocks[i / COUNT(offsets) / 3 % COUNT(blocks)];
        const int64_t passes_n = 1 + (int64_t)(i % 2);
        spy = spy_of(passes_n, rows[i / COUNT(offsets) / 3 / COUNT(blocks) % COUNT(rows)], block);
        args.has_q_pos_offset = offset >= 0;
        args.q_pos_offset = offset >= 0 ? offset : 0;
        args.dense = kind == 2;
        args.topk_tiled = kind == 1;
        args.topk_indices = kind == 2 ? NULL : kind == 1 ? tiled : flat;
        args.threads = 1 + (int64_t)i % 8;
        run(passes_n);
    }
    destroy();
}

/* A flat list from which nothing is dropped is used where it lies. */
static void test_in_place(void **state)
{
    (void)state;
    make();
    args.threads = 1;
    spy = spy_of(1, 16, 0);
    args.topk_indices = flat;
    run(1);
    assert_int_equal(atomic_load(&in_place_n), QUERIES * (HEADS / 16) * (TOPK / MLA_SPARSE_BLOCK));
    args.has_q_pos_offset = 1;
    args.q_pos_offset = KEYS;
    run(1);
    assert_int_equal(atomic_load(&in_place_n), QUERIES * (HEADS / 16) * (TOPK / MLA_SPARSE_BLOCK));
    args.q_pos_offset = 1000;
    for (int64_t j = 0; j < QUERIES * TOPK; j++) { /* row 2 reaches as far as key 1002 */
        flat[j] = j == 2 * TOPK + 3 ? 1003 : flat[j] % 1000;
    }
    run(1);
    assert_int_equal(atomic_load(&in_place_n),
                     (QUERIES - 1) * (HEADS / 16) * (TOPK / MLA_SPARSE_BLOCK));
    destroy();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_in_place),
    };
    return cmocka_run_group_tests_name("lists", tests, NULL, NULL);
}
