/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance_sparse.c - cells of list length, drops, recipe and layout.
 */
#include "fuzz/guidance_internal.h"

/*
 * What an offset drops: nothing (or there is none); some keys of some rows; nearly all, so that rows may
 * be left empty; or it lies at or beyond the last key and drops nothing.
 */
static int64_t drop_state(const struct mla_sparse_args *s)
{
    if (!s->has_q_pos_offset)
        return 0;
    if (s->q_pos_offset >= s->keys - 1)
        return 3;
    return s->q_pos_offset < s->keys / 8 ? 2 : 1;
}

void mla_guidance_sparse_cells(const struct mla_case *test, const struct mla_verdict *verdict,
                               struct mla_guidance_slot slot)
{
    const struct mla_sparse_args *s = &test->sparse;
    struct mla_guidance_cell cell = {0, 1};
    int64_t keys = s->dense ? s->keys : s->topk;
    (void)verdict;
    if (test->op != MLA_OP_SPARSE)
        return;
    mla_guidance_digit(&cell, (keys > 128) + (keys > 256) + (keys > 512), 4);
    mla_guidance_digit(&cell, drop_state(s), 4);
    mla_guidance_digit(&cell, s->dense ? 15 : test->indices, 16);
    mla_guidance_digit(&cell, s->out_order, 2);
    mla_guidance_digit(&cell, s->topk_tiled, 2);
    mla_guidance_set(slot, cell);
}

/* The cache against the list: one row, shorter, as long, longer, beyond 16 bits. */
static int64_t cache_class(const struct mla_sparse_args *s)
{
    int64_t wanted = s->dense ? 128 : s->topk;
    return s->keys == 1        ? 0
           : s->keys < wanted  ? 1
           : s->keys == wanted ? 2
           : s->keys <= 65536  ? 3
                               : 4;
}

void mla_guidance_sparse_data(const struct mla_case *test, const struct mla_verdict *verdict,
                              struct mla_guidance_slot slot)
{
    struct mla_guidance_cell cell = {0, 1};
    (void)verdict;
    if (test->op != MLA_OP_SPARSE)
        return;
    mla_guidance_digit(&cell, cache_class(&test->sparse), 5);
    mla_guidance_digit(&cell, drop_state(&test->sparse), 4);
    mla_guidance_digit(&cell, mla_guidance_pair(test), MLA_GUIDANCE_PAIRS);
    mla_guidance_set(slot, cell);
}
