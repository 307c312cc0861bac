/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_layout.c - names, dtypes and shapes of results, padding and tiles allowed for.
 */
#include "fuzz/exchange_layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/exchange_result.h"

#define AXES MLA_EXCHANGE_AXES

__attribute__((format(printf, 2, 3))) static int32_t refuse(char error[MLA_EXCHANGE_ERROR_MAX],
                                                            const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, MLA_EXCHANGE_ERROR_MAX, format, list);
    va_end(list);
    return MLA_ERR_PARAM;
}

/* ---- shapes ---- */

/* Do these axes hold the case's, the row axis perhaps as two? */
static bool fits_exactly(const int64_t *shape, int64_t n, const int64_t need[AXES], int row_axis,
                         int64_t dims[AXES])
{
    bool tiled = n == AXES + 1;
    if (n != AXES && !tiled)
        return false;
    for (int i = 0, at = 0; i < AXES; i++) {
        dims[i] = shape[at++];
        if (tiled && i == row_axis)
            dims[i] *= shape[at++];              /* no more than the tensor's elements */
        bool is_whole = i == 0 || i == AXES - 1; /* padded batches could be taken for heads */
        if (is_whole ? dims[i] != need[i] : dims[i] < need[i])
            return false;
    }
    return true;
}

/* The same with axes of 1 before it, or one behind, more or fewer. */
static bool fits(const struct mla_safetensor *t, const int64_t need[AXES], int row_axis,
                 int64_t dims[AXES])
{
    int64_t wide[MLA_SAFETENSORS_AXES_MAX + 2 * AXES];
    if (mla_safetensor_elements(t) == 0)
        return false;
    for (int behind = 0; behind <= (need[AXES - 1] == 1); behind++)
        for (int before = 0; before < AXES; before++) {
            int64_t n = before + t->axes_n + behind, from = 0;
            for (int64_t i = 0; i < n; i++)
                wide[i] = i < before || i >= before + t->axes_n ? 1 : t->shape[i - before];
            do {
                if (fits_exactly(wide + from, n - from, need, row_axis, dims))
                    return true;
            } while (from < n && wide[from++] == 1);
        }
    return false;
}

static int32_t view_of(const struct mla_safetensor *tensor, const int64_t need[AXES], int row_axis,
                       struct mla_exchange_view *view, char error[MLA_EXCHANGE_ERROR_MAX])
{
    char shape[MLA_EXCHANGE_SHAPE_MAX];
    view->tensor = tensor;
    if (fits(tensor, need, row_axis, view->dims))
        return MLA_OK;
    mla_exchange_shape_text(tensor->shape, tensor->axes_n, shape);
    return refuse(error,
                  "tensor '%.80s': shape %s does not hold [%" PRId64 ", %" PRId64 ", %" PRId64
                  ", %" PRId64 "]",
                  tensor->name, shape, need[0], need[1], need[2], need[3]);
}

struct mla_exchange_extent mla_exchange_extent(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    if (test->op == MLA_OP_RING)
        return (struct mla_exchange_extent){r->batch, r->heads, r->q_rows, r->head_dim_v, true};
    return (struct mla_exchange_extent){1, s->heads, s->queries, MLA_LATENT, false};
}

int64_t mla_exchange_row_at(const struct mla_exchange_extent *e, const struct mla_exchange_view *v,
                            int64_t batch, int64_t head, int64_t row)
{
    int64_t b = e->is_ring ? head : row, c = e->is_ring ? row : head;
    return ((batch * v->dims[1] + b) * v->dims[2] + c) * v->dims[3];
}

/* The sparse operation's heads may be an axis of their own, or stand one after the other in a row. */
static int32_t view_out(const struct mla_exchange_extent *e, struct mla_exchange_view *v,
                        char error[MLA_EXCHANGE_ERROR_MAX])
{
    const int64_t ring[AXES] = {e->batch, e->heads, e->rows, e->columns},
                  apart[AXES] = {1, e->rows, e->heads, e->columns},
                  joined[AXES] = {1, 1, e->rows, e->heads * e->columns};
    if (e->is_ring)
        return view_of(v->tensor, ring, 2, v, error);
    if (view_of(v->tensor, joined, 2, v, error) != MLA_OK)
        return view_of(v->tensor, apart, 1, v, error);
    if (v->dims[1] != 1)
        return refuse(error, "tensor '%.80s': %" PRId64 " times [%" PRId64 ", %" PRId64 "]",
                      v->tensor->name, v->dims[1], e->rows, e->heads * e->columns);
    v->dims[1] = v->dims[2];
    v->dims[2] = e->heads;
    v->dims[3] = e->columns;
    return MLA_OK;
}

static int32_t expect_f32(const struct mla_safetensor *t, char error[MLA_EXCHANGE_ERROR_MAX])
{
    if (strcmp(t->dtype, "F32") == 0)
        return MLA_OK;
    return refuse(error, "tensor '%.80s': dtype %s, must be F32", t->name, t->dtype);
}

static int32_t view_stats(const struct mla_exchange_extent *e, struct mla_exchange_view *v,
                          char error[MLA_EXCHANGE_ERROR_MAX])
{
    const int64_t need[AXES] = {e->batch, e->is_ring ? e->heads : e->rows,
                                e->is_ring ? 2 * e->rows : e->heads, e->is_ring ? 1 : 2};
    int32_t status = expect_f32(v->tensor, error);
    status = status != MLA_OK ? status : view_of(v->tensor, need, e->is_ring ? 2 : 1, v, error);
    if (status != MLA_OK)
        return status;
    if (e->is_ring && v->dims[2] % 2 != 0)
        return refuse(error, "tensor '%.80s': %" PRId64 " rows are not as many maxima as sums",
                      v->tensor->name, v->dims[2]);
    return MLA_OK;
}

static int32_t view_lse(const struct mla_exchange_extent *e, struct mla_exchange_view *v,
                        char error[MLA_EXCHANGE_ERROR_MAX])
{
    const int64_t need[AXES] = {e->batch, e->is_ring ? e->heads : e->rows,
                                e->is_ring ? e->rows : e->heads, 1};
    int32_t status = expect_f32(v->tensor, error);
    return status != MLA_OK ? status : view_of(v->tensor, need, e->is_ring ? 2 : 1, v, error);
}

/* ---- names and dtypes ---- */

static const struct mla_safetensor *find(const struct mla_case *test,
                                         const struct mla_safetensors *file, const char *base,
                                         int64_t rank)
{
    char name[MLA_EXCHANGE_NAME_MAX];
    mla_exchange_name(test, base, rank, name);
    const struct mla_safetensor *found = mla_safetensors_find(file, name);
    bool is_alone = test->op == MLA_OP_RING && test->ring.ring_size == 1;
    return found == NULL && is_alone ? mla_safetensors_find(file, base) : found;
}

static int32_t format_of(const struct mla_safetensor *t, enum mla_out_format *format,
                         char error[MLA_EXCHANGE_ERROR_MAX])
{
    static const char *const names[] = {"BF16", "F16", "F32"}; /* enum mla_out_format */
    for (int i = 0; i < 3; i++)
        if (strcmp(t->dtype, names[i]) == 0) {
            *format = (enum mla_out_format)i;
            return MLA_OK;
        }
    return refuse(error, "tensor '%.80s': dtype %s, must be BF16, F16 or F32", t->name, t->dtype);
}

static int32_t refuse_missing(const struct mla_case *test, const struct mla_safetensors *file,
                              const char *base, int64_t rank, const char *why,
                              char error[MLA_EXCHANGE_ERROR_MAX])
{
    char name[MLA_EXCHANGE_NAME_MAX], there[MLA_EXCHANGE_LIST_MAX];
    mla_exchange_name(test, base, rank, name);
    mla_exchange_list(file, there);
    return refuse(error, "no tensor '%s'%s; the file has %s", name, why, there);
}

static int32_t refuse_no_out(const struct mla_case *test, const struct mla_safetensors *file,
                             int64_t rank, char error[MLA_EXCHANGE_ERROR_MAX])
{
    char shape[MLA_EXCHANGE_SHAPE_MAX], due[MLA_EXCHANGE_SHAPE_MAX + 2];
    int64_t axes[4], n = mla_exchange_shape(test, "out", axes);
    mla_exchange_shape_text(axes, n, shape);
    snprintf(due, sizeof due, ", %s", shape);
    return refuse_missing(test, file, "out", rank, due, error);
}

int32_t mla_exchange_layout(const struct mla_case *test, const struct mla_safetensors *file,
                            int64_t rank, struct mla_exchange_rank *r,
                            char error[MLA_EXCHANGE_ERROR_MAX])
{
    const struct mla_exchange_extent e = mla_exchange_extent(test);
    *r = (struct mla_exchange_rank){.out.tensor = find(test, file, "out", rank),
                                    .stats.tensor = find(test, file, "stats", rank),
                                    .lse.tensor = find(test, file, "lse", rank)};
    if (r->out.tensor == NULL)
        return refuse_no_out(test, file, rank, error);
    if (r->stats.tensor == NULL && test->stats != 0)
        return refuse_missing(test, file, "stats", rank, ": all ranks have them or none", error);
    if (r->stats.tensor != NULL && test->stats == 0)
        return refuse_missing(test, file, "stats", 0, ": all ranks have them or none", error);
    if (r->stats.tensor != NULL && r->lse.tensor != NULL)
        return refuse(error, "tensors '%s' and '%s': give one of them", r->stats.tensor->name,
                      r->lse.tensor->name);
    int32_t status = format_of(r->out.tensor, &r->format, error);
    status = status != MLA_OK ? status : view_out(&e, &r->out, error);
    if (status == MLA_OK && r->stats.tensor != NULL)
        status = view_stats(&e, &r->stats, error);
    if (status == MLA_OK && r->lse.tensor != NULL)
        status = view_lse(&e, &r->lse, error);
    return status;
}

/* ---- all ranks ---- */

bool mla_exchange_has_stats(const struct mla_safetensors *file)
{
    return mla_safetensors_find(file, "stats") != NULL ||
           mla_safetensors_find(file, "stats.0") != NULL;
}

/* The ranks' results must be alike. */
static int32_t compare_ranks(const struct mla_case *test, const struct mla_safetensors *file,
                             const struct mla_exchange_rank *first,
                             const struct mla_exchange_rank *other, int64_t rank,
                             char error[MLA_EXCHANGE_ERROR_MAX])
{
    if ((first->lse.tensor != NULL) != (other->lse.tensor != NULL))
        return refuse_missing(test, file, "lse", other->lse.tensor == NULL ? rank : 0,
                              ": all ranks have it or none", error);
    if (first->format != other->format)
        return refuse(error, "tensor '%.80s': dtype %s differs from the first rank's",
                      other->out.tensor->name, other->out.tensor->dtype);
    return MLA_OK;
}

int32_t mla_exchange_result_check(const struct mla_case *test, const struct mla_safetensors *file,
                                  char error[MLA_EXCHANGE_ERROR_MAX])
{
    struct mla_exchange_rank first, r;
    char there[MLA_EXCHANGE_LIST_MAX];
    size_t used_n = 0;
    int64_t ranks = test->op == MLA_OP_RING ? test->ring.ring_size : 1;
    for (int64_t d = 0; d < ranks; d++) {
        int32_t status = mla_exchange_layout(test, file, d, &r, error);
        if (d == 0)
            first = r;
        status = status != MLA_OK ? status : compare_ranks(test, file, &first, &r, d, error);
        if (status != MLA_OK)
            return status;
        used_n += (size_t)(1 + (r.stats.tensor != NULL) + (r.lse.tensor != NULL));
    }
    mla_exchange_list(file, there);
    if (file->n != used_n)
        return refuse(
            error, "%zu tensors, of which %zu are out, stats or lse of the case; the file has %s",
            file->n, used_n, there);
    return MLA_OK;
}
