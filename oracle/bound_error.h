/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_error.h - the error of an output that stands for all real numbers in [inner, outer].
 */
#ifndef MLA_ORACLE_BOUND_ERROR_H
#define MLA_ORACLE_BOUND_ERROR_H

#include "oracle/oracle.h"

/* Distance of x from [inner, outer]. */
static inline double mla_oracle_beyond(double x, double inner, double outer)
{
    return x < inner ? inner - x : x > outer ? x - outer : 0.0;
}

/* Distance of the middle of [low, high] from [inner, outer] over the half on that side: each half
 * from the same rounded middle, so that 1 is passed where [inner, outer] leaves [low, high]. */
static inline double mla_oracle_ratio(double low, double high, double inner, double outer)
{
    const double middle = low / 2.0 + high / 2.0;

    if (middle < inner) {
        return (inner - middle) / (high - middle);
    }
    return middle > outer ? (middle - outer) / (middle - low) : 0.0;
}

/* inner and outer are seen along the output's sign: magnitudes, but that of zero reaches below it. */
static inline struct mla_bound_error mla_oracle_error_between(const struct mla_bound *bound,
                                                              bool is_negative, double inner,
                                                              double outer)
{
    const double o = is_negative ? -bound->o : bound->o;
    const double low = is_negative ? -bound->high : bound->low;
    const double high = is_negative ? -bound->low : bound->high;

    return (struct mla_bound_error){mla_oracle_beyond(o, inner, outer),
                                    mla_oracle_ratio(low, high, inner, outer)};
}

#endif
