/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16.h - bfloat16 bit patterns to float32 and back, for the plain kernels only.
 *
 * Private to this folder on purpose: the kernels that judge and the kernels that are judged share
 * no arithmetic.
 */
#ifndef MLA_FAULTS_BF16_H
#define MLA_FAULTS_BF16_H

#include <stdint.h>
#include <string.h>

/* Exact. */
static inline float mla_plain_bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value = 0.0f;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* To nearest, ties to even; overflow gives infinity; a NaN stays a (quiet) NaN of the same sign. */
static inline uint16_t mla_plain_bf16_bits(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)((bits >> 16) | 0x40u);
    }
    /* Adding half a unit less the parity carries into the kept half exactly when rounding up. */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
