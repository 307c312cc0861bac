/* SPDX-License-Identifier: Apache-2.0
 *
 * exp_rough.h - exp(x) for x <= 0 in float32 by a polynomial of degree 2: fast, and roughly right.
 *
 * What vector units of accelerators compute where the result is rounded to bf16 anyway. Its error
 * is derived below and checked by exhaustion in exp_rough_test.c:
 *
 *     |result - exp(x)| <= 0.00197 * exp(x)      for X0 <= x <= 0, some 2^-9
 *     result = +0                                for x < X0 (then exp(x) < 2^-126; X0: exp_scalar.h)
 *     result = 1 exactly                         for x = +-0
 *     |result - exp(x)| <= (0.01447 |x| + 2^-23) exp(x)
 *     result = NaN                               for x = NaN
 *
 * Derivation. u = 2^-24.
 *   k = x*log2(e) rounded to an integer, -126 .. 0, by adding and subtracting 1.5 * 2^23. The
 *       product is below 127 and its constant is rounded too, so it is off by less than 2 * 127 u <
 *       2^-16, and |x - k ln 2| < ln2/2 + 2^-16 ln 2.
 *   r = (x - k*LN2_HI) - k*LN2_LO. LN2_HI has 17 bits and |k| < 2^7: that product is exact. The two
 *       differences are below 0.36 and round by at most 2^-26 each, k*LN2_LO is below 2^-12 and off
 *       by less than 2^-35. So r is off by less than 2^-24, which is its relative effect on exp(r).
 *   p = 1 + r*(A + B*r) with the A and B that make the largest relative error over |r| <= ln2/2 +
 *       8e-6 least among polynomials that are 1 at 0: 0.0019637, at both ends and at two points
 *       between. Their rounding and that of three products and sums of numbers below 2 is less than
 *       2^-21 relative to p > 0.7.
 *   p * 2^k is exact, or, at the lowest x, subnormal and off by at most 2^-150, u times the result.
 * For |x| < 0.346, k = 0 and r = x up to one rounding: the polynomial's error is x times (A - 1) +
 *   (B - A + 1/2) x + .., where A - 1 is 0.01413, and what is left of the roundings is one of x and
 *   that of p; checked to be below 0.01447 |x| + 2^-23. From |x| = 0.137 on that exceeds 0.00197.
 * Together 0.0019637 + 2^-24 + 2^-21 + 2^-24 < 0.00197. x = 0 gives k = 0, r = 0, p = 1.
 */
#ifndef MLA_IMPL_EXP_ROUGH_H
#define MLA_IMPL_EXP_ROUGH_H

#include "impl/exp_scalar.h"

#define MLA_EXP_ROUGH_LOWEST MLA_EXP_SCALAR_LOWEST /* X0 */
#define MLA_EXP_ROUGH_ERROR  0.00197               /* relative */
#define MLA_EXP_ROUGH_SLOPE  0.01447               /* relative error over |x|, but for 2^-23 */
#define MLA_EXP_ROUGH_FLOOR  0x1p-126              /* largest true value returned as 0 */

static inline float mla_exp_rough(float x)
{
    const float log2_e = 0x1.715476p+0f;
    const float ln2_hi = 0x1.62e4p-1f;
    const float ln2_lo = 0x1.7f7d1cp-20f;
    const float shift = 0x1.8p+23f;
    const float a = 0x1.039e26p+0f;
    const float b = 0x1.ff3aa6p-2f;
    const float xs = x < MLA_EXP_ROUGH_LOWEST ? MLA_EXP_ROUGH_LOWEST : x;
    const float shifted = xs * log2_e + shift;
    const float k = shifted - shift;
    const float r = (xs - k * ln2_hi) - k * ln2_lo;
    const float p = 1.0f + r * (a + b * r);
    uint32_t bits;
    float power;

    /* The low bits of `shifted` are k; moved into the exponent and biased they are 2^k. */
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (UINT32_C(127) << 23);
    memcpy(&power, &bits, sizeof power);
    return x < MLA_EXP_ROUGH_LOWEST ? 0.0f : p * power;
}

#endif
