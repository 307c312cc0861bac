/* SPDX-License-Identifier: Apache-2.0
 *
 * store_damage_test.c - files that were damaged: whatever is done with one ends, with a status and a message
 * that names the file and says what to do.
 *
 * Each damaged file is opened, read through every view, written and closed in a process of its own, which
 * must neither die nor take long. Not all damage can be noticed: what lies where nothing is looked for, or
 * makes another number of a number, passes.
 */
#include "results/store_test_util.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

#define DIES_AFTER 30 /* seconds */
#define VERDICTS_N 120

static char *folder;
static char path[256], wal[256];

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make_fast();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    (void)snprintf(wal, sizeof wal, "%s/x.db-wal", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static void put(struct mla_store *store, unsigned i)
{
    struct mla_store_case c = test_case(i);
    struct mla_store_verdict v = test_verdict(&c, i % 3 == 0 ? "fail-certain" : "pass");
    const struct mla_store_metric metrics[] = {{"max_ulp", 0.5}, {"bias", -0.25}};
    v.metrics = metrics;
    v.metrics_n = 2;
    (void)mla_store_verdict(store, &v); /* a failed flush is seen at the next one */
}

static void make(void)
{
    struct mla_store *store = test_open_run(path, NULL);
    for (unsigned i = 0; i < VERDICTS_N; i++) {
        put(store, i);
    }
    OK(mla_store_close(store));
}

static int drop_row(void *context, int columns_n, const char *const *names,
                    const char *const *values)
{
    (void)context;
    (void)columns_n;
    (void)names;
    (void)values;
    return 0;
}

/* Everything that is done with a database. The message is left in text. */
static int32_t use(char *text, size_t text_bytes)
{
    struct mla_store *store = NULL;
    const struct mla_store_build build = {"c0ffee", false, "clang 14", "-O2", "", "avx2"};
    const struct mla_store_run run = {"run", "a CPU", "scalar", 7};
    int32_t worst = mla_store_open(path, &store, text, text_bytes);
    if (worst != MLA_STORE_OK) {
        return worst;
    }
    for (int step = 0; step < MLA_VIEW_N + 4; step++) {
        const char *key = step == MLA_VIEW_CASE ? "00000003" : NULL;
        int32_t status = MLA_STORE_OK;
        if (step < MLA_VIEW_N) {
            status = mla_store_view(store, (enum mla_store_view)step, key, drop_row, NULL);
        } else if (step == MLA_VIEW_N) {
            status = mla_store_begin_run(store, &build, &run, NULL);
        } else if (step == MLA_VIEW_N + 1) {
            for (unsigned i = 60; i < 180; i++) {
                put(store, i);
            }
            status = mla_store_flush(store);
        } else if (step == MLA_VIEW_N + 2) {
            status = mla_store_prune(store, 1, 1, NULL);
        } else {
            status = mla_store_end_run(store);
        }
        if (status == MLA_STORE_ERR_NOT_FOUND) { /* the row is gone: an answer */
            status = MLA_STORE_OK;
        }
        if (status != MLA_STORE_OK && worst == MLA_STORE_OK) {
            worst = status;
            (void)snprintf(text, text_bytes, "%s", mla_store_message(store));
        }
    }
    (void)mla_store_close(store);
    return worst;
}

/* 0: all went well; 1: refused, with a message that names the file and helps; 2: with another. */
static int outcome_of_use(void)
{
    pid_t child = fork();
    if (child == 0) {
        char text[4096] = "";
        (void)alarm(DIES_AFTER);
        int32_t status = use(text, sizeof text);
        bool named = strstr(text, "x.db") != NULL;
        bool helps = strstr(text, ".recover") != NULL || strstr(text, "another program") != NULL ||
                     strstr(text, "newer mlacheck") != NULL;
        if (status != MLA_STORE_OK && !(named && helps)) {
            (void)fprintf(stderr, "message: '%s'\n", text);
        }
        _exit(status == MLA_STORE_OK ? 0 : named && helps ? 1 : 2);
    }
    return test_wait(child); /* 1000 and more: killed by a signal */
}

/* A small generator: the same damage on every machine. */
static unsigned random_number(unsigned *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 10;
}

static void write_damaged(const char *file, const char *data, long bytes, long from, long to,
                          unsigned *seed)
{
    char *damaged = malloc((size_t)bytes);
    assert_non_null(damaged);
    memcpy(damaged, data, (size_t)bytes);
    for (int i = 0; i < 24; i++) {
        long at = from + (long)(random_number(seed) % (unsigned)(to - from));
        damaged[at] ^= (char)(1 + random_number(seed) % 255);
    }
    test_write_file(file, damaged, (size_t)bytes);
    free(damaged);
}

/* Flip bytes in [from, to) of a copy, so many times, and use it; how many were noticed. */
static int flip_in(const char *data, long bytes, long from, long to, int rounds_n)
{
    int noticed_n = 0;
    unsigned seed = (unsigned)from + 5;
    for (int round = 0; round < rounds_n; round++) {
        write_damaged(path, data, bytes, from, to, &seed);
        (void)unlink(wal);
        int outcome = outcome_of_use();
        assert_in_range(outcome, 0, 1);
        noticed_n += outcome;
    }
    return noticed_n;
}

static void test_flipped(void **state)
{
    (void)state;
    long bytes = 0;
    make();
    char *data = test_read_file(path, &bytes);
    assert_true(bytes > 20 * 4096);
    assert_true(flip_in(data, bytes, 0, 16, 3) == 3);         /* "SQLite format 3" */
    assert_true(flip_in(data, bytes, 16, 100, 20) >= 10);     /* the rest of the header */
    assert_true(flip_in(data, bytes, 100, 4096, 20) >= 1);    /* the schema's root, mostly unused */
    assert_true(flip_in(data, bytes, 4096, bytes, 30) >= 15); /* all other pages */
    free(data);
}

static void test_cut(void **state)
{
    (void)state;
    long bytes = 0;
    int noticed_n = 0;
    make();
    char *data = test_read_file(path, &bytes);
    for (int i = 1; i < 20; i++) {
        test_write_file(path, data, (size_t)(bytes * i / 20));
        int outcome = outcome_of_use();
        assert_in_range(outcome, 0, 1);
        noticed_n += outcome;
    }
    assert_int_equal(noticed_n, 19);
    free(data);
}

/* A process killed with everything in the WAL; the WAL is then damaged, cut or taken away. */
static void make_with_wal(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct mla_store *store = test_open_run(path, NULL);
        for (unsigned i = 0; i < VERDICTS_N; i++) {
            put(store, i);
            (void)(i % 30 == 29 && mla_store_flush(store) != MLA_STORE_OK);
        }
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
}

static void test_wal(void **state)
{
    (void)state;
    long bytes = 0, wal_bytes = 0;
    unsigned seed = 9;
    make_with_wal();
    char *data = test_read_file(path, &bytes), *log = test_read_file(wal, &wal_bytes);
    assert_true(wal_bytes > 4096);
    for (int round = 0; round < 20; round++) {
        test_write_file(path, data, (size_t)bytes);
        if (round % 2 == 0) {
            write_damaged(wal, log, wal_bytes, 0, wal_bytes, &seed);
        } else {
            test_write_file(wal, log, (size_t)(wal_bytes * round / 20));
        }
        (void)unlink(test_path(folder, "x.db-shm"));
        assert_int_equal(outcome_of_use(),
                         0); /* what comes before the damage stays: a whole database */
        assert_string_equal(test_text(path, "PRAGMA integrity_check"), "ok");
        assert_int_equal(test_number(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    }
    test_write_file(path, data, (size_t)bytes);
    (void)unlink(wal);
    (void)unlink(test_path(folder, "x.db-shm"));
    assert_int_equal(outcome_of_use(), 0); /* as of the last checkpoint, here an empty one */
    free(data);
    free(log);
}

/* A disk that is full from the start, or fills up at any moment: committed is what was said to be. */
static void test_full(void **state)
{
    (void)state;
    int refused_n = 0;
    for (rlim_t round = 0; round <= 20; round++) {
        const rlim_t kb = 15 * round * round; /* 0 to 6000 */
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            char text[1024] = "";
            int flushed = 0;
            struct mla_store *store = NULL;
            struct rlimit limit = {kb * 1024, kb * 1024};
            const struct mla_store_build build = {"c0ffee", false, "clang 14", "-O2", "", "avx2"};
            const struct mla_store_run run = {"run", "a CPU", "scalar", 7};
            (void)alarm(DIES_AFTER);
            (void)signal(SIGXFSZ, SIG_IGN);
            (void)setrlimit(RLIMIT_FSIZE, &limit);
            int32_t status = mla_store_open(path, &store, text, sizeof text);
            status =
                status == MLA_STORE_OK ? mla_store_begin_run(store, &build, &run, NULL) : status;
            for (unsigned i = 0; status == MLA_STORE_OK && i < VERDICTS_N; i++) {
                put(store, i);
                status = mla_store_flush(store);
                flushed += status == MLA_STORE_OK ? 1 : 0;
            }
            const char *said = store == NULL ? text : mla_store_message(store);
            bool helps = strstr(said, "x.db") != NULL && strstr(said, "room") != NULL;
            if (status != MLA_STORE_OK && !helps) {
                (void)fprintf(stderr, "message: '%s'\n", said);
            }
            bool told = write(ends[1], &flushed, sizeof flushed) == (ssize_t)sizeof flushed;
            (void)mla_store_close(store);
            _exit(!told || (status != MLA_STORE_OK && !helps) ? 2 : status != MLA_STORE_OK);
        }
        int flushed = -1;
        int outcome = test_wait(child);
        assert_in_range(outcome, 0, 1);
        refused_n += outcome;
        assert_int_equal(read(ends[0], &flushed, sizeof flushed), sizeof flushed);
        (void)close(ends[0]);
        (void)close(ends[1]);
        OK(mla_store_close(test_open(path))); /* with room again */
        assert_string_equal(test_text(path, "PRAGMA integrity_check"), "ok");
        assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), flushed);
        (void)unlink(path);
    }
    assert_in_range(refused_n, 4, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flipped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
