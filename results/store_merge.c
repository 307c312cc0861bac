/* SPDX-License-Identifier: Apache-2.0
 *
 * store_merge.c - another database's content into this one, by names that are the same in every file.
 *
 * A run lives in the file in which it was begun; every other file has a copy of some moment. What is
 * added to a run only grows, and `writes` counts it, so copies stand in a line and a merge takes the later
 * one as a whole (pruning is no addition: of two copies with the same `writes` the one with more rows
 * stays, and if need be the one with the greater digest). Cases, findings and searches for what broke a
 * case belong to no run: cases are united, findings joined field by field, searches step by step. Taking the greater of two in a fixed order is idempotent,
 * commutative and associative, and so is the whole: any order of merging, repeated or not, ends with the
 * same content. Only numbers of rows differ; they are local to a file.
 */
#include "results/store_digest.h"
#include "results/store_internal.h"
#include "results/store_source.h"

#include <stdio.h>
#include <string.h>

#define ROWS(s, r)    "(SELECT count(*) FROM " s ".verdict WHERE run = " r ".id)"
#define COUNTED(s, r) "(SELECT coalesce(sum(n), 0) FROM " s ".tally WHERE run = " r ".id)"
#define KEPT(s, r)                                                                                 \
    "(SELECT mla_digest(id, kernel, verdict, relation) FROM"                                       \
    " (SELECT t.id, v.kernel, v.verdict, v.relation FROM " s ".verdict AS v"                       \
    " JOIN " s ".testcase AS t ON t.num = v.testcase WHERE v.run = " r ".id ORDER BY v.id))"
/*
 * How far a copy of run r in schema s has come, compared from the left: what was added; what there is,
 * as an older program's additions to a file that was migrated under it are not counted in `writes`; how
 * much pruning left of it, and which rows.
 */
#define STATE(s, r)                                                                                \
    "(" r ".writes, " ROWS(s, r) " + " COUNTED(s, r) ", " ROWS(s, r) ", " KEPT(s, r) ")"

/* Runs that are not here (run is NULL), or here in an earlier copy. */
static const char *const choose =
    "CREATE TEMP TABLE taken AS SELECT s.id AS src, m.id AS run"
    " FROM src.run AS s LEFT JOIN main.run AS m ON m.uid = s.uid"
    " WHERE m.id IS NULL OR " STATE("src", "s") " > " STATE("main", "m");

/* In the order of struct mla_store_merged. */
static const char *const tell =
    "SELECT (SELECT count(*) FROM taken WHERE run IS NULL),"
    " (SELECT count(*) FROM taken WHERE run IS NOT NULL),"
    " (SELECT count(*) FROM src.testcase AS s WHERE NOT EXISTS"
    "  (SELECT 1 FROM main.testcase AS m WHERE m.id = s.id)),"
    " (SELECT count(*) FROM src.verdict WHERE run IN (SELECT src FROM taken)),"
    " (SELECT count(*) FROM src.finding AS s JOIN src.testcase AS t ON t.num = s.testcase"
    "  WHERE NOT EXISTS (SELECT 1 FROM main.finding AS m"
    "   JOIN main.testcase AS c ON c.num = m.testcase"
    "   WHERE (c.id, m.kernel, m.verdict) = (t.id, s.kernel, s.verdict)))";

#define BUILD "git_commit, dirty, compiler, flags, sanitizer, isa"
#define SHAPE                                                                                      \
    "heads, threads, ring_size, batch, q_rows, kv_rows, head_dim, head_dim_v, logical_n,"          \
    " kv_actual_isl, kv_cache_batch_idx, is_balanced, topology, num_links, q_chunk_size,"          \
    " k_chunk_size, queries, keys, rope, topk, topk_tiled, dense, q_pos_offset, out_order, cores"
#define VERDICT                                                                                    \
    "kernel, verdict, relation, reason, max_ratio, elements_n, element, got, lo, hi,"              \
    " kernel_seconds, oracle_seconds"
#define BENCH                                                                                      \
    "op, shape, testcase, kernel, is_peer, threads, seconds, spread, flops, bytes, peak, of_peak," \
    " isa, own_isa, of_own_peak, noisy, reps"
#define TRIAL                                                                                      \
    "role, fault, class, op, search, trial, seed, outcome, executions, applied, cpu_seconds,"      \
    " verdict, relation, reason"
/* Row x of a table, if it belongs to a run that is taken, and the run's number here. */
#define OF_TAKEN " AS x JOIN taken ON taken.src = x.run JOIN run_of ON run_of.src = x.run"

/* A sighting by its time and, within the second, by the name of the run. */
#define FIRST_OF(row) "(" row ".first_seen, (SELECT uid FROM run WHERE id = " row ".first_run))"
#define LAST_OF(row)  "(" row ".last_seen, (SELECT uid FROM run WHERE id = " row ".last_run))"
#define EARLIER       FIRST_OF("excluded") " < " FIRST_OF("finding")
#define LATER         LAST_OF("excluded") " > " LAST_OF("finding")
#define SAME          LAST_OF("excluded") " = " LAST_OF("finding")
/* Of two texts either one, but of A and B the same as of B and A. */
#define EITHER(text)                                                                               \
    "max(coalesce(finding." text ", excluded." text "),"                                           \
    " coalesce(excluded." text ", finding." text "))"
/* The text of the later sighting. */
#define LAST_TEXT(text)                                                                            \
    text " = CASE WHEN " LATER " THEN excluded." text " WHEN " SAME                                \
         " THEN " EITHER(text) " ELSE finding." text " END"

#define BISECT                                                                                     \
    "kernel, question, repository, build_command, plugin, good, bad, started, ended, answer"
#define STEP "tries, failed, outcome, seconds, bits, output"
#define STEP_OF(row)                                                                               \
    row ".tries, " row ".failed, " row ".outcome, " row ".seconds, " row ".bits, " row ".output"
/* Comparable, as nothing is NULL. */
#define RANK(row)                                                                                  \
    "(coalesce(" row ".tries, -1), coalesce(" row ".failed, -1), " row ".outcome,"                 \
    " coalesce(" row ".seconds, -1), coalesce(" row ".bits, ''), coalesce(" row ".output, ''))"

static const char *const steps[] = {
    "INSERT INTO main.build (" BUILD ") SELECT " BUILD " FROM src.build WHERE true ORDER BY id"
    " ON CONFLICT DO NOTHING",

    /* All columns follow from the line but sign_coins, which version 1 did not ask for; if two programs
     * ever disagree, the answer that permits less stays. */
    "INSERT INTO main.testcase (id, line, op, family, region, " SHAPE ", sign_coins)"
    " SELECT id, line, op, family, region, " SHAPE ", sign_coins FROM src.testcase WHERE true"
    " ORDER BY num ON CONFLICT (id) DO UPDATE SET"
    " sign_coins = min(coalesce(testcase.sign_coins, excluded.sign_coins), excluded.sign_coins)"
    " WHERE excluded.sign_coins IS NOT NULL",
    "CREATE TEMP TABLE case_of (src INTEGER PRIMARY KEY, num INTEGER NOT NULL)",
    "INSERT INTO case_of SELECT s.num, m.num FROM src.testcase AS s"
    " JOIN main.testcase AS m ON m.id = s.id",

    /* Earlier copies make room; metrics and catches go with their rows. */
    "DELETE FROM main.verdict WHERE run IN (SELECT run FROM taken)",
    "DELETE FROM main.tally WHERE run IN (SELECT run FROM taken)",
    "DELETE FROM main.bench WHERE run IN (SELECT run FROM taken)",
    "DELETE FROM main.trial WHERE run IN (SELECT run FROM taken)",
    "UPDATE main.run AS m SET ended = s.ended, writes = s.writes"
    " FROM taken JOIN src.run AS s ON s.id = taken.src WHERE m.id = taken.run",
    "INSERT INTO main.run (build, command, host_cpu, kernels, seed, started, ended, uid, writes)"
    " SELECT m.id, s.command, s.host_cpu, s.kernels, s.seed, s.started, s.ended, s.uid, s.writes"
    " FROM taken JOIN src.run AS s ON s.id = taken.src JOIN src.build AS b ON b.id = s.build"
    " JOIN main.build AS m USING (" BUILD ")"
    " WHERE taken.run IS NULL ORDER BY s.started, s.id",
    "CREATE TEMP TABLE run_of (src INTEGER PRIMARY KEY, run INTEGER NOT NULL)",
    "INSERT INTO run_of SELECT s.id, m.id FROM src.run AS s JOIN main.run AS m ON m.uid = s.uid",

    /* What belongs to a run; numbers beyond those given so far keep rows and their figures together. */
    "CREATE TEMP TABLE base AS SELECT"
    " (SELECT coalesce(max(id), 0) FROM main.verdict) AS verdict_id,"
    " (SELECT coalesce(max(id), 0) FROM main.trial) AS trial_id",
    "INSERT INTO main.verdict (id, run, testcase, " VERDICT ")"
    " SELECT x.id + base.verdict_id, run_of.run, c.num, " VERDICT " FROM src.verdict" OF_TAKEN
    " JOIN case_of AS c ON c.src = x.testcase, base ORDER BY x.id",
    "INSERT INTO main.metric (verdict, name, value)"
    " SELECT m.verdict + base.verdict_id, m.name, m.value FROM src.metric AS m, base"
    " WHERE m.verdict IN (SELECT id FROM src.verdict WHERE run IN (SELECT src FROM taken))",
    "INSERT INTO main.tally (run, op, kernel, family, verdict, n, max_ratio)"
    " SELECT run_of.run, op, kernel, family, verdict, n, max_ratio FROM src.tally" OF_TAKEN,
    "INSERT INTO main.bench (run, " BENCH ")"
    " SELECT run_of.run, " BENCH " FROM src.bench" OF_TAKEN " ORDER BY x.id",
    "INSERT INTO main.trial (id, run, testcase, surveyed, " TRIAL ")"
    " SELECT x.id + base.trial_id, run_of.run, c.num, surveyed, " TRIAL " FROM src.trial" OF_TAKEN
    " LEFT JOIN case_of AS c ON c.src = x.testcase, base ORDER BY x.id",
    "INSERT INTO main.catch (trial, kind, name, cases)"
    " SELECT c.trial + base.trial_id, c.kind, c.name, c.cases FROM src.catch AS c, base"
    " WHERE c.trial IN (SELECT id FROM src.trial WHERE run IN (SELECT src FROM taken))",

    /* `known` is a person's word and stays. Else the copy that saw the fault last decides: `fixed` does
     * not outlive a later sighting elsewhere. Of the same sighting `fixed` was said afterwards. */
    "INSERT INTO main.finding (testcase, kernel, verdict, state, first_seen, first_run, last_seen,"
    " last_run, reason, repro)"
    " SELECT c.num, x.kernel, x.verdict, x.state, x.first_seen, a.run, x.last_seen, z.run,"
    " x.reason, x.repro FROM src.finding AS x JOIN case_of AS c ON c.src = x.testcase"
    " JOIN run_of AS a ON a.src = x.first_run JOIN run_of AS z ON z.src = x.last_run"
    " WHERE true ORDER BY x.id ON CONFLICT (testcase, kernel, verdict) DO UPDATE SET"
    " state = CASE WHEN 'known' IN (finding.state, excluded.state) THEN 'known'"
    "  WHEN " LATER " THEN excluded.state"
    "  WHEN " SAME " AND excluded.state = 'fixed' THEN 'fixed' ELSE finding.state END,"
    " first_seen = min(finding.first_seen, excluded.first_seen),"
    " first_run = iif(" EARLIER ", excluded.first_run, finding.first_run),"
    " last_seen = max(finding.last_seen, excluded.last_seen),"
    " last_run = iif(" LATER ", excluded.last_run, finding.last_run),"
    " " LAST_TEXT("reason") ", " LAST_TEXT("repro"),

    /* The rest of a search follows from its key. Of two ends the later one stays. */
    "INSERT INTO main.bisect (key, testcase, " BISECT ") SELECT x.key, c.num, " BISECT
    " FROM src.bisect AS x JOIN case_of AS c ON c.src = x.testcase"
    " WHERE true ORDER BY x.id ON CONFLICT (key) DO UPDATE SET"
    " started = min(bisect.started, excluded.started),"
    " (ended, answer) = (SELECT * FROM (SELECT bisect.ended, bisect.answer"
    "  UNION ALL SELECT excluded.ended, excluded.answer) ORDER BY 1 DESC, 2 DESC LIMIT 1)",
    /* Of two opinions the one of more tries; of those any one, in a fixed order. */
    "INSERT INTO main.bisect_step (bisect, testcase, git_commit, configuration, kernel, "
    "metric, " STEP
    ") SELECT b.id, b.testcase, x.git_commit, x.configuration, x.kernel, x.metric, " STEP_OF(
        "x") " FROM src.bisect_step AS x JOIN src.bisect AS s ON s.id = x.bisect"
             " JOIN main.bisect AS b ON b.key = s.key WHERE true ORDER BY x.id"
             " ON CONFLICT (bisect, git_commit, configuration) WHERE bisect IS NOT NULL DO UPDATE "
             "SET"
             " (" STEP
             ") = (" STEP_OF("excluded") ")"
                                         " WHERE " RANK("excluded") " > " RANK("bisect_step"),
    /* A step without a search has no name but its content. */
    "INSERT INTO main.bisect_step (testcase, metric, kernel, git_commit, outcome, seconds, output)"
    " SELECT DISTINCT c.num, x.metric, x.kernel, x.git_commit, x.outcome, x.seconds, x.output"
    " FROM src.bisect_step AS x LEFT JOIN case_of AS c ON c.src = x.testcase"
    " WHERE x.bisect IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM main.bisect_step AS m WHERE m.bisect IS NULL"
    "  AND m.testcase IS c.num"
    "  AND m.metric IS x.metric AND m.kernel = x.kernel AND m.git_commit = x.git_commit"
    "  AND m.outcome = x.outcome AND m.seconds IS x.seconds AND m.output IS x.output)"
    " ORDER BY x.id",

    "DROP TABLE temp.taken",
    "DROP TABLE temp.case_of",
    "DROP TABLE temp.run_of",
    "DROP TABLE temp.base",
};

static int32_t fail_merging(struct mla_store *store, const char *from)
{
    char doing[512];
    if (sqlite3_errcode(store->db) == SQLITE_INTERRUPT) {
        return mla_store_fail(store, MLA_STORE_ERR_STOPPED,
                              "stopped: nothing of '%s' was taken; merge it again", from);
    }
    (void)snprintf(doing, sizeof doing, "merge '%.400s'", from);
    return mla_sql_fail(store, doing);
}

static int32_t execute(struct mla_store *store, const char *from, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? MLA_STORE_OK
                                                                       : fail_merging(store, from);
}

static int32_t read_counts(struct mla_store *store, const char *from,
                           struct mla_store_merged *merged)
{
    sqlite3_stmt *stmt = mla_sql_prepare(store, tell);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int32_t status = MLA_STORE_OK;
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        merged->runs_new = sqlite3_column_int64(stmt, 0);
        merged->runs_later = sqlite3_column_int64(stmt, 1);
        merged->cases_new = sqlite3_column_int64(stmt, 2);
        merged->verdicts = sqlite3_column_int64(stmt, 3);
        merged->findings_new = sqlite3_column_int64(stmt, 4);
    } else {
        status = fail_merging(store, from);
    }
    (void)sqlite3_finalize(stmt);
    return status;
}

static int32_t bring(struct mla_store *store, const char *from, struct mla_store_merged *merged)
{
    int32_t status = mla_write_begin(store);
    if (status == MLA_STORE_OK) {
        status = execute(store, from, choose);
    }
    if (status == MLA_STORE_OK) {
        status = read_counts(store, from, merged);
    }
    for (size_t i = 0; status == MLA_STORE_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = execute(store, from, steps[i]);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store); /* takes the temporary tables with it */
    }
    return status;
}

/* What the connection asks now and then while it works. */
struct stop {
    const volatile int *flag; /* NULL: never */
};

static int ask_stop(void *context)
{
    const struct stop *stop = context;
    return stop->flag != NULL && *stop->flag != 0;
}

int32_t mla_store_merge(struct mla_store *store, const char *from, const volatile int *stop,
                        struct mla_store_merged *merged)
{
    memset(merged, 0, sizeof *merged);
    int32_t status = mla_store_flush(store);
    if (status == MLA_STORE_OK && mla_digest_register(store->db) != SQLITE_OK) {
        status = fail_merging(store, from);
    }
    if (status == MLA_STORE_OK) {
        status = mla_source_attach(store, from, stop);
    }
    if (status != MLA_STORE_OK) {
        return status;
    }
    struct stop asked = {stop};
    sqlite3_progress_handler(store->db, 10000, ask_stop, &asked);
    status = bring(store, from, merged);
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    mla_source_detach(store);
    if (status != MLA_STORE_OK) {
        memset(merged, 0, sizeof *merged);
    }
    return status;
}
