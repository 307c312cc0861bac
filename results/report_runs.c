/* SPDX-License-Identifier: Apache-2.0
 *
 * report_runs.c - the runs in order of time, and what each kernel was when it was last judged.
 */
#include "results/report_read.h"

#include <stdlib.h>
#include <string.h>

static char *column_copy(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return strdup(text != NULL ? text : "");
}

static int32_t no_memory(struct mla_store *store)
{
    return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory for the report");
}

static int32_t add_run(struct mla_report *report, sqlite3_stmt *stmt)
{
    struct mla_run_row *runs = realloc(report->runs, (report->runs_n + 1) * sizeof report->runs[0]);
    if (runs == NULL) {
        return no_memory(report->store);
    }
    report->runs = runs;
    struct mla_run_row *run = &runs[report->runs_n];
    *run = (struct mla_run_row){.id = sqlite3_column_int64(stmt, 0),
                                .command = column_copy(stmt, 1),
                                .started = column_copy(stmt, 2),
                                .ended = column_copy(stmt, 3),
                                .cpu = column_copy(stmt, 4),
                                .commit = column_copy(stmt, 5),
                                .dirty = sqlite3_column_int(stmt, 6) != 0,
                                .sanitizer = column_copy(stmt, 7),
                                .seconds = sqlite3_column_type(stmt, 8) == SQLITE_NULL
                                               ? -1
                                               : sqlite3_column_double(stmt, 8),
                                .kernels = column_copy(stmt, 10),
                                .trials = sqlite3_column_int64(stmt, 9),
                                .cases = sqlite3_column_int64(stmt, 9)};
    report->runs_n++;
    if (run->command == NULL || run->started == NULL || run->ended == NULL || run->cpu == NULL ||
        run->commit == NULL || run->sanitizer == NULL || run->kernels == NULL) {
        return no_memory(report->store);
    }
    if (!mla_report_add_states(report, run, run->kernels)) {
        return no_memory(report->store);
    }
    return MLA_STORE_OK;
}

static const struct mla_report *sorted; /* qsort has no context */

static int by_id(const void *a, const void *b)
{
    int64_t x = sorted->runs[*(const size_t *)a].id, y = sorted->runs[*(const size_t *)b].id;
    return (x > y) - (x < y);
}

/* Of the same second by their names, which begin with the time and are the same in every copy. */
int32_t mla_report_read_runs(struct mla_report *report)
{
    sqlite3_stmt *stmt = mla_sql_prepare(
        report->store,
        "SELECT r.id, r.command, r.started, r.ended, r.host_cpu, b.git_commit, b.dirty,"
        " b.sanitizer, (julianday(r.ended) - julianday(r.started)) * 86400,"
        " (SELECT coalesce(sum(executions), 0) FROM trial WHERE trial.run = r.id),"
        " r.kernels FROM run AS r JOIN build AS b ON b.id = r.build ORDER BY r.started, r.uid");
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int32_t status = MLA_STORE_OK;
    int code = SQLITE_ROW;
    while (status == MLA_STORE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        status = add_run(report, stmt);
    }
    if (status == MLA_STORE_OK && code != SQLITE_DONE) {
        status = mla_sql_fail(report->store, "read the runs");
    }
    (void)sqlite3_finalize(stmt);
    if (status != MLA_STORE_OK) {
        return status;
    }
    report->by_id = calloc(report->runs_n + 1, sizeof report->by_id[0]);
    if (report->by_id == NULL) {
        return no_memory(report->store);
    }
    for (size_t i = 0; i < report->runs_n; i++) {
        report->by_id[i] = i;
    }
    sorted = report;
    qsort(report->by_id, report->runs_n, sizeof report->by_id[0], by_id);
    report->states_first =
        report->states_n > MLA_REPORT_STATES ? report->states_n - MLA_REPORT_STATES : 0;
    return MLA_STORE_OK;
}

const struct mla_run_row *mla_report_cut_off(const struct mla_report *report)
{
    const struct mla_run_row *last = report->runs_n == 0 ? NULL : &report->runs[report->runs_n - 1];
    return last != NULL && last->ended[0] == '\0' ? last : NULL;
}

size_t mla_report_rank(const struct mla_report *report, int64_t run)
{
    size_t low = 0, high = report->runs_n;
    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        if (report->runs[report->by_id[middle]].id <= run) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return report->by_id[low];
}

static struct mla_subject *find_subject(struct mla_report *report, const char *kernel,
                                        const char *sanitizer, bool ring)
{
    for (size_t i = 0; i < report->subjects_n; i++) {
        struct mla_subject *s = &report->subjects[i];
        if (s->ring == ring && strcmp(s->kernel, kernel) == 0 &&
            strcmp(s->sanitizer, sanitizer) == 0) {
            return s;
        }
    }
    return NULL;
}

struct mla_subject *mla_report_subject(struct mla_report *report, const char *kernel,
                                       const char *sanitizer, bool ring)
{
    struct mla_subject *found = find_subject(report, kernel, sanitizer, ring);
    if (found != NULL) {
        return found;
    }
    struct mla_subject *list =
        realloc(report->subjects, (report->subjects_n + 1) * sizeof report->subjects[0]);
    if (list == NULL) {
        (void)no_memory(report->store);
        return NULL;
    }
    report->subjects = list;
    struct mla_subject *s = &list[report->subjects_n];
    memset(s, 0, sizeof *s);
    s->kernel = strdup(kernel);
    s->sanitizer = strdup(sanitizer);
    s->ring = ring;
    s->planted = strncmp(kernel, "fault:", strlen("fault:")) == 0 ||
                 strncmp(kernel, "adversary:", strlen("adversary:")) == 0;
    s->worst_before = s->worst_now = -1;
    s->rounded_least = 100;
    for (size_t i = 0; i < MLA_REPORT_STATES; i++) {
        s->trend[i].y = -1;
    }
    report->subjects_n++; /* even if a copy failed: free takes care */
    if (s->kernel == NULL || s->sanitizer == NULL) {
        (void)no_memory(report->store);
        return NULL;
    }
    return s;
}

static int32_t take_kernel(struct mla_report *report, size_t rank, const char *kernel, bool ring)
{
    struct mla_subject *s = mla_report_subject(report, kernel, report->runs[rank].sanitizer, ring);
    if (s == NULL) {
        return MLA_STORE_ERR_NOMEM;
    }
    if (rank >= s->rank) {
        s->rank = rank;
        s->state = mla_report_state(report, rank, kernel);
    }
    return MLA_STORE_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct mla_subject *x = a, *y = b;
    int order = y->ring - x->ring; /* ring first */
    order = order != 0 ? order : strcmp(x->kernel, y->kernel);
    return order != 0 ? order : strcmp(x->sanitizer, y->sanitizer);
}

int32_t mla_report_read_subjects(struct mla_report *report)
{
    /* Told apart here: a GROUP BY would sort all of them. */
    sqlite3_stmt *stmt =
        mla_sql_prepare(report->store, "SELECT v.run, v.kernel, t.op FROM verdict AS v"
                                       " JOIN testcase AS t ON t.num = v.testcase"
                                       " UNION ALL SELECT run, kernel, op FROM tally");
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int32_t status = MLA_STORE_OK;
    int code = SQLITE_ROW;
    while (status == MLA_STORE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        status = take_kernel(report, mla_report_rank(report, sqlite3_column_int64(stmt, 0)),
                             (const char *)sqlite3_column_text(stmt, 1),
                             sqlite3_column_text(stmt, 2)[0] == 'r');
    }
    if (status == MLA_STORE_OK && code != SQLITE_DONE) {
        status = mla_sql_fail(report->store, "read the kernels");
    }
    (void)sqlite3_finalize(stmt);
    if (status == MLA_STORE_OK && report->subjects_n > 0) {
        qsort(report->subjects, report->subjects_n, sizeof report->subjects[0], by_name);
    }
    return status;
}
