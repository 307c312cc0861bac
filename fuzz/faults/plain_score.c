/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_score.c - scores of one query row against its keys.
 *
 * Loops are sequential (BLOCKED: in lanes) because the models in plain.h and plain_models.h say so.
 */
#include "fuzz/faults/half.h"
#include "fuzz/faults/plain_arith.h"

#define TOGETHER 4

/*
 * score[k] += q*key[k], column by column, for as many keys at once as hide the time an addition
 * takes; what happens to one key's score is the same as alone.
 */
static void add_products(float *score, const uint16_t *q, const uint16_t *const *key,
                         int64_t columns_n)
{
    float s0 = score[0];
    float s1 = score[1];
    float s2 = score[2];
    float s3 = score[3];
    for (int64_t i = 0; i < columns_n; i++) {
        float x = mla_plain_bf16_value(q[i]);
        s0 += x * mla_plain_bf16_value(key[0][i]);
        s1 += x * mla_plain_bf16_value(key[1][i]);
        s2 += x * mla_plain_bf16_value(key[2][i]);
        s3 += x * mla_plain_bf16_value(key[3][i]);
    }
    score[0] = s0;
    score[1] = s1;
    score[2] = s2;
    score[3] = s3;
}

/* Scores of TOGETHER keys from keys[0] on, of which n are there. */
static void score_together(const struct mla_plain_row *row, const struct mla_plain_key *keys,
                           int64_t n, const uint16_t *q_value, const uint16_t *q_rope,
                           int64_t rope_n, float *scores)
{
    const uint16_t *value[TOGETHER];
    const uint16_t *rope[TOGETHER];
    float sums[TOGETHER] = {0};
    for (int64_t k = 0; k < TOGETHER; k++) {
        value[k] = keys[k < n ? k : 0].value;
        rope[k] = keys[k < n ? k : 0].rope;
    }
    add_products(sums, q_value, value, row->value_n);
    add_products(sums, q_rope, rope, rope_n);
    for (int64_t k = 0; k < n; k++) {
        scores[k] = sums[k];
    }
}

static void add_lanes(float *lanes, const uint16_t *q, const uint16_t *k, int64_t columns_n)
{
    for (int64_t i = 0; i < columns_n; i++) {
        lanes[i % 8] += mla_plain_bf16_value(q[i]) * mla_plain_bf16_value(k[i]);
    }
}

/* value_n is a multiple of 8, so that no lane gets more than one column above the others. */
static float dot_in_lanes(const struct mla_plain_row *row, const struct mla_plain_key *key,
                          const uint16_t *q_value, const uint16_t *q_rope)
{
    float lanes[8] = {0};
    add_lanes(lanes, q_value, key->value, row->value_n);
    add_lanes(lanes, q_rope, key->rope, row->rope_n);
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/* How many of the RoPE columns take part. */
static int64_t rope_columns(const struct mla_plain_row *row, struct mla_plain_variant variant)
{
    if (mla_plain_has(variant, MLA_FAULT_ROPE_IGNORED)) {
        return 0;
    }
    if (row->rope_n % 32 != 0 && mla_plain_has(variant, MLA_FAULT_ROPE_TAIL_IGNORED)) {
        return row->rope_n / 32 * 32;
    }
    return row->rope_n;
}

/* The score as it is kept. */
static float kept_score(float score, struct mla_plain_variant variant)
{
    float other = score;
    switch (variant.fault) {
    case MLA_FAULT_SCORE_BF16:
        other = mla_plain_round_bf16(score);
        break;
    case MLA_FAULT_SCORE_HALF:
        other = mla_plain_round_half(score);
        break;
    case MLA_FAULT_SCORE_SATURATES:
        other = score > 65504.0f ? 65504.0f : score < -65504.0f ? -65504.0f : score;
        break;
    default:
        return score;
    }
    return mla_plain_differs(other, score) && mla_plain_has(variant, variant.fault) ? other : score;
}

static void score_all(struct mla_plain_row *row, const uint16_t *q_value, const uint16_t *q_rope,
                      struct mla_plain_variant variant)
{
    int64_t rope_n = rope_columns(row, variant);
    for (int64_t j = 0; j < row->keys_n; j += TOGETHER) {
        int64_t n = row->keys_n - j < TOGETHER ? row->keys_n - j : TOGETHER;
        score_together(row, row->keys + j, n, q_value, q_rope, rope_n, row->scores + j);
    }
}

void mla_plain_fill_scores(struct mla_plain_row *row, const uint16_t *q_value,
                           const uint16_t *q_rope, struct mla_plain_variant variant)
{
    if (variant.method == MLA_PLAIN_BLOCKED) {
        for (int64_t j = 0; j < row->keys_n; j++) {
            row->scores[j] = dot_in_lanes(row, &row->keys[j], q_value, q_rope);
        }
        return;
    }
    score_all(row, q_value, q_rope, variant);
    for (int64_t j = 0; j < row->keys_n; j++) {
        row->scores[j] = row->keys[j].hidden ? mla_plain_mask_score(row, variant)
                                             : kept_score(row->scores[j], variant);
    }
}
