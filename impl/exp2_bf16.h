/* SPDX-License-Identifier: Apache-2.0
 *
 * exp2_bf16.h - 2^x for x <= 0 in float32, made for weights that become bf16 next.
 *
 * The kernels that share bf16_step.h evaluate it on vectors; here are its constants and its
 * definition on one float, each operation as written, whether subnormals are flushed or not:
 *
 *     |result - 2^x| <= ERROR * 2^x                          for -126 <= x <= 0
 *     |result - 2^x| <= (SLOPE * |x ln 2| + 2^-23) * 2^x     for -126 <= x <= 0
 *     result = +0                                            for x < -126 (then 2^x < FLOOR)
 *     result = 1 exactly                                     for x = +-0
 *     result = NaN                                           for x = NaN
 *
 * Proof, by exhaustion. With k = x to the nearest integer, ties to even, and r = x - k, the result
 * is 2^k p(r) and its relative error that of p(r) as a value of 2^r:
 *   - r is exact: for k = 0 it is x, else a multiple of the last place of x, which is at least 2^-24,
 *     and at most 1/2;
 *   - 2^k p is exact: the result is normal, as p >= 1 where r >= 0 and p > 1/2 where r < 0, which is
 *     not so for k = -126.
 * So there are these r: every float of [-1/2, 0], and every multiple of 2^-24 in (0, 1/2].
 * exp2_bf16_test.c takes all of them but those of [-2^-27, 0], where |r q(r)| < 2^-27, p rounds
 * to 1, and 2^r is within 2^-27 of that. (SLOPE speaks of x, not of r; for k != 0, |x ln 2| > 0.34,
 * and 0.34 SLOPE + 2^-23 > ERROR.)
 *
 * Why these numbers: p(r) = 1 + r q(r), q of degree 4, is the polynomial with p(0) = 1 that is
 * nearest to 2^r in the largest relative error, 9.76e-8, with coefficients rounded to float32 one
 * after the other. Horner's scheme adds a rounding of 2^-24 at the end, and by those before, at most
 * 2^-25 each and damped by |r| <= 1/2 for every step they are inside, 2.7e-8: less than 1.85e-7 together.
 * The worst that occurs is 1.605e-7.
 */
#ifndef MLA_IMPL_EXP2_BF16_H
#define MLA_IMPL_EXP2_BF16_H

#include <math.h>

#define MLA_EXP2_BF16_C1 0x1.62e42ap-1f
#define MLA_EXP2_BF16_C2 0x1.ebf9a4p-3f
#define MLA_EXP2_BF16_C3 0x1.c6b596p-5f
#define MLA_EXP2_BF16_C4 0x1.3cf3b2p-7f
#define MLA_EXP2_BF16_C5 0x1.5cba54p-10f

#define MLA_EXP2_BF16_LOWEST (-126.0f) /* least x whose result is not 0 */
#define MLA_EXP2_BF16_ERROR  1.61e-7   /* relative, of 2^x */
#define MLA_EXP2_BF16_SLOPE  1.3e-7    /* per unit of the natural argument x ln 2 */
#define MLA_EXP2_BF16_FLOOR  0x1p-126  /* no larger true value becomes 0 */

static inline float mla_exp2_bf16(float x)
{
    if (isnan(x)) {
        return x;
    }
    if (x < MLA_EXP2_BF16_LOWEST) {
        return 0.0f;
    }
    const float k = rintf(x);
    const float r = x - k;
    float p = MLA_EXP2_BF16_C5;
    p = fmaf(p, r, MLA_EXP2_BF16_C4);
    p = fmaf(p, r, MLA_EXP2_BF16_C3);
    p = fmaf(p, r, MLA_EXP2_BF16_C2);
    p = fmaf(p, r, MLA_EXP2_BF16_C1);
    p = fmaf(p, r, 1.0f);
    return ldexpf(p, (int)k);
}

#endif
