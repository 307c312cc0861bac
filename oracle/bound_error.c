/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_error.c - how far an output value is from the definition, and in units of its bound.
 *
 * An output y stands for every real number that the model's output rounding maps to it: to nearest,
 * all up to the midpoints to its neighbours; toward zero, from y to the next value away from zero
 * (and for zero, both sides). The distance to that set is exact in double up to one rounding.
 */
#include "oracle/bound_error.h"
#include "oracle/bf16.h"

#include <math.h>

/* The magnitude just above and just below a finite |y|, by pattern. */
static double next_magnitude(uint16_t magnitude)
{
    return magnitude == 0x7f7fu ? 0x1p128 : mla_oracle_bf16_value((uint16_t)(magnitude + 1u));
}

static double previous_magnitude(uint16_t magnitude)
{
    return magnitude == 0 ? -0x1p-133 : mla_oracle_bf16_value((uint16_t)(magnitude - 1u));
}

/* The real numbers that round to |y| (inner may be negative for zero). Infinity: from overflow on.
 */
static void preimage(const struct mla_model *model, uint16_t magnitude, double *inner,
                     double *outer)
{
    const bool truncates = model->out_round == MLA_OUT_TRUNCATE;
    const double value = mla_oracle_bf16_value(magnitude);

    if (magnitude == 0x7f80u) {
        *inner = truncates ? 0x1.ffffffp127 : 0x1.ffp127;
        *outer = INFINITY;
        return;
    }
    *outer = next_magnitude(magnitude);
    *inner = magnitude == 0 ? -*outer : value;
    if (!truncates) {
        *outer = (value + *outer) / 2.0;
        *inner = (value + previous_magnitude(magnitude)) / 2.0;
    }
}

struct mla_bound_error mla_bound_error(const struct mla_bound *bound, const struct mla_model *model,
                                       uint16_t y)
{
    const uint16_t magnitude = y & 0x7fffu;
    const bool is_negative = (y & 0x8000u) != 0;
    struct mla_bound_error error = {INFINITY, INFINITY};
    double inner;
    double outer;

    if (magnitude > 0x7f80u) {
        return error; /* NaN */
    }
    if (magnitude == 0x7f80u && !isinf(is_negative ? bound->lo : bound->hi)) {
        return error; /* Inf where the set is finite */
    }
    preimage(model, magnitude, &inner, &outer);
    return mla_oracle_error_between(bound, is_negative, inner, outer);
}
