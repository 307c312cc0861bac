/* SPDX-License-Identifier: Apache-2.0
 *
 * call_test.c - kernels that crash, hang, scribble: each becomes a verdict, never the end of the
 * run.
 *
 * Some are plug-ins; those that need more than a wrong address are functions here, which do their
 * mischief after the honest control's work.
 */
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

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

/* ---- mischief ---- */

static const struct mla_kernel *honest;
static void (*mischief)(void);
static const struct mla_ring_args *call_at_hand;
static const char *words; /* the answer, if not NULL: refused with these */

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    int32_t status = honest->ring(args, message, message_bytes);
    call_at_hand = args;
    if (mischief != NULL)
        mischief();
    if (words == NULL)
        return status;
    memset(message, 'x', message_bytes); /* not terminated, if they are longer */
    memcpy(message, words, strlen(words) + 1 < message_bytes ? strlen(words) + 1 : message_bytes);
    return MLA_ERR_INTERNAL;
}

static struct mla_verdict judge_mischief(void (*what)(void), const char *answer,
                                         double seconds_limit)
{
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_kernel kernel = *honest;
    struct mla_judge_options options = {
        .seconds_limit = seconds_limit, .oracle_threads = 1, .relations = 0};
    char error[MLA_CASE_ERROR_MAX];
    kernel.ring = ring;
    mischief = what;
    words = answer;
    mla_case_init(&test, MLA_OP_RING);
    test.rows = 4;
    if (mla_subject_make(&test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, &kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static void round_upward(void)
{
    (void)fesetround(FE_UPWARD);
}

static void flush_to_zero(void)
{
#ifdef __SSE2__
    _mm_setcsr(_mm_getcsr() | 0x8000u);
#else
    (void)fesetround(FE_TOWARDZERO);
#endif
}

static void round_and_put_back(void)
{
    int mode = fegetround();
    (void)fesetround(FE_DOWNWARD);
    (void)fesetround(mode);
}

/* In the child and in this process, which must get its own environment back. */
static void test_floating_point_environment(void **state)
{
    void (*const changes[])(void) = {round_upward, flush_to_zero};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (double limit = 0; limit <= 20; limit += 20) {
            struct mla_verdict verdict = judge_mischief(changes[i], NULL, limit);
            volatile float smallest = 0x1p-126f, half = smallest * 0.5f;
            assert_int_equal(fegetround(), FE_TONEAREST);
            assert_true(half > 0);
            assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
            assert_non_null(strstr(verdict.reason, "floating-point environment"));
        }
    assert_int_equal(judge_mischief(round_and_put_back, NULL, 20).kind, MLA_VERDICT_PASS);
}

static volatile int *ticks; /* shared with every child */

static void nap(long milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

/* A process that counts until somebody ends it (or, should that fail, for ten seconds). */
static void leave_a_process(void)
{
    if (fork() == 0) {
        for (int i = 0; i < 10000; i++) {
            ++*ticks;
            nap(1);
        }
        _exit(0);
    }
    while (*ticks == 0)
        nap(1);
}

static void leave_a_process_and_hang(void)
{
    leave_a_process();
    for (;;)
        nap(100);
}

static void leave_a_process_and_die(void)
{
    leave_a_process();
    _exit(3);
}

/* Reported, and no longer running afterwards, however the call ended. */
static void test_process_left_behind(void **state)
{
    static const enum mla_verdict_kind kinds[] = {MLA_VERDICT_FAIL_CERTAIN, MLA_VERDICT_TIMEOUT,
                                                  MLA_VERDICT_CRASH};
    void (*const kernels[])(void) = {leave_a_process, leave_a_process_and_hang,
                                     leave_a_process_and_die};
    (void)state;
    ticks = mmap(NULL, sizeof *ticks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true((void *)(uintptr_t)ticks != MAP_FAILED);
    for (int i = 0; i < 3; i++) {
        *ticks = 0;
        struct mla_verdict verdict = judge_mischief(kernels[i], NULL, i == 1 ? 1 : 20);
        assert_int_equal(verdict.kind, kinds[i]);
        if (i == 0)
            assert_non_null(strstr(verdict.reason, "process behind"));
        nap(20); /* a signal is on its way */
        int before = *ticks;
        assert_true(before > 0);
        nap(100);
        assert_int_equal(*ticks, before);
    }
    munmap((void *)(uintptr_t)ticks, sizeof *ticks);
}

static void *linger(void *unused)
{
    nap(900);
    return unused;
}

static void leave_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, linger, NULL) == 0)
        pthread_detach(thread);
}

static void *vanish(void *unused)
{
    return unused;
}

static void start_and_wait_for_threads(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, vanish, NULL) == 0)
            pthread_join(thread, NULL);
    }
}

/* Where threads are watched by a sanitizer, its own cannot be told from the kernel's. */
static void test_thread_left_behind(void **state)
{
    (void)state;
    assert_int_equal(judge_mischief(start_and_wait_for_threads, NULL, 20).kind, MLA_VERDICT_PASS);
    struct mla_verdict verdict = judge_mischief(leave_a_thread, NULL, 20);
#ifdef __linux__
    if (MLA_THREADS_ARE_WATCHED)
        return;
    assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
    assert_int_equal(verdict.detected, MLA_DETECTOR_MEMORY);
    assert_non_null(strstr(verdict.reason, "thread behind"));
#else
    (void)verdict;
#endif
}

static void write_q_back(void)
{
    volatile uint16_t *q = (volatile uint16_t *)(uintptr_t)call_at_hand->q[0];
    q[0] = q[0];
}

static void write_kv_behind_its_end(void)
{
    const struct mla_ring_args *a = call_at_hand;
    volatile uint16_t *kv = (volatile uint16_t *)(uintptr_t)a->kv[0];
    kv[a->kv_batch * a->kv_rows * a->head_dim] = 0;
}

static void fault_elsewhere(void)
{
    volatile uintptr_t nowhere = 64; /* of which a compiler knows nothing */
    *(volatile int *)nowhere = 0;
}

static void *write_q_back_on_a_thread(void *unused)
{
    write_q_back();
    return unused;
}

static void write_q_back_elsewhere(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, write_q_back_on_a_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

/* A write is caught although it changes nothing; what is no write to an input crashes as ever. */
static void test_inputs_are_read_only(void **state)
{
    void (*const kernels[])(void) = {write_q_back, write_q_back_elsewhere};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct mla_verdict verdict = judge_mischief(kernels[i], NULL, 20);
        assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
        assert_int_equal(verdict.detected, MLA_DETECTOR_MEMORY);
        assert_non_null(strstr(verdict.reason, "q[0]: the input was written, with the bytes"));
    }
    struct mla_verdict verdict = judge_mischief(write_kv_behind_its_end, NULL, 20);
    assert_true(verdict.kind == MLA_VERDICT_CRASH || /* as the case lays it out */
                strstr(verdict.reason, "outside its") != NULL);
    verdict = judge_mischief(fault_elsewhere, NULL, 20);
    assert_int_equal(verdict.kind, MLA_VERDICT_CRASH);
    assert_non_null(strstr(verdict.reason, "signal 11"));
}

static void close_all_and_hang(void)
{
    for (int fd = 3; fd < 1024; fd++)
        (void)close(fd);
    for (;;)
        nap(100);
}

/* The closed pipe says nothing; the limit ends it, not much sooner and not much later. */
static void test_closed_descriptors_and_hang(void **state)
{
    (void)state;
    double start = mla_call_clock();
    struct mla_verdict verdict = judge_mischief(close_all_and_hang, NULL, 0.5);
    double seconds = mla_call_clock() - start;
    assert_int_equal(verdict.kind, MLA_VERDICT_TIMEOUT);
    assert_true(seconds >= 0.5 && seconds < 15);
}

static void close_all(void)
{
    for (int fd = 3; fd < 1024; fd++)
        (void)close(fd);
}

/* Not the kernel's business, but no harm either. */
static void test_closed_descriptors_alone_pass(void **state)
{
    (void)state;
    assert_int_equal(judge_mischief(close_all, NULL, 20).kind, MLA_VERDICT_PASS);
}

static void test_messages_are_printable(void **state)
{
    static char endless[4096];
    (void)state;
    memset(endless, '\t', sizeof endless - 1);
    for (double limit = 0; limit <= 20; limit += 20) {
        struct mla_verdict verdict =
            judge_mischief(NULL, "a = 1:\nFAIL \x1b[31m\xc3\xa4\x7f~", limit);
        assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
        assert_non_null(strstr(verdict.reason, ": a = 1:?FAIL ?[31m???~"));
        verdict = judge_mischief(NULL, endless, limit);
        assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
        assert_true(strlen(verdict.reason) < sizeof verdict.reason);
        for (const char *at = verdict.reason; *at != '\0'; at++)
            assert_true(*at >= ' ' && *at <= '~');
        assert_non_null(strstr(verdict.reason, "????????"));
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

static void test_plugins_by_path(void **state)
{
    static const struct {
        const char *spec;
        size_t path_n;
    } specs[] = {{"a.so", 4},         {"./a.so", 6},       {"a.so:b", 4},
                 {"/x/a.so:b*", 7},   {"d.so:1/a.so", 11}, {"d.so:1/a.so:b", 11},
                 {"d.so:1/a.txt", 0}, {"a.sound", 0},      {"scalar", 0},
                 {".so", 0},          {"a:b.so", 6},       {"", 0},
                 {"a.so:b.so:c", 9}};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        if (mla_kernels_plugin(specs[i].spec) != specs[i].path_n)
            fail_msg("'%s': %zu", specs[i].spec, mla_kernels_plugin(specs[i].spec));
}

static void test_names_in_results(void **state)
{
    static const struct {
        const char *spec, *name;
    } specs[] = {{"a.so:b", "a.so:b"},           {"./a.so:b", "a.so:b"},
                 {"/x/d.so:1/a.so:b", "a.so:b"}, {"../x/lib.so.1:b", "lib.so.1:b"},
                 {"scalar", "scalar"},           {"fault:plain", "fault:plain"},
                 {"file:a/b", "file:a/b"},       {"", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        assert_string_equal(mla_kernels_name(specs[i].spec), specs[i].name);
}

static void test_reserved_plugins(void **state)
{
    static const char *const specs[] = {"./fault", "x/fault:plain", "file:x/a.so", "/x/adversary",
                                        "./file:b"};
    static struct mla_kernel_list kernels;
    char error[1024];
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        assert_int_equal(mla_kernels_add(&kernels, specs[i], error, sizeof error), MLA_ERR_PARAM);
        assert_non_null(strstr(error, "nor its file be called"));
    }
}

int main(void)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_writes_input),
        cmocka_unit_test(test_writes_past_the_end),
        cmocka_unit_test(test_example_passes),
        cmocka_unit_test(test_floating_point_environment),
        cmocka_unit_test(test_process_left_behind),
        cmocka_unit_test(test_thread_left_behind),
        cmocka_unit_test(test_inputs_are_read_only),
        cmocka_unit_test(test_closed_descriptors_and_hang),
        cmocka_unit_test(test_closed_descriptors_alone_pass),
        cmocka_unit_test(test_messages_are_printable),
        cmocka_unit_test(test_unknown_kernels),
        cmocka_unit_test(test_plugins_by_path),
        cmocka_unit_test(test_names_in_results),
        cmocka_unit_test(test_reserved_plugins),
    };
    if (mla_kernels_add(&kernels, "fault:plain", error, sizeof error) != MLA_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    honest = kernels.list[0].kernel;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
