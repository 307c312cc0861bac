/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring.c - the ring operation, plainly: for every query row, list the keys it sees, attend.
 *
 * One thread plays all ranks and reads the source shards in place; nothing travels. Shards are
 * visited in the order in which they would arrive over the ring or the line and each is cut into
 * tiles of k_chunk_size rows, so that sums, rescales and tile edges fall where a distributed kernel
 * has them.
 */
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_mask.h"
#include "fuzz/faults/plain_row.h"
#include "impl/validate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_chunked(const struct mla_ring_args *args)
{
    return args->q_rows < args->kv_rows;
}

/* Zig-zag: rank d holds the half-chunks d and 2R-1-d. */
static int64_t zigzag_position(const struct mla_ring_args *args, int64_t rank, int64_t local)
{
    int64_t half = args->q_rows / 2;
    if (local < half) {
        return rank * half + local;
    }
    return (2 * args->ring_size - 1 - rank) * half + local - half;
}

static int64_t key_position(const struct mla_ring_args *args, int64_t source, int64_t local)
{
    if (is_chunked(args)) {
        int64_t slab = local / args->q_rows;
        return slab * args->ring_size * args->q_rows + source * args->q_rows + local % args->q_rows;
    }
    if (args->is_balanced) {
        return zigzag_position(args, source, local);
    }
    return source * args->kv_rows + local;
}

/* pos_q of every row of rank d; -1 marks a pad row. */
static void query_positions(const struct mla_ring_args *args, int64_t rank, int64_t *positions)
{
    int64_t rows_n = args->q_rows;
    if (args->has_prior) {
        int64_t packed = 0;
        for (int64_t g = args->kv_actual_isl; g < args->logical_n; g++) {
            if ((g / rows_n) % args->ring_size == rank) {
                positions[packed++] = g;
            }
        }
        while (packed < rows_n) {
            positions[packed++] = -1;
        }
        return;
    }
    int64_t chunk_end = (args->logical_n + MLA_TILE - 1) / MLA_TILE * MLA_TILE;
    for (int64_t r = 0; r < rows_n; r++) {
        if (is_chunked(args)) {
            positions[r] = chunk_end - args->ring_size * rows_n + rank * rows_n + r;
        } else if (args->is_balanced) {
            positions[r] = zigzag_position(args, rank, r);
        } else {
            positions[r] = rank * rows_n + r;
        }
    }
}

void mla_plain_visit_order(int64_t ring_size, int32_t topology, int64_t rank, int64_t *order)
{
    int64_t from_below = topology == MLA_TOPOLOGY_LINEAR ? rank : ring_size / 2;
    int64_t from_above = ring_size - 1 - from_below;
    int64_t steps_n = 0;
    order[steps_n++] = rank;
    for (int64_t hop = 1; steps_n < ring_size; hop++) {
        if (hop <= from_above) {
            order[steps_n++] = (rank + hop) % ring_size;
        }
        if (hop <= from_below) {
            order[steps_n++] = (rank + ring_size - hop) % ring_size;
        }
    }
}

/* Does the query at pos_q see the key at pos_k, whose tile starts with the key at tile_pos? */
static bool sees(const struct mla_ring_args *args, struct mla_plain_variant variant, int64_t pos_q,
                 int64_t pos_k, int64_t tile_pos)
{
    int64_t limit = args->logical_n;
    int64_t frontier = pos_q;
    if (pos_k == limit - 1 && mla_plain_has(variant, MLA_FAULT_LAST_KEY_DROPPED)) {
        limit -= 1;
    }
    if (pos_k >= limit && tile_pos < limit && mla_plain_has(variant, MLA_FAULT_KEYS_PAST_END)) {
        limit = INT64_MAX; /* a tile that starts with a valid key is taken whole */
    }
    if (pos_k == pos_q + 1 && mla_plain_has(variant, MLA_FAULT_CAUSAL_ONE_MORE)) {
        frontier += 1;
    }
    if (pos_k == pos_q && mla_plain_has(variant, MLA_FAULT_CAUSAL_ONE_LESS)) {
        frontier -= 1;
    }
    return pos_k <= frontier && pos_k < limit;
}

/* The keys a query sees, in visiting order. Returns how many; keys has room for all. */
static int64_t list_keys(const struct mla_ring_args *args, struct mla_plain_variant variant,
                         const int64_t *order, int64_t kv_batch, int64_t pos_q,
                         struct mla_plain_key *keys)
{
    int64_t keys_n = 0;
    int64_t tiles_n = (args->kv_rows - 1) / args->k_chunk_size + 1;
    for (int64_t step = 0; step < args->ring_size; step++) {
        int64_t source = order[step];
        const uint16_t *shard = args->kv[source] + kv_batch * args->kv_rows * args->head_dim;
        for (int64_t t = 0; t < args->kv_rows; t++) {
            int64_t tile = t / args->k_chunk_size;
            int64_t tile_pos = key_position(args, source, tile * args->k_chunk_size);
            bool hidden = !sees(args, variant, pos_q, key_position(args, source, t), tile_pos);
            if (hidden && !mla_plain_masks(variant)) {
                continue;
            }
            const uint16_t *key = shard + t * args->head_dim;
            keys[keys_n++] = (struct mla_plain_key){.value = key,
                                                    .rope = key + args->head_dim_v,
                                                    .tile = step * tiles_n + tile,
                                                    .hidden = hidden};
        }
    }
    return keys_n;
}

static void store_row(const struct mla_ring_args *args, int64_t rank, int64_t plane, int64_t r,
                      const struct mla_plain_row *row)
{
    uint16_t *out = args->out[rank] + (plane * args->q_rows + r) * args->head_dim_v;
    for (int64_t c = 0; c < args->head_dim_v; c++) {
        out[c] = mla_plain_bf16_bits(row->o[c]);
    }
    if (args->stats) {
        float *stats = args->stats[rank] + plane * 2 * args->q_rows;
        stats[r] = row->max;
        stats[args->q_rows + r] = row->sum;
    }
}

struct workspace {
    struct mla_plain_key *keys;
    int64_t *positions;
    int64_t order[MLA_RING_SIZE_MAX];
};

static void attend_rank(const struct mla_ring_args *args, struct mla_plain_variant variant,
                        int64_t rank, struct workspace *work, struct mla_plain_row *row)
{
    bool is_reversed = variant.method == MLA_PLAIN_ROWS_REVERSED;
    query_positions(args, rank, work->positions);
    mla_plain_visit_order(args->ring_size, args->topology, rank, work->order);
    for (int64_t b = 0; b < args->batch; b++) {
        int64_t kv_batch = args->has_slot ? args->kv_cache_batch_idx : b;
        for (int64_t i = 0; i < args->q_rows; i++) {
            int64_t r = is_reversed ? args->q_rows - 1 - i : i;
            row->keys_n = 0;
            if (work->positions[r] >= 0) { /* a pad row sees nothing and its query is not read */
                row->keys_n =
                    list_keys(args, variant, work->order, kv_batch, work->positions[r], work->keys);
            }
            for (int64_t k = 0; k < args->heads; k++) {
                int64_t h = is_reversed ? args->heads - 1 - k : k;
                int64_t plane = b * args->heads + h;
                row->head = h;
                const uint16_t *q = args->q[rank] + (plane * args->q_rows + r) * args->head_dim;
                mla_plain_row_attend(row, q, q + args->head_dim_v, variant);
                store_row(args, rank, plane, r, row);
            }
        }
    }
}

int32_t mla_plain_ring(const struct mla_ring_args *args, struct mla_plain_variant variant,
                       char *message, size_t message_bytes)
{
    int32_t status = mla_validate_ring(args, message, message_bytes);
    if (status != MLA_OK) {
        return status;
    }
    status = MLA_ERR_NOMEM;
    size_t keys_most = (size_t)(args->ring_size * args->kv_rows);
    struct workspace work = {0};
    work.keys = calloc(keys_most, sizeof *work.keys);
    work.positions = calloc((size_t)args->q_rows, sizeof *work.positions);
    struct mla_plain_row row = {
        .keys = work.keys,
        .value_n = args->head_dim_v,
        .rope_n = args->head_dim - args->head_dim_v,
        .scale = args->has_scale ? args->scale : mla_plain_default_scale(args, variant),
        .scores = calloc(keys_most, sizeof *row.scores),
        .head_factors = calloc(keys_most, sizeof *row.head_factors),
        .o = calloc((size_t)args->head_dim_v, sizeof *row.o),
        .run = {.last_shift = -INFINITY},
    };
    if (!work.keys || !work.positions || !row.scores || !row.head_factors || !row.o) {
        goto done;
    }
    for (int64_t rank = 0; rank < args->ring_size; rank++) {
        attend_rank(args, variant, rank, &work, &row);
    }
    status = MLA_OK;
done:
    free(row.o);
    free(row.head_factors);
    free(row.scores);
    free(work.positions);
    free(work.keys);
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", status == MLA_OK ? "" : "out of memory");
    }
    return status;
}
