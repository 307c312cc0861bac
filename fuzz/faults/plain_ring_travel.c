/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_travel.c - shards that travel from rank to rank while the ranks compute.
 *
 * Every rank has a thread that computes and one for each side from which shards come. A side has two
 * buffers, used in turn. Its thread copies the next shard from the neighbour's buffer (the
 * neighbour's own shard for the first hop) in two pieces, and says so after each. It may use a
 * buffer again when the rank has computed with what is in it and the next rank has copied it. A
 * batch entry is a round of shards; the counts go on through all rounds.
 *
 * No wait is for ever: copying hop h of a round waits only for hops and computations before h, of
 * this round or those before. The operations on a row are those of MLA_PLAIN_ONLINE in the same order.
 */
#include "fuzz/faults/plain_ring_travel.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- computing ---- */

/* The rows [first, end) of all heads against one shard. */
static void attend_shard(struct worker *worker, int64_t round, int64_t step, int64_t source,
                         const uint16_t *shard, int64_t first, int64_t end)
{
    const struct mla_plain_ring *ring = worker->travel->ring;
    const struct mla_ring_args *args = ring->args;
    for (int64_t r = first; r < end; r++) {
        struct mla_plain_query query = {.rank = worker->rank, .batch = round, .r = r};
        query.pos = ring->positions[worker->rank * args->q_rows + r];
        if (query.pos < 0) {
            continue;
        }
        int64_t keys_n = mla_plain_list_shard(ring, &query, step, source, shard, worker->keys);
        for (int64_t h = 0; h < args->heads && keys_n > 0; h++) {
            struct mla_plain_row *row = &worker->rows[h * args->q_rows + r];
            const uint16_t *q = mla_plain_query_row(ring, &query, h);
            row->keys_n = keys_n;
            mla_plain_row_add(row, q, q + row->value_n, ring->variant);
        }
    }
}

/* One shard of a side: wait, compute, give the buffer back. */
static void take_shard(struct worker *worker, int64_t round, int64_t step, struct side *side,
                       int64_t hop)
{
    struct travel *travel = worker->travel;
    int64_t n = round * side->hops_n + hop - 1, rows_n = travel->ring->args->q_rows;
    int64_t pieces = PIECES * (n + 1), end = rows_n;
    const uint16_t *shard = side->buffers[n % BUFFERS];
    if (hop == side->hops_n && mla_plain_travel_has(travel, MLA_FAULT_ONE_ARRIVAL_FEWER)) {
        pieces--;
    }
    if (mla_plain_travel_has(travel, MLA_FAULT_SECOND_HALF_UNJOINED)) {
        end = rows_n / 2; /* the others do not wait */
        attend_shard(worker, round, step, mla_plain_travel_source(side, hop), shard, end, rows_n);
    }
    mla_plain_travel_wait(travel, &side->arrived, pieces);
    if (mla_plain_travel_is(travel, MLA_FAULT_NO_CONSUMED_ACK) ||
        mla_plain_travel_is(travel, MLA_FAULT_NEXT_ROUND_OVERWRITES)) {
        mla_plain_nap(8);
    }
    attend_shard(worker, round, step, mla_plain_travel_source(side, hop), shard, 0, end);
    mla_plain_travel_add(travel, &side->used, 1);
}

/* Is the side's next shard there? */
static bool has_come(struct side *side, int64_t round, int64_t taken)
{
    return mla_plain_travel_reached(side->travel, &side->arrived,
                                    PIECES * (round * side->hops_n + taken + 1));
}

/* Which side gives the next shard: by turns, as far as one has any left. */
static int64_t next_side(struct worker *worker, int64_t round, const int64_t *taken)
{
    struct travel *travel = worker->travel;
    struct side *sides = travel->sides[worker->rank];
    struct side *above = &sides[FROM_ABOVE], *below = &sides[FROM_BELOW];
    if (taken[FROM_ABOVE] == above->hops_n || taken[FROM_BELOW] == below->hops_n) {
        return taken[FROM_ABOVE] < above->hops_n ? FROM_ABOVE : FROM_BELOW;
    }
    int64_t due = taken[FROM_ABOVE] <= taken[FROM_BELOW] ? FROM_ABOVE : FROM_BELOW;
    if (mla_plain_travel_is(travel, MLA_FAULT_MERGE_AS_COMPLETED)) {
        mla_plain_nap(2); /* so that something can have come */
        if (!has_come(&sides[due], round, taken[due]) &&
            has_come(&sides[1 - due], round, taken[1 - due]) &&
            mla_plain_travel_has(travel, MLA_FAULT_MERGE_AS_COMPLETED)) {
            return 1 - due;
        }
    }
    return due;
}

static void attend_round(struct worker *worker, int64_t round)
{
    const struct mla_plain_ring *ring = worker->travel->ring;
    const struct mla_ring_args *args = ring->args;
    int64_t taken[SIDES] = {0, 0};
    for (int64_t i = 0; i < args->heads * args->q_rows; i++) {
        mla_plain_row_begin(&worker->rows[i]);
    }
    attend_shard(worker, round, 0, worker->rank,
                 mla_plain_shard(ring, worker->rank, worker->rank, round), 0, args->q_rows);
    for (int64_t step = 1; step < args->ring_size; step++) {
        int64_t from = next_side(worker, round, taken);
        taken[from]++;
        take_shard(worker, round, step, &worker->travel->sides[worker->rank][from], taken[from]);
    }
    for (int64_t i = 0; i < args->heads * args->q_rows; i++) {
        struct mla_plain_query query = {
            .rank = worker->rank, .batch = round, .r = i % args->q_rows};
        query.pos = ring->positions[worker->rank * args->q_rows + query.r];
        mla_plain_row_end(&worker->rows[i], ring->variant);
        mla_plain_store_row(ring, &query, i / args->q_rows, &worker->rows[i]);
    }
}

static void *side_thread(void *side)
{
    if (mla_plain_travel_wait_start(((struct side *)side)->travel)) {
        mla_plain_travel_move(side);
    }
    return NULL;
}

static void *worker_thread(void *argument)
{
    struct worker *worker = argument;
    if (mla_plain_travel_wait_start(worker->travel)) {
        for (int64_t round = 0; round < worker->travel->ring->args->batch; round++) {
            attend_round(worker, round);
        }
    }
    return NULL;
}

/* ---- setting up ---- */

static bool make_worker(struct travel *travel, int64_t rank)
{
    const struct mla_ring_args *args = travel->ring->args;
    struct worker *worker = &travel->workers[rank];
    size_t rows_n = (size_t)(args->heads * args->q_rows);
    size_t tiles_n = (size_t)(args->ring_size * args->kv_rows); /* at most */
    worker->travel = travel;
    worker->rank = rank;
    worker->keys = calloc((size_t)args->kv_rows, sizeof *worker->keys);
    worker->scores = calloc((size_t)args->kv_rows, sizeof *worker->scores);
    worker->rows = calloc(rows_n, sizeof *worker->rows);
    worker->o = calloc(rows_n * (size_t)args->head_dim_v, sizeof *worker->o);
    worker->head_factors = calloc(tiles_n, sizeof *worker->head_factors);
    if (!worker->keys || !worker->scores || !worker->head_factors || !worker->rows || !worker->o) {
        return false;
    }
    for (size_t i = 0; i < rows_n; i++) {
        worker->rows[i] = (struct mla_plain_row){.keys = worker->keys,
                                                 .value_n = args->head_dim_v,
                                                 .rope_n = args->head_dim - args->head_dim_v,
                                                 .scale = travel->ring->plan.scale,
                                                 .head = (int64_t)i / args->q_rows,
                                                 .scores = worker->scores,
                                                 .head_factors = worker->head_factors,
                                                 .o = worker->o + i * (size_t)args->head_dim_v};
    }
    return true;
}

static bool make_all(struct travel *travel)
{
    bool ok = true;
    for (int64_t rank = 0; ok && rank < travel->ring->args->ring_size; rank++) {
        ok = make_worker(travel, rank) && mla_plain_travel_make_side(travel, rank, FROM_ABOVE) &&
             mla_plain_travel_make_side(travel, rank, FROM_BELOW);
    }
    return ok;
}

static void free_all(struct travel *travel)
{
    for (int64_t rank = 0; rank < travel->ring->args->ring_size; rank++) {
        struct worker *worker = &travel->workers[rank];
        for (int i = 0; i < SIDES * BUFFERS; i++) {
            free(travel->sides[rank][i / BUFFERS].buffers[i % BUFFERS]);
        }
        free(worker->o);
        free(worker->rows);
        free(worker->head_factors);
        free(worker->scores);
        free(worker->keys);
    }
}

/* Start all threads, let them go (or home again, if one could not be had), wait for them. */
static bool run_all(struct travel *travel)
{
    int64_t each = 1 + SIDES, n = 0, all = travel->ring->args->ring_size * each;
    bool ok = true;
    while (ok && n < all) {
        struct worker *worker = &travel->workers[n / each];
        struct side *side = travel->sides[n / each] + n % each % SIDES;
        ok = n % each == SIDES ? pthread_create(&worker->thread, NULL, worker_thread, worker) == 0
                               : pthread_create(&side->thread, NULL, side_thread, side) == 0;
        n += ok;
    }
    pthread_mutex_lock(&travel->lock);
    travel->has_started = ok;
    travel->has_failed = !ok;
    pthread_cond_broadcast(&travel->changed);
    pthread_mutex_unlock(&travel->lock);
    while (n > 0) {
        n--;
        pthread_join(n % each == SIDES ? travel->workers[n / each].thread
                                       : travel->sides[n / each][n % each].thread,
                     NULL);
    }
    return ok;
}

int32_t mla_plain_travel(const struct mla_plain_ring *ring)
{
    static atomic_uint calls_n;
    struct travel *travel = calloc(1, sizeof *travel);
    bool ok = false;
    if (travel) {
        travel->ring = ring;
        travel->slow_side = atomic_fetch_add(&calls_n, 1) % SIDES;
        pthread_mutex_init(&travel->lock, NULL);
        pthread_cond_init(&travel->changed, NULL);
        ok = make_all(travel) && run_all(travel);
        free_all(travel);
        pthread_cond_destroy(&travel->changed);
        pthread_mutex_destroy(&travel->lock);
        free(travel);
    }
    return ok ? MLA_OK : MLA_ERR_NOMEM;
}
