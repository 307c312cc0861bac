/* SPDX-License-Identifier: Apache-2.0
 *
 * family_exact.c - cases whose answer is exact: the mean of small integers, or the copy of one row.
 *
 * flat: all scores are 0 and the values are small integers or powers of two. select: one key in
 * sixteen positions stands more than 104/scale above the keys before it, so every weight but one
 * underflows and the output is that key's value bit for bit.
 */
#include <math.h>

#include "fuzz/family.h"

#define SELECT_EVERY 16

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    (void)batch;
    (void)head;
    (void)position;
    for (int64_t c = 0; c < view->width; c++)
        row[c] = 0;
    if (view->test->region == MLA_REGION_SELECT)
        row[view->width - 1] = 0x3f80; /* 1 */
}

static double value(const struct mla_family_view *view, uint64_t bits)
{
    double sign = bits >> 63 ? -1.0 : 1.0;
    if (view->test->amount > 0)
        return sign * ldexp(1.0, (int)(bits % (uint64_t)(2 * view->test->amount + 1)) -
                                     (int)view->test->amount);
    return sign * (double)(bits % 9);
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_KEY);
    for (int64_t c = 0; c < view->width; c++)
        row[c] = mla_number_to_bf16(
            value(view, mla_number_at(stream, (uint64_t)batch, (uint64_t)position, (uint64_t)c)));
    /* Steps of 128/scale, each a multiple of the last: exact in bf16 up to 256 steps. */
    double step = ldexp(128.0, -ilogb(view->scale));
    bool chosen = view->test->region == MLA_REGION_SELECT && position % SELECT_EVERY == 0;
    int64_t rank = position / SELECT_EVERY;
    row[view->width - 1] = chosen && rank < 256 ? mla_number_to_bf16(step * (double)(rank + 1)) : 0;
}

static const enum mla_region regions[] = {MLA_REGION_FLAT, MLA_REGION_SELECT};

const struct mla_family mla_family_exact = {
    "exact", "exact answers: mean of integers or powers of two, or the copy of one row",
    regions, sizeof regions / sizeof regions[0],
    0,       8,
    query,   key,
    false};
