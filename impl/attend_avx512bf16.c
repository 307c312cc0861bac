/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_avx512bf16.c - the step for CPUs with AVX512-BF16: products of bf16 pairs, 16 rows a vector.
 *
 * The arithmetic is that of bf16_step.h. vdpbf16ps adds two products to a float32 accumulator as
 * fma(low, low, fma(high, high, acc)), rounds each to nearest and flushes subnormals whatever MXCSR
 * says (dot_bf16_test.c), which is the chain over pairs meant there.
 *
 *   scores   lanes are rows: queries are transposed once per tile, a key's pair of columns is
 *            broadcast from where it lies, so keys are never copied, gathered ones neither. Register
 *            tile: 6 keys x 4 vectors, or more keys for fewer rows. For KEYS_CHUNK keys at a time the
 *            columns are gone through group by group, so that a group's part of the queries (8 KiB)
 *            and the scores stay in the first-level cache. Meanwhile the rows of the next block
 *            are fetched: nobody else knows them.
 *   values   lanes are columns: a panel of 64 columns of the block's values is interleaved in pairs
 *            of keys into contiguous memory (a stride of the cache's row would hit an eighth of the
 *            sets), pairs of weights are broadcast. Register tile: 4 rows x 4 vectors. Rows that see
 *            more than the others of their four go on alone.
 *   few rows (ROWS_DIRECT_MOST) are not worth a panel: pairs are interleaved in registers again for
 *            every 8 rows. These loops have loads to spare, the scores of few rows have none, so the
 *            next block is fetched here.
 *
 * Lanes beyond the tile's rows hold zero queries and see what the last row sees; their results are
 * not stored.
 */
#if defined(__AVX512BF16__)

#include "impl/avx512_scores.h"
#include "impl/avx512_values.h"

static size_t scratch_bytes(const struct mla_attend_shape *shape)
{
    const size_t panel = panel_words(mla_step_up(shape->keys_n, 4)) * sizeof(uint32_t);
    return mla_step_bytes(shape, MLA_STEP_ROWS * sizeof(uint32_t), panel);
}

/* Scores and softmax of vectors vec .. vec + vecs_n - 1 of vecs_all. */
static void weigh_vectors(const struct mla_attend_shape *shape, const struct mla_step *step,
                          const struct own *own, int64_t vec, int64_t vecs_n, int64_t vecs_all,
                          int64_t rows_n, const struct mla_attend_keys *keys,
                          const struct mla_attend_keys *next, struct mla_step_scale scale,
                          const struct mla_attend_state *state)
{
    const uint32_t *queries = own->queries + vec * step->pairs_n * V_LANES;
    const int64_t next_all = next != NULL ? keys->next_n : 0;
    int64_t fewest;
    int64_t most;
    mla_step_range(step, vec * V_LANES, vecs_n * V_LANES, &fewest, &most);
    for (int64_t key = 0; key < most; key += KEYS_CHUNK) {
        struct ahead main = {.n = 0};
        struct ahead rope = {.n = 0};
        const int64_t n = min_of(KEYS_CHUNK, most - key);
        /* of as many next keys each group of vectors fetches its share */
        const int64_t next_n = key < next_all ? min_of(n, next_all - key) : 0;
        const int64_t from = next_n * vec / vecs_all;
        const int64_t to = next_n * (vec + vecs_n) / vecs_all;
        if (to > from) {
            find_rows(shape, next, key + from, to - from, main.rows, rope.rows);
            main.n = to - from;
            rope.n = to - from;
        }
        score_chunk(shape, step, queries, vecs_n, keys, key, n, &main, &rope,
                    step->scores + (vec * step->keys_n + key) * V_LANES);
    }
    for (int64_t v = vec; v < vec + vecs_n; v++) {
        mla_step_soften(step, v * V_LANES, rows_n, scale, state);
    }
}

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct mla_step step = mla_step_of(shape, scratch);
    const struct own own = own_of(&step);
    const struct mla_step_scale split = mla_step_scale(scale);
    const int64_t most = mla_step_see(&step, rows_n, visible);
    const int64_t vecs_all = mla_step_up(rows_n, V_LANES) / V_LANES;
    const bool direct = is_direct(shape, &step, rows_n);
    const unsigned callers = mla_step_flush();

    if (*step.fresh != 0) {
        lay_out_queries(&step, &own, rows_n);
        *step.fresh = 0;
    }
    for (int64_t vec = 0; vec < vecs_all; vec += VECS_MOST) {
        weigh_vectors(shape, &step, &own, vec, min_of(VECS_MOST, vecs_all - vec), vecs_all, rows_n,
                      keys, direct ? NULL : keys->next, split, state);
    }
    if (direct) {
        add_direct(shape, &step, rows_n, keys, most, state->out);
    } else {
        add_values(shape, &step, &own, rows_n, keys, most, state->out);
    }
    mla_step_restore(callers);
}

const struct mla_attend mla_attend_avx512bf16 = {
    .sums_n = 1,
    .rows_n = MLA_STEP_ROWS,
    .block_keys = MLA_STEP_BLOCK,
    .scratch_bytes = scratch_bytes,
    .query = mla_step_query,
    .block = {block},
    .finish = mla_step_finish,
    .store = mla_step_store,
};

#else
typedef int mla_no_avx512bf16; /* a file that declares nothing is not C */
#endif
