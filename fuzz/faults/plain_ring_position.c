/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_position.c - positions of queries and keys, and the one rule of who sees whom.
 *
 * Faults in positions are planted where a key is asked for (plain_ring_frontier.c): a wrong position
 * that changes nothing of what a row sees is no fault.
 */
#include "fuzz/faults/plain_ring.h"

bool mla_plain_is_chunked(const struct mla_ring_args *args)
{
    return args->q_rows < args->kv_rows;
}

/* Zig-zag: rank d holds the half-chunks d and 2R-1-d. */
int64_t mla_plain_zigzag_position(const struct mla_ring_args *args, int64_t rank, int64_t local)
{
    int64_t half = args->q_rows / 2;
    if (local < half) {
        return rank * half + local;
    }
    return (2 * args->ring_size - 1 - rank) * half + local - half;
}

int64_t mla_plain_key_position(const struct mla_plain_ring *ring, int64_t source, int64_t local)
{
    const struct mla_ring_args *args = ring->args;
    if (mla_plain_is_chunked(args)) {
        int64_t slab = local / args->q_rows;
        return slab * args->ring_size * args->q_rows + source * args->q_rows + local % args->q_rows;
    }
    if (ring->plan.is_balanced) {
        return mla_plain_zigzag_position(args, source, local);
    }
    return source * args->kv_rows + local;
}

int64_t mla_plain_chunk_start(const struct mla_plain_ring *ring)
{
    int64_t end = (ring->plan.logical_n + MLA_TILE - 1) / MLA_TILE * MLA_TILE;
    return end - ring->args->ring_size * ring->args->q_rows;
}

void mla_plain_query_positions(const struct mla_plain_ring *ring, int64_t rank, int64_t *positions)
{
    const struct mla_ring_args *args = ring->args;
    int64_t rows_n = args->q_rows;
    if (ring->plan.prior >= 0) {
        int64_t packed = 0;
        for (int64_t g = ring->plan.prior; g < ring->plan.logical_n; g++) {
            if ((g / rows_n) % args->ring_size == rank) {
                positions[packed++] = g;
            }
        }
        while (packed < rows_n) {
            positions[packed++] = -1;
        }
        return;
    }
    for (int64_t r = 0; r < rows_n; r++) {
        if (mla_plain_is_chunked(args)) {
            positions[r] = mla_plain_chunk_start(ring) + rank * rows_n + r;
        } else if (ring->plan.is_balanced) {
            positions[r] = mla_plain_zigzag_position(args, rank, r);
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

bool mla_plain_sees(const struct mla_plain_sight *sight)
{
    struct mla_plain_variant variant = sight->ring->variant;
    bool right = sight->pos <= sight->query->pos && sight->pos < sight->ring->plan.logical_n;
    if (variant.fault == MLA_FAULT_NONE) {
        return right;
    }
    bool wrong = mla_plain_sees_by_end(sight, mla_plain_sees_by_frontier(sight, right));
    return wrong != right && mla_plain_has(variant, variant.fault) ? wrong : right;
}
