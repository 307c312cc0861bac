/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_ring.c - the geometry of a ring call: ranks, shards, chunks, lengths at their edges, slots.
 */
#include "fuzz/draw.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* An edge, mostly itself, else a key or a tile beside it. */
static int64_t near_edge(const struct mla_ring_args *r, enum mla_choice choice, struct mla_rng *rng)
{
    enum mla_edge edge = (enum mla_edge)mla_draw_choice(rng, choice);
    int64_t beside = mla_draw_choice(rng, MLA_CHOICE_NEAR);
    return mla_edge_ring(r, edge, rng) + beside;
}

/* The same in whole tiles. */
static int64_t near_tile(const struct mla_ring_args *r, enum mla_choice choice, struct mla_rng *rng)
{
    enum mla_edge edge = (enum mla_edge)mla_draw_choice(rng, choice);
    int64_t beside = mla_rng_chance(rng, 1, 2) ? 0 : mla_rng_below(rng, 3) - 1;
    return mla_edge_ring(r, edge, rng) / MLA_TILE + beside;
}

void mla_draw_rotation(struct mla_ring_args *r, struct mla_rng *rng)
{
    int64_t all = r->ring_size * r->kv_rows / MLA_TILE, slab = r->ring_size * r->q_rows / MLA_TILE;
    int64_t prior = clamp(near_tile(r, MLA_CHOICE_RING_PRIOR, rng), 0, all - 1);
    int64_t most = all - prior < slab ? all - prior : slab;
    int64_t fresh = clamp(near_tile(r, MLA_CHOICE_RING_FRESH, rng), 1, most);
    r->has_prior = 1;
    r->kv_actual_isl = prior * MLA_TILE;
    r->logical_n = (prior + fresh) * MLA_TILE;
}

/* The smallest of everything but one: what else there is must not make the case too large. */
static void make_narrow(struct mla_ring_args *r)
{
    r->heads = 1;
    r->q_rows = MLA_TILE;
    r->head_dim = 64;
    r->head_dim_v = 32;
}

/* P inside a rank's rows, which then hold the ends of two slabs, and new tokens that end anywhere: few
 * shapes have that by chance once they are made small. */
static void draw_split_rotation(struct mla_ring_args *r, struct mla_rng *rng)
{
    int64_t rank = r->q_rows / MLA_TILE, slab = r->ring_size * rank;
    int64_t all = r->ring_size * r->kv_rows / MLA_TILE;
    int64_t before = mla_rng_below(rng, all / rank), inside = 1 + mla_rng_below(rng, rank - 1);
    int64_t some = 1 + mla_rng_below(rng, slab);
    int64_t prior = before * rank + inside;
    int64_t fresh = mla_rng_chance(rng, 1, 2) ? slab : some;
    fresh = clamp(fresh, 1, all - prior);
    r->has_prior = 1;
    r->kv_actual_isl = prior * MLA_TILE;
    r->logical_n = (prior + fresh) * MLA_TILE;
}

static void draw_mode(struct mla_ring_args *r, enum mla_ring_mode mode, int64_t slabs,
                      struct mla_rng *rng)
{
    switch (mode) {
    case MLA_MODE_CONTIGUOUS:
        r->kv_rows = r->q_rows;
        r->logical_n = near_edge(r, MLA_CHOICE_RING_LENGTH, rng);
        break;
    case MLA_MODE_BALANCED:
        r->is_balanced = 1;
        break;
    case MLA_MODE_CHUNKED:
        r->kv_rows = r->q_rows * slabs;
        r->logical_n = near_edge(r, MLA_CHOICE_RING_LENGTH_CHUNKED, rng);
        break;
    case MLA_MODE_ROTATED:
        r->kv_rows = r->q_rows * slabs;
        mla_draw_rotation(r, rng);
        break;
    case MLA_MODE_SPLIT:
        make_narrow(r);
        r->ring_size = 2 + mla_rng_below(rng, 2);
        r->q_rows = (r->ring_size == 2 && mla_rng_chance(rng, 3, 4) ? 3 : 2) * MLA_TILE;
        r->kv_rows = r->q_rows * (2 + mla_rng_below(rng, 2));
        draw_split_rotation(r, rng);
        break;
    }
}

static void draw_slot(struct mla_ring_args *r, struct mla_rng *rng)
{
    enum mla_ring_slot slot = (enum mla_ring_slot)mla_draw_choice(rng, MLA_CHOICE_RING_SLOT);
    r->batch = slot == MLA_SLOT_NONE ? mla_draw_choice(rng, MLA_CHOICE_RING_BATCH) : 1;
    r->has_slot = slot != MLA_SLOT_NONE;
    r->kv_batch = r->has_slot ? mla_draw_choice(rng, MLA_CHOICE_RING_SLOTS) : r->batch;
    if (slot == MLA_SLOT_HUGE) /* mla_case_fix knows how many that takes */
        r->kv_batch = INT32_MAX;
    int64_t place = mla_rng_below(rng, 4);
    r->kv_cache_batch_idx = r->has_slot && place > 0 ? r->kv_batch - 1 - place / 3 : 0;
    r->gathered_batch = mla_rng_chance(rng, 1, 2) ? 1 : r->kv_batch;
}

static void draw_threads(struct mla_ring_args *r, struct mla_rng *rng)
{
    int64_t threads = mla_draw_choice(rng, MLA_CHOICE_RING_THREADS);
    r->threads = threads == MLA_THREADS_RANKS      ? r->ring_size
                 : threads == MLA_THREADS_ONE_MORE ? r->ring_size + 1
                 : threads == MLA_THREADS_TWICE    ? 2 * r->ring_size
                                                   : threads;
}

static void draw_widths(struct mla_ring_args *r, enum mla_choice choice, struct mla_rng *rng)
{
    int64_t widths = mla_draw_choice(rng, choice);
    r->head_dim = widths / 1024;
    r->head_dim_v = widths % 1024;
}

/* Many keys a row. Half of the time their weights are equal, which is what short sums fail at. */
static enum mla_ring_mode make_long(struct mla_case *test, struct mla_rng *rng)
{
    make_narrow(&test->ring);
    test->ring.ring_size = 1 + mla_rng_below(rng, 2);
    if (mla_draw_chance(rng, mla_draw_chances.long_is_flat)) {
        test->family = mla_family_find("profile");
        test->region = MLA_REGION_FLAT;
    }
    return mla_rng_chance(rng, 1, 2) ? MLA_MODE_CHUNKED : MLA_MODE_ROTATED;
}

/* Half a shard that chunks do not divide, and is longer than one: of one rank, the least there is of
 * two, or more than that. */
static enum mla_ring_mode make_straddling(struct mla_ring_args *r, bool large, struct mla_rng *rng)
{
    make_narrow(r);
    r->batch = r->kv_batch = 1;
    r->has_slot = 0;
    r->ring_size = large || mla_rng_chance(rng, 3, 4) ? 2 : 1;
    r->q_rows = (large ? 8 : r->ring_size == 2 ? 6 : 10) * MLA_TILE;
    r->k_chunk_size = (large ? 3 : r->ring_size == 2 ? 2 : 2 + mla_rng_below(rng, 3)) * MLA_TILE;
    r->q_chunk_size = MLA_TILE;
    return MLA_MODE_BALANCED;
}

/* A chunk may be longer than any shard: longer than 31 and 32 bits count, too. */
static void make_one_chunk(struct mla_ring_args *r, struct mla_rng *rng)
{
    static const int64_t chunks[] = {(int64_t)1 << 31, ((int64_t)1 << 32) + MLA_TILE,
                                     (int64_t)1 << 40};
    r->k_chunk_size = chunks[mla_rng_below(rng, 3)];
    if (mla_rng_chance(rng, 1, 2))
        r->q_chunk_size = chunks[mla_rng_below(rng, 3)];
}

/* What is too much for every case, one thing at a time. */
static enum mla_ring_mode make_large(struct mla_ring_args *r, enum mla_ring_mode mode,
                                     struct mla_rng *rng)
{
    switch ((enum mla_ring_large)mla_draw_choice(rng, MLA_CHOICE_RING_LARGE)) {
    case MLA_RING_WIDE:
        make_narrow(r);
        r->ring_size = mla_draw_choice(rng, MLA_CHOICE_RING_SIZE_WIDE);
        return mla_rng_chance(rng, 1, 4) ? MLA_MODE_BALANCED : mode;
    case MLA_RING_MANY_HEADS:
        make_narrow(r);
        r->heads = 16 + mla_rng_below(rng, 2);
        break;
    case MLA_RING_FULL_WIDTH:
        draw_widths(r, MLA_CHOICE_RING_WIDTHS_LARGE, rng);
        r->ring_size =
            1 + mla_rng_below(rng, 2); /* of a wider ring the width would be taken back */
        break;
    case MLA_RING_STRADDLING:
        return make_straddling(r, true, rng);
    }
    return mode;
}

/* In the later half of the queries: the rows before it are the ones to be judged. */
static int64_t draw_future(const struct mla_ring_args *r, struct mla_rng *rng)
{
    int64_t first = r->has_prior             ? r->kv_actual_isl
                    : r->q_rows < r->kv_rows ? r->logical_n - r->ring_size * r->q_rows
                                             : 0;
    int64_t half = r->ring_size * r->q_rows / 2;
    return first + half + 1 + mla_rng_below(rng, half);
}

void mla_draw_ring(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_ring_args *r = &test->ring;
    enum mla_ring_mode mode = (enum mla_ring_mode)mla_draw_choice(rng, MLA_CHOICE_RING_MODE);
    int64_t slabs = mla_draw_choice(rng, MLA_CHOICE_RING_SLABS);
    draw_widths(r, MLA_CHOICE_RING_WIDTHS, rng);
    r->ring_size = mla_draw_choice(rng, MLA_CHOICE_RING_SIZE);
    r->heads = mla_draw_choice(rng, MLA_CHOICE_RING_HEADS);
    r->q_rows = MLA_TILE * mla_draw_choice(rng, MLA_CHOICE_RING_Q_TILES);
    r->q_chunk_size = MLA_TILE * mla_draw_choice(rng, MLA_CHOICE_RING_Q_CHUNK_TILES);
    r->k_chunk_size = MLA_TILE * mla_draw_choice(rng, MLA_CHOICE_RING_K_CHUNK_TILES);
    r->topology = (int32_t)mla_draw_choice(rng, MLA_CHOICE_RING_TOPOLOGY);
    r->num_links = mla_draw_choice(rng, MLA_CHOICE_RING_LINKS);
    r->has_scale = !mla_draw_chance(rng, mla_draw_chances.default_scale);
    r->scale = r->has_scale ? mla_draw_scale(rng) : 0;
    if (r->has_scale && mla_draw_chance(rng, mla_draw_chances.extreme_scale))
        r->scale = mla_draw_extreme_scale(test, rng);
    draw_slot(r, rng);
    if (mla_case_may_be_large(test)) {
        mode = make_large(r, mode, rng);
    } else if (mla_case_may_be_medium(test) && mla_rng_chance(rng, 1, 4)) {
        mode = make_straddling(r, false, rng);
    } else if (mla_draw_chance(rng, mla_draw_chances.ring_long)) {
        mode = make_long(test, rng);
        slabs = mla_draw_choice(rng, MLA_CHOICE_RING_SLABS_LONG);
    }
    draw_threads(r, rng);
    if (mla_draw_chance(rng, mla_draw_chances.extreme_chunk))
        make_one_chunk(r, rng);
    draw_mode(r, mode, slabs, rng);
    r->gathered_rows = r->ring_size * r->kv_rows + mla_draw_choice(rng, MLA_CHOICE_RING_SPARE_ROWS);
    test->has_future = mla_draw_chance(rng, mla_draw_chances.future);
    test->future = test->has_future ? draw_future(r, rng) : 0;
}
