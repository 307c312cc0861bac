/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.h - the integer maps of both operations: positions, visibility, visiting order, columns.
 *
 * Everything here is pure integer arithmetic on a call that has passed validation; no tensor is
 * touched. The ring knows one rule: a key takes part for a query iff its position is not above the
 * query's and below logical_n. Positions increase with the local row of a shard, so what a query
 * sees of a shard is always a prefix of its rows, and this file gives the length of that prefix in
 * closed form instead of a mask.
 */
#ifndef MLA_IMPL_LAYOUT_H
#define MLA_IMPL_LAYOUT_H

#include "impl/mla.h"

enum mla_layout_mode {
    MLA_LAYOUT_CONTIGUOUS = 0, /* q_rows == kv_rows, shard s holds positions s*kv_rows .. */
    MLA_LAYOUT_BALANCED = 1,   /* zig-zag: rank d holds half-chunks d and 2R-1-d */
    MLA_LAYOUT_CHUNKED = 2,    /* block-cyclic cache, the queries are its last chunk */
    MLA_LAYOUT_ROTATED = 3     /* the same cache, the queries are positions prior .. logical_n-1 */
};

/* The numbers all position maps depend on. */
struct mla_layout {
    int32_t mode;       /* enum mla_layout_mode */
    int32_t topology;   /* enum mla_topology */
    int64_t ring_size;  /* R */
    int64_t q_rows;     /* Nq, queries per rank and height of a cache slab */
    int64_t kv_rows;    /* Nk, local key rows per rank */
    int64_t logical_n;  /* L, keys at positions >= L do not exist */
    int64_t prior;      /* P, meaningful in MLA_LAYOUT_ROTATED only */
    int64_t moved_rows; /* first rows of each shard that travel the ring */
};

/* The layout of an accepted ring call. */
struct mla_layout mla_layout_of(const struct mla_ring_args *args);

/*
 * Position of query row `row` (0 .. q_rows-1) of rank `rank`, or -1 for a pad row: a row of the
 * rotation that is left over because its rank owns fewer new tokens than it has rows.
 */
int64_t mla_layout_query_position(const struct mla_layout *layout, int64_t rank, int64_t row);

/* Position of local key row `row` (0 .. kv_rows-1) of rank `rank`; may be >= logical_n. */
int64_t mla_layout_key_position(const struct mla_layout *layout, int64_t rank, int64_t row);

/*
 * How many leading rows of shard `source` a query at `position` sees: the number of local rows
 * whose key position is <= position and < logical_n. 0 for a pad row (position -1).
 */
int64_t mla_layout_visible_rows(const struct mla_layout *layout, int64_t source, int64_t position);

/* Does rank `rank` attend to shard `source` at all? An inactive step still forwards the shard. */
bool mla_layout_step_active(const struct mla_layout *layout, int64_t rank, int64_t source);

/* Which neighbour a shard arrives from. */
enum mla_hop {
    MLA_HOP_OWN = 0,      /* the rank's own shard */
    MLA_HOP_BACKWARD = 1, /* from rank + 1, travelling towards lower ranks */
    MLA_HOP_FORWARD = 2   /* from rank - 1, travelling towards higher ranks */
};

struct mla_ring_step {
    int64_t source;   /* the shard attended in this step */
    int64_t upstream; /* the neighbour it arrives from; the rank itself for its own shard */
    int32_t hop;      /* enum mla_hop */
};

/*
 * The order in which `rank` visits the shards: its own, then alternately the next from rank + 1
 * (backward, first) and from rank - 1 (forward), until one direction is used up and the other goes
 * on alone. On a ring forward shards travel ceil((R-1)/2) hops and backward ones the rest; on a
 * line all lower ranks' shards come forward and all higher ranks' backward. Writes ring_size
 * entries.
 */
void mla_layout_ring_order(const struct mla_layout *layout, int64_t rank,
                           struct mla_ring_step steps[MLA_RING_SIZE_MAX]);

/* Column, within a head's `latent` columns, at which latent l of the sparse output is stored. */
int64_t mla_layout_out_column(int32_t out_order, int64_t latent, int64_t l);

/* Address of entry (query, j) of the sparse index list, in elements. */
int64_t mla_layout_topk_index(bool is_tiled, int64_t topk, int64_t query, int64_t j);

/*
 * Key rows 0 .. n-1 a dense sparse query row sees: min(keys, offset + query + 1), without overflow
 * for offsets up to INT64_MAX. offset and query are >= 0, keys >= 1.
 */
int64_t mla_layout_dense_keys(int64_t keys, int64_t offset, int64_t query);

/* Is cache row `index` within the reach offset + query of a query row? All arguments >= 0. */
bool mla_layout_index_reached(int64_t index, int64_t offset, int64_t query);

/*
 * Part `part` of `parts_n` when `rows_n` rows are split as evenly as can be, the first parts taking
 * one row more; first row and number of rows.
 */
void mla_layout_split(int64_t rows_n, int64_t parts_n, int64_t part, int64_t *first, int64_t *n);

/* The part of that split that holds `row`, 0 .. rows_n-1; parts_n <= rows_n. */
int64_t mla_layout_part(int64_t rows_n, int64_t parts_n, int64_t row);

#endif
