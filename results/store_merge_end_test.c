/* SPDX-License-Identifier: Apache-2.0
 *
 * store_merge_end_test.c - merging that ends badly, or is made to: sources stay as they are, the file
 * merged into stays whole, and the same merge again finishes.
 */
#include "results/store_merge_test_util.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static char *folder;
static char from[256], into[256];

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make_fast();
    (void)snprintf(from, sizeof from, "%s/fr om%%41?x=1#2.db",
                   folder); /* a name that needs quoting */
    (void)snprintf(into, sizeof into, "%s/into.db", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)chmod(folder, 0755);
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

/* Merge a source that must be refused with status and a message that has both texts. */
static void expect_refused(const char *source, int32_t status, const char *text, const char *text2)
{
    struct mla_store_merged merged, none = {0};
    struct mla_store *store = test_open(into);
    assert_int_equal(mla_store_merge(store, source, NULL, &merged), status);
    if (strstr(mla_store_message(store), text) == NULL ||
        strstr(mla_store_message(store), text2) == NULL) {
        fail_msg("message '%s' lacks '%s' or '%s'", mla_store_message(store), text, text2);
    }
    assert_memory_equal(&merged, &none, sizeof none);
    OK(mla_store_close(store)); /* and is usable */
    assert_int_equal(test_number(into, "SELECT count(*) FROM run"), 0);
}

static void test_refused(void **state)
{
    (void)state;
    const char *path = test_path(folder, "x.db");
    OK(mla_store_close(test_open(into)));
    expect_refused(path, MLA_STORE_ERR_OPEN, "No such file", "x.db");
    expect_refused("", MLA_STORE_ERR_OPEN, "empty", "");
    expect_refused(NULL, MLA_STORE_ERR_OPEN, "empty", "");
    expect_refused(folder, MLA_STORE_ERR_OPEN, "not a regular file", folder);
    expect_refused(into, MLA_STORE_ERR_OPEN, "into itself", "into.db");
    assert_int_equal(symlink(into, test_path(folder, "link.db")), 0);
    expect_refused(test_path(folder, "link.db"), MLA_STORE_ERR_OPEN, "into itself", "link.db");
    test_write_file(path, "", 0);
    expect_refused(path, MLA_STORE_ERR_OPEN, "is empty", "x.db");
    test_write_file(path, "some words that are no database", 31);
    expect_refused(path, MLA_STORE_ERR_OPEN, "not an SQLite database", "x.db");
    (void)unlink(path);
    test_exec(path, "CREATE TABLE run (x)");
    expect_refused(path, MLA_STORE_ERR_SCHEMA, "another program", "x.db");
    (void)unlink(path);
    test_machine_write(path, 1, 5);
    test_exec(path, "PRAGMA user_version = 4711");
    expect_refused(path, MLA_STORE_ERR_SCHEMA, "version 4711", "up to version 5");
    test_exec(path, "PRAGMA user_version = 5; UPDATE run SET uid = NULL WHERE id = 2");
    expect_refused(path, MLA_STORE_ERR_OPEN, "run 2", "x.db");
    (void)unlink(path);
    test_machine_write(path, 1, 5);
    test_exec(path, "DELETE FROM testcase WHERE num = 2"); /* its verdict hangs in the air */
    expect_refused(path, MLA_STORE_ERR_OPEN, "damaged", ".recover");
}

/* Bytes of pages flipped: refused, or not noticed because nothing refers to them; never a part. */
static void test_damaged(void **state)
{
    (void)state;
    long bytes = 0;
    unsigned seed = 11;
    int refused_n = 0;
    test_machine_write(from, 1, 60);
    char *data = test_read_file(from, &bytes);
    for (int round = 0; round < 30; round++) {
        char *damaged = malloc((size_t)bytes);
        assert_non_null(damaged);
        memcpy(damaged, data, (size_t)bytes);
        for (int i = 0; i < 40; i++) {
            damaged[100 + test_random(&seed) % (unsigned)(bytes - 100)] ^=
                (char)(1 + test_random(&seed) % 255);
        }
        long kept = round % 3 == 0 ? bytes * (round + 1) / 31 : bytes; /* some cut off too */
        test_write_file(test_path(folder, "d.db"), damaged, (size_t)kept);
        free(damaged);
        struct mla_store_merged merged;
        struct mla_store *store = test_open(into);
        int32_t status = mla_store_merge(store, test_path(folder, "d.db"), NULL, &merged);
        assert_true(status == MLA_STORE_OK || strstr(mla_store_message(store), "d.db") != NULL);
        OK(mla_store_close(store));
        if (status != MLA_STORE_OK) {
            refused_n++;
            assert_int_equal(test_number(into, "SELECT count(*) FROM run"), 0);
        } else {
            assert_string_equal(test_text(into, "PRAGMA integrity_check"), "ok");
            (void)unlink(into);
        }
    }
    assert_true(refused_n >= 20);
    free(data);
}

static void assert_untouched(const char *path, const char *before, long before_n, int files_n)
{
    long after_n = 0;
    char *after = test_read_file(path, &after_n);
    assert_int_equal(before_n, after_n);
    assert_memory_equal(before, after, (size_t)before_n);
    assert_int_equal(test_files_n(folder, ""), files_n);
    free(after);
}

/* Of today's version and of an old one: not a byte changes, and nothing appears beside it. */
static void test_untouched(void **state)
{
    (void)state;
    OK(mla_store_close(test_open(into)));
    for (int old = 0; old < 2; old++) {
        long bytes = 0;
        (void)unlink(from);
        if (old == 0) {
            test_machine_write(from, 1, 10);
        } else {
            test_dump_load(MLA_TEST_V1_SQL, from);
        }
        char *before = test_read_file(from, &bytes);
        int files_n = test_files_n(folder, "");
        assert_true(test_merge(into, from).runs_new >= 2);
        assert_untouched(from, before, bytes, files_n);
        free(before);
    }
}

/* In use, with the latest rows still in its WAL. */
static void test_in_use(void **state)
{
    (void)state;
    test_machine_write(from, 1, 10);
    struct mla_store *home = test_open_run(from, NULL); /* a third run */
    struct mla_store_case c = test_case(77);
    struct mla_store_verdict v = test_verdict(&c, "fail-certain");
    OK(mla_store_verdict(home, &v));
    OK(mla_store_flush(home));
    long bytes = 0, wal_bytes = 0;
    char *before = test_read_file(from, &bytes);
    char wal[300];
    (void)snprintf(wal, sizeof wal, "%s-wal", from);
    char *wal_before = test_read_file(wal, &wal_bytes);
    OK(mla_store_close(test_open(into)));
    int files_n = test_files_n(folder, "");
    struct mla_store_merged merged = test_merge(into, from);
    assert_int_equal(merged.runs_new, 3);
    assert_int_equal(merged.verdicts, 11);
    assert_untouched(from, before, bytes, files_n);
    assert_untouched(wal, wal_before, wal_bytes, files_n);
    OK(mla_store_close(home));
    free(before);
    free(wal_before);
}

/* Left by a process that was killed: the WAL is part of it. */
static void test_left_by_a_killed_one(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct mla_store *store = test_open_run(from, NULL);
        struct mla_store_case c = test_case(1);
        struct mla_store_verdict v = test_verdict(&c, "pass");
        bool ok =
            mla_store_verdict(store, &v) == MLA_STORE_OK && mla_store_flush(store) == MLA_STORE_OK;
        (void)kill(getpid(), ok ? SIGKILL : SIGTERM);
    }
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
    long bytes = 0, wal_bytes = 0;
    char wal[300];
    (void)snprintf(wal, sizeof wal, "%s-wal", from);
    char *before = test_read_file(from, &bytes), *wal_before = test_read_file(wal, &wal_bytes);
    assert_true(wal_bytes > 0);
    OK(mla_store_close(test_open(into)));
    int files_n = test_files_n(folder, "");
    assert_int_equal(test_merge(into, from).verdicts, 1);
    assert_untouched(from, before, bytes, files_n);
    assert_untouched(wal, wal_before, wal_bytes, files_n);
    free(before);
    free(wal_before);
}

/* Where the reader may not write at all. */
static void test_read_only_folder(void **state)
{
    (void)state;
    test_machine_write(from, 1, 10);
    char *elsewhere = test_folder_make_fast();
    assert_int_equal(chmod(elsewhere, 0777), 0);
    assert_int_equal(chmod(from, 0444), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(77);
        }
        _exit(test_merge(test_path(elsewhere, "into.db"), from).verdicts == 10 ? 0 : 1);
    }
    assert_int_equal(test_wait(child), 0);
    test_folder_remove(elsewhere);
}

/* Somebody writes to the source all the time: each merge takes what was there at one moment. */
static void test_moving_source(void **state)
{
    (void)state;
    test_machine_write(from, 1, 1);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        struct mla_store *store = test_open(from);
        int32_t status = mla_store_join_run(store, 1);
        for (unsigned i = 1; status == MLA_STORE_OK; i++) {
            struct mla_store_case c = test_case(i);
            struct mla_store_verdict v = test_verdict(&c, "pass");
            struct mla_store_metric metric = {"max_ulp", i};
            v.metrics = &metric;
            v.metrics_n = 1;
            status = mla_store_verdict(store, &v);
            status = status == MLA_STORE_OK ? mla_store_flush(store) : status;
            test_sleep_ms(1); /* what it writes is copied ten times */
        }
        _exit(1);
    }
    for (int i = 0; i < 10; i++) {
        test_merge(into, from);
        assert_int_equal(test_number(into, "SELECT count(*) FROM verdict AS v WHERE NOT EXISTS"
                                           " (SELECT 1 FROM metric AS m WHERE m.verdict = v.id)"),
                         0);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
    OK(mla_store_close(test_open(from)));
    test_merge(into, from);
    char *of_from = test_content(from), *of_into = test_content(into);
    assert_string_equal(of_from, of_into);
    assert_true(test_number(into, "SELECT count(*) FROM verdict") > 10);
    free(of_from);
    free(of_into);
}

/* kill -9 at random moments of merging: each time all of a source or nothing, and in the end everything. */
static void test_killed(void **state)
{
    (void)state;
    unsigned seed = 3;
    test_machine_write(from, 1, 400);
    const char *whole = test_path(folder, "whole.db");
    test_merge(whole, from);
    char *expected = test_content(whole);
    const char *wanted = getenv("MLA_TEST_KILLS");
    int done_n = 0, kills_n = wanted == NULL ? 60 : atoi(wanted);
    for (int round = 0; round < kills_n; round++) {
        pid_t child = fork();
        if (child == 0) {
            test_merge(into, from);
            (void)pause(); /* only killing ends it */
        }
        struct timespec moment = {0, (long)(test_random(&seed) % 40000) * 1000};
        (void)nanosleep(&moment, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(test_wait(child), 1000 + SIGKILL);
        OK(mla_store_close(test_open(into)));
        assert_string_equal(test_text(into, "PRAGMA integrity_check"), "ok");
        int64_t verdicts_n = test_number(into, "SELECT count(*) FROM verdict");
        assert_true(verdicts_n == 0 || verdicts_n == 400);
        if (verdicts_n > 0) {
            done_n++;
            (void)unlink(into); /* once more from nothing */
        }
    }
    assert_true(done_n < kills_n);
    test_merge(into, from);
    char *content = test_content(into);
    assert_string_equal(content, expected);
    free(content);
    free(expected);
}

static void test_stopped(void **state)
{
    (void)state;
    const volatile int stop = 1;
    struct mla_store_merged merged;
    test_machine_write(from, 1, 400);
    struct mla_store *store = test_open(into);
    assert_int_equal(mla_store_merge(store, from, &stop, &merged), MLA_STORE_ERR_STOPPED);
    assert_non_null(strstr(mla_store_message(store), "stopped"));
    assert_int_equal(test_number(into, "SELECT count(*) FROM run"), 0);
    OK(mla_store_merge(store, from, NULL, &merged));
    assert_int_equal(merged.verdicts, 400);
    OK(mla_store_close(store));
}

static volatile int late;

static void set_late(int signal)
{
    (void)signal;
    late = 1;
}

/* Asked to stop at any moment of its work, it says that it was stopped, and nothing else. */
static void test_stopped_later(void **state)
{
    (void)state;
    struct mla_store_merged merged;
    int stopped_n = 0;
    test_machine_write(from, 1, 2000);
    void (*before)(int) = signal(SIGALRM, set_late);
    for (int i = 1; i <= 60; i++) {
        struct mla_store *store = test_open(into);
        const struct itimerval when = {.it_value = {.tv_usec = 1000 * i}};
        late = 0;
        assert_int_equal(setitimer(ITIMER_REAL, &when, NULL), 0);
        int32_t status = mla_store_merge(store, from, &late, &merged);
        assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL), 0);
        if (status != MLA_STORE_OK && status != MLA_STORE_ERR_STOPPED) {
            fail_msg("after %d ms: %" PRId32 ", %s", i, status, mla_store_message(store));
        }
        stopped_n += status == MLA_STORE_ERR_STOPPED;
        OK(mla_store_close(store));
        assert_int_equal(unlink(into), 0);
    }
    assert_ptr_not_equal(signal(SIGALRM, before), SIG_ERR);
    assert_true(stopped_n > 0);
}

/* Two machines' files merged into one at once. */
static void test_two_at_once(void **state)
{
    (void)state;
    pid_t children[2];
    const char *sources[2] = {from, test_path(folder, "other.db")};
    for (int i = 0; i < 2; i++) {
        test_machine_write(sources[i], (unsigned)i + 1, 200);
    }
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int k = 0; k < 5; k++) {
                test_merge(into, sources[(i + k) % 2]);
            }
            _exit(0);
        }
    }
    assert_int_equal(test_wait(children[0]), 0);
    assert_int_equal(test_wait(children[1]), 0);
    assert_int_equal(test_number(into, "SELECT count(*) FROM verdict"), 400);
    assert_int_equal(test_number(into, "SELECT count(*) FROM run"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_untouched, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_use, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_by_a_killed_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_only_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moving_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopped_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
