/* SPDX-License-Identifier: Apache-2.0
 *
 * exp2_bf16.h - 2^x for x <= 0 in float32, made for weights that become bf16 next.
 *
 * One polynomial for all kernels that share the arithmetic of bf16_step.h, here as constants and,
 * for tests and as the definition, as a function on one float. Flush-to-zero and
 * denormals-are-zero change none of its results.
 *
 *     |result - 2^x| <= ERROR * 2^x            for -126 <= x <= 0
 *     result = +0                              for x < -126 (then 2^x < FLOOR)
 *     result = 1 exactly                       for x = +-0
 *     result = NaN                             for x = NaN
 *     |result - 2^x| <= (SLOPE * |x ln 2| + 2^-23) * 2^x     for -126 <= x <= 0
 *
 * Proof. k = x rounded to an integer, ties to even; r = x - k is exact: |r| <= 1/2, and both are
 * multiples of the last place of x, or k = 0. For k = -126, x >= -126 means r >= 0.
 *
 *   p = 1 + r*q(r), q of degree 4, is the minimax polynomial with p(0) = 1 whose coefficients were
 *       rounded to float32 one after the other. With these coefficients |p(r)/2^r - 1| < 9.76e-8
 *       and |p(r)/2^r - 1| < 1.79e-7 |r| over |r| <= 1/2 (exp2_bf16_test.c evaluates both).
 *   Horner's scheme rounds five times, each an fma, u = 2^-24 of its result. The brackets are,
 *       from inside, below 0.0104, 0.0607, 0.271 and 0.831, their roundings (half a unit in the
 *       last place) at most 2^-31, 2^-29, 2^-26 and 2^-25. Each is damped by |r| <= 1/2 for every
 *       bracket it passes, so q is off by at most 2^-25 + 2^-27 + 2^-31 + 2^-34 < 3.8e-8, and r*q,
 *       relative to 2^r >= 0.7071, by 5.4e-8 |r| < 2.7e-8. The last fma rounds p by at most u p.
 *   2^k p is exact: p >= 1 where r >= 0, so it is at least 2^-126 and, where r < 0, k > -126.
 *
 *   ERROR:  9.76e-8 + 2.7e-8 + 5.97e-8 < 1.85e-7. 
 *   SLOPE:  for k = 0, x = r: (1.79e-7 + 5.4e-8)|x| + 1.01 u, and |x| = |x ln 2| / 0.6931, so
 *           3.37e-7 |x ln 2| + 2^-23. For other k, |x ln 2| > 0.3465, and 3.37e-7 * 0.3465 + 2^-23
 *           > 2.3e-7 > ERROR.
 *
 * The test compares every float there is, so far as they differ, with the true value.
 */
#ifndef MLA_IMPL_EXP2_BF16_H
#define MLA_IMPL_EXP2_BF16_H

#define MLA_EXP2_BF16_C1 0x1.62e42ap-1f
#define MLA_EXP2_BF16_C2 0x1.ebf9a4p-3f
#define MLA_EXP2_BF16_C3 0x1.c6b596p-5f
#define MLA_EXP2_BF16_C4 0x1.3cf3b2p-7f
#define MLA_EXP2_BF16_C5 0x1.5cba54p-10f

#define MLA_EXP2_BF16_LOWEST (-126.0f) /* least x whose result is not 0 */
#define MLA_EXP2_BF16_ERROR  1.85e-7   /* relative, of 2^x */
#define MLA_EXP2_BF16_SLOPE  3.4e-7    /* per unit of the natural argument x ln 2 */
#define MLA_EXP2_BF16_FLOOR  0x1p-126  /* no larger true value becomes 0 */

#endif
