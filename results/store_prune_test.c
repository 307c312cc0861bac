/* SPDX-License-Identifier: Apache-2.0
 *
 * store_prune_test.c - many hunts leave few rows: the worst and the newest, and every count.
 */
#include "results/store_test_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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

static struct mla_store *begin(const char *command)
{
    const struct mla_store_build build = {"c0ffee", false, "clang 14", "-O2", "", "avx2"};
    const struct mla_store_run run = {command, "a CPU", "scalar", 7};
    struct mla_store *store = test_open(path);
    OK(mla_store_begin_run(store, &build, &run, NULL));
    return store;
}

/* One case in two families, its ratio and its number given. */
static void put(struct mla_store *store, unsigned n, const char *verdict, double ratio)
{
    const struct mla_store_metric metric = {"max_ulp", 1};
    struct mla_store_case testcase = test_case(n);
    struct mla_store_verdict v = test_verdict(&testcase, verdict);
    testcase.family = n % 2 == 0 ? "profile" : "full";
    v.max_ratio = ratio;
    v.metrics = &metric;
    v.metrics_n = 1;
    OK(mla_store_verdict(store, &v));
}

static int64_t prune(struct mla_store *store, int64_t worst_n, int64_t newest_n)
{
    int64_t removed = -1;
    OK(mla_store_prune(store, worst_n, newest_n, &removed));
    return removed;
}

static const char summary[] =
    "SELECT group_concat(row) FROM (SELECT op || kernel || family || sum(cases) || ' ' ||"
    " sum(passed) || ' ' || sum(failed) || ' ' || max(worst_err_over_bound) AS row FROM summary"
    " GROUP BY op, kernel, family ORDER BY 1)";

/* Twenty hunts of 40 executions in two cells: never more than 2 * (3 + 2) rows are left. */
static void test_many_hunts(void **state)
{
    (void)state;
    for (unsigned hunt = 0; hunt < 20; hunt++) {
        char before[512];
        struct mla_store *store = begin("fuzz --time 5");
        for (unsigned i = 0; i < 40; i++) {
            unsigned n = 40 * hunt + i; /* the worst of all is in the middle of the seventh hunt */
            put(store, n, "pass", n / 2 == 130 ? 0.9 : 0.001 * (n * 7 % 100));
        }
        OK(mla_store_flush(store));
        (void)snprintf(before, sizeof before, "%s", test_text(path, summary));
        assert_true(prune(store, 3, 2) >= 30);
        assert_string_equal(test_text(path, summary), before);
        assert_in_range(test_number(path, "SELECT count(*) FROM verdict"), 6, 10);
        assert_int_equal(prune(store, 3, 2), 0);
        OK(mla_store_end_run(store));
        OK(mla_store_close(store));
    }
    assert_int_equal(test_number(path, "SELECT sum(cases) FROM summary"), 800);
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict WHERE max_ratio = 0.9"), 2);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase WHERE heads >= 796"), 4);
    assert_int_equal(test_number(path, "SELECT count(*) FROM metric") -
                         test_number(path, "SELECT count(*) FROM verdict"),
                     0);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase WHERE num NOT IN"
                                       " (SELECT testcase FROM verdict)"),
                     0);
    assert_int_equal(test_number(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

/* Faults beyond the limits lose their verdict, never the finding nor its case. */
static void test_findings_stay(void **state)
{
    (void)state;
    struct mla_store *store = begin("fuzz");
    for (unsigned n = 0; n < 30; n++)
        put(store, n, "fail-certain", 1 + n);
    put(store, 30, "pass", 0.5);
    assert_int_equal(prune(store, 1, 1), 28);
    assert_int_equal(test_number(path, "SELECT count(*) FROM finding"), 30);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 31);
    assert_int_equal(test_number(path, "SELECT sum(failed) FROM summary"), 30);
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict WHERE verdict = 'pass'"), 1);
    OK(mla_store_close(store));
}

/* Whatever refers to a case keeps it. */
static void test_references_stay(void **state)
{
    (void)state;
    struct mla_store *store = begin("fuzz");
    for (unsigned n = 0; n < 10; n++)
        put(store, 2 * n, "pass", 0.5);
    OK(mla_store_close(store));
    test_exec(path, "CREATE TABLE later (\"a case\" INTEGER REFERENCES testcase (num),"
                    " by_id TEXT REFERENCES testcase (id));"
                    "INSERT INTO later SELECT num, NULL FROM testcase WHERE heads = 4;"
                    "INSERT INTO later SELECT NULL, id FROM testcase WHERE heads = 6;");
    store = test_open(path);
    prune(store, 1, 1);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase WHERE heads IN (4, 6)"), 2);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 3);
    OK(mla_store_close(store));
}

/* Only hunts are pruned. */
static void test_other_commands(void **state)
{
    static const char *const commands[] = {"run --random 10", "selfcheck", "fuzzy"};
    (void)state;
    for (unsigned c = 0; c < 3; c++) {
        struct mla_store *store = begin(commands[c]);
        for (unsigned n = 0; n < 20; n++)
            put(store, 20 * c + n, "pass", 0.1);
        assert_int_equal(prune(store, 1, 1), 0);
        OK(mla_store_close(store));
    }
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), 60);
}

/* The rows of one execution (its relations) stay or go together, and count once. */
static void test_executions_are_whole(void **state)
{
    (void)state;
    struct mla_store *store = begin("fuzz");
    for (unsigned n = 0; n < 8; n++) {
        struct mla_store_case testcase = test_case(2 * n);
        struct mla_store_verdict v = test_verdict(&testcase, "pass");
        OK(mla_store_verdict(store, &v));
        v.verdict = "fail-certain";
        v.relation = "threads";
        v.max_ratio = -1;
        OK(mla_store_verdict(store, &v));
    }
    assert_int_equal(prune(store, 1, 1), 14); /* the newest is also the worst of equals */
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), 2);
    assert_int_equal(test_number(path, "SELECT sum(failed) FROM summary"), 8);
    assert_int_equal(test_number(path, "SELECT sum(passed) FROM summary"), 0);
    OK(mla_store_close(store));
}

/* Each class of shape, and each verdict, has places of its own. */
static void test_cells(void **state)
{
    (void)state;
    struct mla_store *store = begin("fuzz");
    for (unsigned n = 0; n < 24; n++) {
        struct mla_store_case testcase = test_case(2 * n);
        struct mla_store_verdict v = test_verdict(&testcase, n % 12 < 6 ? "pass" : "unjudged");
        testcase.ring_size = n % 2 == 0 ? 2 : 4;
        testcase.q_rows = 32;
        testcase.kv_rows = n % 3 == 0 ? 32 : 64;
        testcase.is_balanced = 0;
        testcase.kv_actual_isl = n % 3 == 2 ? 32 : MLA_STORE_NULL;
        OK(mla_store_verdict(store, &v));
    }
    assert_int_equal(prune(store, 1, 1), 12);
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), 12);
    OK(mla_store_close(store));
}

static void test_bad_limits(void **state)
{
    (void)state;
    struct mla_store *store = begin("fuzz");
    put(store, 1, "pass", 0.5);
    assert_int_equal(mla_store_prune(store, 0, 1, NULL), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(mla_store_message(store), "worst_n is 0"));
    assert_int_equal(mla_store_prune(store, 1, -3, NULL), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(mla_store_message(store), "newest_n is -3"));
    OK(mla_store_close(store));
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_hunts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_findings_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_references_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_commands, setup, teardown),
        cmocka_unit_test_setup_teardown(test_executions_are_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cells, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_limits, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
