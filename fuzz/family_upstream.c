/* SPDX-License-Identifier: Apache-2.0
 *
 * family_upstream.c - the input recipes of the two projects' own tests, and ramps.
 *
 * normal: N(0,1) (the sparse op's test). outlier: N(0,1) + 10*N(0,1)*Bernoulli(0.001) (the ring's).
 * ramp: values rising along columns and rows, so that a misplaced row or column shows.
 */
#include "fuzz/family.h"

MLA_FAMILY_INNER double element(const struct mla_family_view *view, uint64_t bits, int64_t position,
                                int64_t column)
{
    double value = mla_number_normal(bits);
    if (view->test->region == MLA_REGION_OUTLIER) {
        uint64_t coin = mla_number_mix(bits ^ 0x5bd1e995u);
        if (mla_number_unit(coin) < 0.001)
            value += 10.0 * mla_number_normal(mla_number_mix(coin));
    }
    if (view->test->region == MLA_REGION_RAMP)
        value = (double)(position % 64 - 32) / 32.0 + (double)(column % 128) / 128.0;
    return value;
}

MLA_FAMILY_INNER void fill_inner(const struct mla_family_view *view, uint64_t key, uint64_t a,
                                 int64_t position, uint16_t *row)
{
    for (int64_t c = 0; c < view->width; c++) {
        uint64_t bits = mla_number_at(key, a, (uint64_t)position, (uint64_t)c);
        row[c] = mla_number_to_bf16(element(view, bits, position, c));
    }
}

MLA_FAMILY_WIDE static void fill_wide(const struct mla_family_view *view, uint64_t key, uint64_t a,
                                      int64_t position, uint16_t *row)
{
    fill_inner(view, key, a, position, row);
}

static void fill(const struct mla_family_view *view, uint64_t key, uint64_t a, int64_t position,
                 uint16_t *row)
{
    if (mla_family_is_wide())
        fill_wide(view, key, a, position, row);
    else
        fill_inner(view, key, a, position, row);
}

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    fill(view, mla_stream_key(view->test->seed, MLA_STREAM_QUERY),
         (uint64_t)batch << 32 | (uint64_t)head, position, row);
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    fill(view, mla_stream_key(view->test->seed, MLA_STREAM_KEY), (uint64_t)batch, position, row);
}

static const enum mla_region regions[] = {MLA_REGION_NORMAL, MLA_REGION_OUTLIER, MLA_REGION_RAMP};

const struct mla_family mla_family_upstream = {
    "upstream", "the public tests' recipes: N(0,1), N(0,1) with rare outliers, ramps",
    regions,    sizeof regions / sizeof regions[0],
    0,          0,
    query,      key,
    false};
