/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16.h - conversions between bfloat16 bit patterns and float32.
 *
 * A bfloat16 is the upper half of a binary32, so widening is exact. Narrowing rounds to nearest,
 * ties to even, on the bits; a carry out of the significand reaches the exponent, which is what
 * rounding across a binade (and to infinity) means. A NaN stays a NaN: it is cut and made quiet,
 * since adding the rounding constant to it could carry into the sign. Static inline and free of
 * floating-point arithmetic, hence the same bits whatever instruction set a file is compiled for.
 */
#ifndef MLA_IMPL_BF16_H
#define MLA_IMPL_BF16_H

#include <stdint.h>
#include <string.h>

static inline float mla_bf16_to_float(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static inline uint16_t mla_bf16_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000)) {
        return (uint16_t)((bits >> 16) | 0x40U);
    }
    return (uint16_t)((bits + UINT32_C(0x7fff) + ((bits >> 16) & 1U)) >> 16);
}

/* value rounded to a bfloat16, as a float32. */
static inline float mla_bf16_round(float value)
{
    return mla_bf16_to_float(mla_bf16_from_float(value));
}

/* value cut to a bfloat16: toward zero. */
static inline float mla_bf16_cut(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mla_bf16_to_float((uint16_t)(bits >> 16));
}

#endif
