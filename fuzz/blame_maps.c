/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_maps.c - rows and columns that stand in the wrong place.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/blame_internal.h"
#include "fuzz/probe_maps.h"

/* Do all moved rows come from the row this far away? */
static bool same_distance(const int64_t *from, int64_t n, int64_t *distance)
{
    bool first = true;
    for (int64_t i = 0; i < n; i++) {
        if (from[i] < 0 || from[i] == i)
            continue;
        if (!first && from[i] - i != *distance)
            return false;
        *distance = from[i] - i;
        first = false;
    }
    return !first;
}

bool mla_blame_rows(struct mla_probe *p, struct mla_blame *blame)
{
    int64_t n = mla_probe_queries_n(p), moved_n = 0, told_n = 0, distance;
    int64_t *from = calloc((size_t)n, sizeof *from);
    char row[96], source[96];
    if (from == NULL || !mla_probe_find_rows(p, from)) {
        free(from);
        return false;
    }
    int64_t shown = mla_probe_query_number(p, p->row);
    for (int64_t i = n - 1; i >= 0; i--) {
        bool moved = from[i] >= 0 && from[i] != i;
        told_n += from[i] >= 0;
        moved_n += moved;
        if (moved && (from[shown] < 0 || from[shown] == shown))
            shown = i;
    }
    if (moved_n == 0) {
        free(from);
        return false;
    }
    mla_blame_name_row(p, mla_probe_row(p, shown), row);
    mla_blame_name_row(p, mla_probe_row(p, from[shown]), source);
    mla_blame_say(blame, MLA_CAUSE_ROWS_MOVED,
                  "The result at %s is that of the query at %s; so %" PRId64 " of %" PRId64
                  " rows whose origin can be told are another's%s.",
                  row, source, moved_n, told_n,
                  same_distance(from, n, &distance) ? ", all by the same distance" : "");
    free(from);
    return true;
}

/* ---- columns ---- */

/* Column c of 4-packed output holds natural column 4-pack(c), read as natural. */
static int64_t pack(int64_t columns_n, int64_t c)
{
    return c % 4 * (columns_n / 4) + c / 4;
}

static const char *name_map(const int64_t *map, int64_t n, char text[96])
{
    bool packed = true, unpacked = true, shifted = true;
    int64_t shift = ((map[0] % n) + n) % n;
    for (int64_t c = 0; c < n; c++) {
        packed = packed && map[c] == pack(n, c);
        unpacked = unpacked && map[pack(n, c)] == c;
        shifted = shifted && map[c] == (c + shift) % n;
    }
    if (packed || unpacked)
        return packed ? "they are in natural order where the 4-pack is due"
                      : "they are 4-packed where natural order is due";
    if (shifted)
        snprintf(text, 96, "all are shifted by %" PRId64, shift);
    else
        snprintf(text, 96, "there is no simple rule in it");
    return text;
}

bool mla_blame_columns(struct mla_probe *p, struct mla_blame *blame)
{
    int64_t *map = calloc((size_t)p->value_n, sizeof *map), moved_n = 0, mixed_n = 0, first = -1;
    double total;
    char text[96];
    if (map == NULL || !mla_probe_find_columns(p, map, &total) || !isfinite(total) || total == 0) {
        free(map);
        return false;
    }
    for (int64_t c = 0; c < p->value_n; c++) {
        bool moved = map[c] >= 0 && map[c] != c;
        moved_n += moved;
        mixed_n += map[c] < 0;
        first = moved && first < 0 ? c : first;
    }
    if (moved_n > 0 && mixed_n == 0)
        mla_blame_say(blame, MLA_CAUSE_COLUMNS_MOVED,
                      "%" PRId64 " of %" PRId64 " columns hold another column's values: column "
                      "%" PRId64 " has that of %" PRId64 "; %s.",
                      moved_n, p->value_n, first, map[first], name_map(map, p->value_n, text));
    else if (mixed_n > 0)
        mla_blame_say(blame, MLA_CAUSE_VALUES_OFF,
                      "With equal values in every key, %" PRId64 " of %" PRId64
                      " columns do not give that value.",
                      mixed_n, p->value_n);
    free(map);
    return moved_n + mixed_n > 0;
}
