/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_layout.h - where in a file of results the rows of a case stand. Shared by exchange_result.c and
 * its checks; needs the case alone, no tensors of it.
 */
#ifndef MLA_FUZZ_EXCHANGE_LAYOUT_H
#define MLA_FUZZ_EXCHANGE_LAYOUT_H

#include "fuzz/exchange.h"

#define MLA_EXCHANGE_AXES 4 /* batch, head, row, column; sparse: 1, row, head, column */

/* What a rank's results have: batch entries (sparse: 1), heads, rows. */
struct mla_exchange_extent {
    int64_t batch, heads, rows, columns;
    bool is_ring;
};

struct mla_exchange_extent mla_exchange_extent(const struct mla_case *test);

/* A result tensor as the axes of the case, heads and rows perhaps longer; tensor NULL: there is none. */
struct mla_exchange_view {
    const struct mla_safetensor *tensor;
    int64_t dims[MLA_EXCHANGE_AXES];
};

/* The results of one rank. */
struct mla_exchange_rank {
    enum mla_out_format format; /* of out */
    struct mla_exchange_view out, stats, lse;
};

/* Find and check them, names, dtypes and shapes: MLA_OK, or MLA_ERR_PARAM and why in error. */
int32_t mla_exchange_layout(const struct mla_case *test, const struct mla_safetensors *file,
                            int64_t rank, struct mla_exchange_rank *results,
                            char error[MLA_EXCHANGE_ERROR_MAX]);

/* Where (batch, head, row) begins in the tensor. */
int64_t mla_exchange_row_at(const struct mla_exchange_extent *extent,
                            const struct mla_exchange_view *view, int64_t batch, int64_t head,
                            int64_t row);

#endif
