/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_values.c - the judged rows, element by element, against the oracle's intervals.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/judge_internal.h"

#define SUSPECTS_MAX 2

int64_t mla_judge_place(const struct mla_tensors *tensors, struct mla_row row, int64_t column)
{
    const struct mla_ring_args *r = &tensors->ring;
    const struct mla_sparse_args *s = &tensors->sparse;
    if (tensors->test.op == MLA_OP_RING)
        return ((row.batch * r->heads + row.head) * r->q_rows + row.row) * r->head_dim_v + column;
    return (row.row * s->heads + row.head) * s->latent + mla_judge_column(tensors, column);
}

int64_t mla_judge_column(const struct mla_tensors *tensors, int64_t column)
{
    bool mx4 = tensors->test.op == MLA_OP_SPARSE && tensors->sparse.out_order == MLA_OUT_MX4;
    return mx4 ? column % 4 * (MLA_LATENT / 4) + column / 4 : column;
}

const uint16_t *mla_judge_row_of(const struct mla_tensors *tensors, struct mla_row row)
{
    bool is_ring = tensors->test.op == MLA_OP_RING;
    return (is_ring ? tensors->out[row.rank] : tensors->sparse.out) +
           mla_judge_place(tensors, row, 0);
}

void mla_judge_element(const struct mla_tensors *tensors, struct mla_row row, int64_t column,
                       char text[96])
{
    if (tensors->test.op == MLA_OP_RING)
        snprintf(text, 96,
                 "out[d=%" PRId64 ",b=%" PRId64 ",h=%" PRId64 ",r=%" PRId64 ",c=%" PRId64 "]",
                 row.rank, row.batch, row.head, row.row, column);
    else
        snprintf(text, 96, "out[q=%" PRId64 ",h=%" PRId64 ",l=%" PRId64 "]", row.row, row.head,
                 column);
}

/* An element, and its bits in bf16: rounded, if it is of another format. */
static double value_of(const struct mla_tensors *t, struct mla_row row, int64_t column,
                       uint16_t *bits)
{
    int64_t place = mla_judge_place(t, row, column);
    *bits = t->test.op == MLA_OP_RING ? t->out[row.rank][place] : t->sparse.out[place];
    const float *wide = t->wide[row.rank];
    return (double)(wide != NULL ? wide[place] : mla_number_from_bf16(*bits));
}

static void record_worst(const struct mla_tensors *t, struct mla_row row, int64_t column,
                         double got, struct mla_bound_ends ends, struct mla_verdict *verdict)
{
    mla_judge_element(t, row, column, verdict->element);
    verdict->row = row;
    verdict->got = got;
    verdict->lo = ends.lo;
    verdict->hi = ends.hi;
}

/* One element. Accepted iff it is a number inside [lo, hi]; NaN fails every comparison. */
static bool judge_element(const struct mla_tensors *t, struct mla_row row, int64_t column,
                          const struct mla_model *model, const struct mla_bound *bound,
                          struct mla_metrics_sums *sums, struct mla_verdict *verdict)
{
    uint16_t bits;
    double got = value_of(t, row, column, &bits);
    bool is_wide = t->wide[row.rank] != NULL;
    struct mla_bound_error distance = is_wide ? mla_bound_error_in(bound, model, t->out_format, got)
                                              : mla_bound_error(bound, model, bits);
    struct mla_bound_ends ends =
        mla_bound_ends(bound, model, is_wide ? t->out_format : MLA_FORMAT_BF16);
    bool inside = got >= ends.lo && got <= ends.hi;
    verdict->elements_n++;
    if (!(distance.ratio <= verdict->max_value_ratio))
        verdict->max_value_ratio = distance.ratio;
    if (verdict->element[0] == '\0' || !(distance.ratio <= verdict->max_ratio) ||
        (!inside && verdict->kind == MLA_VERDICT_PASS)) {
        record_worst(t, row, column, got, ends, verdict);
        verdict->max_ratio = distance.ratio;
    }
    mla_metrics_add(sums, bits, bound, model, distance.ratio);
    return inside;
}

static bool judge_empty(const struct mla_tensors *t, struct mla_row row, int64_t columns_n,
                        struct mla_verdict *verdict)
{
    for (int64_t c = 0; c < columns_n; c++) {
        uint16_t bits;
        double got = value_of(t, row, c, &bits);
        verdict->elements_n++;
        if (got == 0 && !signbit(got))
            continue;
        mla_judge_element(t, row, c, verdict->element);
        verdict->row = row;
        verdict->has_row = true;
        verdict->got = got;
        verdict->lo = verdict->hi = 0;
        verdict->max_ratio = INFINITY;
        verdict->max_value_ratio = INFINITY;
        verdict->detected |= MLA_DETECTOR_TIER1;
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "a row without keys must hold +0, bits %04x", bits);
    }
    return true;
}

static bool judge_row(const struct mla_tensors *t, struct mla_row row,
                      const struct mla_truth *truth, const struct mla_kernel *kernel,
                      struct mla_bound *bounds, struct mla_metrics_sums *sums,
                      struct mla_verdict *verdict)
{
    const struct mla_model *model =
        t->test.op == MLA_OP_RING ? &kernel->ring_model : &kernel->sparse_model;
    struct mla_truth_info info = mla_truth_info(truth);
    int32_t state = mla_bound_row(truth, model, bounds);
    bool empty = state == MLA_BOUND_EMPTY, ok = true;
    verdict->oracle_failed |= state == MLA_ERR_INTERNAL;
    if (state < 0) /* memory, or two certain intervals exclude each other: nothing can be said */
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED,
                                "the oracle's bound failed with status %" PRId32, state);
    if ((state != MLA_BOUND_OK && !empty) ||
        (empty && (kernel->promises & MLA_PROMISE_PAD_ZERO) == 0)) {
        verdict->unspecified_n++;
        verdict->nonfinite_n += state == MLA_BOUND_NONFINITE;
        verdict->range_n += state == MLA_BOUND_RANGE;
        verdict->no_keys_n += empty;
        verdict->no_bound_n += !empty && state != MLA_BOUND_NONFINITE && state != MLA_BOUND_RANGE;
        return true;
    }
    verdict->rows_n++;
    if (empty && !judge_empty(t, row, info.columns_n, verdict))
        return false;
    for (int64_t c = 0; !empty && c < info.columns_n; c++)
        if (!judge_element(t, row, c, model, &bounds[c], sums, verdict)) {
            ok = false;
            verdict->has_row = true;
            verdict->detected |= MLA_DETECTOR_TIER1;
            mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN, "outside the certified interval");
        }
    bool stats = t->test.stats && (kernel->promises & MLA_PROMISE_STATS) != 0;
    ok = ok && (!stats || mla_judge_stats(t, row, truth, model, verdict));
    return ok && (t->lse[row.rank] == NULL || mla_judge_lse(t, row, truth, model, verdict));
}

/* The next row, from *number on in a count over all rows, whose output holds NaN or Inf. */
static bool next_suspect(const struct mla_tensors *t, int64_t *number, struct mla_row *row)
{
    int64_t all = mla_rows_all(&t->test), columns = mla_case_value_width(&t->test);
    for (; *number < all; ++*number) {
        *row = mla_rows_at(&t->test, *number);
        const uint16_t *out = mla_judge_row_of(t, *row); /* in whatever order its columns are */
        for (int64_t c = 0; c < columns; c++)
            if ((out[c] & 0x7f80u) == 0x7f80u) {
                ++*number;
                return true;
            }
    }
    return false;
}

static bool is_drawn(const struct mla_subject *subject, struct mla_row row)
{
    for (int64_t i = 0; i < subject->rows_n; i++) {
        const struct mla_row *drawn = &subject->rows[i];
        if (drawn->rank == row.rank && drawn->batch == row.batch && drawn->head == row.head &&
            drawn->row == row.row)
            return true;
    }
    return false;
}

/* Rows nobody drew, but whose output is not finite: judged too, the first few. */
static bool judge_suspects(const struct mla_subject *subject, const struct mla_kernel *kernel,
                           struct mla_bound *bounds, struct mla_metrics_sums *sums,
                           struct mla_verdict *verdict)
{
    const struct mla_tensors *t = subject->tensors;
    int64_t number = subject->rows_n == mla_rows_all(&t->test) ? subject->rows_n : 0;
    struct mla_row row;
    bool ok = true;
    for (int n = 0; n < SUSPECTS_MAX && next_suspect(t, &number, &row);) {
        struct mla_truth *truth;
        if (is_drawn(subject, row)) /* and judged already */
            continue;
        n++;
        int32_t status = mla_rows_truth(t, row, subject->plain, &truth);
        if (status != MLA_OK)
            return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED,
                                    "the oracle failed with status %" PRId32, status);
        ok = judge_row(t, row, truth, kernel, bounds, sums, verdict) && ok;
        mla_truth_free(truth);
    }
    return ok;
}

bool mla_judge_values(struct mla_subject *subject, const struct mla_kernel *kernel,
                      struct mla_verdict *verdict)
{
    struct mla_metrics_sums sums = {0};
    bool ok = true;
    int64_t columns = mla_case_value_width(&subject->tensors->test);
    struct mla_bound *bounds = malloc((size_t)columns * sizeof *bounds);
    if (bounds == NULL)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "out of memory for the bounds");
    for (int64_t i = 0; i < subject->rows_n; i++)
        ok = judge_row(subject->tensors, subject->rows[i], subject->truths[i], kernel, bounds,
                       &sums, verdict) &&
             ok;
    mla_metrics_finish(&sums, &verdict->metrics);
    struct mla_verdict drawn = *verdict;
    ok = judge_suspects(subject, kernel, bounds, &sums, verdict) && ok;
    mla_metrics_finish(&sums, &verdict->metrics);
    if (ok) /* suspects that turn out unspecified say nothing, and are no drawn rows */
        *verdict = drawn;
    free(bounds);
    return ok;
}
