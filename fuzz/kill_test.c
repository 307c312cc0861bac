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

#include "fuzz/call.h"
#include "fuzz/case_fields.h"
#include "fuzz/faults/faults.h"
#include "fuzz/faults/test_share.h"
#include "fuzz/judge.h"
#include "fuzz/relations.h"

#define KILL_CASES_MAX 300 /* the slowest fault of values takes 233 */

/* How many cases to hold the honest against: fewer under sanitizers. */
static int honest_cases(void)
{
    const char *text = getenv("MLA_TEST_CASES");
    int n = text == NULL ? 100 : atoi(text);
    return n > 0 ? n : 100;
}

static struct mla_subject *make(const struct mla_case *test)
{
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    return subject;
}

static struct mla_verdict judge(const struct mla_kernel *kernel, const struct mla_case *test)
{
    struct mla_verdict verdict;
    struct mla_judge_options options = {.oracle_threads = 1};
    struct mla_subject *subject = make(test);
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

/* Faults that cases as they are drawn today do not reach in so few, and a case that kills each. */
static const struct {
    const char *name, *line;
} late[] = {
    {"worker-rounds-down",
     "sparse v=1 S=2 S_kv=128 H=16 Rr=64 K=128 tiled=0 dense=0 offset=- order=mx4 cores=1 "
     "threads=1 "
     "scale=0x1.14f5b8p-3 family=upstream region=normal amount=0 indices=sorted poison=nan stats=1 "
     "seed=524241256 rows=-1 row_seed=17025 slow=0 set=- put=-"},
    {"cores-reverse-lists",
     "sparse v=1 S=2 S_kv=587 H=16 Rr=1 K=128 tiled=1 dense=0 offset=- order=natural cores=2 "
     "threads=3 "
     "scale=0x1p-2 family=full region=normal amount=-2 indices=uniform poison=nan stats=1 "
     "seed=530855571 rows=-1 row_seed=57688 slow=0 set=- put=-"},
    {"tiled-one-block",
     "sparse v=1 S=129 S_kv=1000 H=16 Rr=1 K=128 tiled=1 dense=0 offset=0 order=mx4 cores=129 "
     "threads=0 "
     "scale=0x1.14f5b8p-3 family=profile region=flat amount=7 indices=sorted poison=mixed stats=1 "
     "seed=2318917888 rows=-1 row_seed=47937 slow=0 set=- put=-"},
};

static bool is_late(const char *name)
{
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++)
        if (strcmp(late[i].name, name) == 0)
            return true;
    return false;
}

/* How many cases each fault lived; all live ones share a case and its truths. */
struct hunt {
    const struct mla_fault *fault;
    int cases;
    bool lives;
};

/* Relations as a hunt chooses them. Who may crash has a process of its own. */
static void hunt_with(struct hunt *hunts, size_t hunts_n, const struct mla_case *test, int i)
{
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK) {
        assert_true(test->set_n == 2); /* the first may take away what the second one breaks */
        return;
    }
    for (size_t k = 0; k < hunts_n; k++) {
        struct mla_judge_options options = {.oracle_threads = 1,
                                            .relations = mla_relations_choose(test),
                                            .relation_rows = MLA_RELATION_ROWS};
        struct mla_verdict verdict;
        if (!hunts[k].lives)
            continue;
        options.seconds_limit = hunts[k].fault->cause == MLA_CAUSE_MEMORY ? 10 : 0;
        mla_subject_judge(subject, hunts[k].fault->kernel, &options, &verdict);
        hunts[k].cases = i + 1;
        hunts[k].lives = !mla_verdict_is_failure(verdict.kind);
    }
    mla_subject_free(subject);
}

static size_t count_living(const struct hunt *hunts, size_t hunts_n)
{
    size_t living_n = 0;
    for (size_t k = 0; k < hunts_n; k++)
        living_n += hunts[k].lives;
    return living_n;
}

/* Faults of the answer want calls that break a rule, every second time, later every time; a refusal
 * costs no oracle, and each rule is only one of many. */
static bool wants_refusals(const struct mla_fault *fault)
{
    return fault->cause == MLA_CAUSE_STATUS || fault->cause == MLA_CAUSE_MEMORY;
}

/* Hunt the faults of an operation; returns how many live. */
static size_t hunt_all(enum mla_op op, bool refusals, int cases_max)
{
    size_t n, living_n;
    const struct mla_fault *faults = mla_faults(&n);
    struct hunt *hunts = calloc(n, sizeof *hunts);
    assert_non_null(hunts);
    for (size_t k = 0; k < n; k++) {
        bool offered =
            (faults[k].operations >> op & 1u) != 0 && mla_test_takes_fault(&faults[k], k);
        bool asked = wants_refusals(&faults[k]) == refusals && !is_late(faults[k].name);
        hunts[k] = (struct hunt){&faults[k], 0, offered && asked && faults[k].hidden == NULL};
    }
    for (int i = 0; i < cases_max && count_living(hunts, n) > 0; i++) {
        struct mla_case test = draw(op, (uint64_t)i);
        struct mla_rng rng = {mla_number_mix(~(uint64_t)i), 0};
        if (refusals && (i % 2 == 1 || i >= KILL_CASES_MAX))
            mla_case_draw_violation(&test, &rng);
        hunt_with(hunts, n, &test, i);
    }
    for (size_t k = 0; k < n; k++)
        if (hunts[k].cases > 0)
            printf("  %-6s %-28s %s after %d cases\n", mla_case_op_name((int32_t)op),
                   faults[k].name, hunts[k].lives ? "LIVES" : "caught", hunts[k].cases);
    living_n = count_living(hunts, n);
    free(hunts);
    return living_n;
}

static void test_every_fault_dies(void **state)
{
    size_t n, living_n = 0;
    (void)state;
    mla_faults(&n);
    assert_true(n >= 60);
    for (int op = 0; op < MLA_OP_N; op++) {
        living_n += hunt_all((enum mla_op)op, false, KILL_CASES_MAX);
        living_n += hunt_all((enum mla_op)op, true, 10 * KILL_CASES_MAX);
    }
    assert_int_equal(living_n, 0);
}

static enum mla_verdict_kind judge_late(const struct mla_kernel *kernel,
                                        const struct mla_case *test)
{
    struct mla_verdict verdict;
    struct mla_judge_options options = {.oracle_threads = 1,
                                        .relations = mla_relations_cheap((enum mla_op)test->op)};
    struct mla_subject *subject = make(test);
    mla_subject_judge(subject, kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict.kind;
}

/* On its case the fault dies and the kernel it is planted in passes. */
static void test_late_faults_die(void **state)
{
    size_t n;
    const struct mla_fault *faults = mla_faults(&n);
    (void)state;
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        struct mla_case test;
        char error[MLA_CASE_ERROR_MAX];
        size_t k = 0;
        while (k < n && strcmp(faults[k].name, late[i].name) != 0)
            k++;
        assert_true(k < n);
        if (mla_case_parse(late[i].line, strlen(late[i].line), &test, error) != MLA_OK)
            fail_msg("%s: %s", late[i].name, error);
        if (!mla_verdict_is_failure(judge_late(faults[k].kernel, &test)))
            fail_msg("%s lives", late[i].name);
        assert_int_equal(judge_late(mla_fault_controls(&(size_t){0})[0].kernel, &test),
                         MLA_VERDICT_PASS);
    }
}

/* One case for all controls: its truths are computed once. Returns how many passed. */
static int judge_controls(enum mla_op op, uint64_t i)
{
    size_t n;
    int passed_n = 0;
    const struct mla_fault *controls = mla_fault_controls(&n);
    struct mla_judge_options options = {.oracle_threads = 1};
    struct mla_case test = draw(op, i);
    struct mla_subject *subject = make(&test);
    for (size_t k = 0; k < n; k++) {
        struct mla_verdict verdict;
        if ((controls[k].operations >> op & 1u) == 0)
            continue;
        mla_subject_judge(subject, controls[k].kernel, &options, &verdict);
        passed_n += verdict.kind == MLA_VERDICT_PASS;
        if (mla_verdict_is_failure(verdict.kind)) {
            char line[MLA_CASE_LINE_MAX];
            mla_case_format(&test, line);
            fail_msg("%s accused: %s %s\n%s", controls[k].name, verdict.reason, verdict.element,
                     line);
        }
    }
    mla_subject_free(subject);
    return passed_n;
}

static void test_no_control_is_accused(void **state)
{
    int passed_n = 0;
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++)
        for (int k = 0; k < honest_cases(); k++)
            passed_n += judge_controls((enum mla_op)op, 1000000 + (uint64_t)k);
    assert_true(passed_n > 2 * honest_cases());
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
        cmocka_unit_test(test_late_faults_die),
        cmocka_unit_test(test_no_control_is_accused),
        cmocka_unit_test(test_canaries_die_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
