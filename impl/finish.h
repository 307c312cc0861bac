/* SPDX-License-Identifier: Apache-2.0
 *
 * finish.h - from a row's running state to its output and statistics.
 *
 * out = state.out / sum, one division rounded to float32 and then to bf16 nearest even; the
 * reported maximum is scale * max, rounded once. A row that met no key gives exactly +0, -inf and
 * +0.
 */
#ifndef MLA_IMPL_FINISH_H
#define MLA_IMPL_FINISH_H

#include "impl/attend.h"
#include "impl/bf16.h"
#include "impl/layout.h"

/*
 * Write row `row` of the tile: value_n bf16 to out in the given column order and, unless stats_max
 * is NULL, the two statistics.
 */
static inline void mla_finish_row(const struct mla_attend_state *state, int64_t row,
                                  int64_t value_n, float scale, int32_t out_order, uint16_t *out,
                                  float *stats_max, float *stats_sum)
{
    const float *from = state->out + row * value_n;
    const float max = state->max[row];
    const float sum = state->sum[row];
    const bool is_empty = sum == 0.0f; /* with a key it is at least 1, or NaN */

    for (int64_t l = 0; l < value_n; l++) {
        const uint16_t value = is_empty ? 0 : mla_bf16_from_float(from[l] / sum);
        out[mla_layout_out_column(out_order, value_n, l)] = value;
    }
    if (stats_max != NULL) {
        *stats_max = is_empty ? -INFINITY : scale * max;
        *stats_sum = sum;
    }
}

#endif
