/* SPDX-License-Identifier: Apache-2.0
 *
 * fill.c - poison for everything no row may read, and what families are told.
 */
#include "fuzz/fill_internal.h"

static uint16_t poison(int32_t kind, uint64_t bits)
{
    uint16_t sign = (uint16_t)(bits & 0x8000u);
    switch (kind) {
    case MLA_POISON_NAN:
        return MLA_BF16_NAN;
    case MLA_POISON_INF:
        return sign | MLA_BF16_INF;
    case MLA_POISON_HUGE:
        return sign | MLA_BF16_LARGEST;
    case MLA_POISON_NOISE:
        return mla_number_to_bf16(100.0 * mla_number_normal(bits));
    default:
        return poison((int32_t)((bits >> 16) % MLA_POISON_MIXED), mla_number_mix(bits));
    }
}

struct mla_poison_cycle mla_fill_poison(const struct mla_case *test, int32_t kind)
{
    struct mla_poison_cycle cycle;
    uint64_t stream = mla_stream_key(test->seed, MLA_STREAM_POISON);
    for (uint64_t i = 0; i < MLA_POISON_CYCLE; i++)
        cycle.values[i] = poison(kind, mla_number_at(stream, i, 0, 0));
    return cycle;
}

void mla_fill_poison_row(const struct mla_poison_cycle *cycle, int64_t place, int64_t width,
                         uint16_t *row)
{
    for (int64_t c = 0; c < width; c++)
        row[c] = cycle->values[(uint64_t)(place * 7 + c) % MLA_POISON_CYCLE];
}

struct mla_family_view mla_fill_view(const struct mla_case *test)
{
    struct mla_family_view view = {.test = test,
                                   .width = mla_case_width(test),
                                   .width_v = mla_case_value_width(test),
                                   .scale = (double)mla_case_scale(test)};
    return view;
}
