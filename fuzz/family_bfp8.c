/* SPDX-License-Identifier: Apache-2.0
 *
 * family_bfp8.c - what a block-float-8 cache holds: blocks of 16 neighbouring columns share an
 * exponent, each element is a sign and a magnitude of 7 bits. All such numbers are bf16 numbers.
 *
 * Gains of 2^-amount .. 1 are drawn for each block, so that neighbouring blocks differ in exponent.
 * outlier: one element of a block in four is 64 times as large and leaves the others a bit or two.
 * The queries are ordinary bf16 numbers, N(0,1).
 */
#include <math.h>

#include "fuzz/family.h"

#define BLOCK          16
#define MAGNITUDE_BITS 7

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_QUERY);
    uint64_t a = (uint64_t)batch << 32 | (uint64_t)head;
    for (int64_t c = 0; c < view->width; c++)
        row[c] = mla_number_to_bf16(
            mla_number_normal(mla_number_at(stream, a, (uint64_t)position, (uint64_t)c)));
}

/* Round the numbers of one block to multiples of 2^(e-6), e the exponent of the largest. */
static void quantise(const double *numbers, int64_t n, uint16_t *row)
{
    const double most = (1 << MAGNITUDE_BITS) - 1;
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fabs(numbers[i]) > largest ? fabs(numbers[i]) : largest;
    double step = largest > 0 ? ldexp(1.0, ilogb(largest) - (MAGNITUDE_BITS - 1)) : 1.0;
    for (int64_t i = 0; i < n; i++) {
        double magnitude = floor(fabs(numbers[i]) / step + 0.5);
        magnitude = magnitude < most ? magnitude : most;
        row[i] = mla_number_to_bf16(numbers[i] < 0 ? -magnitude * step : magnitude * step);
    }
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_KEY);
    for (int64_t first = 0; first < view->width; first += BLOCK) {
        double numbers[BLOCK];
        int64_t n = view->width - first < BLOCK ? view->width - first : BLOCK;
        uint64_t block = mla_number_at(stream, (uint64_t)batch, (uint64_t)position,
                                       (uint64_t)(view->width + first));
        double gain = ldexp(1.0, -(int)(block % (uint64_t)(view->test->amount + 1)));
        for (int64_t i = 0; i < n; i++)
            numbers[i] =
                gain * mla_number_normal(mla_number_at(stream, (uint64_t)batch, (uint64_t)position,
                                                       (uint64_t)(first + i)));
        if (view->test->region == MLA_REGION_OUTLIER && (block >> 32) % 4 == 0)
            numbers[(int64_t)((block >> 40) % (uint64_t)n)] *= 64.0;
        quantise(numbers, n, row + first);
    }
}

static const enum mla_region regions[] = {MLA_REGION_NORMAL, MLA_REGION_OUTLIER};

const struct mla_family mla_family_bfp8 = {
    .name = "bfp8",
    .what =
        "keys and values of a block-float-8 cache: 16 columns share an exponent, 7-bit magnitudes",
    .regions = regions,
    .regions_n = sizeof regions / sizeof regions[0],
    .amount_min = 0,
    .amount_max = 8,
    .query = query,
    .key = key,
    .sign_coins = false};
