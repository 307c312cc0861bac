/* SPDX-License-Identifier: Apache-2.0
 *
 * store_stress_test.c - kill -9 in the middle of writing, and several writers of one file.
 *
 * A killed child reports over a pipe how many verdicts it knows to be flushed: the file must hold
 * at least these, be whole, and name the case that was running.
 */
#include "results/store_test_util.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Verdicts without end, flushed every 20, each under a note. Writes the number flushed to report.
 */
static void write_until_killed(int report)
{
    struct mla_store *store = test_open_run(path, NULL);
    (void)alarm(60); /* a failing test must not leave it behind */
    for (unsigned i = 1;; i++) {
        struct mla_store_case c = test_case(i);
        struct mla_store_verdict v = test_verdict(&c, i % 3 == 0 ? "fail-certain" : "pass");
        struct mla_store_metric metric = {"max_ulp", i};
        v.metrics = &metric;
        v.metrics_n = 1;
        if (mla_store_inflight_begin(store, &c, "scalar", "repro") != MLA_STORE_OK ||
            mla_store_verdict(store, &v) != MLA_STORE_OK) {
            _exit(1);
        }
        if (i % 20 == 0) {
            if (mla_store_flush(store) != MLA_STORE_OK ||
                write(report, &i, sizeof i) != (ssize_t)sizeof i) {
                _exit(1);
            }
        }
    }
}

static unsigned last_report(int report)
{
    unsigned last = 0, value = 0;
    while (read(report, &value, sizeof value) == (ssize_t)sizeof value) {
        last = value;
    }
    return last;
}

static void test_kill_at_any_moment(void **state)
{
    (void)state;
    unsigned most = 0;
    for (int round = 0; round < 24; round++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            (void)close(ends[0]);
            write_until_killed(ends[1]);
        }
        (void)close(ends[1]);
        if (round >= 6) { /* a busy machine may take long to get to the first report */
            struct pollfd first = {.fd = ends[0], .events = POLLIN};
            (void)poll(&first, 1, 20000);
        }
        test_sleep_ms(round < 6 ? round * 2 : (round * 37) % 60);
        assert_int_equal(kill(child, SIGKILL), 0);
        unsigned flushed = last_report(ends[0]);
        (void)close(ends[0]);
        assert_int_equal(test_wait(child), 1000 + SIGKILL);
        int notes_n = test_files_n(folder, "x.db-inflight-");
        OK(mla_store_close(test_open(path)));
        assert_string_equal(test_text(path, "PRAGMA integrity_check"), "ok");
        assert_int_equal(test_number(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
        int64_t run = test_number(path, "SELECT coalesce(max(id), 0) FROM run");
        char sql[200];
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM verdict WHERE run = %lld"
                       " AND verdict <> 'unjudged'",
                       (long long)run);
        int64_t stored = test_number(path, sql);
        assert_true(stored >= (int64_t)flushed);
        if (flushed > 0) {
            assert_int_equal(notes_n, 1);
            (void)snprintf(sql, sizeof sql,
                           "SELECT count(*) FROM verdict WHERE verdict = 'unjudged'"
                           " AND run = %lld",
                           (long long)run);
            /* None when the kill fell between two notes' bodies: the note was being written. */
            assert_in_range(test_number(path, sql), 0, 1);
        }
        assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
        most = flushed > most ? flushed : most;
    }
    assert_true(most > 0);
    assert_true(test_number(path, "SELECT count(*) FROM verdict WHERE verdict = 'unjudged'") > 0);
    assert_int_equal(test_number(path,
                                 "SELECT (SELECT count(*) FROM metric) ="
                                 " (SELECT count(*) FROM verdict WHERE verdict <> 'unjudged')"),
                     1);
}

static void write_thousand(int64_t run, unsigned writer)
{
    struct mla_store *store = test_open(path);
    int32_t status = mla_store_join_run(store, run);
    for (unsigned i = 0; i < 1000 && status == MLA_STORE_OK; i++) {
        struct mla_store_case c = test_case(i); /* the same cases from all writers */
        struct mla_store_verdict v = test_verdict(&c, i % 2 == 0 ? "pass" : "fail-certain");
        char kernel[16];
        (void)snprintf(kernel, sizeof kernel, "k%u", writer);
        v.kernel = kernel;
        status = mla_store_inflight_begin(store, &c, kernel, "r");
        status = status == MLA_STORE_OK ? mla_store_verdict(store, &v) : status;
        status = status == MLA_STORE_OK
                     ? mla_store_tally(store, "ring", "k", "full", "pass", 1, 0.5)
                     : status;
        status = status == MLA_STORE_OK ? mla_store_inflight_end(store) : status;
        if (status == MLA_STORE_OK && i % 25 == writer) {
            status = mla_store_flush(store);
        }
    }
    if (status != MLA_STORE_OK) {
        (void)fprintf(stderr, "%s\n", mla_store_message(store));
    }
    _exit(status == MLA_STORE_OK && mla_store_close(store) == MLA_STORE_OK ? 0 : 1);
}

static void test_four_writers(void **state)
{
    (void)state;
    int64_t run = 0;
    struct mla_store *store = test_open_run(path, &run);
    pid_t children[4];
    for (unsigned i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            write_thousand(run, i);
        }
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(test_wait(children[i]), 0);
    }
    OK(mla_store_close(store));
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), 4000);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 1000);
    assert_int_equal(test_number(path, "SELECT count(*) FROM finding"), 2000);
    assert_int_equal(test_number(path, "SELECT n FROM tally"), 4000);
    assert_int_equal(test_number(path, "SELECT count(*) FROM (SELECT kernel FROM verdict"
                                       " GROUP BY kernel HAVING count(*) = 1000)"),
                     4);
    assert_string_equal(test_text(path, "PRAGMA integrity_check"), "ok");
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kill_at_any_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_four_writers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
