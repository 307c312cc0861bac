/* SPDX-License-Identifier: Apache-2.0
 *
 * validate.c - the refusal tables of both operations, one function for each row.
 *
 * The order of the rows, and of the rules within a row, is binding. A row may rely on all rows
 * above it (extents are positive, tensors fit), since it is not entered otherwise.
 */
#include "impl/validate.h"

#include "impl/layout.h"
#include "impl/rules.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define D            "%" PRId64

#define PARAM MLA_ERR_PARAM
#define SHAPE MLA_ERR_SHAPE

/* A product for a message and a comparison: the factors are positive, the result saturates. */
static int64_t product(int64_t a, int64_t b)
{
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

/* ---- ring -------------------------------------------------------------------------------------*/

/* The entries of one per-rank array; the array itself is known to be there. */
static void expect_entries(struct mla_rules *rules, const char *field, const void *const entries[],
                           int64_t entries_n)
{
    char name[32];
    for (int64_t i = 0; i < entries_n; i++) {
        snprintf(name, sizeof name, "%s[%d]", field, (int)i);
        mla_rules_expect_pointer(rules, name, entries[i]);
    }
}

static void ring_pointers(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const struct {
        const char *field;
        const void *array;
    } arrays[] = {
        {"q", a->q}, {"kv", a->kv}, {"gathered", a->gathered}, {"out", a->out}, {"stats", a->stats},
    };
    const bool is_readable = a->ring_size >= 1 && a->ring_size <= MLA_RING_SIZE_MAX;
    const void *entries[MLA_RING_SIZE_MAX];

    for (size_t t = 0; t < COUNT(arrays) && rules->status == MLA_OK; t++) {
        if (arrays[t].array == NULL && t == COUNT(arrays) - 1) {
            break; /* no statistics wanted */
        }
        mla_rules_expect_pointer(rules, arrays[t].field, arrays[t].array);
        if (rules->status != MLA_OK) {
            return; /* there are no entries to read */
        }
        for (int64_t i = 0; is_readable && i < a->ring_size; i++) {
            const void *const of_rank[] = {a->q[i], t >= 1 ? a->kv[i] : NULL,
                                           t >= 2 ? a->gathered[i] : NULL,
                                           t >= 3 ? a->out[i] : NULL, t >= 4 ? a->stats[i] : NULL};
            entries[i] = of_rank[t];
        }
        expect_entries(rules, arrays[t].field, entries, is_readable ? a->ring_size : 0);
    }
}

static void ring_ranges(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const struct mla_rules_range ranges[] = {
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
    mla_rules_expect_ranges(rules, ranges, COUNT(ranges));
}

static void ring_key_shape(struct mla_rules *rules, const struct mla_ring_args *a)
{
    mla_rules_expect(rules, a->kv_heads == 1, SHAPE, "kv_heads", a->kv_heads, "must be 1");
    mla_rules_expect(rules, a->kv_head_dim == a->head_dim, SHAPE, "kv_head_dim", a->kv_head_dim,
                     "must equal head_dim = " D, a->head_dim);
}

static void expect_tiles(struct mla_rules *rules, const char *field, int64_t value, int64_t min)
{
    mla_rules_expect(rules, value >= min && value % MLA_TILE == 0, SHAPE, field, value,
                     "must be a multiple of %d%s", MLA_TILE, min > 0 ? ", at least 32" : "");
}

static void ring_tiles(struct mla_rules *rules, const struct mla_ring_args *a)
{
    expect_tiles(rules, "q_rows", a->q_rows, INT64_MIN);
    expect_tiles(rules, "kv_rows", a->kv_rows, INT64_MIN);
    expect_tiles(rules, "head_dim", a->head_dim, INT64_MIN);
    mla_rules_expect(
        rules, a->head_dim_v % MLA_TILE == 0 && a->head_dim_v > 0 && a->head_dim_v < a->head_dim,
        SHAPE, "head_dim_v", a->head_dim_v,
        "must be a multiple of %d above 0 and below head_dim = " D, MLA_TILE, a->head_dim);
    expect_tiles(rules, "q_chunk_size", a->q_chunk_size, MLA_TILE);
    expect_tiles(rules, "k_chunk_size", a->k_chunk_size, MLA_TILE);
    mla_rules_expect(rules, a->q_rows <= a->kv_rows, SHAPE, "q_rows", a->q_rows,
                     "must not exceed kv_rows = " D, a->kv_rows);
}

static void ring_batches(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const int64_t rows = product(a->ring_size, a->kv_rows);
    mla_rules_expect(rules, a->has_slot != 0 || a->kv_batch == a->batch, SHAPE, "kv_batch",
                     a->kv_batch, "must equal batch = " D " with has_slot = 0", a->batch);
    mla_rules_expect(rules, a->has_slot != 0 || a->gathered_batch == a->batch, SHAPE,
                     "gathered_batch", a->gathered_batch,
                     "must equal batch = " D " with has_slot = 0", a->batch);
    mla_rules_expect(rules, a->gathered_rows >= rows && rows < INT64_MAX, SHAPE, "gathered_rows",
                     a->gathered_rows,
                     "must be at least ring_size*kv_rows (ring_size = " D ", kv_rows = " D ")",
                     a->ring_size, a->kv_rows);
}

static void ring_sizes(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const struct mla_rules_tensor tensors[] = {
        {"q",
         2,
         {{"batch", a->batch},
          {"heads", a->heads},
          {"q_rows", a->q_rows},
          {"head_dim", a->head_dim}}},
        {"kv",
         2,
         {{"kv_batch", a->kv_batch},
          {"kv_rows", a->kv_rows},
          {"head_dim", a->head_dim},
          {NULL, 1}}},
        {"gathered",
         2,
         {{"gathered_batch", a->gathered_batch},
          {"gathered_rows", a->gathered_rows},
          {"head_dim", a->head_dim},
          {NULL, 1}}},
        {"out",
         2,
         {{"batch", a->batch},
          {"heads", a->heads},
          {"q_rows", a->q_rows},
          {"head_dim_v", a->head_dim_v}}},
        {"stats", 4, {{"batch", a->batch}, {"heads", a->heads}, {"2", 2}, {"q_rows", a->q_rows}}},
    };
    mla_rules_expect_sizes(rules, tensors, COUNT(tensors));
}

static void ring_length(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const int64_t rows = product(a->ring_size, a->kv_rows);
    mla_rules_expect(
        rules, a->logical_n >= 1 && a->logical_n <= rows, PARAM, "logical_n", a->logical_n,
        "must lie in 1 .. ring_size*kv_rows = " D " (ring_size = " D ", kv_rows = " D ")", rows,
        a->ring_size, a->kv_rows);
}

static void ring_balanced(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const int64_t half = a->q_rows / 2;
    const int64_t rows = product(a->ring_size, a->kv_rows);
    if (a->is_balanced == 0) {
        return;
    }
    mla_rules_expect(rules, a->has_prior == 0, PARAM, "kv_actual_isl", a->kv_actual_isl,
                     "must be absent (has_prior = %d) with is_balanced = 1", (int)a->has_prior);
    mla_rules_expect(rules, a->q_rows == a->kv_rows, PARAM, "q_rows", a->q_rows,
                     "must equal kv_rows = " D " with is_balanced = 1", a->kv_rows);
    mla_rules_expect(rules, half % a->q_chunk_size == 0, PARAM, "q_chunk_size", a->q_chunk_size,
                     "must divide q_rows/2 = " D " (q_rows = " D ") with is_balanced = 1", half,
                     a->q_rows);
    mla_rules_expect(rules, a->logical_n == rows, PARAM, "logical_n", a->logical_n,
                     "must equal ring_size*kv_rows = " D " (ring_size = " D ", kv_rows = " D
                     ") with is_balanced = 1",
                     rows, a->ring_size, a->kv_rows);
}

static void ring_slot(struct mla_rules *rules, const struct mla_ring_args *a)
{
    if (a->has_slot == 0) {
        return;
    }
    mla_rules_expect(rules, a->kv_cache_batch_idx >= 0 && a->kv_cache_batch_idx < a->kv_batch,
                     PARAM, "kv_cache_batch_idx", a->kv_cache_batch_idx,
                     "must lie in 0 .. kv_batch-1 = " D " (kv_batch = " D ")", a->kv_batch - 1,
                     a->kv_batch);
    mla_rules_expect(rules, a->batch == 1, PARAM, "batch", a->batch, "must be 1 with has_slot = 1");
    mla_rules_expect(rules, a->gathered_batch == 1 || a->gathered_batch == a->kv_batch, PARAM,
                     "gathered_batch", a->gathered_batch,
                     "must be 1 or kv_batch = " D " with has_slot = 1", a->kv_batch);
}

static void ring_prior(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const int64_t prior = a->kv_actual_isl;
    const int64_t new_max = product(a->ring_size, a->q_rows);
    if (a->has_prior == 0) {
        return;
    }
    mla_rules_expect(rules, prior >= 0, PARAM, "kv_actual_isl", prior, "must be at least 0");
    mla_rules_expect(rules, a->q_rows < a->kv_rows, PARAM, "q_rows", a->q_rows,
                     "must be below kv_rows = " D " with has_prior = 1", a->kv_rows);
    mla_rules_expect(rules, a->kv_rows % a->q_rows == 0, PARAM, "kv_rows", a->kv_rows,
                     "must be a multiple of q_rows = " D " with has_prior = 1", a->q_rows);
    mla_rules_expect(rules, prior % MLA_TILE == 0, PARAM, "kv_actual_isl", prior,
                     "must be a multiple of %d", MLA_TILE);
    if (rules->status != MLA_OK) {
        return; /* with prior >= 0 the difference below cannot wrap */
    }
    const int64_t new_n = a->logical_n - prior;
    mla_rules_expect(rules, new_n % MLA_TILE == 0 && new_n > 0 && new_n <= new_max, PARAM,
                     "logical_n", a->logical_n,
                     "logical_n - kv_actual_isl = " D " must be a multiple of %d in 32 .. "
                     "ring_size*q_rows = " D " (kv_actual_isl = " D ", ring_size = " D
                     ", q_rows = " D ")",
                     new_n, MLA_TILE, new_max, prior, a->ring_size, a->q_rows);
}

static void ring_chunked(struct mla_rules *rules, const struct mla_ring_args *a)
{
    const int64_t rows = product(a->ring_size, a->q_rows);
    if (a->has_prior != 0 || a->q_rows >= a->kv_rows) {
        return;
    }
    /* logical_n <= gathered_rows < INT64_MAX/2, so rounding up cannot wrap. */
    const int64_t rounded = (a->logical_n + MLA_TILE - 1) / MLA_TILE * MLA_TILE;
    mla_rules_expect(rules, a->kv_rows % a->q_rows == 0, PARAM, "kv_rows", a->kv_rows,
                     "must be a multiple of q_rows = " D, a->q_rows);
    mla_rules_expect(rules, rounded >= rows, PARAM, "logical_n", a->logical_n,
                     "rounded up to a multiple of %d must be at least ring_size*q_rows = " D
                     " (ring_size = " D ", q_rows = " D ") with q_rows below kv_rows = " D
                     " and has_prior = 0",
                     MLA_TILE, rows, a->ring_size, a->q_rows, a->kv_rows);
}

static void ring_scale(struct mla_rules *rules, const struct mla_ring_args *a)
{
    if (a->has_scale != 0) {
        mla_rules_expect_scale(rules, "scale", a->scale);
    }
}

/* Common to both: the structure itself. The size is read only when there is a structure. */
static void expect_struct(struct mla_rules *rules, const void *args, const uint32_t *struct_size,
                          size_t bytes)
{
    mla_rules_expect_pointer(rules, "args", args);
    if (rules->status == MLA_OK) {
        mla_rules_expect(rules, *struct_size == bytes, PARAM, "struct_size", *struct_size,
                         "must be %zu, the size of the argument structure", bytes);
    }
}

static struct mla_rules begin(char *message, size_t message_bytes)
{
    if (message != NULL && message_bytes > 0) {
        message[0] = '\0';
    }
    return (struct mla_rules){.status = MLA_OK, .message = message, .message_bytes = message_bytes};
}

int32_t mla_validate_ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    static void (*const table[])(struct mla_rules *, const struct mla_ring_args *) = {
        ring_pointers, ring_ranges,   ring_key_shape, ring_tiles, ring_batches, ring_sizes,
        ring_length,   ring_balanced, ring_slot,      ring_prior, ring_chunked, ring_scale,
    };
    struct mla_rules rules = begin(message, message_bytes);

    expect_struct(&rules, args, args != NULL ? &args->struct_size : NULL, sizeof *args);
    for (size_t i = 0; i < COUNT(table) && rules.status == MLA_OK; i++) {
        table[i](&rules, args);
    }
    return rules.status;
}

/* ---- sparse -----------------------------------------------------------------------------------*/

static void sparse_pointers(struct mla_rules *rules, const struct mla_sparse_args *a)
{
    mla_rules_expect_pointer(rules, "q_lift", a->q_lift);
    mla_rules_expect_pointer(rules, "q_pe", a->q_pe);
    mla_rules_expect_pointer(rules, "c_kv", a->c_kv);
    mla_rules_expect_pointer(rules, "k_pe", a->k_pe);
    if (a->dense == 0) {
        mla_rules_expect(rules, a->topk_indices != NULL, PARAM, "topk_indices", 0,
                         "must not be a null pointer with dense = 0");
    } else {
        mla_rules_expect_text(rules, a->topk_indices == NULL, PARAM, "topk_indices", "non-null",
                              "must be a null pointer with dense = %d", (int)a->dense);
    }
    mla_rules_expect_pointer(rules, "out", a->out);
}

static void sparse_ranges(struct mla_rules *rules, const struct mla_sparse_args *a)
{
    const struct mla_rules_range ranges[] = {
        {"queries", a->queries, 1, INT64_MAX},
        {"keys", a->keys, 1, INT64_MAX},
        {"cores", a->cores, 1, INT64_MAX},
        {"threads", a->threads, 0, INT64_MAX},
        {"topk_tiled", a->topk_tiled, 0, 1},
        {"dense", a->dense, 0, 1},
        {"has_q_pos_offset", a->has_q_pos_offset, 0, 1},
        {"out_order", a->out_order, MLA_OUT_MX4, MLA_OUT_NATURAL},
    };
    mla_rules_expect_ranges(rules, ranges, COUNT(ranges));
    mla_rules_expect_scale(rules, "softmax_scale", a->softmax_scale);
    mla_rules_expect(rules, a->has_q_pos_offset == 0 || a->q_pos_offset >= 0, PARAM, "q_pos_offset",
                     a->q_pos_offset, "must be at least 0 with has_q_pos_offset = 1");
}

static void sparse_shape(struct mla_rules *rules, const struct mla_sparse_args *a)
{
    mla_rules_expect(rules, a->batch == 1, SHAPE, "batch", a->batch, "must be 1");
    mla_rules_expect(rules, a->latent == MLA_LATENT, SHAPE, "latent", a->latent, "must be %d",
                     MLA_LATENT);
    mla_rules_expect(rules, a->heads >= 1 && a->heads <= MLA_SPARSE_HEADS_MAX && a->heads % 16 == 0,
                     SHAPE, "heads", a->heads, "must be a multiple of 16 in 16 .. %d",
                     MLA_SPARSE_HEADS_MAX);
    mla_rules_expect(rules, a->rope >= 1 && a->rope <= MLA_ROPE_MAX, SHAPE, "rope", a->rope,
                     "must lie in 1 .. %d", MLA_ROPE_MAX);
    mla_rules_expect(rules, a->dense != 0 || (a->topk >= 1 && a->topk % MLA_TOPK_MULTIPLE == 0),
                     SHAPE, "topk", a->topk,
                     "must be a multiple of %d, at least %d, with dense = 0", MLA_TOPK_MULTIPLE,
                     MLA_TOPK_MULTIPLE);
    mla_rules_expect(rules, a->queries % a->cores == 0, SHAPE, "queries", a->queries,
                     "must be a multiple of cores = " D, a->cores);
}

static void sparse_sizes(struct mla_rules *rules, const struct mla_sparse_args *a)
{
    const int64_t tiles = (a->queries - 1) / 128 + 1;
    const struct mla_rules_tensor tensors[] = {
        {"q_lift",
         2,
         {{"queries", a->queries}, {"heads", a->heads}, {"latent", a->latent}, {NULL, 1}}},
        {"q_pe", 2, {{"queries", a->queries}, {"heads", a->heads}, {"rope", a->rope}, {NULL, 1}}},
        {"c_kv", 2, {{"keys", a->keys}, {"latent", a->latent}, {NULL, 1}, {NULL, 1}}},
        {"k_pe", 2, {{"keys", a->keys}, {"rope", a->rope}, {NULL, 1}, {NULL, 1}}},
        {"topk_indices", 4, {{"queries", a->queries}, {"topk", a->topk}, {NULL, 1}, {NULL, 1}}},
        {"topk_indices",
         4,
         {{"ceil(queries/128)", tiles}, {"16*128", 2048}, {"topk/16", a->topk / 16}, {NULL, 1}}},
        {"out",
         2,
         {{"queries", a->queries}, {"heads", a->heads}, {"latent", a->latent}, {NULL, 1}}},
        {"stats", 4, {{"queries", a->queries}, {"heads", a->heads}, {"2", 2}, {NULL, 1}}},
    };
    mla_rules_expect_sizes(rules, tensors, 4);
    if (a->dense == 0) {
        mla_rules_expect_sizes(rules, &tensors[a->topk_tiled != 0 ? 5 : 4], 1);
    }
    mla_rules_expect_sizes(rules, &tensors[6], 2);
}

/* Rows in order, positions in order; also entries that q_pos_offset would drop. */
static void sparse_indices(struct mla_rules *rules, const struct mla_sparse_args *a)
{
    for (int64_t q = 0; a->dense == 0 && q < a->queries; q++) {
        for (int64_t j = 0; j < a->topk; j++) {
            const int32_t index =
                a->topk_indices[mla_layout_topk_index(a->topk_tiled != 0, a->topk, q, j)];
            if (index >= 0 && index < a->keys) {
                continue;
            }
            mla_rules_expect(rules, false, MLA_ERR_INDEX, "topk_indices", index,
                             "must lie in 0 .. keys-1 = " D " (row " D ", position " D ")",
                             a->keys - 1, q, j);
            return;
        }
    }
}

int32_t mla_validate_sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    static void (*const table[])(struct mla_rules *, const struct mla_sparse_args *) = {
        sparse_pointers, sparse_ranges, sparse_shape, sparse_sizes, sparse_indices,
    };
    struct mla_rules rules = begin(message, message_bytes);

    expect_struct(&rules, args, args != NULL ? &args->struct_size : NULL, sizeof *args);
    for (size_t i = 0; i < COUNT(table) && rules.status == MLA_OK; i++) {
        table[i](&rules, args);
    }
    return rules.status;
}

void mla_validate_outcome(int32_t status, int64_t asked, int64_t used, const char *reason,
                          char *message, size_t message_bytes)
{
    if (status == MLA_OK || message == NULL || message_bytes == 0) {
        return;
    }
    snprintf(message, message_bytes, "threads = " D ": %s (" D " used)", asked,
             reason[0] != '\0' ? reason : "memory could not be had", used);
}
