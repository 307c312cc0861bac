/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.h - what a declared arithmetic can do to the weights and sums of one row.
 *
 * From a truth and a model: intervals for every key's computed weight, factors for the sums,
 * absolute terms for underflow. The interval of an output element (bound.c) and of the statistics
 * (bound_stats.c) are formed from these. Derivation: errors.c.
 */
#ifndef MLA_ORACLE_ERRORS_H
#define MLA_ORACLE_ERRORS_H

#include "oracle/truth.h"

/*
 * All numbers are upper bounds unless they are called lower. In the notation of errors.c:
 *     computed numerator    c * ( sum_j w_j t_j (1+rho_j)(1+nu_jl) v_jl + aN_l )
 *     computed denominator  c * ( sum_j w_j t_j (1+mu_j) + aD )
 * with one c > 0 for the row, and 1-Gl_j <= t_j <= 1+G_j. The absolute terms are bounded as
 *     |aN_l| <= a ( key_abs sum_j |v_jl| + row_abs ) (1+nu) + flushed V,  |aD| <= a abs_d,
 * where a = 1, or, if is_per_weight, a = sum_j w_j t_j for the very same t.
 */
struct mla_oracle_errors {
    int32_t state; /* enum mla_bound_state; what follows is set for MLA_BOUND_OK only */

    /* Per key. */
    double *up;     /* w_j (1 + G_j) */
    double *down;   /* w_j (1 - Gl_j), lower */
    double *spread; /* w_j G_j */
    double *spill;  /* w_j (1 + H_j) ( r + nu (1 + p_u) ): what |v_jl| itself is multiplied by */
    double *most;   /* w_j (1 + H_j) (1 + p_u): the weight as it meets V */
    double *eps;    /* |sigma s^_j - x_j| */

    double rho;      /* |rho_j| <= rho: rounding of p that the denominator does not see */
    double mu;       /* |mu_j| <= mu */
    double mu_low;   /* 1 + mu_j >= mu_low, lower */
    double nu;       /* |nu_jl| <= nu */
    double nu_low;   /* 1 + nu_jl >= nu_low, lower */
    double nu_terms; /* the part of nu that is not stores, if acc_stores tells them apart; or nu */
    double mu_terms; /* and of mu */
    double mu_terms_low;
    double stores;      /* acc_u roundings a block, if acc_stores says where they are; or 0 */
    double store_u;     /* acc_u of them */
    double store;       /* (1 + acc_u)^stores - 1 */
    bool is_per_weight; /* above */
    double key_abs;     /* above */
    double row_abs;     /* above */
    double abs_d;       /* above */
    double up_sum;      /* sum_j up_j */
    double spread_sum;  /* sum_j spread_j */
    double denominator; /* the least computed denominator / c, lower */
    double greatest;    /* the greatest */
    double growth;      /* no computed p, times its later rescale factors, exceeds this */
    double div;         /* relative error of the normalisation */
    double div_abs;     /* absolute error of the normalisation and the stored result */

    double max_above; /* scaled maximum of the computed scores <= M + max_above */
    double max_below; /* and >= M - max_below */
    double arg_u;     /* relative error of one product or difference in the argument */
    double arg_abs;   /* absolute error of the argument by underflow */

    /* In the kernel's own frame, for known.c. */
    double floor;     /* f */
    double rescales;  /* T */
    double exp_log;   /* e' */
    double alpha_log; /* alpha' */
    double max_abs;   /* M_a */
    double max_any;   /* M_x */
    double key_loss;  /* what underflow in T rescales takes from or adds to one weight */
    double row_loss;  /* what underflow in the accumulators does to a sum */
};

/* Fill errors; arrays are released by mla_oracle_errors_free, whatever the result.
 * MLA_OK or MLA_ERR_NOMEM. */
int32_t mla_oracle_errors_make(const struct mla_truth *truth, const struct mla_model *model,
                               struct mla_oracle_errors *errors);
void mla_oracle_errors_free(struct mla_oracle_errors *errors);

/* mu and mu_low of a term that is added in the first of the last `blocks` blocks: it meets the
 * stores of those blocks only, where acc_stores says where they are. */
struct mla_oracle_sum_factor {
    double mu;
    double mu_low;
};
struct mla_oracle_sum_factor mla_oracle_sum_factor(const struct mla_oracle_errors *errors,
                                                   int64_t blocks);

#endif
