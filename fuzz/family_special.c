/* SPDX-License-Identifier: Apache-2.0
 *
 * family_special.c - values that are special to rounding and range, under ordinary weights.
 *
 * zeros    values of +0 and -0 and, seldom, 1 or -1: whole columns of zeros of either sign
 * ties     1 and 1 + 2^-7 (times a power of two) under equal weights: means half way between two
 *          bf16 numbers, with both neighbours even in turn
 * cancel   neighbouring keys have opposite values of size 2^(3*amount), now and then a last place
 *          apart: what remains of a sum is far smaller than its terms
 * large    one sign a column, sizes from 2^10 to 2^123 by amount: sums beyond 65504, beyond 1e37
 * largest  the largest sizes whose sum is still in range (see below); one sign, or (odd amount) both
 * ones     all values are 1: the output is 1 whatever the weights
 * faint    one value column holds subnormal numbers, and one query column too, which meets keys so
 *          large that their products are ordinary: who flushes in some threads only is found out
 *          (not more columns: processors take a hundred times as long for subnormal products)
 * beneath  one key in 16 dominates, and its value is 0 in three columns of four: there the output is
 *          what the weights of other keys make of it, e^-24 .. e^-32 and 8 more for each amount (one
 *          key in 8; the rest underflow). Elsewhere such weights are lost in the rounding
 *
 * Only columns that do not serve as value have scores: as said (beneath), or N(0,1) times N(0,1) - or none at all (ties;
 * the others where amount is even), so that huge values make no huge scores.
 */
#include <math.h>

#include "fuzz/family.h"

/* 2^n may be summed so many times and more: the definition leaves a row open whose values' absolute
 * sum exceeds half the largest number, 2^127. */
static int largest_exponent(const struct mla_family_view *view)
{
    const struct mla_sparse_args *s = &view->test->sparse;
    int64_t keys = view->keys_n;
    if (view->test->op == MLA_OP_SPARSE && !s->dense)
        keys = s->topk;
    return 125 - ilogb((double)keys);
}

/* The column of the scores in which a faint query meets large keys. */
static bool is_faint_score(const struct mla_family_view *view, int64_t c)
{
    return view->test->region == MLA_REGION_FAINT && c == view->width - 1;
}

static bool is_faint_value(const struct mla_family_view *view, int64_t c)
{
    return view->test->region == MLA_REGION_FAINT &&
           c == (int64_t)(view->test->seed % (uint64_t)view->width_v);
}

/* Beneath: the score stands in the last column. */
#define BENEATH_EVERY 16
#define BENEATH_UNIT  0x1p30 /* values of the keys beneath: they make ordinary outputs again */

static double beneath_score(const struct mla_family_view *view, int64_t position, uint64_t bits)
{
    double deepest = 24.0 + 8.0 * (double)view->test->amount;
    bool is_lost = bits >> 61 != 0;
    double score = is_lost ? -120.0 : -deepest - 8.0 * mla_number_unit(bits << 3);
    return position % BENEATH_EVERY == 0 ? 0.0 : score / view->scale;
}

static double beneath_value(uint64_t bits, uint64_t column, bool is_dominant, double size)
{
    double sign = bits >> 63 ? -1.0 : 1.0;
    if (is_dominant)
        return column % 4 == 0 ? sign * size : 0.0;
    return sign * size * BENEATH_UNIT;
}

static bool is_flat(const struct mla_family_view *view)
{
    if (view->test->region == MLA_REGION_FAINT)
        return false;
    return view->test->region == MLA_REGION_TIES || view->test->amount % 2 == 0;
}

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_QUERY);
    uint64_t a = (uint64_t)batch << 32 | (uint64_t)head;
    for (int64_t c = 0; c < view->width; c++) {
        uint64_t bits = mla_number_at(stream, a, (uint64_t)position, (uint64_t)c);
        row[c] = c < view->width_v || is_flat(view) ? (uint16_t)(bits & 0x8000u) /* +0 or -0 */
                                                    : mla_number_to_bf16(mla_number_normal(bits));
        if (view->test->region == MLA_REGION_BENEATH)
            row[c] = c == view->width - 1 ? 0x3f80 : 0; /* 1 */
        if (is_faint_score(view, c))
            row[c] = mla_number_to_bf16(0x1p-127 * mla_number_normal(bits));
    }
}

/* One value; pair belongs to two neighbouring keys, column to all keys. */
static double value(const struct mla_family_view *view, uint64_t bits, uint64_t pair,
                    uint64_t column, int64_t position)
{
    int amount = (int)view->test->amount, most = largest_exponent(view);
    double sign = column >> 63 ? -1.0 : 1.0, size = 1.0 + mla_number_unit(bits << 1) * 0.96875;
    double last_place = (pair >> 16) % 4 == 0 ? 1.0 + 0x1p-7 : 1.0;
    switch (view->test->region) {
    case MLA_REGION_ZEROS:
        sign = bits >> 63 ? -1.0 : 1.0;
        return column % 4 == 0 && bits % 8 == 0 ? sign : sign * 0.0;
    case MLA_REGION_TIES:
        return sign * ldexp(bits >> 63 ? 1.0 + 0x1p-7 : 1.0, amount - 4);
    case MLA_REGION_CANCEL:
        sign = pair >> 63 ? -1.0 : 1.0;
        return ldexp(position % 2 == 1 ? -sign * last_place : sign, 3 * amount);
    case MLA_REGION_LARGE:
        return sign * ldexp(size, 10 + 14 * amount < most ? 10 + 14 * amount : most);
    case MLA_REGION_LARGEST:
        sign = amount % 2 == 1 && bits >> 63 ? -sign : sign;
        return sign * ldexp(size, most);
    case MLA_REGION_FAINT:
        return sign * size;
    case MLA_REGION_BENEATH:
        return beneath_value(bits, column, position % BENEATH_EVERY == 0, size);
    default: /* ones */
        return 1.0;
    }
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    uint64_t seed = view->test->seed, b = (uint64_t)batch, p = (uint64_t)position;
    uint64_t stream = mla_stream_key(seed, MLA_STREAM_KEY);
    uint64_t columns = mla_stream_key(seed, MLA_STREAM_SIGN);
    uint64_t pairs = mla_stream_key(seed, MLA_STREAM_TARGET);
    for (int64_t c = 0; c < view->width; c++) {
        uint64_t bits = mla_number_at(stream, b, p, (uint64_t)c);
        double x = c < view->width_v
                       ? value(view, bits, mla_number_at(pairs, b, p / 2, (uint64_t)c),
                               mla_number_at(columns, (uint64_t)c, 0, 0), position)
                       : mla_number_normal(bits);
        x = is_faint_value(view, c)   ? 0x1p-127 * mla_number_normal(bits)
            : is_faint_score(view, c) ? 0x1p122 * x
                                      : x;
        row[c] = mla_number_to_bf16(x);
    }
    if (view->test->region == MLA_REGION_BENEATH)
        row[view->width - 1] =
            mla_number_to_bf16(beneath_score(view, position, mla_number_at(pairs, b, p, 1)));
}

static const enum mla_region regions[] = {MLA_REGION_ZEROS, MLA_REGION_TIES,    MLA_REGION_CANCEL,
                                          MLA_REGION_LARGE, MLA_REGION_LARGEST, MLA_REGION_ONES,
                                          MLA_REGION_FAINT, MLA_REGION_BENEATH};

const struct mla_family mla_family_special = {
    .name = "special",
    .what =
        "signed zeros, ties, cancellation, the largest and the faintest values, ones, weights seen "
        "alone",
    .regions = regions,
    .regions_n = sizeof regions / sizeof regions[0],
    .amount_min = 0,
    .amount_max = 8,
    .query = query,
    .key = key,
    .sign_coins = false};
