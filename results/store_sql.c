/* SPDX-License-Identifier: Apache-2.0
 *
 * store_sql.c - every SQL text of the store but the views', and the small steps around statements.
 *
 * Statements are prepared at first use and kept until close. A statement is always reset before its
 * function returns, so that none holds a read transaction open.
 */
#include "results/store_internal.h"

#include <math.h>
#include <stddef.h>

static const char *const texts[MLA_SQL_N] = {
    [MLA_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [MLA_SQL_COMMIT] = "COMMIT",
    [MLA_SQL_ROLLBACK] = "ROLLBACK",
    [MLA_SQL_INSERT_BUILD] =
        "INSERT INTO build (git_commit, dirty, compiler, flags, sanitizer, isa)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    [MLA_SQL_FIND_BUILD] = "SELECT id FROM build WHERE git_commit = ?1 AND dirty = ?2"
                           " AND compiler = ?3 AND flags = ?4 AND sanitizer = ?5 AND isa = ?6",
    [MLA_SQL_INSERT_RUN] = "INSERT INTO run (build, command, host_cpu, kernels, seed, started, uid)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [MLA_SQL_END_RUN] = "UPDATE run SET ended = ?2, writes = writes + 1 WHERE id = ?1",
    [MLA_SQL_TOUCH_RUN] = "UPDATE run SET writes = writes + 1 WHERE id = ?1",
    [MLA_SQL_FIND_RUN] = "SELECT id, started FROM run WHERE id = ?1",
    /* That judged: what was timed or hunted since has views of its own. */
    [MLA_SQL_LATEST_RUN] = "SELECT id FROM run WHERE command NOT IN ('bench', 'faults')"
                           " AND command NOT LIKE 'bench %' AND command NOT LIKE 'faults %'"
                           " ORDER BY started DESC, uid DESC LIMIT 1",
    /* The first one stays; only what version 1 did not ask for is filled in. */
    [MLA_SQL_INSERT_CASE] =
        "INSERT INTO testcase (id, line, op, family, region, heads, threads, ring_size, batch,"
        " q_rows, kv_rows, head_dim, head_dim_v, logical_n, kv_actual_isl, kv_cache_batch_idx,"
        " is_balanced, topology, num_links, q_chunk_size, k_chunk_size, queries, keys, rope, topk,"
        " topk_tiled, dense, q_pos_offset, out_order, cores, sign_coins)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
        " ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31) ON CONFLICT (id)"
        " DO UPDATE SET sign_coins = excluded.sign_coins WHERE testcase.sign_coins IS NULL",
    [MLA_SQL_FIND_CASE] = "SELECT num FROM testcase WHERE id = ?1",
    [MLA_SQL_CASES_BETWEEN] = "SELECT num FROM testcase WHERE id >= ?1 AND id < ?2 LIMIT 2",
    [MLA_SQL_CASE_LINE] = "SELECT line FROM testcase WHERE num = ?1",
    [MLA_SQL_INSERT_VERDICT] =
        "INSERT INTO verdict (run, testcase, kernel, verdict, relation, reason, max_ratio,"
        " elements_n, element, got, lo, hi, kernel_seconds, oracle_seconds)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    [MLA_SQL_INSERT_METRIC] = "INSERT INTO metric (verdict, name, value) VALUES (?1, ?2, ?3)",
    /* The sum stops at MLA_TALLY_MAX; a ratio that is absent does not hide one that is not.
     */
    [MLA_SQL_UPSERT_TALLY] = "INSERT INTO tally (run, op, kernel, family, verdict, n, max_ratio)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET"
                             " n = min(9007199254740992, n + excluded.n),"
                             " max_ratio = max(coalesce(max_ratio, excluded.max_ratio),"
                             " coalesce(excluded.max_ratio, max_ratio))",
    [MLA_SQL_UPSERT_FINDING] =
        "INSERT INTO finding (testcase, kernel, verdict, first_seen, first_run, last_seen,"
        " last_run, reason, repro) VALUES (?1, ?2, ?3, ?4, ?5, ?4, ?5, ?6, ?7)"
        " ON CONFLICT DO UPDATE SET last_seen = excluded.last_seen, last_run = excluded.last_run,"
        " state = CASE state WHEN 'fixed' THEN 'open' ELSE state END,"
        " reason = coalesce(excluded.reason, reason), repro = coalesce(excluded.repro, repro)",
    [MLA_SQL_FIND_DEATH] =
        "SELECT v.id FROM verdict AS v JOIN testcase AS t ON t.num = v.testcase WHERE v.run = ?1"
        " AND t.id = ?2 AND v.kernel = ?3 AND v.reason = ?4",
    [MLA_SQL_INSERT_BENCH] =
        "INSERT INTO bench (run, op, shape, testcase, kernel, is_peer, threads, seconds, spread,"
        " flops, bytes, peak, of_peak, isa, own_isa, of_own_peak, noisy, reps)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    [MLA_SQL_INSERT_TRIAL] =
        "INSERT INTO trial (run, role, fault, class, op, search, trial, seed, outcome, executions,"
        " applied, cpu_seconds, verdict, relation, reason, testcase, surveyed)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    [MLA_SQL_INSERT_CATCH] = "INSERT INTO catch (trial, kind, name, cases) VALUES (?1, ?2, ?3, ?4)",
    [MLA_SQL_INSERT_BISECT] =
        "INSERT INTO bisect (key, testcase, kernel, question, repository, build_command, plugin,"
        " good, bad, started) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        " ON CONFLICT DO NOTHING",
    [MLA_SQL_FIND_BISECT] = "SELECT id FROM bisect WHERE key = ?1",
    /* The case, the kernel and the condition are the search's. */
    [MLA_SQL_UPSERT_STEP] =
        "INSERT INTO bisect_step (testcase, metric, kernel, git_commit, outcome, seconds, output,"
        " bisect, configuration, tries, failed, bits) SELECT testcase,"
        " iif(question IN ('fails', 'bits'), NULL, question), kernel, ?2, ?3, ?4, ?5, id, ?6, ?7,"
        " ?8, ?9 FROM bisect WHERE id = ?1"
        " ON CONFLICT (bisect, git_commit, configuration) WHERE bisect IS NOT NULL DO UPDATE SET"
        " outcome = excluded.outcome, seconds = excluded.seconds,"
        " output = excluded.output, tries = excluded.tries, failed = excluded.failed,"
        " bits = excluded.bits",
    [MLA_SQL_STEPS] = "SELECT git_commit, configuration, outcome, tries, failed, bits, output,"
                      " seconds FROM bisect_step WHERE bisect = ?1 ORDER BY id",
    [MLA_SQL_END_BISECT] = "UPDATE bisect SET ended = ?2, answer = ?3 WHERE id = ?1",
    /* Those the report shows sort before the others. */
    [MLA_SQL_REPORT_METRICS] = "SELECT name, value FROM metric WHERE verdict = ?1 AND name < 'q'",
    [MLA_SQL_REPORT_CASE] = "SELECT substr(id, 1, 12), line, op FROM testcase WHERE num = ?1",
    [MLA_SQL_REPORT_REASON] = "SELECT verdict, reason FROM verdict WHERE id = ?1",
    [MLA_SQL_REPORT_REPRO] = "SELECT repro FROM finding WHERE testcase = ?1 AND kernel = ?2"
                             " AND state <> 'fixed' AND repro <> ''"
                             " ORDER BY last_seen DESC, last_run DESC, id DESC LIMIT 1",
    [MLA_SQL_REPORT_RELATION] = "SELECT relation FROM verdict WHERE testcase = ?1 AND kernel = ?2"
                                " AND verdict IN ('fail-certain', 'fail-improbable', 'crash',"
                                " 'timeout') ORDER BY id DESC LIMIT 1",
};

/* What a person can do about it; "" where nobody can say. */
static const char *advice(int code)
{
    switch (code) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
        return "; is there room on the disk? What was stored before is safe: make room and run "
               "again";
    case SQLITE_BUSY:
        return "; another process has held it all the time: wait for that one or end it, then run "
               "again";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return "; the file and its folder must be writable";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "; the file is damaged: " MLA_STORE_SALVAGE;
    case SQLITE_ERROR: /* a statement of ours that names what is not there */
        return "; its tables are not those that mlacheck made, it is damaged or was "
               "changed: " MLA_STORE_SALVAGE;
    default:
        return "";
    }
}

int32_t mla_sql_fail(struct mla_store *store, const char *doing)
{
    int code = sqlite3_errcode(store->db);
    int32_t status = code == SQLITE_NOMEM ? MLA_STORE_ERR_NOMEM : MLA_STORE_ERR_WRITE;
    return mla_store_fail(store, status, "cannot %s in '%s': %s (SQLite error %d)%s", doing,
                          store->path, sqlite3_errmsg(store->db),
                          sqlite3_extended_errcode(store->db), advice(code & 0xff));
}

sqlite3_stmt *mla_sql_prepare(struct mla_store *store, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v3(store->db, text, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
    if (code != SQLITE_OK) {
        (void)mla_sql_fail(store, "prepare a statement");
        return NULL;
    }
    return stmt;
}

sqlite3_stmt *mla_sql_get(struct mla_store *store, enum mla_sql id)
{
    if (store->stmts[id] == NULL) {
        store->stmts[id] = mla_sql_prepare(store, texts[id]);
    }
    return store->stmts[id];
}

int32_t mla_sql_run(struct mla_store *store, sqlite3_stmt *stmt, const char *doing)
{
    int32_t status = MLA_STORE_OK;
    if (sqlite3_step(stmt) != SQLITE_DONE) {
        status = mla_sql_fail(store, doing);
    }
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return status;
}

int32_t mla_sql_int64(struct mla_store *store, sqlite3_stmt *stmt, const char *doing,
                      int64_t *value)
{
    int32_t status = MLA_STORE_OK;
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        *value = sqlite3_column_int64(stmt, 0);
    } else if (code == SQLITE_DONE) {
        status = MLA_STORE_ERR_NOT_FOUND;
    } else {
        status = mla_sql_fail(store, doing);
    }
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return status;
}

void mla_sql_finalize(struct mla_store *store)
{
    for (int i = 0; i < MLA_SQL_N; i++) {
        (void)sqlite3_finalize(store->stmts[i]);
        store->stmts[i] = NULL;
    }
    for (int i = 0; i < MLA_VIEW_N; i++) {
        for (int form = 0; form < 4; form++) {
            (void)sqlite3_finalize(store->views[i][form]);
            store->views[i][form] = NULL;
        }
    }
}

int mla_sql_bind_text(sqlite3_stmt *stmt, int index, const char *text)
{
    /* A NULL pointer binds NULL. */
    return sqlite3_bind_text(stmt, index, text, -1, SQLITE_STATIC);
}

int mla_sql_bind_int(sqlite3_stmt *stmt, int index, int64_t value)
{
    if (value == MLA_STORE_NULL) {
        return sqlite3_bind_null(stmt, index);
    }
    return sqlite3_bind_int64(stmt, index, value);
}

int mla_sql_bind_figure(sqlite3_stmt *stmt, int index, double value)
{
    if (isnan(value)) {
        return mla_sql_bind_text(stmt, index, "nan");
    }
    if (isinf(value)) {
        return mla_sql_bind_text(stmt, index, value > 0.0 ? "inf" : "-inf");
    }
    return sqlite3_bind_double(stmt, index, value);
}

int mla_sql_bind_ratio(sqlite3_stmt *stmt, int index, double value)
{
    if (value < 0.0) {
        return sqlite3_bind_null(stmt, index);
    }
    return mla_sql_bind_figure(stmt, index, value);
}
