/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_ttnn.c - the arithmetic of the TT-NN ring kernel, emulated on a CPU.
 *
 * An online softmax that keeps nearly everything in bf16. Per block of keys (the ring's K chunk):
 *   score    float32 sum, rounded to bf16; scores stay unscaled
 *   maximum  of those, hence a bf16 exactly
 *   weight   exp_rough(scale * (s - maximum)), rounded to bf16; the sum adds the rounded one
 *   factor   of what was there before: exp_rough(cut * (old - new maximum)), rounded to bf16, where
 *            cut is the scale cut to bf16. The same factor for sums and out
 *   sum      32 partial sums, one for each class of columns: key i of the block goes to class i mod
 *            32. Each is factor * before + what the block adds, rounded to bf16
 *   out      factor * before + the block's p*v, rounded to bf16; within the block float32
 * At the end the 32 sums are added in float32, and out is multiplied by the reciprocal.
 *
 * Not modelled, and why: scores summed in 16 bits and products of reduced fidelity. Both are
 * choices of the caller there (the compute configuration), who also has exact products and 32-bit
 * sums; a product known to 2^-7 would make the interval of a score of 576 columns thirty times as
 * wide as its rounding to bf16 does, and no fault in the softmax would show any more.
 *
 * A subnormal scale is not cut: nothing might be left of it.
 */
#include "impl/exp_rough.h"
#include "impl/serial.h"

#define CLASSES 32

/* Behind the tile: what the block adds to out, [MLA_TILE_ROWS][value_n]. */
static size_t scratch_bytes(const struct mla_attend_shape *shape)
{
    const size_t tile = mla_tile_bytes(shape);
    size_t values;
    size_t total;
    if (tile == 0 ||
        __builtin_mul_overflow(shape->value_n, sizeof(float) * MLA_TILE_ROWS, &values) ||
        __builtin_add_overflow(tile, values, &total)) {
        return 0;
    }
    return total;
}

static float cut_scale(float scale)
{
    return scale < 0x1p-126f ? scale : mla_bf16_cut(scale);
}

/* Scores to bf16; a pass of its own, as the maximum is of rounded ones. */
static void round_scores(float *scores, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        scores[i] = mla_bf16_round(scores[i]);
    }
}

static void weigh(float *scores, int64_t n, float max, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        scores[i] = mla_bf16_round(mla_exp_rough(scale * (scores[i] - max)));
    }
}

/* The partial sums of a row: 32 classes, the block's share summed in float32 first. */
static void add_weights(float *sums, float factor, const float *weights, int64_t n)
{
    float share[CLASSES] = {0};
    for (int64_t i = 0; i < n; i++) {
        share[i % CLASSES] += weights[i];
    }
    for (int64_t i = 0; i < CLASSES; i++) {
        sums[i] = mla_bf16_round(factor * sums[i] + share[i]);
    }
}

/* One softmax step of one row; returns the factor of what was in out before. */
static float soften_row(const struct mla_attend_shape *shape, const struct mla_attend_state *state,
                        int64_t row, float *scores, int64_t n, float scale)
{
    const float before = state->max[row];
    round_scores(scores, n);
    const float block_max = mla_tile_largest(scores, n);
    const float max = block_max > before ? block_max : before;
    float factor = 1.0f;

    if (before == -INFINITY) { /* the row's first keys: sums are 0, out is not set */
        memset(state->out + row * shape->value_n, 0, (size_t)shape->value_n * sizeof *state->out);
    } else if (max > before) {
        factor = mla_bf16_round(mla_exp_rough(cut_scale(scale) * (before - max)));
    }
    weigh(scores, n, max, scale);
    add_weights(state->sum + row * CLASSES, factor, scores, n);
    state->max[row] = max;
    return factor;
}

/* out = factor * out + added, in bf16. */
static void store_values(float *restrict out, float factor, const float *restrict added, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        out[c] = mla_bf16_round(factor * out[c] + added[c]);
    }
}

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct mla_tile tile = mla_tile_of(shape, scratch);
    const int64_t value_n = shape->value_n;
    float *added = tile.end;
    float factor[MLA_TILE_ROWS];

    mla_serial_score(shape, &tile, rows_n, visible, keys);
    for (int64_t row = 0; row < rows_n; row++) {
        if (visible[row] > 0) {
            factor[row] =
                soften_row(shape, state, row, tile.scores + row * tile.block, visible[row], scale);
        }
    }
    memset(added, 0, (size_t)(rows_n * value_n) * sizeof *added);
    mla_tile_add_values(shape, &tile, rows_n, visible, keys, added);
    for (int64_t row = 0; row < rows_n; row++) {
        if (visible[row] > 0) {
            store_values(state->out + row * value_n, factor[row], added + row * value_n, value_n);
        }
    }
}

/* All classes in float32, in pairs; then the reciprocal. */
static float finish(const struct mla_attend_shape *shape, const struct mla_attend_state *state,
                    int64_t row)
{
    float *out = state->out + row * shape->value_n;
    float sums[CLASSES];
    memcpy(sums, state->sum + row * CLASSES, sizeof sums);
    for (int64_t apart = CLASSES / 2; apart > 0; apart /= 2) {
        for (int64_t i = 0; i < apart; i++) {
            sums[i] += sums[i + apart];
        }
    }
    if (sums[0] == 0.0f) {
        return 0.0f;
    }
    const float inverse = 1.0f / sums[0];
    for (int64_t l = 0; l < shape->value_n; l++) {
        out[l] *= inverse;
    }
    return sums[0];
}

const struct mla_attend mla_attend_ttnn = {
    .sums_n = CLASSES,
    .rows_n = MLA_TILE_ROWS,
    .scratch_bytes = scratch_bytes,
    .query = mla_tile_query,
    .block = {block},
    .finish = finish,
};
