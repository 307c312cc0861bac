/* SPDX-License-Identifier: Apache-2.0
 *
 * naive.h - the two operations in double, one row at a time: the expected values of the tests here.
 *
 * Works from positions, where the kernels work from buffers: a row asks for the keys at positions
 * 0, 1, 2, ... and looks up where each is stored. Test support, not part of any library.
 */
#ifndef MLA_FAULTS_NAIVE_H
#define MLA_FAULTS_NAIVE_H

#include "impl/mla.h"

struct mla_naive_result {
    int64_t keys_n; /* keys the row sees, copies counted; 0: pad row or empty row, o is 0 */
    double max;     /* maximum of scale*score; -inf without keys */
    double lse;     /* log sum exp(scale*score); -inf without keys */
};

/* Position of a query row, -1 for a pad row; where the key at a position is stored. */
int64_t mla_naive_query_position(const struct mla_ring_args *args, int64_t rank, int64_t row);
void mla_naive_key_place(const struct mla_ring_args *args, int64_t position, int64_t *rank,
                         int64_t *row);

/* Entry j of row q of the index list, from either layout. */
int64_t mla_naive_listed(const struct mla_sparse_args *args, int64_t q, int64_t j);

/* The definition; o has head_dim_v (ring) or latent (sparse, natural order) entries. */
struct mla_naive_result mla_naive_ring(const struct mla_ring_args *args, int64_t rank,
                                       int64_t batch, int64_t head, int64_t row, double *o);
struct mla_naive_result mla_naive_sparse(const struct mla_sparse_args *args, int64_t q,
                                         int64_t head, double *o);

/* Exact value of a bf16. */
double mla_naive_bf16(uint16_t bits);

#endif
