/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_plain.c - the textbook softmax in float32: maximum first, then weights and sums.
 *
 * Two passes over a row's keys. Nothing is rounded but by float32 itself, nothing is rescaled, and
 * every sum runs from its first term to its last: the arithmetic to compare the others with.
 */
#include "impl/exp_scalar.h"
#include "impl/finish.h"
#include "impl/serial.h"

static void weigh(float *scores, int64_t n, float max, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        scores[i] = mla_exp_scalar(scale * (scores[i] - max));
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
    }
    mla_tile_add_values(shape, &tile, rows_n, visible, keys, state->out);
}

const struct mla_attend mla_attend_plain = {
    .sums_n = 1,
    .rows_n = MLA_TILE_ROWS,
    .scratch_bytes = mla_tile_bytes,
    .query = mla_tile_query,
    .block = {mla_serial_scan, block},
    .finish = mla_finish_divide,
};
