/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_oracle.c - the fast oracle with each thread count, and the plain definition, in turn.
 *
 * Machines are shared and drift: each repetition measures everything once, one after the other, so
 * that what slows one slows its neighbours too; the ratio of medians is what is reported.
 */
#include "fuzz/mlacheck/bench_oracle.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"
#include "fuzz/mlacheck/bench.h"
#include "fuzz/mlacheck/bench_shapes.h"

#define REPETITIONS 5

static const struct mla_bench_oracle_shape shapes[] = {
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

const struct mla_bench_oracle_shape *mla_bench_oracle_shapes(size_t *shapes_n)
{
    *shapes_n = sizeof shapes / sizeof shapes[0];
    return shapes;
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

/* What all rows of the table share: sizes, from the first query row. */
static bool describe(const struct mla_subject *subject, const char *shape,
                     struct mla_bench_row *row)
{
    struct mla_truth *truth;
    if (mla_rows_truth(subject->tensors, subject->rows[0], false, &truth) != MLA_OK)
        return false;
    struct mla_truth_info info = mla_truth_info(truth);
    *row = (struct mla_bench_row){.op = "oracle", .shape = shape, .times_first = 1};
    mla_case_id(&subject->tensors->test, row->id);
    row->rows_n = subject->rows_n;
    row->keys_n = info.keys_n;
    row->flops =
        2 * (double)row->rows_n * (double)info.keys_n * (double)(info.width + info.columns_n);
    mla_truth_free(truth);
    return info.state == MLA_ROW_OK;
}

/* The definition (threads 0, one thread) and each thread count: times, and the peaks beside them. */
struct column {
    double seconds[REPETITIONS], peak[REPETITIONS], share[REPETITIONS];
    int threads;
    int moved; /* repetitions in which the peak did not stand still */
};

static bool time_column(struct mla_bench *bench, struct mla_subject *subject, int64_t definition_n,
                        double flops, struct column *column, int i)
{
    int threads = column->threads > 0 ? column->threads : 1;
    double before = mla_bench_peak(bench, bench->isa, threads);
    double seconds =
        column->threads > 0 ? time_fast(subject, threads) : time_definition(subject, definition_n);
    double after = mla_bench_peak(bench, bench->isa, threads);
    if (seconds <= 0 || before < 0 || after < 0)
        return false;
    column->seconds[i] = seconds;
    column->peak[i] = (before + after) / 2;
    column->share[i] = flops / seconds / column->peak[i];
    column->moved += fabs(after - before) > MLA_BENCH_STILL * column->peak[i];
    return true;
}

static bool add_rows(struct mla_bench *bench, const struct mla_bench_row *shared,
                     struct column *columns, int columns_n)
{
    size_t first = bench->rows_n;
    for (int c = 0; c < columns_n; c++) {
        struct mla_bench_row *row = mla_bench_add_row(bench);
        if (row == NULL)
            return false;
        *row = *shared;
        row->name = columns[c].threads > 0 ? "fast" : "definition";
        row->threads = columns[c].threads > 0 ? columns[c].threads : 1;
        row->noisy = 4 * columns[c].moved >= REPETITIONS;
        row->peak = mla_bench_median(columns[c].peak, REPETITIONS);
        row->of_peak = mla_bench_median(columns[c].share, REPETITIONS);
        mla_bench_set_times(row, columns[c].seconds, REPETITIONS);
        row->times_definition = bench->rows[first].seconds / row->seconds;
        row->times_first = c == 0 ? 1 : bench->rows[first + 1].seconds / row->seconds;
    }
    return true;
}

static const char *measure(struct mla_bench *bench, const struct mla_bench_oracle_shape *shape,
                           struct mla_subject *subject)
{
    struct mla_bench_row shared;
    struct column columns[1 + MLA_OPTIONS_THREADS_MAX] = {0};
    int n = 1 + bench->options.threads_n;
    for (int c = 1; c < n; c++)
        columns[c].threads = bench->options.threads[c - 1];
    if (!describe(subject, shape->name, &shared) || time_fast(subject, columns[1].threads) < 0)
        return "the oracle failed"; /* or is warm now */
    for (int i = 0; i < REPETITIONS; i++)
        for (int c = 0; c < n; c++) {
            if (mla_interrupted)
                return NULL; /* no row of fewer repetitions */
            if (!time_column(bench, subject, shape->definition_n, shared.flops, &columns[c], i))
                return "the oracle failed, or threads cannot be had";
        }
    return add_rows(bench, &shared, columns, n) ? NULL : "out of memory";
}

static const char *run_shape(struct mla_bench *bench, const struct mla_bench_oracle_shape *shape,
                             char error[MLA_CASE_ERROR_MAX])
{
    struct mla_case test;
    struct mla_subject *subject;
    if (mla_bench_shape_case(shape->line, &test, error) != NULL ||
        mla_subject_make(&test, &subject, error) != MLA_OK)
        return error;
    const char *problem = measure(bench, shape, subject);
    mla_subject_free(subject);
    return problem;
}

int mla_bench_measure_oracle(struct mla_bench *bench)
{
    int code = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && code == 0 && !mla_interrupted; i++) {
        char error[MLA_CASE_ERROR_MAX];
        size_t first = bench->rows_n;
        if (bench->options.shape != NULL && fnmatch(bench->options.shape, shapes[i].name, 0) != 0)
            continue;
        bench->shapes_n++;
        const char *problem = run_shape(bench, &shapes[i], error);
        if (problem != NULL)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bench", "%s: %s", shapes[i].name,
                                    problem);
        code = mla_bench_report(bench, first);
    }
    return code;
}
