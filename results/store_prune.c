/* SPDX-License-Identifier: Apache-2.0
 *
 * store_prune.c - hunts store rows for ever; this keeps the worst and the newest of each kind.
 *
 * Rows go by executions: all verdicts of one run, case and kernel together. What goes is added to the
 * run's tally, so that no count of the summary changes. A case goes with its last verdict, unless
 * something else in the file still refers to it.
 */
#include "results/store_internal.h"

#include <stdio.h>
#include <string.h>

/* The mode of the call and how large it is, coarsely: runs of the same shape class compete. */
#define SHAPE_CLASS                                                                                \
    "CASE t.op WHEN 'ring' THEN"                                                                   \
    " iif(t.is_balanced = 1, 1, iif(t.kv_rows <= t.q_rows, 0,"                                     \
    "   iif(t.kv_actual_isl IS NULL, 2, 3))) * 2 + (t.ring_size > 2)"                              \
    " ELSE iif(t.dense = 1, 2, 0) * 2 + (t.q_pos_offset IS NOT NULL) * 2 + (t.topk > 128) END"

/* Executions of hunts beyond the worst ?1 and the newest ?2 of their cell. */
static const char *const choose =
    "CREATE TEMP TABLE pruned AS SELECT run, testcase, kernel, op, family, grave, worst FROM ("
    " SELECT *,"
    "  row_number() OVER (PARTITION BY op, kernel, family, region, shape, grave"
    "   ORDER BY worst DESC, newest DESC) AS by_worst,"
    "  row_number() OVER (PARTITION BY op, kernel, family, region, shape, grave"
    "   ORDER BY newest DESC) AS by_newest"
    " FROM (SELECT v.run, v.testcase, v.kernel, t.op, t.family, t.region, " SHAPE_CLASS " AS shape,"
    "  CASE max(CASE v.verdict"
    "   WHEN 'fail-certain' THEN 8 WHEN 'crash' THEN 7 WHEN 'timeout' THEN 6"
    "   WHEN 'fail-improbable' THEN 5 WHEN 'refused' THEN 4 WHEN 'unjudged' THEN 3"
    "   WHEN 'pass' THEN 2 WHEN 'unsupported' THEN 1 END)"
    "  WHEN 8 THEN 'fail-certain' WHEN 7 THEN 'crash' WHEN 6 THEN 'timeout'"
    "  WHEN 5 THEN 'fail-improbable' WHEN 4 THEN 'refused' WHEN 3 THEN 'unjudged'"
    "  WHEN 2 THEN 'pass' WHEN 1 THEN 'unsupported' END AS grave,"
    "  max(v.max_ratio) AS worst, max(v.id) AS newest"
    "  FROM verdict AS v JOIN run AS r ON r.id = v.run JOIN testcase AS t ON t.num = v.testcase"
    "  WHERE r.command = 'fuzz' OR r.command LIKE 'fuzz %'"
    "  GROUP BY v.run, v.testcase, v.kernel))"
    " WHERE by_worst > ?1 AND by_newest > ?2";

static const char *const steps[] = {
    "INSERT INTO tally (run, op, kernel, family, verdict, n, max_ratio)"
    " SELECT run, op, kernel, family, grave, count(*), max(worst) FROM pruned WHERE true"
    " GROUP BY run, op, kernel, family, grave ON CONFLICT DO UPDATE SET"
    " n = min(9007199254740992, n + excluded.n),"
    " max_ratio = max(coalesce(max_ratio, excluded.max_ratio),"
    " coalesce(excluded.max_ratio, max_ratio))",
    /* Metrics go with their verdict. */
    "DELETE FROM verdict WHERE (run, testcase, kernel) IN"
    " (SELECT run, testcase, kernel FROM pruned)",
};

static int32_t execute(struct mla_store *store, const char *sql)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return mla_sql_fail(store, "prune");
    }
    return MLA_STORE_OK;
}

static int32_t choose_rows(struct mla_store *store, int64_t worst_n, int64_t newest_n)
{
    sqlite3_stmt *stmt = mla_sql_prepare(store, choose);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_int(stmt, 1, worst_n);
    code |= mla_sql_bind_int(stmt, 2, newest_n);
    int32_t status = code != 0 ? mla_sql_fail(store, "bind the limits of pruning")
                               : mla_sql_run(store, stmt, "choose what to prune");
    (void)sqlite3_finalize(stmt);
    return status;
}

/*
 * Delete the cases left alone. Every table that has a foreign key to testcase is asked, also one that
 * a later version brings.
 */
static int32_t drop_cases(struct mla_store *store)
{
    char sql[4096] = "DELETE FROM testcase WHERE num IN (SELECT testcase FROM pruned)";
    size_t used = strlen(sql);
    sqlite3_stmt *stmt =
        mla_sql_prepare(store, "SELECT printf(' AND NOT EXISTS (SELECT 1 FROM \"%w\" AS x WHERE"
                               " x.\"%w\" = testcase.\"%w\")',"
                               " m.name, f.\"from\", coalesce(f.\"to\", 'num'))"
                               " FROM main.sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f"
                               " WHERE m.type = 'table' AND f.\"table\" = 'testcase'");
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = sqlite3_step(stmt);
    for (; code == SQLITE_ROW && used < sizeof sql; code = sqlite3_step(stmt)) {
        used += (size_t)snprintf(sql + used, sizeof sql - used, "%s",
                                 (const char *)sqlite3_column_text(stmt, 0));
    }
    (void)sqlite3_finalize(stmt);
    if (code != SQLITE_DONE || used >= sizeof sql) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE,
                              "cannot tell who refers to a case in '%s'", store->path);
    }
    return execute(store, sql);
}

static int32_t prune(struct mla_store *store, int64_t worst_n, int64_t newest_n, int64_t *removed)
{
    int32_t status = choose_rows(store, worst_n, newest_n);
    for (size_t i = 0; status == MLA_STORE_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = execute(store, steps[i]);
    }
    *removed = sqlite3_changes64(store->db); /* of the last step: verdicts */
    if (status == MLA_STORE_OK) {
        status = drop_cases(store);
    }
    if (status == MLA_STORE_OK) {
        status = execute(store, "DROP TABLE temp.pruned");
    }
    return status == MLA_STORE_OK ? mla_write_commit(store) : status;
}

int32_t mla_store_prune(struct mla_store *store, int64_t worst_n, int64_t newest_n,
                        int64_t *removed_n)
{
    int64_t removed = 0;
    int32_t status = mla_store_flush(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (worst_n < 1 || newest_n < 1) {
        return mla_store_fail(store, MLA_STORE_ERR_WRITE, "%s is %lld: must be at least 1",
                              worst_n < 1 ? "worst_n" : "newest_n",
                              (long long)(worst_n < 1 ? worst_n : newest_n));
    }
    status = mla_write_begin(store);
    if (status == MLA_STORE_OK) {
        status = prune(store, worst_n, newest_n, &removed);
        if (status != MLA_STORE_OK) {
            mla_write_rollback(store); /* takes the temporary table with it */
        }
    }
    if (removed_n != NULL) {
        *removed_n = status == MLA_STORE_OK ? removed : 0;
    }
    return status;
}
