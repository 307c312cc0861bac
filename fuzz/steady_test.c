/* SPDX-License-Identifier: Apache-2.0
 *
 * steady_test.c - a process that judges for weeks stays as large as it was.
 *
 * The same cases again and again: whatever a round takes it has given back at its end, so that after the
 * first rounds, which fill the pools that are kept on purpose, every further one finds the memory it
 * needs. What may still change is the heap's end, which moves in steps of 128 KB (M_TOP_PAD), and the
 * stacks of threads, of which only the calling one is used here. So the pages in memory may grow by two
 * such steps and no more; losing the least a heap can lose, 32 bytes an execution, would be three of
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/kernels.h"
#include "fuzz/relations.h"
#include "fuzz/search.h"

#define CASES_N  200
#define STEP_KB  128
#define LIMIT_KB (2 * STEP_KB)
#define ROUNDS   60 /* 12000 executions */
#define LEAK     16

static struct mla_case cases[CASES_N];

static long resident_kb(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return -1;
    int got = fscanf(file, "%ld %ld", &all, &resident);
    fclose(file);
    return got == 2 ? resident * (sysconf(_SC_PAGESIZE) / 1024) : -1;
}

/* Smallest cases of the ring, in every mode and family of the draw. */
static void draw(void)
{
    for (uint64_t i = 0; i < CASES_N; i++) {
        struct mla_rng rng = {mla_number_mix(i), 0};
        struct mla_case *test = &cases[i];
        mla_case_draw(test, MLA_OP_RING, &rng);
        test->seed |= 1; /* no large one */
        test->ring.ring_size = 1 + test->ring.ring_size % 2;
        test->ring.heads = test->ring.batch = test->ring.kv_batch = 1;
        test->ring.has_slot = 0;
        test->ring.q_rows = test->ring.kv_rows = MLA_TILE;
        test->ring.head_dim = 64;
        test->ring.threads = 1;
        test->rows = -1;
        mla_case_fix(test);
    }
}

/* leak: where to lose a block of memory at every execution, or NULL. */
static void round_of_cases(const struct mla_kernel *kernel, void ***leak)
{
    for (int i = 0; i < CASES_N; i++) {
        struct mla_subject *subject;
        struct mla_verdict verdict;
        const struct mla_judge_options options = {.oracle_threads = 1,
                                                  .relations = mla_relations_choose(&cases[i]),
                                                  .relation_rows = MLA_RELATION_ROWS};
        char error[MLA_CASE_ERROR_MAX];
        assert_int_equal(mla_subject_make(&cases[i], &subject, error), MLA_OK);
        mla_subject_judge(subject, kernel, &options, &verdict);
        if (leak != NULL) {
            void **block = malloc(LEAK);
            assert_non_null(block);
            *block = (void *)*leak;
            *leak = block;
        }
        mla_subject_free(subject);
        assert_false(mla_verdict_is_failure(verdict.kind));
    }
}

/* Growth over the rounds, in KB. */
static long growth(void ***leak)
{
    static struct mla_kernel_list kernels;
    char error[MLA_CASE_ERROR_MAX];
    kernels.n = 0;
    assert_int_equal(mla_kernels_add(&kernels, "scalar", error, sizeof error), MLA_OK);
    draw();
    for (int i = 0; i < ROUNDS / 10; i++)
        round_of_cases(kernels.list[0].kernel, NULL);
    long before = resident_kb();
    for (int i = 0; i < ROUNDS; i++)
        round_of_cases(kernels.list[0].kernel, leak);
    return resident_kb() - before;
}

static void test_judging_leaves_nothing(void **state)
{
    (void)state;
    if (resident_kb() < 0)
        skip(); /* a system that does not say */
    long grown = growth(NULL);
    if (grown > LIMIT_KB)
        fail_msg("%d executions left %ld KB", ROUNDS * CASES_N, grown);
}

static void test_the_least_leak_is_seen(void **state)
{
    void **chain = NULL;
    (void)state;
    if (resident_kb() < 0)
        skip();
    long grown = growth(&chain);
    while (chain != NULL) {
        void **next = *chain;
        free((void *)chain);
        chain = next;
    }
    if (grown <= LIMIT_KB)
        fail_msg("a leak left %ld KB", grown);
}

/* A search that has seen everything keeps nothing more. */
static void test_search_is_bounded(void **state)
{
    struct mla_search *search = mla_search_begin(MLA_OP_RING, false, MLA_SEARCH_GUIDED, 1);
    const struct mla_verdict verdict = {.relation = "", .max_value_ratio = 0.5};
    (void)state;
    draw();
    for (int i = 0; i < CASES_N; i++)
        mla_search_learn(search, &cases[i], &verdict);
    size_t kept = mla_search_kept(search);
    for (int i = 0; i < 50 * CASES_N; i++)
        mla_search_learn(search, &cases[i % CASES_N], &verdict);
    assert_int_equal(mla_search_kept(search), kept);
    mla_search_end(search);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judging_leaves_nothing),
        cmocka_unit_test(test_the_least_leak_is_seen),
        cmocka_unit_test(test_search_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
