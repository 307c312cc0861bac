/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_stats.c - the set of (maximum, sum) pairs a declared arithmetic may report for a row.
 *
 * In the notation of errors.c the computed sum is l = c D with c = exp(M - shift) Z exactly, so
 * shift + ln l = M + ln Z + ln D, and |shift + ln l - LSE| is at most the larger of
 * -ln(least D), ln(greatest D). Here an error common to all keys does not cancel.
 *
 * The reported maximum. The row's last shift is, with g and M_a as in errors.c:
 *   difference  sigma m^ exactly: it lies in [M - max_below, M + max_above];
 *   scaled      a kept rounding of it: off by g M_a more; that very number is the sum's frame;
 *   mixed       rounded anew at each use: off by g M_a more, and not the frame: so is the LSE.
 * A report that is the shift scaled anew (MLA_STATS_ROUNDED) is off by g M_a + arg_abs in
 * addition, and so is the log-sum-exp: a textbook bound of the sum alone would miss both. Another reference point may be as low as it likes.
 *
 * The sum by itself. Where the model says in which frame its p becomes bf16, known.c bounds the computed
 * denominator in that very frame, the row's last one; and a kernel that reports its shift, rounded anew
 * or not, reports the sum that was formed with it. So the sum must lie there too, which is far less
 * than -ln(1-2^-8) around the true one if it adds rounded p. (With MLA_STATS_OTHER the sum's
 * frame is another.) Both are sets that a conforming kernel never leaves, so it stays in their meet.
 *
 * Where the arithmetic is finer than binary32 (add_u < 2^-24), storing a statistic is a rounding of
 * its own, as it is of an output (bound_format.c): less than one last place of what is reported, 2^-23 of
 * it or 2^-149. max + ln(sum) is off by the one and by the logarithm of the other.
 *
 * A report of y = max + ln(sum) alone, as one binary32: the logarithm and the sum are rounded on the way,
 * k times by at most 2^-24 of what is held, so |y - (max + ln sum)| <= g_k (|max| + |ln sum|), g_k as in
 * errors.c for 2^-24. What was added is not seen, but the maximum lies in its set, |max| <= X, and
 * max + ln(sum) within r of the LSE, so |ln sum| <= |LSE| + r + X. (A sum that is flushed to 0 loses less
 * than the 2^-50 in r.) Of a reference point that may be as low as it likes nothing bounds |max|: no bound.
 *
 * max + ln(sum) of a report is formed in MPFR with 192 bits: both are binary32, so its error is
 * below 2^-190 (|max| + |ln sum|), and that of the definition's below n 2^-180 (1 + |LSE|); "tiny"
 * and 2^-50 (1 + |LSE|) hold both, and the rounding of the definition's values to double, many
 * times over.
 */
#include "oracle/errors.h"
#include "oracle/known.h"

#include <float.h>
#include <math.h>

static double up(double x)
{
    return mla_oracle_up(x, 40);
}

/* The set, and M_a-sized errors, from errors of state MLA_BOUND_OK. */
static struct mla_bound_stats stats_of(const struct mla_truth *t, const struct mla_model *model,
                                       const struct mla_oracle_errors *e)
{
    const double size = up(fabs(t->max) + fmax(e->max_above, e->max_below)); /* M_a */
    const double again = up(e->arg_u * size + e->arg_abs);
    const double tiny = 0x1p-50 * fabs(t->max) + DBL_MIN;
    double shift = model->arg_form == MLA_ARG_DIFFERENCE ? 0.0 : again;
    double frame = model->arg_form == MLA_ARG_MIXED ? again : 0.0;
    struct mla_bound_stats stats = {.lse = t->log_sum_exp, .sum_hi = INFINITY};

    if (model->stats_max != MLA_STATS_SHIFT) {
        /* A scaled or mixed shift may be larger than M_a by g: the second rounding sees that. */
        shift += again * (1.0 + e->arg_u);
        frame += again * (1.0 + e->arg_u);
    }
    stats.max_hi = nextafter(t->max + up(e->max_above + shift + tiny), INFINITY);
    stats.max_lo = nextafter(t->max - up(e->max_below + shift + tiny), -INFINITY);
    if (model->stats_max == MLA_STATS_OTHER) {
        stats.max_lo = -INFINITY;
    }
    stats.lse_radius = up(fmax(-log(e->denominator), log(e->greatest))) + up(frame) +
                       0x1p-50 * (1.0 + fabs(t->log_sum_exp)) + tiny;
    return stats;
}

/* The sum in its own frame. */
static int32_t locate_sum(const struct mla_truth *t, const struct mla_model *model,
                          const struct mla_oracle_errors *e, struct mla_bound_stats *stats)
{
    struct mla_oracle_known known;
    int32_t state = MLA_BOUND_OK;

    if (model->stats_max == MLA_STATS_OTHER || !mla_oracle_known_applies(model)) {
        return state;
    }
    state = mla_oracle_known_make(t, model, e, &known);
    if (state == MLA_OK && known.is_located) {
        stats->sum_lo = fmax(0.0, known.denominator);
        stats->sum_hi = known.greatest;
    }
    mla_oracle_known_free(&known);
    return state;
}

int32_t mla_bound_stats(const struct mla_truth *truth, const struct mla_model *model,
                        struct mla_bound_stats *stats)
{
    struct mla_oracle_errors errors = {0};
    int32_t state = MLA_BOUND_OK;

    switch (truth->state) {
    case MLA_ROW_OK:
        break;
    case MLA_ROW_EMPTY:
        return MLA_BOUND_EMPTY;
    case MLA_ROW_NONFINITE:
        return MLA_BOUND_NONFINITE;
    default:
        return MLA_BOUND_RANGE;
    }
    if (mla_bound_model_error(model, truth->is_ring) != NULL) {
        return MLA_BOUND_MODEL;
    }
    state = MLA_ERR_NOMEM;
    if (mla_oracle_errors_make(truth, model, &errors) == MLA_OK) {
        state = errors.state;
    }
    if (state == MLA_BOUND_OK) {
        *stats = stats_of(truth, model, &errors);
        state = locate_sum(truth, model, &errors, stats);
    }
    mla_oracle_errors_free(&errors);
    return state;
}

/* |max + ln(sum) - LSE|, upper; max finite, sum > 0 and finite. */
static double lse_distance(const struct mla_truth *truth, float max, float sum)
{
    const struct mla_oracle_mpfr_state state = mla_oracle_mpfr_enter();
    mpfr_t t;
    double distance;

    mpfr_init2(t, 192);
    mpfr_set_flt(t, sum, MPFR_RNDN);
    mpfr_log(t, t, MPFR_RNDN);
    mpfr_add_d(t, t, (double)max, MPFR_RNDN);
    mpfr_sub(t, t, truth->exact_lse, MPFR_RNDN);
    distance = fabs(mpfr_get_d(t, MPFR_RNDA));
    mpfr_clear(t);
    mla_oracle_mpfr_leave(&state);
    return distance;
}

/* distance over radius: 0 when exact, +inf when the radius is 0 and the distance is not. */
static double ratio_of(double distance, double radius)
{
    if (distance == 0.0) {
        return 0.0;
    }
    return radius > 0.0 ? distance / radius : INFINITY;
}

/* Distance of the sum from the middle of its interval over half its width. */
static double sum_ratio(const struct mla_bound_stats *stats, double sum)
{
    const double half = 0.5 * (stats->sum_hi - stats->sum_lo);

    return isinf(stats->sum_hi) ? 0.0 : ratio_of(fabs(sum - (stats->sum_lo + half)), half);
}

/* What may be reported, if storing it as binary32 is a rounding of its own. */
static void add_store(const struct mla_model *model, float max, struct mla_bound_stats *stats)
{
    const double u = 0x1p-23;
    const double off = u * fabs((double)max) + 0x1p-149;

    if (model->add_u >= 0x1p-24) {
        return;
    }
    stats->max_hi = up(off) + stats->max_hi + 0x1p-52 * fabs(stats->max_hi);
    stats->max_lo = -up(off) + stats->max_lo - 0x1p-52 * fabs(stats->max_lo);
    stats->lse_radius = up(stats->lse_radius + off - log1p(-u));
    stats->sum_hi = up(stats->sum_hi * (1.0 + u));
    stats->sum_lo = mla_oracle_down(stats->sum_lo * (1.0 - u), 40);
}

bool mla_bound_stats_accepts(const struct mla_truth *truth, const struct mla_model *model,
                             float max, float sum, double *ratio)
{
    struct mla_bound_stats stats;
    const int32_t state = mla_bound_stats(truth, model, &stats);

    *ratio = INFINITY;
    if (state == MLA_BOUND_EMPTY) {
        const bool is_empty = isinf(max) && max < 0.0f && sum == 0.0f && !signbit(sum);

        *ratio = is_empty ? 0.0 : INFINITY;
        return is_empty;
    }
    if (state != MLA_BOUND_OK || !isfinite(max) || !isfinite(sum) || !(sum > 0.0f)) {
        return false;
    }
    add_store(model, max, &stats);
    const double lse = lse_distance(truth, max, sum);
    const double above = fmax(0.0, (double)max - truth->max);
    const double below = fmax(0.0, truth->max - (double)max);

    *ratio =
        fmax(ratio_of(lse, stats.lse_radius), fmax(ratio_of(above, stats.max_hi - truth->max),
                                                   ratio_of(below, truth->max - stats.max_lo)));
    *ratio = fmax(*ratio, sum_ratio(&stats, (double)sum));
    return (double)max >= stats.max_lo && (double)max <= stats.max_hi && lse <= stats.lse_radius &&
           (double)sum >= stats.sum_lo && (double)sum <= stats.sum_hi;
}

int32_t mla_bound_lse_accepts(const struct mla_truth *truth, const struct mla_model *model,
                              int32_t roundings, float lse, bool *accepted, double *ratio)
{
    struct mla_bound_stats stats;
    const int32_t state = mla_bound_stats(truth, model, &stats);

    *ratio = INFINITY;
    *accepted = false;
    if (state == MLA_BOUND_EMPTY) {
        *accepted = isinf(lse) && lse < 0.0f;
        *ratio = *accepted ? 0.0 : INFINITY;
        return state;
    }
    if (state != MLA_BOUND_OK) {
        return state;
    }
    if (model->stats_max == MLA_STATS_OTHER || roundings < 0 ||
        roundings > MLA_BOUND_LSE_ROUNDINGS_MAX) {
        return MLA_BOUND_MODEL;
    }
    const double ku = (double)roundings * 0x1p-24;
    const double x = fmax(fabs(stats.max_lo), fabs(stats.max_hi));
    const double again = up(ku / (1.0 - ku) * (2.0 * x + fabs(stats.lse) + stats.lse_radius));

    if (isfinite(lse)) {
        const double distance = lse_distance(truth, lse, 1.0f);
        const double radius = up(stats.lse_radius + again);

        *ratio = ratio_of(distance, radius);
        *accepted = distance <= radius;
    }
    return state;
}
