/* SPDX-License-Identifier: Apache-2.0
 *
 * half.h - float32 rounded to binary16 and to bf16 and kept as float32, for faults of precision.
 */
#ifndef MLA_FAULTS_HALF_H
#define MLA_FAULTS_HALF_H

#include "fuzz/faults/bf16.h"

#include <math.h>

static inline float mla_plain_round_bf16(float x)
{
    return mla_plain_bf16_value(mla_plain_bf16_bits(x));
}

/* To nearest even binary16: 65520 and beyond become infinite, below 2^-14 steps are 2^-24. */
static inline float mla_plain_round_half(float x)
{
    if (!(fabsf(x) < 65520.0f)) {
        return isnan(x) ? x : copysignf(INFINITY, x);
    }
    if (fabsf(x) < 0x1p-14f) {
        return rintf(x * 0x1p24f) * 0x1p-24f;
    }
    uint32_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
