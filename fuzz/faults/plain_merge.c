/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_merge.c - partial results of the parts of a row, merged: maximum, sum, accumulator.
 *
 * The partial accumulators lie one behind the other with the pitch of a whole key, the numbers that
 * belong to each part behind them all.
 */
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_row.h"

#include <math.h>

#define LOG2_E 0x1.715476p+0f

/* What is kept of a part beside its accumulator. */
enum { PART_MAX, PART_SUM, PART_FACTOR_OLD, PART_FACTOR_NEW, PART_NUMBERS };

size_t mla_plain_parts_floats(int64_t parts_n, int64_t columns_n)
{
    return (size_t)(parts_n * (columns_n + PART_NUMBERS));
}

static float *part_o(const struct mla_plain_row *row, int64_t i)
{
    return row->parts + i * (row->value_n + row->rope_n);
}

static float *part_numbers(const struct mla_plain_row *row, int64_t i)
{
    return part_o(row, row->parts_n) + i * PART_NUMBERS;
}

static float to_bf16(float x)
{
    return mla_plain_bf16_value(mla_plain_bf16_bits(x));
}

/* ---- one part ---- */

/* Keys [first, end) are the part's: its maximum, then its sums. */
static void attend_part(struct mla_plain_row *row, int64_t i, int64_t first, int64_t end)
{
    float *o = part_o(row, i), *numbers = part_numbers(row, i);
    float max = -INFINITY, sum = 0.0f;
    for (int64_t c = 0; c < row->value_n; c++) {
        o[c] = 0.0f;
    }
    for (int64_t j = first; j < end; j++) {
        max = row->scores[j] > max ? row->scores[j] : max;
    }
    for (int64_t j = first; j < end; j++) {
        float p = expf((row->scores[j] - max) * row->scale);
        sum += p;
        for (int64_t c = 0; c < row->value_n; c++) {
            o[c] += p * mla_plain_bf16_value(row->keys[j].value[c]);
        }
    }
    numbers[PART_MAX] = max;
    numbers[PART_SUM] = sum;
}

/* A partial result as it is handed on. */
static void round_part(struct mla_plain_row *row, int64_t i, struct mla_plain_variant variant)
{
    float *o = part_o(row, i), *numbers = part_numbers(row, i);
    for (int64_t c = 0; c < row->value_n; c++) {
        float rounded = to_bf16(o[c]);
        if (rounded != o[c] && mla_plain_has(variant, MLA_FAULT_PARTIAL_BF16)) {
            o[c] = rounded;
        }
    }
    float sum = to_bf16(numbers[PART_SUM]), max = to_bf16(numbers[PART_MAX]);
    if (sum != numbers[PART_SUM] && mla_plain_has(variant, MLA_FAULT_PARTIAL_SUM_BF16)) {
        numbers[PART_SUM] = sum;
    }
    if (max != numbers[PART_MAX] && mla_plain_has(variant, MLA_FAULT_PARTIAL_MAX_BF16)) {
        numbers[PART_MAX] = max;
    }
}

/* ---- merging ---- */

/* The maximum after a merge. */
static float merged_max(const struct mla_plain_row *row, float part_max,
                        struct mla_plain_variant variant)
{
    float max = part_max > row->max ? part_max : row->max;
    if (max < 0.0f && mla_plain_has(variant, MLA_FAULT_MERGE_MAX_FROM_ZERO)) {
        return 0.0f;
    }
    if (row->max > -INFINITY && part_max > row->max &&
        mla_plain_has(variant, MLA_FAULT_MERGE_MAX_OF_FIRST)) {
        return row->max;
    }
    return max;
}

/* The factor that takes sums formed with `from` to the frame of `to`. */
static float factor(const struct mla_plain_row *row, float from, float to,
                    struct mla_plain_variant variant)
{
    float right = expf((from - to) * row->scale);
    float log2_as_ln = expf((from - to) * row->scale * LOG2_E);
    float by_default =
        expf((from - to) * (float)(1.0 / sqrt((double)(row->value_n + row->rope_n))));
    if (log2_as_ln != right && mla_plain_has(variant, MLA_FAULT_MERGE_LOG2_AS_LN)) {
        return log2_as_ln;
    }
    if (by_default != right && mla_plain_has(variant, MLA_FAULT_MERGE_DEFAULT_SCALE)) {
        return by_default;
    }
    return right;
}

/* Does the part take no part in the merge? */
static bool is_left_out(struct mla_plain_row *row, int64_t i, struct mla_plain_variant variant)
{
    bool is_empty = part_numbers(row, i)[PART_SUM] == 0.0f;
    if (!is_empty) {
        return i > 0 && i == row->parts_n - 1 && row->parts_n % 2 == 1 &&
               mla_plain_has(variant, MLA_FAULT_ODD_PARTIAL_LOST);
    }
    if (row->max == -INFINITY && mla_plain_has(variant, MLA_FAULT_MERGE_UNGUARDED)) {
        return false; /* -inf - -inf */
    }
    if (mla_plain_has(variant, MLA_FAULT_EMPTY_PARTIAL_ZERO_BY_ZERO)) {
        for (int64_t c = 0; c < row->value_n; c++) {
            row->o[c] = NAN; /* weight 0 times 0/0 */
        }
    }
    return true;
}

static void merge_part(struct mla_plain_row *row, int64_t i, struct mla_plain_variant variant)
{
    float *numbers = part_numbers(row, i);
    const float *o = part_o(row, i);
    if (is_left_out(row, i, variant)) {
        return;
    }
    float max = merged_max(row, numbers[PART_MAX], variant);
    float a = factor(row, row->max, max, variant);
    float b = factor(row, numbers[PART_MAX], max, variant);
    if (row->head == 0) {
        numbers[PART_FACTOR_OLD] = a;
        numbers[PART_FACTOR_NEW] = b;
    }
    bool as_head_0 = numbers[PART_FACTOR_OLD] == a && numbers[PART_FACTOR_NEW] == b;
    if (!as_head_0 && mla_plain_has(variant, MLA_FAULT_FACTORS_OF_HEAD_0)) {
        a = numbers[PART_FACTOR_OLD];
        b = numbers[PART_FACTOR_NEW];
    }
    if (i > 0 && row->max > -INFINITY && mla_plain_has(variant, MLA_FAULT_PARTIAL_PITCH_DV)) {
        o = row->parts + i * row->value_n;
    }
    bool is_unscaled = (a != 1.0f && row->sum != 0.0f) || b != 1.0f;
    if (is_unscaled && mla_plain_has(variant, MLA_FAULT_MERGE_SUM_UNSCALED)) {
        row->sum += numbers[PART_SUM];
    } else {
        row->sum = row->sum * a + numbers[PART_SUM] * b;
    }
    for (int64_t c = 0; c < row->value_n; c++) {
        row->o[c] = row->o[c] * a + o[c] * b;
    }
    row->max = max;
}

void mla_plain_merge(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    int64_t at = 0;
    for (int64_t i = 0; i < row->parts_n; i++) {
        int64_t first = at;
        while (at < row->keys_n && row->keys[at].tile / row->tiles_per_part == i) {
            at++;
        }
        attend_part(row, i, first, at);
        round_part(row, i, variant);
    }
    for (int64_t i = 0; i < row->parts_n && row->keys_n > 0; i++) {
        merge_part(row, i, variant);
    }
}
