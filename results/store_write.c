/* SPDX-License-Identifier: Apache-2.0
 *
 * store_write.c - the one place that writes verdicts: a batch, or the verdict of a dead process.
 *
 * BEGIN IMMEDIATE takes the write lock at once (waiting for other processes), so that the batch
 * cannot fail half way for want of it. Either the whole batch is in the file, or it is still in the
 * queue.
 */
#include "results/store_fields.h"
#include "results/store_internal.h"

int32_t mla_write_begin(struct mla_store *store)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_BEGIN);
    return stmt == NULL ? MLA_STORE_ERR_WRITE : mla_sql_run(store, stmt, "begin to write");
}

int32_t mla_write_commit(struct mla_store *store)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_COMMIT);
    return stmt == NULL ? MLA_STORE_ERR_WRITE : mla_sql_run(store, stmt, "commit");
}

void mla_write_rollback(struct mla_store *store)
{
    /* Some errors (disk full) have rolled back already. No message: the first one is the cause. */
    if (sqlite3_get_autocommit(store->db) != 0) {
        return;
    }
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

int32_t mla_write_touch(struct mla_store *store, int64_t run)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_TOUCH_RUN);
    if (stmt == NULL || mla_sql_bind_int(stmt, 1, run) != 0) {
        return mla_sql_fail(store, "count a write");
    }
    return mla_sql_run(store, stmt, "count a write");
}

int32_t mla_write_case(struct mla_store *store, const struct mla_store_case *testcase, int64_t *num)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_CASE);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_text(stmt, 1, testcase->id);
    int index = 2;
    for (int i = 0; i < MLA_CASE_TEXTS_N; i++) {
        const char *text = mla_case_text_of(testcase, i);
        code |= mla_sql_bind_text(stmt, index++, text == NULL ? "" : text);
    }
    for (int i = 0; i < MLA_CASE_NUMBERS_N; i++) {
        code |= mla_sql_bind_int(stmt, index++, mla_case_number_of(testcase, i));
    }
    if (code != 0) {
        return mla_sql_fail(store, "bind a case");
    }
    int32_t status = mla_sql_run(store, stmt, "store a case");
    if (status != MLA_STORE_OK) {
        return status;
    }
    stmt = mla_sql_get(store, MLA_SQL_FIND_CASE);
    if (stmt == NULL || mla_sql_bind_text(stmt, 1, testcase->id) != 0) {
        return mla_sql_fail(store, "find a case");
    }
    status = mla_sql_int64(store, stmt, "find a case", num);
    return status == MLA_STORE_ERR_NOT_FOUND ? mla_sql_fail(store, "find a case") : status;
}

static int32_t write_row(struct mla_store *store, int64_t run, int64_t num,
                         const struct mla_store_verdict *verdict)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_VERDICT);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_int(stmt, 1, run);
    code |= mla_sql_bind_int(stmt, 2, num);
    code |= mla_sql_bind_text(stmt, 3, verdict->kernel);
    code |= mla_sql_bind_text(stmt, 4, verdict->verdict);
    code |= mla_sql_bind_text(stmt, 5, verdict->relation == NULL ? "" : verdict->relation);
    code |= mla_sql_bind_text(stmt, 6, verdict->reason);
    code |= mla_sql_bind_ratio(stmt, 7, verdict->max_ratio);
    code |= mla_sql_bind_int(stmt, 8, verdict->elements_n);
    code |= mla_sql_bind_text(stmt, 9, verdict->element);
    code |= mla_sql_bind_text(stmt, 10, verdict->got);
    code |= mla_sql_bind_text(stmt, 11, verdict->lo);
    code |= mla_sql_bind_text(stmt, 12, verdict->hi);
    code |= mla_sql_bind_figure(stmt, 13, verdict->kernel_seconds);
    code |= mla_sql_bind_figure(stmt, 14, verdict->oracle_seconds);
    if (code != 0) {
        return mla_sql_fail(store, "bind a verdict");
    }
    return mla_sql_run(store, stmt, "store a verdict");
}

static int32_t write_metrics(struct mla_store *store, const struct mla_store_verdict *verdict)
{
    int64_t row = sqlite3_last_insert_rowid(store->db);
    for (size_t i = 0; i < verdict->metrics_n; i++) {
        sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_INSERT_METRIC);
        if (stmt == NULL) {
            return MLA_STORE_ERR_WRITE;
        }
        int code = mla_sql_bind_int(stmt, 1, row);
        code |= mla_sql_bind_text(stmt, 2, verdict->metrics[i].name);
        code |= mla_sql_bind_figure(stmt, 3, verdict->metrics[i].value);
        if (code != 0) {
            return mla_sql_fail(store, "bind a metric");
        }
        int32_t status = mla_sql_run(store, stmt, "store a metric");
        if (status != MLA_STORE_OK) {
            return status;
        }
    }
    return MLA_STORE_OK;
}

static int32_t write_finding(struct mla_store *store, int64_t run, int64_t num,
                             const struct mla_store_verdict *verdict, const char *now)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_UPSERT_FINDING);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_int(stmt, 1, num);
    code |= mla_sql_bind_text(stmt, 2, verdict->kernel);
    code |= mla_sql_bind_text(stmt, 3, verdict->verdict);
    code |= mla_sql_bind_text(stmt, 4, now);
    code |= mla_sql_bind_int(stmt, 5, run);
    code |= mla_sql_bind_text(stmt, 6, verdict->reason);
    code |= mla_sql_bind_text(stmt, 7, verdict->repro);
    if (code != 0) {
        return mla_sql_fail(store, "bind a finding");
    }
    return mla_sql_run(store, stmt, "store a finding");
}

int32_t mla_write_verdict(struct mla_store *store, int64_t run,
                          const struct mla_store_verdict *verdict, const char *now)
{
    int64_t num = 0;
    int32_t status = mla_write_case(store, verdict->testcase, &num);
    if (status == MLA_STORE_OK) {
        status = write_row(store, run, num, verdict);
    }
    if (status == MLA_STORE_OK) {
        status = write_metrics(store, verdict);
    }
    if (status == MLA_STORE_OK && mla_queue_is_failure(verdict->verdict)) {
        status = write_finding(store, run, num, verdict, now);
    }
    return status == MLA_STORE_OK ? mla_write_touch(store, run) : status;
}

static int32_t write_tally(struct mla_store *store, const struct mla_queued_tally *tally)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_UPSERT_TALLY);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_int(stmt, 1, tally->run);
    code |= mla_sql_bind_text(stmt, 2, tally->op);
    code |= mla_sql_bind_text(stmt, 3, tally->kernel);
    code |= mla_sql_bind_text(stmt, 4, tally->family);
    code |= mla_sql_bind_text(stmt, 5, tally->verdict);
    code |= mla_sql_bind_int(stmt, 6, tally->n);
    code |= mla_sql_bind_ratio(stmt, 7, tally->max_ratio);
    if (code != 0) {
        return mla_sql_fail(store, "bind a tally");
    }
    int32_t status = mla_sql_run(store, stmt, "store a tally");
    return status == MLA_STORE_OK ? mla_write_touch(store, tally->run) : status;
}

static int32_t write_batch(struct mla_store *store)
{
    const struct mla_queue *queue = &store->queue;
    char now[MLA_STORE_TIME_BYTES];
    mla_store_now(now);
    int32_t status = mla_write_begin(store);
    for (size_t i = 0; status == MLA_STORE_OK && i < queue->verdicts_n; i++) {
        const struct mla_queued_verdict *queued = queue->verdicts[i];
        status = mla_write_verdict(store, queued->run, &queued->verdict, now);
    }
    for (size_t i = 0; status == MLA_STORE_OK && i < queue->tallies_n; i++) {
        status = write_tally(store, &queue->tallies[i]);
    }
    return status == MLA_STORE_OK ? mla_write_commit(store) : status;
}

int32_t mla_store_flush(struct mla_store *store)
{
    int32_t status = mla_store_usable(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    struct mla_queue *queue = &store->queue;
    if (queue->verdicts_n == 0 && queue->tallies_n == 0) {
        return MLA_STORE_OK;
    }
    status = write_batch(store);
    queue->tried_ns = mla_queue_clock_ns();
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
        queue->fresh_n = 0; /* the next try by itself comes with the next full or old batch */
        return status;
    }
    mla_queue_clear(queue);
    return MLA_STORE_OK;
}
