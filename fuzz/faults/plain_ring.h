/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring.h - the parts of the plain ring kernel and what they hand to one another. Private.
 *
 *   plain_ring.c           the call: refuse, plan, then a method
 *   plain_ring_refuse.c    what is refused
 *   plain_ring_plan.c      what the call is taken to mean; what faulty kernels remember of others
 *   plain_ring_position.c  positions of queries and keys
 *   plain_ring_frontier.c  who sees what, wrong by position; plain_ring_end.c: by length
 *   plain_ring_keys.c      the keys of a row and where they are read
 *   plain_ring_empty.c     rows without a key
 *   plain_ring_store.c     a finished row
 *   plain_ring_gather.c    every shard copied into `gathered` first
 *   plain_ring_travel.c    shards that travel from rank to rank, by threads
 *   plain_ring_pair.c      two threads share every tile of a rank; plain_ring_stage.c: what each does
 */
#ifndef MLA_FAULTS_PLAIN_RING_H
#define MLA_FAULTS_PLAIN_RING_H

#include "fuzz/faults/plain_row.h"

/* What the call is taken to mean. A right kernel takes it from the call's arguments alone. */
struct mla_plain_plan {
    int64_t logical_n;
    int64_t prior; /* kv_actual_isl, -1: absent */
    int64_t slot;  /* kv_cache_batch_idx, -1: absent */
    int32_t is_balanced;
    float scale;
    uint32_t active; /* bit s: shard s holds a valid key */
};

struct mla_plain_ring {
    const struct mla_ring_args *args;
    struct mla_plain_variant variant;
    struct mla_plain_plan plan;
    int64_t *positions;    /* pos_q, q_rows of every rank; -1: pad row */
    const uint16_t *zeros; /* head_dim, for keys that are none */
};

struct mla_plain_query {
    int64_t rank, batch, r;
    int64_t pos; /* -1: pad row */
};

/* A key as a query may see it or not. */
struct mla_plain_sight {
    const struct mla_plain_ring *ring;
    const struct mla_plain_query *query;
    int64_t source, local; /* rank and row of the key */
    int64_t pos;
    int64_t tile;     /* row of the first key of its tile */
    int64_t tile_pos; /* and that one's position */
};

/* Refusals. MLA_OK: compute *call. */
int32_t mla_plain_ring_refuse(const struct mla_ring_args *args, struct mla_plain_variant variant,
                              struct mla_ring_args *call, char *message, size_t message_bytes);

void mla_plain_ring_plan(const struct mla_ring_args *args, struct mla_plain_variant variant,
                         struct mla_plain_plan *plan);

/* Full prefill without zig-zag, zig-zag, or block-cyclic cache. */
bool mla_plain_is_chunked(const struct mla_ring_args *args);
int64_t mla_plain_zigzag_position(const struct mla_ring_args *args, int64_t rank, int64_t local);
int64_t mla_plain_key_position(const struct mla_plain_ring *ring, int64_t source, int64_t local);
/* Position of the first query of a chunk without kv_actual_isl. */
int64_t mla_plain_chunk_start(const struct mla_plain_ring *ring);
/* pos_q of every row of a rank. */
void mla_plain_query_positions(const struct mla_plain_ring *ring, int64_t rank, int64_t *positions);

/* Key at or before the query, and valid? */
bool mla_plain_sees(const struct mla_plain_sight *sight);
/* The same by the variant's fault; `right` where that is none of theirs. */
bool mla_plain_sees_by_frontier(const struct mla_plain_sight *sight, bool right);
bool mla_plain_sees_by_end(const struct mla_plain_sight *sight, bool right);

/* Rows of a K tile: k_chunk_size, or the whole shard where that is less. */
int64_t mla_plain_tile_rows(const struct mla_ring_args *args);
/* The shard of `source` as `rank` reads it, its first row. */
const uint16_t *mla_plain_shard(const struct mla_plain_ring *ring, int64_t rank, int64_t source,
                                int64_t batch);
/* The keys of one shard that a query sees, by row; the step is that in which the shard comes.
 * Returns how many; keys has room for kv_rows. */
int64_t mla_plain_list_shard(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                             int64_t step, int64_t source, const uint16_t *shard,
                             struct mla_plain_key *keys);
/* The keys of all shards, in the order in which they come. */
int64_t mla_plain_list_row(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                           const int64_t *order, struct mla_plain_key *keys);
/* What a kernel may do with keys its row does not see. */
void mla_plain_touch_hidden(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                            struct mla_plain_row *row);

/* Pad rows: the keys they are given (none), and what a row without keys is made of. */
int64_t mla_plain_list_pad(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                           const int64_t *order, struct mla_plain_key *keys);
void mla_plain_spoil_empty(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                           struct mla_plain_key *keys, struct mla_plain_row *row);

/* q of a row. */
const uint16_t *mla_plain_query_row(const struct mla_plain_ring *ring,
                                    const struct mla_plain_query *query, int64_t head);
/* row, finished, to out and stats. */
void mla_plain_store_row(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                         int64_t head, const struct mla_plain_row *row);

/* The methods that are more than a loop over rows. MLA_OK, or MLA_ERR_NOMEM with nothing written. */
void mla_plain_gather(const struct mla_plain_ring *ring);
/* Rows of every shard that are copied: with kv_actual_isl only the slabs that hold a valid key. */
int64_t mla_plain_moved_rows(const struct mla_plain_ring *ring);
/* Where batch entry `batch` of the call stands in `gathered`. */
int64_t mla_plain_gathered_batch(const struct mla_plain_ring *ring, int64_t batch);
int32_t mla_plain_travel(const struct mla_plain_ring *ring);
int32_t mla_plain_pair(const struct mla_plain_ring *ring);

/* A delay that faulty threads are given, in multiples of 0.1 ms: long against what it holds up. */
void mla_plain_nap(int tenths);

#endif
