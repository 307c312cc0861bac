/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink_test.c - shrunk cases fail alike, are minimal and stay; no failure is lost, none accepted by luck.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/call.h"
#include "fuzz/case_fields.h"
#include "fuzz/faults/faults.h"
#include "fuzz/likeness.h"
#include "fuzz/shrink.h"
#include "fuzz/shrink_steps.h"

#define DRAWS_MAX  400
#define JUDGED_MAX 3000 /* verdicts of one shrinking: far more than it takes */

static const struct mla_shrink_options defaults = {.call_seconds = 20,
                                                   .judged_max = JUDGED_MAX,
                                                   .bytes_max = (int64_t)1 << 30,
                                                   .oracle_threads = 1,
                                                   .relations = true};

static struct mla_shrunk shrink(const struct mla_kernel *kernel, const struct mla_case *test,
                                const struct mla_shrink_options *options)
{
    struct mla_shrunk result;
    char error[MLA_CASE_ERROR_MAX] = "";
    if (mla_shrink(test, kernel, options, &result, error) != MLA_OK)
        fail_msg("%s", error);
    return result;
}

static bool same_line(const struct mla_case *a, const struct mla_case *b)
{
    char x[MLA_CASE_LINE_MAX], y[MLA_CASE_LINE_MAX];
    mla_case_format(a, x);
    mla_case_format(b, y);
    return strcmp(x, y) == 0;
}

static bool alike(const struct mla_verdict *a, const struct mla_verdict *b)
{
    struct mla_likeness x = mla_likeness_of(a), y = mla_likeness_of(b);
    return mla_verdict_is_failure(a->kind) && mla_likeness_equal(&x, &y);
}

static struct mla_verdict judge_once(const struct mla_kernel *kernel, const struct mla_case *test)
{
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {.seconds_limit = 20,
                                        .oracle_threads = 1,
                                        .row_tests = 1 + mla_judge_row_tests(test),
                                        .relations = UINT32_MAX};
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

/* Everything that is promised of a result, for a kernel that always does the same. */
static void check(const struct mla_kernel *kernel, const struct mla_case *test)
{
    char line[MLA_CASE_LINE_MAX], error[MLA_CASE_ERROR_MAX];
    struct mla_case again;
    struct mla_shrunk first = shrink(kernel, test, &defaults);
    assert_int_equal(first.end, MLA_SHRINK_MINIMAL);
    assert_int_equal(first.failed_n, first.tries_n);
    assert_true(alike(&first.first, &first.verdict));
    assert_null(mla_case_problem(&first.test, INT64_MAX, error));
    mla_case_format(&first.test, line);
    if (mla_case_parse(line, strlen(line), &again, error) != MLA_OK)
        fail_msg("%s: %s", line, error);
    struct mla_verdict verdict = judge_once(kernel, &again);
    assert_true(alike(&first.first, &verdict));
    /* A fixpoint: so no single step of the table applies any more. */
    struct mla_shrunk second = shrink(kernel, &again, &defaults);
    assert_int_equal(second.end, MLA_SHRINK_MINIMAL);
    assert_int_equal(second.steps, 0);
    assert_true(same_line(&first.test, &second.test));
}

#define WORK_MAX                                                                                   \
    1000000 /* multiply-adds of a case to begin with: each step costs some calls of it */

/* The first drawn case, of those that are quick, on which the kernel fails. false: none. */
static bool first_kill(const struct mla_kernel *kernel, enum mla_op op, struct mla_case *test)
{
    for (uint64_t i = 0; i < DRAWS_MAX; i++) {
        struct mla_rng rng = {mla_number_mix(i + 1), 0};
        mla_case_draw(test, op, &rng);
        if (mla_case_work(test) <= WORK_MAX &&
            mla_verdict_is_failure(judge_once(kernel, test).kind))
            return true;
    }
    return false;
}

/* How many planted faults to shrink: each takes some tenths of a second. */
static size_t faults_tried(void)
{
    const char *text = getenv("MLA_TEST_CASES");
    int n = text == NULL ? 4 : atoi(text);
    return n > 0 ? (size_t)n : 4;
}

static void test_planted_faults(void **state)
{
    size_t n, shrunk_n = 0, every;
    const struct mla_fault *faults = mla_faults(&n);
    (void)state;
    every = (n + faults_tried() - 1) / faults_tried();
    for (size_t i = 0; i < n; i += every) {
        struct mla_case test;
        enum mla_op op =
            (faults[i].operations & MLA_FAULT_ON_RING) != 0 ? MLA_OP_RING : MLA_OP_SPARSE;
        if (faults[i].hidden != NULL || faults[i].cause == MLA_CAUSE_UNSTEADY ||
            !first_kill(faults[i].kernel, op, &test))
            continue;
        printf("  %s\n", faults[i].name);
        check(faults[i].kernel, &test);
        shrunk_n++;
    }
    assert_true(shrunk_n * 2 >= n / every);
}

/* ---- kernels that fail in other ways ---- */

static const struct mla_kernel *honest(void)
{
    return mla_fault_controls(&(size_t){0})[0].kernel;
}

/* A case with something to take away everywhere. */
static struct mla_case large(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 3;
    test.ring.heads = 2;
    test.ring.q_rows = test.ring.kv_rows = 64;
    test.ring.gathered_rows = 224;
    test.ring.logical_n = 150;
    test.ring.topology = MLA_TOPOLOGY_LINEAR;
    test.ring.threads = 3;
    test.poison = MLA_POISON_MIXED;
    test.rows = 4;
    test.seed = 99;
    test.stats = 1;
    return test;
}

static int32_t crash_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    if (args->logical_n > 40)
        abort();
    return honest()->ring(args, message, bytes);
}

static int32_t hang_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    while (args->ring_size > 1)
        sleep(1);
    return honest()->ring(args, message, bytes);
}

/* Calls so far, over all children. */
static int *calls;

/* Every other call of a long sequence is wrong. */
static int32_t flaky_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    int32_t status = honest()->ring(args, message, bytes);
    if (status == MLA_OK && (++*calls % 2 == 0 || args->logical_n <= 64))
        args->out[0][0] = 0x4321;
    return status;
}

static int32_t rarely_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    int32_t status = honest()->ring(args, message, bytes);
    if (status == MLA_OK && ++*calls % 4 == 2)
        args->out[0][0] = 0x4321;
    return status;
}

/* Takes any q_chunk_size. */
static int32_t lenient_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    struct mla_ring_args legal = *args;
    legal.q_chunk_size = MLA_TILE;
    return honest()->ring(&legal, message, bytes);
}

static struct mla_kernel kernel_of(int32_t (*ring)(const struct mla_ring_args *, char *, size_t))
{
    struct mla_kernel kernel = *honest();
    kernel.name = "test";
    kernel.ring = ring;
    kernel.sparse = NULL;
    return kernel;
}

static void test_crash(void **state)
{
    struct mla_kernel kernel = kernel_of(crash_ring);
    struct mla_case test = large();
    (void)state;
    check(&kernel, &test);
    struct mla_shrunk result = shrink(&kernel, &test, &defaults);
    assert_int_equal(result.verdict.kind, MLA_VERDICT_CRASH);
    assert_int_equal(result.test.ring.logical_n, 41);
    assert_int_equal(result.test.ring.heads, 1);
}

static void test_hang(void **state)
{
    struct mla_kernel kernel = kernel_of(hang_ring);
    struct mla_case test = large();
    struct mla_shrink_options options = defaults;
    (void)state;
    options.call_seconds = 0.5;
    options.judged_max = 12;
    struct mla_shrunk result = shrink(&kernel, &test, &options);
    assert_int_equal(result.end, MLA_SHRINK_OUT_OF_TIME);
    assert_true(result.judged <= 12);
    assert_int_equal(result.verdict.kind, MLA_VERDICT_TIMEOUT);
    assert_int_equal(result.test.ring.ring_size, 2);
}

/* A fault that comes and goes is kept, and no smaller case is believed by luck. */
static void test_flaky(void **state)
{
    struct mla_kernel kernel = kernel_of(rarely_ring);
    struct mla_case test = large();
    struct mla_shrink_options options = defaults;
    (void)state;
    options.relations = false;
    test.rows = 0;
    *calls = 0;
    struct mla_shrunk result = shrink(&kernel, &test, &options);
    assert_true(result.failed_n > 0 && result.failed_n < result.tries_n);
    assert_int_equal(result.end, MLA_SHRINK_MINIMAL);
    assert_int_equal(result.steps, 0);
    assert_true(same_line(&result.test, &test));
    assert_true(mla_verdict_is_failure(result.verdict.kind));
    /* One that is steady on small cases is found there. */
    kernel = kernel_of(flaky_ring);
    *calls = 0;
    result = shrink(&kernel, &test, &options);
    assert_true(result.failed_n > 0 && result.failed_n < result.tries_n);
    assert_int_equal(result.test.ring.ring_size, 1);
    assert_int_equal(result.test.ring.logical_n, 1);
    for (int i = 0; i < 5; i++) {
        struct mla_verdict verdict = judge_once(&kernel, &result.test);
        assert_true(alike(&result.first, &verdict));
    }
}

/* A refusal keeps the field it is about; the other violation and the shape go. */
static void test_refusal(void **state)
{
    struct mla_kernel kernel = kernel_of(lenient_ring);
    struct mla_case test = large();
    (void)state;
    test.set_n = 2;
    test.set[0] = (struct mla_violation){"q_chunk_size", 0, "33"};
    test.set[1] = (struct mla_violation){"k_chunk_size", 0, "31"};
    struct mla_verdict verdict = judge_once(&kernel, &test);
    assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
    check(&kernel, &test);
    struct mla_shrunk result = shrink(&kernel, &test, &defaults);
    assert_non_null(strstr(result.verdict.reason, "q_chunk_size"));
    assert_int_equal(result.test.ring.ring_size, 1);
}

static void test_no_failure(void **state)
{
    struct mla_case test = large();
    (void)state;
    struct mla_shrunk result = shrink(honest(), &test, &defaults);
    assert_int_equal(result.end, MLA_SHRINK_NO_FAILURE);
    assert_int_equal(result.failed_n, 0);
    assert_true(same_line(&result.test, &test));
}

static void test_stop(void **state)
{
    struct mla_kernel kernel = kernel_of(crash_ring);
    struct mla_case test = large();
    struct mla_shrink_options options = defaults;
    volatile int stop = 1;
    (void)state;
    options.stop = &stop;
    struct mla_shrunk result = shrink(&kernel, &test, &options);
    assert_int_equal(result.end, MLA_SHRINK_STOPPED);
    assert_true(same_line(&result.test, &test));
}

/* The order has no cycles where it matters: a step and its reverse are never both simpler. */
static void test_order(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        struct mla_case a, b;
        struct mla_rng x = {mla_number_mix(i), 0}, y = {mla_number_mix(i + 1000), 0};
        mla_case_draw(&a, (enum mla_op)(i % MLA_OP_N), &x);
        mla_case_draw(&b, (enum mla_op)(i % MLA_OP_N), &y);
        assert_false(mla_shrink_is_simpler(&a, &b) && mla_shrink_is_simpler(&b, &a));
        assert_false(mla_shrink_is_simpler(&a, &a));
    }
}

/* Failures that are not of a kind: each differs from the first in one thing. */
static void test_likeness(void **state)
{
    struct mla_verdict first = {.kind = MLA_VERDICT_FAIL_CERTAIN,
                                .detected = MLA_DETECTOR_TIER1,
                                .relation = "",
                                .reason = "status 0 where -2 is due (heads = 7)",
                                .has_row = true,
                                .got = 1};
    struct mla_verdict same = first, kind = first, detector = first, relation = first, nan = first,
                       words = first;
    (void)state;
    snprintf(same.reason, sizeof same.reason, "status 5 where -1 is due (heads = 123)");
    same.got = -3;
    kind.kind = MLA_VERDICT_FAIL_IMPROBABLE;
    detector.detected = MLA_DETECTOR_MEMORY;
    relation.relation = "repeat";
    nan.got = NAN;
    snprintf(words.reason, sizeof words.reason, "status 0 where -2 is due (batch = 7)");
    assert_true(alike(&first, &same));
    assert_false(alike(&first, &kind));
    assert_false(alike(&first, &detector));
    assert_false(alike(&first, &relation));
    assert_false(alike(&first, &nan));
    assert_false(alike(&first, &words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_faults), cmocka_unit_test(test_crash),
        cmocka_unit_test(test_hang),           cmocka_unit_test(test_flaky),
        cmocka_unit_test(test_refusal),        cmocka_unit_test(test_no_failure),
        cmocka_unit_test(test_stop),           cmocka_unit_test(test_order),
        cmocka_unit_test(test_likeness),
    };
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (calls == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
