/* SPDX-License-Identifier: Apache-2.0
 *
 * store_migrate_test.c - a database of an earlier version becomes one of today and loses nothing.
 *
 * store_test_v1.sql to _v4.sql are dumps of such files. Every cell of every table it has is written down
 * before the store opens it, as SQL literals so that types show too, and compared afterwards.
 */
#include "results/store_internal.h"
#include "results/store_migrate.h"
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
static int64_t old_version;

static int setup_from(const char *dump, int64_t version)
{
    long bytes = 0;
    old_version = version;
    folder = test_folder_make();
    (void)snprintf(path, sizeof path, "%s/old.db", folder);
    char *sql = test_read_file(dump, &bytes);
    assert_non_null(sql);
    test_exec(path, sql);
    free(sql);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_from(MLA_TEST_V1_SQL, 1);
}

static int setup_2(void **state)
{
    (void)state;
    return setup_from(MLA_TEST_V2_SQL, 2);
}

static int setup_3(void **state)
{
    (void)state;
    return setup_from(MLA_TEST_V3_SQL, 3);
}

static int setup_4(void **state)
{
    (void)state;
    return setup_from(MLA_TEST_V4_SQL, 4);
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static const char *const tables[] = {"build",  "run",   "testcase", "verdict",
                                     "metric", "tally", "finding",  "bisect_step"};
#define TABLES_N (sizeof tables / sizeof tables[0])

/* A query for all cells of a table, of the columns it has now. */
static char *cells_query(const char *table)
{
    char list[256], *query = malloc(8192);
    assert_non_null(query);
    (void)snprintf(list, sizeof list,
                   "SELECT group_concat('quote(\"' || name || '\")', '||'',''||')"
                   " FROM pragma_table_info('%s')",
                   table);
    const char *columns = test_text(path, list);
    (void)snprintf(query, 8192, "SELECT group_concat(%s, char(10)) FROM %s", columns, table);
    return query;
}

static char *cells(const char *query)
{
    char *text = strdup(test_text(path, query));
    assert_non_null(text);
    assert_true(text[0] != '(');                           /* an error, or nothing */
    assert_true(strlen(text) > 10 && strlen(text) < 4000); /* not cut */
    return text;
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    char *queries[TABLES_N], *before[TABLES_N];
    assert_int_equal(test_number(path, "PRAGMA user_version"), old_version);
    for (size_t i = 0; i < TABLES_N; i++) {
        queries[i] = cells_query(tables[i]);
        before[i] = cells(queries[i]);
    }
    OK(mla_store_close(test_open(path)));
    assert_int_equal(test_number(path, "PRAGMA user_version"), MLA_STORE_SCHEMA_VERSION);
    for (size_t i = 0; i < TABLES_N; i++) {
        char *after = cells(queries[i]);
        assert_string_equal(after, before[i]);
        free(queries[i]);
        free(before[i]);
        free(after);
    }
    assert_string_equal(test_text(path, "PRAGMA integrity_check"), "ok");
    assert_int_equal(test_number(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

/* What a new file says of itself an old one says too. */
static void test_the_same_schema(void **state)
{
    (void)state;
    char fresh[256];
    const char *objects = "SELECT group_concat(type || ' ' || name, ' ') FROM (SELECT type, name"
                          " FROM sqlite_schema ORDER BY type, name)";
    const char *columns = "SELECT group_concat(name || ' ' || type || ' ' || \"notnull\", ',')"
                          " FROM pragma_table_info('testcase')";
    (void)snprintf(fresh, sizeof fresh, "%s/new.db", folder);
    OK(mla_store_close(test_open(path)));
    OK(mla_store_close(test_open(fresh)));
    assert_string_equal(test_text(path, objects), test_text(fresh, objects));
    assert_string_equal(test_text(path, columns), test_text(fresh, columns));
    assert_int_equal(test_number(path, "PRAGMA application_id"), 0x6d6c6163);
}

static int64_t sign_coins_of(unsigned n)
{
    char query[128];
    (void)snprintf(query, sizeof query,
                   "SELECT coalesce(sign_coins, 99) FROM testcase WHERE id LIKE '%08x%%'", n);
    return test_number(path, query);
}

/* An old case's answer is unknown until it is stored again, then stays; all else stays at once. */
static void test_sign_coins(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase WHERE sign_coins IS NULL"),
                     2);
    struct mla_store_case c = test_case(5), unknown = test_case(6);
    c.sign_coins = 1;
    unknown.sign_coins = MLA_STORE_NULL;
    struct mla_store_verdict v = test_verdict(&c, "pass");
    OK(mla_store_verdict(store, &v));
    c = test_case(0);
    (void)snprintf(c.id, sizeof c.id, "%064x", 77U); /* of the old file */
    c.sign_coins = 1;
    c.heads = 1000;
    OK(mla_store_verdict(store, &v));
    v.testcase = &unknown;
    OK(mla_store_verdict(store, &v));
    OK(mla_store_flush(store));
    assert_int_equal(sign_coins_of(5), 1);
    assert_int_equal(sign_coins_of(6), 99);
    assert_int_equal(sign_coins_of(0), 1);
    assert_int_equal(test_number(path, "SELECT heads FROM testcase WHERE num = 2"), 2);
    assert_string_equal(test_text(path, "SELECT line FROM testcase WHERE num = 2"),
                        "ring v=1 heads=2");
    c.sign_coins = 0;
    v.testcase = &c;
    OK(mla_store_verdict(store, &v));
    OK(mla_store_close(store));
    assert_int_equal(sign_coins_of(0), 1); /* the first answer stays */
    assert_int_equal(test_number(path, "SELECT count(*) FROM testcase"), 4);
}

static int count_row(void *context, int columns_n, const char *const *names,
                     const char *const *values)
{
    (void)columns_n;
    (void)names;
    (void)values;
    ++*(int *)context;
    return 0;
}

/* Every view reads an old file. */
static void test_views(void **state)
{
    (void)state;
    struct mla_store *store = test_open(path);
    for (int view = 0; view < MLA_VIEW_N; view++) {
        const char *key = view == MLA_VIEW_CASE ? "a7e7e3d5" : NULL;
        int rows_n = 0;
        OK(mla_store_view(store, (enum mla_store_view)view, key, count_row, &rows_n));
        /* The latest run's verdict with figures; version 1 asked no published rule, only 3 timed, only
         * 4 hunted planted faults. */
        bool due = (view != MLA_VIEW_FAULTS || old_version > 3) &&
                   (view != MLA_VIEW_CRITERIA || old_version > 1) &&
                   (view != MLA_VIEW_SPEED || old_version > 2);
        assert_int_equal(rows_n > 0, due);
    }
    OK(mla_store_close(store));
    assert_string_equal(test_text(path,
                                  "SELECT group_concat(run || ' ' || kernel || ' ' || max_ulp,"
                                  " ',') FROM (SELECT * FROM accuracy WHERE run < 3"
                                  " ORDER BY run, kernel)"),
                        "1 fault:canary-nan 0.0,1 scalar 0.500000789097527,2 scalar inf");
}

/* A run of an old file may be followed by timings. */
static void test_bench(void **state)
{
    (void)state;
    int64_t run = 0;
    struct mla_store *store = test_open_run(path, &run);
    struct mla_store_case c = test_case(7);
    const struct mla_store_bench bench = {.op = "sparse",
                                          .shape = "tiny",
                                          .testcase = c.id,
                                          .kernel = "scalar",
                                          .threads = 2,
                                          .seconds = 0.5,
                                          .flops = 1e9,
                                          .peak = 4e9,
                                          .of_peak = 0.5,
                                          .isa = "portable",
                                          .reps = 5};
    OK(mla_store_bench(store, &bench));
    OK(mla_store_close(store));
    assert_int_equal(test_number(path, "SELECT run FROM speed WHERE gflops = 2.0"), run);
}

/* And by a kill matrix. */
static void test_trial(void **state)
{
    (void)state;
    int64_t run = 0;
    struct mla_store *store = test_open_run(path, &run);
    struct mla_store_case c = test_case(8);
    const struct mla_store_catch caught = {false, "tier1", 3};
    const struct mla_store_trial trial = {.role = "fault",
                                          .fault = "rope-ignored",
                                          .class = "M25_DIM_STRIDE_MIX",
                                          .op = "ring",
                                          .search = "guided",
                                          .outcome = "killed",
                                          .executions = 2,
                                          .testcase = &c,
                                          .catches = &caught,
                                          .catches_n = 1};
    OK(mla_store_trial(store, &trial));
    OK(mla_store_close(store));
    assert_int_equal(
        test_number(path, "SELECT max(run) FROM kill_matrix WHERE detectors = 'tier1'"), run);
}

/* Of the tables that came later than version 1. */
static void test_timings_are_not_lost(void **state)
{
    (void)state;
    char *query = cells_query("bench");
    char *before = cells(query);
    OK(mla_store_close(test_open(path)));
    char *after = cells(query);
    assert_string_equal(after, before);
    free(query);
    free(before);
    free(after);
}

static void test_trials_are_not_lost(void **state)
{
    (void)state;
    const char *both[] = {"trial", "catch"};
    for (int i = 0; i < 2; i++) {
        char *query = cells_query(both[i]);
        char *before = cells(query);
        OK(mla_store_close(test_open(path)));
        char *after = cells(query);
        assert_string_equal(after, before);
        free(query);
        free(before);
        free(after);
    }
}

/*
 * The names that runs of old files get never change, or the copies that others migrated long ago would
 * count twice. Computed once by another program (hashlib, struct) from the definition in store_digest.h.
 */
static void test_names_of_old_runs(void **state)
{
    (void)state;
    static const char *const names[] = {
        "e1d828eda7f25cdce98b677d19ecd9a0", "bc10abf493f4df9f6931a99926f25704",
        "cf378c65adb70ad890e72824a707c2dc", "b25767fdb8e01a448176269d19f3b4f3",
        "c7f7161e5d46d14614cffabda411a46e"};
    OK(mla_store_close(test_open(path)));
    int64_t runs_n = test_number(path, "SELECT count(*) FROM run");
    for (int64_t id = 1; id <= runs_n; id++) {
        char query[64];
        (void)snprintf(query, sizeof query, "SELECT uid FROM run WHERE id = %lld", (long long)id);
        assert_string_equal(test_text(path, query), names[id - 1]);
    }
    assert_true(runs_n >= 2);
    assert_int_equal(test_number(path, "SELECT max(writes) FROM run"), 0);
}

/* A step that fails leaves the file of version 1 as it was. */
static void test_failed_step(void **state)
{
    (void)state;
    const struct mla_migrate_step steps[] = {
        {(const char *)mla_schema_sql},
        {"ALTER TABLE testcase ADD COLUMN sign_coins INTEGER; SELECT no_such_column FROM run"}};
    struct mla_store store;
    memset(&store, 0, sizeof store);
    store.path = path;
    char *before = cells("SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema"
                         " WHERE name IN ('run', 'testcase') ORDER BY name)");
    OK(sqlite3_open(path, &store.db));
    assert_int_equal(mla_migrate_steps(&store, steps, 2), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(store.message, "from schema version 1 to 2"));
    mla_sql_finalize(&store);
    OK(sqlite3_close(store.db));
    assert_int_equal(test_number(path, "PRAGMA user_version"), 1);
    char *after = cells("SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema"
                        " WHERE name IN ('run', 'testcase') ORDER BY name)");
    assert_string_equal(after, before);
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sign_coins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bench, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_lost, setup_2, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_schema, setup_2, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup_2, teardown),
        cmocka_unit_test_setup_teardown(test_bench, setup_2, teardown),
        cmocka_unit_test_setup_teardown(test_trial, setup_2, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_lost, setup_3, teardown),
        cmocka_unit_test_setup_teardown(test_timings_are_not_lost, setup_3, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_schema, setup_3, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup_3, teardown),
        cmocka_unit_test_setup_teardown(test_bench, setup_3, teardown),
        cmocka_unit_test_setup_teardown(test_trial, setup_3, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_lost, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_timings_are_not_lost, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_trials_are_not_lost, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_the_same_schema, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_views, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_bench, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_trial, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_names_of_old_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_of_old_runs, setup_2, teardown),
        cmocka_unit_test_setup_teardown(test_names_of_old_runs, setup_3, teardown),
        cmocka_unit_test_setup_teardown(test_names_of_old_runs, setup_4, teardown),
        cmocka_unit_test_setup_teardown(test_failed_step, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
