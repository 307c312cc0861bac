/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_across.c - rows of one operation by the other.
 *
 * A ring row is a softmax over the keys it sees, and so is a sparse row over the keys it lists: with
 * a latent of 512 columns that serve as V and the rest as RoPE part they are the same row. A kernel
 * that offers only one of the operations has nothing to compare.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/indices.h"
#include "fuzz/judge_internal.h"
#include "fuzz/relations_internal.h"
#include "oracle/visible.h"

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One of the rows that are judged. false: no memory. */
static bool drawn_row(const struct mla_case *test, struct mla_rng *rng, struct mla_row *row)
{
    int64_t rows_n;
    struct mla_row *rows = mla_rows_draw(test, &rows_n);
    if (rows == NULL)
        return false;
    *row = rows[mla_rng_below(rng, rows_n)];
    free(rows);
    return true;
}

/* ---- ring rows as sparse rows ---- */

/*
 * Three ways to name the keys 0 .. p that a query at position p sees: dense; all keys listed and
 * those beyond p dropped by q_pos_offset; or just they listed, where they are a multiple of 128.
 */
enum form { DENSE, DROPPED, LISTED, FORMS_N };

struct excerpt {
    int64_t batch;
    int64_t position; /* of the first query */
    int64_t queries;  /* their positions follow each other */
    enum form form;
    bool tiled;
    bool natural;
};

/* false: no row of the ring can be asked for. A function of the first call. */
static bool choose_excerpt(const struct mla_tensors *first, struct excerpt *e)
{
    const struct mla_ring_args *r = &first->ring;
    struct mla_rng rng = mla_relation_rng(&first->test, 8);
    struct mla_row row;
    if (!drawn_row(&first->test, &rng, &row))
        return false;
    e->batch = row.batch;
    e->position = mla_oracle_query_position(r, row.rank, row.row);
    e->form = (enum form)mla_rng_below(&rng, FORMS_N);
    e->tiled = mla_rng_chance(&rng, 1, 2);
    e->natural = mla_rng_chance(&rng, 1, 2);
    if (e->form == LISTED && smaller(e->position + 1, r->logical_n) % MLA_TOPK_MULTIPLE != 0)
        e->form = DROPPED;
    bool next = e->form != LISTED && mla_relation_query_at(r, e->position + 1, &row.rank, &row.row);
    e->queries = next ? 2 : 1;
    return e->position >= 0;
}

/* Keys that a query of the excerpt sees: the first so many. Behind them may stand one that none
 * sees, to fill up lists with. */
static int64_t seen_keys(const struct mla_ring_args *r, const struct excerpt *e)
{
    return smaller(r->logical_n, e->position + e->queries);
}

static int64_t hidden_key(const struct mla_ring_args *r, const struct excerpt *e)
{
    int64_t beyond = e->position + e->queries;
    return beyond > r->logical_n ? beyond : r->logical_n;
}

enum mla_tie mla_vary_as_sparse(const struct mla_tensors *first, struct mla_case *test)
{
    const struct mla_ring_args *r = &first->ring;
    struct excerpt e;
    int64_t heads = round_up(r->heads, 16);
    if (r->head_dim_v != MLA_LATENT || r->head_dim - MLA_LATENT > MLA_ROPE_MAX ||
        heads > MLA_SPARSE_HEADS_MAX || !choose_excerpt(first, &e))
        return MLA_TIE_NONE;
    test->op = MLA_OP_SPARSE;
    test->sparse = (struct mla_sparse_args){
        .queries = e.queries,
        .keys = e.form == DROPPED ? hidden_key(r, &e) + 1 : r->logical_n,
        .heads = heads,
        .rope = r->head_dim - MLA_LATENT,
        .topk = e.form == DENSE ? MLA_TOPK_MULTIPLE : round_up(seen_keys(r, &e), MLA_TOPK_MULTIPLE),
        .topk_tiled = e.tiled,
        .dense = e.form == DENSE,
        .has_q_pos_offset = e.form != LISTED,
        .q_pos_offset = e.form != LISTED ? e.position : 0,
        .out_order = e.natural ? MLA_OUT_NATURAL : MLA_OUT_MX4,
        .cores = 1,
        .threads = r->threads,
        .softmax_scale = mla_case_scale(&first->test)};
    return MLA_TIE_VALUE;
}

static void split(const uint16_t *row, int64_t rope, uint16_t *latent, uint16_t *rest)
{
    memcpy(latent, row, MLA_LATENT * sizeof *row);
    memcpy(rest, row + MLA_LATENT, (size_t)rope * sizeof *row);
}

/* Row j of the cache is the key at position j; what no row sees is NaN. */
static void split_keys(const struct mla_tensors *first, struct mla_tensors *second, int64_t batch)
{
    const struct mla_ring_args *r = &first->ring;
    const struct mla_sparse_args *s = &second->sparse;
    int64_t slot = r->has_slot ? r->kv_cache_batch_idx : batch;
    uint16_t *c_kv = mla_tensors_bf16(second, "c_kv", 0);
    uint16_t *k_pe = mla_tensors_bf16(second, "k_pe", 0);
    for (int64_t i = 0; i < s->keys * MLA_LATENT; i++)
        c_kv[i] = MLA_BF16_NAN;
    for (int64_t i = 0; i < s->keys * s->rope; i++)
        k_pe[i] = MLA_BF16_NAN;
    for (int64_t d = 0; d < r->ring_size; d++)
        for (int64_t t = 0; t < r->kv_rows; t++) {
            int64_t p = mla_oracle_key_position(r, d, t);
            if (p < r->logical_n)
                split(first->kv[d] + (slot * r->kv_rows + t) * r->head_dim, s->rope,
                      c_kv + p * MLA_LATENT, k_pe + p * s->rope);
        }
}

/* Heads are a multiple of 16 there: they go round again. */
static void split_queries(const struct mla_tensors *first, struct mla_tensors *second,
                          const struct excerpt *e)
{
    const struct mla_ring_args *r = &first->ring;
    const struct mla_sparse_args *s = &second->sparse;
    uint16_t *q_lift = mla_tensors_bf16(second, "q_lift", 0);
    uint16_t *q_pe = mla_tensors_bf16(second, "q_pe", 0);
    for (int64_t q = 0; q < s->queries; q++) {
        int64_t rank = 0, row = 0;
        (void)mla_relation_query_at(r, e->position + q, &rank, &row);
        for (int64_t h = 0; h < s->heads; h++) {
            int64_t from = (e->batch * r->heads + h % r->heads) * r->q_rows + row;
            split(first->q[rank] + from * r->head_dim, s->rope,
                  q_lift + (q * s->heads + h) * MLA_LATENT, q_pe + (q * s->heads + h) * s->rope);
        }
    }
}

bool mla_arrange_as_sparse(const struct mla_tensors *first, struct mla_tensors *second)
{
    const struct mla_sparse_args *s = &second->sparse;
    struct excerpt e;
    if (!choose_excerpt(first, &e))
        return false;
    split_keys(first, second, e.batch);
    split_queries(first, second, &e);
    if (s->dense)
        return true;
    struct mla_tensor *list = mla_tensors_find(second, "topk_indices", 0);
    int32_t *topk = (int32_t *)(void *)list->guard.data;
    int64_t seen = seen_keys(&first->ring, &e), hidden = hidden_key(&first->ring, &e);
    for (int64_t i = 0; i < list->elements_n; i++)
        topk[i] = -1; /* stays in the slots of rows that do not exist */
    for (int64_t q = 0; q < s->queries; q++)
        for (int64_t j = 0; j < s->topk; j++)
            topk[mla_indices_place(s, q, j)] = (int32_t)(j < seen ? j : hidden);
    return true;
}

bool mla_match_as_sparse(const struct mla_tensors *first, const struct mla_tensors *second,
                         struct mla_row row, struct mla_row *other)
{
    struct excerpt e;
    if (!choose_excerpt(first, &e))
        return false;
    int64_t q = mla_oracle_query_position(&first->ring, row.rank, row.row) - e.position;
    *other = (struct mla_row){.head = row.head, .row = q};
    return row.batch == e.batch && q >= 0 && q < second->sparse.queries;
}

/* ---- a sparse row as a ring row ---- */

/* The row, and the keys it lists. The caller frees them. */
static bool choose_row(const struct mla_tensors *first, struct mla_rng *rng, struct mla_row *row,
                       struct mla_oracle_visible *visible)
{
    *rng = mla_relation_rng(&first->test, 9);
    return drawn_row(&first->test, rng, row) &&
           mla_oracle_visible_sparse(&first->sparse, row->row, visible) == MLA_OK;
}

/*
 * The listed keys become a sequence of their own, in a cache that is larger than a chunk: of the
 * last chunk's queries the very last one sees all of it. What is wanting to a width that is a
 * multiple of 32 is 0.
 */
enum mla_tie mla_vary_as_ring(const struct mla_tensors *first, struct mla_case *test)
{
    const struct mla_sparse_args *s = &first->sparse;
    struct mla_oracle_visible visible;
    struct mla_row row;
    struct mla_rng rng;
    if (!choose_row(first, &rng, &row, &visible))
        return MLA_TIE_NONE;
    int64_t tiles = round_up(visible.keys_n, MLA_TILE) / MLA_TILE;
    int64_t ranks = tiles < 1 ? 1 : 1 + mla_rng_below(&rng, smaller(tiles, 4));
    int64_t kv_rows = MLA_TILE * (round_up(tiles, ranks) / ranks + 1);
    test->op = MLA_OP_RING;
    test->has_future = 0;
    test->ring = (struct mla_ring_args){.ring_size = ranks,
                                        .batch = 1,
                                        .heads = 1,
                                        .q_rows = MLA_TILE,
                                        .kv_rows = kv_rows,
                                        .kv_batch = 1,
                                        .gathered_rows = ranks * kv_rows,
                                        .gathered_batch = 1,
                                        .head_dim = MLA_LATENT + round_up(s->rope, MLA_TILE),
                                        .head_dim_v = MLA_LATENT,
                                        .logical_n = visible.keys_n,
                                        .has_scale = 1,
                                        .scale = s->softmax_scale,
                                        .topology = (int32_t)mla_rng_below(&rng, 2),
                                        .num_links = 1,
                                        .q_chunk_size = MLA_TILE,
                                        .k_chunk_size = MLA_TILE * (1 + mla_rng_below(&rng, 4)),
                                        .threads = s->threads};
    mla_oracle_visible_free(&visible);
    return test->ring.logical_n > 0 ? MLA_TIE_VALUE : MLA_TIE_NONE;
}

static void join(const uint16_t *latent, const uint16_t *rope, int64_t rope_n, uint16_t *row,
                 int64_t width)
{
    memset(row, 0, (size_t)width * sizeof *row);
    memcpy(row, latent, MLA_LATENT * sizeof *row);
    memcpy(row + MLA_LATENT, rope, (size_t)rope_n * sizeof *row);
}

bool mla_arrange_as_ring(const struct mla_tensors *first, struct mla_tensors *second)
{
    const struct mla_sparse_args *s = &first->sparse;
    const struct mla_ring_args *r = &second->ring;
    struct mla_oracle_visible visible;
    struct mla_row row;
    struct mla_rng rng;
    if (!choose_row(first, &rng, &row, &visible))
        return false;
    int64_t at = row.row * s->heads + row.head, width = r->head_dim;
    for (int64_t d = 0; d < r->ring_size; d++) {
        uint16_t *q = mla_tensors_bf16(second, "q", d), *kv = mla_tensors_bf16(second, "kv", d);
        for (int64_t i = 0; i < r->q_rows; i++)
            join(s->q_lift + at * MLA_LATENT, s->q_pe + at * s->rope, s->rope, q + i * width,
                 width);
        for (int64_t t = 0; t < r->kv_rows; t++) {
            int64_t p = mla_oracle_key_position(r, d, t);
            int64_t j = p < r->logical_n ? visible.keys[p].row : -1;
            if (j >= 0)
                join(s->c_kv + j * MLA_LATENT, s->k_pe + j * s->rope, s->rope, kv + t * width,
                     width);
            for (int64_t c = 0; j < 0 && c < width; c++)
                kv[t * width + c] = MLA_BF16_NAN;
        }
    }
    mla_oracle_visible_free(&visible);
    return true;
}

bool mla_match_as_ring(const struct mla_tensors *first, const struct mla_tensors *second,
                       struct mla_row row, struct mla_row *other)
{
    struct mla_rng rng = mla_relation_rng(&first->test, 9);
    struct mla_row chosen;
    *other = (struct mla_row){.rank = second->ring.ring_size - 1, .row = MLA_TILE - 1};
    return drawn_row(&first->test, &rng, &chosen) && row.row == chosen.row &&
           row.head == chosen.head;
}
