/* SPDX-License-Identifier: Apache-2.0
 *
 * indices.h - the top-k index lists of a sparse case.
 */
#ifndef MLA_FUZZ_INDICES_H
#define MLA_FUZZ_INDICES_H

#include "fuzz/case.h"

/* Fill list[0 .. topk-1] with the cache rows of query row q, by the case's `indices` recipe. */
void mla_indices_fill(const struct mla_case *test, int64_t q, int32_t *list);

/* Elements of the index tensor, and where (q, j) of the flat list stands in it. */
int64_t mla_indices_elements(const struct mla_sparse_args *args);
int64_t mla_indices_place(const struct mla_sparse_args *args, int64_t q, int64_t j);

#endif
