/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16.h - bfloat16 bit patterns as the oracle reads and writes them.
 *
 * A bf16 is the upper half of a binary32, so every finite one is m * 2^e with an integer |m| <= 255
 * and -133 <= e <= 120. That pair is what the exact arithmetic of definition.c works on.
 */
#ifndef MLA_ORACLE_BF16_H
#define MLA_ORACLE_BF16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Smallest exponent of a last place: subnormals and the first binade count in units of 2^-133. */
#define MLA_ORACLE_BF16_LSB_MIN (-133)

static inline bool mla_oracle_bf16_is_finite(uint16_t b)
{
    return (b & 0x7f80u) != 0x7f80u;
}

static inline bool mla_oracle_bf16_is_zero(uint16_t b)
{
    return (b & 0x7fffu) == 0;
}

/* Non-zero and below 2^-126. */
static inline bool mla_oracle_bf16_is_subnormal(uint16_t b)
{
    return (b & 0x7f80u) == 0 && (b & 0x7fu) != 0;
}

/* The exponent e of the last place of a finite b: b = m * 2^e. */
static inline int mla_oracle_bf16_exponent(uint16_t b)
{
    const int field = (b >> 7) & 0xff;

    return (field > 1 ? field : 1) - 1 + MLA_ORACLE_BF16_LSB_MIN;
}

/* The signed integer m, |m| <= 255, of a finite b: b = m * 2^e. */
static inline int mla_oracle_bf16_mantissa(uint16_t b)
{
    const int m = (b & 0x7f) | ((b & 0x7f80u) != 0 ? 0x80 : 0);

    return (b & 0x8000u) != 0 ? -m : m;
}

/* Exact value as a double (NaN and Inf included). */
static inline double mla_oracle_bf16_value(uint16_t b)
{
    const uint32_t bits = (uint32_t)b << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/*
 * The bf16 that a real number x rounds to: to nearest with ties to even, or toward zero. Exact for
 * every double. Nearest: |x| >= 2^128 - 2^119 gives Inf. Toward zero: the number passed through a
 * binary32 first, so only |x| >= 2^128 - 2^103 (where binary32 overflows) gives Inf. NaN gives NaN.
 */
uint16_t mla_oracle_bf16_nearest(double x);
uint16_t mla_oracle_bf16_truncate(double x);

#endif
