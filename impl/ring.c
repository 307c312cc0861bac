/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.c - ranks, seats and steps of the ring operation.
 *
 * A rank owns its query rows and their running states. A worker thread holds one or more seats:
 * with fewer threads than ranks, worker w serves ranks w, w+T, ..; otherwise it is member w/R of
 * the team of rank w%R, and the members split the rank's items (batch, head, query chunk)
 * statically.
 *
 * A seat never blocks. Each time it is advanced it first pulls whatever shard pieces its rank's
 * neighbours have ready - also for shards the rank itself does not attend, which it must forward -
 * and then, if the shard of its current step is there, attends one item. There is no barrier
 * between steps: ranks drift apart as far as the data allows. Only a worker none of whose seats can
 * move sleeps, until some rank has received something. A kernel of two passes goes through the steps
 * twice; the shards stay where they are. It ends when its seats have finished all
 * steps and everything has reached their ranks, so no thread leaves before what others need has
 * moved on.
 */
#include "impl/ring.h"

#include "impl/finish.h"
#include "impl/fpenv.h"
#include "impl/layout.h"
#include "impl/scratch.h"
#include "impl/team.h"
#include "impl/transport.h"
#include "impl/validate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct ring_call {
    const struct mla_ring_args *args;
    const struct mla_attend *attend;
    struct mla_attend_shape shape;
    struct mla_layout layout;
    struct mla_transport transport;
    struct mla_team team;
    float scale;
    int64_t chunks_n;                                  /* query chunks of a (batch, head) */
    int64_t items_n;                                   /* of a rank */
    int64_t steps_n;                                   /* of a seat: every shard in every pass */
    int64_t k_chunk;                                   /* keys of a block, at most kv_rows */
    struct mla_attend_state states[MLA_RING_SIZE_MAX]; /* per rank: [batch*heads*q_rows] */
    void **scratch;                                    /* per worker */
};

struct seat {
    int64_t rank;
    int64_t member; /* of the rank's team */
    int64_t members_n;
    int64_t step;
    int64_t item; /* next item of this step */
};

/* A query chunk of one (batch, head). */
struct item {
    int64_t batch;
    int64_t line;  /* batch*heads + head */
    int64_t first; /* query row */
    int64_t rows_n;
};

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct item item_of(const struct ring_call *call, int64_t number)
{
    const struct mla_ring_args *args = call->args;
    struct item item = {.line = number / call->chunks_n};
    item.batch = item.line / args->heads;
    item.first = number % call->chunks_n * min_of(args->q_chunk_size, args->q_rows);
    item.rows_n = min_of(args->q_chunk_size, args->q_rows - item.first);
    return item;
}

/* The states of a rank's rows from `row` of a line on. */
static struct mla_attend_state state_at(const struct ring_call *call, int64_t rank, int64_t line,
                                        int64_t row)
{
    const struct mla_attend_state *all = &call->states[rank];
    const int64_t at = line * call->args->q_rows + row;
    return (struct mla_attend_state){.max = all->max + at,
                                     .sum = all->sum + at * call->shape.sums_n,
                                     .out = all->out + at * call->shape.value_n};
}

/* Visible keys of each row of a tile within one shard; returns the most any row sees. */
static int64_t count_visible(const struct ring_call *call, int64_t rank, int64_t source,
                             int64_t first_row, int64_t rows_n, int64_t *counts)
{
    int64_t most = 0;
    for (int64_t r = 0; r < rows_n; r++) {
        const int64_t position = mla_layout_query_position(&call->layout, rank, first_row + r);
        counts[r] = mla_layout_visible_rows(&call->layout, source, position);
        most = counts[r] > most ? counts[r] : most;
    }
    return most;
}

/* One tile of query rows against the visible part of one shard, K chunk by K chunk. */
static void attend_tile(const struct ring_call *call, void *scratch, mla_attend_block *block,
                        int64_t rank, int64_t source, const struct item *item, int64_t first_row,
                        int64_t rows_n)
{
    const struct mla_ring_args *args = call->args;
    const uint16_t *shard = mla_transport_shard(&call->transport, rank, source, item->batch);
    const struct mla_attend_state state = state_at(call, rank, item->line, first_row);
    int64_t counts[MLA_ATTEND_ROWS];
    int64_t visible[MLA_ATTEND_ROWS];
    const int64_t most = count_visible(call, rank, source, first_row, rows_n, counts);

    if (most == 0) {
        return;
    }
    for (int64_t r = 0; r < rows_n; r++) {
        if (mla_layout_query_position(&call->layout, rank, first_row + r) >= 0) {
            const int64_t row = item->line * args->q_rows + first_row + r;
            call->attend->query(&call->shape, scratch, r, args->q[rank] + row * args->head_dim,
                                NULL);
        }
    }
    for (int64_t key = 0; key < most; key += call->k_chunk) {
        const struct mla_attend_keys keys = {.main = shard + key * args->head_dim};
        for (int64_t r = 0; r < rows_n; r++) {
            const int64_t left = counts[r] - key;
            visible[r] = left < 0 ? 0 : min_of(left, call->k_chunk);
        }
        block(&call->shape, scratch, rows_n, visible, &keys, call->scale, &state);
    }
}

static void attend_item(const struct ring_call *call, void *scratch, mla_attend_block *block,
                        int64_t rank, int64_t source, int64_t number)
{
    const struct item item = item_of(call, number);
    for (int64_t r = 0; r < item.rows_n; r += call->shape.rows_n) {
        attend_tile(call, scratch, block, rank, source, &item, item.first + r,
                    min_of(call->shape.rows_n, item.rows_n - r));
    }
}

static void finish_item(const struct ring_call *call, int64_t rank, int64_t number)
{
    const struct mla_ring_args *args = call->args;
    const struct item item = item_of(call, number);
    const struct mla_attend_state state = state_at(call, rank, item.line, item.first);
    uint16_t *out = args->out[rank] + (item.line * args->q_rows + item.first) * args->head_dim_v;
    float *stats = NULL;
    if (args->stats != NULL) {
        stats = args->stats[rank] + item.line * 2 * args->q_rows + item.first;
    }
    for (int64_t r = 0; r < item.rows_n; r++) {
        mla_finish_row(call->attend, &call->shape, &state, r, call->scale, MLA_OUT_NATURAL,
                       out + r * args->head_dim_v, stats != NULL ? stats + r : NULL,
                       stats != NULL ? stats + args->q_rows + r : NULL);
    }
}

static bool seat_is_done(const struct ring_call *call, const struct seat *seat)
{
    return seat->step == call->steps_n && mla_transport_complete(&call->transport, seat->rank);
}

/* Attend the next item of the current step if it can be done now. */
static bool seat_attend(struct ring_call *call, struct seat *seat, void *scratch)
{
    if (seat->step == call->steps_n) {
        return false;
    }
    mla_attend_block *block = call->attend->block[seat->step / call->args->ring_size];
    const int64_t turn = seat->step % call->args->ring_size;
    const int64_t source = call->transport.steps[seat->rank][turn].source;
    const bool is_active = mla_layout_step_active(&call->layout, seat->rank, source);
    const bool is_last = seat->step == call->steps_n - 1;
    if (is_active && !mla_transport_present(&call->transport, seat->rank, source)) {
        return false;
    }
    if (seat->item < call->items_n) {
        if (is_active) {
            attend_item(call, scratch, block, seat->rank, source, seat->item);
        }
        if (is_last) {
            finish_item(call, seat->rank, seat->item);
        }
        seat->item += seat->members_n;
    }
    if (seat->item >= call->items_n) {
        seat->item = seat->member;
        seat->step++;
    }
    return true;
}

/* Move a seat on as far as it goes without waiting; false when nothing moved. */
static bool seat_advance(struct ring_call *call, struct seat *seat, void *scratch)
{
    const bool pulled = mla_transport_pull(&call->transport, seat->rank) > 0;
    if (pulled) {
        mla_team_notify(&call->team);
    }
    return seat_attend(call, seat, scratch) || pulled;
}

/* The seats of a worker; returns how many. */
static int64_t seats_of(const struct ring_call *call, int64_t worker,
                        struct seat seats[MLA_RING_SIZE_MAX])
{
    const int64_t ranks_n = call->args->ring_size;
    const int64_t workers_n = call->team.workers_n;
    int64_t seats_n = 0;
    if (workers_n >= ranks_n) {
        const int64_t rank = worker % ranks_n;
        const int64_t members_n = (workers_n - rank - 1) / ranks_n + 1;
        seats[seats_n++] = (struct seat){.rank = rank,
                                         .member = worker / ranks_n,
                                         .members_n = members_n,
                                         .item = worker / ranks_n};
        return seats_n;
    }
    for (int64_t rank = worker; rank < ranks_n; rank += workers_n) {
        seats[seats_n++] = (struct seat){.rank = rank, .members_n = 1};
    }
    return seats_n;
}

/* A rank's memory belongs to the first member of its team. */
static bool prepare_rank(struct ring_call *call, int64_t rank)
{
    struct mla_attend_state *state = &call->states[rank];
    const int64_t rows_n = call->args->batch * call->args->heads * call->args->q_rows;
    state->max = mla_scratch_alloc(rows_n, sizeof *state->max);
    state->sum = mla_scratch_alloc(rows_n * call->shape.sums_n, sizeof *state->sum);
    state->out = mla_scratch_alloc(rows_n * call->shape.value_n, sizeof *state->out);
    if (state->max == NULL || state->sum == NULL || state->out == NULL) {
        return false;
    }
    for (int64_t row = 0; row < rows_n; row++) {
        mla_attend_begin(&call->shape, state, row);
    }
    return true;
}

static bool prepare(void *context, int64_t worker)
{
    struct ring_call *call = context;
    struct seat seats[MLA_RING_SIZE_MAX];
    const int64_t seats_n = seats_of(call, worker, seats);
    const size_t bytes = call->attend->scratch_bytes(&call->shape);

    call->scratch[worker] = bytes == 0 ? NULL : mla_scratch_alloc(1, bytes);
    if (call->scratch[worker] == NULL) {
        return false;
    }
    for (int64_t i = 0; i < seats_n; i++) {
        if (seats[i].member == 0 && !prepare_rank(call, seats[i].rank)) {
            return false;
        }
    }
    return true;
}

static void run(void *context, int64_t worker)
{
    struct ring_call *call = context;
    struct seat seats[MLA_RING_SIZE_MAX];
    const int64_t seats_n = seats_of(call, worker, seats);
    bool is_done = false;

    while (!is_done) {
        const uint64_t seen = mla_team_events(&call->team);
        bool moved = false;
        is_done = true;
        for (int64_t i = 0; i < seats_n; i++) {
            moved = seat_advance(call, &seats[i], call->scratch[worker]) || moved;
            is_done = seat_is_done(call, &seats[i]) && is_done;
        }
        if (!is_done && !moved) {
            mla_team_wait(&call->team, seen);
        }
    }
}

/* Everything that follows from the arguments alone. */
static void plan(struct ring_call *call, const struct mla_ring_args *args,
                 const struct mla_attend *attend)
{
    const int64_t q_chunk = min_of(args->q_chunk_size, args->q_rows);
    memset(call, 0, sizeof *call);
    call->args = args;
    call->attend = attend;
    call->layout = mla_layout_of(args);
    call->scale = args->has_scale != 0 ? args->scale : (float)(1.0 / sqrt((double)args->head_dim));
    call->k_chunk =
        min_of(attend->block_keys > 0 ? attend->block_keys : args->k_chunk_size, args->kv_rows);
    call->chunks_n = (args->q_rows - 1) / q_chunk + 1;
    call->items_n = args->batch * args->heads * call->chunks_n;
    call->steps_n = mla_attend_passes(attend) * args->ring_size;
    call->shape = (struct mla_attend_shape){.main_n = args->head_dim,
                                            .value_n = args->head_dim_v,
                                            .keys_n = call->k_chunk,
                                            .sums_n = attend->sums_n,
                                            .rows_n = attend->rows_n};
}

static void release(struct ring_call *call, int64_t workers_n)
{
    for (int64_t i = 0; call->scratch != NULL && i < workers_n; i++) {
        free(call->scratch[i]);
    }
    free(call->scratch);
    for (int64_t rank = 0; rank < call->args->ring_size; rank++) {
        free(call->states[rank].max);
        free(call->states[rank].sum);
        free(call->states[rank].out);
    }
}

static int32_t run_call(const struct mla_ring_args *args, const struct mla_attend *attend,
                        char *message, size_t message_bytes)
{
    static const struct mla_team_job job = {.prepare = prepare, .run = run};
    struct ring_call call;
    int32_t status = mla_validate_ring(args, message, message_bytes);
    if (status != MLA_OK) {
        return status;
    }
    plan(&call, args, attend);
    const int64_t threads =
        mla_team_size(args->threads, args->ring_size, args->ring_size * call.items_n);

    status = mla_transport_init(&call.transport, args, &call.layout);
    if (status != MLA_OK) {
        goto done_transport;
    }
    status = mla_team_init(&call.team, threads);
    if (status != MLA_OK) {
        goto done_transport;
    }
    call.scratch = calloc((size_t)threads, sizeof *call.scratch);
    status = call.scratch == NULL ? MLA_ERR_NOMEM : mla_team_run(&call.team, &job, &call);
    release(&call, threads);
    mla_team_destroy(&call.team);
done_transport:
    mla_transport_free(&call.transport);
    mla_validate_outcome(status, args->threads, threads, call.team.message, message, message_bytes);
    return status;
}

/* Also the checks and the plan compare, round and print floats: the default scale is one. */
int32_t mla_ring_run(const struct mla_ring_args *args, const struct mla_attend *attend,
                     char *message, size_t message_bytes)
{
    fenv_t callers;
    mla_fpenv_enter(&callers);
    const int32_t status = run_call(args, attend, message, message_bytes);
    mla_fpenv_leave(&callers);
    return status;
}
