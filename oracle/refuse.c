/* SPDX-License-Identifier: Apache-2.0
 *
 * refuse.c - which calls must be refused, with which status, naming which parameter.
 *
 * One list of rules for each operation, in the order they are binding: the first rule that is
 * broken gives the answer. Written from the definition of the operations, not from the kernels' own
 * check. Every product is formed in 128 bits or by a multiplication that saturates, so no value of
 * any parameter can wrap.
 */
#include "oracle/oracle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Largest element count and byte size of a tensor. */
#define BYTES_MAX (INT64_MAX / 2)

static struct mla_refusal accept(void)
{
    return (struct mla_refusal){.status = MLA_OK};
}

static bool is_refused(const struct mla_refusal *refusal)
{
    return refusal->status != MLA_OK;
}

/* A refusal whose value no test compares. */
static struct mla_refusal refuse_any(int32_t status, const char *field)
{
    struct mla_refusal refusal = {.status = status};

    (void)snprintf(refusal.field, sizeof refusal.field, "%s", field);
    return refusal;
}

static struct mla_refusal refuse(int32_t status, const char *field, int64_t value)
{
    struct mla_refusal refusal = refuse_any(status, field);

    (void)snprintf(refusal.value, sizeof refusal.value, "%" PRId64, value);
    return refusal;
}

/* A real number: its decimal form is compared only where there is just one, a short integer. */
static struct mla_refusal refuse_real(int32_t status, const char *field, float value)
{
    if (isfinite(value) && value != 0.0f && value == rintf(value) && fabsf(value) <= 999999.0f) {
        return refuse(status, field, (int64_t)value);
    }
    return refuse_any(status, field);
}

/* One integer parameter and the closed range it must lie in. */
struct range {
    const char *field;
    int64_t value;
    int64_t min;
    int64_t max;
};

static struct mla_refusal first_outside(const struct range *ranges, size_t ranges_n, int32_t status)
{
    for (size_t i = 0; i < ranges_n; i++) {
        if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max) {
            return refuse(status, ranges[i].field, ranges[i].value);
        }
    }
    return accept();
}

/* One tensor: element size and up to four extents, all >= 1. */
struct tensor {
    const char *field;
    int64_t extents[4];
    int64_t element_bytes;
};

static bool is_too_large(const struct tensor *tensor)
{
    __int128 bytes = tensor->element_bytes;

    for (int i = 0; i < 4; i++) {
        bytes *= tensor->extents[i]; /* <= 2^62 * 2^63: cannot wrap */
        if (bytes > BYTES_MAX) {
            return true;
        }
    }
    return false;
}

static struct mla_refusal first_too_large(const struct tensor *tensors, size_t tensors_n)
{
    for (size_t i = 0; i < tensors_n; i++) {
        if (is_too_large(&tensors[i])) {
            return refuse_any(MLA_ERR_SHAPE, tensors[i].field);
        }
    }
    return accept();
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- ring -------------------------------------------------------------------------------------*/

/*
 * The pointers of one tensor: the array itself, then its entries. entries is the array seen as
 * addresses; whether an entry is null is all that is read.
 */
static struct mla_refusal ring_null_in(const char *field, const void *array,
                                       const void *const *entries, int64_t ring_size)
{
    if (array == NULL) {
        return refuse(MLA_ERR_PARAM, field, 0);
    }
    if (ring_size < 1 || ring_size > MLA_RING_SIZE_MAX) {
        return accept();
    }
    for (int64_t d = 0; d < ring_size; d++) {
        if (entries[d] == NULL) {
            char name[32];

            (void)snprintf(name, sizeof name, "%s[%d]", field, (int)d);
            return refuse(MLA_ERR_PARAM, name, 0);
        }
    }
    return accept();
}

static struct mla_refusal ring_null(const struct mla_ring_args *a)
{
    const void *entries[5][MLA_RING_SIZE_MAX];
    const bool readable = a->ring_size >= 1 && a->ring_size <= MLA_RING_SIZE_MAX;
    const struct {
        const char *field;
        const void *array;
    } arrays[5] = {{"q", a->q},
                   {"kv", a->kv},
                   {"gathered", a->gathered},
                   {"out", a->out},
                   {"stats", a->stats}};

    for (int64_t d = 0; readable && d < a->ring_size; d++) {
        entries[0][d] = a->q != NULL ? a->q[d] : NULL;
        entries[1][d] = a->kv != NULL ? a->kv[d] : NULL;
        entries[2][d] = a->gathered != NULL ? a->gathered[d] : NULL;
        entries[3][d] = a->out != NULL ? a->out[d] : NULL;
        entries[4][d] = a->stats != NULL ? a->stats[d] : NULL;
    }
    for (int i = 0; i < 5; i++) {
        if (i == 4 && a->stats == NULL) {
            break; /* the one optional tensor */
        }
        const struct mla_refusal refusal =
            ring_null_in(arrays[i].field, arrays[i].array, entries[i], a->ring_size);

        if (is_refused(&refusal)) {
            return refusal;
        }
    }
    return accept();
}

static struct mla_refusal ring_ranges(const struct mla_ring_args *a)
{
    const struct range ranges[] = {
        {"ring_size", a->ring_size, 1, MLA_RING_SIZE_MAX},
        {"batch", a->batch, 1, INT64_MAX},
        {"heads", a->heads, 1, INT64_MAX},
        {"q_rows", a->q_rows, 1, INT64_MAX},
        {"kv_rows", a->kv_rows, 1, INT64_MAX},
        {"kv_batch", a->kv_batch, 1, INT64_MAX},
        {"gathered_batch", a->gathered_batch, 1, INT64_MAX},
        {"num_links", a->num_links, 1, INT64_MAX},
        {"threads", a->threads, 0, INT64_MAX},
        {"topology", a->topology, MLA_TOPOLOGY_RING, MLA_TOPOLOGY_LINEAR},
        {"has_scale", a->has_scale, 0, 1},
        {"is_balanced", a->is_balanced, 0, 1},
        {"has_slot", a->has_slot, 0, 1},
        {"has_prior", a->has_prior, 0, 1},
        {"dim", a->dim, 2, 2},
    };

    return first_outside(ranges, COUNT(ranges), MLA_ERR_PARAM);
}

static struct mla_refusal ring_heads(const struct mla_ring_args *a)
{
    if (a->kv_heads != 1) {
        return refuse(MLA_ERR_SHAPE, "kv_heads", a->kv_heads);
    }
    if (a->kv_head_dim != a->head_dim) {
        return refuse(MLA_ERR_SHAPE, "kv_head_dim", a->kv_head_dim);
    }
    return accept();
}

static struct mla_refusal ring_tiles(const struct mla_ring_args *a)
{
    if (a->q_rows % MLA_TILE != 0) {
        return refuse(MLA_ERR_SHAPE, "q_rows", a->q_rows);
    }
    if (a->kv_rows % MLA_TILE != 0) {
        return refuse(MLA_ERR_SHAPE, "kv_rows", a->kv_rows);
    }
    if (a->head_dim % 32 != 0) {
        return refuse(MLA_ERR_SHAPE, "head_dim", a->head_dim);
    }
    if (a->head_dim_v % 32 != 0 || a->head_dim_v <= 0 || a->head_dim_v >= a->head_dim) {
        return refuse(MLA_ERR_SHAPE, "head_dim_v", a->head_dim_v);
    }
    if (a->q_chunk_size < MLA_TILE || a->q_chunk_size % MLA_TILE != 0) {
        return refuse(MLA_ERR_SHAPE, "q_chunk_size", a->q_chunk_size);
    }
    if (a->k_chunk_size < MLA_TILE || a->k_chunk_size % MLA_TILE != 0) {
        return refuse(MLA_ERR_SHAPE, "k_chunk_size", a->k_chunk_size);
    }
    if (a->q_rows > a->kv_rows) {
        return refuse(MLA_ERR_SHAPE, "q_rows", a->q_rows);
    }
    return accept();
}

static struct mla_refusal ring_batches(const struct mla_ring_args *a)
{
    if (!a->has_slot && a->kv_batch != a->batch) {
        return refuse(MLA_ERR_SHAPE, "kv_batch", a->kv_batch);
    }
    if (!a->has_slot && a->gathered_batch != a->batch) {
        return refuse(MLA_ERR_SHAPE, "gathered_batch", a->gathered_batch);
    }
    if (a->gathered_rows < (__int128)a->ring_size * a->kv_rows) {
        return refuse(MLA_ERR_SHAPE, "gathered_rows", a->gathered_rows);
    }
    return accept();
}

static struct mla_refusal ring_sizes(const struct mla_ring_args *a)
{
    const struct tensor tensors[] = {
        {"q", {a->batch, a->heads, a->q_rows, a->head_dim}, 2},
        {"kv", {a->kv_batch, 1, a->kv_rows, a->head_dim}, 2},
        {"gathered", {a->gathered_batch, 1, a->gathered_rows, a->head_dim}, 2},
        {"out", {a->batch, a->heads, a->q_rows, a->head_dim_v}, 2},
        {"stats", {a->batch, a->heads, 2, a->q_rows}, 4},
    };

    return first_too_large(tensors, COUNT(tensors));
}

static struct mla_refusal ring_length(const struct mla_ring_args *a)
{
    if (a->logical_n <= 0 || a->logical_n > (__int128)a->ring_size * a->kv_rows) {
        return refuse(MLA_ERR_PARAM, "logical_n", a->logical_n);
    }
    return accept();
}

static struct mla_refusal ring_balanced(const struct mla_ring_args *a)
{
    if (!a->is_balanced) {
        return accept();
    }
    if (a->has_prior) {
        return refuse(MLA_ERR_PARAM, "kv_actual_isl", a->kv_actual_isl);
    }
    if (a->q_rows != a->kv_rows) {
        return refuse(MLA_ERR_PARAM, "q_rows", a->q_rows);
    }
    if ((a->q_rows / 2) % a->q_chunk_size != 0) {
        return refuse(MLA_ERR_PARAM, "q_chunk_size", a->q_chunk_size);
    }
    if (a->logical_n != (__int128)a->ring_size * a->kv_rows) {
        return refuse(MLA_ERR_PARAM, "logical_n", a->logical_n);
    }
    return accept();
}

static struct mla_refusal ring_slot(const struct mla_ring_args *a)
{
    if (!a->has_slot) {
        return accept();
    }
    if (a->kv_cache_batch_idx < 0 || a->kv_cache_batch_idx >= a->kv_batch) {
        return refuse(MLA_ERR_PARAM, "kv_cache_batch_idx", a->kv_cache_batch_idx);
    }
    if (a->batch != 1) {
        return refuse(MLA_ERR_PARAM, "batch", a->batch);
    }
    if (a->gathered_batch != 1 && a->gathered_batch != a->kv_batch) {
        return refuse(MLA_ERR_PARAM, "gathered_batch", a->gathered_batch);
    }
    return accept();
}

static struct mla_refusal ring_prior(const struct mla_ring_args *a)
{
    const __int128 fresh = (__int128)a->logical_n - a->kv_actual_isl;

    if (!a->has_prior) {
        return accept();
    }
    if (a->kv_actual_isl < 0) {
        return refuse(MLA_ERR_PARAM, "kv_actual_isl", a->kv_actual_isl);
    }
    if (a->q_rows >= a->kv_rows) {
        return refuse(MLA_ERR_PARAM, "q_rows", a->q_rows);
    }
    if (a->kv_rows % a->q_rows != 0) {
        return refuse(MLA_ERR_PARAM, "kv_rows", a->kv_rows);
    }
    if (a->kv_actual_isl % MLA_TILE != 0) {
        return refuse(MLA_ERR_PARAM, "kv_actual_isl", a->kv_actual_isl);
    }
    if (fresh % MLA_TILE != 0 || fresh <= 0 || fresh > (__int128)a->ring_size * a->q_rows) {
        return refuse(MLA_ERR_PARAM, "logical_n", a->logical_n);
    }
    return accept();
}

static struct mla_refusal ring_chunked(const struct mla_ring_args *a)
{
    const __int128 rounded_up = ((__int128)a->logical_n + MLA_TILE - 1) / MLA_TILE * MLA_TILE;

    if (a->has_prior || a->q_rows >= a->kv_rows) {
        return accept();
    }
    if (a->kv_rows % a->q_rows != 0) {
        return refuse(MLA_ERR_PARAM, "kv_rows", a->kv_rows);
    }
    if (rounded_up < (__int128)a->ring_size * a->q_rows) {
        return refuse(MLA_ERR_PARAM, "logical_n", a->logical_n);
    }
    return accept();
}

static struct mla_refusal ring_scale(const struct mla_ring_args *a)
{
    if (a->has_scale && !(isfinite(a->scale) && a->scale > 0.0f)) {
        return refuse_real(MLA_ERR_PARAM, "scale", a->scale);
    }
    return accept();
}

struct mla_refusal mla_refuse_ring(const struct mla_ring_args *args)
{
    static struct mla_refusal (*const rules[])(const struct mla_ring_args *) = {
        ring_null,   ring_ranges,   ring_heads, ring_tiles, ring_batches, ring_sizes,
        ring_length, ring_balanced, ring_slot,  ring_prior, ring_chunked, ring_scale,
    };

    if (args == NULL) {
        return refuse(MLA_ERR_PARAM, "args", 0);
    }
    if (args->struct_size != sizeof *args) {
        return refuse(MLA_ERR_PARAM, "struct_size", args->struct_size);
    }
    for (size_t i = 0; i < COUNT(rules); i++) {
        const struct mla_refusal refusal = rules[i](args);

        if (is_refused(&refusal)) {
            return refusal;
        }
    }
    return accept();
}

/* ---- sparse -----------------------------------------------------------------------------------*/

static struct mla_refusal sparse_null(const struct mla_sparse_args *a)
{
    const struct {
        const char *field;
        const void *pointer;
    } inputs[] = {{"q_lift", a->q_lift}, {"q_pe", a->q_pe}, {"c_kv", a->c_kv}, {"k_pe", a->k_pe}};

    for (size_t i = 0; i < COUNT(inputs); i++) {
        if (inputs[i].pointer == NULL) {
            return refuse(MLA_ERR_PARAM, inputs[i].field, 0);
        }
    }
    if (a->dense == 0 && a->topk_indices == NULL) {
        return refuse(MLA_ERR_PARAM, "topk_indices", 0);
    }
    if (a->dense != 0 && a->topk_indices != NULL) {
        return refuse_any(MLA_ERR_PARAM, "topk_indices");
    }
    if (a->out == NULL) {
        return refuse(MLA_ERR_PARAM, "out", 0);
    }
    return accept();
}

static struct mla_refusal sparse_ranges(const struct mla_sparse_args *a)
{
    const struct range ranges[] = {
        {"queries", a->queries, 1, INT64_MAX},
        {"keys", a->keys, 1, INT64_MAX},
        {"cores", a->cores, 1, INT64_MAX},
        {"threads", a->threads, 0, INT64_MAX},
        {"topk_tiled", a->topk_tiled, 0, 1},
        {"dense", a->dense, 0, 1},
        {"has_q_pos_offset", a->has_q_pos_offset, 0, 1},
        {"out_order", a->out_order, MLA_OUT_MX4, MLA_OUT_NATURAL},
    };
    const struct mla_refusal refusal = first_outside(ranges, COUNT(ranges), MLA_ERR_PARAM);

    if (is_refused(&refusal)) {
        return refusal;
    }
    if (!(isfinite(a->softmax_scale) && a->softmax_scale > 0.0f)) {
        return refuse_real(MLA_ERR_PARAM, "softmax_scale", a->softmax_scale);
    }
    if (a->has_q_pos_offset && a->q_pos_offset < 0) {
        return refuse(MLA_ERR_PARAM, "q_pos_offset", a->q_pos_offset);
    }
    return accept();
}

static struct mla_refusal sparse_shape(const struct mla_sparse_args *a)
{
    if (a->batch != 1) {
        return refuse(MLA_ERR_SHAPE, "batch", a->batch);
    }
    if (a->latent != MLA_LATENT) {
        return refuse(MLA_ERR_SHAPE, "latent", a->latent);
    }
    if (a->heads < 1 || a->heads > MLA_SPARSE_HEADS_MAX || a->heads % 16 != 0) {
        return refuse(MLA_ERR_SHAPE, "heads", a->heads);
    }
    if (a->rope < 1 || a->rope > MLA_ROPE_MAX) {
        return refuse(MLA_ERR_SHAPE, "rope", a->rope);
    }
    if (!a->dense && (a->topk < 1 || a->topk % MLA_TOPK_MULTIPLE != 0)) {
        return refuse(MLA_ERR_SHAPE, "topk", a->topk);
    }
    if (a->queries % a->cores != 0) {
        return refuse(MLA_ERR_SHAPE, "queries", a->queries);
    }
    return accept();
}

static struct mla_refusal sparse_sizes(const struct mla_sparse_args *a)
{
    /* The tiled list holds whole tiles of 128 rows. */
    const int64_t tiles = a->queries / 128 + (a->queries % 128 != 0);
    const bool listed = !a->dense;
    const struct tensor tensors[] = {
        {"q_lift", {a->queries, a->heads, a->latent, 1}, 2},
        {"q_pe", {a->queries, a->heads, a->rope, 1}, 2},
        {"c_kv", {a->keys, a->latent, 1, 1}, 2},
        {"k_pe", {a->keys, a->rope, 1, 1}, 2},
        {"topk_indices",
         {!listed         ? 1
          : a->topk_tiled ? tiles
                          : a->queries,
          listed ? a->topk : 1, listed && a->topk_tiled ? 128 : 1, 1},
         4},
        {"out", {a->queries, a->heads, a->latent, 1}, 2},
        {"stats", {a->queries, a->heads, 2, 1}, 4},
    };

    return first_too_large(tensors, COUNT(tensors));
}

/* Entry j of row q in either layout; in the tiled one a row's list is spread over 16 sub-rows. */
static int32_t listed_index(const struct mla_sparse_args *a, int64_t q, int64_t j)
{
    if (!a->topk_tiled) {
        return a->topk_indices[q * a->topk + j];
    }
    const int64_t per_sub_row = a->topk / 16;
    const int64_t block = (q / 128) * 16 + (q % 128) / 8;
    const int64_t sub_row = 16 * (q % 8) + j % 16;

    return a->topk_indices[(block * 128 + sub_row) * per_sub_row + j / 16];
}

/*
 * The order in which a kernel looks through the list is its own affair: the value is binding only
 * if all bad entries hold the same one.
 */
static struct mla_refusal sparse_indices(const struct mla_sparse_args *a)
{
    struct mla_refusal refusal = accept();
    int32_t bad = 0;

    for (int64_t q = 0; !a->dense && q < a->queries; q++) {
        for (int64_t j = 0; j < a->topk; j++) {
            const int32_t index = listed_index(a, q, j);

            if (index >= 0 && index < a->keys) {
                continue;
            }
            if (is_refused(&refusal) && index != bad) {
                return refuse_any(MLA_ERR_INDEX, "topk_indices");
            }
            bad = index;
            refusal = refuse(MLA_ERR_INDEX, "topk_indices", bad);
        }
    }
    return refusal;
}

struct mla_refusal mla_refuse_sparse(const struct mla_sparse_args *args)
{
    static struct mla_refusal (*const rules[])(const struct mla_sparse_args *) = {
        sparse_null, sparse_ranges, sparse_shape, sparse_sizes, sparse_indices,
    };

    if (args == NULL) {
        return refuse(MLA_ERR_PARAM, "args", 0);
    }
    if (args->struct_size != sizeof *args) {
        return refuse(MLA_ERR_PARAM, "struct_size", args->struct_size);
    }
    for (size_t i = 0; i < COUNT(rules); i++) {
        const struct mla_refusal refusal = rules[i](args);

        if (is_refused(&refusal)) {
            return refusal;
        }
    }
    return accept();
}
