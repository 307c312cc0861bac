/* SPDX-License-Identifier: Apache-2.0
 *
 * family_full.c - N(0,1) keys and values under queries of every size: q is 2^amount * N(0,1),
 * amount from -6 (nearly flat weights) to 4 (one key takes nearly all).
 */
#include <math.h>

#include "fuzz/family.h"

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    uint64_t key = mla_stream_key(view->test->seed, MLA_STREAM_QUERY);
    uint64_t a = (uint64_t)batch << 32 | (uint64_t)head;
    for (int64_t c = 0; c < view->width; c++)
        row[c] = mla_number_to_bf16(
            ldexp(mla_number_normal(mla_number_at(key, a, (uint64_t)position, (uint64_t)c)),
                  (int)view->test->amount));
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_KEY);
    for (int64_t c = 0; c < view->width; c++)
        row[c] = mla_number_to_bf16(mla_number_normal(
            mla_number_at(stream, (uint64_t)batch, (uint64_t)position, (uint64_t)c)));
}

static const enum mla_region regions[] = {MLA_REGION_NORMAL};

const struct mla_family mla_family_full = {"full",  "queries of every size, 2^amount * N(0,1)",
                                           regions, sizeof regions / sizeof regions[0],
                                           -6,      4,
                                           query,   key,
                                           false};
