/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_finish.c - what is made of a row's sums: the quotient and the statistics.
 */
#include "fuzz/faults/half.h"
#include "fuzz/faults/plain_arith.h"

/* 1/x to three digits: an integer's guess and one step, where the second was forgotten. */
static float rough_reciprocal(float x)
{
    uint32_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    bits = 0x7ef311c7u - bits;
    float guess = 0.0f;
    memcpy(&guess, &bits, sizeof guess);
    return guess * (2.0f - x * guess);
}

/* Columns that pad the last tile to 32 keys get a score of 0, not -inf. */
static float live_padding(const struct mla_plain_row *row, struct mla_plain_variant variant)
{
    float pads_n = (float)((32 - row->keys_n % 32) % 32);
    float excess = pads_n * expf(-row->max * row->run.scale);
    if (mla_plain_differs(row->sum + excess, row->sum) &&
        mla_plain_has(variant, MLA_FAULT_PADDING_SCORES_ZERO)) {
        return excess;
    }
    return 0.0f;
}

static void normalise(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    float sum = row->sum;
    if (sum == 0.0f) {
        return; /* no honest row: its largest key alone has a weight of 1 */
    }
    bool is_seed = mla_plain_has(variant, MLA_FAULT_RECIPROCAL_ROUGH);
    if (is_seed || mla_plain_has(variant, MLA_FAULT_RECIPROCAL_BF16)) {
        float factor = is_seed ? rough_reciprocal(sum) : mla_plain_round_bf16(1.0f / sum);
        for (int64_t c = 0; c < row->value_n; c++) {
            row->o[c] *= factor;
        }
        return;
    }
    for (int64_t c = 0; c < row->value_n; c++) {
        row->o[c] /= sum;
    }
}

static void make_statistics(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    float max = row->max * row->scale;
    if (variant.method == MLA_PLAIN_LOWER_SHIFT) {
        max -= 0.5f;
    }
    if (max != 0.0f && mla_plain_has(variant, MLA_FAULT_STATS_IN_LOG2)) {
        max *= 1.44269504f;
    }
    if (max != row->max && mla_plain_has(variant, MLA_FAULT_STATS_MAX_UNSCALED)) {
        max = row->max;
    }
    if (row->run.tiles_n > 1 && row->run.sum_excess != 0.0f &&
        mla_plain_has(variant, MLA_FAULT_STATS_SUM_NOT_RESCALED)) {
        row->sum += row->run.sum_excess;
    }
    row->max = max;
}

void mla_plain_finish(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    row->run.last_shift = row->max;
    row->sum += live_padding(row, variant);
    normalise(row, variant);
    make_statistics(row, variant);
}

void mla_plain_finish_empty(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    if (mla_plain_has(variant, MLA_FAULT_EMPTY_ROW_STATS)) {
        row->max = INFINITY;
    }
    if (mla_plain_has(variant, MLA_FAULT_EMPTY_ROW_DIVIDES)) {
        for (int64_t c = 0; c < row->value_n; c++) {
            row->o[c] /= row->sum;
        }
    }
}
