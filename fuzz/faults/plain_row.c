/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_row.c - attention of one (head, query row) over an explicit list of keys.
 *
 * Every float operation below is counted in the model in plain.h; change one and change the other.
 * Loops are sequential because the model says so: the error bound is that of the plain order.
 */
#include "fuzz/faults/plain_row.h"

#include "fuzz/faults/bf16.h"

#include <math.h>

static float dot(float start, const uint16_t *q, const uint16_t *k, int64_t columns_n)
{
    float sum = start;
    for (int64_t i = 0; i < columns_n; i++) {
        sum += mla_plain_bf16_value(q[i]) * mla_plain_bf16_value(k[i]);
    }
    return sum;
}

static void fill_scores(const struct mla_plain_row *row, const uint16_t *q_value,
                        const uint16_t *q_rope, struct mla_plain_variant variant)
{
    for (int64_t j = 0; j < row->keys_n; j++) {
        float score = dot(0.0f, q_value, row->keys[j].value, row->value_n);
        if (!mla_plain_has(variant, MLA_FAULT_ROPE_IGNORED)) {
            score = dot(score, q_rope, row->keys[j].rope, row->rope_n);
        }
        row->scores[j] = score;
    }
}

static void multiply(float *o, int64_t columns_n, float factor)
{
    for (int64_t c = 0; c < columns_n; c++) {
        o[c] *= factor;
    }
}

static void accumulate(float *o, const uint16_t *value, int64_t columns_n, float p)
{
    for (int64_t c = 0; c < columns_n; c++) {
        o[c] += p * mla_plain_bf16_value(value[c]);
    }
}

/* The largest of `max` and the listed scores; a NaN never wins, and makes its own p a NaN later. */
static float larger(float max, const float *scores, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        max = scores[j] > max ? scores[j] : max;
    }
    return max;
}

/* One tile [first, end) of the online softmax: new maximum, rescale, then add its keys. */
static void tile_step(struct mla_plain_row *row, int64_t first, int64_t end, int64_t step,
                      struct mla_plain_variant variant)
{
    float old_max = row->max;
    row->max = larger(old_max, row->scores + first, end - first);
    /* On the row's first tile old_max is -inf and alpha is 0; sum and o are 0 then anyway. */
    float alpha = expf((old_max - row->max) * row->scale);
    row->sum *= alpha;
    if (alpha == 1.0f || !mla_plain_has(variant, MLA_FAULT_RESCALE_FORGOTTEN)) {
        multiply(row->o, row->value_n, alpha);
    }
    for (int64_t n = end - first, j = step > 0 ? first : end - 1; n > 0; n--, j += step) {
        float p = expf((row->scores[j] - row->max) * row->scale);
        row->sum += p;
        accumulate(row->o, row->keys[j].value, row->value_n, p);
    }
}

static void online(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    for (int64_t first = 0, end = 0; first < row->keys_n; first = end) {
        end = first;
        while (end < row->keys_n && row->keys[end].tile == row->keys[first].tile) {
            end++;
        }
        tile_step(row, first, end, 1, variant);
    }
}

static void online_reversed(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    for (int64_t end = row->keys_n, first = 0; end > 0; end = first) {
        first = end;
        while (first > 0 && row->keys[first - 1].tile == row->keys[end - 1].tile) {
            first--;
        }
        tile_step(row, first, end, -1, variant);
    }
}

static void two_pass(struct mla_plain_row *row)
{
    row->max = larger(row->max, row->scores, row->keys_n);
    for (int64_t j = 0; j < row->keys_n; j++) {
        float p = expf((row->scores[j] - row->max) * row->scale);
        row->sum += p;
        float p_bf16 = mla_plain_bf16_value(mla_plain_bf16_bits(p));
        accumulate(row->o, row->keys[j].value, row->value_n, p_bf16);
    }
}

void mla_plain_row_begin(struct mla_plain_row *row)
{
    row->max = -INFINITY;
    row->sum = 0.0f;
    row->seen_n = 0;
    for (int64_t c = 0; c < row->value_n; c++) {
        row->o[c] = 0.0f;
    }
}

void mla_plain_row_add(struct mla_plain_row *row, const uint16_t *q_value, const uint16_t *q_rope,
                       struct mla_plain_variant variant)
{
    row->seen_n += row->keys_n;
    fill_scores(row, q_value, q_rope, variant);
    switch (variant.method) {
    case MLA_PLAIN_ONLINE:
    case MLA_PLAIN_GATHERED:
    case MLA_PLAIN_TRAVELLING:
    case MLA_PLAIN_PAIRED:
        online(row, variant);
        break;
    case MLA_PLAIN_REVERSED:
        online_reversed(row, variant);
        break;
    case MLA_PLAIN_TWO_PASS:
        two_pass(row);
        break;
    case MLA_PLAIN_MERGED:
        mla_plain_merge(row, variant);
        break;
    }
}

void mla_plain_row_end(struct mla_plain_row *row)
{
    if (row->seen_n == 0) {
        return;
    }
    for (int64_t c = 0; c < row->value_n; c++) {
        row->o[c] /= row->sum;
    }
    row->max *= row->scale;
}

void mla_plain_row_attend(struct mla_plain_row *row, const uint16_t *q_value,
                          const uint16_t *q_rope, struct mla_plain_variant variant)
{
    mla_plain_row_begin(row);
    mla_plain_row_add(row, q_value, q_rope, variant);
    mla_plain_row_end(row);
}
