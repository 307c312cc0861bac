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

void mla_exchange_name(const struct mla_tensors *t, const struct mla_tensor *tensor,
                       char name[MLA_EXCHANGE_NAME_MAX])
{
    if (t->test.op == MLA_OP_RING)
        snprintf(name, MLA_EXCHANGE_NAME_MAX, "%s.%" PRId64, tensor->name, tensor->rank);
    else
        snprintf(name, MLA_EXCHANGE_NAME_MAX, "%s", tensor->name);
}

static int64_t axes(int64_t shape[4], int64_t n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    shape[0] = a;
    shape[1] = b;
    shape[2] = c;
    shape[3] = d;
    return n;
}

int64_t mla_exchange_shape(const struct mla_tensors *t, const struct mla_tensor *tensor,
                           int64_t shape[4])
{
    const struct mla_ring_args *r = &t->test.ring;
    const struct mla_sparse_args *s = &t->test.sparse;
    const char *name = tensor->name;
    if (strcmp(name, "q") == 0)
        return axes(shape, 4, r->batch, r->heads, r->q_rows, r->head_dim);
    if (strcmp(name, "kv") == 0)
        return axes(shape, 4, r->kv_batch, 1, r->kv_rows, r->head_dim);
    if (strcmp(name, "gathered") == 0)
        return axes(shape, 4, r->gathered_batch, 1, r->gathered_rows, r->head_dim);
    if (t->test.op == MLA_OP_RING && strcmp(name, "out") == 0)
        return axes(shape, 4, r->batch, r->heads, r->q_rows, r->head_dim_v);
    if (t->test.op == MLA_OP_RING)
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
    mla_exchange_name(t, tensor, w->names[w->file.n]);
    to->name = w->names[w->file.n++];
    to->dtype = tensor->element_bytes == 2 ? "BF16" : "I32";
    to->axes_n = mla_exchange_shape(t, tensor, to->shape);
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

static const char *difference(const struct mla_tensors *t, const struct mla_tensor *tensor,
                              const struct mla_safetensors *file, bool bytes_too,
                              char error[MLA_EXCHANGE_ERROR_MAX])
{
    char name[MLA_EXCHANGE_NAME_MAX];
    int64_t shape[4], axes_n = mla_exchange_shape(t, tensor, shape);
    mla_exchange_name(t, tensor, name);
    const struct mla_safetensor *other = mla_safetensors_find(file, name);
    const char *dtype = tensor->element_bytes == 2 ? "BF16" : "I32", *wrong = NULL;
    if (other == NULL)
        wrong = "is not in the file";
    else if (strcmp(other->dtype, dtype) != 0)
        wrong = "has another dtype than the case's";
    else if (other->axes_n != axes_n ||
             memcmp(other->shape, shape, (size_t)axes_n * sizeof shape[0]) != 0)
        wrong = "has another shape than the case's";
    else if (bytes_too && memcmp(other->data, tensor->guard.data, other->bytes) != 0)
        wrong = "holds other numbers than the case's";
    if (wrong == NULL)
        return NULL;
    snprintf(error, MLA_EXCHANGE_ERROR_MAX, "tensor '%s' %s", name, wrong);
    return error;
}

static const char *differences(const struct mla_tensors *t, const struct mla_safetensors *file,
                               bool bytes_too, char error[MLA_EXCHANGE_ERROR_MAX])
{
    size_t inputs_n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].role == MLA_TENSOR_INPUT) {
            inputs_n++;
            if (difference(t, &t->list[i], file, bytes_too, error) != NULL)
                return error;
        }
    if (file->n == inputs_n)
        return NULL;
    snprintf(error, MLA_EXCHANGE_ERROR_MAX, "%zu tensors, but the case has %zu inputs", file->n,
             inputs_n);
    return error;
}

const char *mla_exchange_mismatch(const struct mla_tensors *t, const struct mla_safetensors *file,
                                  char error[MLA_EXCHANGE_ERROR_MAX])
{
    return differences(t, file, false, error);
}

const char *mla_exchange_difference(const struct mla_tensors *t, const struct mla_safetensors *file,
                                    char error[MLA_EXCHANGE_ERROR_MAX])
{
    return differences(t, file, true, error);
}
