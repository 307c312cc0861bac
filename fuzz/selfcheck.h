/* SPDX-License-Identifier: Apache-2.0
 *
 * selfcheck.h - what the verdict is tested on: cases for adversaries, and one evaluation of the truth
 * against the other.
 */
#ifndef MLA_FUZZ_SELFCHECK_H
#define MLA_FUZZ_SELFCHECK_H

#include "fuzz/judge.h"

/*
 * Draw a valid case, small enough to be run by an adversary in milliseconds: half of them as `run`
 * draws them, made small; the others where bounds are hard: one to three keys, hundreds of rescales,
 * data of family extreme, now and then 2048 keys. A function of the stream only.
 */
void mla_selfcheck_draw(struct mla_case *test, enum mla_op op, struct mla_rng *rng);

/*
 * The largest disagreement of the fast evaluation and the plain definition over the first rows_n rows
 * that the subject's judge looks at (mla_truth_disagreement: beyond 1 one of the two is wrong); *rows
 * counts them. MLA_OK, or the oracle's status.
 */
int32_t mla_selfcheck_compare(struct mla_subject *subject, int64_t rows_n, double *worst,
                              int64_t *rows);

#endif
