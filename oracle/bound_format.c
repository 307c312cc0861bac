/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_format.c - the accepted set of a result that was not rounded to bf16, but to binary16 or binary32.
 *
 * The interval [low, high] of bound.c holds the result v before the output rounding, normalisation and
 * what it may lose below the normal numbers included. Whatever comes after it is one monotone rounding R
 * to the result's format, so y = R(v) lies between R(low) and R(high), and every value of the format
 * between those two may be met: accept y iff R(low) <= y <= R(high). Nothing is added.
 *
 * BINARY16.  R rounds to nearest, ties to even, from 65520 on to Inf; or cuts toward zero, which no
 * finite number leaves the range by. Subnormal results are kept: `flush` speaks of 2^-126, and who drops
 * what lies below 2^-14 does more than that.
 *
 * BINARY32.  If the arithmetic is that of binary32 or coarser (add_u >= 2^-24) and the normalisation
 * rounds (div_roundings >= 1), its last rounding is counted in [low, high] already, and what it gives is
 * the binary32 that is stored: R changes nothing, and y itself must lie in [low, high]. Rounding the
 * ends too would grant that rounding twice. Only of a finer arithmetic (binary64, say), or of one that
 * counts no rounding there, is storing a rounding of its own, and R that to binary32.
 *
 * The error of y is taken from all numbers that R maps to it, as in bound_error.c: where R changes
 * nothing that is y alone.
 */
#include "oracle/bound_error.h"

#include <float.h>
#include <math.h>

#define F16_MAX      65504.0
#define F16_LSB_MIN  (-24)
#define F16_OVERFLOW 65520.0 /* the tie that goes up to Inf */
#define F32_OVERFLOW 0x1.ffffffp127

/* Where does rounding to this format change nothing? */
static bool is_stored_as_is(const struct mla_model *model, enum mla_out_format format)
{
    return format == MLA_FORMAT_F32 && model->add_u >= 0x1p-24 && model->div_roundings >= 1;
}

/* The last place of binary16 at |x|, 0 included. */
static double f16_place(double x)
{
    int exponent;

    (void)frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    return ldexp(1.0, x == 0.0 || exponent - 11 < F16_LSB_MIN ? F16_LSB_MIN : exponent - 11);
}

static double to_f16(double x, bool truncates)
{
    const double place = f16_place(x);
    const double y =
        (truncates ? trunc(x / place) : rint(x / place)) * place; /* exact: powers of 2 */

    if (fabs(y) <= F16_MAX) {
        return y;
    }
    return copysign(truncates ? F16_MAX : INFINITY, x);
}

static double to_f32(double x, bool truncates)
{
    const float y = (float)x;

    return (double)(truncates && fabs((double)y) > fabs(x) ? nextafterf(y, 0.0f) : y);
}

/* The values of the format next to a finite magnitude. The one above the largest is what it would be
 * without an end of the range. */
static double above(double y, enum mla_out_format format)
{
    if (format == MLA_FORMAT_F16) {
        return y + f16_place(y);
    }
    return y == (double)FLT_MAX ? 0x1p128 : (double)nextafterf((float)y, INFINITY);
}

static double below(double y, enum mla_out_format format)
{
    if (format == MLA_FORMAT_F16) {
        return y - f16_place(nextafter(y, -INFINITY));
    }
    return (double)nextafterf((float)y, -INFINITY);
}

/* The real numbers that are stored as the magnitude y (inner is negative for zero). */
static void preimage(const struct mla_model *model, enum mla_out_format format, double y,
                     double *inner, double *outer)
{
    const bool truncates = model->out_round == MLA_OUT_TRUNCATE;

    *inner = y;
    *outer = y;
    if (isinf(y)) {
        *inner = format == MLA_FORMAT_F16 ? F16_OVERFLOW : F32_OVERFLOW;
    } else if (!is_stored_as_is(model, format)) {
        *outer = truncates ? above(y, format) : (y + above(y, format)) / 2.0;
        *inner = y == 0.0 ? -*outer : truncates ? y : (y + below(y, format)) / 2.0;
        if (truncates && y == (format == MLA_FORMAT_F16 ? F16_MAX : (double)FLT_MAX)) {
            *outer = INFINITY; /* all that is beyond the range is cut to this */
        }
    }
}

struct mla_bound_ends mla_bound_ends(const struct mla_bound *bound, const struct mla_model *model,
                                     enum mla_out_format format)
{
    const bool truncates = model->out_round == MLA_OUT_TRUNCATE;

    if (format == MLA_FORMAT_BF16) {
        return (struct mla_bound_ends){(double)bound->lo, (double)bound->hi};
    }
    if (is_stored_as_is(model, format)) {
        return (struct mla_bound_ends){bound->low, bound->high};
    }
    if (format == MLA_FORMAT_F16) {
        return (struct mla_bound_ends){to_f16(bound->low, truncates),
                                       to_f16(bound->high, truncates)};
    }
    return (struct mla_bound_ends){to_f32(bound->low, truncates), to_f32(bound->high, truncates)};
}

/* Of a bf16 value its pattern: the upper half of the binary32. */
static uint16_t pattern(double y)
{
    const union {
        float value;
        uint32_t bits;
    } word = {(float)y};

    return (uint16_t)(word.bits >> 16);
}

struct mla_bound_error mla_bound_error_in(const struct mla_bound *bound,
                                          const struct mla_model *model, enum mla_out_format format,
                                          double y)
{
    const struct mla_bound_error none = {INFINITY, INFINITY};
    double inner;
    double outer;

    if (format == MLA_FORMAT_BF16) {
        return mla_bound_error(bound, model, pattern(y));
    }
    if (isnan(y)) {
        return none;
    }
    const struct mla_bound_ends ends = mla_bound_ends(bound, model, format);

    if (isinf(y) && !isinf(y < 0.0 ? ends.lo : ends.hi)) {
        return none; /* Inf where the set is finite */
    }
    preimage(model, format, fabs(y), &inner, &outer);
    return mla_oracle_error_between(bound, signbit(y) != 0, inner, outer);
}
