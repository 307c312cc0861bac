/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - a report from its reading to its end, and the names it gives to things.
 */
#include "results/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_read.h"
#include "results/report_text.h"

static const char *const format_names[MLA_REPORT_FORMATS_N] = {"html", "md",    "csv",
                                                               "json", "junit", "sarif"};

const char *mla_report_format_name(enum mla_report_format format)
{
    return (int)format >= 0 && format < MLA_REPORT_FORMATS_N ? format_names[format] : NULL;
}

/* One moment of the database: writers may go on meanwhile. */
static int32_t read_all(struct mla_report *report)
{
    struct mla_store *store = report->store;
    if (sqlite3_exec(store->db, "PRAGMA cache_size = -65536; BEGIN", NULL, NULL, NULL) !=
        SQLITE_OK) {
        return mla_sql_fail(store, "begin to read");
    }
    int32_t status = mla_report_read_runs(report);
    status = status == MLA_STORE_OK ? mla_report_read_subjects(report) : status;
    status = status == MLA_STORE_OK ? mla_report_read_verdicts(report) : status;
    status = status == MLA_STORE_OK ? mla_report_read_tallies(report) : status;
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

int32_t mla_report_read(struct mla_store *store, struct mla_report **report)
{
    *report = NULL;
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    struct mla_report *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory for the report");
    }
    r->store = store;
    status = read_all(r);
    if (status != MLA_STORE_OK) {
        mla_report_free(r);
        return status;
    }
    *report = r;
    return MLA_STORE_OK;
}

void mla_report_free(struct mla_report *report)
{
    if (report == NULL) {
        return;
    }
    for (size_t i = 0; i < report->runs_n; i++) {
        struct mla_run_row *run = &report->runs[i];
        free(run->command);
        free(run->kernels);
        free(run->started);
        free(run->ended);
        free(run->cpu);
        free(run->commit);
        free(run->sanitizer);
        for (size_t k = 0; k < run->files_n; k++) {
            free(run->files[k].path);
        }
        free(run->files);
    }
    for (size_t i = 0; i < report->states_n; i++) {
        free(report->states[i].commit);
    }
    free(report->states);
    for (size_t i = 0; i < report->subjects_n; i++) {
        free(report->subjects[i].kernel);
        free(report->subjects[i].sanitizer);
    }
    for (size_t i = 0; i < report->cases_n; i++) {
        free(report->cases[i].line);
        free(report->cases[i].op);
    }
    free(report->runs);
    free(report->by_id);
    free(report->subjects);
    free(report->cases);
    free(report);
}

bool mla_report_is_empty(const struct mla_report *report)
{
    return report->runs_n == 0;
}

struct mla_report_answer mla_report_answer(const struct mla_report *report)
{
    return report->answer;
}

int32_t mla_report_write(struct mla_report *report, enum mla_report_format format, FILE *file)
{
    static void (*const writers[MLA_REPORT_FORMATS_N])(struct mla_report *, FILE *) = {
        [MLA_REPORT_MARKDOWN] = mla_report_markdown, [MLA_REPORT_CSV] = mla_report_csv,
        [MLA_REPORT_JSON] = mla_report_json,         [MLA_REPORT_JUNIT] = mla_report_junit,
        [MLA_REPORT_SARIF] = mla_report_sarif,
    };
    if (format == MLA_REPORT_HTML) {
        return mla_report_html(report, file);
    }
    writers[format](report, file);
    return MLA_STORE_OK;
}

const struct mla_case_row *mla_report_case(struct mla_report *report, int64_t num)
{
    for (size_t i = 0; i < report->cases_n; i++) {
        if (report->cases[i].num == num) {
            return &report->cases[i];
        }
    }
    struct mla_case_row *list =
        realloc(report->cases, (report->cases_n + 1) * sizeof report->cases[0]);
    sqlite3_stmt *stmt = mla_sql_get(report->store, MLA_SQL_REPORT_CASE);
    if (list == NULL || stmt == NULL) {
        report->cases = list != NULL ? list : report->cases;
        return NULL;
    }
    report->cases = list;
    struct mla_case_row *row = &list[report->cases_n];
    *row = (struct mla_case_row){.num = num};
    if (sqlite3_bind_int64(stmt, 1, num) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        (void)snprintf(row->id, sizeof row->id, "%s", (const char *)sqlite3_column_text(stmt, 0));
        row->line = strdup((const char *)sqlite3_column_text(stmt, 1));
        row->op = strdup((const char *)sqlite3_column_text(stmt, 2));
    }
    (void)sqlite3_reset(stmt);
    if (row->line == NULL || row->op == NULL) {
        free(row->line);
        free(row->op);
        return NULL;
    }
    report->cases_n++;
    return row;
}

static char *copy_or_empty(sqlite3_stmt *stmt, int column)
{
    const char *text = stmt != NULL ? (const char *)sqlite3_column_text(stmt, column) : NULL;
    return strdup(text != NULL ? text : "");
}

void mla_report_reason(struct mla_report *report, int64_t verdict, char **word, char **reason)
{
    sqlite3_stmt *stmt = mla_sql_get(report->store, MLA_SQL_REPORT_REASON);
    bool found = stmt != NULL && sqlite3_bind_int64(stmt, 1, verdict) == SQLITE_OK &&
                 sqlite3_step(stmt) == SQLITE_ROW;
    *word = copy_or_empty(found ? stmt : NULL, 0);
    *reason = copy_or_empty(found ? stmt : NULL, 1);
    (void)sqlite3_reset(stmt);
}

char *mla_subject_name(const struct mla_subject *s)
{
    size_t bytes = strlen(s->kernel) + strlen(s->sanitizer) + 4;
    char *name = malloc(bytes);
    if (name != NULL) {
        bool plain = s->sanitizer[0] == '\0';
        (void)snprintf(name, bytes, "%s%s%s%s", s->kernel, plain ? "" : " [", s->sanitizer,
                       plain ? "" : "]");
    }
    return name;
}

/* What the finding of a fault that is not fixed says; NULL: there is none. */
static char *repro_of_finding(struct mla_report *report, const char *kernel, int64_t testcase)
{
    sqlite3_stmt *stmt = mla_sql_get(report->store, MLA_SQL_REPORT_REPRO);
    char *text = NULL;
    if (stmt != NULL && sqlite3_bind_int64(stmt, 1, testcase) == SQLITE_OK &&
        mla_sql_bind_text(stmt, 2, kernel) == 0 && sqlite3_step(stmt) == SQLITE_ROW) {
        text = strdup((const char *)sqlite3_column_text(stmt, 0));
    }
    (void)sqlite3_reset(stmt);
    return text;
}

/* Did the last verdict that accuses the kernel find it by a relation? */
static bool fails_by_relation(struct mla_report *report, const char *kernel, int64_t testcase)
{
    sqlite3_stmt *stmt = mla_sql_get(report->store, MLA_SQL_REPORT_RELATION);
    bool by_relation = stmt != NULL && sqlite3_bind_int64(stmt, 1, testcase) == SQLITE_OK &&
                       mla_sql_bind_text(stmt, 2, kernel) == 0 &&
                       sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) > 0;
    (void)sqlite3_reset(stmt);
    return by_relation;
}

/* With all relations where one of them shows the fault: which ones are dear is not for the store to know. */
static char *repro_of_run(const char *kernel, const char *line, bool relations)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) {
        return NULL;
    }
    fputs("mlacheck run --kernel ", file);
    mla_text_shell(file, kernel);
    fputs(" --case ", file);
    mla_text_shell(file, line);
    fputs(relations ? " --relations" : "", file);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *mla_report_repro(struct mla_report *report, const struct mla_subject *subject,
                       const struct mla_case_row *row)
{
    if (row == NULL) {
        return NULL;
    }
    char *text = repro_of_finding(report, subject->kernel, row->num);
    return text != NULL ? text
                        : repro_of_run(subject->kernel, row->line,
                                       fails_by_relation(report, subject->kernel, row->num));
}

static bool is_graver(const struct mla_subject *a, const struct mla_subject *b)
{
    return a->gravest_fails != b->gravest_fails ? a->gravest_fails : a->gravest.y > b->gravest.y;
}

const struct mla_subject *mla_report_worst(const struct mla_report *report)
{
    const struct mla_subject *worst = NULL;
    for (size_t i = 0; i < report->subjects_n; i++) {
        const struct mla_subject *s = &report->subjects[i];
        if (s->gravest.n > 0 && !s->planted && (worst == NULL || is_graver(s, worst))) {
            worst = s;
        }
    }
    return worst;
}
