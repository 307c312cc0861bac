/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_list.h - the parts of the plain sparse operation before and after the rows. Private to
 * plain_sparse.c and the files beside it.
 */
#ifndef MLA_FAULTS_PLAIN_LIST_H
#define MLA_FAULTS_PLAIN_LIST_H

#include "fuzz/faults/plain_row.h"

/* plain_index.c: entry j of row q's list, always a row of the cache. */
int64_t mla_plain_entry(const struct mla_sparse_args *args, int64_t q, int64_t j,
                        struct mla_plain_variant variant);
/* The place of that entry in topk_indices, and the core that computes row q. */
int64_t mla_plain_entry_place(const struct mla_sparse_args *args, int64_t q, int64_t j);
int64_t mla_plain_core(const struct mla_sparse_args *args, int64_t q);

/* plain_offset.c: the largest index row q may use, and what a fault takes for it. */
int64_t mla_plain_last_allowed(const struct mla_sparse_args *args, int64_t q);
int64_t mla_plain_last_faulty(const struct mla_sparse_args *args, int64_t q,
                              struct mla_plain_variant variant);

/* plain_list.c: the keys row q attends to, in listed order. Returns how many; keys has room for
 * topk (dense: keys) and two more, and holds what the row before left there. */
int64_t mla_plain_list(const struct mla_sparse_args *args, int64_t q,
                       struct mla_plain_variant variant, struct mla_plain_key *keys);
struct mla_plain_key mla_plain_cache_row(const struct mla_sparse_args *args, int64_t index,
                                         struct mla_plain_variant variant);

/* plain_edit.c: the list as a fault leaves it. */
int64_t mla_plain_edit_list(const struct mla_sparse_args *args, int64_t q,
                            struct mla_plain_variant variant, struct mla_plain_key *keys,
                            int64_t keys_n);

/*
 * plain_refuse.c: the status of mla_validate_sparse, or what a fault makes of it. MLA_OK and *ends
 * false: go on and compute; else return the status. *rows_n: rows to compute before all the same.
 */
int32_t mla_plain_refuse(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         char *message, size_t message_bytes, bool *ends, int64_t *rows_n);

/* plain_refuse_index.c: the first entry that is no row of the cache and that a faulty check finds,
 * as q*topk + j; -1: none. With variant.fault MLA_FAULT_NONE: the first there is. */
int64_t mla_plain_bad_entry(const struct mla_sparse_args *args, struct mla_plain_variant variant);

#endif
