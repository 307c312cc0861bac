/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance_ring.c - cells of length and rank state, and the kinds of step a ring walks.
 *
 * All positions follow from one per tile: within a tile of a shard or of a rank's queries they rise by
 * one, since every mode deals whole tiles (a chunk of queries that ends inside a tile is filled up to
 * it).
 */
#include "fuzz/guidance_internal.h"
#include "oracle/visible.h"

#define RANKS_MAX MLA_RING_SIZE_MAX

/* The keys a shard holds, or the queries of a rank: their positions, in runs of neighbours. */
struct span {
    int64_t n;          /* rows that count */
    int64_t low, high;  /* first and last position, if any */
    int64_t pieces;     /* runs of neighbouring positions */
    int64_t first_run;  /* rows of the first run */
    int64_t second_low; /* first position of the second run */
};

struct picture {
    struct span keys[RANKS_MAX], queries[RANKS_MAX];
};

/* Append rows at positions from .. from + n - 1. */
static void extend(struct span *span, int64_t from, int64_t n)
{
    if (n <= 0)
        return;
    if (span->n == 0 || from != span->high + 1) {
        span->pieces++;
        if (span->pieces == 2) {
            span->first_run = span->n;
            span->second_low = from;
        }
    }
    if (span->n == 0)
        span->low = from;
    span->n += n;
    span->high = from + n - 1;
}

static void look_at_keys(const struct mla_ring_args *r, struct picture *picture)
{
    for (int64_t s = 0; s < r->ring_size; s++)
        for (int64_t t = 0; t < r->kv_rows; t += MLA_TILE) {
            int64_t at = mla_oracle_key_position(r, s, t), left = r->logical_n - at;
            extend(&picture->keys[s], at, left < MLA_TILE ? left : MLA_TILE);
        }
}

static void look_at_queries(const struct mla_ring_args *r, struct picture *picture)
{
    if (r->has_prior) { /* dealt tile by tile to the rank that stores their keys */
        for (int64_t at = r->kv_actual_isl; at < r->logical_n; at += MLA_TILE)
            extend(&picture->queries[at / r->q_rows % r->ring_size], at, MLA_TILE);
        return;
    }
    for (int64_t d = 0; d < r->ring_size; d++)
        for (int64_t t = 0; t < r->q_rows; t += MLA_TILE)
            extend(&picture->queries[d], mla_oracle_query_position(r, d, t), MLA_TILE);
}

/* Which ranks hold no key: none, the last, several last, one in the middle, the first, all but one. */
static int64_t rank_state(const struct mla_ring_args *r, const struct picture *picture)
{
    int64_t ranks = r->ring_size, empty = 0, last = 0;
    for (int64_t s = 0; s < ranks; s++)
        empty += picture->keys[s].n == 0;
    while (last < ranks && picture->keys[ranks - 1 - last].n == 0)
        last++;
    if (empty == 0)
        return 0;
    if (picture->keys[0].n == 0)
        return 4;
    if (empty == ranks - 1 && ranks > 2)
        return 5;
    return last == 0 ? 3 : last == 1 ? 1 : 2;
}

void mla_guidance_ring_cells(const struct mla_case *test, const struct mla_verdict *verdict,
                             struct mla_guidance_slot slot)
{
    const struct mla_ring_args *r = &test->ring;
    struct picture picture = {0};
    struct mla_guidance_cell cell = {0, 1};
    int64_t over = r->logical_n % MLA_TILE;
    (void)verdict;
    if (test->op != MLA_OP_RING || r->ring_size > RANKS_MAX)
        return;
    look_at_keys(r, &picture);
    mla_guidance_digit(&cell, mla_guidance_mode(test), MLA_GUIDANCE_MODES);
    mla_guidance_digit(&cell, over == 0 ? 0 : over == 1 ? 1 : over == MLA_TILE - 1 ? 2 : 3, 4);
    mla_guidance_digit(&cell, rank_state(r, &picture), 6);
    mla_guidance_digit(&cell, mla_guidance_pair(test), MLA_GUIDANCE_PAIRS);
    mla_guidance_set(slot, cell);
}

/* ---- steps ---- */

enum sight { NOTHING, HIDDEN, WHOLE, DIAGONAL, HALF_BLIND, SIGHTS_N };

/*
 * What a rank's rows see of a shard: nothing is there (or nobody), all of it lies in their future, all
 * of it in their past, a frontier runs through it, and it even leaves some rows without a key.
 */
static enum sight look(const struct span *queries, const struct span *keys)
{
    if (queries->n == 0 || keys->n == 0)
        return NOTHING;
    if (keys->low > queries->high)
        return HIDDEN;
    if (keys->high <= queries->low)
        return WHOLE;
    return keys->low > queries->low ? HALF_BLIND : DIAGONAL;
}

/* Are keys of two runs seen, and does a chunk then hold both? */
static int64_t straddle(const struct mla_ring_args *r, const struct span *queries,
                        const struct span *keys)
{
    if (keys->pieces < 2 || queries->n == 0 || keys->second_low > queries->high)
        return 0;
    return keys->first_run % r->k_chunk_size == 0 ? 1 : 2;
}

void mla_guidance_ring_steps(const struct mla_case *test, const struct mla_verdict *verdict,
                             struct mla_guidance_slot slot)
{
    const struct mla_ring_args *r = &test->ring;
    struct picture picture = {0};
    (void)verdict;
    if (test->op != MLA_OP_RING || r->ring_size > RANKS_MAX)
        return;
    look_at_keys(r, &picture);
    look_at_queries(r, &picture);
    for (int64_t d = 0; d < r->ring_size; d++) {
        int64_t order[RANKS_MAX];
        bool active = false;
        mla_oracle_visiting_order(r, d, order);
        for (int64_t step = 0; step < r->ring_size; step++) {
            const struct span *queries = &picture.queries[d], *keys = &picture.keys[order[step]];
            enum sight sight = look(queries, keys);
            bool first = step > 0 && !active && sight > HIDDEN;
            struct mla_guidance_cell cell = {0, 1};
            mla_guidance_digit(&cell, mla_guidance_mode(test), MLA_GUIDANCE_MODES);
            mla_guidance_digit(&cell, step == 0 ? 0 : step < r->ring_size - 1 ? 1 : 2, 3);
            mla_guidance_digit(&cell, (int64_t)sight, SIGHTS_N);
            mla_guidance_digit(&cell, keys->n % r->k_chunk_size != 0, 2);
            mla_guidance_digit(&cell, straddle(r, queries, keys), 3);
            mla_guidance_digit(&cell, first, 2);
            mla_guidance_digit(&cell, queries->pieces > 1, 2);
            mla_guidance_set(slot, cell);
            active = active || sight > HIDDEN;
        }
    }
}
