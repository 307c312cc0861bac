/* SPDX-License-Identifier: Apache-2.0
 *
 * finish.h - from a row's running state to its output and statistics.
 *
 * The kernel normalises; here its float32 output is rounded to bf16 nearest even and put into the
 * order asked for. The reported maximum is scale * max, rounded once. A row that met no key gives
 * exactly +0, -inf and +0.
 */
#ifndef MLA_IMPL_FINISH_H
#define MLA_IMPL_FINISH_H

#include "impl/attend.h"
#include "impl/bf16.h"
#include "impl/layout.h"

/* The usual way to normalise, mla_attend.finish: one sum, one division a column. */
static inline float mla_finish_divide(const struct mla_attend_shape *shape,
                                      const struct mla_attend_state *state, int64_t row)
{
    float *out = state->out + row * shape->value_n;
    const float sum = state->sum[row];
    for (int64_t l = 0; sum != 0.0f && l < shape->value_n; l++) {
        out[l] /= sum;
    }
    return sum;
}

/*
 * Write row `row` of the tile: value_n bf16 to out in the given column order and, unless stats_max
 * is NULL, the two statistics.
 */
static inline void mla_finish_row(const struct mla_attend *attend,
                                  const struct mla_attend_shape *shape,
                                  const struct mla_attend_state *state, int64_t row, float scale,
                                  int32_t out_order, uint16_t *out, float *stats_max,
                                  float *stats_sum)
{
    const float sum = attend->finish(shape, state, row);
    const float *from = state->out + row * shape->value_n;
    const bool is_empty = sum == 0.0f; /* with a key it is at least 1, or NaN */

    if (is_empty) {
        memset(out, 0, (size_t)shape->value_n * sizeof *out);
    } else if (attend->store != NULL) {
        attend->store(shape, from, out_order, out);
    } else {
        for (int64_t l = 0; l < shape->value_n; l++) {
            out[mla_layout_out_column(out_order, shape->value_n, l)] = mla_bf16_from_float(from[l]);
        }
    }
    if (stats_max != NULL) {
        *stats_max = is_empty ? -INFINITY : scale * state->max[row];
        *stats_sum = sum;
    }
}

#endif
