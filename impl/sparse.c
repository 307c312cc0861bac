/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse.c - cores, work items and key lists of the sparse operation.
 *
 * Query rows are sharded over `cores`; core i owns rows [i*S/n, (i+1)*S/n). The cores advance side
 * by side: work item t is row t div n of core t mod n, cut into groups of heads, and threads take
 * items from one counter. An item is computed by one thread from start to end, so which thread
 * takes it, and when, changes nothing.
 */
#include "impl/sparse.h"

#include "impl/finish.h"
#include "impl/fpenv.h"
#include "impl/layout.h"
#include "impl/scratch.h"
#include "impl/team.h"
#include "impl/validate.h"

#include <stdatomic.h>
#include <string.h>

/* One worker's memory: the states of a group of heads, and the kernel's scratch. */
struct desk {
    void *scratch;
    float *out; /* [rows_n][latent] */
    float *sum; /* [rows_n][sums_n] */
    float max[MLA_ATTEND_ROWS];
};

struct sparse_call {
    const struct mla_sparse_args *args;
    const struct mla_attend *attend;
    struct mla_attend_shape shape;
    struct mla_team team;
    int64_t groups_n; /* groups of heads in a row */
    int64_t items_n;
    atomic_llong next_item;
    struct desk *desks; /* per worker */
};

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A run of keys for all rows_n heads of the group. */
static void attend_keys(const struct sparse_call *call, struct desk *desk, mla_attend_block *block,
                        int64_t rows_n, const struct mla_attend_keys *keys, int64_t keys_n)
{
    const struct mla_attend_state state = {.max = desk->max, .sum = desk->sum, .out = desk->out};
    int64_t visible[MLA_ATTEND_ROWS];
    for (int64_t r = 0; r < rows_n; r++) {
        visible[r] = keys_n;
    }
    block(&call->shape, desk->scratch, rows_n, visible, keys, call->args->softmax_scale, &state);
}

/* Keys 0 .. n-1 of the cache, in order. */
static void attend_dense(const struct sparse_call *call, struct desk *desk, mla_attend_block *block,
                         int64_t row, int64_t rows_n)
{
    const struct mla_sparse_args *args = call->args;
    const int64_t offset = args->has_q_pos_offset != 0 ? args->q_pos_offset : 0;
    const int64_t keys_n = mla_layout_dense_keys(args->keys, offset, row);
    for (int64_t first = 0; first < keys_n; first += call->shape.keys_n) {
        const struct mla_attend_keys keys = {.main = args->c_kv + first * args->latent,
                                             .rope = args->k_pe + first * args->rope};
        attend_keys(call, desk, block, rows_n, &keys, min_of(call->shape.keys_n, keys_n - first));
    }
}

/* The listed keys in listed order; those beyond q_pos_offset + row close up before blocks form. */
static void attend_listed(const struct sparse_call *call, struct desk *desk,
                          mla_attend_block *block, int64_t row, int64_t rows_n)
{
    const struct mla_sparse_args *args = call->args;
    int32_t list[MLA_ATTEND_KEYS];
    const struct mla_attend_keys keys = {.main = args->c_kv, .rope = args->k_pe, .index = list};
    int64_t list_n = 0;
    for (int64_t j = 0; j < args->topk; j++) {
        const int32_t key =
            args->topk_indices[mla_layout_topk_index(args->topk_tiled != 0, args->topk, row, j)];
        if (args->has_q_pos_offset != 0 &&
            !mla_layout_index_reached(key, args->q_pos_offset, row)) {
            continue;
        }
        list[list_n++] = key;
        if (list_n == call->shape.keys_n) {
            attend_keys(call, desk, block, rows_n, &keys, list_n);
            list_n = 0;
        }
    }
    if (list_n > 0) {
        attend_keys(call, desk, block, rows_n, &keys, list_n);
    }
}

static void attend_item(const struct sparse_call *call, struct desk *desk, int64_t item)
{
    const struct mla_sparse_args *args = call->args;
    const struct mla_attend_state state = {.max = desk->max, .sum = desk->sum, .out = desk->out};
    const int64_t turn = item / call->groups_n;
    const int64_t core = turn % args->cores;
    const int64_t row = core * (args->queries / args->cores) + turn / args->cores;
    const int64_t head = item % call->groups_n * call->shape.rows_n;
    const int64_t rows_n = min_of(call->shape.rows_n, args->heads - head);

    for (int64_t r = 0; r < rows_n; r++) {
        const int64_t line = row * args->heads + head + r;
        mla_attend_begin(&call->shape, &state, r);
        call->attend->query(&call->shape, desk->scratch, r, args->q_lift + line * args->latent,
                            args->q_pe + line * args->rope);
    }
    for (int64_t pass = 0; pass < mla_attend_passes(call->attend); pass++) {
        if (args->dense != 0) {
            attend_dense(call, desk, call->attend->block[pass], row, rows_n);
        } else {
            attend_listed(call, desk, call->attend->block[pass], row, rows_n);
        }
    }
    for (int64_t r = 0; r < rows_n; r++) {
        const int64_t line = row * args->heads + head + r;
        float *stats = args->stats != NULL ? args->stats + 2 * line : NULL;
        mla_finish_row(call->attend, &call->shape, &state, r, args->softmax_scale, args->out_order,
                       args->out + line * args->latent, stats, stats != NULL ? stats + 1 : NULL);
    }
}

static bool prepare(void *context, int64_t worker)
{
    struct sparse_call *call = context;
    struct desk *desk = &call->desks[worker];
    const size_t bytes = call->attend->scratch_bytes(&call->shape);
    desk->scratch = bytes == 0 ? NULL : mla_scratch_alloc(1, bytes);
    desk->out = mla_scratch_alloc(call->shape.rows_n * call->shape.value_n, sizeof *desk->out);
    desk->sum = mla_scratch_alloc(call->shape.rows_n * call->shape.sums_n, sizeof *desk->sum);
    return desk->scratch != NULL && desk->out != NULL && desk->sum != NULL;
}

static void run(void *context, int64_t worker)
{
    struct sparse_call *call = context;
    for (;;) {
        const int64_t item = atomic_fetch_add(&call->next_item, 1);
        if (item >= call->items_n) {
            return;
        }
        attend_item(call, &call->desks[worker], item);
    }
}

static void plan(struct sparse_call *call, const struct mla_sparse_args *args,
                 const struct mla_attend *attend)
{
    memset(call, 0, sizeof *call);
    call->args = args;
    call->attend = attend;
    call->groups_n = (args->heads - 1) / attend->rows_n + 1;
    call->items_n = args->queries * call->groups_n;
    call->shape = (struct mla_attend_shape){.main_n = args->latent,
                                            .rope_n = args->rope,
                                            .value_n = args->latent,
                                            .keys_n = attend->block_keys > 0 ? attend->block_keys
                                                                             : MLA_SPARSE_BLOCK,
                                            .sums_n = attend->sums_n,
                                            .rows_n = attend->rows_n};
    atomic_init(&call->next_item, 0);
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
    plan(&call, args, attend);
    const int64_t threads = mla_team_size(args->threads, 1, call.items_n);

    status = mla_team_init(&call.team, threads);
    if (status != MLA_OK) {
        goto done;
    }
    call.desks = calloc((size_t)threads, sizeof *call.desks);
    status = call.desks == NULL ? MLA_ERR_NOMEM : mla_team_run(&call.team, &job, &call);
    for (int64_t i = 0; call.desks != NULL && i < threads; i++) {
        free(call.desks[i].sum);
        free(call.desks[i].out);
        free(call.desks[i].scratch);
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
