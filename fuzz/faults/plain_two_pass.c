/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_two_pass.c - the row's maximum first, then every key once.
 *
 * Every float operation is counted in the models in plain.h and plain_models.h.
 */
#include "fuzz/faults/half.h"
#include "fuzz/faults/plain_arith.h"
#include "fuzz/faults/plain_models.h"

/* The unrounded probability of key j. */
static float probability(const struct mla_plain_row *row, int64_t j,
                         struct mla_plain_variant variant)
{
    float x = (row->scores[j] - row->max) * row->run.scale;
    if (variant.method == MLA_PLAIN_LOWER_SHIFT) {
        x += 0.5f;
    }
    /* One fused operation, with a maximum that was scaled and rounded before: not 0 there. */
    if (variant.fault == MLA_FAULT_FUSED_ROUNDED_MAX) {
        float shift = mla_plain_round_bf16(row->max * row->run.scale);
        float fused = fmaf(row->scores[j], row->run.scale, -shift);
        x = mla_plain_differs(fused, x) && mla_plain_has(variant, variant.fault) ? fused : x;
    }
    return mla_plain_exp(x, variant);
}

static void one_by_one(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    for (int64_t j = 0; j < row->keys_n; j++) {
        float p = probability(row, j, variant);
        float p_bf16 = mla_plain_round_bf16(p);
        bool rounds =
            variant.method == MLA_PLAIN_TWO_PASS || variant.method == MLA_PLAIN_TWO_PASS_ROUNDED;
        bool sums_rounded =
            variant.method == MLA_PLAIN_TWO_PASS_ROUNDED &&
            (!mla_plain_differs(p, p_bf16) || !mla_plain_has(variant, MLA_FAULT_SUM_UNROUNDED));
        row->sum += sums_rounded ? p_bf16 : p;
        mla_plain_accumulate(row, row->keys[j].value, rounds ? p_bf16 : p, variant);
    }
}

/* Parts of 16 keys, each summed from nothing. */
static void in_parts(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    float p[MLA_PLAIN_BLOCKED_PART];
    for (int64_t first = 0; first < row->keys_n; first += MLA_PLAIN_BLOCKED_PART) {
        int64_t left = row->keys_n - first;
        int64_t n = left < MLA_PLAIN_BLOCKED_PART ? left : MLA_PLAIN_BLOCKED_PART;
        float part = 0.0f;
        for (int64_t j = 0; j < n; j++) {
            p[j] = probability(row, first + j, variant);
            part += p[j];
        }
        row->sum += part;
        for (int64_t c = 0; c < row->value_n; c++) {
            part = 0.0f;
            for (int64_t j = 0; j < n; j++) {
                part += p[j] * mla_plain_bf16_value(row->keys[first + j].value[c]);
            }
            row->o[c] += part;
        }
    }
}

void mla_plain_two_pass(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    row->max = mla_plain_larger(row->max, row->scores, row->keys_n);
    if (variant.method == MLA_PLAIN_BLOCKED) {
        in_parts(row, variant);
    } else {
        one_by_one(row, variant);
    }
}
