/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_rows.c - which rows are judged: more often those at which something changes.
 *
 * A kernel wrong in one row of a rank, the last before a chunk ends or the first of a rotated segment,
 * is met only if that row is among the drawn ones. What a row_seed draws is fixed for ever (rows.c), so
 * a draw cannot be told which rows to take; but of some hundred seeds one mostly takes a given row.
 */
#include <stdlib.h>

#include "fuzz/draw.h"
#include "fuzz/judge_internal.h"
#include "oracle/visible.h"

#define SEEDS_TRIED 192

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The row that makes the query of a position; any if no row does. */
static struct mla_row row_at(const struct mla_ring_args *r, int64_t position, struct mla_row any)
{
    for (int64_t rank = 0; rank < r->ring_size; rank++)
        for (int64_t row = 0; row < r->q_rows; row++)
            if (mla_oracle_query_position(r, rank, row) == position) {
                any.rank = rank;
                any.row = row;
                return any;
            }
    return any;
}

/* The next row of its rank whose neighbour is not the next position: where halves, segments and pad rows
 * meet. A rank without one keeps its row. */
static struct mla_row seam_after(const struct mla_ring_args *r, struct mla_row at, bool before)
{
    for (int64_t i = 0; i + 1 < r->q_rows; i++) {
        int64_t row = (at.row + i) % (r->q_rows - 1);
        if (mla_oracle_query_position(r, at.rank, row + 1) !=
            mla_oracle_query_position(r, at.rank, row) + 1) {
            at.row = before ? row : row + 1;
            return at;
        }
    }
    return at;
}

/* A row of a ring's ranks, mostly at an edge. */
static struct mla_row edge_of_ring(const struct mla_ring_args *r, struct mla_rng *rng)
{
    static const enum mla_edge positions[] = {MLA_EDGE_SOME_CHUNK, MLA_EDGE_SOME_RANK,
                                              MLA_EDGE_SOME_SLAB, MLA_EDGE_LAST_SHARD,
                                              MLA_EDGE_SHARD};
    struct mla_row at = {.rank = mla_rng_below(rng, r->ring_size)};
    at.row = mla_rng_below(rng, r->q_rows);
    int64_t kind = mla_rng_below(rng, 5), beside = mla_rng_below(rng, 3) - 1;
    int64_t edge = mla_edge_ring(r, positions[mla_rng_below(rng, 5)], rng);
    switch (kind) {
    case 0:
        return seam_after(r, at, beside < 0);
    case 1:
        return row_at(r, edge + beside, at);
    case 2:
        return row_at(r, r->logical_n - 1, at);
    case 3: { /* of a tile or a chunk of queries */
        int64_t unit = beside == 0 ? r->q_chunk_size : MLA_TILE;
        int64_t end = at.row / unit * unit;
        at.row = clamp(end - (beside < 0), 0, r->q_rows - 1);
        return at;
    }
    default:
        return at;
    }
}

/* A query of the sparse operation: where a tile of rows or a core's share begins or ends. */
static struct mla_row edge_of_sparse(const struct mla_sparse_args *s, struct mla_rng *rng)
{
    int64_t units[] = {8, 128, s->queries / s->cores, s->queries};
    int64_t any = mla_rng_below(rng, s->queries), unit = units[mla_rng_below(rng, 4)];
    int64_t beside = mla_rng_below(rng, 3) - 1;
    int64_t row = mla_rng_chance(rng, 1, 4) ? any : (any / unit + 1) * unit + beside;
    return (struct mla_row){.row = clamp(row, 0, s->queries - 1)};
}

static bool takes(const struct mla_case *test, struct mla_row wanted)
{
    int64_t rows_n;
    bool found = false;
    struct mla_row *rows = mla_rows_draw(test, &rows_n);
    if (rows == NULL)
        return false;
    for (int64_t i = 0; i < rows_n && !found; i++)
        found = rows[i].rank == wanted.rank && rows[i].row == wanted.row;
    free(rows);
    return found;
}

void mla_draw_aim(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_row wanted = test->op == MLA_OP_RING ? edge_of_ring(&test->ring, rng)
                                                    : edge_of_sparse(&test->sparse, rng);
    uint64_t first = test->row_seed;
    for (int i = 0; i < SEEDS_TRIED && !takes(test, wanted); i++)
        test->row_seed = (first + (uint64_t)i + 1) % 65536;
}
