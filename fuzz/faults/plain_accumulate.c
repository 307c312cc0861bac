/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_accumulate.c - weights times values, and what the accumulators are stored in.
 */
#include "fuzz/faults/half.h"
#include "fuzz/faults/plain_arith.h"

#include <float.h>

/* Flush to zero, as a thread does that was started in another mode. */
static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? 0.0f : x;
}

static void accumulate_flushed(struct mla_plain_row *row, const uint16_t *value, float p,
                               struct mla_plain_variant variant)
{
    for (int64_t c = 0; c < row->value_n; c++) {
        float v = mla_plain_bf16_value(value[c]);
        float right = p * v;
        float wrong = flushed(flushed(p) * flushed(v));
        bool differs =
            mla_plain_differs(wrong, right) && mla_plain_has(variant, MLA_FAULT_SUBNORMALS_FLUSHED);
        row->o[c] += differs ? wrong : right;
    }
}

void mla_plain_accumulate(struct mla_plain_row *row, const uint16_t *value, float p,
                          struct mla_plain_variant variant)
{
    if (variant.fault == MLA_FAULT_SUBNORMALS_FLUSHED) {
        accumulate_flushed(row, value, p, variant);
        return;
    }
    float p_bf16 = mla_plain_round_bf16(p);
    if (mla_plain_differs(p_bf16, p) && mla_plain_has(variant, MLA_FAULT_P_BF16)) {
        p = p_bf16;
    }
    for (int64_t c = 0; c < row->value_n; c++) {
        row->o[c] += p * mla_plain_bf16_value(value[c]);
    }
}

static void store_o(struct mla_plain_row *row, float (*rounded)(float),
                    struct mla_plain_variant variant)
{
    for (int64_t c = 0; c < row->value_n; c++) {
        float stored = rounded(row->o[c]);
        if (mla_plain_differs(stored, row->o[c]) &&
            (variant.method == MLA_PLAIN_BF16_SUMS || mla_plain_has(variant, variant.fault))) {
            row->o[c] = stored;
        }
    }
}

static float saturated_half(float x)
{
    return fabsf(x) >= 65520.0f ? copysignf(INFINITY, x) : x;
}

void mla_plain_store_sums(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    float sum_bf16 = mla_plain_round_bf16(row->sum);
    if (variant.method == MLA_PLAIN_BF16_SUMS ||
        (mla_plain_differs(sum_bf16, row->sum) && mla_plain_has(variant, MLA_FAULT_SUM_BF16))) {
        row->sum = sum_bf16;
    }
    if (variant.method == MLA_PLAIN_BF16_SUMS || variant.fault == MLA_FAULT_O_BF16) {
        store_o(row, mla_plain_round_bf16, variant);
    } else if (variant.fault == MLA_FAULT_O_HALF) {
        store_o(row, mla_plain_round_half, variant);
    } else if (variant.fault == MLA_FAULT_O_HALF_RANGE) {
        store_o(row, saturated_half, variant);
    }
}
