/* SPDX-License-Identifier: Apache-2.0
 *
 * fill_ring.c - rows of queries and keys by position, poison under everything no row may read.
 *
 * Where the positions are comes from the oracle's map (oracle/visible.h): a mistake in it would lay
 * poison where a right kernel reads, and show at once.
 */
#include <stdlib.h>

#include "fuzz/fill_internal.h"
#include "oracle/visible.h"

/* Keys are visible from position 0 on without gaps, so any number up to the row's own will do. */
static int64_t pick_ring(const struct mla_family_view *view, int64_t row, uint64_t bits)
{
    int64_t last = row < view->keys_n - 1 ? row : view->keys_n - 1;
    return last < 0 ? -1 : (int64_t)(bits % (uint64_t)(last + 1));
}

/* The slots to make: of a thin cache the one in use and its neighbours, see mla_case_is_thin. */
static void made_slots(const struct mla_tensors *t, int64_t *first, int64_t *end)
{
    const struct mla_ring_args *a = &t->ring;
    if (!mla_case_is_thin(&t->test) || !a->has_slot)
        return;
    *first = a->kv_cache_batch_idx - MLA_CASE_NEIGHBOURS;
    *first = *first < 0 ? 0 : *first;
    *end = a->kv_cache_batch_idx + MLA_CASE_NEIGHBOURS + 1;
    *end = *end > a->kv_batch ? a->kv_batch : *end;
}

static bool set_made_slots(struct mla_tensors *t)
{
    int64_t first = 0, end = t->ring.kv_batch, rows = t->ring.kv_rows;
    if (!mla_case_is_thin(&t->test))
        return true;
    made_slots(t, &first, &end);
    struct mla_extent *extent = malloc(sizeof *extent);
    if (extent == NULL)
        return false;
    *extent = (struct mla_extent){first * rows, end * rows};
    mla_tensors_set_made(t, extent, 1);
    return true;
}

static void fill_keys(struct mla_tensors *t, const struct mla_family *family,
                      const struct mla_family_view *view, int64_t source)
{
    const struct mla_ring_args *a = &t->ring;
    const struct mla_case *test = &t->test;
    uint16_t *kv = (uint16_t *)(void *)mla_tensors_find(t, "kv", source)->guard.data;
    /* A poisoned future key must be one that makes its viewers' rows unspecified: NaN. */
    const struct mla_poison_cycle garbage = mla_fill_poison(test, test->poison);
    const struct mla_poison_cycle nan = mla_fill_poison(test, MLA_POISON_NAN);
    int64_t first = 0, end = a->kv_batch;
    made_slots(t, &first, &end);
    for (int64_t b = first; b < end; b++)
        for (int64_t r = 0; r < a->kv_rows; r++) {
            uint16_t *row = kv + (b * a->kv_rows + r) * a->head_dim;
            int64_t position = mla_oracle_key_position(a, source, r);
            bool ours = !a->has_slot || b == a->kv_cache_batch_idx;
            bool hidden = !ours || position >= a->logical_n;
            bool future = test->has_future && position >= test->future;
            if (hidden || future)
                mla_fill_poison_row(hidden ? &garbage : &nan, source * a->kv_rows + r + b,
                                    a->head_dim, row);
            else
                family->key(view, a->has_slot ? 0 : b, position, row);
        }
}

static bool fill_queries(struct mla_tensors *t, const struct mla_family *family,
                         const struct mla_family_view *view, int64_t rank)
{
    const struct mla_ring_args *a = &t->ring;
    uint16_t *row = (uint16_t *)(void *)mla_tensors_find(t, "q", rank)->guard.data;
    const struct mla_poison_cycle garbage = mla_fill_poison(&t->test, t->test.poison);
    int64_t *positions = malloc((size_t)a->q_rows * sizeof *positions);
    if (positions == NULL)
        return false;
    for (int64_t r = 0; r < a->q_rows; r++) /* all heads ask for the same, and it takes its time */
        positions[r] = mla_oracle_query_position(a, rank, r);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t r = 0; r < a->q_rows; r++, row += a->head_dim) {
                if (positions[r] < 0)
                    mla_fill_poison_row(&garbage, rank * a->q_rows + r, a->head_dim, row);
                else
                    family->query(view, b, h, positions[r], row);
            }
    free(positions);
    return true;
}

bool mla_fill_ring(struct mla_tensors *tensors)
{
    const struct mla_ring_args *a = &tensors->ring;
    const struct mla_family *family = mla_families(&(size_t){0})[tensors->test.family];
    struct mla_family_view view = mla_fill_view(&tensors->test);
    view.keys_n = a->logical_n;
    view.block_keys = a->k_chunk_size < a->kv_rows ? a->k_chunk_size : a->kv_rows;
    view.shard_keys = a->q_rows < a->kv_rows ? a->q_rows : a->kv_rows;
    view.pick_key = pick_ring;
    if (!set_made_slots(tensors))
        return false;
    for (int64_t rank = 0; rank < a->ring_size; rank++) {
        fill_keys(tensors, family, &view, rank);
        if (!fill_queries(tensors, family, &view, rank))
            return false;
    }
    return true;
}
