/* SPDX-License-Identifier: Apache-2.0
 *
 * store_trial.c - trials of the kill matrix: each in a transaction of its own, with its case and with
 * what else caught it.
 *
 * They end a fraction of a second apart, and what was found before a kill stays.
 */
#include "results/store_internal.h"

static int bind_trial(sqlite3_stmt *stmt, int64_t run, int64_t num,
                      const struct mla_store_trial *trial)
{
    int code = mla_sql_bind_int(stmt, 1, run);
    code |= mla_sql_bind_text(stmt, 2, trial->role);
    code |= mla_sql_bind_text(stmt, 3, trial->fault);
    code |= mla_sql_bind_text(stmt, 4, trial->class);
    code |= mla_sql_bind_text(stmt, 5, trial->op);
    code |= mla_sql_bind_text(stmt, 6, trial->search);
    code |= mla_sql_bind_int(stmt, 7, trial->trial);
    code |= mla_sql_bind_int(stmt, 8, trial->seed);
    code |= mla_sql_bind_text(stmt, 9, trial->outcome);
    code |= mla_sql_bind_int(stmt, 10, trial->executions);
    code |= mla_sql_bind_int(stmt, 11, trial->applied);
    code |= mla_sql_bind_figure(stmt, 12, trial->cpu_seconds);
    code |= mla_sql_bind_text(stmt, 13, trial->verdict);
    code |= mla_sql_bind_text(stmt, 14, trial->relation);
    code |= mla_sql_bind_text(stmt, 15, trial->reason);
    code |= mla_sql_bind_int(stmt, 16, num);
    code |= mla_sql_bind_int(stmt, 17, trial->surveyed);
    return code;
}

static int32_t write_trial(struct mla_store *store, const struct mla_store_trial *trial)
{
    int64_t num = MLA_STORE_NULL;
    if (trial->testcase != NULL) {
        int32_t status = mla_write_case(store, trial->testcase, &num);
        if (status != MLA_STORE_OK) {
            return status;
        }
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_TRIAL);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if (bind_trial(stmt, store->run, num, trial) != 0) {
        return mla_sql_fail(store, "bind a trial");
    }
    return mla_sql_run(store, stmt, "store a trial");
}

static int32_t write_catches(struct mla_store *store, const struct mla_store_trial *trial)
{
    int64_t row = sqlite3_last_insert_rowid(store->db);
    for (size_t i = 0; i < trial->catches_n; i++) {
        sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_CATCH);
        if (stmt == NULL) {
            return MLA_STORE_ERR_WRITE;
        }
        int code = mla_sql_bind_int(stmt, 1, row);
        code |= mla_sql_bind_text(stmt, 2, trial->catches[i].is_rule ? "criterion" : "detector");
        code |= mla_sql_bind_text(stmt, 3, trial->catches[i].name);
        code |= mla_sql_bind_int(stmt, 4, trial->catches[i].cases);
        if (code != 0) {
            return mla_sql_fail(store, "bind what caught a fault");
        }
        int32_t status = mla_sql_run(store, stmt, "store what caught a fault");
        if (status != MLA_STORE_OK) {
            return status;
        }
    }
    return MLA_STORE_OK;
}

int32_t mla_store_trial(struct mla_store *store, const struct mla_store_trial *trial)
{
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (store->run == 0) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "no run was begun or joined");
    }
    status = mla_write_begin(store);
    if (status == MLA_STORE_OK) {
        status = write_trial(store, trial);
    }
    if (status == MLA_STORE_OK) {
        status = write_catches(store, trial);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_touch(store, store->run);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
    }
    return status;
}
