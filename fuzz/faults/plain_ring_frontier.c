/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_frontier.c - faults in who sees what that come from positions: where the causal
 * frontier of a row lies, which mask a tile gets, which layout the ranks hold.
 */
#include "fuzz/faults/plain_ring.h"

/* Does a row with that frontier see a key at that position? */
static bool reaches(const struct mla_plain_sight *sight, int64_t frontier, int64_t pos)
{
    return pos <= frontier && pos < sight->ring->plan.logical_n;
}

/* Position of the last key of the tile. */
static int64_t last_pos(const struct mla_plain_sight *sight)
{
    const struct mla_ring_args *args = sight->ring->args;
    int64_t end = sight->tile + args->k_chunk_size;
    end = end < args->kv_rows ? end : args->kv_rows;
    return mla_plain_key_position(sight->ring, sight->source, end - 1);
}

/* The mask of a tile in the place of the right one. */
static bool by_tile(const struct mla_plain_sight *sight, bool right)
{
    const struct mla_ring_args *args = sight->ring->args;
    int64_t limit = sight->ring->plan.logical_n;
    switch (sight->ring->variant.fault) {
    case MLA_FAULT_DIAGONAL_FIRST_CHUNK: /* a later tile is taken whole once it is begun */
        return sight->tile > 0 && sight->tile_pos <= sight->query->pos ? sight->pos < limit : right;
    case MLA_FAULT_BALANCED_UNMASKED:
        return sight->ring->plan.is_balanced && sight->source == sight->query->rank
                   ? sight->pos < limit
                   : right;
    case MLA_FAULT_DIAGONAL_MASKED_TWICE: /* a tile that is cut by the diagonal is masked whole */
        return right && last_pos(sight) <= sight->query->pos;
    case MLA_FAULT_K_TAIL_DROPPED:
        return right && sight->tile + args->k_chunk_size <= args->kv_rows;
    default:
        return right;
    }
}

/* The frontier of a chunk that comes after others. */
static bool by_origin(const struct mla_plain_sight *sight, bool right)
{
    const struct mla_plain_ring *ring = sight->ring;
    int64_t r = sight->query->r, pos_q = sight->query->pos, chunk = ring->args->q_chunk_size;
    int64_t prior = ring->plan.prior > 0 ? ring->plan.prior : 0;
    bool is_chunked = mla_plain_is_chunked(ring->args);
    switch (ring->variant.fault) {
    case MLA_FAULT_FRONTIER_LOCAL_ROW:
        return is_chunked ? reaches(sight, r, sight->pos) : right;
    case MLA_FAULT_FRONTIER_TOP_LEFT:
        return reaches(sight, pos_q - prior, sight->pos);
    case MLA_FAULT_CHUNK_ORIGIN_ZERO:
        return is_chunked && ring->plan.prior < 0
                   ? reaches(sight, pos_q - mla_plain_chunk_start(ring), sight->pos)
                   : right;
    case MLA_FAULT_Q_BLOCK_ORIGIN_ZERO:
        return r >= chunk ? reaches(sight, r % chunk, sight->pos) : right;
    case MLA_FAULT_CHUNK_START_ALIGNED:
        return reaches(sight, pos_q - prior % ring->args->k_chunk_size, sight->pos);
    default:
        return right;
    }
}

/* Another layout than the one that is meant. */
static bool by_layout(const struct mla_plain_sight *sight, bool right)
{
    const struct mla_ring_args *args = sight->ring->args;
    const struct mla_plain_query *query = sight->query;
    bool is_balanced = sight->ring->plan.is_balanced != 0;
    bool is_contiguous = !is_balanced && !mla_plain_is_chunked(args);
    int64_t half = args->q_rows / 2;
    bool straddles = is_balanced && sight->tile < half && half < sight->tile + args->k_chunk_size;
    switch (sight->ring->variant.fault) {
    case MLA_FAULT_ZIGZAG_WHEN_CONTIGUOUS:
        return is_contiguous
                   ? reaches(sight, mla_plain_zigzag_position(args, query->rank, query->r),
                             mla_plain_zigzag_position(args, sight->source, sight->local))
                   : right;
    case MLA_FAULT_CONTIGUOUS_WHEN_BALANCED:
        return is_balanced ? reaches(sight, query->rank * args->q_rows + query->r,
                                     sight->source * args->q_rows + sight->local)
                           : right;
    case MLA_FAULT_STRIDED_QUERIES:
        return is_contiguous ? reaches(sight, query->rank + query->r * args->ring_size, sight->pos)
                             : right;
    case MLA_FAULT_ZIGZAG_STRADDLE: /* the tile's first key says which half all of it is */
        return straddles ? reaches(sight, query->pos, sight->source * half + sight->local) : right;
    case MLA_FAULT_ZIGZAG_STRADDLE_LOST:
        return right && !(straddles && sight->source < query->rank);
    default:
        return right;
    }
}

bool mla_plain_sees_by_frontier(const struct mla_plain_sight *sight, bool right)
{
    switch (sight->ring->variant.fault) {
    case MLA_FAULT_CAUSAL_ONE_MORE:
        return reaches(sight, sight->query->pos + 1, sight->pos);
    case MLA_FAULT_CAUSAL_ONE_LESS:
        return reaches(sight, sight->query->pos - 1, sight->pos);
    default:
        return by_layout(sight, by_origin(sight, by_tile(sight, right)));
    }
}
