/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_scalar.c - the portable step: float32 arithmetic, each operation as written.
 *
 * No intrinsics and no fast-math, yet made for vector units: scores are summed in 16 lanes that
 * are added pairwise at the end, values have one lane per column, and the exponential has no
 * branch. The order of every sum is fixed by this text and tile.h, so every compiler and vector width
 * gives the same bits. Keys are widened to float32 in groups of KEYS_GROUP that stay in the
 * first-level cache while all rows of the tile use them.
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
#include "impl/exp_scalar.h"
#include "impl/finish.h"
#include "impl/tile.h"

#include <stdbool.h>

#define KEYS_GROUP 8 /* keys that are scored together */

/*
 * Four lanes. A generic vector of the compilers this project builds with: the operations on it are
 * those on its elements, on every machine. Written with arrays, the lanes of a loop over columns
 * end up in memory with one compiler or the other, at a fifth of the speed.
 */
typedef float quad __attribute__((vector_size(16)));

#define QUADS (MLA_TILE_LANES / 4)

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
    for (int64_t c = 0; c < width; c += MLA_TILE_LANES) {
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
    for (int64_t c = 0; c < width; c += MLA_TILE_LANES) {
        for (int i = 0; i < QUADS; i++) {
            const quad columns = load_quad(key + c + 4 * i);
            lane_a[i] += load_quad(a + c + 4 * i) * columns;
            lane_b[i] += load_quad(b + c + 4 * i) * columns;
        }
    }
    *score_a = add_lanes(lane_a);
    *score_b = add_lanes(lane_b);
}

/* Scores of all rows against the group of keys that starts at `first`. */
static void score_group(const struct mla_tile *tile, int64_t rows_n, const int64_t *visible,
                        int64_t first)
{
    const int64_t width = tile->width;
    for (int64_t row = 0; row < rows_n; row++) {
        const float *a = tile->queries + row * width;
        float *scores = tile->scores + row * tile->block + first;
        const int64_t n = mla_tile_seen(visible[row], first, KEYS_GROUP);
        const bool is_pair =
            row + 1 < rows_n && n == mla_tile_seen(visible[row + 1], first, KEYS_GROUP);
        for (int64_t i = 0; i < n; i++) {
            const float *key = tile->keys + i * width;
            if (is_pair) {
                dot_pair(a, a + width, key, width, &scores[i], &scores[i + tile->block]);
            } else {
                scores[i] = dot(a, key, width);
            }
        }
        row += is_pair ? 1 : 0;
    }
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
    const float block_max = mla_tile_largest(scores, n);
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

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct mla_tile tile = mla_tile_of(shape, scratch);
    const int64_t keys_n = mla_tile_most(rows_n, visible);

    for (int64_t first = 0; first < keys_n; first += KEYS_GROUP) {
        for (int64_t i = 0; i < mla_tile_seen(keys_n, first, KEYS_GROUP); i++) {
            mla_tile_widen_key(shape, &tile, tile.keys + i * tile.width, keys, first + i);
        }
        score_group(&tile, rows_n, visible, first);
    }
    for (int64_t row = 0; row < rows_n; row++) {
        if (visible[row] > 0) {
            soften_row(shape, state, row, tile.scores + row * tile.block, visible[row], scale);
        }
    }
    mla_tile_add_values(shape, &tile, rows_n, visible, keys, state->out);
}

const struct mla_attend mla_attend_scalar = {
    .sums_n = 1,
    .rows_n = MLA_TILE_ROWS,
    .scratch_bytes = mla_tile_bytes,
    .query = mla_tile_query,
    .block = {block},
    .finish = mla_finish_divide,
};
