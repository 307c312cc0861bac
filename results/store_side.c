/* SPDX-License-Identifier: Apache-2.0
 *
 * store_side.c - the rows of one side of a comparison.
 *
 * One query gives the verdicts of the chosen runs, each key's latest first; what belongs to a key is folded
 * while they are read, so that a side of any size takes the memory of a row.
 */
#include "results/store_side.h"
#include "results/store_side_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
    ID,
    KERNEL,
    SANITIZER,
    ISA, /* up to here: the key */
    COMMIT,
    DIRTY,
    RUN,
    NUMBER,
    OP,
    FAMILY,
    VERDICT,
    REASON,
    RELATION,
    KERNEL_FILE,
    RATIO,
    HASH,
    LOOKED_AT
};

#define ROWS                                                                                       \
    "SELECT t.id, v.kernel, c.sanitizer, c.isa, c.git_commit, c.dirty, v.run, v.id, t.op, "        \
    "t.family,"                                                                                    \
    " v.verdict, coalesce(v.reason, ''), v.relation, " MLA_SIDE_KERNEL_FILE(                       \
        "c.kernels", "v.kernel") ", v.max_ratio,"                                                  \
                                 " (SELECT m.value FROM metric AS m WHERE m.verdict = v.id AND "   \
                                 "m.name = 'output_hash'),"                                        \
                                 " (SELECT m.value FROM metric AS m WHERE m.verdict = v.id AND "   \
                                 "m.name = 'relations')"                                           \
                                 " FROM chosen AS c JOIN verdict AS v ON v.run = c.run JOIN "      \
                                 "testcase AS t ON t.num = "                                       \
                                 "v.testcase"                                                      \
                                 " ORDER BY 1, 2, 3, 4, c.started DESC, c.uid DESC, v.id DESC"
#define FACTS                                                                                      \
    "SELECT count(*), min(run), max(run), count(DISTINCT git_commit || dirty),"                    \
    " (SELECT git_commit || iif(dirty, '-dirty', '') FROM chosen ORDER BY started DESC, uid "      \
    "DESC),"                                                                                       \
    " (SELECT coalesce(sum(n), 0) FROM tally WHERE run IN (SELECT run FROM chosen)),"              \
    " (SELECT count(*) FROM run WHERE ended IS NULL AND id IN (SELECT run FROM chosen))"           \
    " FROM chosen"

/* Until the side is closed everything it reads is of one moment, whatever others write meanwhile. */
static int32_t begin_snapshot(struct mla_store_side *side)
{
    side->has_snapshot = sqlite3_get_autocommit(side->store->db) != 0;
    if (side->has_snapshot &&
        sqlite3_exec(side->store->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        side->has_snapshot = false;
        return mla_sql_fail(side->store, "read the runs of a side");
    }
    return MLA_STORE_OK;
}

static int32_t read_facts(struct mla_store_side *side)
{
    struct mla_side_facts *f = &side->facts;
    sqlite3_stmt *stmt = mla_side_prepare(side, FACTS);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if (sqlite3_step(stmt) != SQLITE_ROW) {
        (void)sqlite3_finalize(stmt);
        return mla_sql_fail(side->store, "read the runs of a side");
    }
    const char *commit = (const char *)sqlite3_column_text(stmt, 4);
    (void)snprintf(side->last_commit, sizeof side->last_commit, "%s", commit == NULL ? "" : commit);
    *f = (struct mla_side_facts){
        .runs_n = sqlite3_column_int64(stmt, 0),
        .first_run = sqlite3_column_int64(stmt, 1),
        .last_run = sqlite3_column_int64(stmt, 2),
        .commits_n = sqlite3_column_int64(stmt, 3),
        .commit = side->last_commit,
        .tallied = sqlite3_column_int64(stmt, 5),
        .cut_off_n = sqlite3_column_int64(stmt, 6),
    };
    (void)sqlite3_finalize(stmt);
    return MLA_STORE_OK;
}

int32_t mla_store_side_open(struct mla_store *store, const char *spec, struct mla_store_side **side)
{
    *side = NULL;
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    struct mla_store_side *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to compare");
    }
    s->store = store;
    status = begin_snapshot(s);
    if (status == MLA_STORE_OK) {
        status = mla_side_choose(s, spec);
    }
    if (status == MLA_STORE_OK) {
        status = read_facts(s);
    }
    if (status == MLA_STORE_OK && (s->rows = mla_side_prepare(s, ROWS)) == NULL) {
        status = MLA_STORE_ERR_WRITE;
    }
    if (status != MLA_STORE_OK) {
        mla_store_side_close(s);
        return status;
    }
    *side = s;
    return MLA_STORE_OK;
}

void mla_store_side_close(struct mla_store_side *side)
{
    if (side == NULL) {
        return;
    }
    (void)sqlite3_finalize(side->rows);
    (void)sqlite3_finalize(side->figure);
    (void)sqlite3_finalize(side->repro);
    if (side->has_snapshot) {
        (void)sqlite3_exec(side->store->db, "COMMIT", NULL, NULL, NULL);
    }
    for (int i = 0; i < MLA_SIDE_TEXTS; i++) {
        free(side->texts[i]);
    }
    free(side);
}

struct mla_side_facts mla_store_side_facts(const struct mla_store_side *side)
{
    return side->facts;
}

/* ---- rows ---- */

static const char *text_at(struct mla_store_side *side, enum column column)
{
    const char *text = (const char *)sqlite3_column_text(side->rows, (int)column);
    return text == NULL ? "" : text;
}

/* Keep a column of the current row; columns of a key's first row are kept, later ones seen in place. */
static const char *keep(struct mla_store_side *side, enum column column)
{
    const char *text = text_at(side, column);
    size_t n = strlen(text) + 1;
    if (n > side->rooms[column]) {
        char *grown = realloc(side->texts[column], n + 64);
        if (grown == NULL) {
            return NULL;
        }
        side->texts[column] = grown;
        side->rooms[column] = n + 64;
    }
    memcpy(side->texts[column], text, n);
    return side->texts[column];
}

static double ratio_at(struct mla_store_side *side)
{
    if (sqlite3_column_type(side->rows, RATIO) == SQLITE_NULL) {
        return -1;
    }
    return mla_side_figure_at(side->rows, RATIO);
}

/* As the view outcome has it, for one verdict. */
static int gravity(const char *verdict)
{
    static const char *const order[] = {"unsupported",     "pass",    "unjudged", "refused",
                                        "fail-improbable", "timeout", "crash",    "fail-certain"};
    for (int i = 0; i < (int)(sizeof order / sizeof order[0]); i++) {
        if (strcmp(order[i], verdict) == 0) {
            return i;
        }
    }
    return -1;
}

bool mla_side_is_failure(const char *verdict)
{
    return gravity(verdict) >= gravity("fail-improbable");
}

static bool is_new_key(struct mla_store_side *side)
{
    for (int c = ID; c <= ISA; c++) {
        if (strcmp(side->texts[c], text_at(side, (enum column)c)) != 0) {
            return true;
        }
    }
    return false;
}

/* What the current row adds to what a key's verdicts say together. */
static void count_verdict(struct mla_store_side *side, struct mla_side_row *row)
{
    const char *verdict = text_at(side, VERDICT);
    bool failed = mla_side_is_failure(verdict);
    row->failed_n += failed;
    row->judged_n += failed || strcmp(verdict, "pass") == 0 || strcmp(verdict, "refused") == 0;
    if (sqlite3_column_type(side->rows, LOOKED_AT) == SQLITE_FLOAT) {
        int64_t mask = (int64_t)sqlite3_column_double(side->rows, LOOKED_AT);
        row->relations = row->relations < 0 ? mask : row->relations | mask;
    }
}

/* NULL texts: out of memory. */
static bool take_verdict(struct mla_store_side *side, struct mla_side_row *row)
{
    row->verdict = keep(side, VERDICT);
    row->reason = keep(side, REASON);
    row->relation = keep(side, RELATION);
    row->run = sqlite3_column_int64(side->rows, RUN);
    row->number = sqlite3_column_int64(side->rows, NUMBER);
    return row->verdict != NULL && row->reason != NULL && row->relation != NULL;
}

static bool begin_key(struct mla_store_side *side, struct mla_side_row *row)
{
    *row = (struct mla_side_row){.id = keep(side, ID),
                                 .op = keep(side, OP),
                                 .family = keep(side, FAMILY),
                                 .kernel = keep(side, KERNEL),
                                 .sanitizer = keep(side, SANITIZER),
                                 .isa = keep(side, ISA),
                                 .max_ratio = ratio_at(side),
                                 .output_hash = sqlite3_column_double(side->rows, HASH),
                                 .relations = -1,
                                 .runs_n = 1,
                                 .is_steady = true};
    count_verdict(side, row);
    side->latest_run = sqlite3_column_int64(side->rows, RUN);
    side->latest_dirty = sqlite3_column_int(side->rows, DIRTY) != 0;
    return take_verdict(side, row) && keep(side, COMMIT) != NULL &&
           keep(side, KERNEL_FILE) != NULL && row->id != NULL && row->op != NULL &&
           row->family != NULL && row->kernel != NULL && row->sanitizer != NULL && row->isa != NULL;
}

/* Does the current row count beside the key's latest? */
static bool counts(struct mla_store_side *side)
{
    if (sqlite3_column_int64(side->rows, RUN) == side->latest_run) {
        return true;
    }
    return !side->latest_dirty && sqlite3_column_int(side->rows, DIRTY) == 0 &&
           strcmp(side->texts[COMMIT], text_at(side, COMMIT)) == 0 &&
           strcmp(side->texts[KERNEL_FILE], text_at(side, KERNEL_FILE)) == 0;
}

static bool add_verdict(struct mla_store_side *side, struct mla_side_row *row, int64_t *last_run)
{
    double ratio = ratio_at(side), hash = sqlite3_column_double(side->rows, HASH);
    int64_t run = sqlite3_column_int64(side->rows, RUN);
    int more = gravity(text_at(side, VERDICT)) - gravity(row->verdict);
    row->runs_n += run != *last_run;
    row->is_steady = row->is_steady && (more == 0 || run == *last_run);
    *last_run = run;
    count_verdict(side, row);
    row->is_steady = row->is_steady && (row->failed_n == 0 || row->failed_n == row->judged_n);
    if (!isnan(row->max_ratio) && !(ratio <= row->max_ratio)) {
        row->max_ratio = ratio;
    }
    if (hash != 0 && row->output_hash != 0 && hash != row->output_hash) {
        row->output_hash = -1;
    } else if (row->output_hash == 0) {
        row->output_hash = hash;
    }
    return more <= 0 || take_verdict(side, row);
}

static int32_t step(struct mla_store_side *side)
{
    int code = sqlite3_step(side->rows);
    side->has_row = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE
               ? MLA_STORE_OK
               : mla_sql_fail(side->store, "read the verdicts of a side");
}

int32_t mla_store_side_next(struct mla_store_side *side, struct mla_side_row *row)
{
    int32_t status = side->began ? MLA_STORE_OK : step(side);
    side->began = true;
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (!side->has_row) {
        return MLA_STORE_ERR_NOT_FOUND;
    }
    bool ok = begin_key(side, row);
    int64_t last_run = side->latest_run;
    for (status = step(side); ok && status == MLA_STORE_OK && side->has_row && !is_new_key(side);
         status = step(side)) {
        if (counts(side)) {
            ok = add_verdict(side, row, &last_run);
        }
    }
    if (!ok) {
        return mla_store_fail(side->store, MLA_STORE_ERR_NOMEM, "no memory to compare");
    }
    return status;
}
