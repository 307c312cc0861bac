/* SPDX-License-Identifier: Apache-2.0
 *
 * output_hash.h - one number for all that a call put out.
 */
#ifndef MLA_FUZZ_OUTPUT_HASH_H
#define MLA_FUZZ_OUTPUT_HASH_H

#include "fuzz/tensors.h"

/*
 * A hash of every element of every output, statistics included, in the order of tensors->list: rows that
 * nobody judges count too. Two calls of one case with equal bits have equal numbers; others have different
 * ones but for a chance of 2^-48. A NaN counts as one, whatever its sign and payload: which of two NaN an
 * operation hands on is the compiler's choice. 1 .. 2^48-1: such a number is exact in a double, and in the
 * 15 digits that SQLite prints of one.
 */
int64_t mla_output_hash(const struct mla_tensors *tensors);

#endif
