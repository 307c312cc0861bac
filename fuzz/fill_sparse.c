/* SPDX-License-Identifier: Apache-2.0
 *
 * fill_sparse.c - index lists, the query rows, and the cache rows that some row of the call attends to;
 * poison in all others.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fill_internal.h"
#include "fuzz/indices.h"

/* A list entry in force for a row: not one that q_pos_offset drops. */
static bool in_force(const struct mla_sparse_args *a, int64_t q, int64_t key)
{
    return !a->has_q_pos_offset || key - q <= a->q_pos_offset;
}

static int64_t pick_sparse(const struct mla_family_view *view, int64_t row, uint64_t bits)
{
    const struct mla_sparse_args *a = &view->test->sparse;
    const int32_t *lists = view->pick_context;
    if (a->dense) {
        int64_t offset = a->has_q_pos_offset ? a->q_pos_offset : 0;
        int64_t last = a->keys - 1 - row < offset ? a->keys - 1 : offset + row;
        return (int64_t)(bits % (uint64_t)(last + 1));
    }
    for (int64_t tries = 0; tries < a->topk; tries++) {
        int64_t key =
            lists[row * a->topk + (int64_t)((bits + (uint64_t)tries) % (uint64_t)a->topk)];
        if (in_force(a, row, key))
            return key;
    }
    return -1;
}

/*
 * The cache rows to make, and which of them some row of the call attends to. Mostly all of the cache;
 * of a thin one the rows listed and their neighbours, see mla_case_is_thin.
 */
struct cache {
    struct mla_extent *extents;
    size_t extents_n;
    int64_t rows_n; /* in all extents together */
    bool *used;     /* used[i]: of the i-th of them */
};

static int compare_extents(const void *a, const void *b)
{
    int64_t x, y;
    x = ((const struct mla_extent *)a)->from;
    y = ((const struct mla_extent *)b)->from;
    return (x > y) - (x < y);
}

/* Each listed row with its neighbours; then sorted, and what touches joined. */
static void find_extents(const struct mla_sparse_args *a, const int32_t *lists, struct cache *cache)
{
    struct mla_extent *e = cache->extents;
    size_t listed_n = (size_t)(a->queries * a->topk), n = 0;
    for (size_t i = 0; i < listed_n; i++) {
        int64_t from = lists[i] - MLA_CASE_NEIGHBOURS, to = lists[i] + MLA_CASE_NEIGHBOURS + 1;
        e[i] = (struct mla_extent){from < 0 ? 0 : from, to > a->keys ? a->keys : to};
    }
    qsort(e, listed_n, sizeof *e, compare_extents);
    for (size_t i = 1; i < listed_n; i++) {
        if (e[i].from > e[n].to)
            e[++n] = e[i];
        else
            e[n].to = e[i].to > e[n].to ? e[i].to : e[n].to;
    }
    cache->extents_n = n + 1;
}

/* Place of a cache row among the rows that are made. */
static int64_t place_of(const struct cache *cache, int64_t row)
{
    int64_t before = 0;
    size_t i = 0;
    for (; row >= cache->extents[i].to; i++)
        before += cache->extents[i].to - cache->extents[i].from;
    return before + row - cache->extents[i].from;
}

static void mark_used(const struct mla_sparse_args *a, const int32_t *lists, struct cache *cache)
{
    int64_t offset = a->has_q_pos_offset ? a->q_pos_offset : 0;
    for (int64_t j = 0; a->dense && j < a->keys; j++)
        cache->used[j] = j - (a->queries - 1) <= offset;
    for (int64_t q = 0; !a->dense && q < a->queries; q++)
        for (int64_t j = 0; j < a->topk; j++)
            if (in_force(a, q, lists[q * a->topk + j]))
                cache->used[place_of(cache, lists[q * a->topk + j])] = true;
}

/* false without memory; what was had is to be freed all the same. */
static bool plan_cache(const struct mla_tensors *t, const int32_t *lists, struct cache *cache)
{
    const struct mla_sparse_args *a = &t->sparse;
    bool some = mla_case_is_thin(&t->test) && !a->dense;
    size_t most = some ? (size_t)(a->queries * a->topk) : 1;
    cache->extents = malloc(most * sizeof *cache->extents);
    if (cache->extents == NULL)
        return false;
    cache->extents[0] = (struct mla_extent){0, a->keys};
    cache->extents_n = 1;
    if (some)
        find_extents(a, lists, cache);
    for (size_t i = 0; i < cache->extents_n; i++)
        cache->rows_n += cache->extents[i].to - cache->extents[i].from;
    cache->used = calloc((size_t)cache->rows_n, sizeof *cache->used);
    if (cache->used == NULL)
        return false;
    mark_used(a, lists, cache);
    return true;
}

static void store_lists(struct mla_tensors *t, const int32_t *lists)
{
    const struct mla_sparse_args *a = &t->sparse;
    struct mla_tensor *tensor = mla_tensors_find(t, "topk_indices", 0);
    static const int32_t garbage[] = {-1, INT32_MIN, INT32_MAX, 2143289344};
    int32_t *topk = (int32_t *)(void *)tensor->guard.data;
    for (int64_t i = 0; i < tensor->elements_n; i++)
        topk[i] = garbage[i % 4]; /* stays in the slots of rows that do not exist */
    for (int64_t q = 0; q < a->queries; q++)
        for (int64_t j = 0; j < a->topk; j++)
            topk[mla_indices_place(a, q, j)] = lists[q * a->topk + j];
}

/* One row of width latent + rope goes to two tensors. */
static void split_row(const struct mla_sparse_args *a, const uint16_t *row, uint16_t *latent,
                      uint16_t *rope)
{
    memcpy(latent, row, (size_t)a->latent * sizeof *row);
    memcpy(rope, row + a->latent, (size_t)a->rope * sizeof *row);
}

static void fill_sparse_queries(struct mla_tensors *t, const struct mla_family_view *view)
{
    const struct mla_sparse_args *a = &t->sparse;
    const struct mla_family *family = mla_families(&(size_t){0})[t->test.family];
    uint16_t row[MLA_LATENT + MLA_ROPE_MAX];
    uint16_t *q_lift = (uint16_t *)(void *)mla_tensors_find(t, "q_lift", 0)->guard.data;
    uint16_t *q_pe = (uint16_t *)(void *)mla_tensors_find(t, "q_pe", 0)->guard.data;
    for (int64_t q = 0; q < a->queries; q++)
        for (int64_t h = 0; h < a->heads; h++) {
            int64_t at = q * a->heads + h;
            family->query(view, 0, h, q, row);
            split_row(a, row, q_lift + at * a->latent, q_pe + at * a->rope);
        }
}

static void fill_cache(struct mla_tensors *t, const struct mla_family_view *view,
                       const struct cache *cache)
{
    const struct mla_sparse_args *a = &t->sparse;
    const struct mla_family *family = mla_families(&(size_t){0})[t->test.family];
    const struct mla_poison_cycle garbage = mla_fill_poison(&t->test, t->test.poison);
    uint16_t row[MLA_LATENT + MLA_ROPE_MAX];
    uint16_t *c_kv = (uint16_t *)(void *)mla_tensors_find(t, "c_kv", 0)->guard.data;
    uint16_t *k_pe = (uint16_t *)(void *)mla_tensors_find(t, "k_pe", 0)->guard.data;
    const bool *used = cache->used;
    for (size_t i = 0; i < cache->extents_n; i++)
        for (int64_t j = cache->extents[i].from; j < cache->extents[i].to; j++) {
            if (*used++)
                family->key(view, 0, j, row);
            else
                mla_fill_poison_row(&garbage, j, view->width, row);
            split_row(a, row, c_kv + j * a->latent, k_pe + j * a->rope);
        }
}

bool mla_fill_sparse(struct mla_tensors *tensors)
{
    const struct mla_sparse_args *a = &tensors->sparse;
    bool done = false;
    struct cache cache = {NULL, 0, 0, NULL};
    int32_t *lists = a->dense ? NULL : malloc((size_t)(a->queries * a->topk) * sizeof *lists);
    if (lists == NULL && !a->dense)
        goto done;
    for (int64_t q = 0; !a->dense && q < a->queries; q++)
        mla_indices_fill(&tensors->test, q, lists + q * a->topk);
    if (!plan_cache(tensors, lists, &cache))
        goto done;
    struct mla_family_view view = mla_fill_view(&tensors->test);
    int64_t listed = a->dense ? a->keys : a->topk;
    view.keys_n = a->keys;
    view.block_keys = a->keys * 128 / listed > 0 ? a->keys * 128 / listed : 1;
    view.shard_keys = view.block_keys;
    view.pick_key = pick_sparse;
    view.pick_context = lists;
    fill_sparse_queries(tensors, &view);
    fill_cache(tensors, &view, &cache);
    if (!a->dense)
        store_lists(tensors, lists);
    if (mla_case_is_thin(&tensors->test)) {
        mla_tensors_set_made(tensors, cache.extents, cache.extents_n);
        cache.extents = NULL;
    }
    done = true;
done:
    free(cache.used);
    free(cache.extents);
    free(lists);
    return done;
}
