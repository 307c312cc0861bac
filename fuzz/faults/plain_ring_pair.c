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
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_ring.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define Q_TILE 128   /* columns of a query tile */
#define HIDDEN -1.0f /* what stands in the place of a hidden key's p */

/* Where the two wait for one another. */
struct meeting {
    atomic_int here;
    atomic_int round;
};

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

struct pair {
    const struct mla_plain_ring *ring;
    struct meeting meeting;
    int64_t tile_rows;
    bool *seen;    /* [q_rows, tile_rows] */
    float *scores; /* [q_rows, tile_rows] */
    float *p;      /* [q_rows, tile_rows] */
    float *values; /* [2, values_n]: a tile's, in turn */
    int64_t values_n;
    float *alpha, *max, *sum; /* [q_rows] */
    float *o;                 /* [q_rows, head_dim_v] */
    float *early;             /* [2, q_rows]: what a faulty thread took before it was due */
};

/* One tile of one head, as one of the two sees it. */
struct stage {
    struct pair *pair;
    struct mla_plain_query query; /* rank and batch; r and pos per row */
    int64_t head, source, first, rows, turn;
    int64_t worker;
    const uint16_t *shard;
};

/* [*first, *end): this thread's half of n. */
static void half_of(int64_t n, int64_t worker, int64_t *first, int64_t *end)
{
    *first = worker == 0 ? 0 : n / 2;
    *end = worker == 0 ? n / 2 : n;
}

static bool has(const struct stage *stage, enum mla_plain_fault fault)
{
    return mla_plain_has(stage->pair->ring->variant, fault);
}

static float *values_of(const struct stage *stage)
{
    return stage->pair->values + stage->turn * stage->pair->values_n;
}

/* ---- scores: half of the keys ---- */

static float score_of(const struct stage *stage, const uint16_t *q, const uint16_t *key)
{
    int64_t width = stage->pair->ring->args->head_dim;
    bool reuse = width > Q_TILE && has(stage, MLA_FAULT_Q_TILE_REUSED);
    float sum = 0.0f;
    for (int64_t c = 0; c < width; c++) {
        sum += mla_plain_bf16_value(q[reuse ? c % Q_TILE : c]) * mla_plain_bf16_value(key[c]);
    }
    return sum;
}

static void score_key(struct stage *stage, int64_t j)
{
    struct pair *pair = stage->pair;
    const struct mla_ring_args *args = pair->ring->args;
    int64_t local = stage->first + j;
    const uint16_t *key = stage->shard + local * args->head_dim;
    struct mla_plain_sight sight = {
        .ring = pair->ring,
        .query = &stage->query,
        .source = stage->source,
        .local = local,
        .pos = mla_plain_key_position(pair->ring, stage->source, local),
        .tile = stage->first,
        .tile_pos = mla_plain_key_position(pair->ring, stage->source, stage->first)};
    for (int64_t c = 0; c < args->head_dim_v; c++) {
        values_of(stage)[j * args->head_dim_v + c] = mla_plain_bf16_value(key[c]);
    }
    for (int64_t r = 0; r < args->q_rows; r++) {
        int64_t at = r * pair->tile_rows + j;
        stage->query.r = r;
        stage->query.pos = pair->ring->positions[stage->query.rank * args->q_rows + r];
        pair->seen[at] = mla_plain_sees(&sight);
        if (pair->seen[at]) {
            const uint16_t *q = mla_plain_query_row(pair->ring, &stage->query, stage->head);
            pair->scores[at] = score_of(stage, q, key);
        }
    }
}

/* ---- probabilities: half of the rows ---- */

static float max_of_row(const struct stage *stage, int64_t r)
{
    const struct pair *pair = stage->pair;
    float max = pair->max[r];
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        max = pair->seen[at] && pair->scores[at] > max ? pair->scores[at] : max;
    }
    return max;
}

/* The upper quarter's p take the places of its scores before the maximum is known. */
static void store_upper_early(const struct stage *stage, int64_t r)
{
    struct pair *pair = stage->pair;
    for (int64_t j = stage->rows - stage->rows / 4; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        if (pair->seen[at] && has(stage, MLA_FAULT_P_OVER_SCORES)) {
            pair->scores[at] = expf((pair->scores[at] - pair->max[r]) * pair->ring->plan.scale);
        }
    }
}

static void weigh_row(const struct stage *stage, int64_t r, float max, float *p)
{
    struct pair *pair = stage->pair;
    float scale = pair->ring->plan.scale;
    bool is_seen = false;
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        is_seen = is_seen || pair->seen[at];
        p[at] = HIDDEN;
    }
    pair->alpha[r] = 1.0f;
    if (!is_seen) {
        return;
    }
    pair->alpha[r] = expf((pair->max[r] - max) * scale);
    pair->max[r] = max;
    pair->sum[r] *= pair->alpha[r];
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        if (pair->seen[at]) {
            p[at] = expf((pair->scores[at] - max) * scale);
            pair->sum[r] += p[at];
        }
    }
}

/* ---- P*V: half of the columns ---- */

static void multiply_row(const struct stage *stage, int64_t r, float alpha, const float *p)
{
    const struct pair *pair = stage->pair;
    const float *values = values_of(stage);
    int64_t width = pair->ring->args->head_dim_v, first, end;
    half_of(width, stage->worker, &first, &end);
    float *o = pair->o + r * width;
    for (int64_t c = first; alpha != 1.0f && c < end; c++) {
        o[c] *= alpha;
    }
    for (int64_t j = 0; j < stage->rows; j++) {
        int64_t at = r * pair->tile_rows + j;
        for (int64_t c = first; p[at] != HIDDEN && c < end; c++) {
            o[c] += p[at] * values[j * width + c];
        }
    }
}

/* ---- a tile, a head, a call ---- */

static void work_tile(struct stage *stage)
{
    struct pair *pair = stage->pair;
    int64_t first, end, rows_n = pair->ring->args->q_rows;
    float *early = pair->early + stage->worker * rows_n;
    bool over_values = has(stage, MLA_FAULT_P_OVER_VALUES);
    bool max_early = has(stage, MLA_FAULT_MAX_BEFORE_SCORES);
    bool alpha_early = has(stage, MLA_FAULT_FACTORS_BEFORE_WRITTEN);
    bool p_early = has(stage, MLA_FAULT_P_BEFORE_WRITTEN);
    float *p = over_values ? values_of(stage) : pair->p;

    if (max_early && stage->worker == 1) {
        mla_plain_nap(3);
    }
    half_of(stage->rows, stage->worker, &first, &end);
    for (int64_t j = first; j < end; j++) {
        score_key(stage, j);
    }
    half_of(rows_n, stage->worker, &first, &end);
    for (int64_t r = first; max_early && r < end; r++) {
        early[r] = max_of_row(stage, r);
    }
    meet(&pair->meeting);
    if ((alpha_early || p_early) && stage->worker == 1) {
        mla_plain_nap(3);
    }
    for (int64_t r = first; r < end; r++) {
        store_upper_early(stage, r);
        weigh_row(stage, r, max_early ? early[r] : max_of_row(stage, r), p);
    }
    for (int64_t r = 0; alpha_early && r < rows_n; r++) {
        early[r] = pair->alpha[r];
    }
    if (!p_early) {
        meet(&pair->meeting);
    }
    for (int64_t r = 0; r < rows_n; r++) {
        multiply_row(stage, r, alpha_early ? early[r] : pair->alpha[r], p);
    }
}

/* Own rows to begin with, and own rows in the end. */
static void begin_rows(const struct stage *stage)
{
    struct pair *pair = stage->pair;
    int64_t width = pair->ring->args->head_dim_v, first, end;
    half_of(pair->ring->args->q_rows, stage->worker, &first, &end);
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
    half_of(args->q_rows, stage->worker, &first, &end);
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
