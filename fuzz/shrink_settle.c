/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink_settle.c - after a step changed one length: those that follow from it.
 *
 * Unlike mla_case_fix this bounds no size, so that a production-sized case can be shrunk step by step.
 * What is still not legal afterwards is no proposal.
 */
#include <string.h>

#include "fuzz/shrink_steps.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static void settle_length(struct mla_ring_args *r)
{
    int64_t all = r->ring_size * r->kv_rows, slab = r->ring_size * r->q_rows;
    r->logical_n = r->is_balanced ? all : clamp(r->logical_n, 1, all);
    if (r->has_prior) {
        int64_t first = clamp(r->kv_actual_isl, 0, all - MLA_TILE), end = first + slab;
        r->kv_actual_isl = first;
        r->logical_n =
            clamp(round_up(r->logical_n, MLA_TILE), first + MLA_TILE, end < all ? end : all);
    } else if (r->kv_rows > r->q_rows) {
        r->logical_n = clamp(r->logical_n, slab - MLA_TILE + 1, all);
    }
}

static void settle_slot(struct mla_ring_args *r)
{
    if (!r->has_slot) {
        r->kv_batch = r->gathered_batch = r->batch;
        r->kv_cache_batch_idx = 0;
    } else if (r->gathered_batch != 1) {
        r->gathered_batch = r->kv_batch;
    }
}

static void settle_ring(const struct mla_ring_args *a, struct mla_ring_args *b)
{
    settle_length(b);
    settle_slot(b);
    if (b->gathered_rows == a->gathered_rows)
        b->gathered_rows += b->ring_size * b->kv_rows - a->ring_size * a->kv_rows;
}

static void settle_sparse(struct mla_sparse_args *s)
{
    s->cores = clamp(s->cores, 1, s->queries);
    if (s->queries % s->cores != 0)
        s->cores = 1;
}

/* ---- elements that were named ---- */

#define DIMS 4

/* The extents of an input tensor; 1 for those it has not. false: no such tensor. */
static bool extents(const struct mla_case *test, const char *name, int64_t dims[DIMS])
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    const struct {
        const char *name;
        int64_t dims[DIMS];
    } tensors[] = {
        {"q", {r->batch, r->heads, r->q_rows, r->head_dim}},
        {"kv", {1, r->kv_batch, r->kv_rows, r->head_dim}},
        {"q_lift", {1, s->queries, s->heads, MLA_LATENT}},
        {"q_pe", {1, s->queries, s->heads, s->rope}},
        {"c_kv", {1, 1, s->keys, MLA_LATENT}},
        {"k_pe", {1, 1, s->keys, s->rope}},
        {"topk_indices", {1, 1, s->queries, s->topk}},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        if (strcmp(tensors[i].name, name) == 0) {
            memcpy(dims, tensors[i].dims, sizeof tensors[i].dims);
            return true;
        }
    return false;
}

/* The same coordinates in the other shape; beyond its end the last. */
static int64_t moved(int64_t at, const int64_t from[DIMS], const int64_t to[DIMS])
{
    int64_t place[DIMS], result = 0;
    for (int d = DIMS - 1; d >= 0; d--) {
        place[d] = at % from[d];
        at /= from[d];
    }
    for (int d = 0; d < DIMS; d++)
        result = result * to[d] + (place[d] < to[d] ? place[d] : to[d] - 1);
    return result;
}

static void settle_changes(const struct mla_case *from, struct mla_case *to)
{
    int64_t a[DIMS], b[DIMS];
    for (size_t i = 0; i < to->put_n; i++) {
        struct mla_override *put = &to->put[i];
        bool tiled = strcmp(put->tensor, "topk_indices") == 0 && to->sparse.topk_tiled;
        if (!tiled && extents(from, put->tensor, a) && extents(to, put->tensor, b))
            put->at = moved(put->at, a, b);
        if (to->op == MLA_OP_RING)
            put->rank = clamp(put->rank, 0, to->ring.ring_size - 1);
    }
    for (size_t i = 0; i < to->set_n; i++)
        if (extents(from, to->set[i].field, a) && extents(to, to->set[i].field, b))
            to->set[i].at = moved(to->set[i].at, a, b);
}

void mla_shrink_settle(const struct mla_case *from, struct mla_case *to)
{
    if (to->op == MLA_OP_RING)
        settle_ring(&from->ring, &to->ring);
    else
        settle_sparse(&to->sparse);
    settle_changes(from, to);
}
