/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.c - the inputs of a case as a file, and a file held against them.
 */
#include "fuzz/exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/arguments.h"
#include "fuzz/case_fields.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are little-endian, as tensors are");

#define TEXTS_MAX (MLA_TENSORS_MAX + 64)

void mla_exchange_name(const struct mla_case *test, const char *base, int64_t rank,
                       char name[MLA_EXCHANGE_NAME_MAX])
{
    if (test->op == MLA_OP_RING)
        snprintf(name, MLA_EXCHANGE_NAME_MAX, "%s.%" PRId64, base, rank);
    else
        snprintf(name, MLA_EXCHANGE_NAME_MAX, "%s", base);
}

static int64_t axes(int64_t shape[4], int64_t n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    shape[0] = a;
    shape[1] = b;
    shape[2] = c;
    shape[3] = d;
    return n;
}

int64_t mla_exchange_shape(const struct mla_case *test, const char *name, int64_t shape[4])
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    if (strcmp(name, "q") == 0)
        return axes(shape, 4, r->batch, r->heads, r->q_rows, r->head_dim);
    if (strcmp(name, "kv") == 0)
        return axes(shape, 4, r->kv_batch, 1, r->kv_rows, r->head_dim);
    if (strcmp(name, "gathered") == 0)
        return axes(shape, 4, r->gathered_batch, 1, r->gathered_rows, r->head_dim);
    if (test->op == MLA_OP_RING && strcmp(name, "out") == 0)
        return axes(shape, 4, r->batch, r->heads, r->q_rows, r->head_dim_v);
    if (test->op == MLA_OP_RING)
        return axes(shape, 4, r->batch, r->heads, 2 * r->q_rows, 1);
    if (strcmp(name, "q_lift") == 0)
        return axes(shape, 4, 1, s->queries, s->heads, MLA_LATENT);
    if (strcmp(name, "q_pe") == 0)
        return axes(shape, 4, 1, s->queries, s->heads, s->rope);
    if (strcmp(name, "c_kv") == 0)
        return axes(shape, 3, 1, s->keys, MLA_LATENT, 0);
    if (strcmp(name, "k_pe") == 0)
        return axes(shape, 3, 1, s->keys, s->rope, 0);
    if (strcmp(name, "topk_indices") == 0 && s->topk_tiled)
        return axes(shape, 4, (s->queries + 127) / 128, 16, 128, s->topk / 16);
    if (strcmp(name, "topk_indices") == 0)
        return axes(shape, 3, 1, s->queries, s->topk, 0);
    if (strcmp(name, "out") == 0)
        return axes(shape, 3, 1, s->queries, s->heads * MLA_LATENT, 0);
    return axes(shape, 4, 1, s->queries, s->heads, 2);
}

void mla_exchange_shape_text(const int64_t *shape, int64_t n, char text[MLA_EXCHANGE_SHAPE_MAX])
{
    int at = snprintf(text, MLA_EXCHANGE_SHAPE_MAX, "[");
    for (int64_t i = 0; i < n && at < MLA_EXCHANGE_SHAPE_MAX - 30; i++)
        at += snprintf(text + at, MLA_EXCHANGE_SHAPE_MAX - (size_t)at, "%s%" PRId64,
                       i == 0 ? "" : ", ", shape[i]);
    snprintf(text + at, MLA_EXCHANGE_SHAPE_MAX - (size_t)at, "]");
}

void mla_exchange_list(const struct mla_safetensors *file, char text[MLA_EXCHANGE_LIST_MAX])
{
    char shape[MLA_EXCHANGE_SHAPE_MAX], entry[MLA_EXCHANGE_LIST_MAX];
    size_t at = 0;
    snprintf(text, MLA_EXCHANGE_LIST_MAX, "no tensors");
    for (size_t i = 0; i < file->n; i++) {
        const struct mla_safetensor *t = &file->list[i];
        mla_exchange_shape_text(t->shape, t->axes_n, shape);
        int n = snprintf(entry, sizeof entry, "%s'%.40s' %s %.80s", i == 0 ? "" : ", ", t->name,
                         t->dtype, shape);
        if (at + (size_t)n > MLA_EXCHANGE_LIST_MAX - 40) {
            snprintf(text + at, MLA_EXCHANGE_LIST_MAX - at, ", %zu more", file->n - i);
            return;
        }
        memcpy(text + at, entry, (size_t)n + 1);
        at += (size_t)n;
    }
}

/* ---- export ---- */

/* The file's contents while they are put together. */
struct writer {
    struct mla_safetensors file;
    struct mla_safetensor tensors[MLA_TENSORS_MAX];
    char names[MLA_TENSORS_MAX][MLA_EXCHANGE_NAME_MAX];
    struct mla_safetensors_text texts[TEXTS_MAX];
};

/* Both are copied. false: no memory. */
static bool add_text(struct writer *w, const char *key, const char *value)
{
    struct mla_safetensors_text *text = &w->texts[w->file.texts_n++];
    text->key = strdup(key);
    text->value = strdup(value);
    return text->key != NULL && text->value != NULL;
}

static bool add_argument(struct writer *w, const struct mla_tensors *t, const void *args,
                         const struct mla_argument *argument)
{
    char value[64];
    const char *at = (const char *)args + argument->offset;
    float scale = strcmp(argument->name, "scale") == 0 ? mla_case_scale(&t->test) : 0;
    switch (argument->kind) {
    case MLA_ARGUMENT_I64:
        snprintf(value, sizeof value, "%" PRId64, *(const int64_t *)(const void *)at);
        break;
    case MLA_ARGUMENT_I32:
        snprintf(value, sizeof value, "%" PRId32, *(const int32_t *)(const void *)at);
        break;
    case MLA_ARGUMENT_FLOAT:
        snprintf(value, sizeof value, "%a",
                 (double)(scale != 0 ? scale : *(const float *)(const void *)at));
        break;
    default: /* pointers, and the size of a structure in memory */
        return true;
    }
    return add_text(w, argument->name, value);
}

static bool add_arguments(struct writer *w, const struct mla_tensors *t)
{
    size_t n;
    bool is_ring = t->test.op == MLA_OP_RING, ok = true;
    const struct mla_argument *arguments = mla_arguments((enum mla_op)t->test.op, &n);
    const void *args = is_ring ? (const void *)&t->ring : (const void *)&t->sparse;
    for (size_t i = 0; i < n && ok; i++)
        ok = add_argument(w, t, args, &arguments[i]);
    return ok;
}

static bool add_head(struct writer *w, const struct mla_case *test, const char *tool)
{
    char line[MLA_CASE_LINE_MAX], id[MLA_CASE_ID_BYTES];
    mla_case_format(test, line);
    mla_case_id(test, id);
    return add_text(w, "format", MLA_EXCHANGE_FORMAT) && add_text(w, "tool", tool) &&
           add_text(w, "op", mla_case_op_name(test->op)) && add_text(w, "case", line) &&
           add_text(w, "case_id", id);
}

static bool add_tensor(struct writer *w, const struct mla_tensors *t,
                       const struct mla_tensor *tensor)
{
    struct mla_safetensor *to = &w->tensors[w->file.n];
    char key[MLA_EXCHANGE_NAME_MAX + 16];
    mla_exchange_name(&t->test, tensor->name, tensor->rank, w->names[w->file.n]);
    to->name = w->names[w->file.n++];
    to->dtype = tensor->element_bytes == 2 ? "BF16" : "I32";
    to->axes_n = mla_exchange_shape(&t->test, tensor->name, to->shape);
    to->data = tensor->guard.data;
    to->bytes = tensor->guard.bytes;
    if (tensor->element_bytes != 2) /* a list is no rows of data */
        return true;
    snprintf(key, sizeof key, "valid_rows.%s", to->name);
    char *rows = mla_exchange_valid_rows(t, tensor);
    bool ok = rows != NULL && add_text(w, key, rows);
    free(rows);
    return ok;
}

static int32_t refuse(char error[MLA_EXCHANGE_ERROR_MAX], const char *why)
{
    snprintf(error, MLA_EXCHANGE_ERROR_MAX, "%s", why);
    return MLA_ERR_PARAM;
}

int32_t mla_exchange_export(const struct mla_tensors *t, const char *tool, const char *path,
                            char error[MLA_EXCHANGE_ERROR_MAX])
{
    if (t->test.set_n > 0)
        return refuse(error, "the case is a call that must be refused: it has no results");
    if (mla_case_is_thin(&t->test))
        return refuse(error, "the case has a cache of more than 2^31 elements, most of them never "
                             "made: it is no data to hand out");
    struct writer *w = calloc(1, sizeof *w);
    int32_t status = MLA_ERR_NOMEM;
    snprintf(error, MLA_EXCHANGE_ERROR_MAX, "out of memory");
    if (w == NULL)
        return status;
    w->file.list = w->tensors;
    w->file.texts = w->texts;
    bool ok = add_head(w, &t->test, tool) && add_arguments(w, t);
    for (size_t i = 0; i < t->n && ok; i++)
        if (t->list[i].role == MLA_TENSOR_INPUT)
            ok = add_tensor(w, t, &t->list[i]);
    if (ok)
        status = mla_safetensors_write(path, &w->file, error, MLA_EXCHANGE_ERROR_MAX);
    for (size_t i = 0; i < w->file.texts_n; i++) {
        free(w->texts[i].key);
        free(w->texts[i].value);
    }
    free(w);
    return status;
}

/* ---- comparison ---- */

/* The inputs of a case, of each rank; the list of a sparse call is missing if that is dense. */
static const char *const ring_inputs[] = {"q", "kv"};
static const char *const sparse_inputs[] = {"q_lift", "q_pe", "c_kv", "k_pe", "topk_indices"};

static const char *const *inputs_of(const struct mla_case *test, size_t *n)
{
    bool is_ring = test->op == MLA_OP_RING;
    *n = is_ring ? 2 : test->sparse.dense ? 4 : 5;
    return is_ring ? ring_inputs : sparse_inputs;
}

static const char *mismatch(const struct mla_case *test, const struct mla_safetensors *file,
                            const char *base, int64_t rank, char error[MLA_EXCHANGE_ERROR_MAX])
{
    char name[MLA_EXCHANGE_NAME_MAX], due[MLA_EXCHANGE_SHAPE_MAX], got[MLA_EXCHANGE_SHAPE_MAX],
        there[MLA_EXCHANGE_LIST_MAX];
    int64_t shape[4], axes_n = mla_exchange_shape(test, base, shape);
    const char *dtype = strcmp(base, "topk_indices") == 0 ? "I32" : "BF16";
    mla_exchange_name(test, base, rank, name);
    mla_exchange_shape_text(shape, axes_n, due);
    const struct mla_safetensor *t = mla_safetensors_find(file, name);
    if (t == NULL) {
        mla_exchange_list(file, there);
        snprintf(error, MLA_EXCHANGE_ERROR_MAX, "no tensor '%s' %s %s; the file has %s", name,
                 dtype, due, there);
        return error;
    }
    mla_exchange_shape_text(t->shape, t->axes_n, got);
    if (strcmp(t->dtype, dtype) != 0)
        snprintf(error, MLA_EXCHANGE_ERROR_MAX, "tensor '%s': dtype %s, the case's is %s", name,
                 t->dtype, dtype);
    else if (t->axes_n != axes_n || memcmp(t->shape, shape, (size_t)axes_n * sizeof shape[0]) != 0)
        snprintf(error, MLA_EXCHANGE_ERROR_MAX, "tensor '%s': shape %s, the case's is %s", name,
                 got, due);
    else
        return NULL;
    return error;
}

const char *mla_exchange_mismatch(const struct mla_case *test, const struct mla_safetensors *file,
                                  char error[MLA_EXCHANGE_ERROR_MAX])
{
    char there[MLA_EXCHANGE_LIST_MAX];
    int64_t ranks = test->op == MLA_OP_RING ? test->ring.ring_size : 1;
    size_t n;
    const char *const *inputs = inputs_of(test, &n);
    for (int64_t d = 0; d < ranks; d++)
        for (size_t i = 0; i < n; i++)
            if (mismatch(test, file, inputs[i], d, error) != NULL)
                return error;
    if (file->n == n * (size_t)ranks)
        return NULL;
    mla_exchange_list(file, there);
    snprintf(error, MLA_EXCHANGE_ERROR_MAX,
             "%zu tensors, but the case has %zu inputs; the file has %s", file->n,
             n * (size_t)ranks, there);
    return error;
}

const char *mla_exchange_difference(const struct mla_tensors *t, const struct mla_safetensors *file,
                                    char error[MLA_EXCHANGE_ERROR_MAX])
{
    char name[MLA_EXCHANGE_NAME_MAX];
    if (mla_exchange_mismatch(&t->test, file, error) != NULL)
        return error;
    for (size_t i = 0; i < t->n; i++) {
        const struct mla_tensor *tensor = &t->list[i];
        if (tensor->role != MLA_TENSOR_INPUT)
            continue;
        mla_exchange_name(&t->test, tensor->name, tensor->rank, name);
        if (memcmp(mla_safetensors_find(file, name)->data, tensor->guard.data,
                   tensor->guard.bytes) == 0)
            continue;
        snprintf(error, MLA_EXCHANGE_ERROR_MAX, "tensor '%s' holds other numbers than the case's",
                 name);
        return error;
    }
    return NULL;
}
