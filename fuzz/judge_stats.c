/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_stats.c - the statistics of a row, maximum and sum or their log-sum-exp, against what they may be.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "fuzz/judge_internal.h"

const float *mla_judge_stats_of(const struct mla_tensors *t, struct mla_row row, const float **sum)
{
    if (t->test.op == MLA_OP_RING) {
        const struct mla_ring_args *a = &t->ring;
        const float *base =
            t->stats[row.rank] + (row.batch * a->heads + row.head) * 2 * a->q_rows + row.row;
        *sum = base + a->q_rows;
        return base;
    }
    const float *base = t->sparse.stats + (row.row * t->sparse.heads + row.head) * 2;
    *sum = base + 1;
    return base;
}

/* A row's statistics are wrong by this ratio. Are they what the verdict shows: its first fault, or its worst
 * so far? Then the row, and the ratio, are theirs, and the reason that follows. */
static bool shows(struct mla_row row, double ratio, struct mla_verdict *verdict)
{
    verdict->detected |= MLA_DETECTOR_TIER1;
    if (verdict->kind == MLA_VERDICT_FAIL_CERTAIN) {
        if (ratio <= verdict->max_ratio)
            return false;
        verdict->kind = MLA_VERDICT_PASS; /* the reason of what was shown goes with it */
    }
    verdict->row = row;
    verdict->has_row = true;
    verdict->max_ratio = ratio;
    return true;
}

/* The name of a row's statistic. */
static void name_statistic(const struct mla_tensors *t, struct mla_row row, const char *name,
                           char text[96])
{
    if (t->test.op == MLA_OP_RING)
        snprintf(text, 96, "%s[d=%" PRId64 ",b=%" PRId64 ",h=%" PRId64 ",r=%" PRId64 "]", name,
                 row.rank, row.batch, row.head, row.row);
    else
        snprintf(text, 96, "%s[q=%" PRId64 ",h=%" PRId64 "]", name, row.row, row.head);
}

/* The statistic of a row that is wrong, what it is and what it may be: the maximum if that is outside,
 * else the sum, whose interval in the reported maximum's frame is rounded here for reading only. */
static void record_statistic(const struct mla_tensors *t, struct mla_row row, float max, float sum,
                             const struct mla_bound_stats *stats, struct mla_verdict *verdict)
{
    bool is_max = !((double)max >= stats->max_lo && (double)max <= stats->max_hi);
    double least = exp(stats->lse - stats->lse_radius - (double)max);
    double most = exp(stats->lse + stats->lse_radius - (double)max);
    name_statistic(t, row, is_max ? "max" : "sum", verdict->element);
    verdict->got = (double)(is_max ? max : sum);
    verdict->lo = is_max ? stats->max_lo : fmax(least, stats->sum_lo);
    verdict->hi = is_max ? stats->max_hi : fmin(most, stats->sum_hi);
}

bool mla_judge_stats(const struct mla_tensors *t, struct mla_row row, const struct mla_truth *truth,
                     const struct mla_model *model, struct mla_verdict *verdict)
{
    const float *sum, *max = mla_judge_stats_of(t, row, &sum);
    double ratio = 0;
    bool ok = mla_bound_stats_accepts(truth, model, *max, *sum, &ratio);
    if (!(ratio <= verdict->max_stats_ratio))
        verdict->max_stats_ratio = ratio;
    if (ok || !shows(row, ratio, verdict))
        return ok;
    struct mla_truth_info info = mla_truth_info(truth);
    struct mla_bound_stats stats = {0}; /* of a row without keys: -inf and 0 alone */
    if (mla_bound_stats(truth, model, &stats) == MLA_BOUND_EMPTY)
        stats =
            (struct mla_bound_stats){.max_lo = -INFINITY, .max_hi = -INFINITY, .lse = -INFINITY};
    record_statistic(t, row, *max, *sum, &stats, verdict);
    return mla_verdict_fail(
        verdict, MLA_VERDICT_FAIL_CERTAIN,
        "stats of the row: max=%a sum=%a, but max=%a log-sum-exp=%a err/bound=%g", (double)*max,
        (double)*sum, info.max, info.log_sum_exp, ratio);
}

/* The log-sum-exp of a row, reported as one number. */
bool mla_judge_lse(const struct mla_tensors *t, struct mla_row row, const struct mla_truth *truth,
                   const struct mla_model *model, struct mla_verdict *verdict)
{
    const struct mla_ring_args *a = &t->ring;
    int64_t at = t->test.op == MLA_OP_RING ? (row.batch * a->heads + row.head) * a->q_rows + row.row
                                           : row.row * t->sparse.heads + row.head;
    float lse = t->lse[row.rank][at];
    bool accepted = false;
    double ratio = 0;
    int32_t state = mla_bound_lse_accepts(truth, model, t->lse_roundings, lse, &accepted, &ratio);
    if (state != MLA_BOUND_OK && state != MLA_BOUND_EMPTY)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED,
                                "the log-sum-exp has no bound under the model (state %" PRId32 ")",
                                state);
    double due = mla_truth_info(truth).log_sum_exp;
    if (state == MLA_BOUND_EMPTY) { /* the oracle knows -inf; another word for it may be declared */
        due = t->lse_empty == MLA_LSE_EMPTY_PLUS_INF ? INFINITY : -INFINITY;
        accepted = (double)lse == due;
        ratio = accepted ? 0 : INFINITY;
    }
    if (!(ratio <= verdict->max_stats_ratio))
        verdict->max_stats_ratio = ratio;
    if (accepted || !shows(row, ratio, verdict))
        return accepted;
    double radius = isfinite(ratio) && ratio > 0 ? fabs((double)lse - due) / ratio : 0;
    name_statistic(t, row, "lse", verdict->element);
    verdict->got = (double)lse;
    verdict->lo = due - radius;
    verdict->hi = due + radius;
    if (state == MLA_BOUND_EMPTY)
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "log-sum-exp of a row without keys: %a, but it is declared %a",
                                (double)lse, due);
    return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                            "log-sum-exp of the row: %a, but it is %a, err/bound=%g", (double)lse,
                            due, ratio);
}
