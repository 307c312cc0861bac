/* SPDX-License-Identifier: Apache-2.0
 *
 * store_side_test.c - which runs make a side, in which order its rows come, and what several runs say together.
 *
 * Rows are written as texts, "case kernel build: verdict ratio hash runs", and compared whole.
 */
#include "results/store_side.h"
#include "results/store_test_util.h"

#include <math.h>
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

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    store = test_open(path);
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

static int64_t begin(const char *command, const char *commit, bool dirty, const char *sanitizer)
{
    int64_t id = 0;
    const struct mla_store_build build = {commit, dirty, "clang 14", "-O2", sanitizer, "avx2"};
    const struct mla_store_run run = {command, "a CPU", "k", 7};
    OK(mla_store_begin_run(store, &build, &run, &id));
    return id;
}

/* hash 0: none is stored. ulp < 0: none either. */
static void put(unsigned n, const char *kernel, const char *verdict, double ratio, double hash,
                double ulp)
{
    struct mla_store_case c = test_case(n);
    struct mla_store_verdict v = test_verdict(&c, verdict);
    struct mla_store_metric metrics[2];
    size_t metrics_n = 0;
    if (hash != 0) {
        metrics[metrics_n++] = (struct mla_store_metric){"output_hash", hash};
    }
    if (!(ulp < 0)) {
        metrics[metrics_n++] = (struct mla_store_metric){"max_ulp", ulp};
    }
    v.kernel = kernel;
    v.max_ratio = ratio;
    v.metrics = metrics;
    v.metrics_n = metrics_n;
    OK(mla_store_verdict(store, &v));
}

static struct mla_store_side *open_side(const char *spec)
{
    struct mla_store_side *side = NULL;
    OK(mla_store_side_open(store, spec, &side));
    return side;
}

static void expect_rows(const char *spec, const char *due)
{
    struct mla_store_side *side = open_side(spec);
    struct mla_side_row row;
    char text[2048] = "";
    int32_t status;
    while ((status = mla_store_side_next(side, &row)) == MLA_STORE_OK) {
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%.8s %s%s%s: %s %g %.0f %d%s\n", row.id,
                       row.kernel, row.sanitizer[0] == '\0' ? "" : " ", row.sanitizer, row.verdict,
                       row.max_ratio, row.output_hash, (int)row.runs_n,
                       row.is_steady ? "" : " unsteady");
        n = strlen(text);
        if (row.failed_n > 0 && row.failed_n < row.judged_n) {
            (void)snprintf(text + n - 1, sizeof text - n, " failed %d of %d\n", (int)row.failed_n,
                           (int)row.judged_n);
        }
    }
    assert_int_equal(status, MLA_STORE_ERR_NOT_FOUND);
    assert_int_equal(mla_store_side_next(side, &row), MLA_STORE_ERR_NOT_FOUND);
    mla_store_side_close(side);
    assert_string_equal(text, due);
}

static void one_run(void **state)
{
    (void)state;
    (void)begin("run", "aaaa1", false, "");
    put(2, "k", "pass", 0.5, 4711, -1);
    put(1, "k2", "fail-certain", INFINITY, 0, -1);
    put(1, "k", "unsupported", -1, 0, -1);
    (void)begin("run", "aaaa1", false, "");
    put(3, "k", "pass", 0.25, 281474976710655.0, -1);
    expect_rows("1", "00000001 k: unsupported -1 0 1\n"
                     "00000001 k2: fail-certain inf 0 1\n"
                     "00000002 k: pass 0.5 4711 1\n");
    expect_rows("2", "00000003 k: pass 0.25 281474976710655 1\n");
}

/* The latest clean commit's runs count together, the gravest verdict and the worst ratio; older ones not. */
static void several_runs(void **state)
{
    (void)state;
    (void)begin("run", "aaaa1", false, "");
    put(1, "k", "crash", INFINITY, 0, -1);
    put(2, "k", "pass", 0.5, 1, -1);
    (void)begin("run", "bbbb2", false, "");
    put(1, "k", "pass", 0.75, 5, -1);
    put(3, "k", "fail-improbable", NAN, 0, -1);
    put(4, "k", "pass", 0.5, 0, -1);
    (void)begin("run", "bbbb2", false, "");
    put(1, "k", "pass", 0.5, 5, -1);
    put(3, "k", "pass", 0.5, 6, -1);
    put(4, "k", "fail-certain", NAN, 0, -1);
    expect_rows(NULL, "00000001 k: pass 0.75 5 2\n"
                      "00000002 k: pass 0.5 1 1\n"
                      "00000003 k: fail-improbable nan 6 2 unsteady failed 1 of 2\n"
                      "00000004 k: fail-certain nan 0 2 unsteady failed 1 of 2\n");
    expect_rows("bbbb", "00000001 k: pass 0.75 5 2\n"
                        "00000003 k: fail-improbable nan 6 2 unsteady failed 1 of 2\n"
                        "00000004 k: fail-certain nan 0 2 unsteady failed 1 of 2\n");
    expect_rows("aaaa1", "00000001 k: crash inf 0 1\n"
                         "00000002 k: pass 0.5 1 1\n");
}

/* Changed trees are not one commit; nor is one the clean commit. */
static void changed_trees(void **state)
{
    (void)state;
    (void)begin("run", "aaaa1", true, "");
    put(1, "k", "fail-certain", 3, 1, -1);
    (void)begin("run", "aaaa1", true, "");
    put(1, "k", "pass", 0.5, 2, -1);
    expect_rows("aaaa-dirty", "00000001 k: pass 0.5 2 1\n");
    struct mla_store_side *side = NULL;
    assert_int_equal(mla_store_side_open(store, "aaaa", &side), MLA_STORE_ERR_NOT_FOUND);
    assert_non_null(strstr(mla_store_message(store), "only of a changed tree"));
    assert_null(side);
    (void)begin("run", "aaaa1", false, "");
    put(1, "k", "pass", 0.25, 3, -1);
    expect_rows("aaaa1", "00000001 k: pass 0.25 3 1\n");
    expect_rows(NULL, "00000001 k: pass 0.25 3 1\n");
}

static void take_median(void *context, const struct mla_side_median *m)
{
    char *text = context;
    size_t n = strlen(text);
    (void)snprintf(text + n, 1024 - n, "%s %s %s run %d: %g of %d\n", m->op, m->kernel, m->name,
                   (int)m->run, m->value, (int)m->cases_n);
}

/* A database with one run of a changed tree, begun in the same second as all others. */
static void machine(const char *file, const char *verdict)
{
    OK(mla_store_close(store));
    store = test_open(test_path(folder, file));
    (void)begin("run", "aaaa1", true, "");
    put(1, "k", verdict, 0.5, 0, 1);
    OK(mla_store_close(store));
    test_exec(test_path(folder, file), "UPDATE run SET started = '2026-01-01T00:00:00Z'");
    store = test_open(path);
}

/* Which of two runs of one second is the latest does not depend on the order of merging. */
static void ties(void **state)
{
    (void)state;
    static const char *const files[] = {"a.db", "b.db"};
    machine("a.db", "pass");
    machine("b.db", "crash");
    for (int order = 0; order < 2; order++) {
        struct mla_store_merged merged;
        OK(mla_store_close(store));
        (void)snprintf(path, sizeof path, "%s/all%d.db", folder, order);
        store = test_open(path);
        for (int i = 0; i < 2; i++) {
            const char *from = test_path(folder, files[i ^ order]);
            OK(mla_store_merge(store, from, NULL, &merged));
        }
        expect_rows(NULL, "00000001 k: crash 0.5 0 1\n"); /* b.db's began later */
        char text[1024] = "";
        struct mla_store_side *side = open_side(NULL);
        OK(mla_store_side_medians(side, take_median, text));
        mla_store_side_close(side);
        assert_string_equal(text, order == 0 ? "ring k max_ulp run 2: 1 of 1\n"
                                             : "ring k max_ulp run 1: 1 of 1\n");
    }
}

/* Others go on writing while a side is read: it stays as it was when it was opened. */
static void snapshot(void **state)
{
    (void)state;
    struct mla_side_row row;
    char text[1024] = "";
    int64_t run = begin("run", "aaaa1", false, "");
    put(1, "k", "pass", 0.5, 0, 1);
    OK(mla_store_flush(store));
    struct mla_store *reader = test_open(path);
    struct mla_store_side *side = NULL;
    OK(mla_store_side_open(reader, NULL, &side));
    put(1, "k", "crash", 0.5, 0, 3); /* the same case in the same run, and a case after it */
    put(2, "k", "pass", 0.5, 0, 2);
    (void)begin("run", "aaaa1", false, "");
    put(1, "k", "fail-certain", 2, 0, 4);
    OK(mla_store_flush(store));
    OK(mla_store_side_next(side, &row));
    assert_string_equal(row.verdict, "pass");
    assert_int_equal(row.run, run);
    assert_int_equal(mla_store_side_next(side, &row), MLA_STORE_ERR_NOT_FOUND);
    assert_int_equal(mla_store_side_facts(side).runs_n, 1);
    OK(mla_store_side_medians(side, take_median, text));
    assert_string_equal(text, "ring k max_ulp run 1: 1 of 1\n");
    mla_store_side_close(side);
    OK(mla_store_side_open(reader, NULL, &side)); /* of now */
    OK(mla_store_side_next(side, &row));
    assert_string_equal(row.verdict, "fail-certain");
    mla_store_side_close(side);
    OK(mla_store_close(reader));
}

/* Two hashes in runs that count, two verdicts in one run, sanitizers apart. */
static void unsteady_bits_and_builds(void **state)
{
    (void)state;
    (void)begin("run", "aaaa1", false, "");
    put(1, "k", "pass", 0.5, 1, -1);
    put(2, "k", "pass", 0.5, 9, -1);
    put(2, "k", "fail-certain", -1, 0, -1); /* judged twice */
    (void)begin("run", "aaaa1", false, "");
    put(1, "k", "pass", 0.5, 2, -1);
    (void)begin("run", "aaaa1", false, "address");
    put(1, "k", "fail-certain", 2, 7, -1);
    expect_rows("aaaa", "00000001 k: pass 0.5 -1 2\n"
                        "00000001 k address: fail-certain 2 7 1\n"
                        "00000002 k: fail-certain 0.5 9 1 unsteady failed 1 of 2\n");
}

static void wrong_names(void **state)
{
    (void)state;
    (void)begin("run", "abcd1", false, "");
    (void)begin("run", "abcd2", false, "");
    static const struct {
        const char *spec, *message;
        int32_t status;
    } specs[] = {
        {"3", "neither a run nor", MLA_STORE_ERR_NOT_FOUND},
        {"", "neither a run nor", MLA_STORE_ERR_NOT_FOUND},
        {"abc", ">= 4 hex digits", MLA_STORE_ERR_NOT_FOUND},
        {"abcd", "fits several", MLA_STORE_ERR_AMBIGUOUS},
        {"abcd1-dirty", "only clean ones", MLA_STORE_ERR_NOT_FOUND},
        {"ffff", "no run of commit 'ffff'", MLA_STORE_ERR_NOT_FOUND},
        {"ABCD1", "neither", MLA_STORE_ERR_NOT_FOUND},
        {"9999999999999999999999", "no run of commit", MLA_STORE_ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct mla_store_side *side = NULL;
        int32_t status = mla_store_side_open(store, specs[i].spec, &side);
        if (status != specs[i].status ||
            strstr(mla_store_message(store), specs[i].message) == NULL) {
            fail_msg("'%s': %d, %s", specs[i].spec, (int)status, mla_store_message(store));
        }
        assert_null(side);
    }
    expect_rows("abcd1", "");
}

static void facts(void **state)
{
    (void)state;
    (void)begin("run", "aaaa1", false, "");
    (void)begin("fuzz", "aaaa1", true, "");
    OK(mla_store_tally(store, "ring", "k", "exact", "pass", 12, 0.5));
    OK(mla_store_end_run(store));
    (void)begin("run", "bbbb1", false, "");
    struct mla_store_side *side = open_side(NULL);
    struct mla_side_facts f = mla_store_side_facts(side);
    assert_int_equal(f.runs_n, 3);
    assert_int_equal(f.first_run, 1);
    assert_int_equal(f.last_run, 3);
    assert_int_equal(f.commits_n, 3);
    assert_int_equal(f.tallied, 12);
    assert_int_equal(f.cut_off_n, 2);
    assert_string_equal(f.commit, "bbbb1");
    mla_store_side_close(side);
    side = open_side("aaaa-dirty");
    assert_string_equal(mla_store_side_facts(side).commit, "aaaa1-dirty");
    assert_int_equal(mla_store_side_facts(side).tallied, 12);
    assert_int_equal(mla_store_side_facts(side).cut_off_n, 0);
    mla_store_side_close(side);
}

static void figures_and_repro(void **state)
{
    (void)state;
    (void)begin("run", "aaaa1", false, "");
    put(1, "k", "fail-certain", 2, 1, INFINITY);
    put(2, "k", "pass", 0.5, 1, 0.25);
    struct mla_store_side *side = open_side("1");
    struct mla_side_row row;
    double value = 0;
    char *repro;
    OK(mla_store_side_next(side, &row));
    OK(mla_store_side_figure(side, &row, "max_ulp", &value));
    assert_true(isinf(value) && value > 0);
    assert_int_equal(mla_store_side_figure(side, &row, "frogs", &value), MLA_STORE_ERR_NOT_FOUND);
    OK(mla_store_side_repro(side, &row, &repro));
    char *due = strdup(test_text(path, "SELECT repro FROM finding"));
    assert_string_equal(repro == NULL ? "(null)" : repro, due);
    free(due);
    free(repro);
    OK(mla_store_side_next(side, &row));
    OK(mla_store_side_figure(side, &row, "max_ulp", &value));
    assert_true(value == 0.25);
    OK(mla_store_side_repro(side, &row, &repro));
    assert_null(repro);
    mla_store_side_close(side);
}

/* By hand: lower medians, NaN left out, inf the largest; hunts and other commits do not count. */
static void medians(void **state)
{
    (void)state;
    char text[1024] = "";
    (void)begin("run", "aaaa1", false, "");
    put(1, "k", "pass", 0.5, 0, 9);
    (void)begin("run --random 5", "bbbb1", false, "");
    put(1, "k", "pass", 0.5, 0, 3);
    put(2, "k", "pass", 0.5, 0, 1);
    put(3, "k", "pass", 0.5, 0, 2);
    put(4, "k", "fail-certain", 0.5, 0, INFINITY);
    (void)begin("fuzz", "bbbb1", false, "");
    put(1, "k", "pass", 0.5, 0, 8);
    (void)begin("run", "bbbb1", false, "");
    put(1, "k", "pass", 0.5, 0, NAN);
    put(2, "k", "pass", 0.5, 0, 7);
    struct mla_store_side *side = open_side(NULL);
    OK(mla_store_side_medians(side, take_median, text));
    mla_store_side_close(side);
    assert_string_equal(text, "ring k max_ulp run 4: 7 of 1\n"
                              "ring k max_ulp run 2: 2 of 4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_run, setup, teardown),
        cmocka_unit_test_setup_teardown(several_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(changed_trees, setup, teardown),
        cmocka_unit_test_setup_teardown(ties, setup, teardown),
        cmocka_unit_test_setup_teardown(snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(unsteady_bits_and_builds, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_names, setup, teardown),
        cmocka_unit_test_setup_teardown(facts, setup, teardown),
        cmocka_unit_test_setup_teardown(figures_and_repro, setup, teardown),
        cmocka_unit_test_setup_teardown(medians, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
