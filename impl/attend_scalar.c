/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_scalar.c - the portable step: float32 arithmetic, each operation as written.
 *
 * No intrinsics and no fast-math, yet made for vector units: scores are summed in 16 lanes that
 * are added pairwise at the end, values have one lane per column, and the exponential has no
 * branch. The order of every sum is fixed by this text, so every compiler and vector width gives
 * the same bits. Keys are widened to float32 in groups of KEYS_GROUP that stay in the first-level
 * cache while all rows of the tile use them.
 *
 * Error budget, u = 2^-24 (the model in kernel_scalar.c is made of these numbers):
 *   score      products of bf16 are exact; a lane adds ceil(width/16) of them, the first to zero,
 *              then 4 pairwise levels: ceil(width/16) + 3 roundings on the longest path
 *   argument   subtract, multiply: 2 roundings
 *   weight     the exponential's error; it is kept in float32
 *   sums       out and sum start at zero and add key by key: n - 1 roundings for the first of n
 *              keys, 1 more for the product with the value, 1 for each rescale; a rescale happens
 *              at most once per block after the row's first, and not when its maximum stays
 */
#include "impl/attend.h"
#include "impl/bf16.h"
#include "impl/exp_scalar.h"

#include <stdbool.h>

#define LANES      16
#define KEYS_GROUP 8

/* The scratch of one worker, all rows padded with zeros to a multiple of LANES floats. */
struct arrays {
    float *queries; /* [MLA_ATTEND_ROWS][width] */
    float *keys;    /* [KEYS_GROUP][width] */
    float *scores;  /* [MLA_ATTEND_ROWS][block] scores, then weights */
    int64_t width;
    int64_t block;
};

static int64_t pad(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static size_t scratch_bytes(const struct mla_attend_shape *shape)
{
    size_t widths;
    size_t scores;
    size_t total;
    if (__builtin_mul_overflow(pad(shape->main_n + shape->rope_n),
                               sizeof(float) * (MLA_ATTEND_ROWS + KEYS_GROUP), &widths) ||
        __builtin_mul_overflow(pad(shape->keys_n), sizeof(float) * MLA_ATTEND_ROWS, &scores) ||
        __builtin_add_overflow(widths, scores, &total)) {
        return 0;
    }
    return total;
}

static struct arrays arrays_of(const struct mla_attend_shape *shape, void *scratch)
{
    struct arrays arrays = {.width = pad(shape->main_n + shape->rope_n),
                            .block = pad(shape->keys_n)};
    arrays.queries = scratch;
    arrays.keys = arrays.queries + MLA_ATTEND_ROWS * arrays.width;
    arrays.scores = arrays.keys + KEYS_GROUP * arrays.width;
    return arrays;
}

static void widen(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = mla_bf16_to_float(from[i]);
    }
}

/* One row of main and rope columns, and zeros up to the padded width. */
static void widen_row(const struct mla_attend_shape *shape, float *to, const uint16_t *main,
                      const uint16_t *rope, int64_t width)
{
    const int64_t used = shape->main_n + shape->rope_n;
    widen(to, main, shape->main_n);
    if (shape->rope_n > 0) {
        widen(to + shape->main_n, rope, shape->rope_n);
    }
    memset(to + used, 0, (size_t)(width - used) * sizeof *to);
}

static void query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                  const uint16_t *main, const uint16_t *rope)
{
    const struct arrays arrays = arrays_of(shape, scratch);
    widen_row(shape, arrays.queries + row * arrays.width, main, rope, arrays.width);
}

static int64_t key_row(const struct mla_attend_keys *keys, int64_t key)
{
    return keys->index != NULL ? keys->index[key] : key;
}

/*
 * Four lanes. A generic vector of the compilers this project builds with: the operations on it are
 * those on its elements, on every machine. Written with arrays, the lanes of a loop over columns
 * end up in memory with one compiler or the other, at a fifth of the speed.
 */
typedef float quad __attribute__((vector_size(16)));

#define QUADS (LANES / 4)

static inline quad load_quad(const float *from)
{
    quad value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Lane i of 16 is element i % 4 of quad i / 4; lanes 8, 4, 2 and 1 apart are added in this order.
 */
static inline float add_lanes(const quad lane[QUADS])
{
    const quad four = (lane[0] + lane[2]) + (lane[1] + lane[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

static float dot(const float *restrict a, const float *restrict key, int64_t width)
{
    quad lane[QUADS] = {{0}};
    for (int64_t c = 0; c < width; c += LANES) {
        for (int i = 0; i < QUADS; i++) {
            lane[i] += load_quad(a + c + 4 * i) * load_quad(key + c + 4 * i);
        }
    }
    return add_lanes(lane);
}

/* Two rows against one key: the same sums, each key column loaded once. */
static void dot_pair(const float *restrict a, const float *restrict b, const float *restrict key,
                     int64_t width, float *restrict score_a, float *restrict score_b)
{
    quad lane_a[QUADS] = {{0}};
    quad lane_b[QUADS] = {{0}};
    for (int64_t c = 0; c < width; c += LANES) {
        for (int i = 0; i < QUADS; i++) {
            const quad columns = load_quad(key + c + 4 * i);
            lane_a[i] += load_quad(a + c + 4 * i) * columns;
            lane_b[i] += load_quad(b + c + 4 * i) * columns;
        }
    }
    *score_a = add_lanes(lane_a);
    *score_b = add_lanes(lane_b);
}

/* How many keys of the group that starts at `first` a row sees. */
static int64_t group_visible(int64_t visible, int64_t first)
{
    const int64_t left = visible - first;
    if (left <= 0) {
        return 0;
    }
    return left < KEYS_GROUP ? left : KEYS_GROUP;
}

/* Scores of all rows against the group of keys that starts at `first`. */
static void score_group(const struct arrays *arrays, int64_t rows_n, const int64_t *visible,
                        int64_t first)
{
    const int64_t width = arrays->width;
    for (int64_t row = 0; row < rows_n; row++) {
        const float *a = arrays->queries + row * width;
        float *scores = arrays->scores + row * arrays->block + first;
        const int64_t n = group_visible(visible[row], first);
        const bool is_pair = row + 1 < rows_n && n == group_visible(visible[row + 1], first);
        for (int64_t i = 0; i < n; i++) {
            const float *key = arrays->keys + i * width;
            if (is_pair) {
                dot_pair(a, a + width, key, width, &scores[i], &scores[i + arrays->block]);
            } else {
                scores[i] = dot(a, key, width);
            }
        }
        row += is_pair ? 1 : 0;
    }
}

/* Largest of n >= 1 scores; a NaN is passed over here and reaches the row through its weight. */
static float largest(const float *scores, int64_t n)
{
    float lane[LANES];
    int64_t i = 0;
    for (int j = 0; j < LANES; j++) {
        lane[j] = -INFINITY;
    }
    for (; i + LANES <= n; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            lane[j] = scores[i + j] > lane[j] ? scores[i + j] : lane[j];
        }
    }
    for (int j = 0; i < n; i++, j++) {
        lane[j] = scores[i] > lane[j] ? scores[i] : lane[j];
    }
    for (int j = 1; j < LANES; j++) {
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
    }
    return lane[0];
}

static void weigh(float *scores, int64_t n, float max, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        scores[i] = mla_exp_scalar(scale * (scores[i] - max));
    }
}

static void rescale(float *out, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] *= factor;
    }
}

/* One softmax step of one row: new maximum, rescale of what was there, weights, their sum. */
static void soften_row(const struct mla_attend_shape *shape, const struct mla_attend_state *state,
                       int64_t row, float *scores, int64_t n, float scale)
{
    float *out = state->out + row * shape->value_n;
    const float before = state->max[row];
    const float block_max = largest(scores, n);
    const float max = block_max > before ? block_max : before;
    float sum = state->sum[row];

    if (sum == 0.0f) { /* the row's first keys: afterwards the sum is at least 1, or NaN */
        memset(out, 0, (size_t)shape->value_n * sizeof *out);
    } else if (max > before) {
        const float factor = mla_exp_scalar(scale * (before - max));
        sum *= factor;
        rescale(out, shape->value_n, factor);
    }
    weigh(scores, n, max, scale);
    for (int64_t i = 0; i < n; i++) {
        sum += scores[i];
    }
    state->max[row] = max;
    state->sum[row] = sum;
}

/* out += p[0..n) times n values, key by key. Four keys a pass only save loads and stores of out. */
static void add_values(float *restrict out, const float *restrict p, const float *restrict values,
                       int64_t stride, int64_t n, int64_t columns_n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float *restrict v = values + i * stride;
        const float p0 = p[i];
        const float p1 = p[i + 1];
        const float p2 = p[i + 2];
        const float p3 = p[i + 3];
        for (int64_t c = 0; c < columns_n; c++) {
            out[c] = (((out[c] + p0 * v[c]) + p1 * v[c + stride]) + p2 * v[c + 2 * stride]) +
                     p3 * v[c + 3 * stride];
        }
    }
    for (; i < n; i++) {
        const float *restrict v = values + i * stride;
        const float p0 = p[i];
        for (int64_t c = 0; c < columns_n; c++) {
            out[c] += p0 * v[c];
        }
    }
}

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct arrays arrays = arrays_of(shape, scratch);
    int64_t keys_n = 0;
    for (int64_t row = 0; row < rows_n; row++) {
        keys_n = visible[row] > keys_n ? visible[row] : keys_n;
    }

    for (int64_t first = 0; first < keys_n; first += KEYS_GROUP) {
        for (int64_t i = 0; i < group_visible(keys_n, first); i++) {
            const int64_t from = key_row(keys, first + i);
            widen_row(shape, arrays.keys + i * arrays.width, keys->main + from * shape->main_n,
                      shape->rope_n > 0 ? keys->rope + from * shape->rope_n : NULL, arrays.width);
        }
        score_group(&arrays, rows_n, visible, first);
    }
    for (int64_t row = 0; row < rows_n; row++) {
        if (visible[row] > 0) {
            soften_row(shape, state, row, arrays.scores + row * arrays.block, visible[row], scale);
        }
    }
    for (int64_t first = 0; first < keys_n; first += KEYS_GROUP) {
        for (int64_t i = 0; i < group_visible(keys_n, first); i++) {
            const int64_t from = key_row(keys, first + i);
            widen(arrays.keys + i * arrays.width, keys->main + from * shape->main_n,
                  shape->value_n);
        }
        for (int64_t row = 0; row < rows_n; row++) {
            add_values(state->out + row * shape->value_n,
                       arrays.scores + row * arrays.block + first, arrays.keys, arrays.width,
                       group_visible(visible[row], first), shape->value_n);
        }
    }
}

const struct mla_attend mla_attend_scalar = {
    .scratch_bytes = scratch_bytes,
    .query = query,
    .block = block,
};
