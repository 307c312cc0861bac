/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_plan.c - what a call is taken to mean, and what faulty kernels keep of earlier calls.
 *
 * A kernel that remembers is wrong only after another call of the right kind in the same process.
 * What is remembered are plain numbers that are legal for every call that may use them, so that no
 * call reads or writes where it must not.
 */
#include "fuzz/faults/plain_ring.h"

#include <pthread.h>
#include <string.h>

/* What a plan is found by. All int64_t: no bytes between the members. */
struct key {
    int64_t fault, ring_size, batch, heads, q_rows, kv_rows, kv_batch, head_dim, head_dim_v;
};

#define KEPT 256

static struct {
    pthread_mutex_t lock;
    struct {
        struct key key;
        struct mla_plain_plan plan;
    } list[KEPT]; /* each in its place; a newcomer takes another's */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t place_of(const struct key *key)
{
    int64_t words[sizeof *key / sizeof(int64_t)];
    uint64_t hash = 0;
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ (uint64_t)words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash % KEPT;
}

/* The plan of the first call with this key that is still known: this one, if none is. */
static struct mla_plain_plan first_plan(const struct key *key, const struct mla_plain_plan *plan)
{
    size_t at = place_of(key);
    pthread_mutex_lock(&kept.lock);
    if (memcmp(&kept.list[at].key, key, sizeof *key) != 0) {
        kept.list[at].key = *key;
        kept.list[at].plan = *plan;
    }
    struct mla_plain_plan first = kept.list[at].plan;
    pthread_mutex_unlock(&kept.lock);
    return first;
}

static struct key shape_of(const struct mla_ring_args *args, struct mla_plain_variant variant)
{
    return (struct key){(int64_t)variant.fault, args->ring_size, args->batch,    args->heads,
                        args->q_rows,           args->kv_rows,   args->kv_batch, args->head_dim,
                        args->head_dim_v};
}

/* Chunks of one shape: the first one's place in the sequence serves for all. */
static void keep_chunk(struct mla_plain_variant variant, const struct mla_plain_plan *first,
                       struct mla_plain_plan *plan)
{
    bool is_other = first->prior != plan->prior || first->logical_n != plan->logical_n;
    if (first->prior >= 0 && plan->prior >= 0 && is_other &&
        mla_plain_has(variant, MLA_FAULT_PLAN_BY_SHAPE)) {
        plan->prior = first->prior;
        plan->logical_n = first->logical_n;
    }
}

static void keep_layout(struct mla_plain_variant variant, const struct mla_plain_plan *first,
                        struct mla_plain_plan *plan)
{
    if (first->is_balanced != plan->is_balanced &&
        mla_plain_has(variant, MLA_FAULT_PLAN_WITHOUT_OPTION)) {
        plan->is_balanced = first->is_balanced;
    }
}

static void keep_active(struct mla_plain_variant variant, const struct mla_plain_plan *first,
                        struct mla_plain_plan *plan)
{
    if ((plan->active & ~first->active) != 0 &&
        mla_plain_has(variant, MLA_FAULT_ACTIVE_MASK_ONCE)) {
        plan->active = first->active;
    }
}

static void keep_slot(const struct mla_ring_args *args, struct mla_plain_variant variant,
                      struct mla_plain_plan *plan)
{
    const struct key any = {.fault = (int64_t)variant.fault};
    if (plan->slot < 0) {
        return;
    }
    int64_t first = first_plan(&any, plan).slot;
    if (first != plan->slot && first < args->kv_batch &&
        mla_plain_has(variant, MLA_FAULT_SLOT_CAPTURED)) {
        plan->slot = first;
    }
}

static void keep_scale(const struct mla_ring_args *args, struct mla_plain_variant variant,
                       struct mla_plain_plan *plan)
{
    const struct key width = {.fault = (int64_t)variant.fault, .head_dim = args->head_dim};
    float first = first_plan(&width, plan).scale;
    if (first != plan->scale && mla_plain_has(variant, MLA_FAULT_SCALE_MEMOISED)) {
        plan->scale = first;
    }
}

/* Shards that hold a valid key. */
static uint32_t active_shards(const struct mla_ring_args *args)
{
    uint32_t active = 0;
    for (int64_t s = 0; s < args->ring_size; s++) {
        int64_t first = s * args->q_rows; /* of the shard's keys, in the layouts that have an end */
        active |= (uint32_t)(args->is_balanced || first < args->logical_n) << s;
    }
    return active;
}

void mla_plain_ring_plan(const struct mla_ring_args *args, struct mla_plain_variant variant,
                         struct mla_plain_plan *plan)
{
    *plan = (struct mla_plain_plan){
        .logical_n = args->logical_n,
        .prior = args->has_prior ? args->kv_actual_isl : -1,
        .slot = args->has_slot ? args->kv_cache_batch_idx : -1,
        .is_balanced = args->is_balanced,
        .scale = args->has_scale ? args->scale : mla_plain_default_scale(args, variant),
        .active = active_shards(args),
    };
    const struct key shape = shape_of(args, variant);
    struct mla_plain_plan first;
    switch (variant.fault) {
    case MLA_FAULT_PLAN_BY_SHAPE:
        first = first_plan(&shape, plan);
        keep_chunk(variant, &first, plan);
        break;
    case MLA_FAULT_PLAN_WITHOUT_OPTION:
        first = first_plan(&shape, plan);
        keep_layout(variant, &first, plan);
        break;
    case MLA_FAULT_ACTIVE_MASK_ONCE:
        first = first_plan(&shape, plan);
        keep_active(variant, &first, plan);
        break;
    case MLA_FAULT_SLOT_CAPTURED:
        keep_slot(args, variant, plan);
        break;
    case MLA_FAULT_SCALE_MEMOISED:
        keep_scale(args, variant, plan);
        break;
    default:
        plan->active = UINT32_MAX; /* who looks at every shard sees nothing in those without keys */
        break;
    }
}
