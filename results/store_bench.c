/* SPDX-License-Identifier: Apache-2.0
 *
 * store_bench.c - timings: one row each, written at once.
 *
 * They come seconds apart, so there is nothing to batch, and what was measured before a kill stays.
 */
#include "results/store_internal.h"

static int bind_bench(sqlite3_stmt *stmt, int64_t run, const struct mla_store_bench *bench)
{
    bool own = bench->own_isa != NULL;
    int code = mla_sql_bind_int(stmt, 1, run);
    code |= mla_sql_bind_text(stmt, 2, bench->op);
    code |= mla_sql_bind_text(stmt, 3, bench->shape);
    code |= mla_sql_bind_text(stmt, 4, bench->testcase);
    code |= mla_sql_bind_text(stmt, 5, bench->kernel);
    code |= mla_sql_bind_int(stmt, 6, bench->is_peer ? 1 : 0);
    code |= mla_sql_bind_int(stmt, 7, bench->threads);
    code |= mla_sql_bind_figure(stmt, 8, bench->seconds);
    code |= mla_sql_bind_figure(stmt, 9, bench->spread);
    code |= mla_sql_bind_figure(stmt, 10, bench->flops);
    code |= mla_sql_bind_figure(stmt, 11, bench->bytes);
    code |= mla_sql_bind_figure(stmt, 12, bench->peak);
    code |= mla_sql_bind_figure(stmt, 13, bench->of_peak);
    code |= mla_sql_bind_text(stmt, 14, bench->isa);
    code |= mla_sql_bind_text(stmt, 15, bench->own_isa);
    code |= own ? mla_sql_bind_figure(stmt, 16, bench->of_own_peak) : sqlite3_bind_null(stmt, 16);
    code |= mla_sql_bind_int(stmt, 17, bench->noisy ? 1 : 0);
    code |= mla_sql_bind_int(stmt, 18, bench->reps);
    return code;
}

/* Within a transaction. */
static int32_t write_bench(struct mla_store *store, const struct mla_store_bench *bench)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_BENCH);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if (bind_bench(stmt, store->run, bench) != 0) {
        return mla_sql_fail(store, "bind a timing");
    }
    int32_t status = mla_sql_run(store, stmt, "store a timing");
    return status == MLA_STORE_OK ? mla_write_touch(store, store->run) : status;
}

int32_t mla_store_bench(struct mla_store *store, const struct mla_store_bench *bench)
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
        status = write_bench(store, bench);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
    }
    return status;
}
