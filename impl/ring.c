/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.c - tiles, their claims and their walk round the ring.
 *
 * The query rows of a (rank, batch entry) are numbered query by query, all heads of one before the
 * next: neighbours see the same keys. A tile is a run of such rows, up to as many as the kernel's
 * step takes at once; neither heads nor q_chunk_size cut it. A thread claims a tile, takes its
 * queries, walks the rank's whole visiting order (twice for a kernel of two passes) with the
 * running states at its own desk, and writes the rows. So no state outlives a tile, and a call needs
 * memory for its threads, not for its rows. What no row of a tile sees is neither waited for nor
 * handed to the step.
 *
 * Thread w of T prefers the tiles of ranks w, w + T, .. (of rank w mod R if T > R), then helps the
 * rank that has most left: with contiguous shards the last rank has far more to do than the first.
 * Within a rank late queries come first, since they see most: what is left for the end is small.
 *
 * Keys are brought when they are needed (transport.h): before a block the thread makes sure that its
 * rows have arrived at the rank, making the missing hops itself. Besides it carries a piece onward
 * before each tile, and what is left when there are no tiles any more; so everything passes through
 * every rank also where nobody attends it. The only thing a thread ever waits for is a piece that
 * another is copying at that moment, and it holds no piece itself then: transport.c shows why that
 * cannot deadlock. Nobody waits for a tile, so ranks may outnumber threads.
 */
#include "impl/ring.h"

#include "impl/desk.h"
#include "impl/finish.h"
#include "impl/fpenv.h"
#include "impl/layout.h"
#include "impl/pause.h"
#include "impl/share.h"
#include "impl/team.h"
#include "impl/transport.h"
#include "impl/validate.h"

#include <math.h>
#include <string.h>

struct ring_call {
    const struct mla_ring_args *args;
    const struct mla_attend *attend;
    struct mla_attend_shape shape;
    struct mla_layout layout;
    struct mla_transport transport;
    struct mla_team team;
    float scale;
    int64_t k_chunk;   /* keys of a block, at most kv_rows */
    int64_t lines_n;   /* (query, head) rows of a batch entry of a rank */
    int64_t tile_rows; /* rows of a tile but the last */
    int64_t tiles_n;   /* of a rank */
    atomic_llong next_tile[MLA_RING_SIZE_MAX];
    struct mla_desk *desks; /* per worker */
};

struct tile {
    int64_t rank;
    int64_t batch;
    int64_t first; /* line: query * heads + head */
    int64_t rows_n;
    int64_t positions[MLA_ATTEND_ROWS]; /* of the rows' queries; -1: a pad row */
};

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Tile `number` of a rank in order of work: the last lines of all batch entries first. */
static void tile_of(const struct ring_call *call, int64_t rank, int64_t number, struct tile *tile)
{
    const struct mla_ring_args *args = call->args;
    const int64_t last = call->tiles_n / args->batch - 1;
    tile->rank = rank;
    tile->batch = number % args->batch;
    tile->first = (last - number / args->batch) * call->tile_rows;
    tile->rows_n = min_of(call->tile_rows, call->lines_n - tile->first);
    for (int64_t r = 0; r < tile->rows_n; r++) {
        tile->positions[r] =
            mla_layout_query_position(&call->layout, rank, (tile->first + r) / args->heads);
    }
}

/* The (batch, head) a row of the tile belongs to. */
static int64_t head_of(const struct ring_call *call, const struct tile *tile, int64_t row)
{
    return tile->batch * call->args->heads + (tile->first + row) % call->args->heads;
}

static int64_t query_of(const struct ring_call *call, const struct tile *tile, int64_t row)
{
    return (tile->first + row) / call->args->heads;
}

static void begin_tile(const struct ring_call *call, struct mla_desk *desk, const struct tile *tile)
{
    const struct mla_ring_args *args = call->args;
    for (int64_t r = 0; r < tile->rows_n; r++) {
        mla_attend_begin(&call->shape, &desk->state, r);
        if (tile->positions[r] >= 0) {
            const int64_t row = head_of(call, tile, r) * args->q_rows + query_of(call, tile, r);
            call->attend->query(&call->shape, desk->scratch, r,
                                args->q[tile->rank] + row * args->head_dim, NULL);
        }
    }
}

static void finish_tile(const struct ring_call *call, struct mla_desk *desk,
                        const struct tile *tile)
{
    const struct mla_ring_args *args = call->args;
    for (int64_t r = 0; r < tile->rows_n; r++) {
        const int64_t head = head_of(call, tile, r);
        const int64_t query = query_of(call, tile, r);
        uint16_t *out = args->out[tile->rank] + (head * args->q_rows + query) * args->head_dim_v;
        float *stats = NULL;
        if (args->stats != NULL) {
            stats = args->stats[tile->rank] + head * 2 * args->q_rows + query;
        }
        mla_finish_row(call->attend, &call->shape, &desk->state, r, call->scale, MLA_OUT_NATURAL,
                       out, stats, stats != NULL ? stats + args->q_rows : NULL);
    }
}

/* Visible keys of each row of a tile within one shard; returns the most any row sees. */
static int64_t count_visible(const struct ring_call *call, const struct tile *tile, int64_t source,
                             int64_t *counts)
{
    int64_t most = 0;
    for (int64_t r = 0; r < tile->rows_n; r++) {
        const bool is_same = r > 0 && tile->positions[r] == tile->positions[r - 1];
        counts[r] = is_same ? counts[r - 1]
                            : mla_layout_visible_rows(&call->layout, source, tile->positions[r]);
        most = counts[r] > most ? counts[r] : most;
    }
    return most;
}

/* One tile against the visible part of one shard, K chunk by K chunk. */
static void attend_shard(struct ring_call *call, struct mla_desk *desk, mla_attend_block *block,
                         const struct tile *tile, int64_t source)
{
    const int64_t width = call->args->head_dim;
    const uint16_t *shard = mla_transport_shard(&call->transport, tile->rank, source, tile->batch);
    int64_t counts[MLA_ATTEND_ROWS];
    int64_t visible[MLA_ATTEND_ROWS];
    const int64_t most = count_visible(call, tile, source, counts);

    for (int64_t key = 0; key < most; key += call->k_chunk) {
        const int64_t end = min_of(key + call->k_chunk, most);
        const struct mla_attend_keys next = {.main = shard + end * width};
        struct mla_attend_keys keys = {.main = shard + key * width};
        mla_transport_need(&call->transport, tile->rank, source, key, end - key);
        const int64_t next_n = min_of(call->k_chunk, most - end);
        if (next_n > 0 && mla_transport_has(&call->transport, tile->rank, source, end, next_n)) {
            keys.next = &next;
            keys.next_n = next_n;
        }
        for (int64_t r = 0; r < tile->rows_n; r++) {
            const int64_t left = counts[r] - key;
            visible[r] = left < 0 ? 0 : min_of(left, call->k_chunk);
        }
        block(&call->shape, desk->scratch, tile->rows_n, visible, &keys, call->scale, &desk->state);
    }
}

static void attend_tile(struct ring_call *call, struct mla_desk *desk, const struct tile *tile)
{
    const struct mla_ring_step *steps = call->transport.steps[tile->rank];
    begin_tile(call, desk, tile);
    for (int64_t pass = 0; pass < mla_attend_passes(call->attend); pass++) {
        for (int64_t i = 0; i < call->args->ring_size; i++) {
            if (mla_layout_step_active(&call->layout, tile->rank, steps[i].source)) {
                attend_shard(call, desk, call->attend->block[pass], tile, steps[i].source);
            }
        }
    }
    finish_tile(call, desk, tile);
}

static int64_t left_of(struct ring_call *call, int64_t rank)
{
    return call->tiles_n - atomic_load_explicit(&call->next_tile[rank], memory_order_relaxed);
}

/* The rank's next tile, unless others have taken all. The counter orders nothing but the claims. */
static bool claim_of(struct ring_call *call, int64_t rank, struct tile *tile)
{
    MLA_PAUSE(MLA_PAUSE_CLAIM);
    if (left_of(call, rank) <= 0) {
        return false;
    }
    const int64_t number =
        atomic_fetch_add_explicit(&call->next_tile[rank], 1, memory_order_relaxed);
    if (number >= call->tiles_n) {
        return false;
    }
    tile_of(call, rank, number, tile);
    return true;
}

/* The rank with most tiles left, the last one of equals; -1 when there are none. */
static int64_t busiest(struct ring_call *call)
{
    int64_t best = -1;
    int64_t most = 1;
    for (int64_t rank = 0; rank < call->args->ring_size; rank++) {
        const int64_t left = left_of(call, rank);
        if (left >= most) {
            most = left;
            best = rank;
        }
    }
    return best;
}

static bool claim(struct ring_call *call, int64_t worker, struct tile *tile)
{
    const int64_t ranks_n = call->args->ring_size;
    for (int64_t own = worker % ranks_n; own < ranks_n; own += call->team.workers_n) {
        if (claim_of(call, own, tile)) {
            return true;
        }
    }
    for (int64_t rank = busiest(call); rank >= 0; rank = busiest(call)) {
        if (claim_of(call, rank, tile)) {
            return true;
        }
    }
    return false;
}

static bool prepare(void *context, int64_t worker)
{
    struct ring_call *call = context;
    return mla_desk_make(&call->desks[worker], call->attend, &call->shape);
}

static void run(void *context, int64_t worker)
{
    struct ring_call *call = context;
    struct tile tile;
    bool is_carrying = mla_transport_carry(&call->transport);
    while (claim(call, worker, &tile)) {
        attend_tile(call, &call->desks[worker], &tile);
        is_carrying = is_carrying && mla_transport_carry(&call->transport);
    }
    while (is_carrying) {
        is_carrying = mla_transport_carry(&call->transport);
    }
}

/* Everything that follows from the arguments alone; returns the number of threads. */
static int64_t plan(struct ring_call *call, const struct mla_ring_args *args,
                    const struct mla_attend *attend)
{
    const int64_t sets_n = args->ring_size * args->batch;
    memset(call, 0, sizeof *call);
    call->args = args;
    call->attend = attend;
    call->layout = mla_layout_of(args);
    call->scale = args->has_scale != 0 ? args->scale : (float)(1.0 / sqrt((double)args->head_dim));
    call->k_chunk =
        min_of(attend->block_keys > 0 ? attend->block_keys : args->k_chunk_size, args->kv_rows);
    call->lines_n = args->q_rows * args->heads;
    call->shape = (struct mla_attend_shape){.main_n = args->head_dim,
                                            .value_n = args->head_dim_v,
                                            .keys_n = call->k_chunk,
                                            .sums_n = attend->sums_n,
                                            .rows_n = attend->rows_n};
    const int64_t threads =
        mla_team_size(args->threads, args->ring_size,
                      mla_share_tiles(sets_n, call->lines_n, mla_share_least(attend->rows_n)));
    call->tile_rows = mla_share_rows(sets_n, call->lines_n, attend->rows_n, threads);
    call->tiles_n = mla_share_tiles(args->batch, call->lines_n, call->tile_rows);
    for (int64_t rank = 0; rank < args->ring_size; rank++) {
        atomic_init(&call->next_tile[rank], 0);
    }
    return threads;
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
    const int64_t threads = plan(&call, args, attend);

    status = mla_team_init(&call.team, threads);
    if (status != MLA_OK) {
        goto done;
    }
    status = mla_transport_init(&call.transport, args, &call.layout, &call.team);
    if (status != MLA_OK) {
        goto done_team;
    }
    call.desks = calloc((size_t)threads, sizeof *call.desks);
    status = call.desks == NULL ? MLA_ERR_NOMEM : mla_team_run(&call.team, &job, &call);
    for (int64_t i = 0; call.desks != NULL && i < threads; i++) {
        mla_desk_clear(&call.desks[i]);
    }
    free(call.desks);
done_team:
    mla_transport_free(&call.transport);
    mla_team_destroy(&call.team);
done:
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
