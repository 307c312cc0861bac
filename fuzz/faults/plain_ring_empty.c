/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_empty.c - rows that see no key: pad rows. A right kernel neither reads their query nor
 * any key, and stores zeros.
 */
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_ring.h"

#include <math.h>

/* Every valid key of every shard. */
static int64_t list_valid(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                          struct mla_plain_key *keys)
{
    int64_t keys_n = 0;
    for (int64_t source = 0; source < ring->args->ring_size; source++) {
        const uint16_t *shard = mla_plain_shard(ring, query->rank, source, query->batch);
        for (int64_t t = 0; t < ring->args->kv_rows; t++) {
            if (mla_plain_key_position(ring, source, t) < ring->plan.logical_n) {
                keys[keys_n++].value = shard + t * ring->args->head_dim;
            }
        }
    }
    return keys_n;
}

int64_t mla_plain_list_pad(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                           const int64_t *order, struct mla_plain_key *keys)
{
    struct mla_plain_query last = *query;
    if (mla_plain_has(ring->variant, MLA_FAULT_PAD_ROWS_ATTENDED)) {
        last.pos = ring->plan.logical_n - 1;
        return mla_plain_list_row(ring, &last, order, keys);
    }
    if (mla_plain_has(ring->variant, MLA_FAULT_EMPTY_ROW_DUMMY_TILE)) {
        const uint16_t *shard = mla_plain_shard(ring, query->rank, query->rank, query->batch);
        int64_t rows = mla_plain_tile_rows(ring->args);
        for (int64_t t = 0; t < rows; t++) {
            const uint16_t *row = shard + t * ring->args->head_dim;
            keys[t] = (struct mla_plain_key){.value = row, .rope = row + ring->args->head_dim_v};
        }
        return rows;
    }
    return 0;
}

/* The mean of all values: every key masked alike, so all weights equal. */
static void fill_mean(const struct mla_plain_key *keys, int64_t keys_n, struct mla_plain_row *row)
{
    for (int64_t c = 0; c < row->value_n; c++) {
        float sum = 0.0f;
        for (int64_t j = 0; j < keys_n; j++) {
            sum += mla_plain_bf16_value(keys[j].value[c]);
        }
        row->o[c] = sum / (float)keys_n;
    }
}

static void fill(struct mla_plain_row *row, float value)
{
    for (int64_t c = 0; c < row->value_n; c++) {
        row->o[c] = value;
    }
}

void mla_plain_spoil_empty(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                           struct mla_plain_key *keys, struct mla_plain_row *row)
{
    if (mla_plain_has(ring->variant, MLA_FAULT_EMPTY_ROW_NAN)) {
        fill(row, NAN); /* 0 / 0 */
    }
    if (mla_plain_has(ring->variant, MLA_FAULT_EMPTY_ROW_NEGATIVE_ZERO)) {
        fill(row, -0.0f);
    }
    if (mla_plain_has(ring->variant, MLA_FAULT_EMPTY_ROW_MEAN)) {
        fill_mean(keys, list_valid(ring, query, keys), row);
    }
    if (ring->args->stats && mla_plain_has(ring->variant, MLA_FAULT_EMPTY_ROW_STATS_INF)) {
        row->max = INFINITY;
    }
}
