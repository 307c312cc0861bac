/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_relations.c - second calls, and what they must have in common with the first.
 *
 * All matching rows are compared where bits must be equal. Otherwise the second call's rows that
 * match a drawn row are judged as if they had been drawn themselves: by the truths of the second
 * call, which are the first's up to what the relation does to them, and so by the intervals of the
 * arithmetic that the second call asks for.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"
#include "fuzz/judge_sequence.h"
#include "fuzz/relations.h"

/* ---- bits ---- */

/* The first output element in which two calls on equal shapes differ, of those that are promised. */
static bool same_outputs(const struct mla_tensors *a, struct mla_tensors *b, uint64_t promises,
                         struct mla_verdict *verdict)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct mla_tensor *x = &a->list[i];
        if (x->role != MLA_TENSOR_OUTPUT)
            continue;
        const struct mla_tensor *y = mla_tensors_find(b, x->name, x->rank);
        size_t bytes = x->element_bytes;
        if (memcmp(x->guard.data, y->guard.data, x->guard.bytes) == 0)
            continue;
        for (int64_t e = 0; e < x->elements_n; e++) {
            size_t at = (size_t)e * bytes;
            if (memcmp(x->guard.data + at, y->guard.data + at, bytes) == 0 ||
                mla_judge_is_free(a, x, e, promises))
                continue;
            snprintf(verdict->element, sizeof verdict->element, "%s[%" PRId64 "] element %" PRId64,
                     x->name, x->rank, e);
            return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                    "the two calls differ in bits");
        }
    }
    return true;
}

/* y = factor x. Numbers moved elsewhere: zeros of both signs are the same result, and so are NaNs. */
static bool same_number(double x, double y, double factor)
{
    return x * factor == y || (isnan(x) && isnan(y));
}

static bool same_stats(const struct mla_tensors *a, struct mla_row row, const struct mla_tensors *b,
                       struct mla_row other)
{
    const float *sum_a, *max_a = mla_judge_stats_of(a, row, &sum_a);
    const float *sum_b, *max_b = mla_judge_stats_of(b, other, &sum_b);
    return same_number((double)*max_a, (double)*max_b, 1) &&
           same_number((double)*sum_a, (double)*sum_b, 1);
}

static bool same_row(const struct mla_tensors *a, struct mla_row row, const struct mla_tensors *b,
                     struct mla_row other, double factor, struct mla_verdict *verdict)
{
    int64_t columns = mla_case_value_width(&a->test);
    const uint16_t *x = mla_judge_row_of(a, row), *y = mla_judge_row_of(b, other);
    if (factor == 1 && memcmp(x, y, (size_t)columns * sizeof *x) == 0)
        return true;
    for (int64_t c = 0; c < columns; c++) {
        double from = (double)mla_number_from_bf16(x[mla_judge_column(a, c)]);
        double to = (double)mla_number_from_bf16(y[mla_judge_column(b, c)]);
        if (same_number(from, to, factor))
            continue;
        mla_judge_element(a, row, c, verdict->element);
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "the matching rows differ: %a times %g here, %a there", from,
                                factor, to);
    }
    return true;
}

/* Every row of the first call that has its match in the second. */
static bool same_rows(const struct mla_tensors *a, const struct mla_tensors *b,
                      const struct mla_relation *relation, uint64_t promises,
                      struct mla_verdict *verdict)
{
    double factor = ldexp(1.0, relation->exponent);
    bool stats = a->test.stats && (promises & MLA_PROMISE_STATS) != 0;
    int64_t all = mla_rows_all(&a->test);
    for (int64_t i = 0; i < all; i++) {
        struct mla_row row = mla_rows_at(&a->test, i), other = row;
        if (relation->match != NULL && !relation->match(a, b, row, &other))
            continue;
        if ((promises & MLA_PROMISE_PAD_ZERO) == 0 && mla_rows_empty(a, row.rank, row.row))
            continue;
        if (!same_row(a, row, b, other, factor, verdict))
            return false;
        if (stats && !same_stats(a, row, b, other)) {
            mla_judge_element(a, row, 0, verdict->element);
            return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                    "the statistics of matching rows differ in bits");
        }
    }
    return true;
}

/* ---- values ---- */

/* The second call's rows that match drawn ones: all of them, or some taken evenly. */
static int64_t match_rows(const struct mla_subject *subject, const struct mla_tensors *b,
                          const struct mla_relation *relation, int64_t most, struct mla_row *rows)
{
    int64_t n = 0;
    for (int64_t i = 0; i < subject->rows_n; i++) {
        struct mla_row row = subject->rows[i];
        if (relation->match == NULL || relation->match(subject->tensors, b, row, &row))
            rows[n++] = row;
    }
    if (most <= 0 || n <= most)
        return n;
    for (int64_t i = 0; i < most; i++)
        rows[i] = rows[i * n / most];
    return most;
}

static void judge_values(const struct mla_subject *subject, struct mla_tensors *b,
                         const struct mla_relation *relation, const struct mla_kernel *kernel,
                         const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    struct mla_subject second = {.tensors = b};
    second.rows = malloc((size_t)subject->rows_n * sizeof *second.rows);
    second.truths = calloc((size_t)subject->rows_n, sizeof *second.truths);
    if (second.rows == NULL || second.truths == NULL) {
        mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "out of memory for matching rows");
        goto done;
    }
    second.rows_n = match_rows(subject, b, relation, options->relation_rows, second.rows);
    int32_t status = mla_rows_truths(&second, options->oracle_threads, options->plain_oracle);
    verdict->oracle_failed |= status == MLA_ERR_INTERNAL;
    if (status != MLA_OK)
        mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "the oracle failed with status %" PRId32,
                         status);
    else if (second.rows_n > 0)
        mla_judge_values(&second, kernel, verdict);
done:
    for (int64_t i = 0; second.truths != NULL && i < second.rows_n; i++)
        mla_truth_free(second.truths[i]);
    free(second.truths);
    free(second.rows);
}

/* ---- one relation ---- */

static int32_t make_second(const struct mla_tensors *first, const struct mla_relation *relation,
                           const struct mla_case *varied, struct mla_tensors **second,
                           char error[MLA_CASE_ERROR_MAX])
{
    if (relation->remake)
        return mla_tensors_make(varied, relation->dirt, second, error);
    if (relation->arrange != NULL)
        return mla_tensors_arrange(first, varied, relation->arrange, second, error);
    return mla_tensors_copy(first, varied, relation->dirt, second, error);
}

/* What the kernel owes: equal bits only if it promises them. */
static enum mla_tie tie_of(const struct mla_tensors *first, const struct mla_relation *relation,
                           const struct mla_kernel *kernel, struct mla_case *varied)
{
    *varied = first->test;
    if (!relation->remake) /* overrides and violations are in the first call's tensors */
        varied->put_n = varied->set_n = 0;
    /* Moving all of a huge cache would make all of it. */
    bool moves = relation->arrange != NULL || relation->earlier != NULL;
    if ((relation->operations >> first->test.op & 1u) == 0 ||
        (moves && mla_case_is_thin(&first->test)) ||
        (relation->is_beside && MLA_THREADS_ARE_WATCHED) ||
        (relation->remake && first->test.data[0] != '\0') || /* a file is no recipe */
        (kernel->promises & relation->needs) != relation->needs)
        return MLA_TIE_NONE;
    enum mla_tie tie = relation->vary == NULL ? MLA_TIE_BITS : relation->vary(first, varied);
    bool promised = (kernel->promises & relation->promise) == relation->promise;
    return tie == MLA_TIE_BITS && !promised ? MLA_TIE_VALUE : tie;
}

/* Calls of the case, at most, in the company of another: few where speed counts. */
static int64_t repeats_for(const struct mla_case *test, const struct mla_judge_options *options)
{
    int64_t work = options->relation_rows > 0 ? 1 << 24 : 1 << 27; /* multiply-adds, or one call */
    int64_t repeats = work / (1 + mla_case_work(test));
    return repeats < 64 ? repeats : 64;
}

/* false: there was nothing to compare. */
static bool compare(struct mla_subject *subject, const struct mla_relation *relation,
                    const struct mla_kernel *kernel, const struct mla_judge_options *options,
                    struct mla_verdict *verdict)
{
    struct mla_tensors *first = subject->tensors, *second;
    struct mla_sequence sequence = {0};
    struct mla_case varied;
    struct mla_verdict unoffered = {.relation = ""};
    char error[MLA_CASE_ERROR_MAX];
    bool done = false;
    enum mla_tie tie = tie_of(first, relation, kernel, &varied);
    if (tie == MLA_TIE_NONE || (tie == MLA_TIE_VALUE && options->no_oracle))
        return false;
    if (make_second(first, relation, &varied, &second, error) != MLA_OK ||
        !mla_sequence_make(&sequence, relation, kernel, first, second, error)) {
        mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "%.200s", error);
        goto done;
    }
    sequence.repeats = repeats_for(&varied, options);
    if (!mla_judge_offered(second, kernel, &unoffered) ||
        (relation->earlier != NULL && sequence.n == 0))
        goto done;
    done = true;
    if (!mla_judge_call(second, kernel, options, relation->earlier == NULL ? NULL : &sequence,
                        verdict))
        done = verdict->kind != MLA_VERDICT_UNSUPPORTED;
    else if (tie == MLA_TIE_VALUE)
        judge_values(subject, second, relation, kernel, options, verdict);
    else if (relation->match == NULL && relation->exponent == 0)
        same_outputs(first, second, kernel->promises, verdict);
    else
        same_rows(first, second, relation, kernel->promises, verdict);
done:
    mla_sequence_free(&sequence);
    mla_tensors_free(second);
    return done;
}

/* The first failure names its relation. What ended the judging, or would have without every_check, stays the
 * verdict, be it a failure or that nothing can be said: later checks then only add who detects it. */
static void report(const struct mla_case *test, const struct mla_relation *relation,
                   const struct mla_verdict *second, struct mla_verdict *verdict)
{
    verdict->oracle_failed |= second->oracle_failed;
    if (!mla_verdict_is_failure(second->kind)) {
        if (second->kind == MLA_VERDICT_UNJUDGED && second->rows_n == 0 &&
            second->unspecified_n == 0)
            mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "relation %s: %.200s", relation->name,
                             second->reason);
        return;
    }
    verdict->detected |= second->detected | MLA_DETECTOR_RELATION;
    if (verdict->kind != MLA_VERDICT_PASS)
        return;
    verdict->kind = second->kind;
    verdict->relation = relation->name;
    verdict->all_relations = relation->dear || test->slow; /* else they are the default */
    snprintf(verdict->reason, sizeof verdict->reason, "relation %s: %.220s", relation->name,
             second->reason);
    memcpy(verdict->element, second->element, sizeof verdict->element);
}

void mla_judge_relations(struct mla_subject *subject, const struct mla_kernel *kernel,
                         const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    size_t relations_n;
    const struct mla_relation *relations = mla_relations(&relations_n);
    for (size_t i = 0; i < relations_n; i++) {
        struct mla_verdict second = {.relation = "", .kind = MLA_VERDICT_PASS};
        if ((options->relations >> i & 1u) == 0 ||
            (verdict->kind != MLA_VERDICT_PASS && !options->every_check))
            continue;
        if (!compare(subject, &relations[i], kernel, options, &second) &&
            (second.kind == MLA_VERDICT_PASS || second.kind == MLA_VERDICT_UNSUPPORTED))
            continue;
        verdict->relations |= 1u << i;
        verdict->kernel_seconds += second.kernel_seconds;
        report(&subject->tensors->test, &relations[i], &second, verdict);
    }
}
