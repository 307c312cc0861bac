/* SPDX-License-Identifier: Apache-2.0
 *
 * visible.h - which keys one query row sees, as a list.
 *
 * Ring: key k takes part for query q iff pos_k <= pos_q and pos_k < logical_n; the modes differ
 * only in the two position maps. Sparse: the listed multiset or a dense range. The plainest
 * possible formulation, O(ring_size * kv_rows) or O(topk) a row.
 */
#ifndef MLA_ORACLE_VISIBLE_H
#define MLA_ORACLE_VISIBLE_H

#include "impl/mla.h"

/* A key: local row of a source rank (ring), or cache row (sparse, source 0). */
struct mla_oracle_key {
    int64_t source;
    int64_t row;
};

/* The keys of one row: by source, then local row (ring); in listed order (sparse). */
struct mla_oracle_visible {
    bool is_pad;      /* ring with a prior length: the row holds no token */
    int64_t position; /* of the query; -1 for a pad row; sparse: the row itself */
    int64_t keys_n;   /* copies counted */
    struct mla_oracle_key *keys;
    int64_t shard_n[MLA_RING_SIZE_MAX]; /* keys by source */
};

/*
 * The order in which rank d visits the shards: order[0 .. ring_size-1]. Its own first; then hop by
 * hop the one h ranks on and the one h ranks back, each as long as that direction reaches. On a
 * ring the backward direction, which brings the ranks ahead, reaches (ring_size-1) div 2 hops and
 * the other the rest; on a line both reach to its end.
 */
void mla_oracle_visiting_order(const struct mla_ring_args *args, int64_t rank, int64_t *order);

/* Position of local key row t of source s. */
int64_t mla_oracle_key_position(const struct mla_ring_args *args, int64_t source, int64_t row);

/* Position of query row r of rank d, or -1 for a pad row. */
int64_t mla_oracle_query_position(const struct mla_ring_args *args, int64_t rank, int64_t row);

/*
 * The list, for a call that must be accepted and a row inside it (not checked). MLA_OK or
 * MLA_ERR_NOMEM; on error there is nothing to free.
 */
int32_t mla_oracle_visible_ring(const struct mla_ring_args *args, int64_t rank, int64_t row,
                                struct mla_oracle_visible *visible);
int32_t mla_oracle_visible_sparse(const struct mla_sparse_args *args, int64_t row,
                                  struct mla_oracle_visible *visible);
void mla_oracle_visible_free(struct mla_oracle_visible *visible);

#endif
