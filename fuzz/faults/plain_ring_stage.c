/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_stage.c - the stages of a tile that two threads share: scores, probabilities, P*V.
 */
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_ring_pair.h"

#include <math.h>

#define Q_TILE 128   /* columns of a query tile */
#define HIDDEN -1.0f /* what stands in the place of a hidden key's p */

void mla_plain_pair_half(int64_t n, int64_t worker, int64_t *first, int64_t *end)
{
    *first = worker == 0 ? 0 : n / 2;
    *end = worker == 0 ? n / 2 : n;
}

bool mla_plain_pair_has(const struct stage *stage, enum mla_plain_fault fault)
{
    return mla_plain_has(stage->pair->ring->variant, fault);
}

float *mla_plain_pair_values(const struct stage *stage)
{
    return stage->pair->values + stage->turn * stage->pair->values_n;
}

/* ---- scores: half of the keys ---- */

static float score_of(const struct stage *stage, const uint16_t *q, const uint16_t *key)
{
    int64_t width = stage->pair->ring->args->head_dim;
    bool reuse = width > Q_TILE && mla_plain_pair_has(stage, MLA_FAULT_Q_TILE_REUSED);
    float sum = 0.0f;
    for (int64_t c = 0; c < width; c++) {
        sum += mla_plain_bf16_value(q[reuse ? c % Q_TILE : c]) * mla_plain_bf16_value(key[c]);
    }
    return sum;
}

void mla_plain_pair_score(struct stage *stage, int64_t j)
{
    struct pair *pair = stage->pair;
    const struct mla_ring_args *args = pair->ring->args;
    int64_t local = stage->first + j;
    const uint16_t *key = stage->shard + local * args->head_dim;
    struct mla_plain_sight sight = {
        .ring = pair->ring,
        .query = &stage->query,
        .source = stage->source,
        .local = local,
        .pos = mla_plain_key_position(pair->ring, stage->source, local),
        .tile = stage->first,
        .tile_pos = mla_plain_key_position(pair->ring, stage->source, stage->first)};
    for (int64_t c = 0; c < args->head_dim_v; c++) {
        mla_plain_pair_values(stage)[j * args->head_dim_v + c] = mla_plain_bf16_value(key[c]);
    }
    for (int64_t r = 0; r < args->q_rows; r++) {
        int64_t at = r * pair->tile_rows + j;
        stage->query.r = r;
        stage->query.pos = pair->ring->positions[stage->query.rank * args->q_rows + r];
        pair->seen[at] = mla_plain_sees(&sight);
        if (pair->seen[at]) {
            const uint16_t *q = mla_plain_query_row(pair->ring, &stage->query, stage->head);
            pair->scores[at] = score_of(stage, q, key);
        }
    }
}

/* ---- probabilities: half of the rows ---- */

float mla_plain_pair_max(const struct stage *stage, int64_t r)
{
    const struct pair *pair = stage->pair;
    float max = pair->max[r];
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        max = pair->seen[at] && pair->scores[at] > max ? pair->scores[at] : max;
    }
    return max;
}

/* The upper quarter's p take the places of its scores before the maximum is known. */
void mla_plain_pair_store_early(const struct stage *stage, int64_t r)
{
    struct pair *pair = stage->pair;
    for (int64_t j = stage->rows - stage->rows / 4; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        if (pair->seen[at] && mla_plain_pair_has(stage, MLA_FAULT_P_OVER_SCORES)) {
            pair->scores[at] = expf((pair->scores[at] - pair->max[r]) * pair->ring->plan.scale);
        }
    }
}

void mla_plain_pair_weigh(const struct stage *stage, int64_t r, float max, float *p)
{
    struct pair *pair = stage->pair;
    float scale = pair->ring->plan.scale;
    bool is_seen = false;
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        is_seen = is_seen || pair->seen[at];
        p[at] = HIDDEN;
    }
    pair->alpha[r] = 1.0f;
    if (!is_seen) {
        return;
    }
    pair->alpha[r] = expf((pair->max[r] - max) * scale);
    pair->max[r] = max;
    pair->sum[r] *= pair->alpha[r];
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        if (pair->seen[at]) {
            p[at] = expf((pair->scores[at] - max) * scale);
            pair->sum[r] += p[at];
        }
    }
}

/* ---- P*V: half of the columns ---- */

void mla_plain_pair_multiply(const struct stage *stage, int64_t r, float alpha, const float *p)
{
    const struct pair *pair = stage->pair;
    const float *values = mla_plain_pair_values(stage);
    int64_t width = pair->ring->args->head_dim_v, first, end;
    mla_plain_pair_half(width, stage->worker, &first, &end);
    float *o = pair->o + r * width;
    for (int64_t c = first; alpha != 1.0f && c < end; c++) {
        o[c] *= alpha;
    }
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        for (int64_t c = first; p[at] != HIDDEN && c < end; c++) {
            o[c] += p[at] * values[j * width + c];
        }
    }
}
