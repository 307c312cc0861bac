/* SPDX-License-Identifier: Apache-2.0
 *
 * scale.h - ldexp where its cost is felt.
 *
 * x times a power of two that is itself a normal double: one multiplication, correctly rounded, and
 * so the same bits as ldexp's, also where the result is subnormal or overflows.
 */
#ifndef MLA_ORACLE_SCALE_H
#define MLA_ORACLE_SCALE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double mla_oracle_scale(double x, int exponent)
{
    double power;

    if (exponent < -1022 || exponent > 1023) {
        return ldexp(x, exponent);
    }
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;

    memcpy(&power, &bits, sizeof power);
    return x * power;
}

#endif
