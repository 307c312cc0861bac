/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink_steps.c - the table of reductions.
 *
 * A step proposes; whether the proposal is legal, simpler and fails alike is not its business. Numbers
 * come down by halves: first to the least, then by half the way, a quarter, .. , one unit.
 */
#include "fuzz/shrink_steps.h"

#include "fuzz/shrink_internal.h"

enum { RING = 1 << MLA_OP_RING, SPARSE = 1 << MLA_OP_SPARSE, BOTH = RING | SPARSE };

/* The i-th way to bring a number down to `least`. */
static bool lower(int64_t *value, int64_t least, int64_t unit, int64_t i)
{
    int64_t span = (*value - least) / unit, down = i < 62 ? span >> i : 0;
    if (down <= 0)
        return false;
    *value -= down * unit;
    return true;
}

/* A flag or enum: every smaller value, 0 first. */
static bool smaller(int32_t *value, int64_t i)
{
    if (i >= *value)
        return false;
    *value = (int32_t)i;
    return true;
}

/* ---- ring ---- */

/* Two ways to shorten the cache: logical_n stays, or it stays as far from the end as it was. */
static void move_end(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    const struct mla_ring_args *a = &from->ring;
    struct mla_ring_args *b = &to->ring;
    if (i % 2 == 1)
        b->logical_n += b->ring_size * b->kv_rows - a->ring_size * a->kv_rows;
}

static bool ranks(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    bool more = lower(&to->ring.ring_size, 1, 1, i / 2);
    move_end(from, i, to);
    return more;
}

static bool query_rows(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    struct mla_ring_args *r = &to->ring;
    int64_t unit = r->is_balanced ? 2 * MLA_TILE : MLA_TILE, slabs = r->kv_rows / r->q_rows;
    bool more = lower(&r->q_rows, unit, unit, i / 2);
    r->kv_rows = slabs * r->q_rows;
    move_end(from, i, to);
    return more;
}

static bool cache_rows(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    bool more = lower(&to->ring.kv_rows, to->ring.q_rows, to->ring.q_rows, i / 2);
    move_end(from, i, to);
    return more;
}

static bool logical_n(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->ring.logical_n, 1, 1, i);
}

static bool prior(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    struct mla_ring_args *r = &to->ring;
    (void)from;
    if (!r->has_prior)
        return false;
    if (i > 0)
        return lower(&r->kv_actual_isl, 0, MLA_TILE, i - 1);
    r->has_prior = 0;
    r->kv_actual_isl = 0;
    return true;
}

static bool balanced(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->ring.is_balanced, i);
}

static bool slot(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->ring.has_slot, i);
}

static bool slots(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    struct mla_ring_args *r = &to->ring;
    (void)from;
    if (i % 2 == 0)
        return lower(&r->kv_batch, r->kv_cache_batch_idx + 1, 1, i / 2);
    return lower(&r->kv_cache_batch_idx, 0, 1, i / 2);
}

static bool gathered_batch(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return to->ring.has_slot && i == 0 && lower(&to->ring.gathered_batch, 1, 1, 0);
}

static bool gathered_slack(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    struct mla_ring_args *r = &to->ring;
    (void)from;
    return lower(&r->gathered_rows, r->ring_size * r->kv_rows, 1, i);
}

static bool batch(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->ring.batch, 1, 1, i);
}

static bool ring_heads(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->ring.heads, 1, 1, i);
}

/* The key's width with the value's as it is, or both. */
static bool widths(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    struct mla_ring_args *r = &to->ring;
    int64_t rope = r->head_dim - r->head_dim_v;
    (void)from;
    if (i % 2 == 0)
        return lower(&r->head_dim, r->head_dim_v + MLA_TILE, MLA_TILE, i / 2) || r->head_dim_v > 32;
    bool more = lower(&r->head_dim_v, MLA_TILE, MLA_TILE, i / 2);
    r->head_dim = r->head_dim_v + rope;
    return more || (i == 1 && rope > MLA_TILE);
}

static bool value_width(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->ring.head_dim_v, MLA_TILE, MLA_TILE, i);
}

/* K chunks: one block a shard, two, then by halves. */
static bool key_chunk(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    int64_t *chunk = &to->ring.k_chunk_size, rows = from->ring.kv_rows;
    int64_t half = (rows / 2 + MLA_TILE - 1) / MLA_TILE * MLA_TILE;
    if (i >= 2)
        return lower(chunk, MLA_TILE, MLA_TILE, i - 2);
    *chunk = i == 0 ? rows : half;
    return true;
}

static bool query_chunk(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->ring.q_chunk_size, MLA_TILE, MLA_TILE, i);
}

static bool topology(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->ring.topology, i);
}

static bool links(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->ring.num_links, 1, 1, i);
}

static bool ring_threads(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->ring.threads, 0, 1, i);
}

static bool ring_scale(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    if (!to->ring.has_scale || i > 1)
        return false;
    to->ring.has_scale = i == 1;
    to->ring.scale = i == 1 ? 1.0f : 0.0f;
    return true;
}

static bool future(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    if (!smaller(&to->has_future, i))
        return false;
    to->future = 0;
    return true;
}

/* ---- sparse ---- */

static bool queries(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->sparse.queries, 1, 1, i);
}

static bool keys(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->sparse.keys, 1, 1, i);
}

static bool sparse_heads(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->sparse.heads, 16, 16, i);
}

static bool rope(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->sparse.rope, 1, 1, i);
}

static bool list_length(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->sparse.topk, MLA_TOPK_MULTIPLE, MLA_TOPK_MULTIPLE, i);
}

static bool dense(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->sparse.dense, i);
}

static bool tiled(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->sparse.topk_tiled, i);
}

static bool offset(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    struct mla_sparse_args *s = &to->sparse;
    (void)from;
    if (!s->has_q_pos_offset)
        return false;
    if (i > 0)
        return lower(&s->q_pos_offset, 0, 1, i - 1);
    s->has_q_pos_offset = 0;
    s->q_pos_offset = 0;
    return true;
}

static bool order(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->sparse.out_order, i);
}

static bool cores(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->sparse.cores, 1, 1, i);
}

static bool sparse_threads(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return lower(&to->sparse.threads, 0, 1, i);
}

static bool sparse_scale(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    static const float scales[] = {1.0f, 0x1p-4f};
    (void)from;
    if (i >= 2)
        return false;
    to->sparse.softmax_scale = scales[i];
    return true;
}

static bool indices(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->indices, i);
}

/* ---- data ---- */

static bool overrides(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    if (i >= (int64_t)from->put_n)
        return false;
    to->put_n--;
    for (size_t k = (size_t)i; k < to->put_n; k++)
        to->put[k] = from->put[k + 1];
    return true;
}

static bool violations(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    if (from->set_n < 2 || i >= (int64_t)from->set_n)
        return false;
    to->set[0] = from->set[1 - i];
    to->set_n = 1;
    return true;
}

/* Any simpler family and region, with its least strength. */
static bool recipe(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    return i < mla_shrink_recipe_rank(from) && mla_shrink_set_recipe(to, i);
}

static bool amount(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    int64_t size = from->amount < 0 ? -from->amount : from->amount;
    bool more = lower(&size, 0, 1, i);
    to->amount = from->amount < 0 ? -size : size;
    return more;
}

static bool poison(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->poison, i);
}

static bool statistics(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->stats, i);
}

#define SEEDS_TRIED 8

static bool seed(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    to->seed = (uint64_t)i;
    return i < SEEDS_TRIED && to->seed < from->seed;
}

static bool row_seed(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    to->row_seed = (uint64_t)i;
    return i < SEEDS_TRIED && to->row_seed < from->row_seed;
}

static bool bits(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    mla_case_set_bits(to, i + 1);
    return i + 1 < from->bits;
}

/* One row, whichever; which one fails is found by who tries the proposal. */
static bool rows(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    to->rows = 1;
    to->row_seed = (uint64_t)i;
    return i < SEEDS_TRIED && from->rows != 1;
}

static bool slow(const struct mla_case *from, int64_t i, struct mla_case *to)
{
    (void)from;
    return smaller(&to->slow, i);
}

static const struct mla_shrink_step steps[] = {
    {"rows", BOTH, rows},
    {"set", BOTH, violations},
    {"R", RING, ranks},
    {"B", RING, batch},
    {"H", RING, ring_heads},
    {"H", SPARSE, sparse_heads},
    {"P", RING, prior},
    {"balanced", RING, balanced},
    {"slot", RING, slot},
    {"Bk", RING, slots},
    {"Bg", RING, gathered_batch},
    {"Nk", RING, cache_rows},
    {"Nq", RING, query_rows},
    {"L", RING, logical_n},
    {"G", RING, gathered_slack},
    {"DH", RING, widths},
    {"DV", RING, value_width},
    {"k_chunk", RING, key_chunk},
    {"q_chunk", RING, query_chunk},
    {"topology", RING, topology},
    {"links", RING, links},
    {"threads", RING, ring_threads},
    {"scale", RING, ring_scale},
    {"future", RING, future},
    {"S", SPARSE, queries},
    {"K", SPARSE, list_length},
    {"S_kv", SPARSE, keys},
    {"Rr", SPARSE, rope},
    {"dense", SPARSE, dense},
    {"tiled", SPARSE, tiled},
    {"offset", SPARSE, offset},
    {"order", SPARSE, order},
    {"cores", SPARSE, cores},
    {"threads", SPARSE, sparse_threads},
    {"scale", SPARSE, sparse_scale},
    {"indices", SPARSE, indices},
    {"put", BOTH, overrides},
    {"stats", BOTH, statistics},
    {"family", BOTH, recipe},
    {"amount", BOTH, amount},
    {"poison", BOTH, poison},
    {"seed", BOTH, seed},
    {"bits", BOTH, bits},
    {"row_seed", BOTH, row_seed},
    {"slow", BOTH, slow},
};

const struct mla_shrink_step *mla_shrink_steps(size_t *steps_n)
{
    *steps_n = sizeof steps / sizeof steps[0];
    return steps;
}
