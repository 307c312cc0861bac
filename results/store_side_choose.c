/* SPDX-License-Identifier: Apache-2.0
 *
 * store_side_choose.c - which runs make a side: a run by its number, a commit's by its beginning, or all.
 */
#include "results/store_side_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const choices[] = {
    [MLA_SIDE_ALL] = MLA_SIDE_CHOSEN("1"),
    [MLA_SIDE_RUN] = MLA_SIDE_CHOSEN("r.id = ?1"),
    [MLA_SIDE_COMMIT] = MLA_SIDE_CHOSEN("b.git_commit = ?2 AND b.dirty = ?3"),
};

sqlite3_stmt *mla_side_prepare(struct mla_store_side *side, const char *query)
{
    char *text = sqlite3_mprintf("%s %s", choices[side->kind], query);
    sqlite3_stmt *stmt = text == NULL ? NULL : mla_sql_prepare(side->store, text);
    sqlite3_free(text);
    if (stmt == NULL) {
        return NULL;
    }
    if (side->kind == MLA_SIDE_RUN) {
        (void)mla_sql_bind_int(stmt, 1, side->run);
    }
    if (side->kind == MLA_SIDE_COMMIT) {
        (void)mla_sql_bind_text(stmt, 2, side->commit);
        (void)mla_sql_bind_int(stmt, 3, side->dirty);
    }
    return stmt;
}

/* A number of at most 18 digits that is the number of a run. */
static int32_t choose_run(struct mla_store_side *side, const char *spec)
{
    size_t n = strspn(spec, "0123456789");
    if (n == 0 || n > 18 || spec[n] != '\0') {
        return MLA_STORE_ERR_NOT_FOUND;
    }
    sqlite3_stmt *stmt = mla_sql_get(side->store, MLA_SQL_FIND_RUN);
    if (stmt == NULL || mla_sql_bind_int(stmt, 1, strtoll(spec, NULL, 10)) != 0) {
        return mla_sql_fail(side->store, "find a run");
    }
    side->kind = MLA_SIDE_RUN;
    return mla_sql_int64(side->store, stmt, "find a run", &side->run);
}

/* The commits of runs that begin so, clean or not as asked: the first one, and how many. */
static int32_t find_commits(struct mla_store_side *side, const char *prefix, int dirty, int *n)
{
    sqlite3_stmt *stmt = mla_sql_prepare(
        side->store, "SELECT DISTINCT b.git_commit FROM build AS b JOIN run AS r ON r.build = b.id"
                     " WHERE substr(b.git_commit, 1, length(?1)) = ?1 AND b.dirty = ?2 LIMIT 2");
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    (void)mla_sql_bind_text(stmt, 1, prefix);
    (void)mla_sql_bind_int(stmt, 2, dirty);
    int code = sqlite3_step(stmt);
    for (*n = 0; code == SQLITE_ROW; code = sqlite3_step(stmt)) {
        if ((*n)++ == 0) {
            (void)snprintf(side->commit, sizeof side->commit, "%s",
                           (const char *)sqlite3_column_text(stmt, 0));
        }
    }
    int32_t status =
        code == SQLITE_DONE ? MLA_STORE_OK : mla_sql_fail(side->store, "find a commit");
    (void)sqlite3_finalize(stmt);
    return status;
}

static int32_t choose_commit(struct mla_store_side *side, const char *spec)
{
    char prefix[MLA_SIDE_COMMIT_MAX] = "";
    size_t n = strspn(spec, "0123456789abcdef");
    side->kind = MLA_SIDE_COMMIT;
    side->dirty = strcmp(spec + n, "-dirty") == 0;
    if (n < 4 || n >= sizeof prefix || (spec[n] != '\0' && !side->dirty)) {
        return mla_store_fail(
            side->store, MLA_STORE_ERR_NOT_FOUND,
            "'%.80s' is neither a run nor the beginning of a commit (>= 4 hex digits)"
            " in '%s'",
            spec, side->store->path);
    }
    memcpy(prefix, spec, n);
    int found = 0, other = 0;
    int32_t status = find_commits(side, prefix, !side->dirty, &other);
    if (status == MLA_STORE_OK) {
        status = find_commits(side, prefix, side->dirty, &found);
    }
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (found > 1) {
        return mla_store_fail(side->store, MLA_STORE_ERR_AMBIGUOUS,
                              "commit '%s' fits several in '%s': give more digits", prefix,
                              side->store->path);
    }
    if (found == 0) {
        return mla_store_fail(
            side->store, MLA_STORE_ERR_NOT_FOUND, "no run%s of commit '%s' in '%s'%s",
            side->dirty ? " of a changed tree" : "", prefix, side->store->path,
            other == 0    ? ""
            : side->dirty ? ", only clean ones"
                          : ", only of a changed tree: name it with -dirty appended");
    }
    return MLA_STORE_OK;
}

int32_t mla_side_choose(struct mla_store_side *side, const char *spec)
{
    if (spec == NULL) {
        return MLA_STORE_OK; /* MLA_SIDE_ALL */
    }
    int32_t status = choose_run(side, spec);
    return status == MLA_STORE_ERR_NOT_FOUND ? choose_commit(side, spec) : status;
}
