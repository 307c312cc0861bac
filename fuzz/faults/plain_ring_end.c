/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_end.c - faults in who sees what that come from lengths: where the valid keys end, in a
 * tile, in a shard, over all ranks.
 */
#include "fuzz/faults/plain_ring.h"

/* The rank whose shard holds the key at that position (not asked of a zig-zag, which has no end). */
static int64_t owner(const struct mla_ring_args *args, int64_t pos)
{
    return mla_plain_is_chunked(args) ? pos / args->q_rows % args->ring_size : pos / args->kv_rows;
}

/* Keys that are lost at the end. */
static bool too_few(const struct mla_plain_sight *sight, bool right)
{
    int64_t limit = sight->ring->plan.logical_n;
    switch (sight->ring->variant.fault) {
    case MLA_FAULT_LAST_KEY_DROPPED:
        return right && sight->pos < limit - 1;
    case MLA_FAULT_REMAINDER_DROPPED:
        return right && sight->pos < limit - limit % sight->ring->args->ring_size;
    case MLA_FAULT_TILES_FLOORED:
        return right && sight->pos < limit / MLA_TILE * MLA_TILE;
    default:
        return right;
    }
}

bool mla_plain_sees_by_end(const struct mla_plain_sight *sight, bool right)
{
    const struct mla_ring_args *args = sight->ring->args;
    int64_t limit = sight->ring->plan.logical_n;
    bool causal = sight->pos <= sight->query->pos;
    bool tile_is_live = sight->tile_pos < limit; /* it starts with a valid key */
    switch (sight->ring->variant.fault) {
    case MLA_FAULT_KEYS_PAST_END: /* a tile that starts with a valid key is taken whole */
    case MLA_FAULT_PAD_SCORE_ZERO:
        return right || (causal && tile_is_live);
    case MLA_FAULT_ONLY_TILE_UNMASKED:
        return right || (causal && tile_is_live && sight->tile == 0);
    case MLA_FAULT_SHARD_LENGTH_PADDED:
        return causal && sight->pos < (limit + MLA_TILE - 1) / MLA_TILE * MLA_TILE;
    case MLA_FAULT_SHARD_CAPACITY:
        return right || (causal && sight->source == owner(args, limit - 1));
    case MLA_FAULT_ALLOCATED_LENGTH:
        return causal;
    case MLA_FAULT_EXTRA_TILE:
        return right || (causal && sight->pos < args->q_chunk_size);
    default:
        return too_few(sight, right);
    }
}
