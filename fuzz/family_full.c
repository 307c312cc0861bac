/* SPDX-License-Identifier: Apache-2.0
 *
 * family_full.c - N(0,1) keys and values under queries of every size: q is 2^amount * N(0,1),
 * amount from -6 (nearly flat weights) to 4 (one key takes nearly all).
 */
#include <math.h>

#include "fuzz/family.h"

/* row[c] = size * N(0,1), size a power of two. */
MLA_FAMILY_INNER void fill_inner(uint64_t key, uint64_t a, uint64_t position, double size,
                                 int64_t width, uint16_t *row)
{
    for (int64_t c = 0; c < width; c++)
        row[c] = mla_number_to_bf16(
            size * mla_number_normal(mla_number_at(key, a, position, (uint64_t)c)));
}

MLA_FAMILY_WIDE static void fill_wide(uint64_t key, uint64_t a, uint64_t position, double size,
                                      int64_t width, uint16_t *row)
{
    fill_inner(key, a, position, size, width, row);
}

static void fill(uint64_t key, uint64_t a, uint64_t position, double size, int64_t width,
                 uint16_t *row)
{
    if (mla_family_is_wide())
        fill_wide(key, a, position, size, width, row);
    else
        fill_inner(key, a, position, size, width, row);
}

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    fill(mla_stream_key(view->test->seed, MLA_STREAM_QUERY), (uint64_t)batch << 32 | (uint64_t)head,
         (uint64_t)position, ldexp(1.0, (int)view->test->amount), view->width, row);
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    fill(mla_stream_key(view->test->seed, MLA_STREAM_KEY), (uint64_t)batch, (uint64_t)position, 1.0,
         view->width, row);
}

static const enum mla_region regions[] = {MLA_REGION_NORMAL};

const struct mla_family mla_family_full = {"full",  "queries of every size, 2^amount * N(0,1)",
                                           regions, sizeof regions / sizeof regions[0],
                                           -6,      4,
                                           query,   key,
                                           false};
