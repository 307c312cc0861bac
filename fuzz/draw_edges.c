/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_edges.c - the lengths at which something in a case's geometry changes: tiles, chunks, shards,
 * slabs, the ring's capacity; the list, its blocks, the cache.
 */
#include "fuzz/draw.h"

/* Some multiple of unit, at least one, not far beyond most. */
static int64_t some(int64_t unit, int64_t most, struct mla_rng *rng)
{
    int64_t times = most / unit > 0 ? most / unit : 1;
    return unit * (1 + mla_rng_below(rng, times));
}

int64_t mla_edge_ring(const struct mla_ring_args *r, enum mla_edge edge, struct mla_rng *rng)
{
    int64_t capacity = r->ring_size * r->kv_rows, slab = r->ring_size * r->q_rows;
    /* a chunk may be longer than all there is */
    int64_t k_chunk = r->k_chunk_size < capacity ? r->k_chunk_size : capacity;
    int64_t q_chunk = r->q_chunk_size < capacity ? r->q_chunk_size : capacity;
    switch (edge) {
    case MLA_EDGE_ZERO:
        return 0;
    case MLA_EDGE_TILE:
        return MLA_TILE;
    case MLA_EDGE_TWO_TILES:
        return 2 * MLA_TILE;
    case MLA_EDGE_Q_CHUNK:
        return q_chunk;
    case MLA_EDGE_K_CHUNK:
        return k_chunk;
    case MLA_EDGE_RING_TILES:
        return r->ring_size * MLA_TILE;
    case MLA_EDGE_TWO_RING_TILES:
        return 2 * r->ring_size * MLA_TILE;
    case MLA_EDGE_SHARD:
        return r->kv_rows;
    case MLA_EDGE_TWO_SHARDS:
        return 2 * r->kv_rows;
    case MLA_EDGE_LAST_SHARD:
        return capacity - r->kv_rows;
    case MLA_EDGE_RANK:
        return r->q_rows;
    case MLA_EDGE_SLAB:
        return slab;
    case MLA_EDGE_SOME_SLAB:
        return some(slab, capacity, rng);
    case MLA_EDGE_SOME_RANK:
        return some(r->q_rows, capacity, rng);
    case MLA_EDGE_SOME_CHUNK:
        return some(k_chunk, capacity, rng);
    case MLA_EDGE_CAPACITY:
        return capacity;
    case MLA_EDGE_ANY:
        return 1 + mla_rng_below(rng, capacity);
    default:
        return 1;
    }
}

int64_t mla_edge_sparse(const struct mla_sparse_args *s, enum mla_edge edge, struct mla_rng *rng)
{
    switch (edge) {
    case MLA_EDGE_ZERO:
        return 0;
    case MLA_EDGE_TWO:
        return 2;
    case MLA_EDGE_LIST:
        return s->topk;
    case MLA_EDGE_BLOCK:
        return 128;
    case MLA_EDGE_KEYS:
        return s->keys - 1 - mla_rng_below(rng, 2);
    case MLA_EDGE_HALF:
        return s->keys / 2;
    case MLA_EDGE_QUERIES:
        return s->queries;
    case MLA_EDGE_FOREVER:
        return INT64_MAX;
    case MLA_EDGE_INT: {
        static const int64_t ends[] = {INT32_MAX, UINT32_MAX};
        int64_t end = ends[mla_rng_below(rng, 2)];
        return end + mla_rng_below(rng, 3) - 1;
    }
    case MLA_EDGE_ANY:
        return 1 + mla_rng_below(rng, 700);
    default:
        return 1;
    }
}
