/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_words.c - places and rows in words.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/blame_internal.h"
#include "oracle/visible.h"

/* Where the key at a place stands: its position in the sequence (ring), or the cache row. */
struct spot {
    int64_t position;
    int64_t rank, batch, row;
};

static struct spot spot_of(const struct mla_probe *p, int64_t place)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    int64_t at = mla_probe_lies(p, place);
    if (p->tensors->test.op != MLA_OP_RING)
        return (struct spot){.position = at, .row = at};
    struct spot s = {.rank = at / r->kv_rows / r->kv_batch,
                     .batch = at / r->kv_rows % r->kv_batch,
                     .row = at % r->kv_rows};
    s.position = mla_oracle_key_position(r, s.rank, s.row);
    return s;
}

/* What the places of a mark have in common. */
struct summary {
    int64_t n, first, last;  /* positions */
    int64_t rank;            /* -1: several */
    int64_t of_rank;         /* visible keys of that rank */
    bool every_last;         /* all are the last row of a tile */
    bool other_batch;        /* some lie in another batch entry or slot */
    bool beyond_end, future; /* some lie at or after logical_n; after the query */
};

static int64_t own_batch(const struct mla_probe *p)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    return p->tensors->test.op != MLA_OP_RING ? 0
           : r->has_slot                      ? r->kv_cache_batch_idx
                                              : p->row.batch;
}

static void add_spot(const struct mla_probe *p, struct spot s, struct summary *sum)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    bool is_ring = p->tensors->test.op == MLA_OP_RING;
    if (sum->n == 0)
        *sum = (struct summary){0, s.position, s.position, s.rank, 0, true, false, false, false};
    sum->n++;
    sum->first = s.position < sum->first ? s.position : sum->first;
    sum->last = s.position > sum->last ? s.position : sum->last;
    sum->rank = sum->rank == s.rank ? s.rank : -1;
    sum->every_last = sum->every_last && s.row % MLA_TILE == MLA_TILE - 1;
    sum->other_batch = sum->other_batch || s.batch != own_batch(p);
    if (is_ring) {
        sum->beyond_end = sum->beyond_end || s.position >= r->logical_n;
        sum->future =
            sum->future || s.position > mla_oracle_query_position(r, p->row.rank, p->row.row);
    }
}

void mla_blame_name_places(const struct mla_probe *p, const struct mla_blame_weights *w,
                           enum mla_blame_mark mark, char text[256])
{
    struct summary sum = {0};
    bool is_ring = p->tensors->test.op == MLA_OP_RING;
    const char *what = is_ring ? "position" : "cache row";
    for (int64_t i = 0; i < p->places_n; i++)
        if (w->marks[i] == (uint8_t)mark)
            add_spot(p, spot_of(p, i), &sum);
    for (int64_t i = 0; i < p->places_n; i++)
        sum.of_rank += p->times[i] > 0 && spot_of(p, i).rank == sum.rank;
    int n = snprintf(text, 256, "%s%s %" PRId64, what, sum.n > 1 ? "s" : "", sum.first);
    if (sum.n > 1)
        n += snprintf(text + n, 256 - (size_t)n, "%s%" PRId64,
                      sum.last - sum.first + 1 == sum.n ? " to " : " .. ", sum.last);
    if (sum.n > 1 && sum.last - sum.first + 1 != sum.n)
        n += snprintf(text + n, 256 - (size_t)n, ", %" PRId64 " of them%s", sum.n,
                      sum.every_last ? ", the last of each tile" : "");
    if (is_ring && sum.rank >= 0)
        n += snprintf(text + n, 256 - (size_t)n, " (%sshard %" PRId64 ")",
                      mark == MLA_MARK_MISSING && sum.of_rank == sum.n ? "all of " : "", sum.rank);
    if (mark == MLA_MARK_EXTRA)
        snprintf(text + n, 256 - (size_t)n, "%s",
                 sum.other_batch  ? ", in another batch entry or slot"
                 : sum.beyond_end ? ", beyond logical_n"
                 : sum.future     ? ", later than the query"
                 : !is_ring       ? ", not in force for this row"
                                  : "");
}

void mla_blame_name_row(const struct mla_probe *p, struct mla_row row, char text[96])
{
    if (p->tensors->test.op == MLA_OP_RING)
        snprintf(text, 96, "rank %" PRId64 ", batch %" PRId64 ", head %" PRId64 ", row %" PRId64,
                 row.rank, row.batch, row.head, row.row);
    else
        snprintf(text, 96, "query %" PRId64 ", head %" PRId64, row.row, row.head);
}
