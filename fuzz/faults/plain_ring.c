/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring.c - the ring operation, plainly: for every query row, list the keys it sees, attend.
 *
 * Shards are visited in the order in which they would arrive over the ring or the line and each is
 * cut into tiles of k_chunk_size rows, so that sums, rescales and tile edges fall where a
 * distributed kernel has them. plain_ring.h says what stands in which file.
 */
#include "fuzz/faults/plain_ring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void mla_plain_nap(int tenths)
{
    struct timespec time = {.tv_nsec = tenths * 100000L};
    nanosleep(&time, NULL);
}

/* ---- row by row ---- */

struct workspace {
    struct mla_plain_key *keys;
    struct mla_plain_row row;
    int64_t order[MLA_RING_SIZE_MAX];
};

/* One query row, all heads. */
static void attend_row(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                       struct workspace *work)
{
    struct mla_plain_row *row = &work->row;
    bool is_reversed = ring->variant.method == MLA_PLAIN_ROWS_REVERSED;
    int64_t keys_n = query->pos >= 0 ? mla_plain_list_row(ring, query, work->order, work->keys)
                                     : mla_plain_list_pad(ring, query, work->order, work->keys);
    for (int64_t i = 0; i < ring->args->heads; i++) {
        int64_t h = is_reversed ? ring->args->heads - 1 - i : i;
        row->head = h;
        row->keys_n = keys_n;
        if (keys_n > 0) {
            const uint16_t *q = mla_plain_query_row(ring, query, h);
            mla_plain_row_attend(row, q, q + row->value_n, ring->variant);
            mla_plain_touch_hidden(ring, query, row);
        } else if (!mla_plain_has(ring->variant, MLA_FAULT_EMPTY_ROW_STALE)) {
            mla_plain_row_begin(row);
            mla_plain_row_end(row, ring->variant);
            mla_plain_spoil_empty(ring, query, work->keys, row);
        }
        mla_plain_store_row(ring, query, h, row);
    }
}

static int32_t attend_rows(const struct mla_plain_ring *ring)
{
    const struct mla_ring_args *args = ring->args;
    int32_t status = MLA_ERR_NOMEM;
    size_t keys_most = (size_t)(args->ring_size * args->kv_rows);
    struct workspace work = {.keys = calloc(keys_most, sizeof *work.keys)};
    struct mla_plain_row *row = &work.row;
    *row = (struct mla_plain_row){
        .keys = work.keys,
        .value_n = args->head_dim_v,
        .rope_n = args->head_dim - args->head_dim_v,
        .scale = ring->plan.scale,
        .parts_n = args->ring_size,
        .tiles_per_part = (args->kv_rows - 1) / args->k_chunk_size + 1,
        .parts = calloc(mla_plain_parts_floats(args->ring_size, args->head_dim), sizeof(float)),
        .scores = calloc(keys_most, sizeof *row->scores),
        .head_factors = calloc(keys_most, sizeof *row->head_factors),
        .o = calloc((size_t)args->head_dim_v, sizeof *row->o),
        .run = {.last_shift = -INFINITY},
    };
    if (!work.keys || !row->parts || !row->scores || !row->head_factors || !row->o) {
        goto done;
    }
    if (ring->variant.method == MLA_PLAIN_GATHERED) {
        mla_plain_gather(ring);
    }
    for (int64_t rank = 0; rank < args->ring_size; rank++) {
        mla_plain_visit_order(args->ring_size, args->topology, rank, work.order);
        for (int64_t i = 0; i < args->batch * args->q_rows; i++) {
            struct mla_plain_query query = {
                .rank = rank, .batch = i / args->q_rows, .r = i % args->q_rows};
            if (ring->variant.method == MLA_PLAIN_ROWS_REVERSED) {
                query.r = args->q_rows - 1 - query.r;
            }
            query.pos = ring->positions[rank * args->q_rows + query.r];
            attend_row(ring, &query, &work);
        }
    }
    status = MLA_OK;
done:
    free(row->o);
    free(row->head_factors);
    free(row->scores);
    free(row->parts);
    free(work.keys);
    return status;
}

/* ---- the call ---- */

static int32_t attend(const struct mla_plain_ring *ring)
{
    switch (ring->variant.method) {
    case MLA_PLAIN_TRAVELLING:
        return mla_plain_travel(ring);
    case MLA_PLAIN_PAIRED:
        return mla_plain_pair(ring);
    default:
        return attend_rows(ring);
    }
}

int32_t mla_plain_ring(const struct mla_ring_args *args, struct mla_plain_variant variant,
                       char *message, size_t message_bytes)
{
    struct mla_ring_args call;
    int32_t status = mla_plain_ring_refuse(args, variant, &call, message, message_bytes);
    if (status != MLA_OK) {
        return status;
    }
    status = MLA_ERR_NOMEM;
    uint16_t *zeros = calloc((size_t)call.head_dim, sizeof *zeros);
    struct mla_plain_ring ring = {
        .args = &call,
        .variant = variant,
        .positions = calloc((size_t)(call.ring_size * call.q_rows), sizeof *ring.positions),
        .zeros = zeros,
    };
    if (!ring.positions || !zeros) {
        goto done;
    }
    mla_plain_ring_plan(&call, variant, &ring.plan);
    for (int64_t rank = 0; rank < call.ring_size; rank++) {
        mla_plain_query_positions(&ring, rank, ring.positions + rank * call.q_rows);
    }
    status = attend(&ring);
done:
    free(zeros);
    free(ring.positions);
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", status == MLA_OK ? "" : "out of memory");
    }
    return status;
}
