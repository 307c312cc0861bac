/* SPDX-License-Identifier: Apache-2.0
 *
 * exp_scalar.h - exp(x) for x <= 0 in float32, by double arithmetic and without libm.
 *
 * The libraries' expf differ from one another in the last bit; this one is the same everywhere, can
 * be vectorised by the compiler (no branch, no table, no call), and has a proven error:
 *
 *     |result - exp(x)| <= (2^-24 + 2^-40) * exp(x)      for X0 <= x <= 0
 *     result = +0                                        for x < X0 (then exp(x) < 2^-126)
 *     result = 1 exactly                                 for x = +-0
 *     result = NaN                                       for x = NaN
 *
 * Proof. X0 is the smallest float32 whose exponential is >= 2^-126: 126 ln 2 lies between two
 * floats, 2^-17 apart, so exp(X0) exceeds 2^-126 by a factor 1 + 4e-6 and never rounds below it.
 *
 *   k = x*log2(e) rounded to an integer, -126 .. 0, by adding and subtracting 1.5 * 2^52. The
 *       product is off by less than 2^-45, so |x - k ln 2| < ln2/2 + 2^-45 < 0.346574.
 *   r = (x - k*LN2_HI) - k*LN2_LO. LN2_HI is a multiple of 2^-42 below 1 and |k| < 2^7, so k*LN2_HI
 *       is exact. For k != 0, |x| > 0.34 is a multiple of 2^-25, and the first difference, a
 *       multiple of 2^-42 below 1, is exact too. |k*LN2_LO| < 2^-36, its rounding and that of
 *       LN2_LO stay below 2^-88, and the last subtraction rounds by at most 2^-55. For k = 0,
 *       r = x. The relative error this makes in exp(r) is below 2^-54.
 *   p = the Taylor polynomial of degree 10 of exp(r). It leaves out at most
 *       |r|^11/11! / (1 - |r|/12) < 2.24e-13; relative to exp(r) > 0.7071 that is < 3.17e-13 <
 *       2^-41.5. Rounding, by Horner's scheme p = 1 + r*t with |t| < 1.22: a bracket c + r*b rounds
 *       its product (|r*b| < 0.43, by at most 2^-55) and its addition (a sum below 2, by at most
 *       2^-53); its coefficient is off by at most 2^-56; what comes from further inside is damped
 *       by |r| < 0.35. So every bracket, and p, is off by less than (1 + 1/4 + 1/8) * 2^-53 /
 *       (1 - 0.35) < 4 * 2^-53, relatively 2^-50.
 *   p * 2^k is exact in double: 0.70 < p < 1.42, k >= -126. Up to here the relative error is below
 *       2^-41.5 + 2^-50 + 2^-54 < 2^-41.4. The result is normal, so rounding to float32 adds at
 *       most 2^-24: (1 + 2^-41.4)(1 + 2^-24) - 1 < 2^-24 + 2^-40.
 *
 * x = 0 gives k = 0, r = 0, p = 1. All steps assume no contraction, and rounding to nearest,
 * which every kernel thread sets for itself (fpenv.h).
 */
#ifndef MLA_IMPL_EXP_SCALAR_H
#define MLA_IMPL_EXP_SCALAR_H

#include <stdint.h>
#include <string.h>

#define MLA_EXP_SCALAR_LOWEST (-0x1.5d589ep+6f)   /* X0 */
#define MLA_EXP_SCALAR_ERROR  (0x1p-24 + 0x1p-40) /* relative */
#define MLA_EXP_SCALAR_FLOOR  0x1p-126            /* largest true value returned as 0 */

static inline float mla_exp_scalar(float x)
{
    const double log2_e = 0x1.71547652b82fep+0;
    const double ln2_hi = 0x1.62e42fefa38p-1;
    const double ln2_lo = 0x1.ef35793c7673p-45;
    const double shift = 0x1.8p+52;
    const double xd = x < MLA_EXP_SCALAR_LOWEST ? (double)MLA_EXP_SCALAR_LOWEST : (double)x;
    const double shifted = xd * log2_e + shift;
    const double k = shifted - shift;
    const double r = (xd - k * ln2_hi) - k * ln2_lo;
    uint64_t bits;
    double power;
    double p;

    /* The low bits of `shifted` are k; moved into the exponent and biased they are 2^k. */
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 52) + (UINT64_C(1023) << 52);
    memcpy(&power, &bits, sizeof power);

    p = 0x1.27e4fb7789f5cp-22;         /* 1/10! */
    p = p * r + 0x1.71de3a556c734p-19; /* 1/9! */
    p = p * r + 0x1.a01a01a01a01ap-16; /* 1/8! */
    p = p * r + 0x1.a01a01a01a01ap-13; /* 1/7! */
    p = p * r + 0x1.6c16c16c16c17p-10; /* 1/6! */
    p = p * r + 0x1.1111111111111p-7;  /* 1/5! */
    p = p * r + 0x1.5555555555555p-5;  /* 1/4! */
    p = p * r + 0x1.5555555555555p-3;  /* 1/3! */
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const float value = (float)(p * power);
    return x < MLA_EXP_SCALAR_LOWEST ? 0.0f : value;
}

#endif
