/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_oracle.h - how long the oracle takes for the query rows of the shapes people use.
 */
#ifndef MLA_MLACHECK_BENCH_ORACLE_H
#define MLA_MLACHECK_BENCH_ORACLE_H

#include <stddef.h>
#include <stdint.h>

struct mla_bench_oracle_shape {
    const char *name;
    const char *what;
    const char *line;     /* the case whose drawn rows are evaluated */
    int64_t definition_n; /* rows the plain definition is timed on */
};

/* The oracle's shapes; mla_bench_measure_oracle (bench.h) times them. */
const struct mla_bench_oracle_shape *mla_bench_oracle_shapes(size_t *shapes_n);

#endif
