/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_test.c - does blame name what was planted? Faults of the table on their first kill, and kernels
 * here that do one thing wrong each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "fuzz/blame.h"
#include "fuzz/case_fields.h"
#include "fuzz/faults/faults.h"

#define DRAWS_MAX 400
#define LIMIT     20.0

static struct mla_verdict judge_once(const struct mla_kernel *kernel, const struct mla_case *test)
{
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {
        .seconds_limit = LIMIT, .oracle_threads = 1, .relations = UINT32_MAX};
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

/* The first drawn case on which the kernel fails, from a stream of its own. false: none. */
static bool first_kill(const struct mla_kernel *kernel, enum mla_op op, uint64_t stream,
                       struct mla_case *test, struct mla_verdict *verdict)
{
    for (uint64_t i = 0; i < DRAWS_MAX; i++) {
        struct mla_rng rng = {mla_number_at(stream, i, 0, 0), 0};
        mla_case_draw(test, op, &rng);
        *verdict = judge_once(kernel, test);
        if (mla_verdict_is_failure(verdict->kind))
            return true;
    }
    return false;
}

static bool is_right(const char *name, const struct mla_kernel *kernel, enum mla_op op,
                     uint64_t stream, enum mla_cause cause)
{
    struct mla_case test;
    struct mla_verdict verdict;
    struct mla_blame blame;
    char line[MLA_CASE_LINE_MAX];
    if (!first_kill(kernel, op, stream, &test, &verdict))
        return false;
    mla_blame_find(&test, kernel, &verdict, LIMIT, &blame);
    printf("  %s %-6s %-26s %-14s %-14s %3d calls  %s\n", blame.cause == cause ? "   " : "NOT",
           mla_case_op_name((int32_t)op), name, mla_cause_name(cause), mla_cause_name(blame.cause),
           blame.calls_n, blame.text);
    mla_case_format(&test, line);
    if (blame.cause != cause)
        printf("        %s: %s\n        %s\n", mla_verdict_name(verdict.kind), verdict.reason,
               line);
    return blame.cause == cause;
}

static void test_planted_faults(void **state)
{
    size_t n;
    const struct mla_fault *faults = mla_faults(&n);
    const char *stream = getenv("MLA_TEST_STREAM");
    int asked = 0, right = 0;
    (void)state;
    for (size_t i = 0; i < n; i++)
        for (int op = 0; op < MLA_OP_N; op++) {
            if ((faults[i].operations >> op & 1u) == 0 || faults[i].hidden != NULL)
                continue;
            asked++;
            right += is_right(faults[i].name, faults[i].kernel, (enum mla_op)op,
                              stream == NULL ? 11 : strtoull(stream, NULL, 10), faults[i].cause);
        }
    printf("  %d of %d\n", right, asked);
    assert_true(right * 10 >= asked * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
