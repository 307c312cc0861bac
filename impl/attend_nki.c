/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_nki.c - the arithmetic of the NKI library's sparse MLA kernel, emulated on a CPU.
 *
 * Two passes over a row's keys: the maximum of the float32 scores, then p = exp(scale*s -
 * scale*max) in float32. The row's sum adds p as it is; before it meets the values p is rounded to
 * bf16, and the sum of p*v stays in float32. The output is that sum times the reciprocal of the
 * row's sum. So there are two bf16 roundings in all, p and the output, and the sum sees neither.
 * The ring does the same over all visible keys in visiting order.
 *
 * Not modelled: the order in which the machine's matrix unit adds. Sums here run from the first
 * term to the last (serial.h); every other order has no more roundings on its longest path.
 */
#include "impl/exp_scalar.h"
#include "impl/serial.h"

/* Scores into float32 weights; scale*max is rounded once and kept. */
static void weigh(float *scores, int64_t n, float max, float scale)
{
    const float shift = scale * max;
    for (int64_t i = 0; i < n; i++) {
        scores[i] = mla_exp_scalar(scale * scores[i] - shift);
    }
}

static void round_weights(float *weights, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        weights[i] = mla_bf16_round(weights[i]);
    }
}

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct mla_tile tile = mla_tile_of(shape, scratch);
    mla_serial_score(shape, &tile, rows_n, visible, keys);
    for (int64_t row = 0; row < rows_n; row++) {
        float *weights = tile.scores + row * tile.block;
        if (visible[row] == 0) {
            continue;
        }
        mla_serial_clear(shape, state, row);
        weigh(weights, visible[row], state->max[row], scale);
        for (int64_t i = 0; i < visible[row]; i++) {
            state->sum[row] += weights[i];
        }
        round_weights(weights, visible[row]);
    }
    mla_tile_add_values(shape, &tile, rows_n, visible, keys, state->out);
}

static float finish(const struct mla_attend_shape *shape, const struct mla_attend_state *state,
                    int64_t row)
{
    float *out = state->out + row * shape->value_n;
    const float sum = state->sum[row];
    if (sum == 0.0f) {
        return sum;
    }
    const float inverse = 1.0f / sum;
    for (int64_t l = 0; l < shape->value_n; l++) {
        out[l] *= inverse;
    }
    return sum;
}

const struct mla_attend mla_attend_nki = {
    .sums_n = 1,
    .rows_n = MLA_TILE_ROWS,
    .scratch_bytes = mla_tile_bytes,
    .query = mla_tile_query,
    .block = {mla_serial_scan, block},
    .finish = finish,
};
