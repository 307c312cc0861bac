/* SPDX-License-Identifier: Apache-2.0
 *
 * contradiction_test.c - an oracle whose certain intervals exclude each other is never a pass.
 *
 * mla_bound_row is replaced at link time by one that fails when told to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/judge.h"
#include "fuzz/record.h"
#include "fuzz/relations.h"
#include "impl/registry.h"
#include "oracle/oracle.h"

static int32_t planted = MLA_BOUND_OK;
static int bounds_until_well = -1; /* calls that fail before it works again; -1: all */

int32_t __real_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds);
int32_t __wrap_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds);

int32_t __wrap_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds)
{
    bool fails = planted != MLA_BOUND_OK && bounds_until_well != 0;
    bounds_until_well -= bounds_until_well > 0;
    return fails ? planted : __real_mla_bound_row(truth, model, bounds);
}

static struct mla_verdict judge(void)
{
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {.seconds_limit = 0, .oracle_threads = 1};
    char error[MLA_CASE_ERROR_MAX];
    mla_case_init(&test, MLA_OP_SPARSE);
    assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
    mla_subject_judge(subject, mla_registry_find("scalar"), &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static void test_contradiction(void **state)
{
    struct mla_counts counts = {0};
    (void)state;
    planted = MLA_BOUND_OK;
    struct mla_verdict verdict = judge();
    assert_int_equal(verdict.kind, MLA_VERDICT_PASS);
    assert_false(verdict.oracle_failed);
    planted = MLA_ERR_INTERNAL;
    verdict = judge();
    assert_int_equal(verdict.kind, MLA_VERDICT_UNJUDGED);
    assert_true(verdict.oracle_failed);
    mla_counts_add(&counts, &verdict);
    assert_true(counts.oracle_failed == 1 && counts.judged == 0 && counts.passed == 0);
    planted = MLA_ERR_NOMEM; /* a reason not to judge, but no contradiction */
    verdict = judge();
    assert_int_equal(verdict.kind, MLA_VERDICT_UNJUDGED);
    assert_false(verdict.oracle_failed);
}

/* A kernel that gives other bits each second time. */
static int32_t fickle(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    static int calls;
    int32_t status = mla_registry_find("scalar")->sparse(args, message, bytes);
    if (status == MLA_OK && ++calls % 2 == 0)
        args->out[0] ^= 1;
    return status;
}

static struct mla_verdict judge_fickle(bool every_check)
{
    struct mla_kernel kernel = *mla_registry_find("scalar");
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {.oracle_threads = 1, .every_check = every_check};
    char error[MLA_CASE_ERROR_MAX];
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(relations[i].name, "repeat") == 0)
            options.relations |= 1u << i;
    kernel.sparse = fickle;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.rows = 0; /* all of them */
    assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
    mla_subject_judge(subject, &kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

/* To ask what else detects a failure must not turn a verdict that says nothing into one. */
static void test_every_check(void **state)
{
    (void)state;
    planted = MLA_BOUND_OK;
    assert_int_equal(judge_fickle(true).kind, MLA_VERDICT_FAIL_CERTAIN);
    planted = MLA_ERR_NOMEM;
    bounds_until_well = 1;
    struct mla_verdict verdict = judge_fickle(true);
    assert_int_equal(verdict.kind, MLA_VERDICT_UNJUDGED);
    assert_int_equal(verdict.detected, MLA_DETECTOR_RELATION);
    assert_true(verdict.rows_n > 0);
    bounds_until_well = 1;
    assert_int_equal(judge_fickle(false).kind, MLA_VERDICT_UNJUDGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_contradiction),
                                       cmocka_unit_test(test_every_check)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
