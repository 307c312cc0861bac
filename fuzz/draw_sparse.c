/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_sparse.c - the geometry of a sparse call: rows, lists, caches of every size, offsets.
 */
#include "fuzz/draw.h"

/* Rows across an edge of the tiled index layout, mostly on several cores. With an offset of 0 most of
 * a list is dropped, and so much height is cheap. */
static void make_tall(struct mla_case *test, bool large, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = 127 + mla_rng_below(rng, 4);
    if (s->queries < 129 && mla_rng_chance(rng, 1, 3))
        s->queries += 2;
    s->topk = 128;
    s->heads = 16;
    s->keys = large && mla_rng_chance(rng, 1, 4) ? 100 : 1000;
    int64_t kind = mla_rng_below(rng, 8), beyond = mla_rng_below(rng, 10);
    if (kind < 4 && s->keys == 1000) { /* the second tile's second line of 8 rows, or the third */
        s->queries = (kind == 0 || !large ? 134 : 255) + beyond;
        test->indices %= MLA_INDICES_REVERSED + 1;
    }
    s->topk_tiled = mla_rng_chance(rng, 3, 4);
    s->dense = 0;
    s->has_q_pos_offset = s->keys == 1000;
    s->q_pos_offset = 0;
}

/* Several rows on several cores, tiled or not, each with a few keys of its list. */
static void make_dropped(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = mla_draw_choice(rng, MLA_CHOICE_SPARSE_QUERIES_DROPPED);
    s->heads = 16;
    s->topk = 128;
    s->dense = 0;
    s->has_q_pos_offset = 1;
    s->q_pos_offset = mla_rng_below(rng, 3);
    s->keys = 256 + mla_rng_below(rng, 64);
    test->indices = (int32_t)mla_rng_below(rng, MLA_INDICES_REVERSED + 1);
}

/* More than 32 dense rows, of which each sees one key more than the last. */
static void make_stairs(struct mla_sparse_args *s, struct mla_rng *rng)
{
    s->queries = 34 + mla_rng_below(rng, 7);
    s->heads = 16;
    s->dense = 1;
    s->has_q_pos_offset = 0;
    s->keys = s->queries + mla_rng_below(rng, 8);
}

/* Many keys a row. Half of the time their weights are equal, which is what short sums fail at; or the
 * maximum rises a little in each block, which is what a factor left out shows at. */
static void make_long(struct mla_case *test, int64_t blocks_max, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = 1;
    s->heads = 16;
    s->topk = 128 * (3 + mla_rng_below(rng, blocks_max - 2));
    if (mla_rng_chance(rng, 1, 4))
        s->topk = 128 * blocks_max;
    if (mla_rng_chance(rng, 1, 4)) /* see draw_offset */
        test->indices = MLA_INDICES_LEADING + (int32_t)mla_rng_below(rng, 3);
    int64_t beside = mla_rng_below(rng, 3) - 1;
    s->keys = mla_rng_chance(rng, 1, 4) ? 100 : s->topk + beside;
    bool is_flat = mla_draw_chance(rng, mla_draw_chances.long_is_flat);
    if (is_flat || mla_draw_chance(rng, mla_draw_chances.long_creeps)) {
        test->family = mla_family_find("profile");
        test->region = is_flat ? MLA_REGION_FLAT : MLA_REGION_CREEPING;
        if (!is_flat)
            test->indices = MLA_INDICES_SORTED;
    }
}

/* Two rows of more than one block, which are too much for every case. */
static void make_pair(struct mla_sparse_args *s, struct mla_rng *rng)
{
    s->queries = 2;
    s->heads = 16;
    s->topk = 256;
    s->dense = 0;
    s->keys = 200 + mla_rng_below(rng, 400);
}

/* More than 4096 keys of one row; of weights that differ little each of them counts. */
static void make_deep(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = 1;
    s->heads = 16;
    s->dense = mla_rng_chance(rng, 1, 2);
    s->topk = MLA_DEEP_KEYS;
    s->keys = MLA_DEEP_KEYS - mla_rng_below(rng, 130);
    s->has_q_pos_offset = s->dense || mla_rng_chance(rng, 1, 2);
    s->q_pos_offset = s->keys - mla_rng_below(rng, 3);
    if (mla_draw_chance(rng, mla_draw_chances.long_is_flat)) {
        test->family = mla_family_find("profile");
        test->region = MLA_REGION_FLAT;
    }
}

/* Indices of more than 12 or 16 bits, mostly listed. */
static void make_wide(struct mla_case *test, int64_t keys, struct mla_rng *rng)
{
    test->sparse.dense = 0;
    test->sparse.keys = keys + mla_rng_below(rng, 3);
    if (mla_rng_chance(rng, 3, 4))
        test->indices = MLA_INDICES_ENDS;
}

/* What is too much for every case, one thing at a time. */
static void make_large(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    switch ((enum mla_sparse_large)mla_draw_choice(rng, MLA_CHOICE_SPARSE_LARGE)) {
    case MLA_SPARSE_LONG:
        make_long(test, 16, rng);
        break;
    case MLA_SPARSE_MANY_HEADS:
        s->heads = 16 * (3 + mla_rng_below(rng, 6));
        if (mla_rng_chance(rng, 1, 3))
            s->heads = 128;
        s->topk = 128;
        break;
    case MLA_SPARSE_DEEP:
        make_deep(test, rng);
        break;
    case MLA_SPARSE_TALL:
        make_tall(test, true, rng);
        break;
    case MLA_SPARSE_STAIRS:
        make_stairs(s, rng);
        break;
    case MLA_SPARSE_WIDE_CACHE:
        make_wide(test, mla_rng_chance(rng, 1, 4) ? 4096 : 65536, rng);
        break;
    case MLA_SPARSE_PAIR:
        make_pair(s, rng);
        break;
    }
}

static void make_medium(struct mla_case *test, struct mla_rng *rng)
{
    switch ((enum mla_sparse_large)mla_draw_choice(rng, MLA_CHOICE_SPARSE_MEDIUM)) {
    case MLA_SPARSE_STAIRS:
        make_stairs(&test->sparse, rng);
        break;
    case MLA_SPARSE_WIDE_CACHE:
        make_wide(test, 4096, rng);
        break;
    case MLA_SPARSE_PAIR:
        make_pair(&test->sparse, rng);
        break;
    case MLA_SPARSE_TALL:
        make_tall(test, false, rng);
        test->indices %= MLA_INDICES_REVERSED + 1;
        break;
    default:
        make_long(test, 5, rng);
        break;
    }
}

/* A cache beyond 2^31 elements: one or two rows that read at its ends. */
static void make_huge(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = 1 + mla_rng_below(rng, 2);
    s->heads = 16;
    s->topk = 128;
    s->dense = 0;
    s->keys = mla_draw_choice(rng, MLA_CHOICE_SPARSE_KEYS_HUGE);
    if (s->keys > 1 << 23) /* then k_pe, too, can be beyond 2^31 bytes */
        s->rope = MLA_ROPE_MAX;
    if (mla_rng_chance(rng, 3, 4))
        test->indices = MLA_INDICES_ENDS;
}

/* The recipe has whole blocks from the upper half of the cache. */
static bool is_halved(const struct mla_case *test)
{
    return test->sparse.topk > 128 && !test->sparse.dense && test->indices >= MLA_INDICES_LEADING &&
           test->indices <= MLA_INDICES_TRAILING;
}

static void draw_offset(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    if (is_halved(test) &&
        mla_rng_chance(rng, 3, 4)) { /* for every row the upper half is dropped */
        s->has_q_pos_offset = 1;
        s->q_pos_offset = s->keys / 2 > s->queries ? s->keys / 2 - s->queries : 0;
        return;
    }
    if (s->topk > 128 && mla_rng_chance(rng, 1, 2)) { /* a second block, hardly begun, costs less */
        s->has_q_pos_offset = 1;
        s->q_pos_offset = s->keys * 5 / 8;
        return;
    }
    s->has_q_pos_offset = mla_rng_chance(rng, 2, 5);
    enum mla_edge edge = (enum mla_edge)mla_draw_choice(rng, MLA_CHOICE_SPARSE_OFFSET);
    s->q_pos_offset = mla_edge_sparse(s, edge, rng);
}

/* Cores divide the rows; mla_case_fix takes those that do not back to one. */
static void draw_cores(struct mla_sparse_args *s, struct mla_rng *rng)
{
    int64_t any = 2 + mla_rng_below(rng, 3), kind = mla_rng_below(rng, 6);
    if (s->queries > 128 && s->queries < 131) { /* of 129 the one, of 130 the other */
        any = 2 + s->queries % 2;
        kind += 1;
    }
    s->cores = kind < 2 ? 1 : kind < 4 ? any : s->queries;
    s->threads = mla_draw_choice(rng, MLA_CHOICE_SPARSE_THREADS);
}

void mla_draw_sparse(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = mla_draw_choice(rng, MLA_CHOICE_SPARSE_QUERIES);
    s->topk = mla_draw_choice(rng, MLA_CHOICE_SPARSE_TOPK);
    s->heads = mla_draw_choice(rng, MLA_CHOICE_SPARSE_HEADS);
    s->rope = mla_draw_choice(rng, MLA_CHOICE_SPARSE_ROPE);
    enum mla_edge edge = (enum mla_edge)mla_draw_choice(rng, MLA_CHOICE_SPARSE_KEYS);
    int64_t beside = edge == MLA_EDGE_LIST ? mla_rng_below(rng, 3) - 1 : 0;
    s->keys = mla_edge_sparse(s, edge, rng) + beside;
    s->topk_tiled = mla_rng_chance(rng, 1, 2);
    s->dense = mla_draw_chance(rng, mla_draw_chances.sparse_dense);
    if (mla_case_may_be_large(test))
        make_large(test, rng);
    else if (mla_case_may_be_medium(test))
        make_medium(test, rng);
    else if (mla_draw_chance(rng, mla_draw_chances.sparse_huge))
        make_huge(test, rng);
    else if (mla_draw_chance(rng, mla_draw_chances.sparse_dropped))
        make_dropped(test, rng);
    else if (!s->dense || s->keys > 64) /* few keys leave room for many rows */
        s->queries = mla_draw_choice(rng, MLA_CHOICE_SPARSE_QUERIES_FEW);
    bool is_stairs = s->dense && s->queries > 32;
    if (!s->has_q_pos_offset && !is_stairs) /* otherwise the choice is made above */
        draw_offset(test, rng);
    s->out_order = (int32_t)mla_draw_choice(rng, MLA_CHOICE_SPARSE_ORDER);
    draw_cores(s, rng);
    s->softmax_scale = mla_draw_scale(rng);
    if (mla_draw_chance(rng, mla_draw_chances.extreme_scale))
        s->softmax_scale = mla_draw_extreme_scale(test, rng);
}
