/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_result.h - the output of a kernel that ran elsewhere, from a safetensors file. Names and shapes:
 * exchange_layout.c; contents: exchange_result.c.
 */
#ifndef MLA_FUZZ_EXCHANGE_RESULT_H
#define MLA_FUZZ_EXCHANGE_RESULT_H

#include "fuzz/exchange.h"

/* Element i of a tensor of BF16, F16 or F32. */
float mla_exchange_element(const struct mla_safetensor *tensor, int64_t i);

/* Has the file statistics, one pair of numbers a row? */
bool mla_exchange_has_stats(const struct mla_safetensors *file);

/*
 * Are these results of the case, as far as names, dtypes and shapes tell? Tensors, ring: of each rank,
 * "out.0", .. ("out" will do for one rank); sparse: "out":
 *
 *   out    BF16, F16 or F32: [batch, heads, q_rows, head_dim_v]; [queries, heads*512] or
 *          [queries, heads, 512], in the column order of the call
 *   stats  optional, F32: [batch, heads, 2*q_rows, 1]; [queries, heads, 2] (max, sum)
 *   lse    optional, F32: [batch, heads, q_rows]; [queries, heads] (max + ln(sum)), not beside stats
 *
 * Leading axes of 1 and a last one of 1 of stats and lse may be there or not. The axes of heads and of
 * rows may be longer than that (padding; of stats the rows of maxima and of sums each), and the row axis
 * may stand as two, tiles and rows of a tile: only what the case has is looked at. stats must be given
 * exactly if the case asks for them (mla_exchange_has_stats).
 *
 * MLA_OK; MLA_ERR_PARAM with the tensor and what is wrong with it, what the case has and what the file has,
 * in error.
 */
int32_t mla_exchange_result_check(const struct mla_case *test, const struct mla_safetensors *file,
                                  char error[MLA_EXCHANGE_ERROR_MAX]);

/* Put them into the outputs of the case's tensors. The same, and MLA_ERR_NOMEM. */
int32_t mla_exchange_result_load(struct mla_tensors *tensors, const struct mla_safetensors *file,
                                 char error[MLA_EXCHANGE_ERROR_MAX]);

#endif
