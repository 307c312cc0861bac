/* SPDX-License-Identifier: Apache-2.0
 *
 * import_sparse.c - queries and cache, in one tensor or two, and lists with or without padding.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/import_internal.h"
#include "fuzz/indices.h"

#define NO_NUMBER 0x7fc0 /* NaN: in what must not be read */

/* ---- rows of latent and RoPE ---- */

/* Two tensors, or one that holds both side by side. */
struct source {
    const struct mla_safetensor *latent, *rope;
    int64_t rope_first;  /* its first column */
    int64_t rows, width; /* of the RoPE part */
};

static int64_t last_axis(const struct mla_safetensor *t)
{
    return t->axes_n == 0 ? 0 : t->shape[t->axes_n - 1];
}

static int32_t find_source(struct mla_import *import, const char *latent, const char *rope,
                           const char *whole, struct source *s)
{
    const struct mla_safetensor *one = mla_import_find(import, whole);
    *s = (struct source){mla_import_find(import, latent), mla_import_find(import, rope), 0, 0, 0};
    if ((one != NULL) == (s->latent != NULL) || (s->latent == NULL) != (s->rope == NULL))
        return mla_import_refuse(import, "tensors: must be '%s' and '%s', or '%s' for both", latent,
                                 rope, whole);
    if (one != NULL)
        *s = (struct source){one, one, MLA_LATENT, 0, 0};
    if (mla_safetensor_elements(s->latent) == 0 || mla_safetensor_elements(s->rope) == 0)
        return mla_import_refuse(import, "tensor '%s': must not be empty", s->latent->name);
    s->width = last_axis(s->rope) - s->rope_first;
    if (s->width < 1 || s->width > MLA_ROPE_MAX ||
        (one == NULL && last_axis(s->latent) != MLA_LATENT))
        return mla_import_refuse(import,
                                 "tensor '%s': the last axis must be 512 (latent) and 1 .. 128 "
                                 "(RoPE), side by side or apart",
                                 s->latent->name);
    s->rows = mla_safetensor_elements(s->latent) / last_axis(s->latent);
    if (mla_safetensor_elements(s->rope) / last_axis(s->rope) != s->rows)
        return mla_import_refuse(import, "tensor '%s': not as many rows as '%s'", s->rope->name,
                                 s->latent->name);
    return MLA_OK;
}

/* The two tensors of the case; `more` rows of NaN at the end of each. */
static int32_t add_source(struct mla_import *import, const struct source *s, const char *latent,
                          const char *rope, int64_t more)
{
    const char *const names[] = {latent, rope};
    for (int k = 0; k < 2; k++) {
        int64_t width = k == 0 ? MLA_LATENT : s->width;
        struct mla_safetensor *to =
            mla_import_add(import, names[k], (s->rows + more) * width, sizeof(uint16_t));
        if (to == NULL)
            return mla_import_no_memory(import);
        uint16_t *data = (uint16_t *)(uintptr_t)to->data;
        int32_t status = mla_import_columns(import, k == 0 ? s->latent : s->rope,
                                            k == 0 ? 0 : s->rope_first, width, data);
        if (status != MLA_OK)
            return status;
        for (int64_t i = 0; i < more * width; i++)
            data[s->rows * width + i] = NO_NUMBER;
        to->axes_n = 3;
        to->shape[0] = 1;
        to->shape[1] = s->rows + more;
        to->shape[2] = width;
    }
    return MLA_OK;
}

/* Queries have heads as well: [1, S, H, width]. */
static int32_t add_queries(struct mla_import *import)
{
    struct source s;
    struct mla_sparse_args *a = &import->test->sparse;
    int64_t axes[3], both[3];
    int32_t status = find_source(import, "q_lift", "q_pe", "q", &s);
    status =
        status != MLA_OK ? status : mla_import_axes(import, s.latent, 3, "[S, H, width]", axes);
    status = status != MLA_OK ? status : mla_import_axes(import, s.rope, 3, "[S, H, width]", both);
    if (status != MLA_OK)
        return status;
    if (axes[0] != both[0] || axes[1] != both[1])
        return mla_import_refuse(import, "tensor '%s': queries and heads are not those of '%s'",
                                 s.rope->name, s.latent->name);
    a->queries = axes[0];
    a->heads = axes[1];
    a->rope = s.width;
    status = add_source(import, &s, "q_lift", "q_pe", 0);
    for (size_t i = 0; status == MLA_OK && i < import->made.n; i++) {
        struct mla_safetensor *t = &import->made.list[i];
        t->axes_n = 4;
        t->shape[3] = t->shape[2];
        t->shape[2] = a->heads;
        t->shape[1] = a->queries;
    }
    return status;
}

/* ---- lists ---- */

/* The file's lists, flat or tiled, and how long each is. */
struct lists {
    const int32_t *entries; /* a copy: a file aligns nothing */
    const int32_t *lengths; /* NULL: all entries */
    int64_t entries_n;      /* of each row */
    struct mla_sparse_args layout;
};

static int32_t refuse_entry(const struct mla_import *import, const char *name, int64_t q, int64_t j,
                            int64_t value, const char *rule)
{
    return mla_import_refuse(import, "%s of row %" PRId64 ", entry %" PRId64 " = %" PRId64 ": %s",
                             name, q, j, value, rule);
}

/* An entry of the file in the case's words; -1: no key. */
static int64_t entry_of(const struct mla_import *import, const struct lists *l, int64_t keys,
                        int64_t q, int64_t j)
{
    const struct mla_sparse_args *a = &import->test->sparse;
    if (j >= l->entries_n || (l->lengths != NULL && j >= l->lengths[q]))
        return -1;
    int64_t index = l->entries[mla_indices_place(&l->layout, q, j)];
    if (index < 0 || index >= keys || (a->has_q_pos_offset && index - q > a->q_pos_offset))
        return -1;
    return index;
}

/* Without padding every entry must be a row, and is kept: what q_pos_offset drops is the call's affair. */
static int32_t check_entries(const struct mla_import *import, const struct lists *l, int64_t keys)
{
    for (int64_t q = 0; q < import->test->sparse.queries; q++)
        for (int64_t j = 0; j < l->entries_n; j++) {
            int64_t index = l->entries[mla_indices_place(&l->layout, q, j)];
            if (index < 0 || index >= keys)
                return refuse_entry(import, "topk_indices", q, j, index,
                                    "names no row of the cache; if that means no key: --pad-index "
                                    "masked");
        }
    return MLA_OK;
}

static int32_t copy_i32(const struct mla_import *import, const struct mla_safetensor *from,
                        int32_t **to)
{
    if (strcmp(from->dtype, "I32") != 0)
        return mla_import_refuse(import, "tensor '%s': dtype %s, must be I32", from->name,
                                 from->dtype);
    *to = malloc(from->bytes + 1);
    if (*to == NULL)
        return mla_import_no_memory(import);
    memcpy(*to, from->data, from->bytes);
    return MLA_OK;
}

/* How the file's lists lie. */
static int32_t view_lists(struct mla_import *import, const struct mla_safetensor *t,
                          struct lists *l)
{
    const char *tiled = mla_safetensors_text(import->file, "topk_tiled");
    int64_t axes[4], queries = import->test->sparse.queries;
    l->layout = import->test->sparse;
    l->layout.topk_tiled = tiled != NULL && strcmp(tiled, "1") == 0;
    if (mla_safetensor_elements(t) == 0)
        return mla_import_refuse(import, "tensor '%s': must not be empty", t->name);
    l->entries_n = l->layout.topk_tiled ? 16 * last_axis(t) : last_axis(t);
    l->layout.topk = l->entries_n;
    if (l->layout.topk_tiled) {
        const int64_t due[4] = {(queries + 127) / 128, 16, 128, last_axis(t)};
        int32_t status = mla_import_axes(import, t, 4, "[ceil(S/128), 16, 128, K/16]", axes);
        if (status == MLA_OK && memcmp(axes, due, sizeof due) != 0)
            return mla_import_refuse(import, "tensor '%s': must be [ceil(S/128), 16, 128, K/16]",
                                     t->name);
        return status;
    }
    if (mla_safetensor_elements(t) != queries * l->entries_n)
        return mla_import_refuse(import, "tensor '%s': must be [S, K], with S = %" PRId64, t->name,
                                 queries);
    return MLA_OK;
}

static int32_t add_list(struct mla_import *import, const struct lists *l, int64_t keys)
{
    struct mla_sparse_args *a = &import->test->sparse;
    bool masked = import->options->masked;
    int32_t pad = (int32_t)(keys + a->queries - 1);
    a->topk = masked
                  ? (l->entries_n + MLA_TOPK_MULTIPLE - 1) / MLA_TOPK_MULTIPLE * MLA_TOPK_MULTIPLE
                  : l->entries_n;
    if (a->topk % MLA_TOPK_MULTIPLE != 0)
        return mla_import_refuse(import,
                                 "lists of %" PRId64 " entries: must be a multiple of 128; fill up "
                                 "with -1 and give --pad-index masked",
                                 a->topk);
    struct mla_safetensor *to =
        mla_import_add(import, "topk_indices", a->queries * a->topk, sizeof(int32_t));
    if (to == NULL)
        return mla_import_no_memory(import);
    int32_t *data = (int32_t *)(uintptr_t)to->data;
    for (int64_t q = 0; q < a->queries; q++)
        for (int64_t j = 0; j < a->topk; j++) {
            int64_t index = masked ? entry_of(import, l, keys, q, j)
                                   : l->entries[mla_indices_place(&l->layout, q, j)];
            *data++ = index < 0 ? pad : (int32_t)index;
        }
    to->axes_n = 3;
    to->shape[0] = 1;
    to->shape[1] = a->queries;
    to->shape[2] = a->topk;
    return MLA_OK;
}

static int32_t check_lengths(const struct mla_import *import, const struct mla_safetensor *t,
                             const struct lists *l)
{
    int64_t queries = import->test->sparse.queries;
    if (!import->options->masked)
        return mla_import_refuse(import, "tensor 'topk_length': only with --pad-index masked");
    if (mla_safetensor_elements(t) != queries)
        return mla_import_refuse(import, "tensor 'topk_length': must be [S], with S = %" PRId64,
                                 queries);
    for (int64_t q = 0; q < queries; q++)
        if (l->lengths[q] < 0 || l->lengths[q] > l->entries_n)
            return refuse_entry(import, "topk_length", q, 0, l->lengths[q], "must lie in 0 .. K");
    return MLA_OK;
}

static int32_t make_lists(struct mla_import *import, int64_t keys)
{
    int32_t *entries = NULL, *lengths = NULL;
    struct lists l = {0};
    const struct mla_safetensor *list = mla_import_find(import, "topk_indices"),
                                *other = mla_import_find(import, "indices"),
                                *length = mla_import_find(import, "topk_length");
    if ((list == NULL) == (other == NULL))
        return mla_import_refuse(import, "tensor 'topk_indices' (or 'indices') must be there once");
    list = list == NULL ? other : list;
    int32_t status = view_lists(import, list, &l);
    status = status != MLA_OK ? status : copy_i32(import, list, &entries);
    l.entries = entries;
    if (status == MLA_OK && length != NULL) {
        status = copy_i32(import, length, &lengths);
        l.lengths = lengths;
        status = status != MLA_OK ? status : check_lengths(import, length, &l);
    }
    if (status == MLA_OK && !import->options->masked)
        status = check_entries(import, &l, keys);
    status = status != MLA_OK ? status : add_list(import, &l, keys);
    free(entries);
    free(lengths);
    return status;
}

/* ---- the operation ---- */

int32_t mla_import_sparse(struct mla_import *import)
{
    struct source cache;
    struct mla_sparse_args *a = &import->test->sparse;
    bool masked = import->options->masked;
    int32_t status = add_queries(import);
    status = status != MLA_OK ? status : find_source(import, "c_kv", "k_pe", "kv", &cache);
    if (status != MLA_OK)
        return status;
    if (cache.width != a->rope)
        return mla_import_refuse(
            import, "tensor '%s': a RoPE width of %" PRId64 ", but that of the queries is %" PRId64,
            cache.rope->name, cache.width, a->rope);
    if (cache.rows > INT32_MAX - a->queries)
        return mla_import_refuse(import, "tensor '%s': more rows than an index can name",
                                 cache.latent->name);
    if (a->dense && masked)
        return mla_import_refuse(import, "--pad-index: a dense call has no index lists");
    status = add_source(import, &cache, "c_kv", "k_pe", masked ? a->queries : 0);
    if (status == MLA_OK && !a->dense)
        status = make_lists(import, cache.rows);
    a->topk_tiled = 0;
    a->keys = cache.rows + (masked ? a->queries : 0);
    if (masked) {
        a->has_q_pos_offset = 1;
        a->q_pos_offset = cache.rows - 1;
    }
    return status;
}
