/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_maps.c - rows and columns, found by codes.
 */
#include "fuzz/probe_maps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/number.h"

#define ONE 0x3f80u

/* A score that leaves the others e^-30 of the weight. */
#define ABOVE 30.0

static uint16_t preferring(const struct mla_probe *p, double score)
{
    return mla_number_to_bf16(score / (double)mla_case_scale(&p->tensors->test));
}

/* Keys at even places: value 1, `column` of the score part 1. At odd ones: 0 and 0. */
static void set_two_groups(struct mla_probe *p)
{
    for (int64_t i = 0; i < p->places_n; i++) {
        uint16_t bits = i % 2 == 0 ? ONE : 0, *value = mla_probe_value(p, i);
        uint16_t *rope = mla_probe_rope(p, i);
        for (int64_t c = 0; c < p->value_n; c++)
            value[c] = bits;
        memset(rope, 0, (size_t)p->rope_n * sizeof *rope);
        rope[0] = bits;
    }
}

static void clear_queries(struct mla_probe *p)
{
    for (int64_t i = 0; i < mla_probe_queries_n(p); i++) {
        memset(mla_probe_query_value(p, i), 0, (size_t)p->value_n * sizeof(uint16_t));
        memset(mla_probe_query_rope(p, i), 0, (size_t)p->rope_n * sizeof(uint16_t));
    }
}

/* 1, 0, or -1 for neither. */
static int read_bit(const struct mla_probe *p, int64_t query)
{
    double got = mla_probe_read(p, mla_probe_row(p, query), 0);
    return fabs(got - 1) < 0.1 ? 1 : fabs(got) < 0.1 ? 0 : -1;
}

/* One call in which query n asks for group bit `bit` of its number; bit -1: all for 0, -2: all for 1. */
static bool ask(struct mla_probe *p, int bit)
{
    uint16_t one = preferring(p, ABOVE), zero = preferring(p, -ABOVE);
    for (int64_t i = 0; i < mla_probe_queries_n(p); i++) {
        bool set = bit < 0 ? bit == -2 : (i >> bit & 1) != 0;
        mla_probe_query_rope(p, i)[0] = set ? one : zero;
    }
    return mla_probe_call(p);
}

bool mla_probe_find_rows(struct mla_probe *p, int64_t *from)
{
    int64_t n = mla_probe_queries_n(p);
    clear_queries(p);
    set_two_groups(p);
    for (int64_t i = 0; i < n; i++)
        from[i] = 0;
    for (int control = -1; control >= -2; control--) {
        if (!ask(p, control))
            return false;
        for (int64_t i = 0; i < n; i++)
            if (read_bit(p, i) != -control - 1)
                from[i] = -1;
    }
    for (int bit = 0; ((n - 1) >> bit) > 0; bit++) {
        if (!ask(p, bit))
            return false;
        for (int64_t i = 0; i < n; i++) {
            int got = read_bit(p, i);
            from[i] = got < 0 || from[i] < 0 ? -1 : from[i] | (int64_t)got << bit;
        }
    }
    for (int64_t i = 0; i < n; i++) /* no query has that number: not a code at all */
        from[i] = from[i] >= n ? -1 : from[i];
    return true;
}

/* ---- columns ---- */

#define BASE 8

/* Every value: 1 + the digit of its column. */
static void set_digits(struct mla_probe *p, int64_t unit)
{
    for (int64_t i = 0; i < p->places_n; i++) {
        uint16_t *value = mla_probe_value(p, i);
        for (int64_t c = 0; c < p->value_n; c++)
            value[c] = mla_number_to_bf16((double)(1 + c / unit % BASE));
    }
}

bool mla_probe_find_columns(struct mla_probe *p, int64_t *map, double *total)
{
    double *flat = calloc((size_t)p->places_n, sizeof *flat);
    if (flat == NULL)
        return false;
    mla_probe_set_scores(p, flat);
    free(flat);
    mla_probe_set_values(p, 1);
    if (!mla_probe_call(p))
        return false;
    *total = p->out[p->value_n / 2];
    for (int64_t c = 0; c < p->value_n; c++)
        map[c] = 0;
    for (int64_t unit = 1; unit < p->value_n; unit *= BASE) {
        set_digits(p, unit);
        if (!mla_probe_call(p))
            return false;
        for (int64_t c = 0; c < p->value_n; c++) {
            double digit = p->out[c] / *total - 1, whole = round(digit);
            bool fits = fabs(digit - whole) < 0.25 && whole >= 0 && whole < BASE;
            map[c] = !fits || map[c] < 0 ? -1 : map[c] + unit * (int64_t)whole;
        }
    }
    return true;
}

/* Is the group of even keys preferred, as it must be when the row is asked through one column? */
static bool prefers_even(struct mla_probe *p, int64_t read)
{
    return fabs(p->out[read] - 1) < 0.1;
}

static void set_column(struct mla_probe *p, int64_t column, bool on)
{
    bool value = column < p->value_n;
    int64_t c = value ? column : column - p->value_n;
    uint16_t asked = on ? preferring(p, ABOVE) : 0;
    for (int64_t i = 0; i < mla_probe_queries_n(p); i++)
        (value ? mla_probe_query_value(p, i) : mla_probe_query_rope(p, i))[c] = asked;
    for (int64_t i = 0; i < p->places_n; i++)
        (value ? mla_probe_value(p, i) : mla_probe_rope(p, i))[c] =
            i % 2 == 0 && (on || value) ? ONE : 0;
}

bool mla_probe_find_score_columns(struct mla_probe *p, bool *used)
{
    int64_t even = 0;
    for (int64_t i = 0; i < p->places_n; i += 2)
        even += p->times[i];
    if (even == 0 || even == p->visible_n)
        return false;
    clear_queries(p);
    set_two_groups(p);
    set_column(p, p->value_n, false);
    for (int64_t c = 0; c < p->value_n + p->rope_n; c++) {
        set_column(p, c, true);
        if (!mla_probe_call(p))
            return false;
        used[c] = prefers_even(p, 0);
        set_column(p, c, false);
    }
    return true;
}
