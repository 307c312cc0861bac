/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16.c - rounding a double to bfloat16.
 *
 * The last place of the result is known from the exponent of x, and scaling by a power of two is
 * exact here (see below), so one rint or trunc does the rounding, carries into the next binade
 * included. The thread's rounding mode is to nearest, as everywhere in the oracle.
 */
#include "oracle/bf16.h"

#include <math.h>

#define BF16_INF 0x7f80u
#define BF16_NAN 0x7fc0u
#define BF16_MAX 0x7f7fu

#define NORMAL_MIN 0x1p-126
#define CUT_BITS   45 /* fraction bits of a double beyond those of a bf16 */

/* The pattern of a double that is known to be a bf16 value. */
static uint16_t pattern(double exact)
{
    const float value = (float)exact;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/*
 * |x| in units of the last place of the bf16 binade it lies in; *lsb is that unit's exponent. The
 * division is exact: |x| >= 2^-126 stays normal, and a smaller |x| is multiplied by 2^133, which
 * moves even the smallest double up.
 */
static double in_last_places(double x, int *lsb)
{
    int exponent;

    (void)frexp(x, &exponent); /* x in [2^(exponent-1), 2^exponent) */
    *lsb = exponent - 8 < MLA_ORACLE_BF16_LSB_MIN ? MLA_ORACLE_BF16_LSB_MIN : exponent - 8;
    return ldexp(x, -*lsb);
}

/*
 * x >= 2^-126 cut to the 7 fraction bits of a bf16, after adding `more` units of 2^-45 of its
 * binade: exponent and fraction lie next to each other in a double, so a carry moves on into the
 * next binade. What in_last_places does with library calls, for the range that nearly all lie in.
 */
static uint16_t cut_bits(double x, uint64_t more)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = (bits + more) >> CUT_BITS << CUT_BITS;
    memcpy(&x, &bits, sizeof x);
    return pattern(x);
}

/* Just below half of the last place kept, and all of it if that place is odd: ties to even. */
static uint64_t half_place(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (UINT64_C(1) << (CUT_BITS - 1)) - 1 + (bits >> CUT_BITS & 1);
}

uint16_t mla_oracle_bf16_nearest(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000u : 0;
    const double magnitude = fabs(x);
    int lsb;

    if (isnan(x)) {
        return BF16_NAN;
    }
    if (magnitude >= 0x1.ffp127) { /* 2^128 - 2^119, the tie that goes up to Inf */
        return (uint16_t)(sign | BF16_INF);
    }
    if (magnitude >= NORMAL_MIN) {
        return (uint16_t)(sign | cut_bits(magnitude, half_place(magnitude)));
    }
    const double places = in_last_places(magnitude, &lsb);

    return (uint16_t)(sign | pattern(ldexp(rint(places), lsb)));
}

uint16_t mla_oracle_bf16_truncate(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000u : 0;
    const double magnitude = fabs(x);
    int lsb;

    if (isnan(x)) {
        return BF16_NAN;
    }
    if (magnitude >= 0x1.ffffffp127) { /* 2^128 - 2^103, where binary32 overflows */
        return (uint16_t)(sign | BF16_INF);
    }
    if (magnitude >= 0x1.fep127) {
        return (uint16_t)(sign | BF16_MAX);
    }
    if (magnitude >= NORMAL_MIN) {
        return (uint16_t)(sign | cut_bits(magnitude, 0));
    }
    const double places = in_last_places(magnitude, &lsb);

    return (uint16_t)(sign | pattern(ldexp(trunc(places), lsb)));
}
