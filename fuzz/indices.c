/* SPDX-License-Identifier: Apache-2.0
 *
 * indices.c - recipes for top-k index lists, and the two layouts they are stored in.
 */
#include "fuzz/indices.h"

#include <stdlib.h>

#include "fuzz/family.h"

#define BLOCK 128 /* list entries */
#define NEAR  64  /* cache rows that count as near an end */

/* An odd multiplier walks through all of 0 .. n-1 when it shares no factor with n. */
static int64_t coprime_step(uint64_t bits, int64_t n)
{
    for (int64_t step = 1 + (int64_t)(bits % (uint64_t)n);; step = step % n + 1) {
        int64_t a = step, b = n;
        while (b != 0) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
}

static int compare(const void *a, const void *b)
{
    int32_t x, y;
    x = *(const int32_t *)a;
    y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Distinct rows in scattered order; from the start again when the cache is smaller than the list.
 */
static void fill_distinct(int64_t keys, int64_t topk, uint64_t bits, int32_t *list)
{
    int64_t step = coprime_step(bits, keys);
    int64_t at = (int64_t)(mla_number_mix(bits) % (uint64_t)keys);
    for (int64_t j = 0; j < topk; j++) {
        list[j] = (int32_t)at;
        at = (at + step) % keys;
    }
}

/* The even positions up to min(q, keys-1): the last topk of them, or all and copies of row 0. */
static void fill_causal(int64_t keys, int64_t topk, int64_t q, int32_t *list)
{
    int64_t last = q < keys - 1 ? q : keys - 1, even_n = last / 2 + 1;
    int64_t skip = even_n > topk ? even_n - topk : 0;
    int64_t padding = topk - (even_n - skip);
    for (int64_t j = 0; j < topk; j++)
        list[j] = j < padding ? 0 : (int32_t)(2 * (skip + j - padding));
}

/* From the upper half of the cache in the blocks that the recipe names, else from the lower. */
static int32_t choose_half(const struct mla_case *test, int64_t j, uint64_t row)
{
    int64_t keys = test->sparse.keys, block = j / BLOCK, last = test->sparse.topk / BLOCK - 1;
    int64_t lower = keys / 2 > 0 ? keys / 2 : 1;
    uint64_t any = mla_number_at(row, (uint64_t)j, 2, 0);
    bool upper = test->indices == MLA_INDICES_LEADING    ? block == 0
                 : test->indices == MLA_INDICES_TRAILING ? block == last
                                                         : block != 0 && block != last;
    return (int32_t)(upper ? keys - 1 - (int64_t)(any % (uint64_t)(keys - keys / 2))
                           : (int64_t)(any % (uint64_t)lower));
}

/* Near the first or the last cache row: where offsets into a huge cache first go wrong. */
static int32_t choose_end(int64_t keys, int64_t j, uint64_t row)
{
    uint64_t bits = mla_number_at(row, (uint64_t)j, 3, 0);
    int64_t inwards = (int64_t)((bits >> 1) % (uint64_t)(keys < NEAR ? keys : NEAR));
    return (int32_t)(bits & 1 ? keys - 1 - inwards : inwards);
}

static int32_t choose(const struct mla_case *test, int64_t j, uint64_t bits)
{
    int64_t keys = test->sparse.keys, topk = test->sparse.topk;
    int64_t any = (int64_t)(bits % (uint64_t)keys);
    uint64_t row = mla_number_mix(bits);
    switch (test->indices) {
    case MLA_INDICES_ONE_ROW:
        return (int32_t)any;
    case MLA_INDICES_FEW_ROWS:
        return (int32_t)((any + j * j % 3 * (keys / 3)) % keys);
    case MLA_INDICES_EDGES:
        return (int32_t)(mla_number_at(row, (uint64_t)j, 0, 0) & 1 ? keys - 1 : 0);
    case MLA_INDICES_ODD_ONE:
        return (int32_t)(j == (int64_t)(row % (uint64_t)topk) ? (any + 1) % keys : any);
    case MLA_INDICES_REPEAT:
        return (int32_t)(mla_number_at(row, (uint64_t)(j % 128), 0, 0) % (uint64_t)keys);
    case MLA_INDICES_LEADING:
    case MLA_INDICES_INTERIOR:
    case MLA_INDICES_TRAILING:
        return choose_half(test, j, row);
    case MLA_INDICES_ENDS:
        return choose_end(keys, j, row);
    default: /* uniform */
        return (int32_t)(mla_number_at(row, (uint64_t)j, 1, 0) % (uint64_t)keys);
    }
}

void mla_indices_fill(const struct mla_case *test, int64_t q, int32_t *list)
{
    int64_t keys = test->sparse.keys, topk = test->sparse.topk;
    uint64_t bits = mla_number_at(mla_stream_key(test->seed, MLA_STREAM_INDEX), (uint64_t)q, 0, 0);
    bool sorted = test->indices == MLA_INDICES_SORTED || test->indices == MLA_INDICES_REVERSED;
    if (test->indices == MLA_INDICES_CAUSAL)
        fill_causal(keys, topk, q, list);
    else if (test->indices == MLA_INDICES_DISTINCT || sorted)
        fill_distinct(keys, topk, bits, list);
    else
        for (int64_t j = 0; j < topk; j++)
            list[j] = choose(test, j, bits);
    if (sorted)
        qsort(list, (size_t)topk, sizeof *list, compare);
    if (test->indices == MLA_INDICES_REVERSED)
        for (int64_t j = 0; j < topk / 2; j++) {
            int32_t swapped = list[j];
            list[j] = list[topk - 1 - j];
            list[topk - 1 - j] = swapped;
        }
}

int64_t mla_indices_elements(const struct mla_sparse_args *args)
{
    int64_t rows = args->topk_tiled ? (args->queries + 127) / 128 * 128 : args->queries;
    return args->dense ? 0 : rows * args->topk;
}

int64_t mla_indices_place(const struct mla_sparse_args *args, int64_t q, int64_t j)
{
    if (!args->topk_tiled)
        return q * args->topk + j;
    /* Tiles of 128 rows are 16 groups of 8 rows; a group holds 128 x (topk/16) numbers, 16 lines a
       row, and list positions run down the 16 lines first. */
    int64_t group = q / 8, line = q % 8 * 16 + j % 16;
    return (group * 128 + line) * (args->topk / 16) + j / 16;
}
