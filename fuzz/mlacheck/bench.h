/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h - what the files of `mlacheck bench` share: the wish, and the rows that come of it.
 */
#ifndef MLA_MLACHECK_BENCH_H
#define MLA_MLACHECK_BENCH_H

#include "fuzz/case.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/crew.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/peak.h"
#include "fuzz/mlacheck/peer.h"

#define MLA_BENCH_STILL 0.1 /* relative difference of two peaks that stand still */

/* One thing timed: a kernel, a peer or an oracle on a shape, with a number of threads. */
struct mla_bench_row {
    const char *op;
    const char *shape;
    const char *name; /* of the kernel, the peer, or which oracle */
    char id[MLA_CASE_ID_BYTES];
    bool is_peer;
    int threads;
    int reps;
    double seconds, spread; /* median; (slowest - fastest) / median */
    double flops, bytes;    /* of one call */
    double peak;            /* flop/s of so many threads, median of what was taken at its sides */
    double of_peak;         /* median over the repetitions of each one's share */
    bool has_own;           /* the kernel uses a lesser instruction set than the peak's */
    enum mla_peak_isa own;
    double of_own;      /* then its share of that one's peak */
    double times_first; /* the same thing's seconds with the first thread count / these */
    bool noisy;         /* a quarter of the repetitions or more was disturbed */
    int left_out;       /* disturbed repetitions beside reps */

    /* peers */
    const char *against; /* the fastest kernel of the shape and thread count */
    double ratio;        /* the peer's seconds / that one's */
    double cores;        /* processor time / (seconds * threads) */

    /* the oracle */
    int64_t rows_n, keys_n;
    double times_definition;
};

struct mla_bench {
    struct mla_options options;
    double seconds; /* a thing is timed so long at least */
    struct mla_kernel_list kernels;
    bool chosen; /* kernels were named: none is skipped for being slow */
    enum mla_peak_isa isa;
    struct mla_store *store;

    struct mla_bench_row *rows;
    size_t rows_n, rows_room;
    double best_peak[MLA_PEAK_ISAS_N][MLA_CREW_MAX + 1]; /* of so many threads, in this run */
    double *peaks;                                       /* of isa and one thread, all of the run */
    size_t peaks_n, peaks_room;
    bool fault;   /* a kernel failed a valid call, or a peer computed something else */
    int shapes_n; /* timed */
};

/* The instruction set a built-in kernel is made for. false: unknown. */
bool mla_bench_kernel_isa(const char *name, enum mla_peak_isa *isa);
/* Names of the kernels that are timed when none is named, in order; NULL ends. */
const char *mla_bench_kernel_default(size_t i);

/* A new empty row, or NULL without memory. Pointers to earlier ones may move. */
struct mla_bench_row *mla_bench_add_row(struct mla_bench *bench);
/* A set's peak of so many threads now, flop/s, of which the best is remembered, and all of one thread
 * and the widest set. Negative: no threads. */
double mla_bench_peak(struct mla_bench *bench, enum mla_peak_isa isa, int threads);
/* More than a tenth below the best so far: others had the processors. */
bool mla_bench_is_low(const struct mla_bench *bench, enum mla_peak_isa isa, int threads,
                      double peak);

/* Sorted in place. */
double mla_bench_median(double *values, int n);
/* seconds and spread of n times, sorted in place. */
void mla_bench_set_times(struct mla_bench_row *row, double *times, int n);

/* What needs more than one row of a shape, those from first on: the gain of threads over the same
 * thing's first row, and the ratio of a peer to the fastest kernel with as many threads. */
void mla_bench_relate(struct mla_bench *bench, size_t first);

/*
 * Time one case, adding a row for each kernel, peer and thread count. speeds: of the kernels, by
 * mla_bench_trial. 0, or an exit code after complaining.
 */
int mla_bench_measure(struct mla_bench *bench, const char *shape, const struct mla_case *test,
                      const double speeds[MLA_KERNELS_MAX]);
/* Flop/s of each kernel with one thread, roughly, from one small call; 0: not offered. */
int mla_bench_trial(struct mla_bench *bench, const char *line, double speeds[MLA_KERNELS_MAX]);
/* The oracle's shapes that were asked for. */
int mla_bench_measure_oracle(struct mla_bench *bench);

/* bench_report.c: rows from first on as a table, and into the store. */
int mla_bench_report(const struct mla_bench *bench, size_t first);
/* The last line of --json. */
void mla_bench_report_json(struct mla_bench *bench);

#endif
