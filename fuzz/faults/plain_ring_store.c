/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_store.c - where a row's query is read and where its results are put.
 */
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_ring.h"

#include <math.h>
#include <string.h>

static int64_t plane_of(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                        int64_t head)
{
    return query->batch * ring->args->heads + head;
}

const uint16_t *mla_plain_query_row(const struct mla_plain_ring *ring,
                                    const struct mla_plain_query *query, int64_t head)
{
    const struct mla_ring_args *args = ring->args;
    int64_t row = plane_of(ring, query, head) * args->q_rows + query->r;
    int64_t stride = args->head_dim;
    if (row > 0 && mla_plain_has(ring->variant, MLA_FAULT_QUERY_STRIDE_DV)) {
        stride = args->head_dim_v;
    }
    return args->q[query->rank] + row * stride;
}

/* ---- places ---- */

/* Rows that the threads share out evenly, and the rest that none of them gets. */
static bool is_left_over(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                         int64_t head)
{
    const struct mla_ring_args *args = ring->args;
    int64_t rows_n = args->batch * args->heads * args->q_rows;
    int64_t row = plane_of(ring, query, head) * args->q_rows + query->r;
    int64_t blocks_end = args->q_rows / args->q_chunk_size * args->q_chunk_size;
    if (args->threads > 1 && row >= rows_n / args->threads * args->threads &&
        mla_plain_has(ring->variant, MLA_FAULT_ROWS_PER_THREAD_FLOORED)) {
        return true;
    }
    return query->r >= blocks_end && args->q_rows > args->q_chunk_size &&
           mla_plain_has(ring->variant, MLA_FAULT_Q_TAIL_UNWRITTEN);
}

/* The rank and row that a result is stored for. */
static struct mla_plain_query place_of(const struct mla_plain_ring *ring,
                                       const struct mla_plain_query *query)
{
    const struct mla_ring_args *args = ring->args;
    struct mla_plain_query place = *query;
    int64_t half = args->q_rows / 2, chunk = query->pos / half;
    bool is_contiguous = !ring->plan.is_balanced && !mla_plain_is_chunked(args);
    if (is_contiguous && args->ring_size > 1 &&
        mla_plain_has(ring->variant, MLA_FAULT_OUTPUT_UNZIGZAGGED)) {
        bool is_first = chunk < args->ring_size;
        place.rank = is_first ? chunk : 2 * args->ring_size - 1 - chunk;
        place.r = query->pos % half + (is_first ? 0 : half);
    }
    return place;
}

static void store_stats(const struct mla_plain_ring *ring, const struct mla_plain_query *place,
                        int64_t plane, const struct mla_plain_row *row)
{
    const struct mla_ring_args *args = ring->args;
    int64_t pitch = 2 * args->q_rows;
    float max = row->max;
    if (!args->stats) {
        return;
    }
    if (plane > 0 && mla_plain_has(ring->variant, MLA_FAULT_STATS_PITCH)) {
        pitch = args->q_rows;
    }
    float by_default = max / row->scale * (float)(1.0 / sqrt((double)args->head_dim));
    if (by_default != max && isfinite(max) &&
        mla_plain_has(ring->variant, MLA_FAULT_STATS_DEFAULT_SCALE)) {
        max = by_default;
    }
    float *stats = args->stats[place->rank] + plane * pitch;
    stats[place->r] = max;
    stats[args->q_rows + place->r] = row->sum;
}

void mla_plain_store_row(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                         int64_t head, const struct mla_plain_row *row)
{
    const struct mla_ring_args *args = ring->args;
    if (query->pos < 0 && mla_plain_has(ring->variant, MLA_FAULT_EMPTY_ROW_UNSTORED)) {
        return;
    }
    if (is_left_over(ring, query, head)) {
        return;
    }
    struct mla_plain_query place = place_of(ring, query);
    int64_t plane = plane_of(ring, query, head), width = args->head_dim_v;
    int64_t at = plane * args->q_rows + place.r, all = args->batch * args->heads * args->q_rows;
    int64_t first = at * width;
    if (at > 0 && mla_plain_has(ring->variant, MLA_FAULT_OUTPUT_STRIDE_DH)) {
        first = at * args->head_dim; /* what would lie outside is lost */
    }
    for (int64_t c = 0; c < width && first + c < all * width; c++) {
        args->out[place.rank][first + c] = mla_plain_bf16_bits(row->o[c]);
    }
    store_stats(ring, &place, plane, row);
    if (mla_plain_has(ring->variant, MLA_FAULT_OUTPUT_IN_GATHERED)) {
        uint16_t *scratch = args->gathered[query->rank] + query->r * args->head_dim;
        memcpy(scratch, args->out[place.rank] + first, (size_t)width * sizeof *scratch);
    }
}
