/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_score.c - scores of one query row against its keys.
 *
 * Loops are sequential (BLOCKED: in lanes) because the models in plain.h and plain_models.h say so.
 */
#include "fuzz/faults/half.h"
#include "fuzz/faults/plain_arith.h"

static float dot(float start, const uint16_t *q, const uint16_t *k, int64_t columns_n)
{
    float sum = start;
    for (int64_t i = 0; i < columns_n; i++) {
        sum += mla_plain_bf16_value(q[i]) * mla_plain_bf16_value(k[i]);
    }
    return sum;
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
    return other != score && mla_plain_has(variant, variant.fault) ? other : score;
}

void mla_plain_fill_scores(struct mla_plain_row *row, const uint16_t *q_value,
                           const uint16_t *q_rope, struct mla_plain_variant variant)
{
    int64_t rope_n = rope_columns(row, variant);
    for (int64_t j = 0; j < row->keys_n; j++) {
        const struct mla_plain_key *key = &row->keys[j];
        if (key->hidden) {
            row->scores[j] = mla_plain_mask_score(row, variant);
        } else if (variant.method == MLA_PLAIN_BLOCKED) {
            row->scores[j] = dot_in_lanes(row, key, q_value, q_rope);
        } else {
            float score = dot(0.0f, q_value, key->value, row->value_n);
            row->scores[j] = kept_score(dot(score, q_rope, key->rope, rope_n), variant);
        }
    }
}
