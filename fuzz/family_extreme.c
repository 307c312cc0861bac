/* SPDX-License-Identifier: Apache-2.0
 *
 * family_extreme.c - data at the ends of what arithmetic can do.
 *
 * tiny       values near 2^-119 under weights near 2^-amount: every product is subnormal, or nearly
 * subnormal  subnormal values, and some subnormal query elements
 * huge       N(0,1) keys under queries of 4^amount * N(0,1): scores to 1e5 and beyond
 * copies     all keys are one row
 * binade     values just below, at and just above powers of two under nearly equal weights: outputs
 *            on both sides of a change of the last place
 * stairs     every score a little above the last: each key raises the running maximum
 */
#include <math.h>

#include "fuzz/family.h"

/* The column that holds the wanted score, where queries select one. */
static int64_t score_column(const struct mla_family_view *view)
{
    return view->width_v;
}

static bool has_wanted_scores(const struct mla_family_view *view)
{
    return view->test->region == MLA_REGION_TINY || view->test->region == MLA_REGION_BINADE ||
           view->test->region == MLA_REGION_STAIRS;
}

/* Every fifth element of a query is subnormal in that region. */
static double query_size(const struct mla_family_view *view, int64_t c)
{
    if (view->test->region == MLA_REGION_HUGE)
        return ldexp(1.0, 2 * (int)view->test->amount);
    return view->test->region == MLA_REGION_SUBNORMAL && c % 5 == 0 ? 0x1p-127 : 1.0;
}

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_QUERY);
    uint64_t a = (uint64_t)batch << 32 | (uint64_t)head;
    for (int64_t c = 0; c < view->width; c++) {
        uint64_t bits = mla_number_at(stream, a, (uint64_t)position, (uint64_t)c);
        double x = query_size(view, c) * mla_number_normal(bits);
        row[c] = has_wanted_scores(view) ? 0 : mla_number_to_bf16(x);
    }
    if (has_wanted_scores(view))
        row[score_column(view)] = 0x3f80; /* 1 */
}

static double value(const struct mla_family_view *view, uint64_t bits)
{
    static const double near_one[] = {1.0 - 0x1p-8, 1.0, 1.0 + 0x1p-7};
    double sign = bits >> 63 ? -1.0 : 1.0;
    switch (view->test->region) {
    case MLA_REGION_TINY:
        return sign * 0x1p-119 * (0.5 + mla_number_unit(bits << 1));
    case MLA_REGION_SUBNORMAL:
        return 0x1p-127 * mla_number_normal(bits);
    case MLA_REGION_BINADE:
        return sign * ldexp(near_one[bits % 3], (int)view->test->amount - 4);
    default:
        return mla_number_normal(bits);
    }
}

/* The scaled score wanted at a key position; unit is uniform noise of that key. */
static double wanted(const struct mla_family_view *view, int64_t position, double unit)
{
    double amount = (double)view->test->amount;
    if (view->test->region == MLA_REGION_STAIRS)
        return (double)position * 0.02 * (1.0 + amount);
    if (view->test->region == MLA_REGION_BINADE)
        return -0.25 * unit;
    return position % 16 == 0 ? 0.0 : -amount * 0x1.62e42fefa39efp-1 - unit;
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    uint64_t seed = view->test->seed, b = (uint64_t)batch;
    uint64_t p = view->test->region == MLA_REGION_COPIES ? 0 : (uint64_t)position;
    uint64_t stream = mla_stream_key(seed, MLA_STREAM_KEY);
    for (int64_t c = 0; c < view->width; c++) {
        uint64_t bits = mla_number_at(stream, b, p, (uint64_t)c);
        row[c] =
            mla_number_to_bf16(c < view->width_v ? value(view, bits) : mla_number_normal(bits));
    }
    if (!has_wanted_scores(view))
        return;
    uint64_t noise = mla_number_at(mla_stream_key(seed, MLA_STREAM_SCORE), b, p, 1);
    row[score_column(view)] =
        mla_number_to_bf16(wanted(view, position, mla_number_unit(noise)) / view->scale);
}

static const enum mla_region regions[] = {MLA_REGION_TINY,   MLA_REGION_SUBNORMAL,
                                          MLA_REGION_HUGE,   MLA_REGION_COPIES,
                                          MLA_REGION_BINADE, MLA_REGION_STAIRS};

const struct mla_family mla_family_extreme = {
    .name = "extreme",
    .what = "tiny, subnormal and equal values, huge scores, rising maxima",
    .regions = regions,
    .regions_n = sizeof regions / sizeof regions[0],
    .amount_min = 0,
    .amount_max = 8,
    .query = query,
    .key = key,
    .sign_coins = false};
