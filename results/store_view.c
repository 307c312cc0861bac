/* SPDX-License-Identifier: Apache-2.0
 *
 * store_view.c - the tables a person reads, as rows or as JSON.
 *
 * "Newest" goes by when a run began: after a merge numbers follow the order of merging.
 * Each view is a query over the views of schema.sql, once without and once with a key (?1: number
 * of a run or of a case). The JSON form wraps the same query in SQLite's own JSON functions, so
 * that escaping is SQLite's and columns and order cannot differ.
 */
#include "results/store_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum key_kind {
    KEY_RUN,          /* a run, NULL: all */
    KEY_RUN_OR_LAST,  /* a run, NULL: the latest */
    KEY_CASE,         /* a case, NULL: all */
    KEY_CASE_REQUIRED /* a case */
};

struct view {
    const char *name;
    enum key_kind key;
    const char *all;   /* query without a key, NULL when there is always one */
    const char *keyed; /* query with ?1 */
};

/* What the view summary says of one run; asked of outcome itself, `run = ..` reaches an index. */
#define SUMMARY_COLUMNS                                                                            \
    "op, kernel, family, sum(cases) AS cases,"                                                     \
    " sum(iif(verdict = 'pass', cases, 0)) AS passed,"                                             \
    " sum(iif(verdict = 'fail-certain', cases, 0)) AS failed,"                                     \
    " sum(iif(verdict = 'fail-improbable', cases, 0)) AS improbable,"                              \
    " sum(iif(verdict = 'unjudged', cases, 0)) AS unjudged,"                                       \
    " sum(iif(verdict = 'unsupported', cases, 0)) AS unsupported,"                                 \
    " sum(iif(verdict = 'refused', cases, 0)) AS refused,"                                         \
    " sum(iif(verdict IN ('crash', 'timeout'), cases, 0)) AS crashed,"                             \
    " max(err_over_bound) AS worst_err_over_bound"
#define RUN_COLUMNS "run, started, command, kernels, \"commit\", cases, failed"
/* Over several runs the worst of each case and kernel: the other columns are of that row. */
#define WORST_COLUMNS                                                                              \
    "id, op, kernel, verdict, max(err_over_bound) AS err_over_bound, element, line"
#define WORST_ORDER     " GROUP BY testcase, kernel ORDER BY 5 DESC, id, kernel LIMIT 50"
#define FINDING_COLUMNS "id, kernel, verdict, state, first_seen, last_seen, reason, repro"

#define ACCURACY_COLUMNS                                                                           \
    "op, kernel, family, cases, worst_err_over_bound, worst_p50_ulp, worst_p99_ulp, max_ulp,"      \
    " min_rounded_percent, mean_rounded_percent, worst_rms_relative, worst_bias_se,"               \
    " worst_bias_outward_se, worst_chi_square"
#define CRITERIA_COLUMNS                                                                           \
    "op, kernel, criterion, sum(cases) AS cases, sum(passed) AS passed, sum(failed) AS failed,"    \
    " sum(missed) AS missed, sum(alarms) AS alarms"
#define SPEED_COLUMNS                                                                              \
    "run, started, \"commit\", cpu, op, shape, kernel, threads, seconds, spread, gflops, gbytes,"  \
    " of_peak, of_own_peak, noisy, reps"
#define FAULTS_COLUMNS                                                                             \
    "fault, role, class, op, search, outcome, trials, killed, median_executions AS executions,"    \
    " median_seconds AS cpu_seconds, testcase, detectors, criteria"
#define FINDING_ORDER " ORDER BY state <> 'open', last_seen DESC, id, kernel, verdict"

static const struct view views[MLA_VIEW_N] = {
    [MLA_VIEW_RUNS] = {"runs", KEY_RUN,
                       "SELECT " RUN_COLUMNS " FROM runs ORDER BY started DESC, run DESC",
                       "SELECT " RUN_COLUMNS " FROM runs WHERE run = ?1"},
    [MLA_VIEW_SUMMARY] = {"summary", KEY_RUN_OR_LAST, NULL,
                          "SELECT " SUMMARY_COLUMNS " FROM outcome WHERE run = ?1"
                          " GROUP BY op, kernel, family ORDER BY op, kernel, family"},
    [MLA_VIEW_WORST] = {"worst", KEY_RUN, "SELECT " WORST_COLUMNS " FROM worst" WORST_ORDER,
                        "SELECT " WORST_COLUMNS " FROM worst WHERE run = ?1" WORST_ORDER},
    [MLA_VIEW_FINDINGS] = {"findings", KEY_CASE,
                           "SELECT " FINDING_COLUMNS " FROM findings" FINDING_ORDER,
                           "SELECT " FINDING_COLUMNS
                           " FROM findings WHERE testcase = ?1" FINDING_ORDER},
    [MLA_VIEW_CASE] = {"case", KEY_CASE_REQUIRED, NULL,
                       "SELECT v.run, v.kernel, v.verdict, v.relation,"
                       " v.max_ratio AS err_over_bound, v.elements_n AS elements, v.element,"
                       " v.got, v.lo, v.hi, v.reason, v.kernel_seconds, v.oracle_seconds,"
                       " (SELECT group_concat(m.name || '=' || m.value, ' ') FROM metric AS m"
                       " WHERE m.verdict = v.id) AS metrics"
                       " FROM verdict AS v JOIN run AS r ON r.id = v.run WHERE v.testcase = ?1"
                       " ORDER BY r.started DESC, v.id DESC"},
    [MLA_VIEW_RUN] = {"run", KEY_RUN_OR_LAST, NULL,
                      "WITH r AS (SELECT run.*, build.*, run.id AS run FROM run"
                      " JOIN build ON build.id = run.build WHERE run.id = ?1)"
                      " SELECT 'run' AS field, run AS value FROM r"
                      " UNION ALL SELECT 'command', command FROM r"
                      " UNION ALL SELECT 'kernels', kernels FROM r"
                      " UNION ALL SELECT 'seed', seed FROM r"
                      " UNION ALL SELECT 'started', started FROM r"
                      " UNION ALL SELECT 'ended', ended FROM r"
                      " UNION ALL SELECT 'host_cpu', host_cpu FROM r"
                      " UNION ALL SELECT 'commit', git_commit FROM r"
                      " UNION ALL SELECT 'dirty', dirty FROM r"
                      " UNION ALL SELECT 'compiler', compiler FROM r"
                      " UNION ALL SELECT 'flags', flags FROM r"
                      " UNION ALL SELECT 'sanitizer', sanitizer FROM r"
                      " UNION ALL SELECT 'isa', isa FROM r"},
    [MLA_VIEW_ACCURACY] = {"accuracy", KEY_RUN_OR_LAST, NULL,
                           "SELECT " ACCURACY_COLUMNS " FROM accuracy WHERE run = ?1"
                           " ORDER BY op, kernel, family"},
    [MLA_VIEW_CRITERIA] = {"criteria", KEY_RUN_OR_LAST, NULL,
                           "SELECT " CRITERIA_COLUMNS " FROM criteria WHERE run = ?1"
                           " GROUP BY op, kernel, criterion ORDER BY op, kernel, criterion"},
    [MLA_VIEW_SPEED] = {"speed", KEY_RUN,
                        "SELECT " SPEED_COLUMNS
                        " FROM speed ORDER BY started DESC, run DESC, id LIMIT 500",
                        "SELECT " SPEED_COLUMNS " FROM speed WHERE run = ?1 ORDER BY id"},
    [MLA_VIEW_FAULTS] = {"faults", KEY_RUN,
                         "SELECT " FAULTS_COLUMNS
                         " FROM kill_matrix WHERE run = (SELECT r.id FROM run AS r WHERE"
                         " EXISTS (SELECT 1 FROM trial AS t WHERE t.run = r.id)"
                         " ORDER BY r.started DESC, r.uid DESC LIMIT 1) ORDER BY id",
                         "SELECT " FAULTS_COLUMNS " FROM kill_matrix WHERE run = ?1 ORDER BY id"},
};

static int32_t latest_run(struct mla_store *store, int64_t *run)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_LATEST_RUN);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int32_t status = mla_sql_int64(store, stmt, "find the latest run", run);
    if (status == MLA_STORE_ERR_NOT_FOUND) {
        *run = 0; /* fits no run: the table is empty, which is the truth */
        return MLA_STORE_OK;
    }
    return status;
}

static int32_t stored_run(struct mla_store *store, const char *key, int64_t *run)
{
    size_t digits_n = strspn(key, "0123456789");
    if (digits_n == 0 || digits_n > 18 || key[digits_n] != '\0') {
        return mla_store_fail(store, MLA_STORE_ERR_NOT_FOUND,
                              "run '%.80s' is not the number of one", key);
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_FIND_RUN);
    if (stmt == NULL || mla_sql_bind_int(stmt, 1, strtoll(key, NULL, 10)) != 0) {
        return mla_sql_fail(store, "find a run");
    }
    int32_t status = mla_sql_int64(store, stmt, "find a run", run);
    if (status == MLA_STORE_ERR_NOT_FOUND) {
        return mla_store_fail(store, status, "there is no run %s in '%s'", key, store->path);
    }
    return status;
}

/* What the key means for this kind of view. */
static int32_t resolve_key(struct mla_store *store, enum key_kind kind, const char *key,
                           bool *keyed, int64_t *number)
{
    *keyed = key != NULL || kind == KEY_RUN_OR_LAST || kind == KEY_CASE_REQUIRED;
    if (!*keyed) {
        return MLA_STORE_OK;
    }
    if (kind == KEY_CASE || kind == KEY_CASE_REQUIRED) {
        return mla_find_case(store, key, number);
    }
    return key == NULL ? latest_run(store, number) : stored_run(store, key, number);
}

/* "SELECT json_group_array(json_object('a', "a", ..)) FROM (query)"; caller frees with
 * sqlite3_free. */
static char *json_query(sqlite3_stmt *rows, const char *query)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendall(text, "SELECT json_group_array(json_object(");
    for (int i = 0; i < sqlite3_column_count(rows); i++) {
        const char *name = sqlite3_column_name(rows, i);
        sqlite3_str_appendf(text, "%s%Q, \"%w\"", i == 0 ? "" : ", ", name, name);
    }
    sqlite3_str_appendf(text, ")) FROM (%s)", query);
    return sqlite3_str_finish(text);
}

static sqlite3_stmt *rows_statement(struct mla_store *store, enum mla_store_view view, bool keyed)
{
    sqlite3_stmt **slot = &store->views[view][keyed ? 1 : 0];
    if (*slot == NULL) {
        *slot = mla_sql_prepare(store, keyed ? views[view].keyed : views[view].all);
    }
    return *slot;
}

static sqlite3_stmt *json_statement(struct mla_store *store, enum mla_store_view view, bool keyed)
{
    sqlite3_stmt **slot = &store->views[view][keyed ? 3 : 2];
    if (*slot != NULL) {
        return *slot;
    }
    sqlite3_stmt *rows = rows_statement(store, view, keyed);
    if (rows == NULL) {
        return NULL;
    }
    char *query = json_query(rows, keyed ? views[view].keyed : views[view].all);
    if (query == NULL) {
        (void)mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to read a view");
        return NULL;
    }
    *slot = mla_sql_prepare(store, query);
    sqlite3_free(query);
    return *slot;
}

/* Flush, check the view, find its key and bind it. */
static int32_t start_view(struct mla_store *store, enum mla_store_view view, const char *key,
                          bool json, sqlite3_stmt **stmt)
{
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if ((int)view < 0 || (int)view >= MLA_VIEW_N) {
        return mla_store_fail(store, MLA_STORE_ERR_NOT_FOUND, "there is no view %d", (int)view);
    }
    bool keyed = false;
    int64_t number = 0;
    status = resolve_key(store, views[view].key, key, &keyed, &number);
    if (status != MLA_STORE_OK) {
        return status;
    }
    *stmt = json ? json_statement(store, view, keyed) : rows_statement(store, view, keyed);
    if (*stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if (keyed && mla_sql_bind_int(*stmt, 1, number) != 0) {
        return mla_sql_fail(store, "bind the key of a view");
    }
    return MLA_STORE_OK;
}

#define COLUMNS_MAX 16

struct row {
    const char *names[COLUMNS_MAX];
    const char *values[COLUMNS_MAX];
    char figures[COLUMNS_MAX][32]; /* REALs with six digits: a table for people */
};

static void take_row(sqlite3_stmt *stmt, int columns_n, struct row *row)
{
    for (int i = 0; i < columns_n; i++) {
        row->names[i] = sqlite3_column_name(stmt, i);
        if (sqlite3_column_type(stmt, i) == SQLITE_FLOAT) {
            (void)snprintf(row->figures[i], sizeof row->figures[i], "%.6g",
                           sqlite3_column_double(stmt, i));
            row->values[i] = row->figures[i];
        } else {
            row->values[i] = (const char *)sqlite3_column_text(stmt, i);
        }
    }
}

int32_t mla_store_view(struct mla_store *store, enum mla_store_view view, const char *key,
                       mla_store_row_fn *row, void *context)
{
    sqlite3_stmt *stmt = NULL;
    int32_t status = start_view(store, view, key, false, &stmt);
    if (status != MLA_STORE_OK) {
        return status;
    }
    int columns_n = sqlite3_column_count(stmt);
    if (columns_n > COLUMNS_MAX) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "view %s has %d columns, above %d",
                              views[view].name, columns_n, COLUMNS_MAX);
    }
    int stop = 0;
    int code = sqlite3_step(stmt);
    while (code == SQLITE_ROW && stop == 0) {
        struct row values;
        take_row(stmt, columns_n, &values);
        stop = row(context, columns_n, values.names, values.values);
        code = stop == 0 ? sqlite3_step(stmt) : code;
    }
    if (code != SQLITE_DONE && stop == 0) {
        status = mla_sql_fail(store, "read a view");
    }
    (void)sqlite3_reset(stmt);
    return status;
}

int32_t mla_store_view_json(struct mla_store *store, enum mla_store_view view, const char *key,
                            char **json)
{
    *json = NULL;
    sqlite3_stmt *stmt = NULL;
    int32_t status = start_view(store, view, key, true, &stmt);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (sqlite3_step(stmt) != SQLITE_ROW) {
        status = mla_sql_fail(store, "read a view");
    } else {
        *json = strdup((const char *)sqlite3_column_text(stmt, 0));
        if (*json == NULL) {
            status = mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to read a view");
        }
    }
    (void)sqlite3_reset(stmt);
    return status;
}
