/* SPDX-License-Identifier: Apache-2.0
 *
 * store_bisect.c - searches for what broke a case: each step is written at once.
 *
 * A step costs a build, so there is nothing to batch, and a search that was killed goes on from all
 * that is here.
 */
#include "results/store_internal.h"

#include <stdio.h>
#include <string.h>

static const char *const outcomes[MLA_STORE_OUTCOMES_N] = {"good", "bad", "skip"};

static int bind_bisect(sqlite3_stmt *stmt, int64_t num, const struct mla_store_bisect *bisect,
                       const char *now)
{
    int code = mla_sql_bind_text(stmt, 1, bisect->key);
    code |= mla_sql_bind_int(stmt, 2, num);
    code |= mla_sql_bind_text(stmt, 3, bisect->kernel);
    code |= mla_sql_bind_text(stmt, 4, bisect->question);
    code |= mla_sql_bind_text(stmt, 5, bisect->repository);
    code |= mla_sql_bind_text(stmt, 6, bisect->build_command);
    code |= mla_sql_bind_text(stmt, 7, bisect->plugin);
    code |= mla_sql_bind_text(stmt, 8, bisect->good);
    code |= mla_sql_bind_text(stmt, 9, bisect->bad);
    code |= mla_sql_bind_text(stmt, 10, now);
    return code;
}

static int32_t find_bisect(struct mla_store *store, const char *key, int64_t *id)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_FIND_BISECT);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if (mla_sql_bind_text(stmt, 1, key) != 0) {
        return mla_sql_fail(store, "bind a search");
    }
    int32_t status = mla_sql_int64(store, stmt, "find a search", id);
    return status == MLA_STORE_ERR_NOT_FOUND ? mla_sql_fail(store, "find a search") : status;
}

/* Case and search, within a transaction. */
static int32_t write_bisect(struct mla_store *store, const struct mla_store_bisect *bisect,
                            int64_t *id)
{
    char now[MLA_STORE_TIME_BYTES];
    int64_t num = 0;
    int32_t status = mla_write_case(store, bisect->testcase, &num);
    if (status != MLA_STORE_OK) {
        return status;
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_BISECT);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    mla_store_now(now);
    if (bind_bisect(stmt, num, bisect, now) != 0) {
        return mla_sql_fail(store, "bind a search");
    }
    status = mla_sql_run(store, stmt, "store a search");
    return status == MLA_STORE_OK ? find_bisect(store, bisect->key, id) : status;
}

int32_t mla_store_bisect_begin(struct mla_store *store, const struct mla_store_bisect *bisect,
                               int64_t *id)
{
    int32_t status = mla_store_flush(store);
    if (status == MLA_STORE_OK) {
        status = mla_write_begin(store);
    }
    if (status != MLA_STORE_OK) {
        return status;
    }
    status = write_bisect(store, bisect, id);
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
    }
    return status;
}

static int bind_step(sqlite3_stmt *stmt, int64_t id, const struct mla_store_step *step)
{
    int code = mla_sql_bind_int(stmt, 1, id);
    code |= mla_sql_bind_text(stmt, 2, step->commit);
    code |= mla_sql_bind_text(stmt, 3, outcomes[step->outcome]);
    code |= mla_sql_bind_figure(stmt, 4, step->seconds);
    code |= mla_sql_bind_text(stmt, 5, step->text[0] == '\0' ? NULL : step->text);
    code |= mla_sql_bind_text(stmt, 6, step->configuration);
    code |= mla_sql_bind_int(stmt, 7, step->tries);
    code |= mla_sql_bind_int(stmt, 8, step->failed);
    code |= mla_sql_bind_text(stmt, 9, step->bits[0] == '\0' ? NULL : step->bits);
    return code;
}

int32_t mla_store_bisect_step(struct mla_store *store, int64_t id,
                              const struct mla_store_step *step)
{
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_UPSERT_STEP);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if (bind_step(stmt, id, step) != 0) {
        return mla_sql_fail(store, "bind a step");
    }
    status = mla_sql_run(store, stmt, "store a step");
    if (status == MLA_STORE_OK && sqlite3_changes(store->db) != 1) {
        return mla_store_fail(store, MLA_STORE_ERR_NOT_FOUND, "no search %lld in '%s'",
                              (long long)id, store->path);
    }
    return status;
}

static void copy_text(sqlite3_stmt *stmt, int column, char *text, size_t text_bytes)
{
    const unsigned char *value = sqlite3_column_text(stmt, column);
    (void)snprintf(text, text_bytes, "%s", value == NULL ? "" : (const char *)value);
}

static struct mla_store_step read_step(sqlite3_stmt *stmt)
{
    char outcome[8];
    struct mla_store_step step;
    memset(&step, 0, sizeof step);
    copy_text(stmt, 0, step.commit, sizeof step.commit);
    copy_text(stmt, 1, step.configuration, sizeof step.configuration);
    copy_text(stmt, 2, outcome, sizeof outcome);
    while (strcmp(outcomes[step.outcome], outcome) != 0) { /* the schema knows no other */
        step.outcome++;
    }
    step.tries = sqlite3_column_int64(stmt, 3);
    step.failed = sqlite3_column_int64(stmt, 4);
    copy_text(stmt, 5, step.bits, sizeof step.bits);
    copy_text(stmt, 6, step.text, sizeof step.text);
    step.seconds = sqlite3_column_double(stmt, 7);
    return step;
}

int32_t mla_store_bisect_steps(struct mla_store *store, int64_t id, mla_store_step_fn *each,
                               void *context)
{
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_STEPS);
    if (stmt == NULL || mla_sql_bind_int(stmt, 1, id) != 0) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = sqlite3_step(stmt);
    for (; code == SQLITE_ROW; code = sqlite3_step(stmt)) {
        struct mla_store_step step = read_step(stmt);
        each(context, &step);
    }
    status = code == SQLITE_DONE ? MLA_STORE_OK : mla_sql_fail(store, "read the steps of a search");
    (void)sqlite3_reset(stmt);
    return status;
}

int32_t mla_store_bisect_end(struct mla_store *store, int64_t id, const char *answer)
{
    char now[MLA_STORE_TIME_BYTES];
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_END_BISECT);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    mla_store_now(now);
    if ((mla_sql_bind_int(stmt, 1, id) | mla_sql_bind_text(stmt, 2, now) |
         mla_sql_bind_text(stmt, 3, answer)) != 0) {
        return mla_sql_fail(store, "bind an answer");
    }
    return mla_sql_run(store, stmt, "store an answer");
}
