/* SPDX-License-Identifier: Apache-2.0
 *
 * call_test.c - kernels that crash, hang, scribble: each becomes a verdict, never the end of the
 * run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/call.h"
#include "fuzz/judge.h"
#include "fuzz/kernels.h"

static struct mla_verdict judge(const char *plugin, enum mla_op op, double seconds_limit)
{
    static struct mla_kernel_list kernels;
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {
        .seconds_limit = seconds_limit, .oracle_threads = 1, .relations = 0};
    char error[1024], path[512];
    snprintf(path, sizeof path, "%s/%s", MLA_TEST_PLUGINS, plugin);
    kernels.n = 0;
    if (mla_kernels_add(&kernels, path, error, sizeof error) != MLA_OK)
        fail_msg("%s", error);
    mla_case_init(&test, op);
    test.rows = 4;
    if (mla_subject_make(&test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, kernels.list[0].kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static void test_crash(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_verdict verdict = judge("bad/mla_bad_call_crash.so", (enum mla_op)op, 20);
        assert_int_equal(verdict.kind, MLA_VERDICT_CRASH);
        assert_true(verdict.reason[0] != '\0');
    }
}

static void test_hang(void **state)
{
    (void)state;
    double start = mla_call_clock();
    struct mla_verdict verdict = judge("bad/mla_bad_call_hang.so", MLA_OP_RING, 0.5);
    assert_int_equal(verdict.kind, MLA_VERDICT_TIMEOUT);
    assert_true(mla_call_clock() - start < 30);
}

static void test_writes_input(void **state)
{
    (void)state;
    struct mla_verdict verdict = judge("bad/mla_bad_writes_input.so", MLA_OP_SPARSE, 20);
    assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
    assert_non_null(strstr(verdict.reason, "input"));
}

/* Trapped by the page or noticed in the pattern, by where the tensor lies. */
static void test_writes_past_the_end(void **state)
{
    (void)state;
    struct mla_verdict verdict = judge("bad/mla_bad_writes_past.so", MLA_OP_RING, 20);
    assert_true(verdict.kind == MLA_VERDICT_FAIL_CERTAIN || verdict.kind == MLA_VERDICT_CRASH);
}

static void test_example_passes(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_verdict verdict = judge("example_plugin.so", (enum mla_op)op, 20);
        if (verdict.kind != MLA_VERDICT_PASS)
            fail_msg("%s: %s", mla_verdict_name(verdict.kind), verdict.reason);
    }
}

static void test_unknown_kernels(void **state)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    (void)state;
    assert_int_equal(mla_kernels_add(&kernels, "scaler", error, sizeof error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "scaler"));
    assert_non_null(strstr(error, "scalar"));
    assert_int_equal(mla_kernels_add(&kernels, "fault:none", error, sizeof error), MLA_ERR_PARAM);
    assert_int_equal(mla_kernels_add(&kernels, "no/such.so", error, sizeof error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "no/such.so"));
    assert_int_equal(kernels.n, 0);
    assert_int_equal(mla_kernels_add(&kernels, "sca*", error, sizeof error), MLA_OK);
    assert_int_equal(kernels.n, 1);
    assert_string_equal(kernels.list[0].spec, "scalar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crash),          cmocka_unit_test(test_hang),
        cmocka_unit_test(test_writes_input),   cmocka_unit_test(test_writes_past_the_end),
        cmocka_unit_test(test_example_passes), cmocka_unit_test(test_unknown_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
