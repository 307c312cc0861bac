/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_oracle.c - the fast oracle with each thread count, and the plain definition, in turn.
 *
 * Machines are shared and drift: each repetition measures everything once, one after the other, so
 * that what slows one slows its neighbours too; the ratio of medians is what is reported.
 */
#include "fuzz/mlacheck/bench_oracle.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"

#define REPETITIONS 5

static const struct mla_bench_shape shapes[] = {
    {"deepseek", "one sparse query row x 128 heads, K 2048",
     "sparse v=1 S=1 S_kv=8192 H=128 Rr=64 K=2048 tiled=0 dense=0 offset=- order=mx4 cores=1 "
     "threads=0 scale=0x1.14f5b8p-3 family=upstream region=normal amount=0 indices=uniform "
     "poison=nan stats=0 seed=1 rows=0 row_seed=1 slow=0 set=- put=-",
     1},
    {"upstream-4k", "one sparse query row x 32 heads, K 512",
     "sparse v=1 S=1 S_kv=4096 H=32 Rr=64 K=512 tiled=0 dense=0 offset=- order=mx4 cores=1 "
     "threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=uniform "
     "poison=nan stats=0 seed=1 rows=0 row_seed=1 slow=0 set=- put=-",
     4},
    {"small", "sixteen heads of one sparse query row, K 128",
     "sparse v=1 S=1 S_kv=257 H=16 Rr=64 K=128 tiled=0 dense=0 offset=- order=mx4 cores=1 "
     "threads=0 scale=0x1.555556p-5 family=full region=normal amount=0 indices=uniform "
     "poison=nan stats=0 seed=1 rows=0 row_seed=1 slow=0 set=- put=-",
     8},
    {"kimi-row", "eight rows of a ring of 8 ranks that see up to 8192 keys, 576/512",
     "ring v=1 R=8 B=1 H=2 Nq=64 Nk=1024 Bk=1 G=8192 Bg=1 DH=576 DV=512 L=8192 scale=0x1.14f5b8p-3 "
     "balanced=0 slot=- P=- topology=ring links=2 q_chunk=32 k_chunk=640 threads=0 "
     "family=upstream region=outlier amount=0 poison=nan future=- stats=0 seed=1 rows=8 "
     "row_seed=1 slow=0 set=- put=-",
     1},
};

const struct mla_bench_shape *mla_bench_oracle_shapes(size_t *shapes_n)
{
    *shapes_n = sizeof shapes / sizeof shapes[0];
    return shapes;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, double *spread)
{
    qsort(times, REPETITIONS, sizeof *times, by_value);
    double middle = times[REPETITIONS / 2];
    *spread = (times[REPETITIONS - 1] - times[0]) / middle;
    return middle;
}

static void forget(struct mla_subject *subject)
{
    for (int64_t i = 0; i < subject->rows_n; i++) {
        mla_truth_free(subject->truths[i]);
        subject->truths[i] = NULL;
    }
    subject->truths_made = false;
}

/* All rows, fast; negative when the oracle failed. */
static double time_fast(struct mla_subject *subject, int threads)
{
    double start = mla_call_clock();
    int32_t status = mla_rows_truths(subject, threads, false);
    double seconds = mla_call_clock() - start;
    forget(subject);
    return status == MLA_OK ? seconds : -1;
}

/* The first n rows by the definition, as seconds for all of them. */
static double time_definition(const struct mla_subject *subject, int64_t n)
{
    double start = mla_call_clock();
    for (int64_t i = 0; i < n; i++) {
        struct mla_truth *truth;
        if (mla_rows_truth(subject->tensors, subject->rows[i], true, &truth) != MLA_OK)
            return -1;
        mla_truth_free(truth);
    }
    return (mla_call_clock() - start) / (double)n * (double)subject->rows_n;
}

/* Sizes, from the first row. */
static bool describe(const struct mla_subject *subject, struct mla_bench_oracle *result)
{
    struct mla_truth *truth;
    if (mla_rows_truth(subject->tensors, subject->rows[0], false, &truth) != MLA_OK)
        return false;
    struct mla_truth_info info = mla_truth_info(truth);
    result->rows_n = subject->rows_n;
    result->keys_n = info.keys_n;
    result->width = info.width;
    result->columns_n = info.columns_n;
    mla_truth_free(truth);
    return info.state == MLA_ROW_OK;
}

static const char *measure(const struct mla_bench_shape *shape, struct mla_subject *subject,
                           const int *threads, int threads_n, struct mla_bench_oracle *result)
{
    double fast[8][REPETITIONS], plain[REPETITIONS];
    if (!describe(subject, result) || time_fast(subject, threads[0]) < 0) /* and warm up */
        return "the oracle failed";
    for (int i = 0; i < REPETITIONS; i++) {
        for (int t = 0; t < threads_n; t++)
            if ((fast[t][i] = time_fast(subject, threads[t])) < 0)
                return "the oracle failed";
        if ((plain[i] = time_definition(subject, shape->definition_n)) < 0)
            return "the oracle failed";
    }
    for (int t = 0; t < threads_n; t++)
        result->seconds[t] = median(fast[t], &result->spread[t]);
    result->definition_seconds = median(plain, &result->definition_spread);
    return NULL;
}

const char *mla_bench_oracle_run(const struct mla_bench_shape *shape, const int *threads,
                                 int threads_n, struct mla_bench_oracle *result)
{
    static char error[MLA_CASE_ERROR_MAX];
    struct mla_case test;
    struct mla_subject *subject;
    if (mla_case_parse(shape->line, strlen(shape->line), &test, error) != MLA_OK ||
        mla_case_problem(&test, INT64_MAX, error) != NULL ||
        mla_subject_make(&test, &subject, error) != MLA_OK)
        return error;
    const char *problem = measure(shape, subject, threads, threads_n, result);
    mla_subject_free(subject);
    return problem;
}
