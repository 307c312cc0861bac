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

/* A digit of the column's number; for unit 0 one that has no system, to check what the others spelt. */
static int64_t digit_of(int64_t column, int64_t unit)
{
    return unit == 0 ? (int64_t)(mla_number_mix((uint64_t)column) % BASE) : column / unit % BASE;
}

/* Every value: 1 + the digit of its column. */
static void set_digits(struct mla_probe *p, int64_t unit)
{
    for (int64_t i = 0; i < p->places_n; i++) {
        uint16_t *value = mla_probe_value(p, i);
        for (int64_t c = 0; c < p->value_n; c++)
            value[c] = mla_number_to_bf16((double)(1 + digit_of(c, unit)));
    }
}

/* The digit in column c of the last call, -1 for none. */
static int64_t read_digit(const struct mla_probe *p, int64_t c, double total)
{
    double digit = p->out[c] / total - 1, whole = round(digit);
    return fabs(digit - whole) < 0.25 && whole >= 0 && whole < BASE ? (int64_t)whole : -1;
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
            int64_t digit = read_digit(p, c, *total);
            map[c] = digit < 0 || map[c] < 0 ? -1 : map[c] + unit * digit;
        }
    }
    set_digits(p, 0);
    if (!mla_probe_call(p))
        return false;
    for (int64_t c = 0; c < p->value_n; c++)
        if (map[c] >= p->value_n ||
            (map[c] >= 0 && read_digit(p, c, *total) != digit_of(map[c], 0)))
            map[c] = -1;
    return true;
}

/* ---- columns of the scores ---- */

/* Columns tried together. Half the least value width: one column outside the group reads the result. */
#define GROUP 16
/* What one column adds to the score of the keys at even places. */
#define STEP 0.5

/* Columns [first, end) of query and key: STEP in every query, 1 in the keys at even places, if `on`. */
static void set_group(struct mla_probe *p, int64_t first, int64_t end, bool on)
{
    uint16_t asked = on ? preferring(p, STEP) : 0, one = on ? ONE : 0;
    for (int64_t c = first; c < end; c++) {
        bool value = c < p->value_n;
        int64_t at = value ? c : c - p->value_n;
        for (int64_t i = 0; i < mla_probe_queries_n(p); i++)
            (value ? mla_probe_query_value(p, i) : mla_probe_query_rope(p, i))[at] = asked;
        for (int64_t i = 0; i < p->places_n; i += 2)
            (value ? mla_probe_value(p, i) : mla_probe_rope(p, i))[at] = one;
    }
}

/* The score of the even keys above the odd ones, as the row's results have it. */
static double seen_score(const struct mla_probe *p, int64_t even, int64_t odd, int64_t read)
{
    double weight = p->out[read]; /* of the odd keys */
    if (odd > 0)
        return log((1 / weight - 1) * (double)odd / (double)even);
    return p->lse - log((double)even);
}

bool mla_probe_count_score_columns(struct mla_probe *p, struct mla_probe_columns *columns)
{
    int64_t even = 0, width = p->value_n + p->rope_n, end;
    for (int64_t i = 0; i < p->places_n; i += 2)
        even += p->times[i];
    int64_t odd = p->visible_n - even;
    *columns = (struct mla_probe_columns){0, 0};
    if (even == 0 || (odd == 0 && !p->has_stats))
        return false;
    clear_queries(p);
    mla_probe_set_values(p, 0);
    for (int64_t i = 0; i < p->places_n; i++)
        memset(mla_probe_rope(p, i), 0, (size_t)p->rope_n * sizeof(uint16_t));
    for (int64_t first = 0; first < width; first = end) {
        int64_t limit = first < p->value_n ? p->value_n : width;
        int64_t read = first == 0 ? p->value_n - 1 : 0; /* never inside the group */
        end = first + GROUP < limit ? first + GROUP : limit;
        set_group(p, first, end, true);
        for (int64_t i = 1; i < p->places_n; i += 2)
            mla_probe_value(p, i)[read] = ONE;
        if (!mla_probe_call(p))
            return false;
        double score = seen_score(p, even, odd, read) / STEP;
        if (!isfinite(score))
            return false;
        *(first < p->value_n ? &columns->value_n : &columns->rope_n) += (int64_t)llround(score);
        for (int64_t i = 1; i < p->places_n; i += 2)
            mla_probe_value(p, i)[read] = 0;
        set_group(p, first, end, false);
    }
    return true;
}
