/* SPDX-License-Identifier: Apache-2.0
 *
 * family_profile.c - scores exactly as asked, independent of the values.
 *
 * The query is 1 in one column that does not serve as value (and, in a few regions, in two more that
 * shift all scores alike) and 0 elsewhere; the wanted score stands in that column of the key. Every value is a fair coin's sign times a magnitude, and
 * nothing else depends on those coins: that is what makes statistical tests on the values sound.
 */
#include <math.h>

#include "fuzz/family.h"

/* Regions in which something common is added to all scores. It stands in columns of its own, so that
 * the small differences between keys survive the rounding to bf16. */
static bool has_shift(const struct mla_family_view *view)
{
    switch (view->test->region) {
    case MLA_REGION_LOFTY:
    case MLA_REGION_SUNK:
    case MLA_REGION_SATURATED:
    case MLA_REGION_RAW:
    case MLA_REGION_CREEPING:
        return view->width - view->width_v > 2; /* a column each */
    default:
        return false;
    }
}

/* What shift column 1 or 2 adds, before scaling. */
static double shift(const struct mla_family_view *view, int64_t column)
{
    double amount = (double)view->test->amount;
    double sign = view->test->seed & 1 ? -1.0 : 1.0;
    double raw = ldexp(sign, 17 + (int)(view->test->amount % 4));
    switch (view->test->region) {
    case MLA_REGION_LOFTY:
        return column == 1 ? 1e4 * (1.0 + 2.0 * amount) / view->scale : 0.0;
    case MLA_REGION_SUNK:
        return column == 1 ? -1e4 * (1.0 + 2.0 * amount) / view->scale : 0.0;
    case MLA_REGION_CREEPING:
        return column == 1 ? sign * 64.0 * (1.0 + 2.0 * amount) / view->scale : 0.0;
    case MLA_REGION_SATURATED:
        return column == 1 ? sign * 1e3 * (1.0 + 12.5 * amount) / view->scale : 0.0;
    default: /* raw: all of it in column 1, or taken back by column 2 */
        return column == 1 ? raw : view->test->amount >= 4 ? -raw : 0.0;
    }
}

static int64_t score_column(const struct mla_family_view *view)
{
    uint64_t bits = mla_stream_key(view->test->seed, MLA_STREAM_SCORE);
    return view->width_v + (int64_t)(bits % (uint64_t)(view->width - view->width_v));
}

/* The i-th column after that one, among those that do not serve as value. */
static int64_t next_column(const struct mla_family_view *view, int64_t i)
{
    int64_t columns = view->width - view->width_v;
    return view->width_v + (score_column(view) - view->width_v + i) % columns;
}

/* Columns next to the score's whose sum is added to all scores alike. */
#define SHIFT_COLUMNS 2

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    (void)batch;
    (void)position;
    for (int64_t c = 0; c < view->width; c++)
        row[c] = 0;
    row[next_column(view, view->test->region == MLA_REGION_HEADS ? head : 0)] = 0x3f80; /* 1 */
    for (int64_t i = 1; has_shift(view) && i <= SHIFT_COLUMNS; i++)
        row[next_column(view, i)] = 0x3f80;
}

/* 0 for a key that shall dominate, otherwise far enough below to matter little. */
static double dominated(bool dominant, double unit)
{
    return dominant ? 0.0 : -4.0 - 8.0 * unit;
}

/* The first or last key of some block (amount even) or shard (odd). */
static int64_t chosen_edge(const struct mla_family_view *view)
{
    uint64_t bits = mla_stream_key(view->test->seed, MLA_STREAM_TARGET);
    int64_t unit = view->test->amount % 2 == 0 ? view->block_keys : view->shard_keys;
    int64_t units = (view->keys_n + unit - 1) / unit;
    int64_t edge = (int64_t)((bits >> 8) % (uint64_t)units) * unit + (bits & 1 ? unit - 1 : 0);
    return edge < view->keys_n ? edge : view->keys_n - 1;
}

/* Scores of heads that differ: even ones rise from block to block, odd ones fall. */
static double wanted_of_head(const struct mla_family_view *view, int64_t position, int64_t head,
                             double unit)
{
    double block = (double)(position / view->block_keys), amount = (double)view->test->amount;
    return head % 2 == 0 ? block * (1.0 + amount) - unit : -block * (1.0 + 4.0 * amount) - unit;
}

/* The scaled score x = scale*s wanted at a key position; unit is uniform noise of that key. */
static double wanted(const struct mla_family_view *view, int64_t position, double unit)
{
    double amount = (double)view->test->amount; /* 0 .. 8 */
    int64_t block = position / view->block_keys, inside = position % view->block_keys;
    switch (view->test->region) {
    case MLA_REGION_GEOMETRIC:
        return -(double)position * (1.0 + amount) * 0.02;
    case MLA_REGION_FIRST:
        return dominated(position == 0, unit);
    case MLA_REGION_LAST:
        return dominated(position == view->keys_n - 1, unit);
    case MLA_REGION_EDGE:
        return dominated(inside == 0 || inside == view->block_keys - 1, unit);
    case MLA_REGION_RISING:
        return (double)block * amount * 0x1.62e42fefa39efp-1 - unit;
    case MLA_REGION_FALLING:
        return -(double)block * (88.5 + amount) - unit;
    case MLA_REGION_HALF:
        return position >= view->keys_n / 2 ? 100.0 : -unit;
    case MLA_REGION_DEEP:
        return -1e4 * (1.0 + 2.0 * amount) - 4.0 * unit;
    case MLA_REGION_UNDER:
        return -86.0 - 24.0 * unit;
    case MLA_REGION_SPREAD:
        return position % view->shard_keys == (view->shard_keys - 1) / 2 ? 0.0
                                                                         : -88.0 - 22.0 * unit;
    case MLA_REGION_EQUAL_MAXIMA:
        return position % view->shard_keys == 0 ? 0.0 : -0.5 - 2.0 * unit;
    case MLA_REGION_CLUSTERS:
        return -floor(4.0 * unit);
    case MLA_REGION_ONE_EDGE:
        return dominated(position == chosen_edge(view), unit);
    case MLA_REGION_SATURATED:
        return position % 16 == 5 || position == 0 ? 0.0 : -120.0 - 100.0 * unit;
    case MLA_REGION_ABYSS:
        return position % view->shard_keys == (view->shard_keys - 1) / 2
                   ? 0.0
                   : -9e6 * (1.0 + amount) * (1.0 + unit);
    case MLA_REGION_CHASM: /* abyss, where every list and prefix holds keys of both kinds */
        return position % 16 == 7 ? -9e6 * (1.0 + amount) : -4.0 * unit;
    case MLA_REGION_CREEPING: /* the first of 32 keys leads, by 2^-12 of the shift or less */
        return (double)(position / 32) * 0.015625 * (1.0 + amount) -
               (position % 32 == 0 ? 0.0 : 1.0 + 2.0 * unit);
    case MLA_REGION_LOFTY:
    case MLA_REGION_SUNK:
    case MLA_REGION_RAW:
        return -4.0 * unit;
    default: /* flat */
        return 0.0;
    }
}

/* Magnitudes in [0.5, 1.5), each with a coin's sign. */
MLA_FAMILY_INNER void fill_inner(uint64_t magnitude, uint64_t coin, uint64_t b, uint64_t p,
                                 int64_t width, uint16_t *row)
{
    for (int64_t c = 0; c < width; c++) {
        double size = 0.5 + mla_number_unit(mla_number_at(magnitude, b, p, (uint64_t)c));
        bool negative = mla_number_at(coin, b, p, (uint64_t)c) >> 63;
        row[c] = mla_number_to_bf16(negative ? -size : size);
    }
}

MLA_FAMILY_WIDE static void fill_wide(uint64_t magnitude, uint64_t coin, uint64_t b, uint64_t p,
                                      int64_t width, uint16_t *row)
{
    fill_inner(magnitude, coin, b, p, width, row);
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    uint64_t seed = view->test->seed, p = (uint64_t)position, b = (uint64_t)batch;
    uint64_t magnitude = mla_stream_key(seed, MLA_STREAM_KEY);
    uint64_t coin = mla_stream_key(seed, MLA_STREAM_SIGN);
    if (mla_family_is_wide())
        fill_wide(magnitude, coin, b, p, view->width, row);
    else
        fill_inner(magnitude, coin, b, p, view->width, row);
    uint64_t noise = mla_number_at(mla_stream_key(seed, MLA_STREAM_SCORE), b, p, 1);
    double score = wanted(view, position, mla_number_unit(noise)) / view->scale;
    row[score_column(view)] = mla_number_to_bf16(score);
    for (int64_t i = 1; has_shift(view) && i <= SHIFT_COLUMNS; i++)
        row[next_column(view, i)] = mla_number_to_bf16(shift(view, i));
    int64_t lanes = view->test->region == MLA_REGION_HEADS ? view->width - view->width_v : 0;
    for (int64_t i = 0; i < lanes; i++) {
        double unit = mla_number_unit(mla_number_mix(noise + (uint64_t)i));
        row[next_column(view, i)] =
            mla_number_to_bf16(wanted_of_head(view, position, i, unit) / view->scale);
    }
}

static const enum mla_region regions[] = {
    MLA_REGION_FLAT,      MLA_REGION_GEOMETRIC, MLA_REGION_FIRST,   MLA_REGION_LAST,
    MLA_REGION_EDGE,      MLA_REGION_RISING,    MLA_REGION_FALLING, MLA_REGION_HALF,
    MLA_REGION_DEEP,      MLA_REGION_UNDER,     MLA_REGION_SPREAD,  MLA_REGION_EQUAL_MAXIMA,
    MLA_REGION_CLUSTERS,  MLA_REGION_ONE_EDGE,  MLA_REGION_LOFTY,   MLA_REGION_SUNK,
    MLA_REGION_SATURATED, MLA_REGION_ABYSS,     MLA_REGION_RAW,     MLA_REGION_HEADS,
    MLA_REGION_CHASM,     MLA_REGION_CREEPING};

const struct mla_family mla_family_profile = {
    "profile", "scores exactly as asked by the region, value signs fair coins",
    regions,   sizeof regions / sizeof regions[0],
    0,         8,
    query,     key,
    true};
