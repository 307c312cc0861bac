/* SPDX-License-Identifier: Apache-2.0
 *
 * store_test.c - what goes in: runs, cases, verdicts, metrics, tallies, findings, and when.
 *
 * What is in the file is read by another connection, which also shows what is still queued.
 */
#include "results/store_internal.h"
#include "results/store_test_util.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static char *folder;
static char path[256];

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static void put(struct mla_store *store, unsigned n, const char *verdict)
{
    struct mla_store_case testcase = test_case(n);
    struct mla_store_verdict v = test_verdict(&testcase, verdict);
    OK(mla_store_verdict(store, &v));
}

static void test_runs(void **state)
{
    (void)state;
    int64_t run = 0, run2 = 0;
    struct mla_store *store = test_open_run(path, &run);
    assert_int_equal(run, 1);
    assert_string_equal(
        test_text(path, "SELECT command || '|' || host_cpu || '|' || kernels || '|' || seed"
                        " || '|' || (ended IS NULL) FROM run"),
        "run --set upstream|a CPU|scalar,avx2|7|1");
    assert_string_equal(
        test_text(path, "SELECT git_commit || '|' || dirty || '|' || compiler || '|' || flags"
                        " || '|' || sanitizer || '|' || isa FROM build"),
        "c0ffee|0|clang 14|-O2||avx2");
    OK(mla_store_end_run(store));
    assert_int_equal(
        test_number(path, "SELECT count(*) FROM run WHERE ended >= started AND started GLOB"
                          " '20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z'"
                          " AND abs(julianday(started) - julianday('now')) < 0.01"),
        1);
    const struct mla_store_build build = {NULL, true, NULL, NULL, NULL, NULL};
    const struct mla_store_run begun = {NULL, NULL, NULL, MLA_STORE_NULL};
    OK(mla_store_begin_run(store, &build, &begun, &run2));
    assert_int_equal(run2, 2);
    assert_string_equal(test_text(path, "SELECT git_commit || dirty FROM build WHERE id = 2"),
                        "unknown1");
    assert_int_equal(test_number(path, "SELECT count(*) FROM run WHERE id = 2 AND seed IS NULL"),
                     1);
    assert_int_equal(mla_store_begin_run(store, NULL, &begun, &run2), MLA_STORE_ERR_WRITE);
    OK(mla_store_close(store));
}

static void test_join(void **state)
{
    (void)state;
    int64_t run = 0;
    struct mla_store *first = test_open_run(path, &run);
    struct mla_store *second = test_open(path);
    OK(mla_store_join_run(second, run));
    put(second, 5, "pass");
    OK(mla_store_end_run(second));
    assert_int_equal(test_number(path, "SELECT run FROM verdict"), run);
    assert_int_equal(mla_store_join_run(second, 99), MLA_STORE_ERR_NOT_FOUND);
    assert_non_null(strstr(mla_store_message(second), "99"));
    OK(mla_store_close(second));
    OK(mla_store_close(first));
}

static void test_every_case_column(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    struct mla_store_case c = test_case(0xabc);
    c.line = "sparse v=1 'quoted' \"too\" \xc3\xa4";
    c.op = "sparse";
    c.region = NULL;
    c.heads = 1, c.threads = 2, c.ring_size = 3, c.batch = 4, c.q_rows = 5, c.kv_rows = 6;
    c.head_dim = 7, c.head_dim_v = 8, c.logical_n = 9, c.kv_actual_isl = 10;
    c.kv_cache_batch_idx = 11, c.is_balanced = 12, c.topology = 13, c.num_links = 14;
    c.q_chunk_size = 15, c.k_chunk_size = 16, c.queries = 17, c.keys = 18, c.rope = 19;
    c.topk = 20, c.topk_tiled = 21, c.dense = 22, c.q_pos_offset = MLA_STORE_NULL;
    c.out_order = INT64_MAX, c.cores = -25;
    c.sign_coins = 1;
    struct mla_store_verdict v = test_verdict(&c, "pass");
    OK(mla_store_verdict(store, &v));
    OK(mla_store_close(store));
    assert_string_equal(
        test_text(path,
                  "SELECT id || '|' || line || '|' || op || '|' || family || '|' || region || '|'"
                  " || concat_all FROM (SELECT *, heads || ' ' || threads || ' ' || ring_size ||"
                  " ' ' || batch || ' ' || q_rows || ' ' || kv_rows || ' ' || head_dim || ' ' ||"
                  " head_dim_v || ' ' || logical_n || ' ' || kv_actual_isl || ' ' ||"
                  " kv_cache_batch_idx || ' ' || is_balanced || ' ' || topology || ' ' ||"
                  " num_links || ' ' || q_chunk_size || ' ' || k_chunk_size || ' ' || queries ||"
                  " ' ' || keys || ' ' || rope || ' ' || topk || ' ' || topk_tiled || ' ' ||"
                  " dense || ' ' || coalesce(q_pos_offset, 'none') || ' ' || out_order || ' ' ||"
                  " cores || ' ' || sign_coins AS concat_all FROM testcase)"),
        "00000abc00000000000000000000000000000000000000000000000000000000|"
        "sparse v=1 'quoted' \"too\" \xc3\xa4|sparse|profile||"
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 none "
        "9223372036854775807 -25 1");
}

/* The caller's memory is overwritten after the call: nothing may point there. */
static void test_verdict_is_copied(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    char texts[12][32] = {
        "kernel x", "fail-certain", "heads permuted", "reason\nnew line", "out[d=1]", "0x1.8p-3",
        "0x1.9p-3", "0x1.ap-3",     "repro 'r'",      "max_ulp",          "op"};
    struct mla_store_metric metric = {texts[9], 3.5};
    struct mla_store_case c = test_case(7);
    char line[32] = "ring v=1 copied";
    c.line = line;
    struct mla_store_verdict v = {&c,     texts[0], texts[1], texts[2], texts[3], 3.25,
                                  12,     texts[4], texts[5], texts[6], texts[7], 0.5,
                                  0.0625, &metric,  1,        texts[8]};
    OK(mla_store_verdict(store, &v));
    memset(texts, 'Z', sizeof texts);
    memset(line, 'Z', sizeof line);
    memset(&metric, 0, sizeof metric);
    memset(&c, 0, sizeof c);
    memset(&v, 0, sizeof v);
    OK(mla_store_close(store));
    assert_string_equal(
        test_text(path, "SELECT kernel || '|' || verdict || '|' || relation || '|' || reason || '|'"
                        " || max_ratio || '|' || elements_n || '|' || element || '|' || got || '|'"
                        " || lo || '|' || hi || '|' || kernel_seconds || '|' || oracle_seconds"
                        " FROM verdict"),
        "kernel x|fail-certain|heads permuted|reason\nnew line|3.25|12|out[d=1]|0x1.8p-3|0x1.9p-3|"
        "0x1.ap-3|0.5|0.0625");
    assert_string_equal(test_text(path, "SELECT name || value FROM metric"), "max_ulp3.5");
    assert_string_equal(test_text(path, "SELECT repro FROM finding"), "repro 'r'");
    assert_string_equal(test_text(path, "SELECT line FROM testcase"), "ring v=1 copied");
}

static void test_metric_values(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    const struct mla_store_metric metrics[] = {
        {"inf", (double)INFINITY}, {"minus", -(double)INFINITY},    {"nan", (double)NAN},
        {"tiny", 0x1p-1074},       {"third", 0x1.5555555555555p-2}, {"zero", 0.0}};
    struct mla_store_case c = test_case(1);
    struct mla_store_verdict v = test_verdict(&c, "pass");
    v.metrics = metrics;
    v.metrics_n = 6;
    OK(mla_store_verdict(store, &v));
    OK(mla_store_close(store));
    assert_string_equal(
        test_text(path, "SELECT group_concat(name || ':' || typeof(value) || ':' || value, ' ')"
                        " FROM metric WHERE name IN ('inf', 'minus', 'nan')"),
        "inf:text:inf minus:text:-inf nan:text:nan");
    assert_int_equal(test_number(path, "SELECT value = 0.33333333333333331 FROM metric"
                                       " WHERE name = 'third'"),
                     1);
    assert_int_equal(test_number(path, "SELECT value > 0 AND value < 5e-324 * 1.5 FROM metric"
                                       " WHERE name = 'tiny'"),
                     1);
    assert_int_equal(test_number(path, "SELECT value = 0 FROM metric WHERE name = 'zero'"), 1);
}

static void test_ratios(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    const double ratios[] = {2.0, (double)INFINITY, -1.0, (double)NAN, 1e308};
    for (unsigned i = 0; i < 5; i++) {
        struct mla_store_case c = test_case(i);
        struct mla_store_verdict v = test_verdict(&c, "fail-certain");
        v.max_ratio = ratios[i];
        OK(mla_store_verdict(store, &v));
    }
    OK(mla_store_close(store));
    /* NaN is the worst of all, infinity next; what has no ratio is not there. */
    assert_string_equal(test_text(path, "SELECT group_concat(id, ' ') FROM worst"),
                        "000000030000 000000010000 000000040000 000000000000");
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict WHERE max_ratio > 1"), 4);
}

static const char *const all_verdicts[] = {"pass",     "fail-certain", "fail-improbable",
                                           "unjudged", "unsupported",  "refused",
                                           "crash",    "timeout"};

static void test_every_verdict(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    for (unsigned i = 0; i < 8; i++) {
        put(store, i, all_verdicts[i]);
        OK(mla_store_tally(store, "sparse", "k", "exact", all_verdicts[i], (int64_t)i + 1, 0.5));
    }
    OK(mla_store_close(store));
    assert_string_equal(
        test_text(path, "SELECT group_concat(verdict, ' ') FROM (SELECT verdict FROM verdict"
                        " ORDER BY id)"),
        "pass fail-certain fail-improbable unjudged unsupported refused crash timeout");
    assert_int_equal(test_number(path, "SELECT count(*) FROM tally"), 8);
    assert_int_equal(test_number(path, "SELECT sum(n) FROM tally"), 36);
    assert_string_equal(
        test_text(path, "SELECT group_concat(verdict, ' ') FROM (SELECT verdict FROM finding"
                        " ORDER BY testcase)"),
        "fail-certain fail-improbable crash timeout");
}

/* Refused with a message holding text, and nothing queued. */
static void expect_refused(struct mla_store *store, const struct mla_store_verdict *v,
                           const char *text)
{
    assert_int_equal(mla_store_verdict(store, v), MLA_STORE_ERR_WRITE);
    if (strstr(mla_store_message(store), text) == NULL) {
        fail_msg("message '%s' lacks '%s'", mla_store_message(store), text);
    }
    assert_int_equal(store->queue.verdicts_n, 0);
}

static void test_bad_input(void **state)
{
    (void)state;
    struct mla_store *store = test_open(path);
    const struct mla_store_case good_case = test_case(1);
    const struct mla_store_verdict good = test_verdict(&good_case, "pass");
    expect_refused(store, &good, "no run");
    assert_int_equal(mla_store_tally(store, "ring", "k", "f", "pass", 1, 0), MLA_STORE_ERR_WRITE);
    assert_int_equal(mla_store_end_run(store), MLA_STORE_ERR_WRITE);
    OK(mla_store_close(store));

    store = test_open_run(path, NULL);
    struct mla_store_case c = good_case;
    struct mla_store_verdict v = good;
    expect_refused(store, NULL, "verdict is (null)");
    v.testcase = NULL;
    expect_refused(store, &v, "testcase is (null)");
    v = good;
    v.verdict = "passed";
    expect_refused(store, &v, "'passed'");
    v.verdict = NULL;
    expect_refused(store, &v, "verdict '(null)'");
    v = good;
    v.kernel = "";
    expect_refused(store, &v, "kernel ''");
    v = good;
    v.elements_n = -3;
    expect_refused(store, &v, "elements_n is -3");
    v = good;
    v.metrics_n = 1;
    expect_refused(store, &v, "metrics is (null)");
    const struct mla_store_metric twice[] = {{"a", 1}, {"b", 2}, {"a", 3}};
    v.metrics = twice;
    v.metrics_n = 3;
    expect_refused(store, &v, "metric 'a' is given twice");
    const struct mla_store_metric unnamed[] = {{"a", 1}, {"", 2}};
    v.metrics = unnamed;
    v.metrics_n = 2;
    expect_refused(store, &v, "metric 1 has no name");
    v = good;
    v.testcase = &c;
    c.id[3] = 'A';
    expect_refused(store, &v, "64 lower-case hex");
    c = good_case;
    c.id[63] = '\0';
    expect_refused(store, &v, "64 lower-case hex");
    c = good_case;
    c.line = "";
    expect_refused(store, &v, "no line");
    c = good_case;
    c.op = "rings";
    expect_refused(store, &v, "'rings'");
    assert_int_equal(mla_store_tally(store, "rung", "k", "f", "pass", 1, 0), MLA_STORE_ERR_WRITE);
    assert_int_equal(mla_store_tally(store, "ring", "k", "f", "pass", -1, 0), MLA_STORE_ERR_WRITE);
    assert_int_equal(mla_store_tally(store, "ring", "k", "f", "ok", 1, 0), MLA_STORE_ERR_WRITE);
    assert_int_equal(mla_store_tally(store, "ring", NULL, "f", "pass", 1, 0), MLA_STORE_ERR_WRITE);
    put(store, 9, "pass"); /* the store still works */
    OK(mla_store_close(store));
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), 1);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 1);
    assert_int_equal(test_number(path, "SELECT count(*) FROM tally"), 0);
}

/* The constraints hold in the file too, whoever writes. */
static void test_constraints(void **state)
{
    (void)state;
    OK(mla_store_close(test_open_run(path, NULL)));
    struct mla_store *store = test_open_run(path, NULL);
    put(store, 1, "crash");
    OK(mla_store_close(store));
    const char *bad[] = {
        "UPDATE verdict SET verdict = 'passed'",
        "UPDATE verdict SET max_ratio = 'high'",
        "UPDATE verdict SET elements_n = -1",
        "UPDATE testcase SET op = 'rings'",
        "UPDATE testcase SET id = 'abc'",
        "UPDATE testcase SET id = upper(replace(id, '0', 'a'))",
        "UPDATE testcase SET heads = 'many'",
        "UPDATE testcase SET sign_coins = 2",
        "UPDATE finding SET state = 'closed'",
        "UPDATE finding SET verdict = 'pass'",
        "UPDATE build SET dirty = 2",
        "INSERT INTO tally VALUES (1, 'ring', 'k', 'f', 'pass', -1, 0.0)",
        "INSERT INTO tally VALUES (1, 'ring', 'k', 'f', 'done', 1, 0.0)",
        "INSERT INTO metric VALUES (1, 'm', 'big')",
        "INSERT INTO bisect_step (kernel, git_commit, outcome) VALUES ('k', 'c', 'good')",
        "INSERT INTO bisect_step (testcase, kernel, git_commit, outcome) VALUES (1, 'k', 'c', '?')",
    };
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if ((sqlite3_exec(db, bad[i], NULL, NULL, NULL) & 0xff) != SQLITE_CONSTRAINT) {
            fail_msg("not refused: %s", bad[i]);
        }
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    test_exec(path, "INSERT INTO bisect_step (testcase, kernel, git_commit, outcome, seconds)"
                    " VALUES (1, 'k', 'c', 'bad', 1.5)");
}

static const char *finding(void)
{
    return test_text(path, "SELECT state || ' ' || first_run || ' ' || last_run || ' ' ||"
                           " coalesce(reason, '-') || ' ' || coalesce(repro, '-') FROM finding");
}

static void put_failure(const char *reason, const char *repro)
{
    struct mla_store *store = test_open_run(path, NULL);
    struct mla_store_case c = test_case(1);
    struct mla_store_verdict v = test_verdict(&c, "fail-certain");
    v.reason = reason;
    v.repro = repro;
    OK(mla_store_verdict(store, &v));
    OK(mla_store_close(store));
}

static void test_finding_life(void **state)
{
    (void)state;
    put_failure("first", "r1");
    assert_string_equal(finding(), "open 1 1 first r1");
    put_failure(NULL, NULL); /* what is not known any more does not erase what was */
    assert_string_equal(finding(), "open 1 2 first r1");
    test_exec(path, "UPDATE finding SET state = 'fixed', last_seen = '2001-01-01T00:00:00Z',"
                    " first_seen = '2001-01-01T00:00:00Z'");
    put_failure("third", "r3");
    assert_string_equal(finding(), "open 1 3 third r3");
    assert_int_equal(test_number(path, "SELECT last_seen > '2020' AND first_seen < '2002'"
                                       " FROM finding"),
                     1);
    test_exec(path, "UPDATE finding SET state = 'known'");
    put_failure("fourth", "r4");
    assert_string_equal(finding(), "known 1 4 fourth r4");
    struct mla_store *store = test_open_run(path, NULL);
    put(store, 1, "timeout"); /* another verdict of the same case is another finding */
    OK(mla_store_close(store));
    assert_int_equal(test_number(path, "SELECT count(*) FROM finding"), 2);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 1);
}

static void test_tally(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    for (int i = 0; i < 1000; i++) {
        OK(mla_store_tally(store, "ring", "k", "full", "pass", 2, i == 500 ? 0.75 : 0.5));
    }
    OK(mla_store_tally(store, "ring", "k", "full", "refused", 1, -1.0));
    OK(mla_store_flush(store));
    const char *sql = "SELECT n || ' ' || coalesce(max_ratio, 'none') FROM tally"
                      " WHERE verdict = 'pass'";
    assert_string_equal(test_text(path, sql), "2000 0.75");
    assert_int_equal(test_number(path, "SELECT max_ratio IS NULL FROM tally"
                                       " WHERE verdict = 'refused'"),
                     1);
    OK(mla_store_tally(store, "ring", "k", "full", "pass", 1, 0.1));
    OK(mla_store_tally(store, "ring", "k", "full", "refused", 1, 0.25));
    OK(mla_store_flush(store));
    assert_string_equal(test_text(path, sql), "2001 0.75");
    OK(mla_store_tally(store, "ring", "k", "full", "pass", 1, (double)INFINITY));
    OK(mla_store_flush(store));
    assert_string_equal(test_text(path, sql), "2002 inf");
    OK(mla_store_tally(store, "ring", "k", "full", "pass", 1, (double)NAN));
    OK(mla_store_tally(store, "ring", "k", "full", "pass", 1, 7.0));
    OK(mla_store_flush(store));
    assert_string_equal(test_text(path, sql), "2004 nan");
    assert_string_equal(test_text(path, "SELECT n || ' ' || max_ratio FROM tally"
                                        " WHERE verdict = 'refused'"),
                        "2 0.25");
    for (int i = 0; i < 2; i++) { /* no overflow, neither in the queue nor in the file */
        OK(mla_store_tally(store, "ring", "k", "full", "pass", INT64_MAX, 0.0));
    }
    OK(mla_store_close(store));
    assert_string_equal(test_text(path, sql), "9007199254740992 nan");
    assert_int_equal(test_number(path, "SELECT sum(cases) FROM summary"), 9007199254740994);
    assert_string_equal(test_text(path, "SELECT typeof(n) FROM tally WHERE verdict = 'pass'"),
                        "integer");
}

static int64_t rows_n(void)
{
    return test_number(path, "SELECT count(*) FROM verdict");
}

static void test_flush_by_count(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    for (unsigned i = 0; i < 255; i++) {
        put(store, i, "pass");
        store->queue.tried_ns = mla_queue_clock_ns(); /* not by time, however slow we are */
    }
    assert_int_equal(rows_n(), 0);
    put(store, 255, "pass");
    assert_int_equal(rows_n(), 256);
    put(store, 256, "pass");
    assert_int_equal(rows_n(), 256);
    OK(mla_store_end_run(store));
    assert_int_equal(rows_n(), 257);
    OK(mla_store_close(store));
}

static void test_flush_by_time(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    put(store, 1, "pass");
    assert_int_equal(rows_n(), 0);
    test_sleep_ms(520);
    put(store, 2, "pass");
    assert_int_equal(rows_n(), 2);
    put(store, 3, "pass"); /* the clock starts anew with the flush */
    assert_int_equal(rows_n(), 2);
    test_sleep_ms(520);
    put(store, 4, "pass");
    assert_int_equal(rows_n(), 4);
    test_sleep_ms(520); /* as when each takes long: none waits for the next one */
    put(store, 5, "pass");
    assert_int_equal(rows_n(), 5);
    put(store, 6, "pass");
    OK(mla_store_close(store));
    assert_int_equal(rows_n(), 6);
}

static void test_flush_while_locked(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    assert_int_equal(sqlite3_busy_timeout(store->db, 50), SQLITE_OK);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    int failed_n = 0;
    for (unsigned i = 0; i < 600; i++) {
        struct mla_store_case c = test_case(i);
        struct mla_store_verdict v = test_verdict(&c, "pass");
        int32_t status = mla_store_verdict(store, &v);
        assert_true(status == MLA_STORE_OK || status == MLA_STORE_ERR_WRITE);
        failed_n += status == MLA_STORE_OK ? 0 : 1;
    }
    assert_true(failed_n >= 2 && failed_n < 20); /* not one try a row */
    assert_int_equal(mla_store_flush(store), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(mla_store_message(store), "locked"));
    assert_non_null(strstr(mla_store_message(store), path));
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(rows_n(), 0);
    OK(mla_store_flush(store));
    assert_int_equal(rows_n(), 600);
    OK(mla_store_close(store));
    assert_int_equal(rows_n(), 600);
}

/* A batch that fails half way leaves no transaction open and nothing of itself in the file. */
static void test_flush_fails_half_way(void **state)
{
    (void)state;
    int64_t run = 0;
    struct mla_store *store = test_open_run(path, &run);
    put(store, 1, "pass");
    OK(mla_store_begin_run(store, &(struct mla_store_build){NULL, false, NULL, NULL, NULL, NULL},
                           &(struct mla_store_run){"doomed", NULL, NULL, 0}, NULL));
    put(store, 2, "pass");
    OK(mla_store_join_run(store, run)); /* the two flushed 1 and 2 */
    put(store, 3, "pass");
    OK(mla_store_tally(store, "ring", "k", "full", "pass", 1, 0.5));
    test_exec(path, "DELETE FROM verdict; UPDATE run SET id = 77 WHERE id = 1");
    assert_int_equal(mla_store_flush(store), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(mla_store_message(store), "FOREIGN KEY"));
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 2);
    test_exec(path, "UPDATE run SET id = 1 WHERE id = 77"); /* needs the write lock */
    OK(mla_store_flush(store));
    assert_int_equal(rows_n(), 1);
    assert_int_equal(test_number(path, "SELECT n FROM tally"), 1);
    OK(mla_store_close(store));
}

static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes == 0 ? limit.rlim_max : bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit on the size of files stands for a full disk. */
static void test_flush_on_full_disk(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    for (unsigned i = 0; i < 200; i++) {
        put(store, i, "fail-certain");
    }
    const int64_t stored = rows_n(); /* 0 unless we are very slow */
    put(store, 200, "fail-certain");
    set_file_limit(4096);
    int32_t status = mla_store_flush(store);
    int32_t again = mla_store_flush(store);
    set_file_limit(0);
    (void)signal(SIGXFSZ, before);
    assert_int_equal(status, MLA_STORE_ERR_WRITE);
    assert_int_equal(again, MLA_STORE_ERR_WRITE);
    assert_int_equal(rows_n(), stored);
    OK(mla_store_flush(store));
    assert_int_equal(rows_n(), 201);
    OK(mla_store_close(store));
    assert_int_equal(test_number(path, "SELECT count(*) FROM finding"), 201);
    assert_string_equal(test_text(path, "PRAGMA integrity_check"), "ok");
}

static void expect_line(struct mla_store *store, const char *prefix, int32_t status,
                        const char *text)
{
    char *line = (char *)path;
    assert_int_equal(mla_store_find_line(store, prefix, &line), status);
    if (status == MLA_STORE_OK) {
        assert_string_equal(line, text);
    } else {
        assert_null(line);
        if (strstr(mla_store_message(store), text) == NULL) {
            fail_msg("message '%s' lacks '%s'", mla_store_message(store), text);
        }
    }
    free(line);
}

static void test_find_line(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    expect_line(store, "0000", MLA_STORE_ERR_NOT_FOUND, "'0000'");
    put(store, 0x12345678, "pass");
    put(store, 0x12345679, "pass");
    put(store, 0xffffffff, "pass");
    put(store, 0x99999999, "pass");
    expect_line(store, "12345678", MLA_STORE_OK, "ring v=1 heads=305419896"); /* queued only */
    expect_line(store, "1234567", MLA_STORE_ERR_AMBIGUOUS, "'1234567'");
    expect_line(store, "1234", MLA_STORE_ERR_AMBIGUOUS, "'1234'");
    expect_line(store, "123456789", MLA_STORE_ERR_NOT_FOUND, "'123456789'");
    expect_line(store, "ffff", MLA_STORE_OK, "ring v=1 heads=4294967295");
    expect_line(store, "9999", MLA_STORE_OK, "ring v=1 heads=2576980377");
    expect_line(store, "999a", MLA_STORE_ERR_NOT_FOUND, "'999a'");
    expect_line(store, "9999999900000000000000000000000000000000000000000000000000000000",
                MLA_STORE_OK, "ring v=1 heads=2576980377");
    expect_line(store, "99999999000000000000000000000000000000000000000000000000000000000",
                MLA_STORE_ERR_NOT_FOUND, "4 to 64");
    expect_line(store, "999", MLA_STORE_ERR_NOT_FOUND, "4 to 64");
    expect_line(store, "FFFF", MLA_STORE_ERR_NOT_FOUND, "'FFFF'");
    expect_line(store, "ff%_", MLA_STORE_ERR_NOT_FOUND, "'ff%_'");
    expect_line(store, "", MLA_STORE_ERR_NOT_FOUND, "''");
    expect_line(store, NULL, MLA_STORE_ERR_NOT_FOUND, "(null)");
    OK(mla_store_close(store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_join, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_case_column, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verdict_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metric_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ratios, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_verdict, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_constraints, setup, teardown),
        cmocka_unit_test_setup_teardown(test_finding_life, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tally, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flush_by_count, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flush_by_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flush_while_locked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flush_fails_half_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flush_on_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_find_line, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
