/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_move.c - heads, batch entries and index lists in another order.
 */
#include <string.h>

#include "fuzz/indices.h"
#include "fuzz/relations_internal.h"

/* How far things that stand in a circle of n are moved: 1 .. n-1. */
static int64_t step_of(const struct mla_case *test, int64_t n)
{
    struct mla_rng rng = mla_relation_rng(test, 3);
    return 1 + mla_rng_below(&rng, n - 1);
}

/* Of every group of n blocks, block i goes to place (i + step) mod n. */
static void rotate(const struct mla_tensor *from, const struct mla_tensor *to, int64_t n,
                   int64_t block, int64_t step)
{
    size_t bytes = (size_t)block * from->element_bytes;
    for (int64_t i = 0; i < from->elements_n / block; i++) {
        int64_t place = i / n * n + (i % n + step) % n;
        memcpy(to->guard.data + (size_t)place * bytes, from->guard.data + (size_t)i * bytes, bytes);
    }
}

/* ---- heads ---- */

static int64_t heads_of(const struct mla_case *test)
{
    return test->op == MLA_OP_RING ? test->ring.heads : test->sparse.heads;
}

enum mla_tie mla_vary_heads(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    return heads_of(test) == 1 ? MLA_TIE_NONE : MLA_TIE_BITS;
}

bool mla_arrange_heads(const struct mla_tensors *first, struct mla_tensors *second)
{
    int64_t heads = heads_of(&first->test), step = step_of(&first->test, heads);
    mla_relation_copy(first, second);
    for (size_t i = 0; i < first->n; i++) {
        const struct mla_tensor *from = &first->list[i];
        if (from->role != MLA_TENSOR_INPUT || from->name[0] != 'q')
            continue;
        int64_t block = first->test.op == MLA_OP_RING ? first->ring.q_rows * first->ring.head_dim
                        : strcmp(from->name, "q_pe") == 0 ? first->sparse.rope
                                                          : first->sparse.latent;
        rotate(from, &second->list[i], heads, block, step);
    }
    return true;
}

bool mla_match_heads(const struct mla_tensors *first, const struct mla_tensors *second,
                     struct mla_row row, struct mla_row *other)
{
    int64_t heads = heads_of(&first->test);
    (void)second;
    *other = row;
    other->head = (row.head + step_of(&first->test, heads)) % heads;
    return true;
}

/* ---- batch entries ---- */

enum mla_tie mla_vary_batch(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    return test->ring.batch == 1 ? MLA_TIE_NONE : MLA_TIE_BITS;
}

bool mla_arrange_batch(const struct mla_tensors *first, struct mla_tensors *second)
{
    int64_t batch = first->ring.batch, step = step_of(&first->test, batch);
    for (size_t i = 0; i < first->n; i++)
        if (first->list[i].role == MLA_TENSOR_INPUT)
            rotate(&first->list[i], &second->list[i], batch, first->list[i].elements_n / batch,
                   step);
    return true;
}

bool mla_match_batch(const struct mla_tensors *first, const struct mla_tensors *second,
                     struct mla_row row, struct mla_row *other)
{
    int64_t batch = first->ring.batch;
    (void)second;
    *other = row;
    other->batch = (row.batch + step_of(&first->test, batch)) % batch;
    return true;
}

/* ---- index lists ---- */

/* All inputs but the list. */
static int32_t *copy_but_list(const struct mla_tensors *first, struct mla_tensors *second)
{
    static const int32_t garbage[] = {-1, INT32_MIN, INT32_MAX, 2143289344};
    struct mla_tensor *list = mla_tensors_find(second, "topk_indices", 0);
    int32_t *topk = (int32_t *)(void *)list->guard.data;
    for (size_t i = 0; i < first->n; i++)
        if (first->list[i].role == MLA_TENSOR_INPUT && &second->list[i] != list)
            memcpy(second->list[i].guard.data, first->list[i].guard.data,
                   first->list[i].guard.bytes);
    for (int64_t i = 0; i < list->elements_n; i++)
        topk[i] = garbage[i % 4]; /* stays in the slots of rows that do not exist */
    return topk;
}

static int32_t listed(const struct mla_tensors *first, int64_t q, int64_t j)
{
    return first->sparse.topk_indices[mla_indices_place(&first->sparse, q, j)];
}

enum mla_tie mla_vary_layout(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    test->sparse.topk_tiled = !test->sparse.topk_tiled;
    return test->sparse.dense ? MLA_TIE_NONE : MLA_TIE_BITS;
}

bool mla_arrange_layout(const struct mla_tensors *first, struct mla_tensors *second)
{
    int32_t *topk = copy_but_list(first, second);
    for (int64_t q = 0; q < first->sparse.queries; q++)
        for (int64_t j = 0; j < first->sparse.topk; j++)
            topk[mla_indices_place(&second->sparse, q, j)] = listed(first, q, j);
    return true;
}

enum mla_tie mla_vary_order(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    return test->sparse.dense ? MLA_TIE_NONE : MLA_TIE_VALUE;
}

/* Shuffled row by row (Fisher and Yates, from the inside out). */
bool mla_arrange_order(const struct mla_tensors *first, struct mla_tensors *second)
{
    const struct mla_sparse_args *a = &first->sparse;
    int32_t *topk = copy_but_list(first, second);
    for (int64_t q = 0; q < a->queries; q++) {
        struct mla_rng rng = mla_relation_rng(&first->test, 1000 + (uint64_t)q);
        for (int64_t j = 0; j < a->topk; j++) {
            int64_t at = mla_rng_below(&rng, j + 1);
            topk[mla_indices_place(a, q, j)] = topk[mla_indices_place(a, q, at)];
            topk[mla_indices_place(a, q, at)] = listed(first, q, j);
        }
    }
    return true;
}

enum mla_tie mla_vary_copies(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    test->sparse.topk *= 2;
    return test->sparse.dense ? MLA_TIE_NONE : MLA_TIE_VALUE;
}

/* The list and then the list again, or each entry twice in a row: every key counts double. */
bool mla_arrange_copies(const struct mla_tensors *first, struct mla_tensors *second)
{
    const struct mla_sparse_args *a = &first->sparse;
    struct mla_rng rng = mla_relation_rng(&first->test, 4);
    bool side_by_side = mla_rng_chance(&rng, 1, 2);
    int32_t *topk = copy_but_list(first, second);
    for (int64_t q = 0; q < a->queries; q++)
        for (int64_t j = 0; j < 2 * a->topk; j++)
            topk[mla_indices_place(&second->sparse, q, j)] =
                listed(first, q, side_by_side ? j / 2 : j % a->topk);
    return true;
}
