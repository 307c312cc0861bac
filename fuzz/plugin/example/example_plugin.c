/* SPDX-License-Identifier: Apache-2.0
 *
 * example_plugin.c - a complete plug-in: both MLA operations, written plainly in double.
 *
 * Start here to bring your own kernel: copy this file, mla.h and mla_kernel.h into a directory,
 * replace ring() and sparse(), and describe your arithmetic in the models. The file shows what a
 * plug-in needs: two functions, what they support, what they promise, how they round, and one
 * exported symbol.
 */
#include "mla.h"
#include "mla_kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bf16 -------------------------------------------------------------------------------------*/

static double from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value = 0.0f;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

/*
 * Nearest bf16 to a double, ties to even, in one rounding. (Going through float would round twice,
 * and the model below would have to say so.) bf16 has 8 bits: the spacing at 2^e is 2^(e-7), at
 * least 2^-133.
 */
static uint16_t to_bf16(double value)
{
    int exponent = 0;
    frexp(value, &exponent); /* |value| = f * 2^exponent, 0.5 <= f < 1 */
    int spacing = exponent - 8 > -133 ? exponent - 8 : -133;
    float rounded = (float)ldexp(rint(ldexp(value, -spacing)), spacing);
    uint32_t bits = 0;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* ---- one row ----------------------------------------------------------------------------------*/

/* The keys one query row sees. A key has two pieces: columns that are also the value, and the rest.
 */
struct row {
    const uint16_t **value;
    const uint16_t **rest;
    double *weight;
    double *o;
    int64_t keys_n;
    int64_t value_n;
    int64_t rest_n;
    double scale;
};

static double dot(const uint16_t *a, const uint16_t *b, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += from_bf16(a[i]) * from_bf16(b[i]);
    }
    return sum;
}

/* o[c] = sum_j softmax_j(scale * <q, key_j>) * value_j[c]; +0 for a row without keys. */
static void attend(struct row *row, const uint16_t *q_value, const uint16_t *q_rest)
{
    double max = -(double)INFINITY;
    double sum = 0.0;
    memset(row->o, 0, (size_t)row->value_n * sizeof *row->o);
    for (int64_t j = 0; j < row->keys_n; j++) {
        row->weight[j] =
            dot(q_value, row->value[j], row->value_n) + dot(q_rest, row->rest[j], row->rest_n);
        max = fmax(max, row->weight[j]);
    }
    for (int64_t j = 0; j < row->keys_n; j++) {
        double p = exp((row->weight[j] - max) * row->scale);
        sum += p;
        for (int64_t c = 0; c < row->value_n; c++) {
            row->o[c] += p * from_bf16(row->value[j][c]);
        }
    }
    for (int64_t c = 0; c < row->value_n && row->keys_n > 0; c++) {
        row->o[c] /= sum;
    }
}

static bool row_init(struct row *row, int64_t keys_most, int64_t value_n, int64_t rest_n)
{
    memset(row, 0, sizeof *row);
    row->value = calloc((size_t)keys_most, sizeof *row->value);
    row->rest = calloc((size_t)keys_most, sizeof *row->rest);
    row->weight = calloc((size_t)keys_most, sizeof *row->weight);
    row->o = calloc((size_t)value_n, sizeof *row->o);
    row->value_n = value_n;
    row->rest_n = rest_n;
    return row->value && row->rest && row->weight && row->o;
}

static void row_free(struct row *row)
{
    free(row->o);
    free(row->weight);
    free((void *)row->rest);
    free((void *)row->value);
}

static int32_t answer(int32_t status, const char *text, char *message, size_t message_bytes)
{
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", text);
    }
    return status;
}

/* ---- ring -------------------------------------------------------------------------------------*/

/* Valid calls we do not offer. mlacheck asks first and counts them as unsupported, not as passed.
 */
static bool ring_supports(const struct mla_ring_args *a)
{
    return !a->is_balanced;
}

static int64_t key_position(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    if (a->q_rows == a->kv_rows) {
        return rank * a->kv_rows + row;
    }
    int64_t slab = row / a->q_rows;
    return (slab * a->ring_size + rank) * a->q_rows + row % a->q_rows;
}

/* Position of a query row; -1 for a pad row. */
static int64_t query_position(const struct mla_ring_args *a, int64_t rank, int64_t row)
{
    if (a->q_rows == a->kv_rows) {
        return rank * a->q_rows + row;
    }
    if (!a->has_prior) {
        int64_t end = (a->logical_n + 31) / 32 * 32;
        return end - (a->ring_size - rank) * a->q_rows + row;
    }
    int64_t seen = 0; /* new tokens of this rank, in increasing position */
    for (int64_t g = a->kv_actual_isl; g < a->logical_n; g++) {
        if (g / a->q_rows % a->ring_size == rank && seen++ == row) {
            return g;
        }
    }
    return -1;
}

/* List what the query at pos_q sees. Hidden keys are skipped: weight 0 times NaN would be NaN. */
static void list_ring_keys(const struct mla_ring_args *a, int64_t batch, int64_t pos_q,
                           struct row *row)
{
    row->keys_n = 0;
    for (int64_t rank = 0; rank < a->ring_size; rank++) {
        for (int64_t t = 0; t < a->kv_rows; t++) {
            int64_t pos_k = key_position(a, rank, t);
            if (pos_k <= pos_q && pos_k < a->logical_n) {
                const uint16_t *key = a->kv[rank] + (batch * a->kv_rows + t) * a->head_dim;
                row->value[row->keys_n] = key;
                row->rest[row->keys_n++] = key + a->head_dim_v;
            }
        }
    }
}

static int32_t ring(const struct mla_ring_args *a, char *message, size_t message_bytes)
{
    if (!ring_supports(a)) {
        return answer(MLA_ERR_UNSUPPORTED, "is_balanced = 1: not offered", message, message_bytes);
    }
    struct row row;
    if (!row_init(&row, a->ring_size * a->kv_rows, a->head_dim_v, a->head_dim - a->head_dim_v)) {
        row_free(&row);
        return answer(MLA_ERR_NOMEM, "out of memory", message, message_bytes);
    }
    row.scale = a->has_scale ? (double)a->scale : (double)(float)(1.0 / sqrt((double)a->head_dim));
    int64_t rows_n = a->ring_size * a->batch * a->q_rows;
    for (int64_t i = 0; i < rows_n; i++) {
        int64_t r = i % a->q_rows;
        int64_t b = i / a->q_rows % a->batch;
        int64_t rank = i / a->q_rows / a->batch;
        int64_t pos_q = query_position(a, rank, r);
        list_ring_keys(a, a->has_slot ? a->kv_cache_batch_idx : b, pos_q, &row);
        for (int64_t h = 0; h < a->heads; h++) {
            int64_t at = (b * a->heads + h) * a->q_rows + r;
            const uint16_t *q = a->q[rank] + at * a->head_dim;
            attend(&row, q, q + a->head_dim_v);
            for (int64_t c = 0; c < a->head_dim_v; c++) {
                a->out[rank][at * a->head_dim_v + c] = to_bf16(row.o[c]);
            }
        }
    }
    row_free(&row);
    return answer(MLA_OK, "", message, message_bytes);
}

/* ---- sparse -----------------------------------------------------------------------------------*/

static int64_t listed(const struct mla_sparse_args *a, int64_t q, int64_t j)
{
    if (a->dense) {
        return j;
    }
    if (!a->topk_tiled) {
        return a->topk_indices[q * a->topk + j];
    }
    int64_t partition = q / 128 * 16 + q % 128 / 8;
    int64_t lane = 16 * (q % 8) + j % 16;
    return a->topk_indices[(partition * 128 + lane) * (a->topk / 16) + j / 16];
}

static void list_sparse_keys(const struct mla_sparse_args *a, int64_t q, struct row *row)
{
    int64_t offset = a->has_q_pos_offset ? a->q_pos_offset : 0;
    bool limited = a->dense || a->has_q_pos_offset;
    row->keys_n = 0;
    for (int64_t j = 0; j < (a->dense ? a->keys : a->topk); j++) {
        int64_t index = listed(a, q, j);
        if (limited && index - q > offset) { /* not q + offset, which may overflow */
            continue;
        }
        row->value[row->keys_n] = a->c_kv + index * a->latent;
        row->rest[row->keys_n++] = a->k_pe + index * a->rope;
    }
}

static int32_t sparse(const struct mla_sparse_args *a, char *message, size_t message_bytes)
{
    struct row row;
    if (!row_init(&row, a->dense ? a->keys : a->topk, a->latent, a->rope)) {
        row_free(&row);
        return answer(MLA_ERR_NOMEM, "out of memory", message, message_bytes);
    }
    row.scale = (double)a->softmax_scale;
    for (int64_t i = 0; i < a->queries * a->heads; i++) {
        if (i % a->heads == 0) {
            list_sparse_keys(a, i / a->heads, &row);
        }
        attend(&row, a->q_lift + i * a->latent, a->q_pe + i * a->rope);
        for (int64_t l = 0; l < a->latent; l++) {
            int64_t column = a->out_order == MLA_OUT_NATURAL ? l : l % 4 * (a->latent / 4) + l / 4;
            a->out[i * a->latent + column] = to_bf16(row.o[l]);
        }
    }
    row_free(&row);
    return answer(MLA_OK, "", message, message_bytes);
}

/* ---- what we declare --------------------------------------------------------------------------*/

/*
 * How we round: every line is a statement about the code above. u is 2^-53, double to nearest.
 *
 *   scores     a bf16 x bf16 product is exact; at most one rounded addition for each column
 *   argument   (s - max), then times scale: two roundings
 *   exp        of the C library: 1 ulp in glibc's manual, 4 declared to be safe (2^-50);
 *              0 only below the smallest double
 *   p          not rounded (p_u stays 0), formed with the row's maximum; the sum adds that p
 *   rescales   none: two passes
 *   o, sum     the product p*v, then one addition a key; one division at the end; then to bf16
 *   V          no weight depends on it
 *
 * Fields left out are 0. Declare what you do, not what you hope: a result outside the model is a
 * fault, and a model wider than the code hides faults.
 */
#define MODEL                                                                                      \
    {                                                                                              \
        .add_u = 0x1p-53, .score_depth = {.per_width = 1.0}, .arg_form = MLA_ARG_DIFFERENCE,       \
        .arg_roundings = 2, .exp_error = 0x1p-50, .exp_floor = 0x1p-1074,                          \
        .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1,                                              \
        .acc_depth = {.constant = 1.0, .per_key = 1.0}, .div_roundings = 1,                        \
        .out_round = MLA_OUT_NEAREST, .weights_ignore_v = 1                                        \
    }

/*
 * What we promise. What is left out is not tested: we do not check our arguments (REFUSES,
 * INDEX_CHECKED) and write no statistics (STATS).
 */
static const struct mla_kernel example = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "example",
    .promises = MLA_PROMISE_PAD_ZERO | MLA_PROMISE_NO_FUTURE_LEAK | MLA_PROMISE_SCRATCH_UNTOUCHED |
                MLA_PROMISE_BIT_REPEAT | MLA_PROMISE_BIT_THREADS | MLA_PROMISE_BIT_LAYOUT,
    .ring_model = MODEL,
    .sparse_model = MODEL,
    .ring_supports = ring_supports,
    .ring = ring,
    .sparse = sparse,
};

/* The one symbol mlacheck looks for. */
const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static const struct mla_kernel *const kernels[] = {&example};
    *kernels_n = sizeof kernels / sizeof kernels[0];
    return kernels;
}
