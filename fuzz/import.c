/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c - which operation a file is for, its parameters, its numbers; the ring's tensors.
 */
#include "fuzz/import.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/arguments.h"
#include "fuzz/data_file.h"
#include "fuzz/exchange.h"
#include "fuzz/exchange_result.h"
#include "fuzz/import_internal.h"
#include "fuzz/judge.h"

#define ROWS_WHOLE  1024 /* of a case with more (head, row) pairs a sample is judged */
#define ROWS_SAMPLE 256

int32_t mla_import_refuse(const struct mla_import *import, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(import->error, MLA_IMPORT_ERROR_MAX, format, list);
    va_end(list);
    return MLA_ERR_PARAM;
}

int32_t mla_import_no_memory(const struct mla_import *import)
{
    mla_import_refuse(import, "out of memory for the tensors");
    return MLA_ERR_NOMEM;
}

/* ---- tensors ---- */

const struct mla_safetensor *mla_import_find(struct mla_import *import, const char *name)
{
    const struct mla_safetensor *found = mla_safetensors_find(import->file, name);
    if (found != NULL)
        import->used[found - import->file->list] = true;
    return found;
}

int32_t mla_import_axes(const struct mla_import *import, const struct mla_safetensor *tensor,
                        int64_t n, const char *what, int64_t *axes)
{
    int64_t more = tensor->axes_n - n;
    bool ok = more >= 0 && mla_safetensor_elements(tensor) > 0;
    for (int64_t i = 0; ok && i < more; i++)
        ok = tensor->shape[i] == 1;
    if (!ok)
        return mla_import_refuse(import, "tensor '%s': must have the axes %s, none of them 0",
                                 tensor->name, what);
    memcpy(axes, tensor->shape + more, (size_t)n * sizeof *axes);
    return MLA_OK;
}

struct mla_safetensor *mla_import_add(struct mla_import *import, const char *name, int64_t elements,
                                      size_t element_bytes)
{
    struct mla_safetensor *t = &import->made.list[import->made.n];
    uint8_t *data = malloc((size_t)elements * element_bytes);
    t->name = strdup(name);
    t->dtype = element_bytes == 2 ? "BF16" : "I32";
    t->data = data;
    t->bytes = (size_t)elements * element_bytes;
    import->made.n++; /* freed whatever is missing */
    return data == NULL || t->name == NULL ? NULL : t;
}

/* Is the element of that place a bf16? Its bits. */
static bool as_bf16(const struct mla_safetensor *t, int64_t i, uint16_t *bits)
{
    if (strcmp(t->dtype, "BF16") == 0) {
        memcpy(bits, t->data + 2 * i, 2);
        return true;
    }
    float value = mla_exchange_element(t, i);
    *bits = mla_number_to_bf16((double)value);
    return isnan(value) || mla_number_from_bf16(*bits) == value;
}

int32_t mla_import_columns(const struct mla_import *import, const struct mla_safetensor *from,
                           int64_t first, int64_t width, uint16_t *to)
{
    int64_t whole = from->shape[from->axes_n - 1], rows = mla_safetensor_elements(from) / whole;
    if (strcmp(from->dtype, "BF16") != 0 && strcmp(from->dtype, "F16") != 0 &&
        strcmp(from->dtype, "F32") != 0)
        return mla_import_refuse(import, "tensor '%s': dtype %s, must be BF16, F16 or F32",
                                 from->name, from->dtype);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++) {
            int64_t i = r * whole + first + c;
            if (!as_bf16(from, i, to++))
                return mla_import_refuse(import,
                                         "tensor '%s': element %" PRId64
                                         " = %a is no bf16: round it before, as the kernel does",
                                         from->name, i, (double)mla_exchange_element(from, i));
        }
    return MLA_OK;
}

/* ---- parameters ---- */

/* The value of a parameter: the caller's, or the file's; NULL: not given. */
static const char *param(const struct mla_import *import, const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < import->options->params_n; i++)
        if (strncmp(import->options->params[i], name, n) == 0 &&
            import->options->params[i][n] == '=')
            return import->options->params[i] + n + 1;
    return mla_safetensors_text(import->file, name);
}

/* Numbers that the tensors' shapes say, or that are always the same. */
static bool is_shape(const char *name)
{
    static const char *const shapes[] = {
        "struct_size", "ring_size", "batch",       "heads",    "q_rows",    "kv_rows",
        "kv_batch",    "kv_heads",  "kv_head_dim", "head_dim", "dim",       "queries",
        "keys",        "latent",    "rope",        "topk",     "topk_tiled"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcmp(shapes[i], name) == 0)
            return true;
    return false;
}

static bool is_argument(const struct mla_import *import, const char *text)
{
    size_t n;
    const struct mla_argument *arguments = mla_arguments((enum mla_op)import->test->op, &n);
    for (size_t i = 0; i < n; i++)
        if (strncmp(arguments[i].name, text, strlen(arguments[i].name)) == 0 &&
            text[strlen(arguments[i].name)] == '=' && !is_shape(arguments[i].name))
            return true;
    return false;
}

/* Who gives one of these means it. */
static void switch_on(const struct mla_import *import)
{
    struct mla_ring_args *r = &import->test->ring;
    struct mla_sparse_args *s = &import->test->sparse;
    const struct {
        const char *name, *has_name;
        int32_t *has;
    } switches[] = {{"scale", "has_scale", &r->has_scale},
                    {"kv_cache_batch_idx", "has_slot", &r->has_slot},
                    {"kv_actual_isl", "has_prior", &r->has_prior},
                    {"q_pos_offset", "has_q_pos_offset", &s->has_q_pos_offset}};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (param(import, switches[i].name) != NULL && param(import, switches[i].has_name) == NULL)
            *switches[i].has = 1;
}

static int32_t set_params(struct mla_import *import)
{
    size_t n;
    enum mla_op op = (enum mla_op)import->test->op;
    const struct mla_argument *arguments = mla_arguments(op, &n);
    void *args = op == MLA_OP_RING ? (void *)&import->test->ring : (void *)&import->test->sparse;
    for (int i = 0; i < import->options->params_n; i++)
        if (!is_argument(import, import->options->params[i]))
            return mla_import_refuse(import,
                                     "--param '%.80s': must be NAME=VALUE, with a parameter of the "
                                     "operation that is no shape",
                                     import->options->params[i]);
    for (int i = 0; i < import->options->params_n; i++)
        for (int k = 0; k < i; k++) {
            size_t name_n = strcspn(import->options->params[i], "=") + 1;
            if (strncmp(import->options->params[i], import->options->params[k], name_n) == 0)
                return mla_import_refuse(import, "--param '%.80s': given twice",
                                         import->options->params[i]);
        }
    for (size_t i = 0; i < n; i++) {
        const char *value = is_shape(arguments[i].name) ? NULL : param(import, arguments[i].name);
        struct mla_violation v = {.at = 0};
        if (value == NULL || arguments[i].kind == MLA_ARGUMENT_POINTER ||
            arguments[i].kind == MLA_ARGUMENT_RANKED)
            continue;
        snprintf(v.field, sizeof v.field, "%s", arguments[i].name);
        snprintf(v.value, sizeof v.value, "%s", value);
        if (strlen(value) >= sizeof v.value || !mla_arguments_set(op, args, &v))
            return mla_import_refuse(import, "parameter %s = '%.60s': must be a number",
                                     arguments[i].name, value);
    }
    switch_on(import);
    return MLA_OK;
}

/* ---- the ring ---- */

static int32_t add_rank(struct mla_import *import, int64_t rank)
{
    struct mla_ring_args *a = &import->test->ring;
    char name[MLA_EXCHANGE_NAME_MAX];
    int64_t axes[4], same[4];
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "%s.%" PRId64, k == 0 ? "q" : "kv", rank);
        const struct mla_safetensor *from = mla_import_find(import, name);
        if (from == NULL)
            return mla_import_refuse(import, "tensor '%s' is missing", name);
        int32_t status = mla_import_axes(
            import, from, 4,
            k == 0 ? "[batch, heads, q_rows, head_dim]" : "[kv_batch, 1, kv_rows, head_dim]", axes);
        if (status != MLA_OK)
            return status;
        if (rank == 0 && k == 0) {
            a->batch = axes[0];
            a->heads = axes[1];
            a->q_rows = axes[2];
            a->head_dim = axes[3];
        } else if (rank == 0) {
            a->kv_batch = axes[0];
            a->kv_rows = axes[2];
        }
        same[0] = k == 0 ? a->batch : a->kv_batch;
        same[1] = k == 0 ? a->heads : 1;
        same[2] = k == 0 ? a->q_rows : a->kv_rows;
        same[3] = a->head_dim;
        if (memcmp(axes, same, sizeof axes) != 0)
            return mla_import_refuse(import, "tensor '%s': its shape does not go with the others'",
                                     name);
        struct mla_safetensor *to =
            mla_import_add(import, name, mla_safetensor_elements(from), sizeof(uint16_t));
        if (to == NULL)
            return mla_import_no_memory(import);
        to->axes_n = 4;
        memcpy(to->shape, axes, sizeof axes);
        status = mla_import_columns(import, from, 0, axes[3], (uint16_t *)(uintptr_t)to->data);
        if (status != MLA_OK)
            return status;
    }
    return MLA_OK;
}

static int32_t import_ring(struct mla_import *import)
{
    struct mla_ring_args *a = &import->test->ring;
    char name[MLA_EXCHANGE_NAME_MAX];
    int64_t ranks = 0;
    if (param(import, "head_dim_v") == NULL)
        return mla_import_refuse(import, "parameter head_dim_v is missing");
    do
        snprintf(name, sizeof name, "q.%" PRId64, ++ranks);
    while (ranks < MLA_RING_SIZE_MAX && mla_safetensors_find(import->file, name) != NULL);
    a->ring_size = ranks;
    for (int64_t d = 0; d < ranks; d++) {
        int32_t status = add_rank(import, d);
        if (status != MLA_OK)
            return status;
    }
    if (param(import, "logical_n") == NULL)
        a->logical_n = ranks * a->kv_rows;
    if (param(import, "gathered_rows") == NULL)
        a->gathered_rows = ranks * a->kv_rows;
    if (param(import, "gathered_batch") == NULL)
        a->gathered_batch = a->has_slot ? 1 : a->batch;
    return MLA_OK;
}

/* ---- the whole ---- */

static int32_t choose_op(struct mla_import *import)
{
    bool is_ring = mla_safetensors_find(import->file, "q.0") != NULL;
    const char *said = mla_safetensors_text(import->file, "op");
    if (said != NULL && strcmp(said, is_ring ? "ring" : "sparse") != 0)
        return mla_import_refuse(import, "metadata op = '%.40s', but the tensors are those of %s",
                                 said, is_ring ? "ring" : "sparse");
    mla_case_init(import->test, is_ring ? MLA_OP_RING : MLA_OP_SPARSE);
    import->test->sparse.out_order = MLA_OUT_NATURAL;
    if (is_ring && import->options->masked)
        return mla_import_refuse(import, "--pad-index: the ring has no index lists");
    if (!is_ring && param(import, "softmax_scale") == NULL)
        return mla_import_refuse(import, "parameter softmax_scale is missing");
    return MLA_OK;
}

static int32_t check_used(const struct mla_import *import)
{
    for (size_t i = 0; i < import->file->n; i++)
        if (!import->used[i])
            return mla_import_refuse(import, "tensor '%.80s': is none of the operation's",
                                     import->file->list[i].name);
    return MLA_OK;
}

static int32_t finish(struct mla_import *import)
{
    char hash[MLA_CASE_ID_BYTES];
    struct mla_case *test = import->test;
    test->rows = mla_rows_all(test) > ROWS_WHOLE ? ROWS_SAMPLE : 0;
    if (mla_case_problem(test, INT64_MAX, import->error) != NULL)
        return MLA_ERR_PARAM;
    int32_t status = mla_data_store(&import->made, hash, import->error, MLA_IMPORT_ERROR_MAX);
    if (status != MLA_OK)
        return status;
    mla_case_set_data(test, hash);
    return mla_case_problem(test, INT64_MAX, import->error) == NULL ? MLA_OK : MLA_ERR_PARAM;
}

int32_t mla_import(const struct mla_safetensors *file, const struct mla_import_options *options,
                   struct mla_case *test, char error[MLA_IMPORT_ERROR_MAX])
{
    struct mla_import import = {.file = file, .options = options, .test = test, .error = error};
    import.used = calloc(file->n + 1, sizeof *import.used);
    import.made.list = calloc(MLA_TENSORS_MAX, sizeof *import.made.list);
    int32_t status = import.used == NULL || import.made.list == NULL ? mla_import_no_memory(&import)
                                                                     : choose_op(&import);
    status = status != MLA_OK ? status : set_params(&import);
    if (status == MLA_OK)
        status = test->op == MLA_OP_RING ? import_ring(&import) : mla_import_sparse(&import);
    status = status != MLA_OK ? status : check_used(&import);
    status = status != MLA_OK ? status : finish(&import);
    for (size_t i = 0; i < import.made.n; i++)
        free((void *)(uintptr_t)import.made.list[i].data);
    if (import.made.list != NULL)
        mla_safetensors_free(&import.made);
    free(import.used);
    return status;
}
