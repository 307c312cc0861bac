/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse.c - cores, work items and key lists of the sparse operation.
 *
 * Query rows are sharded over `cores`; core i owns rows [i*S/n, (i+1)*S/n). The cores advance side
 * by side: work item t is row t div n of core t mod n, cut into groups of heads, and threads take
 * items from one counter. An item is computed by one thread from start to end, so which thread
 * takes it, and when, changes nothing. The groups are as large as the kernel's step takes, or
 * smaller where few rows would leave threads idle (share.h).
 *
 * A block of keys is read off the row's list one ahead of its use, so that the step can fetch the
 * next one's rows from memory while it works on this one's. With the row's last block comes the first
 * one of the item that is next in line: most likely it is this worker's. If not, rows were fetched
 * in vain, no more.
 */
#include "impl/sparse.h"

#include "impl/advise.h"
#include "impl/desk.h"
#include "impl/finish.h"
#include "impl/fpenv.h"
#include "impl/layout.h"
#include "impl/pause.h"
#include "impl/share.h"
#include "impl/team.h"
#include "impl/validate.h"

#include <stdatomic.h>
#include <string.h>

struct sparse_call {
    const struct mla_sparse_args *args;
    const struct mla_attend *attend;
    struct mla_attend_shape shape;
    struct mla_team team;
    int64_t group_rows; /* heads of a group but the last */
    int64_t groups_n;   /* groups of heads in a row */
    int64_t items_n;
    atomic_llong next_item;
    struct mla_desk *desks; /* per worker */
};

/* The keys of one query row, read block by block. */
struct reader {
    int64_t row;
    int64_t at;            /* next entry of the list, next key when dense */
    int64_t end;           /* entries of the list, keys when dense */
    const int32_t *listed; /* the list itself, where it may be used as it is; else NULL */
    int32_t taken[2][MLA_ATTEND_KEYS]; /* else blocks of what is left of it, alternately */
};

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int32_t entry_of(const struct mla_sparse_args *args, int64_t row, int64_t j)
{
    return args->topk_indices[mla_layout_topk_index(args->topk_tiled != 0, args->topk, row, j)];
}

static bool is_reached(const struct mla_sparse_args *args, int64_t row, int32_t key)
{
    return args->has_q_pos_offset == 0 || mla_layout_index_reached(key, args->q_pos_offset, row);
}

/* The row's list if nothing is dropped from it and its entries lie side by side, else NULL. */
static const int32_t *whole_list(const struct mla_sparse_args *args, int64_t row)
{
    if (args->topk_tiled != 0) {
        return NULL;
    }
    const int32_t *list = args->topk_indices + mla_layout_topk_index(false, args->topk, row, 0);
    for (int64_t j = 0; args->has_q_pos_offset != 0 && j < args->topk; j++) {
        if (!is_reached(args, row, list[j])) {
            return NULL;
        }
    }
    return list;
}

static void reader_begin(const struct sparse_call *call, struct reader *reader, int64_t row)
{
    const struct mla_sparse_args *args = call->args;
    reader->row = row;
    reader->at = 0;
    reader->listed = NULL;
    if (args->dense != 0) {
        const int64_t offset = args->has_q_pos_offset != 0 ? args->q_pos_offset : 0;
        reader->end = mla_layout_dense_keys(args->keys, offset, row);
    } else {
        reader->end = args->topk;
        reader->listed = whole_list(args, row);
    }
}

/* The next entries that are not dropped, as many as there are and fit into a block. */
static int64_t take_listed(const struct sparse_call *call, struct reader *reader, int32_t *taken)
{
    int64_t n = 0;
    for (; reader->at < reader->end && n < call->shape.keys_n; reader->at++) {
        const int32_t key = entry_of(call->args, reader->row, reader->at);
        if (is_reached(call->args, reader->row, key)) {
            taken[n++] = key;
        }
    }
    return n;
}

/*
 * The next block, and how many keys it has: 0 after the last. Blocks are full but for the last one;
 * dropped keys close up before blocks form. `turn` alternates: a block lasts until the one after
 * the next is taken.
 */
static int64_t reader_take(const struct sparse_call *call, struct reader *reader, int turn,
                           struct mla_attend_keys *keys)
{
    const struct mla_sparse_args *args = call->args;
    const int64_t n = min_of(call->shape.keys_n, reader->end - reader->at);
    *keys = (struct mla_attend_keys){.main = args->c_kv, .rope = args->k_pe};
    if (args->dense == 0 && reader->listed == NULL) {
        keys->index = reader->taken[turn];
        return take_listed(call, reader, reader->taken[turn]);
    }
    if (args->dense != 0) {
        keys->main += reader->at * args->latent;
        keys->rope += reader->at * args->rope;
    } else {
        keys->index = reader->listed + reader->at;
    }
    reader->at += n;
    return n;
}

static int64_t row_of(const struct sparse_call *call, int64_t item)
{
    const int64_t turn = item / call->groups_n;
    const int64_t cores = call->args->cores;
    return turn % cores * (call->args->queries / cores) + turn / cores;
}

/* The first block of the item that no worker has claimed yet; how many keys, 0 if there is none. */
static int64_t foresee(struct sparse_call *call, struct reader *reader,
                       struct mla_attend_keys *keys)
{
    const int64_t item = atomic_load_explicit(&call->next_item, memory_order_relaxed);
    if (item >= call->items_n) {
        return 0;
    }
    reader_begin(call, reader, row_of(call, item));
    return reader_take(call, reader, 0, keys);
}

/* One pass of all rows_n heads of a group over the row's keys. */
static void attend_row(struct sparse_call *call, struct mla_desk *desk, mla_attend_block *block,
                       int64_t row, int64_t rows_n)
{
    struct mla_attend_keys keys[2];
    int64_t keys_n[2];
    int64_t visible[MLA_ATTEND_ROWS];
    struct mla_attend_keys following;
    struct reader reader;
    struct reader later;
    int turn = 0;
    reader_begin(call, &reader, row);
    keys_n[0] = reader_take(call, &reader, 0, &keys[0]);
    for (; keys_n[turn] > 0; turn = 1 - turn) {
        const int other = 1 - turn;
        keys_n[other] = reader_take(call, &reader, other, &keys[other]);
        const int64_t later_n = keys_n[other] > 0 ? 0 : foresee(call, &later, &following);
        keys[turn].next = keys_n[other] > 0 ? &keys[other] : later_n > 0 ? &following : NULL;
        keys[turn].next_n = keys_n[other] + later_n;
        for (int64_t r = 0; r < rows_n; r++) {
            visible[r] = keys_n[turn];
        }
        block(&call->shape, desk->scratch, rows_n, visible, &keys[turn], call->args->softmax_scale,
              &desk->state);
    }
}

static void attend_item(struct sparse_call *call, struct mla_desk *desk, int64_t item)
{
    const struct mla_sparse_args *args = call->args;
    const int64_t row = row_of(call, item);
    const int64_t head = item % call->groups_n * call->group_rows;
    const int64_t rows_n = min_of(call->group_rows, args->heads - head);

    for (int64_t r = 0; r < rows_n; r++) {
        const int64_t line = row * args->heads + head + r;
        mla_attend_begin(&call->shape, &desk->state, r);
        call->attend->query(&call->shape, desk->scratch, r, args->q_lift + line * args->latent,
                            args->q_pe + line * args->rope);
    }
    for (int64_t pass = 0; pass < mla_attend_passes(call->attend); pass++) {
        attend_row(call, desk, call->attend->block[pass], row, rows_n);
    }
    for (int64_t r = 0; r < rows_n; r++) {
        const int64_t line = row * args->heads + head + r;
        float *stats = args->stats != NULL ? args->stats + 2 * line : NULL;
        mla_finish_row(call->attend, &call->shape, &desk->state, r, args->softmax_scale,
                       args->out_order, args->out + line * args->latent, stats,
                       stats != NULL ? stats + 1 : NULL);
    }
}

static bool prepare(void *context, int64_t worker)
{
    struct sparse_call *call = context;
    return mla_desk_make(&call->desks[worker], call->attend, &call->shape);
}

static void run(void *context, int64_t worker)
{
    struct sparse_call *call = context;
    for (;;) {
        MLA_PAUSE(MLA_PAUSE_CLAIM);
        const int64_t item = atomic_fetch_add(&call->next_item, 1);
        if (item >= call->items_n) {
            return;
        }
        attend_item(call, &call->desks[worker], item);
    }
}

/* Everything that follows from the arguments alone; returns the number of threads. */
static int64_t plan(struct sparse_call *call, const struct mla_sparse_args *args,
                    const struct mla_attend *attend)
{
    const int64_t least = mla_share_least(attend->rows_n);
    const int64_t threads =
        mla_team_size(args->threads, 1, mla_share_tiles(args->queries, args->heads, least));
    memset(call, 0, sizeof *call);
    call->args = args;
    call->attend = attend;
    call->group_rows = mla_share_rows(args->queries, args->heads, attend->rows_n, threads);
    call->groups_n = mla_share_tiles(1, args->heads, call->group_rows);
    call->items_n = args->queries * call->groups_n;
    call->shape = (struct mla_attend_shape){.main_n = args->latent,
                                            .rope_n = args->rope,
                                            .value_n = args->latent,
                                            .keys_n = attend->block_keys > 0 ? attend->block_keys
                                                                             : MLA_SPARSE_BLOCK,
                                            .sums_n = attend->sums_n,
                                            .rows_n = attend->rows_n};
    atomic_init(&call->next_item, 0);
    return threads;
}

static int32_t run_call(const struct mla_sparse_args *args, const struct mla_attend *attend,
                        char *message, size_t message_bytes)
{
    static const struct mla_team_job job = {.prepare = prepare, .run = run};
    struct sparse_call call;
    int32_t status = mla_validate_sparse(args, message, message_bytes);
    if (status != MLA_OK) {
        return status;
    }
    const int64_t threads = plan(&call, args, attend);

    status = mla_team_init(&call.team, threads);
    if (status != MLA_OK) {
        goto done;
    }
    mla_advise_huge(args->c_kv, args->keys * args->latent * (int64_t)sizeof *args->c_kv);
    mla_advise_huge(args->k_pe, args->keys * args->rope * (int64_t)sizeof *args->k_pe);
    call.desks = calloc((size_t)threads, sizeof *call.desks);
    status = call.desks == NULL ? MLA_ERR_NOMEM : mla_team_run(&call.team, &job, &call);
    for (int64_t i = 0; call.desks != NULL && i < threads; i++) {
        mla_desk_clear(&call.desks[i]);
    }
    free(call.desks);
    mla_team_destroy(&call.team);
done:
    mla_validate_outcome(status, args->threads, threads, call.team.message, message, message_bytes);
    return status;
}

/* Also the checks and the plan compare and print floats: the scale. */
int32_t mla_sparse_run(const struct mla_sparse_args *args, const struct mla_attend *attend,
                       char *message, size_t message_bytes)
{
    fenv_t callers;
    mla_fpenv_enter(&callers);
    const int32_t status = run_call(args, attend, message, message_bytes);
    mla_fpenv_leave(&callers);
    return status;
}
