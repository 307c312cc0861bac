/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_result.c - results from files to where the judge looks, padding and tiles left out.
 */
#include "fuzz/exchange_result.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AXES 4 /* batch, head, row, column; sparse: 1, row, head, column */

/* A result tensor as the axes of the case, heads and rows perhaps longer. */
struct view {
    const struct mla_safetensor *tensor;
    int64_t dims[AXES];
};

__attribute__((format(printf, 2, 3))) static int32_t refuse(char error[MLA_EXCHANGE_ERROR_MAX],
                                                            const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, MLA_EXCHANGE_ERROR_MAX, format, list);
    va_end(list);
    return MLA_ERR_PARAM;
}

static int32_t no_memory(char error[MLA_EXCHANGE_ERROR_MAX])
{
    refuse(error, "out of memory for the results");
    return MLA_ERR_NOMEM;
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

static void shape_text(const struct mla_safetensor *t, char text[200])
{
    int n = snprintf(text, 200, "[");
    for (int64_t i = 0; i < t->axes_n && n < 170; i++)
        n += snprintf(text + n, 200 - (size_t)n, "%s%" PRId64, i == 0 ? "" : ", ", t->shape[i]);
    snprintf(text + n, 200 - (size_t)n, "]");
}

static const struct mla_safetensor *find(const struct mla_tensors *t,
                                         const struct mla_safetensors *file, const char *base,
                                         int64_t rank)
{
    char name[MLA_EXCHANGE_NAME_MAX];
    bool is_ring = t->test.op == MLA_OP_RING;
    snprintf(name, sizeof name, is_ring ? "%s.%" PRId64 : "%s", base, rank);
    const struct mla_safetensor *found = mla_safetensors_find(file, name);
    return found == NULL && is_ring && t->ring.ring_size == 1 ? mla_safetensors_find(file, base)
                                                              : found;
}

static int32_t view_of(const struct mla_safetensor *tensor, const int64_t need[AXES], int row_axis,
                       struct view *view, char error[MLA_EXCHANGE_ERROR_MAX])
{
    char shape[200];
    view->tensor = tensor;
    if (fits(tensor, need, row_axis, view->dims))
        return MLA_OK;
    shape_text(tensor, shape);
    return refuse(error,
                  "tensor '%s': shape %s does not hold [%" PRId64 ", %" PRId64 ", %" PRId64
                  ", %" PRId64 "]",
                  tensor->name, shape, need[0], need[1], need[2], need[3]);
}

static int64_t at(const struct view *v, int64_t a, int64_t b, int64_t c)
{
    return ((a * v->dims[1] + b) * v->dims[2] + c) * v->dims[3];
}

/* ---- elements ---- */

static float from_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    float fraction = (float)(bits & 0x3ff);
    float value = exponent == 31  ? fraction != 0 ? NAN : INFINITY
                  : exponent == 0 ? ldexpf(fraction, -24)
                                  : ldexpf(1024 + fraction, exponent - 25);
    return (bits & 0x8000u) != 0 ? -value : value;
}

float mla_exchange_element(const struct mla_safetensor *t, int64_t i)
{
    uint16_t half;
    float value;
    if (strcmp(t->dtype, "F32") == 0) {
        memcpy(&value, t->data + 4 * i, sizeof value);
        return value;
    }
    memcpy(&half, t->data + 2 * i, sizeof half);
    return strcmp(t->dtype, "F16") == 0 ? from_f16(half) : mla_number_from_bf16(half);
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
    return refuse(error, "tensor '%s': dtype %s, must be BF16, F16 or F32", t->name, t->dtype);
}

static int32_t expect_f32(const struct mla_safetensor *t, char error[MLA_EXCHANGE_ERROR_MAX])
{
    if (strcmp(t->dtype, "F32") == 0)
        return MLA_OK;
    return refuse(error, "tensor '%s': dtype %s, must be F32", t->name, t->dtype);
}

/* ---- one rank ---- */

/* What a rank's tensors have: batch entries (sparse: 1), heads, rows. */
struct extent {
    int64_t batch, heads, rows, columns;
    bool is_ring;
};

static struct extent extent_of(const struct mla_tensors *t)
{
    const struct mla_ring_args *r = &t->ring;
    const struct mla_sparse_args *s = &t->sparse;
    if (t->test.op == MLA_OP_RING)
        return (struct extent){r->batch, r->heads, r->q_rows, r->head_dim_v, true};
    return (struct extent){1, s->heads, s->queries, s->latent, false};
}

/* Where (batch, head, row) begins in a view whose axes are the case's. */
static int64_t row_at(const struct extent *e, const struct view *v, int64_t b, int64_t h, int64_t r)
{
    return e->is_ring ? at(v, b, h, r) : at(v, b, r, h);
}

/* The sparse operation's heads may be an axis of their own, or stand one after the other in a row. */
static int32_t view_out(const struct extent *e, const struct mla_safetensor *tensor, struct view *v,
                        char error[MLA_EXCHANGE_ERROR_MAX])
{
    const int64_t ring[AXES] = {e->batch, e->heads, e->rows, e->columns},
                  apart[AXES] = {1, e->rows, e->heads, e->columns},
                  joined[AXES] = {1, 1, e->rows, e->heads * e->columns};
    if (e->is_ring)
        return view_of(tensor, ring, 2, v, error);
    if (view_of(tensor, joined, 2, v, error) != MLA_OK)
        return view_of(tensor, apart, 1, v, error);
    if (v->dims[1] != 1)
        return refuse(error, "tensor '%s': %" PRId64 " times [%" PRId64 ", %" PRId64 "]",
                      tensor->name, v->dims[1], e->rows, e->heads * e->columns);
    v->dims[1] = v->dims[2];
    v->dims[2] = e->heads;
    v->dims[3] = e->columns;
    return MLA_OK;
}

static int32_t load_out(struct mla_tensors *t, const struct mla_safetensor *tensor, int64_t rank,
                        char error[MLA_EXCHANGE_ERROR_MAX])
{
    const struct extent e = extent_of(t);
    struct view v;
    int32_t status = view_out(&e, tensor, &v, error);
    if (status != MLA_OK)
        return status;
    struct mla_tensor *to = mla_tensors_find(t, "out", rank);
    uint16_t *out = (uint16_t *)(void *)to->guard.data;
    float *wide = NULL;
    if (t->out_format != MLA_FORMAT_BF16) {
        wide = t->wide[rank] = malloc((size_t)to->elements_n * sizeof *wide);
        if (wide == NULL)
            return no_memory(error);
    }
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t h = 0; h < e.heads; h++)
            for (int64_t r = 0; r < e.rows; r++) {
                int64_t from = row_at(&e, &v, b, h, r);
                int64_t place =
                    (e.is_ring ? (b * e.heads + h) * e.rows + r : r * e.heads + h) * e.columns;
                for (int64_t c = 0; c < e.columns; c++) {
                    float value = mla_exchange_element(tensor, from + c);
                    out[place + c] = mla_number_to_bf16((double)value);
                    if (wide != NULL)
                        wide[place + c] = value;
                }
            }
    return MLA_OK;
}

static int32_t load_stats(struct mla_tensors *t, const struct mla_safetensor *tensor, int64_t rank,
                          char error[MLA_EXCHANGE_ERROR_MAX])
{
    const struct extent e = extent_of(t);
    const int64_t need[AXES] = {e.batch, e.is_ring ? e.heads : e.rows,
                                e.is_ring ? 2 * e.rows : e.heads, e.is_ring ? 1 : 2};
    struct view v;
    int32_t status = expect_f32(tensor, error);
    status = status != MLA_OK ? status : view_of(tensor, need, e.is_ring ? 2 : 1, &v, error);
    if (status != MLA_OK)
        return status;
    if (e.is_ring && v.dims[2] % 2 != 0)
        return refuse(error, "tensor '%s': %" PRId64 " rows are not as many maxima as sums",
                      tensor->name, v.dims[2]);
    float *to = (float *)(void *)mla_tensors_find(t, "stats", rank)->guard.data;
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t h = 0; h < e.heads; h++)
            for (int64_t r = 0; r < e.rows; r++) {
                int64_t max = row_at(&e, &v, b, h, r);
                int64_t sum = e.is_ring ? max + v.dims[2] / 2 : max + 1;
                int64_t place =
                    e.is_ring ? (b * e.heads + h) * 2 * e.rows + r : (r * e.heads + h) * 2;
                to[place] = mla_exchange_element(tensor, max);
                to[place + (e.is_ring ? e.rows : 1)] = mla_exchange_element(tensor, sum);
            }
    return MLA_OK;
}

static int32_t load_lse(struct mla_tensors *t, const struct mla_safetensor *tensor, int64_t rank,
                        char error[MLA_EXCHANGE_ERROR_MAX])
{
    const struct extent e = extent_of(t);
    const int64_t need[AXES] = {e.batch, e.is_ring ? e.heads : e.rows, e.is_ring ? e.rows : e.heads,
                                1};
    struct view v;
    int32_t status = expect_f32(tensor, error);
    status = status != MLA_OK ? status : view_of(tensor, need, e.is_ring ? 2 : 1, &v, error);
    if (status != MLA_OK)
        return status;
    float *to = t->lse[rank] = malloc((size_t)(e.batch * e.heads * e.rows) * sizeof *t->lse[rank]);
    if (to == NULL)
        return no_memory(error);
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t h = 0; h < e.heads; h++)
            for (int64_t r = 0; r < e.rows; r++)
                to[e.is_ring ? (b * e.heads + h) * e.rows + r : r * e.heads + h] =
                    mla_exchange_element(tensor, row_at(&e, &v, b, h, r));
    return MLA_OK;
}

/* ---- all of them ---- */

bool mla_exchange_has_stats(const struct mla_safetensors *file)
{
    return mla_safetensors_find(file, "stats") != NULL ||
           mla_safetensors_find(file, "stats.0") != NULL;
}

static int32_t load_rank(struct mla_tensors *t, const struct mla_safetensors *file, int64_t rank,
                         size_t *used_n, char error[MLA_EXCHANGE_ERROR_MAX])
{
    const struct mla_safetensor *out = find(t, file, "out", rank),
                                *stats = find(t, file, "stats", rank),
                                *lse = find(t, file, "lse", rank);
    enum mla_out_format format = MLA_FORMAT_BF16;
    int32_t status;
    if (out == NULL)
        return refuse(error, "no tensor 'out' of rank %" PRId64, rank);
    if ((stats != NULL) != (t->test.stats != 0))
        return refuse(error, "no tensor 'stats' of rank %" PRId64 ": all ranks have them or none",
                      rank);
    if (stats != NULL && lse != NULL)
        return refuse(error, "tensors '%s' and '%s': give one of them", stats->name, lse->name);
    if (rank > 0 && (lse != NULL) != (t->lse[0] != NULL))
        return refuse(error, "no tensor 'lse' of rank %" PRId64 ": all ranks have it or none",
                      lse == NULL ? rank : 0);
    if ((status = format_of(out, &format, error)) != MLA_OK)
        return status;
    if (rank > 0 && format != t->out_format)
        return refuse(error, "tensor '%s': dtype %s differs from the first rank's", out->name,
                      out->dtype);
    t->out_format = format;
    *used_n += (size_t)(1 + (stats != NULL) + (lse != NULL));
    status = load_out(t, out, rank, error);
    if (status == MLA_OK && stats != NULL)
        status = load_stats(t, stats, rank, error);
    if (status == MLA_OK && lse != NULL)
        status = load_lse(t, lse, rank, error);
    return status;
}

int32_t mla_exchange_result_load(struct mla_tensors *t, const struct mla_safetensors *file,
                                 char error[MLA_EXCHANGE_ERROR_MAX])
{
    size_t used_n = 0;
    int64_t ranks = t->test.op == MLA_OP_RING ? t->ring.ring_size : 1;
    for (int64_t d = 0; d < ranks; d++) {
        int32_t status = load_rank(t, file, d, &used_n, error);
        if (status != MLA_OK)
            return status;
    }
    if (file->n != used_n)
        return refuse(error, "%zu tensors, of which %zu are out, stats or lse of the case", file->n,
                      used_n);
    return MLA_OK;
}
