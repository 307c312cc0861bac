/* SPDX-License-Identifier: Apache-2.0
 *
 * family_coded.c - values that say where they come from, selected one at a time.
 *
 * Every value is a bit pattern made from its key and column. Every (head, query row) chooses one
 * key among those it sees; the columns that do not serve as value spell the key's number in +-1,
 * the query the chosen key's number, large enough that a single differing digit leaves a weight
 * below e^-104. A wrong row, head, batch or column then gives a wholly different number. Keys whose
 * numbers agree in the digits there is room for share the weight.
 */
#include <math.h>

#include "fuzz/family.h"

#define DIGITS_MAX 24

static int64_t digits(const struct mla_family_view *view)
{
    int64_t room = view->width - view->width_v;
    return room < DIGITS_MAX ? room : DIGITS_MAX;
}

static void spell(const struct mla_family_view *view, int64_t number, double size, uint16_t *row)
{
    uint64_t code = (uint64_t)number;
    for (int64_t i = 0; i < digits(view); i++)
        row[view->width_v + i] = mla_number_to_bf16((code >> i) & 1 ? size : -size);
}

static void query(const struct mla_family_view *view, int64_t batch, int64_t head, int64_t position,
                  uint16_t *row)
{
    for (int64_t c = 0; c < view->width; c++)
        row[c] = 0;
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_TARGET);
    uint64_t bits = mla_number_at(stream, (uint64_t)batch, (uint64_t)head, (uint64_t)position);
    int64_t chosen = view->pick_key(view, position, bits);
    /* One digit off costs 2*size in the score: 2*size*scale >= 128. */
    double size = ldexp(1.0, ilogb(64.0 / view->scale) + 1);
    spell(view, chosen < 0 ? 0 : chosen, size, row);
}

static void key(const struct mla_family_view *view, int64_t batch, int64_t position, uint16_t *row)
{
    uint64_t stream = mla_stream_key(view->test->seed, MLA_STREAM_KEY);
    for (int64_t c = 0; c < view->width; c++) {
        uint64_t bits = mla_number_at(stream, (uint64_t)batch, (uint64_t)position, (uint64_t)c);
        /* Any sign and significand, exponents 2^-8 .. 2^7: all distinct magnitudes are ordinary. */
        uint16_t exponent = (uint16_t)(119 + (bits >> 20) % 16);
        row[c] = c < view->width_v
                     ? (uint16_t)((bits & 0x8000u) | (uint32_t)exponent << 7 | (bits & 0x7fu))
                     : 0;
    }
    spell(view, position, 1.0, row);
}

static const enum mla_region regions[] = {MLA_REGION_SELECT};

const struct mla_family mla_family_coded = {
    "coded", "values name their key and column, every row selects one key",
    regions, sizeof regions / sizeof regions[0],
    0,       0,
    query,   key,
    false};
