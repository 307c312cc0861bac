/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_scale.c - the scale: which one a call without one means, and how it is applied.
 */
#include "fuzz/faults/plain_arith.h"

#include <math.h>

/* 1/sqrt(head_dim), worked out in double and rounded once. */
float mla_plain_default_scale(const struct mla_ring_args *args, struct mla_plain_variant variant)
{
    if (mla_plain_has(variant, MLA_FAULT_DEFAULT_SCALE_ZERO)) {
        return 0.0f;
    }
    if (mla_plain_has(variant, MLA_FAULT_DEFAULT_SCALE_OF_VALUES)) {
        return (float)(1.0 / sqrt((double)args->head_dim_v));
    }
    return (float)(1.0 / sqrt((double)args->head_dim));
}

float mla_plain_scale(const struct mla_plain_row *row, struct mla_plain_variant variant)
{
    float scale = row->scale;
    if (scale != 1.0f && mla_plain_has(variant, MLA_FAULT_SCALE_TWICE)) {
        return scale * scale;
    }
    if (scale != 1.0f && mla_plain_has(variant, MLA_FAULT_SCALE_RECIPROCAL)) {
        return 1.0f / scale;
    }
    return scale;
}
