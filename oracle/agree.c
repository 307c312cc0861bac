/* SPDX-License-Identifier: Apache-2.0
 *
 * agree.c - two evaluations of one row against each other.
 *
 * Outputs and the log-sum-exp may differ by their radii together. The rest of a truth are upper
 * bounds that exceed the real number by a known factor at most, so two of them differ by no more
 * than that factor either way. Each truth must keep its own promises first: a radius that is not a
 * number, or too wide to say anything, would agree with whatever it is compared with.
 */
#include "oracle/bf16.h"
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
           bounds_agree(a->lost, b->lost, n, sums) && bounds_agree(a->score, b->score, n, 0.0) &&
           bounds_agree(a->gap, b->gap, n, 0.0) && bounds_agree(a->weight, b->weight, n, 0x1p-48) &&
           bounds_agree(a->abs_value, b->abs_value, a->columns_n, values);
}

/* Are the radii fine, and do they hold for `out` alone as well? 2^-63: weights are upper bounds. */
static bool radii_hold(const struct mla_truth *t)
{
    for (int64_t l = 0; l < t->columns_n; l++) {
        const double radius = t->out_low_radius[l];
        double spread = 0.0;

        for (int64_t j = 0; j < t->keys_n; j++) {
            spread += t->weight[j] * fabs(mla_oracle_bf16_value(t->value[j][l]));
        }
        if (!(radius >= 0.0 && radius <= fmax(0x1p-63 * spread, 0x1p-190) &&
              t->out_radius[l] >= fabs(t->out_low[l]) + radius &&
              t->out_radius[l] <= 2.0 * (fabs(t->out_low[l]) + radius))) {
            return false;
        }
    }
    return true;
}

/* has_subnormal_value may be true without need, never false. */
static bool subnormals_are_known(const struct mla_truth *t)
{
    for (int64_t j = 0; !t->has_subnormal_value && j < t->keys_n; j++) {
        for (int64_t l = 0; l < t->columns_n; l++) {
            const unsigned magnitude = t->value[j][l] & 0x7fffu;

            if (magnitude > 0 && magnitude < 0x80) {
                return false;
            }
        }
    }
    return true;
}

/* Do the doubles say what the MPFR numbers say? */
static bool doubles_hold(const struct mla_truth *t)
{
    return t->max == mpfr_get_d(t->exact_max, MPFR_RNDN) &&
           t->log_sum_exp == mpfr_get_d(t->exact_lse, MPFR_RNDN);
}

static bool keeps_promises(const struct mla_truth *t)
{
    return radii_hold(t) && subnormals_are_known(t) && doubles_hold(t);
}

/* ln Z of two truths: each to nearest, of a Z that may be off by 2^-64. */
static bool log_sums_agree(const struct mla_truth *a, const struct mla_truth *b)
{
    return fabs(a->log_sum - b->log_sum) <= 0x1p-52 * fabs(a->log_sum) + 0x1p-62;
}

/* fmax would drop a NaN. */
static double worse(double worst, double ratio)
{
    if (isnan(ratio)) {
        return INFINITY;
    }
    return fmax(worst, ratio);
}

double mla_truth_disagreement(const struct mla_truth *a, const struct mla_truth *b)
{
    double worst = 0.0;

    if (a->state != b->state || a->keys_n != b->keys_n || a->columns_n != b->columns_n ||
        a->width != b->width || a->is_ring != b->is_ring || !(a->scale == b->scale)) {
        return INFINITY;
    }
    if (a->state != MLA_ROW_OK) {
        return 0.0;
    }
    if (!upper_bounds_agree(a, b)) {
        return INFINITY;
    }
    const struct mla_oracle_mpfr_state state = mla_oracle_mpfr_enter();

    if (!keeps_promises(a) || !keeps_promises(b) || !log_sums_agree(a, b) ||
        !mpfr_equal_p(a->exact_max, b->exact_max)) {
        worst = INFINITY;
    }
    worst = worse(worst, lse_ratio(a, b));
    for (int64_t l = 0; l < a->columns_n; l++) {
        const double x[2] = {a->out[l], a->out_low[l]};
        const double y[2] = {b->out[l], b->out_low[l]};

        worst = worse(worst, pair_ratio(x, y, a->out_low_radius[l] + b->out_low_radius[l]));
    }
    mla_oracle_mpfr_leave(&state);
    return worst;
}
