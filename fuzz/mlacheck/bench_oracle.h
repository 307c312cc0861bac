/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_oracle.h - how long the oracle takes for the query rows of the shapes people use.
 */
#ifndef MLA_MLACHECK_BENCH_ORACLE_H
#define MLA_MLACHECK_BENCH_ORACLE_H

#include <stddef.h>
#include <stdint.h>

struct mla_bench_shape {
    const char *name;
    const char *what;
    const char *line;     /* the case whose drawn rows are evaluated */
    int64_t definition_n; /* rows the plain definition is timed on */
};

/* The oracle's shapes. */
const struct mla_bench_shape *mla_bench_oracle_shapes(size_t *shapes_n);

/* Medians over the repetitions, all measured in turn in the same minute. */
struct mla_bench_oracle {
    int64_t rows_n, keys_n, width, columns_n;
    double definition_seconds; /* for all rows, from definition_n of them, one thread */
    double definition_spread;  /* (slowest - fastest) / median */
    double seconds[8];         /* fast, per thread count */
    double spread[8];
};

/* Measure one shape. NULL, or why it could not be. */
const char *mla_bench_oracle_run(const struct mla_bench_shape *shape, const int *threads,
                                 int threads_n, struct mla_bench_oracle *result);

#endif
