/* SPDX-License-Identifier: Apache-2.0
 *
 * store_trial_test.c - the kill matrix: what goes in comes out, medians over trials, and what the schema
 * refuses.
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

static struct mla_store_trial killed(const char *fault, int64_t trial, int64_t executions,
                                     double seconds)
{
    return (struct mla_store_trial){.role = "fault",
                                    .fault = fault,
                                    .class = "M08_CAUSAL_OFFSET",
                                    .op = "ring",
                                    .search = "guided",
                                    .trial = trial,
                                    .seed = 5 + trial,
                                    .outcome = "killed",
                                    .executions = executions,
                                    .applied = 1,
                                    .cpu_seconds = seconds,
                                    .verdict = "fail-certain",
                                    .relation = "",
                                    .reason = "outside",
                                    .testcase = &testcase,
                                    .surveyed = 17};
}

static struct mla_store_trial alive(const char *fault, int64_t trial, const char *outcome)
{
    struct mla_store_trial row = killed(fault, trial, 1000, 8.0);
    row.outcome = outcome;
    row.verdict = row.relation = row.reason = NULL;
    row.testcase = NULL;
    row.surveyed = 0;
    return row;
}

static char table[4096];

static int join(void *context, int columns_n, const char *const *names, const char *const *values)
{
    (void)context;
    (void)names;
    for (int i = 0; i < columns_n; i++) {
        size_t n = strlen(table);
        (void)snprintf(table + n, sizeof table - n, "%s%s", values[i] == NULL ? "~" : values[i],
                       i + 1 < columns_n ? "|" : "\n");
    }
    return 0;
}

static void expect(const char *key, const char *rows)
{
    table[0] = '\0';
    OK(mla_store_view(store, MLA_VIEW_FAULTS, key, join, NULL));
    assert_string_equal(table, rows);
}

static void test_rows(void **state)
{
    (void)state;
    const struct mla_store_catch first[] = {
        {false, "tier1", 17}, {false, "relation", 2}, {true, "nmse_5e4", 9}};
    const struct mla_store_catch second[] = {{false, "tier1", 1}, {true, "flashmla", 1}};
    struct mla_store_trial a = killed("a", 0, 4, 0.5), b = killed("a", 1, 6, 0.25);
    char *json = NULL;
    expect(NULL, "");
    a.catches = first;
    a.catches_n = 3;
    b.catches = second;
    b.catches_n = 2;
    OK(mla_store_trial(store, &a));
    OK(mla_store_trial(store, &b));
    const char *row = "a|fault|M08_CAUSAL_OFFSET|ring|guided|killed|2|2|4|0.25|000000010000"
                      "|relation tier1|flashmla nmse_5e4\n";
    expect(NULL, row);
    expect("1", row);
    assert_int_equal(mla_store_view(store, MLA_VIEW_FAULTS, "2", join, NULL),
                     MLA_STORE_ERR_NOT_FOUND);
    OK(mla_store_view_json(store, MLA_VIEW_FAULTS, NULL, &json));
    assert_non_null(strstr(json, "\"executions\":4"));
    free(json);
    char *line = NULL;
    OK(mla_store_find_line(store, "00000001", &line));
    assert_string_equal(line, testcase.line);
    free(line);
    assert_int_equal(test_number(path, "SELECT sum(cases) FROM catch WHERE kind = 'detector'"), 20);
    assert_int_equal(test_number(path, "SELECT seed FROM trial WHERE trial = 1"), 6);
}

/* The median of 3 is the second, of 4 the lower middle one; a fault that is not killed has none. */
static void test_medians(void **state)
{
    (void)state;
    struct mla_store_trial rows[] = {
        killed("odd", 0, 30, 1.0),        killed("odd", 1, 10, 3.0),
        killed("odd", 2, 20, 2.0),        killed("half", 0, 7, 0.5),
        alive("half", 1, "survived"),     alive("rare", 0, "survived"),
        alive("rare", 1, "not-applied"),  killed("rare", 2, 1, 0.125),
        alive("never", 0, "not-applied"), killed("right", 0, 5, 0.5),
        alive("right", 1, "survived"),    alive("right", 2, "survived"),
        alive("calm", 0, "survived")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].fault[0] == 'c' || strcmp(rows[i].fault, "right") == 0) {
            rows[i].role = "control";
            rows[i].class = "";
        }
        OK(mla_store_trial(store, &rows[i]));
    }
    expect(NULL, "odd|fault|M08_CAUSAL_OFFSET|ring|guided|killed|3|3|20|2|000000010000|~|~\n"
                 "half|fault|M08_CAUSAL_OFFSET|ring|guided|killed|2|1|7|0.5|000000010000|~|~\n"
                 "rare|fault|M08_CAUSAL_OFFSET|ring|guided|survived|3|1|~|~|000000010000|~|~\n"
                 "never|fault|M08_CAUSAL_OFFSET|ring|guided|not-applied|1|0|~|~|~|~|~\n"
                 "right|control||ring|guided|accused|3|1|~|~|000000010000|~|~\n"
                 "calm|control||ring|guided|survived|1|0|~|~|~|~|~\n");
}

/* Each of these is refused by itself, and leaves no row, not even of its case. */
static void test_refused(void **state)
{
    (void)state;
    const struct mla_store_catch nothing = {false, "tier1", 0};
    struct mla_store_trial bad[9];
    for (size_t i = 0; i < 9; i++) {
        bad[i] = killed("a", 0, 1, 0.5);
    }
    bad[0].op = "reject";
    bad[1].fault = "";
    bad[2].role = "victim";
    bad[3].outcome = "dead";
    bad[4].executions = -1;
    bad[5].testcase = NULL; /* killed by no case */
    bad[6].outcome = "survived";
    bad[7].catches = &nothing;
    bad[7].catches_n = 1;
    bad[8].search = "engine";
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(mla_store_trial(store, &bad[i]), MLA_STORE_ERR_WRITE);
        assert_non_null(strstr(mla_store_message(store), "cannot store"));
    }
    assert_int_equal(test_number(path, "SELECT count(*) FROM trial"), 0);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 0);
    struct mla_store_trial once = killed("a", 0, 1, 0.5);
    OK(mla_store_trial(store, &once));
    assert_int_equal(mla_store_trial(store, &once), MLA_STORE_ERR_WRITE); /* numbered twice */
    OK(mla_store_end_run(store));
    assert_int_equal(mla_store_trial(store, &once), MLA_STORE_ERR_WRITE);
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

/* A hunt of planted faults is not the latest run for those who ask how a kernel was judged; without a
 * number the matrix is that of the latest run that has one. */
static void test_latest_run(void **state)
{
    (void)state;
    const char *commands[] = {"run --random 1", "faults", "faults --trials 2", "run faults"};
    const struct mla_store_build build = {"c0ffee", false, "clang", "", "", ""};
    struct mla_store_trial row = killed("a", 0, 1, 0.5);
    char latest[64] = "";
    OK(mla_store_trial(store, &row));
    for (int i = 0; i < 4; i++) {
        const struct mla_store_run run = {commands[i], "a CPU", "k", MLA_STORE_NULL};
        OK(mla_store_begin_run(store, &build, &run, NULL));
        row.fault = i == 1 ? "b" : "c";
        if (i == 1 || i == 2) {
            OK(mla_store_trial(store, &row));
        }
        OK(mla_store_end_run(store));
        OK(mla_store_view(store, MLA_VIEW_RUN, NULL, take_command, latest));
        assert_string_equal(latest, commands[i == 3 ? 3 : 0]);
    }
    expect(NULL, "c|fault|M08_CAUSAL_OFFSET|ring|guided|killed|1|1|1|0.5|000000010000|~|~\n");
    expect("3", "b|fault|M08_CAUSAL_OFFSET|ring|guided|killed|1|1|1|0.5|000000010000|~|~\n");
    expect("2", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_medians, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_latest_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
