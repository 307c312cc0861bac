/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_gather.c - every shard is copied into `gathered` before anything is computed.
 */
#include "fuzz/faults/plain_ring.h"

#include <string.h>

int64_t mla_plain_moved_rows(const struct mla_plain_ring *ring)
{
    const struct mla_ring_args *args = ring->args;
    int64_t slab = args->ring_size * args->q_rows;
    if (ring->plan.prior < 0) {
        return args->kv_rows;
    }
    int64_t moved = (ring->plan.logical_n + slab - 1) / slab * args->q_rows;
    if (moved < args->kv_rows && mla_plain_has(ring->variant, MLA_FAULT_GATHERED_ALL_SLABS)) {
        return args->kv_rows;
    }
    return moved;
}

int64_t mla_plain_gathered_batch(const struct mla_plain_ring *ring, int64_t batch)
{
    const struct mla_ring_args *args = ring->args;
    if (ring->plan.slot < 0) {
        return batch;
    }
    if (args->gathered_batch != args->kv_batch) {
        return 0;
    }
    if (ring->plan.slot > 0 && mla_plain_has(ring->variant, MLA_FAULT_SLOT_GATHERED_AT_ZERO)) {
        return 0;
    }
    return ring->plan.slot;
}

void mla_plain_gather(const struct mla_plain_ring *ring)
{
    const struct mla_ring_args *args = ring->args;
    size_t bytes = (size_t)(mla_plain_moved_rows(ring) * args->head_dim) * sizeof(uint16_t);
    for (int64_t i = 0; i < args->ring_size * args->ring_size * args->batch; i++) {
        int64_t rank = i % args->ring_size, source = i / args->ring_size % args->ring_size;
        int64_t batch = i / args->ring_size / args->ring_size;
        int64_t kv_batch = ring->plan.slot >= 0 ? ring->plan.slot : batch;
        int64_t row =
            mla_plain_gathered_batch(ring, batch) * args->gathered_rows + source * args->kv_rows;
        memcpy(args->gathered[rank] + row * args->head_dim,
               args->kv[source] + kv_batch * args->kv_rows * args->head_dim, bytes);
    }
}
