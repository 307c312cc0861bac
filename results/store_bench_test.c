/* SPDX-License-Identifier: Apache-2.0
 *
 * store_bench_test.c - timings: what goes in comes out, and what the schema refuses.
 */
#include "results/store_test_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static char *folder;
static char path[256];
static struct mla_store *store;
static struct mla_store_case testcase;

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    store = test_open_run(path, NULL);
    testcase = test_case(1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)mla_store_close(store);
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static struct mla_store_bench timing(const char *kernel, int64_t threads)
{
    return (struct mla_store_bench){.op = "ring",
                                    .shape = "long",
                                    .testcase = testcase.id,
                                    .kernel = kernel,
                                    .threads = threads,
                                    .seconds = 0.25,
                                    .spread = 0.125,
                                    .flops = 8e9,
                                    .bytes = 1e9,
                                    .peak = 64e9,
                                    .of_peak = 0.5,
                                    .isa = "avx512bf16",
                                    .reps = 7};
}

static char table[2048];

static int join(void *context, int columns_n, const char *const *names, const char *const *values)
{
    (void)context;
    for (int i = 0; i < columns_n; i++) {
        bool varies = strcmp(names[i], "started") == 0;
        size_t n = strlen(table);
        (void)snprintf(table + n, sizeof table - n, "%s%s",
                       varies              ? "*"
                       : values[i] == NULL ? "~"
                                           : values[i],
                       i + 1 < columns_n ? "|" : "\n");
    }
    return 0;
}

static void expect(const char *key, const char *rows)
{
    table[0] = '\0';
    OK(mla_store_view(store, MLA_VIEW_SPEED, key, join, NULL));
    assert_string_equal(table, rows);
}

static void test_rows(void **state)
{
    (void)state;
    struct mla_store_bench row = timing("a", 1), lesser = timing("b", 2);
    char commit[80], expected[512], *json = NULL;
    lesser.own_isa = "avx2";
    lesser.of_own_peak = 0.75;
    lesser.is_peer = true;
    lesser.noisy = true;
    expect(NULL, "");
    OK(mla_store_bench(store, &row));
    OK(mla_store_bench(store, &lesser));
    (void)snprintf(commit, sizeof commit, "%s",
                   test_text(path, "SELECT git_commit || iif(dirty, '-dirty', '') FROM build"));
    (void)snprintf(expected, sizeof expected,
                   "1|*|%s|%s|ring|long|a|1|0.25|0.125|32|4|0.5|~|0|7\n"
                   "1|*|%s|%s|ring|long|b|2|0.25|0.125|32|4|0.5|0.75|1|7\n",
                   commit, test_text(path, "SELECT host_cpu FROM run"), commit,
                   test_text(path, "SELECT host_cpu FROM run"));
    expect(NULL, expected);
    expect("1", expected);
    assert_int_equal(mla_store_view(store, MLA_VIEW_SPEED, "2", join, NULL),
                     MLA_STORE_ERR_NOT_FOUND);
    OK(mla_store_view_json(store, MLA_VIEW_SPEED, NULL, &json));
    assert_non_null(strstr(json, "\"of_own_peak\":0.75"));
    free(json);
    assert_int_equal(test_number(path, "SELECT count(*) FROM speed WHERE peak_gflops = 64.0 AND"
                                       " is_peer = (own_isa IS 'avx2')"),
                     2);
}

/* Each of these is refused by itself, and leaves no row. */
static void test_refused(void **state)
{
    (void)state;
    struct mla_store_bench bad[8];
    for (size_t i = 0; i < 8; i++) {
        bad[i] = timing("a", 1);
    }
    bad[0].op = "reject";
    bad[1].shape = "";
    bad[2].testcase = "abc";
    bad[3].threads = 0;
    bad[4].seconds = 0;
    bad[5].peak = 0;
    bad[6].reps = 0;
    bad[7].kernel = NULL;
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(mla_store_bench(store, &bad[i]), MLA_STORE_ERR_WRITE);
        assert_non_null(strstr(mla_store_message(store), "store a timing"));
    }
    assert_int_equal(test_number(path, "SELECT count(*) FROM bench"), 0);
    OK(mla_store_end_run(store));
    bad[0] = timing("a", 1);
    assert_int_equal(mla_store_bench(store, &bad[0]), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(mla_store_message(store), "no run"));
}

static int take_command(void *context, int columns_n, const char *const *names,
                        const char *const *values)
{
    (void)columns_n;
    (void)names;
    if (strcmp(values[0], "command") == 0) {
        (void)snprintf(context, 64, "%s", values[1]);
    }
    return 0;
}

/* The latest run, for those who ask how it was judged, is not one that timed. */
static void test_latest_run(void **state)
{
    (void)state;
    const char *commands[] = {"run --random 1", "bench", "bench --op ring"};
    const struct mla_store_build build = {"c0ffee", false, "clang", "", "", ""};
    for (int i = 0; i < 3; i++) {
        const struct mla_store_run run = {commands[i], "a CPU", "k", MLA_STORE_NULL};
        OK(mla_store_begin_run(store, &build, &run, NULL));
        OK(mla_store_end_run(store));
    }
    char latest[64] = "";
    OK(mla_store_view(store, MLA_VIEW_RUN, NULL, take_command, latest));
    assert_string_equal(latest, "run --random 1");
    OK(mla_store_view(store, MLA_VIEW_RUN, "4", take_command, latest));
    assert_string_equal(latest, "bench --op ring");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_latest_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
