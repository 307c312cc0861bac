/* SPDX-License-Identifier: Apache-2.0
 *
 * kill_test.c - the planted faults are caught, the honest controls never accused, the canaries
 * caught on every case.
 *
 * Cases come from the same weighted draw as everywhere else. A fault must die on each operation it
 * is planted in, within a number of drawn cases; one that survives makes this test red.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/faults/faults.h"
#include "fuzz/judge.h"

#define KILL_CASES_MAX 400

/* How many cases to hold the honest against: fewer under sanitizers. */
static int honest_cases(void)
{
    const char *text = getenv("MLA_TEST_CASES");
    int n = text == NULL ? 100 : atoi(text);
    return n > 0 ? n : 100;
}

static struct mla_verdict judge(const struct mla_kernel *kernel, const struct mla_case *test)
{
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {.seconds_limit = 0, .oracle_threads = 1, .relations = 0};
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static struct mla_case draw(enum mla_op op, uint64_t i)
{
    struct mla_case test;
    struct mla_rng rng = {mla_number_mix(i + 1), 0};
    mla_case_draw(&test, op, &rng);
    return test;
}

/* Cases until the fault died, 0 if it lives. */
static int cases_to_kill(const struct mla_kernel *kernel, enum mla_op op)
{
    for (int i = 0; i < KILL_CASES_MAX; i++) {
        struct mla_case test = draw(op, (uint64_t)i);
        if (mla_verdict_is_failure(judge(kernel, &test).kind))
            return i + 1;
    }
    return 0;
}

static void test_every_fault_dies(void **state)
{
    size_t n;
    const struct mla_fault *faults = mla_faults(&n);
    int survivors = 0;
    (void)state;
    assert_true(n >= 6);
    for (size_t i = 0; i < n; i++)
        for (int op = 0; op < MLA_OP_N; op++) {
            if ((faults[i].operations >> op & 1u) == 0)
                continue;
            int cases = cases_to_kill(faults[i].kernel, (enum mla_op)op);
            printf("  %-6s %-28s %s after %d cases\n", mla_case_op_name(op), faults[i].name,
                   cases > 0 ? "caught" : "LIVES", cases > 0 ? cases : KILL_CASES_MAX);
            survivors += cases == 0;
        }
    assert_int_equal(survivors, 0);
}

static void test_no_control_is_accused(void **state)
{
    size_t n;
    const struct mla_fault *controls = mla_fault_controls(&n);
    int judged = 0;
    (void)state;
    for (size_t i = 0; i < n; i++)
        for (int op = 0; op < MLA_OP_N; op++)
            for (int k = 0; k < honest_cases() && (controls[i].operations >> op & 1u) != 0; k++) {
                struct mla_case test = draw((enum mla_op)op, 1000000 + (uint64_t)k);
                struct mla_verdict verdict = judge(controls[i].kernel, &test);
                judged += verdict.kind == MLA_VERDICT_PASS;
                if (mla_verdict_is_failure(verdict.kind)) {
                    char line[MLA_CASE_LINE_MAX];
                    mla_case_format(&test, line);
                    fail_msg("%s accused: %s %s\n%s", controls[i].name, verdict.reason,
                             verdict.element, line);
                }
            }
    assert_true(judged > 2 * honest_cases());
}

static void test_canaries_die_at_once(void **state)
{
    size_t n;
    const struct mla_fault *canaries = mla_fault_canaries(&n);
    (void)state;
    assert_true(n >= 1);
    for (size_t i = 0; i < n; i++)
        for (int op = 0; op < MLA_OP_N; op++)
            for (uint64_t k = 0; k < 20; k++) {
                struct mla_case test = draw((enum mla_op)op, 2000000 + k);
                struct mla_verdict verdict = judge(canaries[i].kernel, &test);
                if (verdict.kind != MLA_VERDICT_UNJUDGED && !mla_verdict_is_failure(verdict.kind))
                    fail_msg("%s lives: %s", canaries[i].name, mla_verdict_name(verdict.kind));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_dies),
        cmocka_unit_test(test_no_control_is_accused),
        cmocka_unit_test(test_canaries_die_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
