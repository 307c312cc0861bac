/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle_choice_test.c - who is asked for the definition and who for the fast evaluation.
 *
 * Both are counted at link time. A subject that has truths of one kind makes new ones for the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuzz/judge.h"
#include "impl/registry.h"
#include "oracle/oracle.h"

static int64_t fast_n, plain_n;

int32_t __real_mla_truth_sparse(const struct mla_sparse_args *args, struct mla_row row,
                                struct mla_truth **truth);
int32_t __wrap_mla_truth_sparse(const struct mla_sparse_args *args, struct mla_row row,
                                struct mla_truth **truth);
int32_t __real_mla_definition_sparse(const struct mla_sparse_args *args, struct mla_row row,
                                     struct mla_truth **truth);
int32_t __wrap_mla_definition_sparse(const struct mla_sparse_args *args, struct mla_row row,
                                     struct mla_truth **truth);

int32_t __wrap_mla_truth_sparse(const struct mla_sparse_args *args, struct mla_row row,
                                struct mla_truth **truth)
{
    fast_n++;
    return __real_mla_truth_sparse(args, row, truth);
}

int32_t __wrap_mla_definition_sparse(const struct mla_sparse_args *args, struct mla_row row,
                                     struct mla_truth **truth)
{
    plain_n++;
    return __real_mla_definition_sparse(args, row, truth);
}

static void judge(struct mla_subject *subject, bool plain)
{
    struct mla_verdict verdict;
    struct mla_judge_options options = {
        .seconds_limit = 0, .oracle_threads = 1, .plain_oracle = plain};
    mla_subject_judge(subject, mla_registry_find("scalar"), &options, &verdict);
    assert_int_equal(verdict.kind, MLA_VERDICT_PASS);
    assert_int_equal(verdict.rows_n, 3);
}

static void test_choice(void **state)
{
    struct mla_case test;
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.rows = 3;
    assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
    judge(subject, true);
    assert_true(fast_n == 0 && plain_n == 3);
    judge(subject, true); /* kept */
    assert_true(fast_n == 0 && plain_n == 3);
    judge(subject, false);
    assert_true(fast_n == 3 && plain_n == 3);
    judge(subject, true);
    assert_true(fast_n == 3 && plain_n == 6);
    mla_subject_free(subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
