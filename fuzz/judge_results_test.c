/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_results_test.c - results that are there already, as from a file: their statistics and log-sum-exp.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/judge_internal.h"
#include "fuzz/kernels.h"

static const struct mla_kernel *honest;

/* An honest call's tensors, its statistics in place; for results to be spoiled and judged. */
static struct mla_subject *called(enum mla_op op)
{
    struct mla_subject *subject = NULL;
    struct mla_verdict verdict;
    struct mla_case test;
    const struct mla_judge_options options = {.oracle_threads = 1};
    char error[MLA_CASE_ERROR_MAX];
    mla_case_init(&test, op);
    test.stats = 1;
    test.rows = 0;
    if (mla_subject_make(&test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, honest, &options, &verdict);
    assert_int_equal(verdict.kind, MLA_VERDICT_PASS);
    return subject;
}

static struct mla_verdict judge_results(struct mla_subject *subject)
{
    struct mla_verdict verdict;
    const struct mla_judge_options options = {.oracle_threads = 1};
    mla_subject_judge_results(subject, honest, &options, &verdict);
    return verdict;
}

/* The row of a rank's i-th statistic. */
static int64_t row_number(enum mla_op op, struct mla_row row)
{
    return op == MLA_OP_RING ? row.row : row.head;
}

/* Of rows whose statistics are wrong the worst one is shown, with its own words, wherever it stands. */
static void test_the_worst_statistics_are_shown(void **state)
{
    static const int64_t bad[] = {2, 5, 9};
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_subject *subject = called((enum mla_op)op);
        struct mla_tensors *t = mla_subject_tensors(subject);
        float *max = op == MLA_OP_RING ? t->stats[0] : t->sparse.stats;
        int64_t step = op == MLA_OP_RING ? 1 : 2;
        for (int i = 0; i < 3; i++)
            max[bad[i] * step] += i == 1 ? 8.0f : 1.0f;
        struct mla_verdict verdict = judge_results(subject);
        char said[64];
        snprintf(said, sizeof said, "max=%a ", (double)max[bad[1] * step]);
        assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
        assert_true(verdict.has_row && row_number((enum mla_op)op, verdict.row) == bad[1]);
        assert_memory_equal(verdict.element, "max[", 4);
        assert_true(verdict.got == (double)max[bad[1] * step]);
        assert_true(verdict.max_ratio == verdict.max_stats_ratio);
        assert_non_null(strstr(verdict.reason, said));
        mla_subject_free(subject);
    }
}

/* The log-sum-exp alone: the same, by its own name, with what it may be. */
static void test_the_worst_log_sum_exp_is_shown(void **state)
{
    static const int64_t bad[] = {2, 5, 9};
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_subject *subject = called((enum mla_op)op);
        struct mla_tensors *t = mla_subject_tensors(subject);
        int64_t n = op == MLA_OP_RING ? t->ring.q_rows : t->sparse.heads;
        float *lse = t->lse[0] = malloc((size_t)n * sizeof *lse);
        assert_non_null(lse);
        for (int64_t i = 0; i < n; i++) {
            const float *sum,
                *max = mla_judge_stats_of(
                    t, op == MLA_OP_RING ? (struct mla_row){.row = i} : (struct mla_row){.head = i},
                    &sum);
            lse[i] = (float)((double)*max + log((double)*sum));
        }
        t->lse_roundings = 4;
        struct mla_verdict verdict = judge_results(subject);
        if (verdict.kind != MLA_VERDICT_PASS)
            fail_msg("op %d: %s", op, verdict.reason);
        float due = lse[bad[1]];
        for (int i = 0; i < 3; i++)
            lse[bad[i]] += i == 1 ? 8.0f : 1.0f;
        verdict = judge_results(subject);
        assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
        assert_true(verdict.has_row && row_number((enum mla_op)op, verdict.row) == bad[1]);
        assert_memory_equal(verdict.element, "lse[", 4);
        assert_true(verdict.got == (double)lse[bad[1]]);
        assert_true(verdict.lo < verdict.hi && verdict.hi < verdict.lo + 0.01);
        assert_true(verdict.lo <= (double)due && verdict.hi >= (double)due);
        assert_non_null(strstr(verdict.reason, "log-sum-exp of the row"));
        mla_subject_free(subject);
    }
}

/* Two ranks, tokens 32 .. 127: rank 1 has 64, rank 0 has 32 and then 32 pad rows. */
static struct mla_case padded_case(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 2;
    test.ring.q_rows = 64;
    test.ring.kv_rows = 128;
    test.ring.gathered_rows = 256;
    test.ring.has_prior = 1;
    test.ring.kv_actual_isl = 32;
    test.ring.logical_n = 128;
    test.stats = 1;
    return test;
}

/* A row without keys: what stands for the logarithm of an empty sum, by either convention. */
static void test_log_sum_exp_without_keys(void **state)
{
    (void)state;
    static const struct {
        enum mla_lse_empty declared;
        float empty, other;
        bool passes;
    } rows[] = {{MLA_LSE_EMPTY_MINUS_INF, -INFINITY, 0, true},
                {MLA_LSE_EMPTY_MINUS_INF, INFINITY, 0, false},
                {MLA_LSE_EMPTY_PLUS_INF, INFINITY, 0, true},
                {MLA_LSE_EMPTY_PLUS_INF, -INFINITY, 0, false},
                {MLA_LSE_EMPTY_PLUS_INF, NAN, 0, false},
                {MLA_LSE_EMPTY_PLUS_INF, FLT_MAX, 0, false},
                {MLA_LSE_EMPTY_PLUS_INF, 0, 0, false},
                {MLA_LSE_EMPTY_PLUS_INF, INFINITY, INFINITY, false},
                {MLA_LSE_EMPTY_MINUS_INF, -INFINITY, -INFINITY, false}};
    struct mla_case test = padded_case();
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX];
    test.rows = 0;
    assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
    struct mla_tensors *t = mla_subject_tensors(subject);
    assert_int_equal(honest->ring(&t->ring, error, sizeof error), MLA_OK);
    t->lse_roundings = 4;
    for (int64_t d = 0; d < 2; d++) {
        t->lse[d] = malloc(64 * sizeof *t->lse[d]);
        assert_non_null(t->lse[d]);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        t->lse_empty = rows[i].declared;
        for (int64_t r = 0; r < 64; r++) { /* rank 0 has 32 pad rows */
            for (int64_t d = 0; d < 2; d++)
                t->lse[d][r] = (float)((double)t->stats[d][r] + log((double)t->stats[d][64 + r]));
            if (r >= 32)
                t->lse[0][r] = rows[i].empty;
        }
        if (isinf(rows[i].other)) /* a row that has keys */
            t->lse[1][7] = rows[i].other;
        struct mla_verdict verdict = judge_results(subject);
        if (verdict.kind != (rows[i].passes ? MLA_VERDICT_PASS : MLA_VERDICT_FAIL_CERTAIN))
            fail_msg("row %zu: %s", i, verdict.reason);
        assert_true(rows[i].passes ||
                    strstr(verdict.reason, isinf(rows[i].other)
                                               ? "log-sum-exp of the row"
                                               : "log-sum-exp of a row without keys") != NULL);
    }
    mla_subject_free(subject);
}

int main(void)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_worst_statistics_are_shown),
        cmocka_unit_test(test_the_worst_log_sum_exp_is_shown),
        cmocka_unit_test(test_log_sum_exp_without_keys),
    };
    if (mla_kernels_add(&kernels, "fault:plain", error, sizeof error) != MLA_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    honest = kernels.list[0].kernel;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
