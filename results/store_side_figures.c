/* SPDX-License-Identifier: Apache-2.0
 *
 * store_side_figures.c - what else is asked of a comparison's side: statistics, repro lines, medians of runs.
 */
#include "results/store_side_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double mla_side_figure_at(sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) != SQLITE_TEXT) {
        return sqlite3_column_double(stmt, column);
    }
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return strcmp(text, "inf") == 0 ? INFINITY : strcmp(text, "-inf") == 0 ? -INFINITY : NAN;
}

int32_t mla_store_side_figure(struct mla_store_side *side, const struct mla_side_row *row,
                              const char *name, double *value)
{
    if (side->figure == NULL) {
        side->figure = mla_sql_prepare(side->store,
                                       "SELECT value FROM metric WHERE verdict = ?1 AND name = ?2");
    }
    if (side->figure == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    (void)mla_sql_bind_int(side->figure, 1, row->number);
    (void)mla_sql_bind_text(side->figure, 2, name);
    int32_t status = MLA_STORE_OK;
    int code = sqlite3_step(side->figure);
    if (code == SQLITE_ROW) {
        *value = mla_side_figure_at(side->figure, 0);
    } else {
        status = code == SQLITE_DONE ? MLA_STORE_ERR_NOT_FOUND
                                     : mla_sql_fail(side->store, "read a statistic");
    }
    (void)sqlite3_reset(side->figure);
    return status;
}

int32_t mla_store_side_repro(struct mla_store_side *side, const struct mla_side_row *row,
                             char **repro)
{
    *repro = NULL;
    if (side->repro == NULL) {
        side->repro = mla_sql_prepare(
            side->store,
            "SELECT f.repro FROM verdict AS v JOIN finding AS f ON f.testcase = v.testcase"
            " AND f.kernel = v.kernel AND f.verdict = v.verdict WHERE v.id = ?1");
    }
    if (side->repro == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    (void)mla_sql_bind_int(side->repro, 1, row->number);
    int32_t status = MLA_STORE_OK;
    int code = sqlite3_step(side->repro);
    const unsigned char *text = code == SQLITE_ROW ? sqlite3_column_text(side->repro, 0) : NULL;
    if (text != NULL && (*repro = strdup((const char *)text)) == NULL) {
        status = mla_store_fail(side->store, MLA_STORE_ERR_NOMEM, "no memory to compare");
    } else if (code != SQLITE_ROW && code != SQLITE_DONE) {
        status = mla_sql_fail(side->store, "read a finding");
    }
    (void)sqlite3_reset(side->repro);
    return status;
}

#define KERNEL_FILE                                                                                \
    "SELECT " MLA_SIDE_KERNEL_FILE("kernels", "?4") " AS file FROM chosen WHERE file <> ''"        \
                                                    " ORDER BY started DESC, uid DESC LIMIT 1"

int32_t mla_store_side_kernel_file(struct mla_store_side *side, const char *kernel,
                                   char hash[MLA_STORE_FILE_BYTES])
{
    sqlite3_stmt *stmt = mla_side_prepare(side, KERNEL_FILE);
    hash[0] = '\0';
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    (void)mla_sql_bind_text(stmt, 4, kernel);
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        (void)snprintf(hash, MLA_STORE_FILE_BYTES, "%s", text == NULL ? "" : text);
        hash[strspn(hash, "0123456789abcdef")] = '\0';
    }
    int32_t status = code == SQLITE_ROW || code == SQLITE_DONE
                         ? MLA_STORE_OK
                         : mla_sql_fail(side->store, "read the kernels of a side");
    (void)sqlite3_finalize(stmt);
    return status;
}

/* ---- medians ---- */

/* Texts (inf) sort above numbers, which is where they belong. Hunts are left out: they store new worst
 * errors only. */
#define MEDIANS                                                                                    \
    ", ranked AS (SELECT t.op, v.kernel, c.sanitizer, c.isa, m.name, c.run, c.started, c.uid,"     \
    " c.git_commit, c.dirty, m.value,"                                                             \
    " row_number() OVER (PARTITION BY c.run, t.op, v.kernel, m.name ORDER BY m.value) AS place,"   \
    " count(*) OVER (PARTITION BY c.run, t.op, v.kernel, m.name) AS n"                             \
    " FROM chosen AS c JOIN verdict AS v ON v.run = c.run"                                         \
    " JOIN testcase AS t ON t.num = v.testcase JOIN metric AS m ON m.verdict = v.id"               \
    " WHERE (c.command = 'run' OR c.command GLOB 'run *') AND m.value <> 'nan'"                    \
    " AND m.name IN ('max_err_over_bound', 'max_ulp', 'p99_ulp', 'rms_relative', 'bias_se',"       \
    " 'bias_outward_se', 'correctly_rounded_percent', 'chi_square_ratio'))"                        \
    " SELECT op, kernel, sanitizer, isa, name, run, n, value, git_commit, dirty FROM ranked"       \
    " WHERE place = (n + 1) / 2 ORDER BY 1, 2, 3, 4, 5, started DESC, uid DESC"

#define GROUP_BYTES 1024

/* "op\nkernel\n..\ncommit": who belongs together. */
static void name_group(sqlite3_stmt *stmt, char text[GROUP_BYTES])
{
    static const int columns[] = {0, 1, 2, 3, 4};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        sqlite3_snprintf((int)(GROUP_BYTES - strlen(text)), text + strlen(text), "%s\n",
                         sqlite3_column_text(stmt, columns[i]));
    }
}

int32_t mla_store_side_medians(struct mla_store_side *side, mla_side_median_fn *take, void *context)
{
    char group[GROUP_BYTES] = "", now[GROUP_BYTES], commit[MLA_SIDE_COMMIT_MAX] = "";
    bool dirty = false;
    sqlite3_stmt *stmt = mla_side_prepare(side, MEDIANS);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = sqlite3_step(stmt);
    for (; code == SQLITE_ROW; code = sqlite3_step(stmt)) {
        const char *its = (const char *)sqlite3_column_text(stmt, 8);
        bool its_dirty = sqlite3_column_int(stmt, 9) != 0;
        name_group(stmt, now);
        bool latest = strcmp(group, now) != 0;
        if (latest) {
            memcpy(group, now, sizeof group);
            sqlite3_snprintf(sizeof commit, commit, "%s", its);
            dirty = its_dirty;
        } else if (dirty || its_dirty || strcmp(commit, its) != 0) {
            continue;
        }
        const struct mla_side_median median = {.op = (const char *)sqlite3_column_text(stmt, 0),
                                               .kernel = (const char *)sqlite3_column_text(stmt, 1),
                                               .sanitizer =
                                                   (const char *)sqlite3_column_text(stmt, 2),
                                               .isa = (const char *)sqlite3_column_text(stmt, 3),
                                               .name = (const char *)sqlite3_column_text(stmt, 4),
                                               .run = sqlite3_column_int64(stmt, 5),
                                               .cases_n = sqlite3_column_int64(stmt, 6),
                                               .value = mla_side_figure_at(stmt, 7)};
        take(context, &median);
    }
    int32_t status = code == SQLITE_DONE ? MLA_STORE_OK
                                         : mla_sql_fail(side->store, "read the medians of a side");
    (void)sqlite3_finalize(stmt);
    return status;
}
