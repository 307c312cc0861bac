/* SPDX-License-Identifier: Apache-2.0
 *
 * report_read.c - one pass over all verdicts in the order of their index by case and kernel: what
 * belongs together comes together, so that only one case is held at a time.
 */
#include "results/report_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the pass. */
enum {
    COLUMN_CASE = 0,
    COLUMN_OP,
    COLUMN_LINE,
    COLUMN_KEYS,
    COLUMN_RANKS,
    COLUMN_HEAD_DIM,
    COLUMN_KERNEL,
    COLUMN_VERDICT_ROW,
    COLUMN_RUN,
    COLUMN_VERDICT,
    COLUMN_PLAIN,
    COLUMN_RATIO,
    COLUMN_SECONDS
};

static const char pass[] =
    "SELECT t.num, t.op, t.line, iif(t.op = 'ring', t.logical_n, iif(t.dense = 1, t.keys, t.topk)),"
    " iif(t.op = 'ring', t.ring_size, t.heads), t.head_dim,"
    " v.kernel, v.id, v.run, v.verdict, v.relation = '', v.max_ratio, v.kernel_seconds"
    " FROM testcase AS t CROSS JOIN verdict AS v ON v.testcase = t.num"
    " ORDER BY t.num, v.kernel, v.id";

/* The verdicts of one kernel on one case. */
struct group {
    struct mla_shape shape;
    char *kernel;
    struct mla_outcome *outcomes; /* one a run */
    size_t n, room;
};

/* A column of figures: negative for NULL, a NaN is the worst there is. */
static double ratio_of(sqlite3_stmt *stmt, int column)
{
    int type = sqlite3_column_type(stmt, column);
    if (type == SQLITE_NULL) {
        return -1;
    }
    return type == SQLITE_TEXT ? INFINITY : sqlite3_column_double(stmt, column);
}

/* The field scale of the case line; "-" is the ring's default, 1/sqrt(head_dim). */
static double scale_of(const char *line, int64_t head_dim)
{
    const char *field = strstr(line, " scale=");
    if (field == NULL) {
        return 0;
    }
    field += strlen(" scale=");
    if (*field == '-' && head_dim > 0) {
        return 1 / sqrt((double)head_dim);
    }
    double scale = strtod(field, NULL);
    return scale > 0 && isfinite(scale) ? scale : 0;
}

static void start_case(struct group *group, sqlite3_stmt *stmt)
{
    const char *op = (const char *)sqlite3_column_text(stmt, COLUMN_OP);
    group->shape =
        (struct mla_shape){.testcase = sqlite3_column_int64(stmt, COLUMN_CASE),
                           .ring = op[0] == 'r',
                           .keys = sqlite3_column_double(stmt, COLUMN_KEYS),
                           .ranks = sqlite3_column_double(stmt, COLUMN_RANKS),
                           .scale = scale_of((const char *)sqlite3_column_text(stmt, COLUMN_LINE),
                                             sqlite3_column_int64(stmt, COLUMN_HEAD_DIM))};
}

/* Add a verdict to the outcome of its run: rows of one run mostly follow each other. */
static int32_t add_verdict(struct mla_report *report, struct group *group, sqlite3_stmt *stmt)
{
    size_t rank = mla_report_rank(report, sqlite3_column_int64(stmt, COLUMN_RUN)), at = group->n;
    while (at > 0 && group->outcomes[at - 1].rank > rank) {
        at--;
    }
    if (at == 0 || group->outcomes[at - 1].rank != rank) {
        if (group->n == group->room) {
            size_t room = 2 * group->room + 16;
            struct mla_outcome *list = realloc(group->outcomes, room * sizeof list[0]);
            if (list == NULL) {
                return mla_store_fail(report->store, MLA_STORE_ERR_NOMEM,
                                      "no memory for the report");
            }
            group->outcomes = list;
            group->room = room;
        }
        memmove(&group->outcomes[at + 1], &group->outcomes[at],
                (group->n - at) * sizeof group->outcomes[0]);
        group->outcomes[at] = (struct mla_outcome){.rank = rank, .ratio = -1};
        group->n++;
        at++;
    }
    struct mla_outcome *o = &group->outcomes[at - 1];
    enum mla_grade grade = mla_grade_of((const char *)sqlite3_column_text(stmt, COLUMN_VERDICT));
    double ratio = ratio_of(stmt, COLUMN_RATIO);
    if (grade > o->grade || (grade == o->grade && ratio > o->ratio)) {
        o->verdict = sqlite3_column_int64(stmt, COLUMN_VERDICT_ROW);
    }
    o->grade = grade > o->grade ? grade : o->grade;
    o->ratio = ratio > o->ratio ? ratio : o->ratio;
    if (sqlite3_column_int(stmt, COLUMN_PLAIN) != 0) {
        o->plain = sqlite3_column_int64(stmt, COLUMN_VERDICT_ROW);
        o->seconds = sqlite3_column_double(stmt, COLUMN_SECONDS);
    }
    report->answer.verdicts++;
    return MLA_STORE_OK;
}

static bool is_judged(const struct mla_outcome *o)
{
    return mla_grade_is_good(o->grade) || mla_grade_is_bad(o->grade);
}

/* The runs that judged the same as the last one did: how many, how many failed, the gravest of them. */
struct repetition {
    int64_t runs_n, failed_n;
    size_t worst; /* of several as grave the last; meaningless where none failed */
};

/* A changed work tree has no name: its last run stands alone. */
static struct repetition repetition_of(const struct mla_report *report, const char *kernel,
                                       const struct mla_outcome *outcomes, size_t n)
{
    struct repetition r = {0};
    size_t state = mla_report_state(report, outcomes[n - 1].rank, kernel);
    for (size_t i = n; i-- > 0 && (i == n - 1 || !report->states[state].dirty);) {
        const struct mla_outcome *o = &outcomes[i];
        if (!is_judged(o) || mla_report_state(report, o->rank, kernel) != state) {
            continue;
        }
        r.runs_n++;
        if (mla_grade_is_bad(o->grade)) {
            r.worst = r.failed_n == 0 || o->grade > outcomes[r.worst].grade ? i : r.worst;
            r.failed_n++;
        }
    }
    return r;
}

/* What neither answered nor was due has no figures, even where a call before it had some. */
static void drop_figures(struct mla_outcome *o)
{
    if (o->grade == MLA_GRADE_CRASH || o->grade == MLA_GRADE_TIMEOUT) {
        o->ratio = -1;
        o->plain = 0;
        o->seconds = 0;
    }
}

/* Was the case judged by what the kernel is now? */
static void count_now(struct mla_report *report, struct mla_subject *subject, const char *kernel,
                      const struct mla_outcome *judged, const struct mla_outcome *last)
{
    if (is_judged(judged) && mla_report_state(report, judged->rank, kernel) == subject->state) {
        subject->now_judged++;
    } else if (mla_report_state(report, last->rank, kernel) == subject->state) {
        subject->now_unsupported += last->grade == MLA_GRADE_UNSUPPORTED;
        subject->now_unjudged += last->grade != MLA_GRADE_UNSUPPORTED;
        subject->idle_verdict = last->verdict;
    }
}

/* The outcomes of one sanitizer, in order of time; they come first in the list afterwards. */
static int32_t end_subject(struct mla_report *report, struct group *group, size_t first, size_t n)
{
    const char *sanitizer = report->runs[group->outcomes[first].rank].sanitizer;
    struct mla_outcome *mine = &group->outcomes[first];
    struct mla_subject *subject =
        mla_report_subject(report, group->kernel, sanitizer, group->shape.ring);
    if (subject == NULL) {
        return MLA_STORE_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        drop_figures(&mine[i]);
        mla_report_add_trend(report, subject, &mine[i], group->shape.testcase);
    }
    /* A failure stays one until a run passes the case: what was not judged, or by another commit only,
     * takes nothing back. */
    size_t judged = n;
    while (judged > 1 && !is_judged(&mine[judged - 1])) {
        judged--;
    }
    count_now(report, subject, group->kernel, &mine[judged - 1], &mine[n - 1]);
    struct repetition same = repetition_of(report, group->kernel, mine, judged);
    if (same.failed_n > 0) {
        n = same.worst + 1;
    }
    struct mla_change change = mla_report_rule(mine, n);
    change.testcase = group->shape.testcase;
    change.failed_n = same.failed_n;
    change.runs_n = same.runs_n;
    if (n > 1 && !subject->planted) {
        double before = change.kind != MLA_SAME ? change.before : mine[n - 2].ratio,
               now = mine[n - 1].ratio;
        subject->compared++;
        report->answer.compared++;
        subject->worst_before = before > subject->worst_before ? before : subject->worst_before;
        subject->worst_now = now > subject->worst_now ? now : subject->worst_now;
    }
    mla_report_add_change(report, subject, change);
    mla_report_add_state(report, subject, &mine[n - 1], group->shape.testcase);
    return mla_report_state(report, mine[n - 1].rank, group->kernel) == subject->state
               ? mla_report_add_figures(report, subject, &mine[n - 1], &group->shape)
               : MLA_STORE_OK;
}

static int32_t end_group(struct mla_report *report, struct group *group)
{
    int32_t status = MLA_STORE_OK;
    /* A stable partition: those of the first one's sanitizer, then of the next ... */
    for (size_t first = 0; status == MLA_STORE_OK && first < group->n;) {
        const char *sanitizer = report->runs[group->outcomes[first].rank].sanitizer;
        size_t n = 1;
        for (size_t i = first + 1; i < group->n; i++) {
            struct mla_outcome o = group->outcomes[i];
            if (strcmp(report->runs[o.rank].sanitizer, sanitizer) == 0) {
                memmove(&group->outcomes[first + n + 1], &group->outcomes[first + n],
                        (i - first - n) * sizeof o);
                group->outcomes[first + n++] = o;
            }
        }
        status = end_subject(report, group, first, n);
        first += n;
    }
    group->n = 0;
    return status;
}

/* The row that the statement stands on begins another group, or belongs to the last. */
static int32_t take_row(struct mla_report *report, struct group *group, sqlite3_stmt *stmt)
{
    const char *kernel = (const char *)sqlite3_column_text(stmt, COLUMN_KERNEL);
    int64_t testcase = sqlite3_column_int64(stmt, COLUMN_CASE);
    bool new_case = testcase != group->shape.testcase;
    if (new_case || group->kernel == NULL || strcmp(kernel, group->kernel) != 0) {
        int32_t status = end_group(report, group);
        if (status != MLA_STORE_OK) {
            return status;
        }
        free(group->kernel);
        group->kernel = strdup(kernel);
        if (group->kernel == NULL) {
            return mla_store_fail(report->store, MLA_STORE_ERR_NOMEM, "no memory for the report");
        }
    }
    if (new_case) {
        start_case(group, stmt);
    }
    return add_verdict(report, group, stmt);
}

int32_t mla_report_read_verdicts(struct mla_report *report)
{
    struct group group = {.shape = {.testcase = -1}};
    sqlite3_stmt *stmt = mla_sql_prepare(report->store, pass);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int32_t status = MLA_STORE_OK;
    int code = SQLITE_ROW;
    while (status == MLA_STORE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        status = take_row(report, &group, stmt);
    }
    if (status == MLA_STORE_OK) {
        status = code == SQLITE_DONE ? end_group(report, &group)
                                     : mla_sql_fail(report->store, "read the verdicts");
    }
    (void)sqlite3_finalize(stmt);
    free(group.kernel);
    free(group.outcomes);
    return status;
}
