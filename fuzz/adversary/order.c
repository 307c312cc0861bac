/* SPDX-License-Identifier: Apache-2.0
 *
 * order.c - in which order keys are absorbed, and where blocks end.
 *
 * Rising scores make every block raise the maximum, so that all rescales happen; falling ones make
 * every partial sum of the denominator as large as the whole; by worth, the partial sums of the
 * column that is aimed at grow before they shrink, and round most.
 */
#include <stdlib.h>

#include "fuzz/adversary/attend.h"

enum order { LISTED, REVERSED, SHUFFLED, RISING, FALLING, WORTH, ORDERS_N };

static int ascending(const void *a, const void *b)
{
    const struct mla_adversary_item *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* What the keys are sorted by. */
static double value_of(const struct mla_adversary_row *row, const struct mla_adversary_work *work,
                       enum order order, struct mla_choice *choice, int64_t aim, int64_t j,
                       double max)
{
    double value = 0.0;
    switch (order) {
    case REVERSED:
        return (double)-j;
    case SHUFFLED:
        return mla_number_unit(mla_rng_next(&choice->rng));
    case RISING:
        value = work->exact[j];
        break;
    case FALLING:
        value = -work->exact[j];
        break;
    case WORTH:
        value = exp(row->scale * (work->exact[j] - max)) *
                (double)mla_number_from_bf16(row->keys[0][j][aim]);
        break;
    default:
        return (double)j;
    }
    return isfinite(value) ? value : 0.0;
}

static void sort_keys(const struct mla_adversary_row *row, struct mla_adversary_work *work,
                      enum order order, struct mla_choice *choice, int64_t aim)
{
    struct mla_adversary_item *items = work->items;
    double max = -INFINITY, total = 0.0;
    int64_t n = row->keys_n;
    for (int64_t j = 0; j < n; j++)
        max = fmax(max, work->exact[j]);
    for (int64_t j = 0; j < n; j++) {
        items[j] = (struct mla_adversary_item){value_of(row, work, order, choice, aim, j, max), j};
        total += items[j].value;
    }
    for (int64_t j = 0; order == WORTH && total > 0.0 && j < n; j++)
        items[j].value = -items[j].value; /* the sign that wins comes first */
    qsort(items, (size_t)n, sizeof *items, ascending);
}

/* Blocks of each shard's own chunks. */
static int64_t chunk_ends(const struct mla_adversary_row *row, int64_t *ends)
{
    int64_t blocks_n = 0, first = 0;
    for (int64_t s = 0; s < row->shards_n; s++) {
        for (int64_t t = 0; t < row->shard_n[s]; t += row->chunk) {
            int64_t end = t + row->chunk < row->shard_n[s] ? t + row->chunk : row->shard_n[s];
            ends[blocks_n++] = first + end;
        }
        first += row->shard_n[s];
    }
    return blocks_n;
}

static int64_t even_ends(int64_t n, int64_t step, int64_t *ends)
{
    int64_t blocks_n = 0;
    for (int64_t first = 0; first < n; first += step)
        ends[blocks_n++] = first + step < n ? first + step : n;
    return blocks_n;
}

int64_t mla_adversary_order(const struct mla_adversary_row *row, struct mla_adversary_work *work,
                            struct mla_choice *choice, int64_t aim)
{
    enum order order = LISTED;
    if (row->plan->has_free_order)
        order = (enum order)mla_rng_below(&choice->rng, aim < 0 ? WORTH : ORDERS_N);
    sort_keys(row, work, order, choice, aim);
    for (int64_t j = 0; j < row->keys_n; j++)
        work->order[j] = work->items[j].key;
    if (row->plan->block_keys == MLA_ADVERSARY_CHUNKS)
        return chunk_ends(row, work->ends);
    return even_ends(row->keys_n, row->plan->block_keys > 0 ? row->plan->block_keys : row->keys_n,
                     work->ends);
}
