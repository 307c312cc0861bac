/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_arith.h - the steps of one row's attention. Private to plain_row.c and the files beside it.
 *
 * Each step is a file with its honest way and the faults planted in it.
 */
#ifndef MLA_FAULTS_PLAIN_ARITH_H
#define MLA_FAULTS_PLAIN_ARITH_H

#include "fuzz/faults/plain_row.h"

#include <string.h>

/* Do they differ in a bit? A NaN and the same NaN do not: that is no difference a fault made. */
static inline bool mla_plain_differs(float a, float b)
{
    return memcmp(&a, &b, sizeof a) != 0;
}

/* plain_score.c: row->scores, the unscaled scores of all listed keys. */
void mla_plain_fill_scores(struct mla_plain_row *row, const uint16_t *q_value,
                           const uint16_t *q_rope, struct mla_plain_variant variant);

/* plain_exp.c: e^x for x <= 0. */
float mla_plain_exp(float x, struct mla_plain_variant variant);

/* plain_scale.c: the scale the row's arguments are formed with. */
float mla_plain_scale(const struct mla_plain_row *row, struct mla_plain_variant variant);

/* plain_mask.c: the score a hidden key is given, and whether it takes part with weight p. */
float mla_plain_mask_score(const struct mla_plain_row *row, struct mla_plain_variant variant);
bool mla_plain_mask_adds(float p, struct mla_plain_variant variant);

/* plain_max.c: the running maximum after the tile [first, end), which begins with row->max; the
 * largest of max and n scores (a NaN never wins, and makes its own p a NaN later). */
float mla_plain_larger(float max, const float *scores, int64_t n);
float mla_plain_tile_max(const struct mla_plain_row *row, int64_t first, int64_t end,
                         struct mla_plain_variant variant);

/* plain_online.c, plain_two_pass.c: row->max, unscaled, row->sum and row->o, unnormalised. */
void mla_plain_online(struct mla_plain_row *row, struct mla_plain_variant variant);
void mla_plain_two_pass(struct mla_plain_row *row, struct mla_plain_variant variant);

/* plain_accumulate.c: o += p*value; the accumulators as they are stored after a tile. */
void mla_plain_accumulate(struct mla_plain_row *row, const uint16_t *value, float p,
                          struct mla_plain_variant variant);
void mla_plain_store_sums(struct mla_plain_row *row, struct mla_plain_variant variant);

/* plain_finish.c: o / sum and the statistics; what a row without keys results in. */
void mla_plain_finish(struct mla_plain_row *row, struct mla_plain_variant variant);
void mla_plain_finish_empty(struct mla_plain_row *row, struct mla_plain_variant variant);

#endif
