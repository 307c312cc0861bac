/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_test.c - what a trial makes of kernels that are right, wrong, out of reach, or end it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/faults/faults.h"
#include "fuzz/faults/plain.h"
#include "fuzz/trial.h"
#include "impl/validate.h"

/* ---- kernels ---- */

static const struct mla_plain_variant honest = {MLA_FAULT_NONE, MLA_PLAIN_ONLINE};

static void mark(void)
{
    const struct mla_plain_variant variant = {MLA_FAULT_ROPE_IGNORED, MLA_PLAIN_ONLINE};
    assert_true(mla_plain_has(variant, MLA_FAULT_ROPE_IGNORED));
}

static int32_t right(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_plain_sparse(args, honest, message, bytes);
}

static int32_t harmless(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    mark();
    return right(args, message, bytes);
}

static int32_t crashing(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    mark();
    raise(SIGSEGV);
    return right(args, message, bytes);
}

static atomic_int calls; /* of this process: what a kernel remembers is no other trial's business */

static int32_t crashing_later(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    mark();
    /* Not just calls: of one shape a relation may make any number in its own process. */
    static atomic_llong last_shape;
    long long shape = (args->queries * 4096 + args->topk) * 65536 + args->keys;
    if (atomic_exchange(&last_shape, shape) != shape && ++calls == 9)
        raise(SIGBUS);
    return harmless(args, message, bytes);
}

static int32_t leaving(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    if (++calls == 2)
        _exit(0);
    return right(args, message, bytes);
}

static int32_t hanging(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    while (++calls >= 3)
        pause();
    return right(args, message, bytes);
}

static int32_t refusing_then_crashing(const struct mla_sparse_args *args, char *message,
                                      size_t bytes)
{
    (void)args;
    (void)message;
    (void)bytes;
    if (++calls > 1)
        raise(SIGSEGV);
    return MLA_ERR_PARAM;
}

/* Computes all, and leaves it elsewhere. */
static int32_t silent(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    struct mla_sparse_args elsewhere = *args;
    int32_t refusal =
        mla_validate_sparse(args, message, bytes); /* sizes may be anything till then */
    if (refusal != MLA_OK)
        return refusal;
    size_t n = (size_t)(args->batch * args->queries * args->heads * MLA_LATENT);
    elsewhere.out = calloc(n, sizeof *elsewhere.out);
    elsewhere.stats = NULL;
    int32_t status = right(&elsewhere, message, bytes);
    free(elsewhere.out);
    mark();
    return status;
}

static int32_t accepting(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    int32_t status = right(args, message, bytes);
    if (status != MLA_OK)
        mark();
    return MLA_OK;
}

static int32_t ended_by_others(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    mark();
    raise(calls == 0 ? SIGTERM : SIGKILL);
    return right(args, message, bytes);
}

/* ---- a judge that can be made to die, or to take its time ---- */

static int planted_signal;   /* 0: none */
static int64_t planted_naps; /* of 0.4 s */

int32_t __real_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds);
int32_t __wrap_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds);

int32_t __wrap_mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                             struct mla_bound *bounds)
{
    if (planted_signal != 0)
        raise(planted_signal);
    if (planted_naps-- > 0)
        usleep(400000);
    return __real_mla_bound_row(truth, model, bounds);
}

static struct mla_kernel kernel_of(int32_t (*sparse)(const struct mla_sparse_args *, char *,
                                                     size_t))
{
    size_t n;
    struct mla_kernel kernel = *mla_fault_controls(&n)[0].kernel;
    kernel.sparse = sparse;
    return kernel;
}

static const struct mla_kernel *fault_named(const char *name)
{
    size_t n;
    const struct mla_fault *faults = mla_faults(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(faults[i].name, name) == 0)
            return faults[i].kernel;
    fail_msg("no fault %s", name);
    return NULL;
}

/* ---- trials ---- */

static struct mla_trial_plan plan_of(const struct mla_kernel *kernel)
{
    size_t n;
    return (struct mla_trial_plan){.kernel = kernel,
                                   .honest = mla_fault_controls(&n)[0].kernel,
                                   .marks = true,
                                   .rejects = true,
                                   .op = MLA_OP_SPARSE,
                                   .search = MLA_SEARCH_RANDOM,
                                   .seed = 7,
                                   .case_seconds = 20,
                                   .survey_cases = 3};
}

static struct mla_trial_result run(const struct mla_trial_plan *plan, int64_t executions)
{
    static struct mla_trial_result result;
    const struct mla_trial_budget budget = {1e9, 0, executions};
    assert_true(mla_trial_run(plan, &budget, &result));
    assert_string_equal(result.trouble, "");
    assert_int_equal(result.oracle_failed, 0);
    return result;
}

static struct mla_trial_result
run_kernel(int32_t (*sparse)(const struct mla_sparse_args *, char *, size_t), int64_t executions)
{
    struct mla_kernel kernel = kernel_of(sparse);
    struct mla_trial_plan plan = plan_of(&kernel);
    return run(&plan, executions);
}

/* Of a trial that must not have an opinion. */
static struct mla_trial_result run_in_trouble(const struct mla_trial_plan *plan, const char *word)
{
    static struct mla_trial_result result;
    const struct mla_trial_budget budget = {1e9, 0, 100};
    assert_true(mla_trial_run(plan, &budget, &result));
    assert_non_null(strstr(result.trouble, word));
    return result;
}

static int64_t caught_by(const struct mla_trial_result *result, enum mla_detector detector)
{
    for (int i = 0; i < MLA_DETECTORS_N; i++)
        if (1u << i == (unsigned)detector)
            return result->detectors[i];
    return -1;
}

static int64_t rules_n(const struct mla_trial_result *result)
{
    int64_t n = 0;
    for (int i = 0; i < MLA_TRIAL_RULES_MAX; i++)
        n += result->rules[i] > 0;
    return n;
}

static void test_never_reached(void **state)
{
    (void)state;
    struct mla_trial_result r = run_kernel(right, 12);
    assert_int_equal(r.outcome, MLA_TRIAL_NOT_APPLIED);
    assert_int_equal(r.executions, 12);
    assert_true(r.judged > 0 && r.judged <= 12);
    assert_int_equal(r.applied, 0);
    assert_string_equal(r.line, "");
    assert_true(r.cpu_seconds > 0);
}

static void test_reached_but_harmless(void **state)
{
    (void)state;
    struct mla_trial_result r = run_kernel(harmless, 12);
    assert_int_equal(r.outcome, MLA_TRIAL_SURVIVED);
    assert_int_equal(r.applied, 12);
    assert_int_equal(r.surveyed, 0);
}

/* Without marks a judged case is all that can be asked for. */
static void test_without_marks(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(right);
    struct mla_trial_plan plan = plan_of(&kernel);
    plan.marks = false;
    struct mla_trial_result r = run(&plan, 12);
    assert_int_equal(r.outcome, MLA_TRIAL_SURVIVED);
    assert_int_equal(r.applied, r.judged);
}

static void test_killed(void **state)
{
    (void)state;
    struct mla_trial_plan plan = plan_of(fault_named("rope-ignored"));
    struct mla_trial_result r = run(&plan, 200), again = run(&plan, 200);
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_false(r.unmarked);
    assert_int_equal(r.verdict, MLA_VERDICT_FAIL_CERTAIN);
    assert_int_equal(mla_case_parse(r.line, strlen(r.line), &test, error), MLA_OK);
    assert_int_equal(r.surveyed, 4);
    assert_true(r.surveyed_failed >= 1);
    assert_true(caught_by(&r, MLA_DETECTOR_TIER1) >= 1);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_CRASH), 0);
    assert_true(rules_n(&r) > 0);
    assert_string_equal(again.line, r.line);
    assert_int_equal(again.executions, r.executions);
    assert_memory_equal(again.rules, r.rules, sizeof r.rules);
    plan.seed++;
    again = run(&plan, 200);
    assert_string_not_equal(again.line, r.line);
}

static void test_crash(void **state)
{
    (void)state;
    struct mla_trial_result r = run_kernel(crashing, 12);
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.verdict, MLA_VERDICT_CRASH);
    assert_int_equal(r.executions, 1);
    assert_int_equal(r.applied, 1);
    assert_false(r.unmarked);
    assert_non_null(strstr(r.reason, "signal 11"));
    assert_true(strncmp(r.line, "sparse v=1 ", 11) == 0);
    assert_int_equal(r.surveyed, 4); /* with a fork for each call */
    assert_int_equal(r.detected, MLA_DETECTOR_CRASH);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_CRASH), 4);
    assert_int_equal(rules_n(&r), 0);
}

/* The state of the process that died is gone: the survey finds nothing, the kill stays. */
static void test_crash_of_state(void **state)
{
    (void)state;
    struct mla_trial_result r = run_kernel(crashing_later, 100);
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.verdict, MLA_VERDICT_CRASH);
    assert_true(r.executions > 1 && r.executions <= 12);
    assert_int_equal(r.applied, r.executions);
    assert_int_equal(r.detected, MLA_DETECTOR_CRASH);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_CRASH), 0);
    assert_int_equal(r.surveyed, 4);
    assert_int_equal(r.surveyed_failed, 0);
}

static void test_exit(void **state)
{
    (void)state;
    struct mla_trial_result r = run_kernel(leaving, 100);
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.verdict, MLA_VERDICT_CRASH);
    assert_non_null(strstr(r.reason, "exit 0"));
    assert_int_equal(r.applied, 0); /* it died inside, but not of what is planted */
    assert_true(r.unmarked);
    assert_int_equal(r.detected, MLA_DETECTOR_CRASH);
}

static void test_hang(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(hanging);
    struct mla_trial_plan plan = plan_of(&kernel);
    plan.case_seconds = 1.5;
    struct mla_trial_result r = run(&plan, 100);
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.verdict, MLA_VERDICT_TIMEOUT);
    assert_non_null(strstr(r.reason, "1.5 s"));
    assert_int_equal(r.detected, MLA_DETECTOR_CRASH);
}

/* What happens to the judge is not the kernel's doing, not even after the fault was reached. */
static void test_death_outside(void **state)
{
    (void)state;
    static const int signals[] = {SIGSEGV, SIGALRM};
    struct mla_kernel kernel = kernel_of(harmless);
    struct mla_trial_plan plan = plan_of(&kernel);
    plan.rejects = false;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        planted_signal = signals[i];
        struct mla_trial_result r = run_in_trouble(&plan, "outside the kernel");
        planted_signal = 0;
        assert_int_not_equal(r.outcome, MLA_TRIAL_KILLED);
        assert_int_equal(r.detected, 0);
        assert_string_equal(r.line, "");
    }
}

/* After a kill for what was done to memory it is: the survey then ends there. */
static void test_death_of_spoiled_memory(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(silent);
    struct mla_trial_plan plan = plan_of(&kernel);
    plan.rejects = false;
    planted_signal = SIGSEGV;
    struct mla_trial_result r = run(&plan, 100);
    planted_signal = 0;
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.detected, MLA_DETECTOR_MEMORY);
    assert_int_equal(r.surveyed, 1);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_CRASH), 1);
}

/* The limit is the kernel's alone. */
static void test_slow_judge(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(harmless);
    struct mla_trial_plan plan = plan_of(&kernel);
    plan.case_seconds = 1;
    plan.rejects = false;
    planted_naps = 3;
    struct mla_trial_result r = run(&plan, 3);
    planted_naps = 0;
    assert_int_equal(r.outcome, MLA_TRIAL_SURVIVED);
    assert_int_equal(r.executions, 3);
}

/* Signals that only others send. */
static void test_ended_by_others(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(ended_by_others);
    struct mla_trial_plan plan = plan_of(&kernel);
    for (calls = 0; calls < 2; calls++)
        assert_int_not_equal(run_in_trouble(&plan, "killed by another").outcome, MLA_TRIAL_KILLED);
    calls = 0;
}

/* The kernel that is compared with dies: the kill stays, no check is credited with it. */
static void test_honest_one_dies(void **state)
{
    (void)state;
    struct mla_kernel fatal = kernel_of(crashing);
    struct mla_trial_plan plan = plan_of(fault_named("rope-ignored"));
    plan.honest = &fatal;
    struct mla_trial_result r = run_in_trouble(&plan, "outside the kernel");
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_CRASH), 0);
}

/* It dies after it was caught by another check: both are told. */
static void test_crash_while_surveyed(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(refusing_then_crashing);
    struct mla_trial_plan plan = plan_of(&kernel);
    plan.rejects = false;
    struct mla_trial_result r = run(&plan, 100);
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.verdict, MLA_VERDICT_FAIL_CERTAIN);
    assert_int_equal(r.executions, 1);
    assert_true(r.unmarked);
    assert_int_equal(r.detected, MLA_DETECTOR_STATUS);
    assert_int_equal(r.surveyed, 1);
    assert_int_equal(r.surveyed_failed, 1);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_CRASH), 1);
}

/* Refusals are only missed where rules are broken; no published rule speaks of them. */
static void test_refusals(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(accepting);
    struct mla_trial_plan plan = plan_of(&kernel);
    struct mla_trial_result r = run(&plan, 100);
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.executions, 4);
    assert_true(caught_by(&r, MLA_DETECTOR_STATUS) == r.surveyed);
    assert_int_equal(rules_n(&r), 0);
    plan.rejects = false;
    r = run(&plan, 12);
    assert_int_equal(r.outcome, MLA_TRIAL_NOT_APPLIED);
    plan.rejects = true;
    kernel.promises &= ~(uint64_t)(MLA_PROMISE_REFUSES | MLA_PROMISE_INDEX_CHECKED);
    r = run(&plan, 12);
    assert_int_equal(r.outcome, MLA_TRIAL_NOT_APPLIED);
}

/* What is not written is caught at once; what lies there instead is for the others to judge. */
static void test_silence(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(silent);
    struct mla_trial_plan plan = plan_of(&kernel);
    plan.rejects = false; /* nothing is to be written there */
    struct mla_trial_result r = run(&plan, 100);
    assert_int_equal(r.outcome, MLA_TRIAL_KILLED);
    assert_int_equal(r.detected, MLA_DETECTOR_MEMORY);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_MEMORY), r.surveyed);
    assert_int_equal(caught_by(&r, MLA_DETECTOR_TIER1), r.surveyed);
    assert_true(rules_n(&r) > 0);
}

/* ---- budgets ---- */

static enum mla_trial_state wait_for(struct mla_trial *trial)
{
    while (mla_trial_look(trial) == MLA_TRIAL_RUNNING)
        usleep(1000);
    return mla_trial_look(trial);
}

/* A budget that grows continues the same search. */
static void test_resume(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(harmless);
    struct mla_trial_plan plan = plan_of(&kernel);
    struct mla_trial_result whole = run(&plan, 12);
    struct mla_trial *trial = mla_trial_start(&plan, &(struct mla_trial_budget){1e9, 0, 5});
    assert_non_null(trial);
    assert_int_equal(wait_for(trial), MLA_TRIAL_PAUSED);
    assert_int_equal(mla_trial_result(trial)->executions, 5);
    mla_trial_resume(trial, &(struct mla_trial_budget){0, 12, 0}); /* at least */
    assert_int_equal(wait_for(trial), MLA_TRIAL_PAUSED);
    assert_int_equal(mla_trial_result(trial)->executions, 12);
    assert_int_equal(mla_trial_result(trial)->judged, whole.judged);
    mla_trial_stop(trial);
    assert_int_equal(wait_for(trial), MLA_TRIAL_ENDED);
    assert_int_equal(mla_trial_result(trial)->executions, 12);
    assert_int_equal(mla_trial_result(trial)->outcome, MLA_TRIAL_SURVIVED);
    mla_trial_free(trial);
}

static void test_stop(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(harmless);
    struct mla_trial_plan plan = plan_of(&kernel);
    struct mla_trial *trial = mla_trial_start(&plan, &(struct mla_trial_budget){1e9, 0, 0});
    assert_non_null(trial);
    while (mla_trial_result(trial)->executions == 0)
        usleep(1000);
    assert_int_equal(mla_trial_look(trial), MLA_TRIAL_RUNNING);
    mla_trial_stop(trial);
    assert_int_equal(wait_for(trial), MLA_TRIAL_ENDED);
    assert_int_equal(mla_trial_result(trial)->outcome, MLA_TRIAL_SURVIVED);
    mla_trial_free(trial);
    trial = mla_trial_start(&plan, &(struct mla_trial_budget){1e9, 0, 0});
    mla_trial_free(trial); /* while it runs */
}

/* Seconds of the processor end a round too. */
static void test_seconds(void **state)
{
    (void)state;
    struct mla_kernel kernel = kernel_of(harmless);
    struct mla_trial_plan plan = plan_of(&kernel);
    struct mla_trial_result r;
    assert_true(mla_trial_run(&plan, &(struct mla_trial_budget){0.05, 1, 0}, &r));
    assert_true(r.cpu_seconds >= 0.05);
    assert_true(r.executions >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_reached),
        cmocka_unit_test(test_reached_but_harmless),
        cmocka_unit_test(test_without_marks),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_crash_of_state),
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_death_outside),
        cmocka_unit_test(test_death_of_spoiled_memory),
        cmocka_unit_test(test_slow_judge),
        cmocka_unit_test(test_ended_by_others),
        cmocka_unit_test(test_honest_one_dies),
        cmocka_unit_test(test_crash_while_surveyed),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
