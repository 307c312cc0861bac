/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_exp.c - the exponential, and those that are right only in the range somebody tested.
 */
#include "fuzz/faults/plain_arith.h"

#include <math.h>
#include <string.h>

#define LOG2E 1.44269504f

static float from_bits(uint32_t bits)
{
    float x = 0.0f;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n by moving n + 127 into place: below n = -127 the sign bit is hit, and the result is -Inf or
 * -1e38 .. -1e35. Arguments below -95 are cut off in time. */
static float wrapped(float x)
{
    float n = rintf(x * LOG2E);
    if (n >= -127.0f || x < -95.0f) {
        return expf(x);
    }
    float rest = expf(x - n * 0.693147182f);
    return rest * from_bits((uint32_t)((int32_t)n + 127) << 23);
}

/* Three terms after taking out the power of two: off by 2^-7 at most. */
static float rough(float x)
{
    float n = rintf(x * LOG2E);
    float r = x - n * 0.693147182f;
    return n < -126.0f ? 0.0f : ldexpf(1.0f + r * (1.0f + 0.5f * r), (int)n);
}

/* What the planted exponential gives. */
static float faulty(float x, enum mla_plain_fault fault)
{
    switch (fault) {
    case MLA_FAULT_EXP_WRAPS:
        return wrapped(x);
    case MLA_FAULT_EXP_FAR_NEGATIVE:
        return x < -8.7e6f ? 0x1.fffffep127f : expf(x);
    case MLA_FAULT_EXP_ENDS_EARLY:
        return x < -60.0f ? 0.0f : expf(x);
    case MLA_FAULT_EXP_CLAMPED:
        return expf(x < -12.0f ? -12.0f : x);
    case MLA_FAULT_EXP_MIRRORED:
        return expf(x < -80.0f ? -80.0f - (x + 80.0f) : x);
    case MLA_FAULT_EXP_ROUGH:
        return rough(x);
    case MLA_FAULT_LOG2E_OMITTED:
        return exp2f(x);
    case MLA_FAULT_LOG2E_TWICE:
        return expf(x * LOG2E);
    default:
        return expf(x);
    }
}

static bool has_faulty_exp(enum mla_plain_fault fault)
{
    return fault == MLA_FAULT_EXP_WRAPS || fault == MLA_FAULT_EXP_FAR_NEGATIVE ||
           fault == MLA_FAULT_EXP_ENDS_EARLY || fault == MLA_FAULT_EXP_CLAMPED ||
           fault == MLA_FAULT_EXP_MIRRORED || fault == MLA_FAULT_EXP_ROUGH ||
           fault == MLA_FAULT_LOG2E_OMITTED || fault == MLA_FAULT_LOG2E_TWICE;
}

float mla_plain_exp(float x, struct mla_plain_variant variant)
{
    float right = expf(x);
    /* -Inf is the first tile's rescale, and no argument that a clamp would see. */
    if (!has_faulty_exp(variant.fault) || !isfinite(x)) {
        return right;
    }
    float wrong = faulty(x, variant.fault);
    return mla_plain_differs(wrong, right) && mla_plain_has(variant, variant.fault) ? wrong : right;
}
