/* SPDX-License-Identifier: Apache-2.0
 *
 * store_run.c - builds and runs: begin, join, end.
 *
 * A run is written at once, not queued: other processes may join it, and a dead run must be
 * visible. A build is one row however many runs it has.
 */
#include "results/store_digest.h"
#include "results/store_internal.h"

#include <stdio.h>
#include <string.h>

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

static int bind_build(sqlite3_stmt *stmt, const struct mla_store_build *build)
{
    int code = mla_sql_bind_text(stmt, 1, build->commit == NULL ? "unknown" : build->commit);
    code |= mla_sql_bind_int(stmt, 2, build->dirty ? 1 : 0);
    code |= mla_sql_bind_text(stmt, 3, or_empty(build->compiler));
    code |= mla_sql_bind_text(stmt, 4, or_empty(build->flags));
    code |= mla_sql_bind_text(stmt, 5, or_empty(build->sanitizer));
    code |= mla_sql_bind_text(stmt, 6, or_empty(build->isa));
    return code;
}

static int32_t write_build(struct mla_store *store, const struct mla_store_build *build,
                           int64_t *id)
{
    sqlite3_stmt *insert = mla_sql_get(store, MLA_SQL_INSERT_BUILD);
    sqlite3_stmt *find = mla_sql_get(store, MLA_SQL_FIND_BUILD);
    if (insert == NULL || find == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if ((bind_build(insert, build) | bind_build(find, build)) != 0) {
        return mla_sql_fail(store, "bind a build");
    }
    int32_t status = mla_sql_run(store, insert, "store a build");
    if (status != MLA_STORE_OK) {
        return status;
    }
    status = mla_sql_int64(store, find, "find a build", id);
    return status == MLA_STORE_ERR_NOT_FOUND ? mla_sql_fail(store, "find a build") : status;
}

/* Build and run, within a transaction. */
static int32_t write_run(struct mla_store *store, const struct mla_store_build *build,
                         const struct mla_store_run *run, const char *now, int64_t *id)
{
    char uid[MLA_UID_BYTES];
    int64_t build_id = 0;
    if (!mla_uid_make(uid)) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE,
                              "the system gives no random numbers to name a run by");
    }
    int32_t status = write_build(store, build, &build_id);
    if (status != MLA_STORE_OK) {
        return status;
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_RUN);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_int(stmt, 1, build_id);
    code |= mla_sql_bind_text(stmt, 2, or_empty(run->command));
    code |= mla_sql_bind_text(stmt, 3, or_empty(run->host_cpu));
    code |= mla_sql_bind_text(stmt, 4, or_empty(run->kernels));
    code |= mla_sql_bind_int(stmt, 5, run->seed);
    code |= mla_sql_bind_text(stmt, 6, now);
    code |= mla_sql_bind_text(stmt, 7, uid);
    if (code != 0) {
        return mla_sql_fail(store, "bind a run");
    }
    status = mla_sql_run(store, stmt, "store a run");
    *id = sqlite3_last_insert_rowid(store->db);
    return status;
}

int32_t mla_store_begin_run(struct mla_store *store, const struct mla_store_build *build,
                            const struct mla_store_run *run, int64_t *run_id)
{
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (build == NULL || run == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "%s is (null)",
                              build == NULL ? "build" : "run");
    }
    char now[MLA_STORE_TIME_BYTES];
    mla_store_now(now);
    int64_t id = 0;
    status = mla_write_begin(store);
    if (status == MLA_STORE_OK) {
        status = write_run(store, build, run, now, &id);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
        return status;
    }
    store->run = id;
    (void)snprintf(store->run_started, sizeof store->run_started, "%s", now);
    if (run_id != NULL) {
        *run_id = id;
    }
    return MLA_STORE_OK;
}

/* The start of a run into started, or NOT_FOUND with a message. */
static int32_t find_run(struct mla_store *store, int64_t id, char started[MLA_STORE_TIME_BYTES])
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_FIND_RUN);
    if (stmt == NULL || mla_sql_bind_int(stmt, 1, id) != 0) {
        return mla_sql_fail(store, "find a run");
    }
    int32_t status = MLA_STORE_OK;
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 1);
        (void)snprintf(started, MLA_STORE_TIME_BYTES, "%s", or_empty(text));
    } else if (code == SQLITE_DONE) {
        status = mla_store_fail(store, MLA_STORE_ERR_NOT_FOUND, "there is no run %lld in '%s'",
                                (long long)id, store->path);
    } else {
        status = mla_sql_fail(store, "find a run");
    }
    (void)sqlite3_reset(stmt);
    return status;
}

int32_t mla_store_join_run(struct mla_store *store, int64_t run_id)
{
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    char started[MLA_STORE_TIME_BYTES];
    status = find_run(store, run_id, started);
    if (status != MLA_STORE_OK) {
        return status;
    }
    store->run = run_id;
    (void)snprintf(store->run_started, sizeof store->run_started, "%s", started);
    return MLA_STORE_OK;
}

int32_t mla_store_end_run(struct mla_store *store)
{
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (store->run == 0) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "no run was begun or joined");
    }
    char now[MLA_STORE_TIME_BYTES];
    mla_store_now(now);
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_END_RUN);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if ((mla_sql_bind_int(stmt, 1, store->run) | mla_sql_bind_text(stmt, 2, now)) != 0) {
        return mla_sql_fail(store, "bind the end of a run");
    }
    status = mla_sql_run(store, stmt, "store the end of a run");
    if (status == MLA_STORE_OK) {
        store->run = 0;
    }
    return status;
}

int32_t mla_run_of_note(struct mla_store *store, int64_t id, const char *started,
                        const char *kernel, const char *now, int64_t *run)
{
    char stored[MLA_STORE_TIME_BYTES];
    int32_t status = find_run(store, id, stored);
    if (status == MLA_STORE_OK && strcmp(stored, started) == 0) {
        *run = id;
        return MLA_STORE_OK;
    }
    if (status != MLA_STORE_OK && status != MLA_STORE_ERR_NOT_FOUND) {
        return status;
    }
    const struct mla_store_build build = {NULL, false, NULL, NULL, NULL, NULL};
    const struct mla_store_run lost = {"(a run that is not in this database)", NULL, kernel,
                                       MLA_STORE_NULL};
    return write_run(store, &build, &lost, now, run);
}
