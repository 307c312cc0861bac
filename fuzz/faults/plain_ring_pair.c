/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_pair.c - two threads share the tiles of a rank: half of the keys each for the scores,
 * half of the rows each for the probabilities, half of the columns each for P*V.
 *
 * Every stage needs what the other thread did in the one before. They meet twice a tile: after the
 * scores and after the probabilities. That is enough: scores are written again only after both have
 * met behind the probabilities, probabilities only after both have met behind the next scores (so that
 * P*V must not ask the scores' stage which keys are hidden), and
 * values are kept for two tiles in turn, since they are loaded with the scores while the other may
 * still multiply. The operations on a row are those of MLA_PLAIN_ONLINE, in the same order.
 */
#include "fuzz/faults/plain_ring_pair.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static void meet(struct meeting *meeting)
{
    int round = atomic_load(&meeting->round);
    if (atomic_fetch_add(&meeting->here, 1) == 1) {
        atomic_store(&meeting->here, 0);
        atomic_fetch_add(&meeting->round, 1);
        return;
    }
    while (atomic_load(&meeting->round) == round) {
        sched_yield();
    }
}

/* ---- a tile, a head, a call ---- */

static void work_tile(struct stage *stage)
{
    struct pair *pair = stage->pair;
    int64_t first, end, rows_n = pair->ring->args->q_rows;
    float *early = pair->early + stage->worker * rows_n;
    bool over_values = mla_plain_pair_has(stage, MLA_FAULT_P_OVER_VALUES);
    bool max_early = mla_plain_pair_has(stage, MLA_FAULT_MAX_BEFORE_SCORES);
    bool alpha_early = mla_plain_pair_has(stage, MLA_FAULT_FACTORS_BEFORE_WRITTEN);
    bool p_early = mla_plain_pair_has(stage, MLA_FAULT_P_BEFORE_WRITTEN);
    float *p = over_values ? mla_plain_pair_values(stage) : pair->p;

    if (max_early && stage->worker == 1) {
        mla_plain_nap(3);
    }
    mla_plain_pair_half(stage->rows, stage->worker, &first, &end);
    for (int64_t j = first; j < end; j++) {
        mla_plain_pair_score(stage, j);
    }
    mla_plain_pair_half(rows_n, stage->worker, &first, &end);
    for (int64_t r = first; max_early && r < end; r++) {
        early[r] = mla_plain_pair_max(stage, r);
    }
    meet(&pair->meeting);
    if ((alpha_early || p_early) && stage->worker == 1) {
        mla_plain_nap(3);
    }
    for (int64_t r = first; r < end; r++) {
        mla_plain_pair_store_early(stage, r);
        mla_plain_pair_weigh(stage, r, max_early ? early[r] : mla_plain_pair_max(stage, r), p);
    }
    for (int64_t r = 0; alpha_early && r < rows_n; r++) {
        early[r] = pair->alpha[r];
    }
    if (!p_early) {
        meet(&pair->meeting);
    }
    for (int64_t r = 0; r < rows_n; r++) {
        mla_plain_pair_multiply(stage, r, alpha_early ? early[r] : pair->alpha[r], p);
    }
}

/* Own rows to begin with, and own rows in the end. */
static void begin_rows(const struct stage *stage)
{
    struct pair *pair = stage->pair;
    int64_t width = pair->ring->args->head_dim_v, first, end;
    mla_plain_pair_half(pair->ring->args->q_rows, stage->worker, &first, &end);
    for (int64_t r = first; r < end; r++) {
        pair->max[r] = -INFINITY;
        pair->sum[r] = 0.0f;
        for (int64_t c = 0; c < width; c++) {
            pair->o[r * width + c] = 0.0f;
        }
    }
}

static void end_rows(struct stage *stage)
{
    struct pair *pair = stage->pair;
    const struct mla_ring_args *args = pair->ring->args;
    int64_t first, end;
    mla_plain_pair_half(args->q_rows, stage->worker, &first, &end);
    for (int64_t r = first; r < end; r++) {
        struct mla_plain_row row = {.value_n = args->head_dim_v,
                                    .scale = pair->ring->plan.scale,
                                    .run = {.scale = pair->ring->plan.scale},
                                    .o = pair->o + r * args->head_dim_v,
                                    .max = pair->max[r],
                                    .sum = pair->sum[r],
                                    .seen_n = pair->max[r] > -INFINITY || pair->sum[r] != 0.0f};
        stage->query.r = r;
        stage->query.pos = pair->ring->positions[stage->query.rank * args->q_rows + r];
        mla_plain_row_end(&row, pair->ring->variant);
        mla_plain_store_row(pair->ring, &stage->query, stage->head, &row);
    }
}

static void work_head(struct stage *stage)
{
    struct pair *pair = stage->pair;
    const struct mla_ring_args *args = pair->ring->args;
    int64_t order[MLA_RING_SIZE_MAX];
    mla_plain_visit_order(args->ring_size, args->topology, stage->query.rank, order);
    begin_rows(stage);
    meet(&pair->meeting); /* P*V adds to every row */
    for (int64_t step = 0; step < args->ring_size; step++) {
        stage->source = order[step];
        stage->shard =
            mla_plain_shard(pair->ring, stage->query.rank, stage->source, stage->query.batch);
        for (stage->first = 0; stage->first < args->kv_rows; stage->first += pair->tile_rows) {
            int64_t left = args->kv_rows - stage->first;
            stage->rows = left < pair->tile_rows ? left : pair->tile_rows;
            work_tile(stage);
            stage->turn = 1 - stage->turn;
        }
    }
    meet(&pair->meeting); /* a row has columns of both */
    end_rows(stage);
    meet(&pair->meeting);
}

static void work_all(struct pair *pair, int64_t worker)
{
    const struct mla_ring_args *args = pair->ring->args;
    struct stage stage = {.pair = pair, .worker = worker};
    for (int64_t i = 0; i < args->ring_size * args->batch * args->heads; i++) {
        stage.head = i % args->heads;
        stage.query.batch = i / args->heads % args->batch;
        stage.query.rank = i / args->heads / args->batch;
        work_head(&stage);
    }
}

static void *second_worker(void *pair)
{
    work_all(pair, 1);
    return NULL;
}

int32_t mla_plain_pair(const struct mla_plain_ring *ring)
{
    const struct mla_ring_args *args = ring->args;
    int64_t tile_rows = mla_plain_tile_rows(args), tile = args->q_rows * tile_rows;
    int64_t most = args->q_rows > args->head_dim_v ? args->q_rows : args->head_dim_v;
    int32_t status = MLA_ERR_NOMEM;
    pthread_t second;
    struct pair pair = {.ring = ring, .tile_rows = tile_rows, .values_n = tile_rows * most};
    pair.seen = calloc((size_t)tile, sizeof *pair.seen);
    pair.scores = calloc((size_t)tile, sizeof *pair.scores);
    pair.p = calloc((size_t)tile, sizeof *pair.p);
    pair.values = calloc(2 * (size_t)pair.values_n, sizeof *pair.values);
    pair.o = calloc((size_t)(args->q_rows * args->head_dim_v), sizeof *pair.o);
    pair.max = calloc((size_t)args->q_rows * 5, sizeof *pair.max);
    if (pair.seen && pair.scores && pair.p && pair.values && pair.o && pair.max) {
        pair.sum = pair.max + args->q_rows;
        pair.alpha = pair.sum + args->q_rows;
        pair.early = pair.alpha + args->q_rows;
        if (pthread_create(&second, NULL, second_worker, &pair) == 0) {
            work_all(&pair, 0);
            pthread_join(second, NULL);
            status = MLA_OK;
        }
    }
    free(pair.max);
    free(pair.o);
    free(pair.values);
    free(pair.p);
    free(pair.scores);
    free(pair.seen);
    return status;
}
