/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_shapes.h - the shapes kernels are timed on, and what one call of each must do at least.
 */
#ifndef MLA_MLACHECK_BENCH_SHAPES_H
#define MLA_MLACHECK_BENCH_SHAPES_H

#include "fuzz/case.h"

struct mla_bench_shape {
    const char *name;
    const char *what;
    const char *line; /* the case: its data come from the generator like any other's. With slow=1 it
                         is dear, and only timed when named */
};

const struct mla_bench_shape *mla_bench_shapes(size_t *shapes_n);

/*
 * Is this the shape, or one of those, that `asked` names? A shape's own name; a glob; or what several
 * names begin with, before a dash, if no shape has that for a name: "deepseek-short" is -2, -16 and -32.
 * NULL asks for all. A dear shape is not meant by NULL or a glob.
 */
bool mla_bench_shape_is_asked(const struct mla_bench_shape *shape, bool dear, const char *asked);

/* Parse a shape's line into a case that can be made. NULL, or why not (in error). */
const char *mla_bench_shape_case(const char *line, struct mla_case *test,
                                 char error[MLA_CASE_ERROR_MAX]);

/*
 * Useful flops of one call, a multiply-add being two: for every query row and head, and every key
 * that row sees (copies counted), 2 * (width of a key + width of a value). What is computed and
 * masked, and the softmax itself, is not counted.
 */
double mla_bench_flops(const struct mla_case *test);

/*
 * Bytes of one call. Sparse: the gathered rows, 2 * keys seen * width of a key for each query row,
 * whatever a cache saves of them. Ring: q, the shards and out once, and every shard once for each
 * other rank it travels to.
 */
double mla_bench_bytes(const struct mla_case *test);

#endif
