/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c - allocation, wiring, patterns and overrides. What the numbers are: fill.c.
 */
#include "fuzz/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/arguments.h"
#include "fuzz/data_file.h"
#include "fuzz/family.h"
#include "fuzz/fill.h"
#include "fuzz/indices.h"

uint16_t mla_tensors_pattern16(const struct mla_tensors *tensors)
{
    return tensors->dirt % 2 == 0 ? 0xffa5 : 0x7fb3;
}

uint32_t mla_tensors_pattern32(const struct mla_tensors *tensors)
{
    return (uint32_t)mla_tensors_pattern16(tensors) * 0x10001u;
}

static bool is_cache(const char *name)
{
    return strcmp(name, "kv") == 0 || strcmp(name, "c_kv") == 0 || strcmp(name, "k_pe") == 0;
}

static bool make_guard(const struct mla_tensors *t, struct mla_tensor *tensor)
{
    uint64_t place =
        mla_number_at(mla_stream_key(t->test.seed, MLA_STREAM_PLACE), t->n, t->dirt, 0);
    size_t bytes = (size_t)tensor->elements_n * tensor->element_bytes;
    if (t->plain)
        return mla_guard_make_plain(&tensor->guard, bytes);
    enum mla_guard_place where = (enum mla_guard_place)(place % MLA_GUARD_PLACES_N);
    if (is_cache(tensor->name) && mla_case_is_thin(&t->test))
        return mla_guard_make_thin(&tensor->guard, bytes, where);
    return mla_guard_make(&tensor->guard, bytes, tensor->element_bytes, where);
}

static void *add(struct mla_tensors *t, const char *name, int64_t rank, enum mla_tensor_role role,
                 int64_t elements_n, size_t element_bytes)
{
    struct mla_tensor *tensor = &t->list[t->n];
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    tensor->rank = rank;
    tensor->role = role;
    tensor->elements_n = elements_n;
    tensor->element_bytes = element_bytes;
    if (!make_guard(t, tensor))
        return NULL;
    t->n++;
    return tensor->guard.data;
}

static bool allocate_ring(struct mla_tensors *t)
{
    struct mla_ring_args *a = &t->ring;
    int64_t q_n = a->batch * a->heads * a->q_rows;
    bool ok = true;
    for (int64_t d = 0; d < a->ring_size && ok; d++) {
        t->q[d] = add(t, "q", d, MLA_TENSOR_INPUT, q_n * a->head_dim, 2);
        t->kv[d] = t->q[d] == NULL ? NULL
                                   : add(t, "kv", d, MLA_TENSOR_INPUT,
                                         a->kv_batch * a->kv_rows * a->head_dim, 2);
        t->gathered[d] = t->kv[d] == NULL
                             ? NULL
                             : add(t, "gathered", d, MLA_TENSOR_SCRATCH,
                                   a->gathered_batch * a->gathered_rows * a->head_dim, 2);
        t->out[d] = t->gathered[d] == NULL
                        ? NULL
                        : add(t, "out", d, MLA_TENSOR_OUTPUT, q_n * a->head_dim_v, 2);
        ok = t->out[d] != NULL;
        if (ok && t->test.stats) {
            t->stats[d] = add(t, "stats", d, MLA_TENSOR_OUTPUT, 2 * q_n, 4);
            ok = t->stats[d] != NULL;
        }
    }
    a->q = t->q;
    a->kv = t->kv;
    a->gathered = t->gathered;
    a->out = t->out;
    a->stats = t->test.stats ? t->stats : NULL;
    return ok;
}

static bool allocate_sparse(struct mla_tensors *t)
{
    struct mla_sparse_args *a = &t->sparse;
    int64_t rows = a->queries * a->heads;
    a->q_lift = add(t, "q_lift", 0, MLA_TENSOR_INPUT, rows * a->latent, 2);
    a->q_pe = a->q_lift == NULL ? NULL : add(t, "q_pe", 0, MLA_TENSOR_INPUT, rows * a->rope, 2);
    a->c_kv = a->q_pe == NULL ? NULL : add(t, "c_kv", 0, MLA_TENSOR_INPUT, a->keys * a->latent, 2);
    a->k_pe = a->c_kv == NULL ? NULL : add(t, "k_pe", 0, MLA_TENSOR_INPUT, a->keys * a->rope, 2);
    if (a->k_pe == NULL)
        return false;
    if (!a->dense) {
        a->topk_indices = add(t, "topk_indices", 0, MLA_TENSOR_INPUT, mla_indices_elements(a), 4);
        if (a->topk_indices == NULL)
            return false;
    }
    a->out = add(t, "out", 0, MLA_TENSOR_OUTPUT, rows * a->latent, 2);
    if (a->out != NULL && t->test.stats)
        a->stats = add(t, "stats", 0, MLA_TENSOR_OUTPUT, rows * 2, 4);
    return a->out != NULL && (!t->test.stats || a->stats != NULL);
}

static void pattern_fill(struct mla_tensors *t, struct mla_tensor *tensor)
{
    /* Both patterns repeat every two bytes. */
    uint16_t *words = (uint16_t *)(void *)tensor->guard.data, word = mla_tensors_pattern16(t);
    for (size_t i = 0; i < tensor->guard.bytes / 2; i++)
        words[i] = word;
}

void mla_tensors_reset(struct mla_tensors *tensors)
{
    for (size_t i = 0; i < tensors->n; i++) {
        struct mla_tensor *tensor = &tensors->list[i];
        if (tensor->role != MLA_TENSOR_INPUT)
            pattern_fill(tensors, tensor);
    }
}

struct mla_tensor *mla_tensors_find(struct mla_tensors *tensors, const char *name, int64_t rank)
{
    for (size_t i = 0; i < tensors->n; i++)
        if (tensors->list[i].rank == rank && strcmp(tensors->list[i].name, name) == 0)
            return &tensors->list[i];
    return NULL;
}

uint16_t *mla_tensors_bf16(struct mla_tensors *tensors, const char *name, int64_t rank)
{
    return (uint16_t *)(void *)mla_tensors_find(tensors, name, rank)->guard.data;
}

void mla_tensors_set_made(struct mla_tensors *tensors, struct mla_extent *extents, size_t n)
{
    tensors->made = extents;
    tensors->made_n = n;
    for (size_t i = 0; i < tensors->n; i++) {
        struct mla_tensor *tensor = &tensors->list[i];
        if (!is_cache(tensor->name))
            continue;
        tensor->made = extents;
        tensor->made_n = n;
        tensor->row_elements = tensors->test.op == MLA_OP_RING     ? tensors->ring.head_dim
                               : strcmp(tensor->name, "c_kv") == 0 ? tensors->sparse.latent
                                                                   : tensors->sparse.rope;
    }
}

static bool override_one(struct mla_tensors *t, const struct mla_override *o,
                         char error[MLA_CASE_ERROR_MAX])
{
    struct mla_tensor *tensor = mla_tensors_find(t, o->tensor, o->rank);
    if (tensor == NULL || tensor->role != MLA_TENSOR_INPUT) {
        snprintf(error, MLA_CASE_ERROR_MAX, "put = %s.%" PRId64 ": no such input tensor", o->tensor,
                 o->rank);
        return false;
    }
    if (o->at < 0 || o->at >= tensor->elements_n) {
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "put = %s.%" PRId64 "@%" PRId64 ": element must lie in 0 .. %" PRId64, o->tensor,
                 o->rank, o->at, tensor->elements_n - 1);
        return false;
    }
    if (tensor->element_bytes == 2 && o->bits > 0xffff) {
        snprintf(error, MLA_CASE_ERROR_MAX, "put = %s: %" PRIx32 " is no bf16 pattern (0 .. ffff)",
                 o->tensor, o->bits);
        return false;
    }
    unsigned char *at = tensor->guard.data + (size_t)o->at * tensor->element_bytes;
    if (tensor->element_bytes == 2)
        memcpy(at, &(uint16_t){(uint16_t)o->bits}, 2);
    else
        memcpy(at, &o->bits, 4);
    return true;
}

/* Break a rule on purpose: in the arguments, or by one number of the index list. */
static bool violate(struct mla_tensors *t, const struct mla_violation *v,
                    char error[MLA_CASE_ERROR_MAX])
{
    bool is_ring = t->test.op == MLA_OP_RING;
    struct mla_tensor *topk = mla_tensors_find(t, "topk_indices", 0);
    bool ok;
    if (!is_ring && strcmp(v->field, "topk_indices") == 0 && strcmp(v->value, "null") != 0) {
        ok = topk != NULL && v->at >= 0 && v->at < t->test.sparse.queries * t->test.sparse.topk;
        if (ok) {
            int64_t at = mla_indices_place(&t->test.sparse, v->at / t->test.sparse.topk,
                                           v->at % t->test.sparse.topk);
            int32_t value = (int32_t)strtoll(v->value, NULL, 10);
            memcpy(topk->guard.data + (size_t)at * sizeof value, &value, sizeof value);
        }
    } else {
        ok = mla_arguments_set((enum mla_op)t->test.op,
                               is_ring ? (void *)&t->ring : (void *)&t->sparse, v);
    }
    if (!ok)
        snprintf(error, MLA_CASE_ERROR_MAX, "set = %s@%" PRId64 ":%s: no such field or value",
                 v->field, v->at, v->value);
    return ok;
}

/* Allocated and wired, not filled. NULL: no memory. */
static struct mla_tensors *allocate(const struct mla_case *test, uint32_t dirt, bool plain)
{
    struct mla_tensors *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->test = *test;
    t->dirt = dirt;
    t->plain = plain;
    t->ring = mla_arguments_ring(test);
    t->sparse = mla_arguments_sparse(test);
    if (test->op == MLA_OP_RING ? allocate_ring(t) : allocate_sparse(t))
        return t;
    mla_tensors_free(t);
    return NULL;
}

static int32_t no_memory(const struct mla_case *test, char error[MLA_CASE_ERROR_MAX])
{
    snprintf(error, MLA_CASE_ERROR_MAX, "out of memory: %" PRId64 " bytes of tensors",
             mla_case_bytes(test));
    return MLA_ERR_NOMEM;
}

static int32_t fill(struct mla_tensors *t, char error[MLA_CASE_ERROR_MAX])
{
    bool is_filled = t->test.op == MLA_OP_RING ? mla_fill_ring(t) : mla_fill_sparse(t);
    return is_filled ? MLA_OK : no_memory(&t->test, error);
}

/* The case's own changes: elements replaced, rules broken. false: error says which cannot be. */
static bool change(struct mla_tensors *t, char error[MLA_CASE_ERROR_MAX])
{
    for (size_t i = 0; i < t->test.put_n; i++)
        if (!override_one(t, &t->test.put[i], error))
            return false;
    for (size_t i = 0; i < t->test.set_n; i++)
        if (!violate(t, &t->test.set[i], error))
            return false;
    return true;
}

/* The inputs are as they shall be: remember them, and make the rest ready. */
static void finish(struct mla_tensors *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].role == MLA_TENSOR_INPUT)
            t->list[i].check = mla_tensor_check(&t->list[i]);
    mla_tensors_reset(t);
}

static int32_t make(const struct mla_case *test, uint32_t dirt, bool plain,
                    struct mla_tensors **tensors, char error[MLA_CASE_ERROR_MAX])
{
    struct mla_tensors *t = allocate(test, dirt, plain);
    *tensors = NULL;
    if (t == NULL)
        return no_memory(test, error);
    int32_t status = test->data[0] != '\0' ? mla_data_fill(t, error) : fill(t, error);
    if (status != MLA_OK) {
        mla_tensors_free(t);
        return status;
    }
    mla_fill_cut(t);
    if (!change(t, error)) {
        mla_tensors_free(t);
        return MLA_ERR_PARAM;
    }
    finish(t);
    *tensors = t;
    return MLA_OK;
}

int32_t mla_tensors_make(const struct mla_case *test, uint32_t dirt, struct mla_tensors **tensors,
                         char error[MLA_CASE_ERROR_MAX])
{
    return make(test, dirt, false, tensors, error);
}

int32_t mla_tensors_make_plain(const struct mla_case *test, struct mla_tensors **tensors,
                               char error[MLA_CASE_ERROR_MAX])
{
    return make(test, 0, true, tensors, error);
}

static bool copy_made(const struct mla_tensors *from, struct mla_tensors *to)
{
    if (from->made == NULL)
        return true;
    struct mla_extent *extents = malloc(from->made_n * sizeof *extents);
    if (extents == NULL)
        return false;
    memcpy(extents, from->made, from->made_n * sizeof *extents);
    mla_tensors_set_made(to, extents, from->made_n);
    return true;
}

int32_t mla_tensors_copy(const struct mla_tensors *from, const struct mla_case *test, uint32_t dirt,
                         struct mla_tensors **tensors, char error[MLA_CASE_ERROR_MAX])
{
    struct mla_tensors *t = allocate(test, dirt, false);
    *tensors = NULL;
    if (t == NULL)
        return no_memory(test, error);
    if (!copy_made(from, t)) {
        mla_tensors_free(t);
        return no_memory(test, error);
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].role == MLA_TENSOR_INPUT) {
            mla_tensor_copy(&from->list[i], &t->list[i]);
            t->list[i].check = from->list[i].check;
        }
    mla_tensors_reset(t);
    *tensors = t;
    return MLA_OK;
}

int32_t mla_tensors_arrange(const struct mla_tensors *from, const struct mla_case *test,
                            bool (*arrange)(const struct mla_tensors *from, struct mla_tensors *to),
                            struct mla_tensors **tensors, char error[MLA_CASE_ERROR_MAX])
{
    struct mla_tensors *t = allocate(test, 0, false);
    *tensors = NULL;
    if (t == NULL || !arrange(from, t)) {
        mla_tensors_free(t);
        return no_memory(test, error);
    }
    finish(t);
    *tensors = t;
    return MLA_OK;
}

void mla_tensors_free(struct mla_tensors *tensors)
{
    if (tensors == NULL)
        return;
    for (size_t i = 0; i < tensors->n; i++)
        mla_guard_free(&tensors->list[i].guard);
    for (int64_t d = 0; d < MLA_RING_SIZE_MAX; d++) {
        free(tensors->wide[d]);
        free(tensors->lse[d]);
    }
    free(tensors->made);
    free(tensors);
}
