/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_avx2.c - the step for AVX2 and FMA: the arithmetic of bf16_step.h in float32.
 *
 * A product of bf16 numbers is exact in float32, so an fma on widened numbers rounds what the
 * instruction for bf16 pairs rounds, and with the second of a pair first also in its order.
 *
 * Scores: lanes are rows. The queries are widened and transposed once, a panel of 16 rows at a
 * time; a group of 64 columns of some keys is widened into memory that stays in the first-level
 * cache while all panels pass over it. A tile of 6 keys by 16 rows keeps its 12 sums in registers,
 * as many as two fma units of latency 4 need and a half more. Group sums are added up in
 * step.scores.
 *
 * Weighted sums: lanes are columns. 24 columns of the block's values are widened at a time, and 4
 * rows by 24 columns are summed over all keys in registers. Rows of four that see different
 * keys go together as far as all of them see, then each on its own: no value that a row does not
 * see is even multiplied by zero.
 */
#include "impl/simd_avx2.h"

#include "impl/bf16_step.h"

#include <stdbool.h>

#define GROUP      MLA_STEP_GROUP
#define PANEL      16 /* rows whose queries lie together */
#define KEYS       96 /* keys widened at a time, with 16 rows' queries: 28 KiB */
#define TILE_KEYS  6
#define TILE_ROWS  4
#define WIDE       3 /* vectors of columns in a weighted sum.. */
#define NARROW     2 /* .. and in the last ones, where value_n is no multiple of 24 */
#define QUERY_PAIR (2 * MLA_STEP_ROWS * sizeof(float))

/* The kernel's own scratch. */
struct own {
    float *queries; /* [MLA_STEP_ROWS / PANEL][2*pairs_n][PANEL] */
    float *keys;    /* [KEYS][GROUP] columns of keys */
    float *values;  /* [keys_n][24 or 16] columns of values */
};

#define KEYS_BYTES (KEYS * GROUP * sizeof(float))

static size_t values_bytes(int64_t keys_n)
{
    return (size_t)keys_n * WIDE * V_LANES * sizeof(float);
}

static size_t scratch_bytes(const struct mla_attend_shape *shape)
{
    return mla_step_bytes(shape, QUERY_PAIR, KEYS_BYTES + values_bytes(shape->keys_n));
}

static struct own own_of(const struct mla_step *step)
{
    struct own own = {.queries = step->own};
    own.keys = own.queries + 2 * step->pairs_n * MLA_STEP_ROWS;
    own.values = own.keys + KEYS * GROUP;
    return own;
}

static inline __m256 widen8(const uint16_t *from)
{
    const __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

static inline float widen(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Widen the tile's queries into panels; rows that are not there become zeros. */
static void lay_out_queries(const struct mla_step *step, const struct own *own, int64_t rows_n)
{
    const int64_t width = 2 * step->pairs_n;
    for (int64_t row = 0; row < mla_step_up(rows_n, PANEL); row++) {
        float *to = own->queries + row / PANEL * PANEL * width + row % PANEL;
        const uint16_t *from = step->taken + row * width;
        for (int64_t c = 0; c < width; c++) {
            to[c * PANEL] = row < rows_n ? widen(from[c]) : 0.0f;
        }
    }
    *step->fresh = 0;
}

/* ---- scores -----------------------------------------------------------------------------------*/

/* Up to GROUP columns of the keys: of a part (main or rope) and of the laid out queries. */
struct group {
    const uint16_t *part;
    int64_t stride;  /* of the part */
    int64_t columns; /* of the group; an odd last one is followed by a zero */
    const float *queries;
};

static inline int64_t key_row(const struct mla_attend_keys *keys, int64_t key)
{
    return keys->index != NULL ? keys->index[key] : key;
}

static void widen_keys(const struct group *group, const struct mla_attend_keys *keys, int64_t first,
                       int64_t keys_n, float *to)
{
    for (int64_t i = 0; i < keys_n; i++, to += GROUP) {
        const uint16_t *from = group->part + key_row(keys, first + i) * group->stride;
        int64_t c = 0;
        for (; c + V_LANES <= group->columns; c += V_LANES) {
            _mm256_store_ps(to + c, widen8(from + c));
        }
        for (; c < group->columns; c++) {
            to[c] = widen(from[c]);
        }
        if (c % 2 != 0) {
            to[c] = 0.0f;
        }
    }
}

/* Keys of the next block that will be widened by this group: on their way while scores are made. */
static inline void fetch_ahead(const struct group *group, const struct mla_attend_keys *keys,
                               int64_t first, int64_t n)
{
    const struct mla_attend_keys *next = keys->next;
    if (next == NULL) {
        return;
    }
    for (int64_t key = first; key < first + n && key < keys->next_n; key++) {
        const uint16_t *row = group->part + key_row(next, key) * group->stride;
        _mm_prefetch((const char *)row, _MM_HINT_T1);
        _mm_prefetch((const char *)(row + group->columns - 1), _MM_HINT_T1);
    }
}

/*
 * Scores of n keys and PANEL rows over one group: n is a constant at every call. Scores of the
 * panel's two vectors of rows lie apart; is_first says that there is nothing yet to add to.
 */
__attribute__((always_inline)) static inline void score_tile(const int n, const float *queries,
                                                             const float *keys, int64_t columns,
                                                             bool is_first, float *low, float *high)
{
    __m256 sum[TILE_KEYS][2];
#pragma GCC unroll 6
    for (int i = 0; i < n; i++) {
        sum[i][0] = _mm256_setzero_ps();
        sum[i][1] = _mm256_setzero_ps();
    }
    for (int64_t c = 0; c < columns; c += 2) {
#pragma GCC unroll 2
        for (int64_t second = 1; second >= 0; second--) {
            const __m256 a = _mm256_load_ps(queries + (c + second) * PANEL);
            const __m256 b = _mm256_load_ps(queries + (c + second) * PANEL + V_LANES);
#pragma GCC unroll 6
            for (int i = 0; i < n; i++) {
                const __m256 key = _mm256_broadcast_ss(keys + i * GROUP + c + second);
                sum[i][0] = _mm256_fmadd_ps(a, key, sum[i][0]);
                sum[i][1] = _mm256_fmadd_ps(b, key, sum[i][1]);
            }
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < n; i++) {
        if (!is_first) {
            sum[i][0] = _mm256_add_ps(_mm256_load_ps(low + i * V_LANES), sum[i][0]);
            sum[i][1] = _mm256_add_ps(_mm256_load_ps(high + i * V_LANES), sum[i][1]);
        }
        _mm256_store_ps(low + i * V_LANES, sum[i][0]);
        _mm256_store_ps(high + i * V_LANES, sum[i][1]);
    }
}

/* n keys (any number), `low` and `high` at the scores of the first of them. */
static inline void score_keys(const float *queries, const float *keys, int64_t columns, int64_t n,
                              bool is_first, float *low, float *high)
{
    const float *end = keys + n * GROUP;
    for (; keys + TILE_KEYS * GROUP <= end; keys += TILE_KEYS * GROUP) {
        score_tile(TILE_KEYS, queries, keys, columns, is_first, low, high);
        low += TILE_KEYS * V_LANES;
        high += TILE_KEYS * V_LANES;
    }
    for (; keys + 2 * GROUP <= end; keys += 2 * GROUP) {
        score_tile(2, queries, keys, columns, is_first, low, high);
        low += 2 * V_LANES;
        high += 2 * V_LANES;
    }
    if (keys < end) {
        score_tile(1, queries, keys, columns, is_first, low, high);
    }
}

/* Add a group to the scores of the keys some row sees. */
static void score_group(const struct mla_step *step, const struct own *own,
                        const struct group *group, const struct mla_attend_keys *keys,
                        int64_t rows_n, int64_t most, bool is_first)
{
    const int64_t width = 2 * step->pairs_n;
    for (int64_t first = 0; first < most; first += KEYS) {
        const int64_t keys_n = most - first < KEYS ? most - first : KEYS;
        widen_keys(group, keys, first, keys_n, own->keys);
        for (int64_t row = 0; row < rows_n; row += PANEL) {
            const int64_t lanes = rows_n - row <= V_LANES ? V_LANES : PANEL;
            float *low = step->scores + row * step->keys_n + first * V_LANES;
            int64_t fewest_seen;
            int64_t most_seen;
            mla_step_range(step, row, lanes, &fewest_seen, &most_seen);
            const int64_t left = most_seen - first;
            score_keys(group->queries + row * width, own->keys, mla_step_up(group->columns, 2),
                       left < keys_n ? left : keys_n, is_first, low, low + V_LANES * step->keys_n);
            if (row == 0) {
                fetch_ahead(group, keys, first, KEYS);
            }
        }
    }
}

static void score(const struct mla_attend_shape *shape, const struct mla_step *step,
                  const struct own *own, const struct mla_attend_keys *keys, int64_t rows_n,
                  int64_t most)
{
    for (int64_t c = 0; c < shape->main_n; c += GROUP) {
        const int64_t left = shape->main_n - c;
        const struct group group = {.part = keys->main + c,
                                    .stride = shape->main_n,
                                    .columns = left < GROUP ? left : GROUP,
                                    .queries = own->queries + c * PANEL};
        score_group(step, own, &group, keys, rows_n, most, c == 0);
    }
    for (int64_t c = 0; c < shape->rope_n; c += GROUP) {
        const int64_t left = shape->rope_n - c;
        const struct group group = {.part = keys->rope + c,
                                    .stride = shape->rope_n,
                                    .columns = left < GROUP ? left : GROUP,
                                    .queries = own->queries + (shape->main_n + c) * PANEL};
        score_group(step, own, &group, keys, rows_n, most, false);
    }
}

/* ---- weighted sums ----------------------------------------------------------------------------*/

/* Weights of rows lie V_LANES apart from key to key, values `vectors` vectors. */
#define PAIR_WEIGHTS (2 * V_LANES)

/* Add keys first .. end-1 to the sums of n rows, first even; n and vectors are constants. An odd
 * last key is paired with a weight and a value of zero. */
__attribute__((always_inline)) static inline void
add_keys(const int n, const int vectors, __m256 (*sum)[WIDE], const float *weights,
         const float *values, int64_t first, int64_t end)
{
    const int64_t stride = vectors * V_LANES;
    int64_t key = first;
    for (; key + 2 <= end; key += 2) {
#pragma GCC unroll 2
        for (int64_t second = 1; second >= 0; second--) {
            const float *from = values + (key + second) * stride;
            __m256 value[WIDE];
#pragma GCC unroll 3
            for (int j = 0; j < vectors; j++) {
                value[j] = _mm256_load_ps(from + j * V_LANES);
            }
#pragma GCC unroll 4
            for (int i = 0; i < n; i++) {
                const __m256 p = _mm256_broadcast_ss(weights + (key + second) * V_LANES + i);
#pragma GCC unroll 3
                for (int j = 0; j < vectors; j++) {
                    sum[i][j] = _mm256_fmadd_ps(p, value[j], sum[i][j]);
                }
            }
        }
    }
    if (key < end) {
        const __m256 zero = _mm256_setzero_ps();
#pragma GCC unroll 4
        for (int i = 0; i < n; i++) {
            const __m256 p = _mm256_broadcast_ss(weights + key * V_LANES + i);
#pragma GCC unroll 3
            for (int j = 0; j < vectors; j++) {
                const __m256 value = _mm256_load_ps(values + key * stride + j * V_LANES);
                sum[i][j] = _mm256_fmadd_ps(p, value, _mm256_add_ps(sum[i][j], zero));
            }
        }
    }
}

/* Bring `vectors` vectors of a row's out up to date; alpha < 0: the row has none yet. */
__attribute__((always_inline)) static inline void put_row(const int vectors, const __m256 *sum,
                                                          float alpha, float *out)
{
#pragma GCC unroll 3
    for (int j = 0; j < vectors; j++) {
        if (alpha < 0.0f) {
            _mm256_storeu_ps(out + j * V_LANES, sum[j]);
        } else {
            const __m256 earlier = _mm256_loadu_ps(out + j * V_LANES);
            _mm256_storeu_ps(out + j * V_LANES,
                             _mm256_fmadd_ps(_mm256_set1_ps(alpha), earlier, sum[j]));
        }
    }
}

/* TILE_ROWS rows of which the first n exist, by `vectors` vectors of columns. */
__attribute__((always_inline)) static inline void
weigh_tile(const int vectors, int64_t n, const int32_t *visible, const float *alpha,
           const float *weights, const float *values, float *out, int64_t out_stride)
{
    __m256 sum[TILE_ROWS][WIDE];
    int64_t fewest = visible[0];
    bool is_even = true;
    for (int64_t i = 1; i < n; i++) {
        is_even = is_even && visible[i] == visible[0];
        fewest = visible[i] < fewest ? visible[i] : fewest;
    }
#pragma GCC unroll 4
    for (int i = 0; i < TILE_ROWS; i++) {
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) {
            sum[i][j] = _mm256_setzero_ps();
        }
    }
    fewest = is_even ? fewest : fewest / 2 * 2;
    add_keys(TILE_ROWS, vectors, sum, weights, values, 0, fewest);
    if (is_even && n == TILE_ROWS && fewest > 0) {
#pragma GCC unroll 4
        for (int i = 0; i < TILE_ROWS; i++) {
            put_row(vectors, sum[i], alpha[i], out + i * out_stride);
        }
        return;
    }
    float kept[TILE_ROWS][WIDE * V_LANES];
#pragma GCC unroll 4
    for (int i = 0; i < TILE_ROWS; i++) {
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) {
            _mm256_storeu_ps(kept[i] + j * V_LANES, sum[i][j]);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        __m256 row[1][WIDE];
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) {
            row[0][j] = _mm256_loadu_ps(kept[i] + j * V_LANES);
        }
        if (visible[i] > 0) {
            add_keys(1, vectors, row, weights + i, values, fewest, is_even ? fewest : visible[i]);
            put_row(vectors, row[0], alpha[i], out + i * out_stride);
        }
    }
}

/* All rows, by `vectors` vectors of columns from `column` on. */
__attribute__((always_inline)) static inline void
weigh_columns(const int vectors, const struct mla_attend_shape *shape, const struct mla_step *step,
              const struct own *own, const struct mla_attend_keys *keys, int64_t rows_n,
              int64_t most, int64_t column, float *out)
{
    const int64_t stride = vectors * V_LANES;
    for (int64_t key = 0; key < most; key++) {
        const uint16_t *from = keys->main + key_row(keys, key) * shape->main_n + column;
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) {
            _mm256_store_ps(own->values + key * stride + j * V_LANES, widen8(from + j * V_LANES));
        }
    }
    for (int64_t row = 0; row < rows_n; row += TILE_ROWS) {
        const float *weights = (const float *)(const void *)step->weights +
                               row / V_LANES * V_LANES * step->keys_n + row % V_LANES;
        weigh_tile(vectors, rows_n - row < TILE_ROWS ? rows_n - row : TILE_ROWS,
                   step->visible + row, step->alpha + row, weights, own->values,
                   out + row * shape->value_n + column, shape->value_n);
    }
}

/* value_n is a multiple of 32: 24 columns a time, in the end 16 once or twice. */
static void weigh(const struct mla_attend_shape *shape, const struct mla_step *step,
                  const struct own *own, const struct mla_attend_keys *keys, int64_t rows_n,
                  int64_t most, float *out)
{
    int64_t column = 0;
    while (column < shape->value_n) {
        const int64_t left = shape->value_n - column;
        if (left == 16 || left == 32) {
            weigh_columns(NARROW, shape, step, own, keys, rows_n, most, column, out);
            column += NARROW * V_LANES;
        } else {
            weigh_columns(WIDE, shape, step, own, keys, rows_n, most, column, out);
            column += WIDE * V_LANES;
        }
    }
}

/* ---- the step ---------------------------------------------------------------------------------*/

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct mla_step step = mla_step_of(shape, scratch);
    const struct own own = own_of(&step);
    const struct mla_step_scale split = mla_step_scale(scale);
    const int64_t most = mla_step_see(&step, rows_n, visible);
    const unsigned callers = mla_step_flush();
    if (most > 0) {
        if (*step.fresh != 0) {
            lay_out_queries(&step, &own, rows_n);
        }
        score(shape, &step, &own, keys, rows_n, most);
        for (int64_t row = 0; row < rows_n; row += V_LANES) {
            mla_step_soften(&step, row, rows_n, split, state);
        }
        weigh(shape, &step, &own, keys, rows_n, most, state->out);
    }
    _mm_setcsr(callers);
}

const struct mla_attend mla_attend_avx2 = {
    .sums_n = 1,
    .rows_n = MLA_STEP_ROWS,
    .block_keys = MLA_STEP_BLOCK,
    .scratch_bytes = scratch_bytes,
    .query = mla_step_query,
    .block = {block},
    .finish = mla_step_finish,
    .store = mla_step_store,
};
