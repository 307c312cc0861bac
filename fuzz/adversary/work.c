/* SPDX-License-Identifier: Apache-2.0
 *
 * work.c - the memory of an adversary's row.
 */
#include <stdlib.h>

#include "fuzz/adversary/attend.h"

static void *room(int64_t n, size_t bytes)
{
    return calloc(n > 0 ? (size_t)n : 1, bytes);
}

int32_t mla_adversary_work_make(struct mla_adversary_work *work, int64_t width, int64_t keys_most,
                                int64_t columns_n)
{
    bool ok = true;
    *work = (struct mla_adversary_work){.query = room(width, sizeof(double)),
                                        .place = room(width, sizeof(int64_t)),
                                        .products = room(width, sizeof(double)),
                                        .exact = room(keys_most, sizeof(double)),
                                        .score = room(keys_most, sizeof(double)),
                                        .dir = room(keys_most, sizeof(double)),
                                        .items = room(keys_most, sizeof *work->items),
                                        .order = room(keys_most, sizeof(int64_t)),
                                        .ends = room(keys_most, sizeof(int64_t))};
    for (int i = 0; i < MLA_ADVERSARY_PARTS; i++) {
        work->sum[i] = room(columns_n, sizeof(double));
        ok = ok && work->sum[i] != NULL;
    }
    for (int i = 0; i < MLA_ADVERSARY_LEVELS; i++) {
        work->level[i] = room(columns_n, sizeof(double));
        ok = ok && work->level[i] != NULL;
    }
    ok = ok && work->query != NULL && work->place != NULL && work->products != NULL &&
         work->exact != NULL && work->score != NULL && work->dir != NULL && work->items != NULL &&
         work->order != NULL && work->ends != NULL;
    if (!ok)
        mla_adversary_work_free(work);
    return ok ? MLA_OK : MLA_ERR_NOMEM;
}

void mla_adversary_work_free(struct mla_adversary_work *work)
{
    for (int i = 0; i < MLA_ADVERSARY_PARTS; i++)
        free(work->sum[i]);
    for (int i = 0; i < MLA_ADVERSARY_LEVELS; i++)
        free(work->level[i]);
    free(work->ends);
    free(work->order);
    free(work->items);
    free(work->dir);
    free(work->score);
    free(work->exact);
    free(work->products);
    free(work->place);
    free(work->query);
    *work = (struct mla_adversary_work){0};
}
