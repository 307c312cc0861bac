/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink_measure.c - how simple a case is.
 */
#include "fuzz/family.h"
#include "fuzz/judge_internal.h"
#include "fuzz/shrink_internal.h"
#include "fuzz/shrink_steps.h"

/* Families from the plainest numbers to the least readable; one that is not listed comes last. */
static const struct mla_family *const plainest[] = {
    &mla_family_exact, &mla_family_profile,  &mla_family_coded,
    &mla_family_full,  &mla_family_upstream, &mla_family_extreme,
};
#define PLAINEST_N ((int64_t)(sizeof plainest / sizeof plainest[0]))

static int64_t family_place(int32_t family)
{
    const struct mla_family *const *all = mla_families(&(size_t){0});
    for (int64_t i = 0; i < PLAINEST_N; i++)
        if (plainest[i] == all[family])
            return i;
    return PLAINEST_N;
}

int64_t mla_shrink_recipe_rank(const struct mla_case *test)
{
    const struct mla_family *const *all = mla_families(&(size_t){0});
    int64_t place = family_place(test->family), rank = 0;
    for (int64_t i = 0; i < place; i++)
        rank += (int64_t)plainest[i]->regions_n;
    for (size_t i = 0; i < all[test->family]->regions_n; i++)
        if ((int32_t)all[test->family]->regions[i] == test->region)
            rank += (int64_t)i;
    return rank;
}

bool mla_shrink_set_recipe(struct mla_case *test, int64_t rank)
{
    for (int64_t i = 0; i < PLAINEST_N; i++) {
        const struct mla_family *family = plainest[i];
        if (rank >= (int64_t)family->regions_n) {
            rank -= (int64_t)family->regions_n;
            continue;
        }
        test->family = mla_family_find(family->name);
        test->region = (int32_t)family->regions[rank];
        test->amount = family->amount_min > 0   ? family->amount_min
                       : family->amount_max < 0 ? family->amount_max
                                                : 0;
        return true;
    }
    return false;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t blocks(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    if (test->op == MLA_OP_RING)
        return r->ring_size * ceil_div(r->kv_rows, r->k_chunk_size);
    return ceil_div(s->dense ? s->keys : s->topk, MLA_TOPK_MULTIPLE);
}

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

/* 0: the default or 1; 1: a power of two; 2: any other. */
static int64_t scale_fuss(bool has, float scale)
{
    int exponent;
    if (!has)
        return 0;
    return scale == 1.0f ? 1 : frexpf(scale, &exponent) == 0.5f ? 2 : 3;
}

static int64_t ring_fuss(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    return r->logical_n + r->kv_actual_isl / MLA_TILE + r->k_chunk_size / MLA_TILE +
           r->q_chunk_size / MLA_TILE + r->num_links + r->threads + r->topology + r->is_balanced +
           r->has_slot + r->kv_cache_batch_idx + r->has_prior + scale_fuss(r->has_scale, r->scale) +
           4 * test->has_future;
}

static int64_t sparse_fuss(const struct mla_case *test)
{
    const struct mla_sparse_args *s = &test->sparse;
    return s->topk / MLA_TOPK_MULTIPLE + s->cores + s->threads + s->topk_tiled + s->dense +
           s->out_order + s->has_q_pos_offset + at_most(s->q_pos_offset, 1 << 20) +
           scale_fuss(true, s->softmax_scale) + test->indices;
}

static int64_t fuss(const struct mla_case *test)
{
    int64_t data = 16 * mla_shrink_recipe_rank(test) +
                   (test->amount < 0 ? -test->amount : test->amount) + test->poison + test->stats +
                   test->bits + test->slow + 1000 * (int64_t)(test->put_n + test->set_n);
    return data + (test->op == MLA_OP_RING ? ring_fuss(test) : sparse_fuss(test));
}

bool mla_shrink_is_simpler(const struct mla_case *a, const struct mla_case *b)
{
    const int64_t sizes[][2] = {
        {mla_case_bytes(a), mla_case_bytes(b)},
        {blocks(a), blocks(b)},
        {mla_rows_count(a), mla_rows_count(b)},
        {fuss(a), fuss(b)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i][0] != sizes[i][1])
            return sizes[i][0] < sizes[i][1];
    if (a->seed != b->seed)
        return a->seed < b->seed;
    return a->row_seed < b->row_seed;
}
