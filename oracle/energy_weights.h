/* SPDX-License-Identifier: Apache-2.0
 *
 * energy_weights.h - the weights of one row, value row by value row, as the row-energy test sees
 * them.
 *
 * Keys that are copies of one value row share its signs, so their errors are added before they are
 * squared. What is known of a weight comes from errors.h or, where the rounding of p is known, from
 * known.h; energy.c does not care which.
 */
#ifndef MLA_ORACLE_ENERGY_WEIGHTS_H
#define MLA_ORACLE_ENERGY_WEIGHTS_H

#include "oracle/errors.h"

/*
 * In the notation of energy.c. Upper bounds unless called lower; nothing depends on a sign of V.
 *     |aN_l| <= (1+nu) ( key_abs sum_j |v_jl| + row_abs )
 */
struct mla_oracle_energy_weights {
    int64_t n;              /* value rows */
    const uint16_t **value; /* each once */
    double *weight;         /* W_g */
    double *weight_low;     /* W_g, lower */
    double *spread;         /* G_g */
    double *loose;          /* P_g + W_g q */
    double *most;           /* sum of the copies' weights as they meet V */
    double spread_sum;      /* sum_g G_g */
    double key_abs;
    double row_abs;
    double denominator; /* least D, lower */
    double nu;          /* |nu_jl| <= nu, but for */
    double *stored;     /* this, in every column (stored.h) */

    /* The middle o_l: the truth's own, or sum_g centre_g v_gl up to (n+8) 2^-52 sum most |v|. */
    bool is_known;
    double *centre; /* if is_known: W_g, nearest */

    double *numbers; /* all arrays of doubles */
};

/* Fill weights from a truth, a model, and errors whose state is OK; released by _free whatever the
 * result. MLA_OK or MLA_ERR_NOMEM. */
int32_t mla_oracle_energy_weights_make(const struct mla_truth *truth, const struct mla_model *model,
                                       const struct mla_oracle_errors *errors,
                                       struct mla_oracle_energy_weights *weights);
void mla_oracle_energy_weights_free(struct mla_oracle_energy_weights *weights);

#endif
