/* SPDX-License-Identifier: Apache-2.0
 *
 * report_figures.c - what is kept of an outcome: sums, extremes and the worst of each bin.
 */
#include "results/report_read.h"

#include <math.h>
#include <string.h>

static size_t clamp(double value, size_t n)
{
    return !(value > 0) ? 0 : value < (double)n ? (size_t)value : n - 1;
}

/* Half octaves: of 1 .. 2^31.5 for counts, of 2^-16 .. for a scale. */
static size_t half_octave(double value, double lowest)
{
    return clamp(floor(2 * (log2(value) - lowest)), MLA_REPORT_BINS);
}

static void add_ratio(struct mla_subject *s, double ratio, const struct mla_shape *shape)
{
    int64_t num = shape->testcase;
    mla_point_add(&s->worst, 0, ratio, num);
    if (shape->keys >= 1) {
        mla_point_add(&s->by[MLA_BY_KEYS][half_octave(shape->keys, 0)], shape->keys, ratio, num);
    }
    if (shape->ranks >= 1) {
        mla_point_add(&s->by[MLA_BY_RANKS][half_octave(shape->ranks, 0)], shape->ranks, ratio, num);
    }
    if (shape->scale > 0) {
        mla_point_add(&s->by[MLA_BY_SCALE][half_octave(shape->scale, -16)], shape->scale, ratio,
                      num);
    }
    if (shape->keys >= 1 && shape->ranks >= 1) {
        double x = floor(log2(shape->keys)), y = floor(log2(shape->ranks));
        struct mla_point *cell = &s->shapes[clamp(x, MLA_SHAPE_X)][clamp(y, MLA_SHAPE_Y)];
        mla_point_add(cell, shape->keys, ratio, num);
        cell->over = cell->over || x >= MLA_SHAPE_X || y >= MLA_SHAPE_Y;
    }
}

static void add_ulp(struct mla_subject *s, enum mla_ulp which, double ulp, int64_t testcase)
{
    size_t bin = ulp > 0 ? clamp(ceil(log2(ulp)) + 8, MLA_REPORT_ULPS) : 0;
    mla_point_add(&s->ulps[which][bin], ulp, ulp, testcase);
    mla_point_add(which == MLA_ULP_MAX ? &s->max_ulp : &s->p99_ulp, 0, ulp, testcase);
}

static double farther(double a, double b)
{
    return !(fabs(a) >= fabs(b)) ? b : a; /* b, a NaN too, beats a */
}

static void add_metric(struct mla_subject *s, const char *name, double value, int64_t testcase)
{
    if (strcmp(name, "max_ulp") == 0) {
        add_ulp(s, MLA_ULP_MAX, value, testcase);
        s->measured++;
    } else if (strcmp(name, "p99_ulp") == 0) {
        add_ulp(s, MLA_ULP_P99, value, testcase);
    } else if (strcmp(name, "correctly_rounded_percent") == 0) {
        s->rounded_n++;
        s->rounded_sum += value;
        s->rounded_least = value < s->rounded_least ? value : s->rounded_least;
    } else if (strcmp(name, "bias_se") == 0) {
        s->bias_up = s->bias_up_n++ == 0 ? value : farther(s->bias_up, value);
    } else if (strcmp(name, "bias_outward_se") == 0) {
        s->bias_outward = s->bias_outward_n++ == 0 ? value : farther(s->bias_outward, value);
    }
}

/* The statistics that are shown. */
static int32_t add_metrics(struct mla_report *report, struct mla_subject *s, int64_t verdict,
                           int64_t testcase)
{
    sqlite3_stmt *stmt = mla_sql_get(report->store, MLA_SQL_REPORT_METRICS);
    if (stmt == NULL || sqlite3_bind_int64(stmt, 1, verdict) != SQLITE_OK) {
        return mla_sql_fail(report->store, "read statistics");
    }
    int code;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *text = sqlite3_column_type(stmt, 1) == SQLITE_TEXT
                               ? (const char *)sqlite3_column_text(stmt, 1)
                               : NULL;
        double value = text == NULL               ? sqlite3_column_double(stmt, 1)
                       : strcmp(text, "nan") == 0 ? NAN
                       : text[0] == '-'           ? -INFINITY
                                                  : INFINITY;
        add_metric(s, (const char *)sqlite3_column_text(stmt, 0), value, testcase);
    }
    (void)sqlite3_reset(stmt);
    return code == SQLITE_DONE ? MLA_STORE_OK : mla_sql_fail(report->store, "read statistics");
}

static void count_judged(struct mla_run_row *run, const struct mla_subject *s, enum mla_grade grade,
                         int64_t n)
{
    bool bad = mla_grade_is_bad(grade);
    run->judged += bad || mla_grade_is_good(grade) ? n : 0;
    run->failed += bad ? n : 0;
    run->failed_planted += bad && s->planted ? n : 0;
}

void mla_report_add_trend(struct mla_report *report, struct mla_subject *s,
                          const struct mla_outcome *o, int64_t testcase)
{
    struct mla_run_row *run = &report->runs[o->rank];
    size_t state = mla_report_state(report, o->rank, s->kernel);
    run->cases++;
    count_judged(run, s, o->grade, 1);
    if (state < report->states_first ||
        (!mla_grade_is_good(o->grade) && !mla_grade_is_bad(o->grade))) {
        return;
    }
    size_t at = state - report->states_first;
    struct mla_point *point = &s->trend[at];
    s->trend_bad[at] += mla_grade_is_bad(o->grade);
    point->n++;
    if (o->ratio > point->y) {
        point->y = o->ratio;
        point->testcase = testcase;
    }
}

/* What fails without an err/B, a crash, is graver than any that has one: so it is ordered, not shown. */
static void add_gravest(struct mla_subject *s, const struct mla_outcome *o, int64_t testcase)
{
    bool fails = mla_grade_is_bad(o->grade);
    if (!fails && (s->gravest_fails || o->ratio < 0)) {
        return;
    }
    if (fails && !s->gravest_fails) {
        s->gravest = (struct mla_point){0};
        s->gravest_fails = true;
    }
    double y = o->ratio < 0 ? INFINITY : o->ratio;
    if (s->gravest.n == 0 || y > s->gravest.y) {
        s->gravest_known = o->ratio >= 0;
        s->gravest_verdict = o->verdict;
    }
    mla_point_add(&s->gravest, 0, y, testcase);
}

void mla_report_add_state(struct mla_report *report, struct mla_subject *s,
                          const struct mla_outcome *o, int64_t testcase)
{
    struct mla_report_answer *a = &report->answer;
    bool bad = mla_grade_is_bad(o->grade);
    s->cases[o->grade]++;
    a->cases += !s->planted;
    a->judged += (bad || mla_grade_is_good(o->grade)) && !s->planted;
    a->failing += bad && !s->planted;
    add_gravest(s, o, testcase);
}

int32_t mla_report_add_figures(struct mla_report *report, struct mla_subject *s,
                               const struct mla_outcome *o, const struct mla_shape *shape)
{
    if (o->ratio >= 0) {
        add_ratio(s, o->ratio, shape);
    }
    if (o->seconds > 0) {
        s->kernel_seconds += o->seconds;
        s->timed++;
    }
    return o->plain == 0 ? MLA_STORE_OK : add_metrics(report, s, o->plain, shape->testcase);
}

/* How far err/B rose; what fails without one, a crash, has risen farthest. */
static double rise(const struct mla_change *c)
{
    return c->ratio < 0 ? INFINITY : c->ratio - c->before;
}

/* Graver by kind, then by how far err/B rose. */
static bool graver(const struct mla_change *a, const struct mla_change *b)
{
    return a->kind != b->kind ? a->kind > b->kind : rise(a) > rise(b);
}

/* A case of the subject regressed, or its error grew. */
static void add_worse(struct mla_subject *subject, const struct mla_change *change)
{
    bool fails = change->kind == MLA_FAILS, grew = change->kind == MLA_GREW;
    if (fails || subject->fails == 0) { /* of the regressions, if there are any */
        bool first = fails ? subject->fails == 0 : subject->grew == 0;
        subject->since = first || change->since < subject->since ? change->since : subject->since;
    }
    subject->fails += fails;
    subject->grew += grew;
    subject->growth =
        grew ? fmax(subject->growth, change->ratio - change->before) : subject->growth;
}

static void keep_change(struct mla_report *report, const struct mla_subject *subject,
                        struct mla_change change)
{
    change.subject = (size_t)(subject - report->subjects);
    report->changes_all++;
    size_t at = report->changes_n;
    while (at > 0 && graver(&change, &report->changes[at - 1])) {
        at--;
    }
    if (at == MLA_REPORT_CHANGES) {
        return;
    }
    report->changes_n += report->changes_n < MLA_REPORT_CHANGES;
    memmove(&report->changes[at + 1], &report->changes[at],
            (report->changes_n - 1 - at) * sizeof change);
    report->changes[at] = change;
}

void mla_report_add_change(struct mla_report *report, struct mla_subject *subject,
                           struct mla_change change)
{
    struct mla_report_answer *answer = &report->answer;
    bool fails = change.kind == MLA_FAILS, grew = change.kind == MLA_GREW;
    if (subject->planted) {
        return;
    }
    subject->lost += change.kind == MLA_LOST;
    answer->lost += change.kind == MLA_LOST;
    subject->broken += change.kind == MLA_BROKEN;
    subject->flaky += mla_change_is_flaky(&change);
    answer->flaky += mla_change_is_flaky(&change);
    if (fails || grew) {
        add_worse(subject, &change);
    }
    answer->fails += fails;
    answer->grew += grew;
    if (change.kind >= MLA_GREW) {
        keep_change(report, subject, change);
    }
}

static void add_tally(struct mla_report *report, sqlite3_stmt *stmt)
{
    size_t rank = mla_report_rank(report, sqlite3_column_int64(stmt, 0));
    struct mla_run_row *run = &report->runs[rank];
    enum mla_grade grade = mla_grade_of((const char *)sqlite3_column_text(stmt, 3));
    int64_t n = sqlite3_column_int64(stmt, 4);
    struct mla_subject *s =
        mla_report_subject(report, (const char *)sqlite3_column_text(stmt, 2), run->sanitizer,
                           sqlite3_column_text(stmt, 1)[0] == 'r');
    run->cases += n;
    report->answer.verdicts += n;
    if (s == NULL) {
        return;
    }
    count_judged(run, s, grade, n);
    if (mla_report_state(report, rank, s->kernel) == s->state) {
        s->tallied += n;
        s->tallied_good += mla_grade_is_good(grade) ? n : 0;
        s->tallied_bad += mla_grade_is_bad(grade) ? n : 0;
        s->now_judged += mla_grade_is_good(grade) || mla_grade_is_bad(grade) ? n : 0;
        s->now_unsupported += grade == MLA_GRADE_UNSUPPORTED ? n : 0;
        s->now_unjudged += grade == MLA_GRADE_UNJUDGED ? n : 0;
    }
}

int32_t mla_report_read_tallies(struct mla_report *report)
{
    sqlite3_stmt *stmt = mla_sql_prepare(
        report->store,
        "SELECT run, op, kernel, verdict, sum(n) FROM tally GROUP BY run, op, kernel, verdict");
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        add_tally(report, stmt);
    }
    for (size_t i = 0; i < report->subjects_n; i++) {
        const struct mla_subject *s = &report->subjects[i];
        report->answer.idle += mla_subject_is_idle(s) && !s->planted;
    }
    int32_t status =
        code == SQLITE_DONE ? MLA_STORE_OK : mla_sql_fail(report->store, "read the tallies");
    (void)sqlite3_finalize(stmt);
    return status;
}
