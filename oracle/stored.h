/* SPDX-License-Identifier: Apache-2.0
 *
 * stored.h - what roundings that act on a whole accumulator can do to the sums of one row.
 *
 * A bf16 accumulator may err by 2^-8 at every store, and a rescale by its factor's error, but of
 * what is held then: of a sum in which values of both signs have cancelled, not of the sum of their
 * magnitudes. Where the model says when it stores (acc_stores), the oracle knows what was held.
 * Derivation: stored.c.
 */
#ifndef MLA_ORACLE_STORED_H
#define MLA_ORACLE_STORED_H

#include "oracle/known.h"

/* Doubles of room for each column. */
#define MLA_ORACLE_STORED_ROOM 8

/*
 * For a usable known of a row whose model has acc_stores MLA_ACC_STORES_BLOCKS (is_stored). In the
 * notation of known.h every column's computed numerator is
 *     sum_j W_j (1+a_jl) v_jl + stored_l + aN_l,  |a_jl| <= nu_terms,
 * and stored[l] is set to an upper bound of |stored_l|. If middle is not NULL (and the sum adds
 * rounded p), apart[l] is set to one of
 *     | sum_j W_j (1+a_jl) v_jl - t_l sum_j W_j |,  t = middle.
 * room: MLA_ORACLE_STORED_ROOM columns_n doubles; stored and apart lie in it.
 */
struct mla_oracle_stored {
    const double *stored;
    const double *apart;
};
struct mla_oracle_stored mla_oracle_stored_columns(const struct mla_truth *truth,
                                                   const struct mla_oracle_errors *errors,
                                                   const struct mla_oracle_known *known,
                                                   const double *middle, double *room);

#endif
