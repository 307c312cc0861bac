/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.c - the two operations, row by row, by an adversary.
 *
 * Which keys a row sees comes from the oracle's list: an adversary tests what is said about
 * arithmetic, not about positions, and must agree on those with whoever judges it. Seeds are made of
 * the shape, the row's place and its query, never of keys or values: a blind adversary's choices
 * must not know the coins of V.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/adversary/attend.h"
#include "fuzz/faults/plain.h"
#include "oracle/bf16.h"
#include "oracle/visible.h"

static uint64_t seed_of(const struct mla_adversary_row *row, struct mla_adversary_place p)
{
    uint64_t seed = mla_number_at((uint64_t)row->keys_n, (uint64_t)(p.rank << 32 | p.batch),
                                  (uint64_t)p.head, (uint64_t)p.row);
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < row->part_n[part]; i++)
            seed = (seed ^ row->query[part][i]) * 0x100000001b3u;
    return mla_number_mix(seed);
}

static void attend(struct mla_adversary_row *row, struct mla_adversary_work *work,
                   struct mla_adversary_place p)
{
    row->seed = row->keys_n > 0 ? seed_of(row, p) : 0;
    mla_adversary_attend(row, work);
}

static uint16_t output(const struct mla_model *model, double y)
{
    return model->out_round == MLA_OUT_TRUNCATE ? mla_oracle_bf16_truncate(y)
                                                : mla_oracle_bf16_nearest(y);
}

static void end(struct mla_adversary_row *row, struct mla_adversary_work *work)
{
    mla_adversary_work_free(work);
    free(row->real);
    free(row->keys[1]);
    free(row->keys[0]);
}

static int32_t finish(int32_t status, char *message, size_t message_bytes)
{
    if (message != NULL && message_bytes > 0)
        snprintf(message, message_bytes, "%s", status == MLA_OK ? "" : "out of memory");
    return status;
}

static void report(const struct mla_adversary_row *row, struct mla_adversary_result *result)
{
    for (int64_t c = 0; c < row->columns_n; c++)
        result->real[c] = row->real[c];
    result->column = row->column;
    result->direction = row->direction;
    result->max = row->max;
    result->sum = row->sum;
}

/* Room for keys_most keys; the row's sizes are set. */
static int32_t begin(struct mla_adversary_row *row, struct mla_adversary_work *work,
                     int64_t keys_most)
{
    row->keys[0] = calloc((size_t)keys_most, sizeof *row->keys[0]);
    row->keys[1] = calloc((size_t)keys_most, sizeof *row->keys[1]);
    row->real = calloc((size_t)row->columns_n, sizeof *row->real);
    *work = (struct mla_adversary_work){0};
    if (row->keys[0] == NULL || row->keys[1] == NULL || row->real == NULL)
        return MLA_ERR_NOMEM;
    return mla_adversary_work_make(work, row->part_n[0] + row->part_n[1], keys_most,
                                   row->columns_n);
}

/* ---- ring ---- */

static void store_ring(const struct mla_ring_args *a, const struct mla_adversary_row *row,
                       struct mla_adversary_place p)
{
    int64_t plane = p.batch * a->heads + p.head;
    uint16_t *out = a->out[p.rank] + (plane * a->q_rows + p.row) * a->head_dim_v;
    for (int64_t c = 0; c < a->head_dim_v; c++)
        out[c] = output(row->model, row->real[c]);
    if (a->stats != NULL) {
        float *stats = a->stats[p.rank] + plane * 2 * a->q_rows + p.row;
        stats[0] = (float)row->max;
        stats[a->q_rows] = (float)row->sum;
    }
}

/* The keys of a row in the order of the ring's schedule: shard by shard as they arrive. */
static void ring_keys(const struct mla_ring_args *a, struct mla_adversary_row *row,
                      const struct mla_oracle_visible *visible, struct mla_adversary_place p)
{
    int64_t order[MLA_RING_SIZE_MAX], n = 0;
    int64_t cache = a->has_slot ? a->kv_cache_batch_idx : p.batch;
    mla_plain_visit_order(a->ring_size, a->topology, p.rank, order);
    for (int64_t step = 0; step < a->ring_size; step++) {
        row->shard_n[step] = visible->shard_n[order[step]];
        for (int64_t j = 0; j < visible->keys_n; j++)
            if (visible->keys[j].source == order[step])
                row->keys[0][n++] =
                    a->kv[order[step]] + (cache * a->kv_rows + visible->keys[j].row) * a->head_dim;
    }
    row->keys_n = n;
}

static void ring_attend(const struct mla_ring_args *a, struct mla_adversary_row *row,
                        struct mla_adversary_work *work, struct mla_adversary_place p)
{
    int64_t plane = p.batch * a->heads + p.head;
    row->query[0] = a->q[p.rank] + (plane * a->q_rows + p.row) * a->head_dim;
    attend(row, work, p);
}

static int32_t ring_row(const struct mla_ring_args *a, struct mla_adversary_row *row,
                        struct mla_adversary_work *work, struct mla_adversary_place p)
{
    struct mla_oracle_visible visible;
    int32_t status = mla_oracle_visible_ring(a, p.rank, p.row, &visible);
    if (status != MLA_OK)
        return status;
    for (p.batch = 0; p.batch < a->batch; p.batch++) {
        ring_keys(a, row, &visible, p);
        for (p.head = 0; p.head < a->heads; p.head++) {
            ring_attend(a, row, work, p);
            store_ring(a, row, p);
        }
    }
    mla_oracle_visible_free(&visible);
    return MLA_OK;
}

static struct mla_adversary_row ring_begin(const struct mla_adversary *adversary,
                                           const struct mla_ring_args *args)
{
    const struct mla_model *declared = &adversary->kernel.ring_model;
    const struct mla_model *model = adversary->uses != NULL ? adversary->uses : declared;
    return (struct mla_adversary_row){
        .plan = &adversary->plan,
        .model = model,
        .part_n = {args->head_dim, 0},
        .columns_n = args->head_dim_v,
        .shards_n = args->ring_size,
        .chunk = model->shard_block_keys > 0 ? model->shard_block_keys : args->k_chunk_size,
        .scale =
            (double)(args->has_scale ? args->scale : (float)(1.0 / sqrt((double)args->head_dim)))};
}

int32_t mla_adversary_ring(const struct mla_adversary *adversary, const struct mla_ring_args *args,
                           char *message, size_t message_bytes)
{
    struct mla_adversary_work work;
    struct mla_adversary_row row = ring_begin(adversary, args);
    struct mla_adversary_place p = {0};
    int32_t status = begin(&row, &work, args->ring_size * args->kv_rows);
    for (p.rank = 0; p.rank < args->ring_size; p.rank++)
        for (p.row = 0; p.row < args->q_rows && status == MLA_OK; p.row++)
            status = ring_row(args, &row, &work, p);
    end(&row, &work);
    return finish(status, message, message_bytes);
}

int32_t mla_adversary_ring_one(const struct mla_adversary *adversary,
                               const struct mla_ring_args *args, struct mla_adversary_place p,
                               struct mla_adversary_result *result)
{
    struct mla_adversary_work work;
    struct mla_oracle_visible visible;
    struct mla_adversary_row row = ring_begin(adversary, args);
    int32_t status = begin(&row, &work, args->ring_size * args->kv_rows);
    if (status == MLA_OK)
        status = mla_oracle_visible_ring(args, p.rank, p.row, &visible);
    if (status == MLA_OK) {
        ring_keys(args, &row, &visible, p);
        ring_attend(args, &row, &work, p);
        report(&row, result);
        mla_oracle_visible_free(&visible);
    }
    end(&row, &work);
    return status;
}

/* ---- sparse ---- */

static void store_sparse(const struct mla_sparse_args *a, const struct mla_adversary_row *row,
                         struct mla_adversary_place p)
{
    int64_t plane = p.row * a->heads + p.head, quarter = a->latent / 4;
    for (int64_t c = 0; c < a->latent; c++) {
        int64_t at = a->out_order == MLA_OUT_MX4 ? c % 4 * quarter + c / 4 : c;
        a->out[plane * a->latent + at] = output(row->model, row->real[c]);
    }
    if (a->stats != NULL) {
        a->stats[plane * 2] = (float)row->max;
        a->stats[plane * 2 + 1] = (float)row->sum;
    }
}

static void sparse_keys(const struct mla_sparse_args *a, struct mla_adversary_row *row,
                        const struct mla_oracle_visible *visible)
{
    row->keys_n = visible->keys_n;
    row->shard_n[0] = visible->keys_n;
    for (int64_t j = 0; j < row->keys_n; j++) {
        row->keys[0][j] = a->c_kv + visible->keys[j].row * a->latent;
        row->keys[1][j] = a->k_pe + visible->keys[j].row * a->rope;
    }
}

static void sparse_attend(const struct mla_sparse_args *a, struct mla_adversary_row *row,
                          struct mla_adversary_work *work, struct mla_adversary_place p)
{
    int64_t plane = p.row * a->heads + p.head;
    row->query[0] = a->q_lift + plane * a->latent;
    row->query[1] = a->q_pe + plane * a->rope;
    attend(row, work, p);
}

static int32_t sparse_row(const struct mla_sparse_args *a, struct mla_adversary_row *row,
                          struct mla_adversary_work *work, struct mla_adversary_place p)
{
    struct mla_oracle_visible visible;
    int32_t status = mla_oracle_visible_sparse(a, p.row, &visible);
    if (status != MLA_OK)
        return status;
    sparse_keys(a, row, &visible);
    for (p.head = 0; p.head < a->heads; p.head++) {
        sparse_attend(a, row, work, p);
        store_sparse(a, row, p);
    }
    mla_oracle_visible_free(&visible);
    return MLA_OK;
}

static struct mla_adversary_row sparse_begin(const struct mla_adversary *adversary,
                                             const struct mla_sparse_args *args)
{
    const struct mla_model *declared = &adversary->kernel.sparse_model;
    const struct mla_model *model = adversary->uses != NULL ? adversary->uses : declared;
    return (struct mla_adversary_row){.plan = &adversary->plan,
                                      .model = model,
                                      .part_n = {args->latent, args->rope},
                                      .columns_n = args->latent,
                                      .shards_n = 1,
                                      .chunk = model->p_block_keys > 0 ? model->p_block_keys
                                                                       : MLA_ADVERSARY_SPARSE_CHUNK,
                                      .scale = (double)args->softmax_scale};
}

int32_t mla_adversary_sparse(const struct mla_adversary *adversary,
                             const struct mla_sparse_args *args, char *message,
                             size_t message_bytes)
{
    struct mla_adversary_work work;
    struct mla_adversary_row row = sparse_begin(adversary, args);
    struct mla_adversary_place p = {0};
    int32_t status = begin(&row, &work, args->dense ? args->keys : args->topk);
    for (p.row = 0; p.row < args->queries && status == MLA_OK; p.row++)
        status = sparse_row(args, &row, &work, p);
    end(&row, &work);
    return finish(status, message, message_bytes);
}

int32_t mla_adversary_sparse_one(const struct mla_adversary *adversary,
                                 const struct mla_sparse_args *args, struct mla_adversary_place p,
                                 struct mla_adversary_result *result)
{
    struct mla_adversary_work work;
    struct mla_oracle_visible visible;
    struct mla_adversary_row row = sparse_begin(adversary, args);
    int32_t status = begin(&row, &work, args->dense ? args->keys : args->topk);
    if (status == MLA_OK)
        status = mla_oracle_visible_sparse(args, p.row, &visible);
    if (status == MLA_OK) {
        sparse_keys(args, &row, &visible);
        sparse_attend(args, &row, &work, p);
        report(&row, result);
        mla_oracle_visible_free(&visible);
    }
    end(&row, &work);
    return status;
}
