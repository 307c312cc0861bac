/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_shards.c - the same tokens on another number of ranks, or in another layout.
 *
 * A token is its global position: its key, and its query where the call has one. Contiguous,
 * balanced, chunked and rotated calls on any number of ranks are then the same sequence, and rows
 * at the same position have the same truth. Positions are the oracle's (oracle/visible.h).
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/relations_internal.h"
#include "oracle/visible.h"

enum layout { CONTIGUOUS, BALANCED, CHUNKED, ROTATED, LAYOUTS_N };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Cut all positions anew; false where they do not divide so. Legality in full is asked later. */
static bool reshard(struct mla_ring_args *r, struct mla_rng *rng)
{
    int64_t all = r->ring_size * r->kv_rows, room = r->gathered_rows - all;
    int64_t queries_max = 2 * r->ring_size * r->q_rows; /* or it would be another amount of work */
    enum layout layout = (enum layout)mla_rng_below(rng, LAYOUTS_N);
    int64_t slabs = layout < CHUNKED ? 1 : 2 + mla_rng_below(rng, 4);
    r->ring_size = 1 + mla_rng_below(rng, r->ring_size < 8 ? 8 : MLA_RING_SIZE_MAX);
    if (all % (r->ring_size * slabs * MLA_TILE) != 0)
        return false;
    r->kv_rows = all / r->ring_size;
    r->q_rows = r->kv_rows / slabs;
    r->gathered_rows = all + room;
    r->is_balanced = layout == BALANCED;
    r->q_chunk_size = layout == BALANCED ? MLA_TILE : r->q_chunk_size;
    r->has_prior = layout == ROTATED;
    r->kv_actual_isl = 0;
    if (layout == ROTATED) {
        int64_t most = smaller(r->ring_size * r->q_rows, r->logical_n) / MLA_TILE;
        int64_t fresh = most < 1 ? 0 : 1 + mla_rng_below(rng, most);
        r->kv_actual_isl = r->logical_n - fresh * MLA_TILE;
    }
    return r->ring_size * r->q_rows <= queries_max;
}

static bool differs(const struct mla_ring_args *a, const struct mla_ring_args *b)
{
    return a->ring_size != b->ring_size || a->q_rows != b->q_rows ||
           a->is_balanced != b->is_balanced || a->has_prior != b->has_prior ||
           a->kv_actual_isl != b->kv_actual_isl;
}

enum mla_tie mla_vary_shards(const struct mla_tensors *first, struct mla_case *test)
{
    struct mla_rng rng = mla_relation_rng(&first->test, 7);
    char error[MLA_CASE_ERROR_MAX];
    for (int tries = 0; tries < 32; tries++) {
        struct mla_case other = *test;
        if (reshard(&other.ring, &rng) && differs(&other.ring, &test->ring) &&
            mla_case_problem(&other, INT64_MAX, error) == NULL) {
            *test = other;
            return MLA_TIE_VALUE;
        }
    }
    return MLA_TIE_NONE;
}

/* Where position p is: rank * rows + row, or -1. The caller frees it; NULL: no memory. */
static int64_t *places(const struct mla_ring_args *a, bool of_queries)
{
    int64_t all = a->ring_size * a->kv_rows, rows = of_queries ? a->q_rows : a->kv_rows;
    int64_t *place = malloc((size_t)all * sizeof *place);
    for (int64_t p = 0; place != NULL && p < all; p++)
        place[p] = -1;
    for (int64_t i = 0; place != NULL && i < a->ring_size * rows; i++) {
        int64_t p = of_queries ? mla_oracle_query_position(a, i / rows, i % rows)
                               : mla_oracle_key_position(a, i / rows, i % rows);
        if (p >= 0)
            place[p] = i;
    }
    return place;
}

static void move_keys(const struct mla_tensors *first, struct mla_tensors *second,
                      const int64_t *place)
{
    const struct mla_ring_args *a = &first->ring, *b = &second->ring;
    for (int64_t d = 0; d < b->ring_size; d++) {
        uint16_t *kv = mla_tensors_bf16(second, "kv", d);
        for (int64_t t = 0; t < b->kv_rows; t++) {
            int64_t from = place[mla_oracle_key_position(b, d, t)];
            for (int64_t e = 0; e < b->kv_batch; e++)
                memcpy(kv + (e * b->kv_rows + t) * b->head_dim,
                       first->kv[from / a->kv_rows] +
                           (e * a->kv_rows + from % a->kv_rows) * a->head_dim,
                       (size_t)a->head_dim * sizeof *kv);
        }
    }
}

/* A pad row is NaN; a query that the first call does not have is 0, and nobody looks at its row. */
static void fill(uint16_t *row, int64_t width, uint16_t bits)
{
    for (int64_t c = 0; c < width; c++)
        row[c] = bits;
}

static void move_queries(const struct mla_tensors *first, struct mla_tensors *second,
                         const int64_t *place)
{
    const struct mla_ring_args *a = &first->ring, *b = &second->ring;
    int64_t width = a->head_dim;
    for (int64_t d = 0; d < b->ring_size; d++) {
        uint16_t *q = mla_tensors_bf16(second, "q", d);
        for (int64_t r = 0; r < b->q_rows; r++) {
            int64_t position = mla_oracle_query_position(b, d, r);
            int64_t from = position < 0 ? -1 : place[position];
            for (int64_t head = 0; head < a->batch * a->heads; head++) {
                uint16_t *row = q + (head * b->q_rows + r) * width;
                if (from < 0)
                    fill(row, width, position < 0 ? MLA_BF16_NAN : 0);
                else
                    memcpy(row,
                           first->q[from / a->q_rows] +
                               (head * a->q_rows + from % a->q_rows) * width,
                           (size_t)width * sizeof *row);
            }
        }
    }
}

bool mla_arrange_shards(const struct mla_tensors *first, struct mla_tensors *second)
{
    int64_t *keys = places(&first->ring, false), *queries = places(&first->ring, true);
    bool ok = keys != NULL && queries != NULL;
    if (ok) {
        move_keys(first, second, keys);
        move_queries(first, second, queries);
    }
    free(keys);
    free(queries);
    return ok;
}

bool mla_match_shards(const struct mla_tensors *first, const struct mla_tensors *second,
                      struct mla_row row, struct mla_row *other)
{
    *other = row;
    return mla_relation_query_at(&second->ring,
                                 mla_oracle_query_position(&first->ring, row.rank, row.row),
                                 &other->rank, &other->row);
}
