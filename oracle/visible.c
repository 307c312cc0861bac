/* SPDX-License-Identifier: Apache-2.0
 *
 * visible.c - which keys one query row sees, from positions alone.
 *
 * Every key's position is computed and put to the one rule; nothing is skipped, no block is known
 * to be full or empty. Packed query rows are found by counting tokens one by one. Slow, and meant
 * to be checked by reading.
 */
#include "oracle/visible.h"

#include <stdlib.h>

static bool is_chunked(const struct mla_ring_args *a)
{
    return a->q_rows < a->kv_rows;
}

/* Zig-zag: rank d holds half-chunks d and 2*ring_size-1-d of the sequence, in that order. */
static int64_t balanced_position(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    const int64_t half = a->q_rows / 2;

    if (row < half) {
        return rank * half + row;
    }
    return (2 * a->ring_size - 1 - rank) * half + (row - half);
}

int64_t mla_oracle_key_position(const struct mla_ring_args *a, int64_t source, int64_t row)
{
    if (a->is_balanced) {
        return balanced_position(a, source, row);
    }
    if (is_chunked(a)) { /* block-cyclic: slabs of q_rows rows, dealt to the ranks in turn */
        const int64_t slab = row / a->q_rows;

        return slab * a->ring_size * a->q_rows + source * a->q_rows + row % a->q_rows;
    }
    return source * a->kv_rows + row;
}

/*
 * With a prior length the tokens are the positions kv_actual_isl .. logical_n-1. Position g belongs
 * to the rank that stores its key, and a rank packs its tokens in increasing position from row 0.
 */
static int64_t packed_position(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    int64_t packed_n = 0;

    for (int64_t g = a->kv_actual_isl; g < a->logical_n; g++) {
        if (g / a->q_rows % a->ring_size != rank) {
            continue;
        }
        if (packed_n == row) {
            return g;
        }
        packed_n++;
    }
    return -1;
}

int64_t mla_oracle_query_position(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    if (a->is_balanced) {
        return balanced_position(a, rank, row);
    }
    if (a->has_prior) {
        return packed_position(a, rank, row);
    }
    if (is_chunked(a)) { /* the queries are the last chunk of the sequence, rounded up to a tile */
        const int64_t end = (a->logical_n + MLA_TILE - 1) / MLA_TILE * MLA_TILE;

        return end - a->ring_size * a->q_rows + rank * a->q_rows + row;
    }
    return rank * a->q_rows + row;
}

void mla_oracle_visiting_order(const struct mla_ring_args *a, int64_t rank, int64_t *order)
{
    const bool is_line = a->topology == MLA_TOPOLOGY_LINEAR;
    const int64_t ahead = is_line ? a->ring_size - 1 - rank : (a->ring_size - 1) / 2;
    const int64_t behind = a->ring_size - 1 - ahead;
    int64_t n = 0;

    order[n++] = rank;
    for (int64_t hop = 1; hop < a->ring_size; hop++) {
        if (hop <= ahead) {
            order[n++] = (rank + hop) % a->ring_size;
        }
        if (hop <= behind) {
            order[n++] = (rank + a->ring_size - hop) % a->ring_size;
        }
    }
}

static bool is_visible(const struct mla_ring_args *a, int64_t query, int64_t source, int64_t row)
{
    const int64_t key = mla_oracle_key_position(a, source, row);

    return key <= query && key < a->logical_n;
}

int32_t mla_oracle_visible_ring(const struct mla_ring_args *a, int64_t rank, int64_t row,
                                struct mla_oracle_visible *visible)
{
    const int64_t position = mla_oracle_query_position(a, rank, row);
    int64_t keys_n = 0;

    *visible = (struct mla_oracle_visible){.is_pad = position < 0, .position = position};
    if (visible->is_pad) {
        return MLA_OK;
    }
    for (int64_t s = 0; s < a->ring_size; s++) {
        for (int64_t t = 0; t < a->kv_rows; t++) {
            visible->shard_n[s] += is_visible(a, position, s, t);
        }
        visible->keys_n += visible->shard_n[s];
    }
    if (visible->keys_n == 0) {
        return MLA_OK;
    }
    visible->keys = calloc((size_t)visible->keys_n, sizeof *visible->keys);
    if (visible->keys == NULL) {
        return MLA_ERR_NOMEM;
    }
    for (int64_t s = 0; s < a->ring_size; s++) {
        for (int64_t t = 0; t < a->kv_rows; t++) {
            if (is_visible(a, position, s, t)) {
                visible->keys[keys_n++] = (struct mla_oracle_key){s, t};
            }
        }
    }
    return MLA_OK;
}

/* Entry j of a row's list. Tiled: [query div 128][16][128][topk/16], a row's list over 16 sub-rows.
 */
static int64_t listed(const struct mla_sparse_args *a, int64_t query, int64_t j)
{
    const int64_t tile = query / 128;
    const int64_t in_tile = query % 128;
    const int64_t part = in_tile / 8;
    const int64_t sub_row = 16 * (in_tile % 8) + j % 16;

    if (a->topk_tiled) {
        return a->topk_indices[((tile * 16 + part) * 128 + sub_row) * (a->topk / 16) + j / 16];
    }
    return a->topk_indices[query * a->topk + j];
}

int32_t mla_oracle_visible_sparse(const struct mla_sparse_args *a, int64_t row,
                                  struct mla_oracle_visible *visible)
{
    const int64_t candidates_n = a->dense ? a->keys : a->topk;
    const int64_t offset = a->has_q_pos_offset ? a->q_pos_offset : 0;
    /* Keys beyond offset + row are dropped; INT64_MAX where the sum would wrap: none is. */
    const int64_t last = offset > INT64_MAX - row ? INT64_MAX : offset + row;
    const bool drops = a->dense || a->has_q_pos_offset;

    *visible = (struct mla_oracle_visible){.position = row};
    visible->keys = calloc((size_t)candidates_n, sizeof *visible->keys);
    if (visible->keys == NULL) {
        return MLA_ERR_NOMEM;
    }
    for (int64_t j = 0; j < candidates_n; j++) {
        const int64_t key = a->dense ? j : listed(a, row, j);

        if (drops && key > last) {
            continue;
        }
        visible->keys[visible->keys_n++] = (struct mla_oracle_key){0, key};
    }
    visible->shard_n[0] = visible->keys_n;
    return MLA_OK;
}

void mla_oracle_visible_free(struct mla_oracle_visible *visible)
{
    free(visible->keys);
    visible->keys = NULL;
    visible->keys_n = 0;
}
