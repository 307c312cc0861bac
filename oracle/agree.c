/* SPDX-License-Identifier: Apache-2.0
 *
 * agree.c - two evaluations of one row against each other.
 *
 * Outputs and the log-sum-exp may differ by their radii together. The rest of a truth are upper
 * bounds that exceed the real number by a known factor at most, so two of them differ by no more
 * than that factor either way.
 */
#include "oracle/truth.h"

#include <math.h>

/* |(a + a_low) - (b + b_low)| over radius, formed exactly and rounded once. */
static double pair_ratio(const double a[2], const double b[2], double radius)
{
    mpfr_t t;

    mpfr_init2(t, 2200); /* any sum of four doubles */
    (void)mpfr_set_d(t, a[0], MPFR_RNDN);
    (void)mpfr_add_d(t, t, a[1], MPFR_RNDN);
    (void)mpfr_sub_d(t, t, b[0], MPFR_RNDN);
    (void)mpfr_sub_d(t, t, b[1], MPFR_RNDN);
    const double distance = fabs(mpfr_get_d(t, MPFR_RNDA));

    mpfr_clear(t);
    return distance == 0.0 ? 0.0 : distance / radius;
}

static double lse_ratio(const struct mla_truth *a, const struct mla_truth *b)
{
    const double radius = 0x1p-62 * (1.0 + fabs(a->log_sum_exp));
    mpfr_t t;

    mpfr_init2(t, 256);
    (void)mpfr_sub(t, a->exact_lse, b->exact_lse, MPFR_RNDN);
    const double distance = fabs(mpfr_get_d(t, MPFR_RNDA));

    mpfr_clear(t);
    return distance / (2.0 * radius);
}

/* Are n pairs of upper bounds within 1 + slack of each other? */
static bool bounds_agree(const double *a, const double *b, int64_t n, double slack)
{
    for (int64_t i = 0; i < n; i++) {
        if (!(a[i] <= b[i] * (1.0 + slack) && b[i] <= a[i] * (1.0 + slack))) {
            return false;
        }
    }
    return true;
}

static bool upper_bounds_agree(const struct mla_truth *a, const struct mla_truth *b)
{
    const int64_t n = a->keys_n;
    const double sums = (double)(2 * a->width + 8) * 0x1p-52; /* a sum of `width` terms, raised */
    const double values = (double)(2 * n + 8) * 0x1p-52;

    return bounds_agree(a->magnitude, b->magnitude, n, sums) &&
           bounds_agree(a->lost, b->lost, n, sums) &&
           bounds_agree(a->score, b->score, n, 0x1p-49) &&
           bounds_agree(a->gap, b->gap, n, 0x1p-49) &&
           bounds_agree(a->weight, b->weight, n, 0x1p-48) &&
           bounds_agree(a->abs_value, b->abs_value, a->columns_n, values);
}

double mla_truth_disagreement(const struct mla_truth *a, const struct mla_truth *b)
{
    double worst = 0.0;

    if (a->state != b->state || a->keys_n != b->keys_n || a->columns_n != b->columns_n) {
        return INFINITY;
    }
    if (a->state != MLA_ROW_OK) {
        return 0.0;
    }
    if (!upper_bounds_agree(a, b)) {
        return INFINITY;
    }
    const struct mla_oracle_mpfr_state state = mla_oracle_mpfr_enter();

    worst = mpfr_equal_p(a->exact_max, b->exact_max) ? lse_ratio(a, b) : INFINITY;
    for (int64_t l = 0; l < a->columns_n; l++) {
        const double x[2] = {a->out[l], a->out_low[l]};
        const double y[2] = {b->out[l], b->out_low[l]};

        worst = fmax(worst, pair_ratio(x, y, a->out_low_radius[l] + b->out_low_radius[l]));
    }
    mla_oracle_mpfr_leave(&state);
    return worst;
}
