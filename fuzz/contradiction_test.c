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

#include <cmocka.h>

#include "fuzz/judge.h"
#include "fuzz/record.h"
#include "impl/registry.h"
#include "oracle/oracle.h"

static int32_t planted = MLA_BOUND_OK;

int32_t __real_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds);
int32_t __wrap_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds);

int32_t __wrap_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds)
{
    return planted != MLA_BOUND_OK ? planted : __real_mla_bound_row(truth, model, bounds);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_contradiction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
