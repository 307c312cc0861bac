/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_row.c - attention of one (head, query row) over an explicit list of keys.
 */
#include "fuzz/faults/plain_arith.h"

#include <math.h>

static bool is_two_pass(enum mla_plain_method method)
{
    return method == MLA_PLAIN_TWO_PASS || method == MLA_PLAIN_TWO_PASS_ROUNDED ||
           method == MLA_PLAIN_TWO_PASS_FLOAT || method == MLA_PLAIN_LOWER_SHIFT ||
           method == MLA_PLAIN_BLOCKED;
}

void mla_plain_row_begin(struct mla_plain_row *row)
{
    row->max = -INFINITY;
    row->sum = 0.0f;
    row->seen_n = 0;
    row->run.tiles_n = 0;
    row->run.sum_excess = 0.0f;
    for (int64_t c = 0; c < row->value_n; c++) {
        row->o[c] = 0.0f;
    }
}

void mla_plain_row_add(struct mla_plain_row *row, const uint16_t *q_value, const uint16_t *q_rope,
                       struct mla_plain_variant variant)
{
    row->seen_n += row->keys_n;
    row->run.scale = mla_plain_scale(row, variant);
    mla_plain_fill_scores(row, q_value, q_rope, variant);
    if (is_two_pass(variant.method)) {
        mla_plain_two_pass(row, variant);
    } else if (variant.method == MLA_PLAIN_MERGED) {
        mla_plain_merge(row, variant);
    } else {
        mla_plain_online(row, variant);
    }
}

void mla_plain_row_end(struct mla_plain_row *row, struct mla_plain_variant variant)
{
    if (row->seen_n == 0) {
        mla_plain_finish_empty(row, variant);
    } else {
        mla_plain_finish(row, variant);
    }
}

void mla_plain_row_attend(struct mla_plain_row *row, const uint16_t *q_value,
                          const uint16_t *q_rope, struct mla_plain_variant variant)
{
    mla_plain_row_begin(row);
    if (row->keys_n > 0) {
        mla_plain_row_add(row, q_value, q_rope, variant);
    }
    mla_plain_row_end(row, variant);
}
