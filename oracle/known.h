/* SPDX-License-Identifier: Apache-2.0
 *
 * known.h - the weights of a kernel that says in which frame its p becomes bf16.
 *
 * Rounding p to bf16 costs a relative 2^-8 when nothing else is known. But p = exp(x_j - maximum of
 * its block) is a number the oracle knows too: unless a rounding boundary of bf16 lies within the
 * kernel's other errors, its rounded p is one certain number. Derivation: known.c.
 */
#ifndef MLA_ORACLE_KNOWN_H
#define MLA_ORACLE_KNOWN_H

#include "oracle/errors.h"

/*
 * In the kernel's own frame (its p times its later rescale factors), for a row and a model whose
 * errors.h state is OK. Everything is an upper bound unless it is called lower or a middle.
 *     computed numerator    sum_j W_j (1+nu_jl) v_jl + aN_l
 *     computed denominator  sum_j U_j (1+mu_j) + aD
 * W_j is the weight as it meets V, U_j what the sum adds of it: W_j itself if the sum adds the
 * rounded p, else the p before its rounding, carried by the same rescale factors. nu, mu as in
 * errors.h.
 *     |W_j - centre_j| <= half_j,  W_j <= most_j
 *     |sum_j U_j - sum| <= sum_half,  sum_j U_j <= sum_most
 *     |aN_l| <= (1+nu) (key_loss sum_j |v_jl| + row_loss) + flushed V,  |aD| <= abs_d
 * (key_loss and row_loss of errors.h). W, U and the rescale factors may move together; for the
 * output that matters, and is in spread, spill and share:
 *     | sum_j W_j (1+nu_jl) v_jl - t sum_j U_j (1+mu_j) |
 *         <= sum_j spread_j |v_jl - t| + sum_j spill_j |v_jl| + share |t|
 * for t = sum_j centre_j v_jl / sum as computed in double by mla_oracle_known_columns; if is_stored,
 * with |nu_jl| <= nu_terms: stores are left out, and added by stored.h.
 */
struct mla_oracle_known {
    bool is_stored;   /* acc_stores says when accumulators are rounded (stored.h) */
    bool sum_rounded; /* the sum adds the rounded p */
    bool is_usable;   /* the rest holds something, and it is narrower than what errors.h says */
    double *centre;   /* middle */
    double *half;     /* above */
    double *most;     /* above */
    double *spread;   /* above; 0 for a weight that is certain */
    double *spill;    /* above */
    double sum;       /* middle */
    double sum_half;  /* above */
    double sum_most;  /* above */
    double sum_loose; /* sum_j mu_j U_j at most, U_j at its upper end */
    double *own;      /* half, but for what the block's common rescale factors do (stored.c) */
    double *step;     /* per block: d_b of stored.c */
    int64_t blocks_n;
    int64_t *ends;   /* of the blocks in visiting order: block b ends before the ends[b]-th key */
    double share;    /* above */
    double abs_d;    /* above */
    bool is_located; /* the two that follow hold, even if the rest is not narrower */
    double denominator; /* the least computed denominator, lower; may be below 0 */
    double greatest;    /* the greatest, upper */
};

/* Does the model say how every p is rounded, and in which frame? */
bool mla_oracle_known_applies(const struct mla_model *model);

/*
 * Fill known; arrays are released by mla_oracle_known_free, whatever the result. is_usable is false
 * where the model does not say enough, and where the errors are so large that knowing the frame
 * gains nothing; the arrays are then not to be read. denominator and greatest may be read wherever
 * is_located is true. MLA_OK or MLA_ERR_NOMEM.
 */
int32_t mla_oracle_known_make(const struct mla_truth *truth, const struct mla_model *model,
                              const struct mla_oracle_errors *errors,
                              struct mla_oracle_known *known);
void mla_oracle_known_free(struct mla_oracle_known *known);

/*
 * For every column the interval middle[l] +- radius[l] of the quotient before normalisation. lost:
 * flushed V of every column, from `most`. work: (1 + MLA_ORACLE_STORED_ROOM) columns_n doubles
 * (stored.h). known must be usable.
 */
void mla_oracle_known_columns(const struct mla_truth *truth, const struct mla_oracle_errors *errors,
                              const struct mla_oracle_known *known, const double *lost,
                              double *middle, double *radius, double *work);

#endif
