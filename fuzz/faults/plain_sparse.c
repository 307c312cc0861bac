/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_sparse.c - the sparse operation, plainly: for every query row, list its cache rows, attend.
 */
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_list.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Where a fault stores latent l of a head. */
static int64_t faulty_column(const struct mla_sparse_args *args, enum mla_plain_fault fault,
                             int64_t right, int64_t l)
{
    int64_t quarter = args->latent / 4;
    bool is_natural = args->out_order == MLA_OUT_NATURAL;
    switch (fault) {
    case MLA_FAULT_NATURAL_ORDER:
        return l;
    case MLA_FAULT_NATURAL_ORDER_IGNORED:
        return l % 4 * quarter + l / 4;
    case MLA_FAULT_PACK_INVERSE:
        return is_natural ? l : l % quarter * 4 + l / quarter;
    case MLA_FAULT_PACK_ONE_STEP: /* the 4-pack is twice the split into even and odd */
        return is_natural ? l : l % 2 * (args->latent / 2) + l / 2;
    case MLA_FAULT_PACK_WRONG_GROUP:
        return is_natural ? l : (l + 1) % 4 * quarter + l / 4;
    default:
        return right;
    }
}

static int64_t out_column(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                          int64_t l)
{
    int64_t right = args->out_order == MLA_OUT_NATURAL ? l : l % 4 * (args->latent / 4) + l / 4;
    int64_t wrong = faulty_column(args, variant.fault, right, l);
    return wrong != right && mla_plain_has(variant, variant.fault) ? wrong : right;
}

static void store_row(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                      int64_t q, int64_t h, const struct mla_plain_row *row)
{
    int64_t plane = q * args->heads + h;
    for (int64_t l = 0; l < args->latent; l++) {
        args->out[plane * args->latent + out_column(args, variant, l)] =
            mla_plain_bf16_bits(row->o[l]);
    }
    if (args->stats) {
        args->stats[plane * 2] = row->max;
        args->stats[plane * 2 + 1] = row->sum;
    }
}

/* Is row q, with so many keys, never stored? */
static bool is_left_out(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                        int64_t q, int64_t keys_n)
{
    int64_t threads = args->threads < 1 ? 1 : args->threads;
    threads = threads < args->queries ? threads : args->queries;
    if (keys_n == 0 && mla_plain_has(variant, MLA_FAULT_EMPTY_ROW_NOT_STORED)) {
        return true;
    }
    if (q >= args->queries / threads * threads &&
        mla_plain_has(variant, MLA_FAULT_LAST_ROWS_LEFT)) {
        return true;
    }
    return mla_plain_core(args, q) > 0 && mla_plain_has(variant, MLA_FAULT_FIRST_CORE_ONLY);
}

/* The row whose query and list are used for output row q. */
static int64_t source_row(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                          int64_t q)
{
    int64_t rows = args->queries / args->cores;
    int64_t strided = q % rows * args->cores + q / rows;
    return strided != q && mla_plain_has(variant, MLA_FAULT_CORE_ROWS_STRIDED) ? strided : q;
}

static void attend_head(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                        int64_t q, int64_t h, struct mla_plain_row *row)
{
    int64_t plane = q * args->heads + h;
    int64_t rope_at = plane * args->rope;
    if (args->rope > 64 && plane > 0 && mla_plain_has(variant, MLA_FAULT_QUERY_ROPE_STRIDE)) {
        rope_at = plane * 64;
    }
    row->head = h;
    mla_plain_row_attend(row, args->q_lift + plane * args->latent, args->q_pe + rope_at, variant);
}

/* An empty row of the first query alone divides by its sum. */
static void spoil_first(struct mla_plain_variant variant, int64_t q, struct mla_plain_row *row)
{
    if (q > 0 || row->keys_n > 0 || !mla_plain_has(variant, MLA_FAULT_EMPTY_FIRST_ROW)) {
        return;
    }
    for (int64_t l = 0; l < row->value_n; l++) {
        row->o[l] = NAN;
    }
}

static void attend_query(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         int64_t q, struct mla_plain_key *keys, struct mla_plain_row *row)
{
    int64_t source = source_row(args, variant, q);
    row->keys_n = mla_plain_list(args, source, variant, keys);
    if (is_left_out(args, variant, q, row->keys_n)) {
        return;
    }
    for (int64_t i = 0; i < args->heads; i++) {
        int64_t h = variant.method == MLA_PLAIN_ROWS_REVERSED ? args->heads - 1 - i : i;
        attend_head(args, variant, source, h, row);
        spoil_first(variant, q, row);
        store_row(args, variant, q, h, row);
    }
}

/* A worker that rounds toward zero, as its thread was left by somebody else. */
static void attend_in_other_mode(const struct mla_sparse_args *args,
                                 struct mla_plain_variant variant, int64_t q,
                                 struct mla_plain_key *keys, struct mla_plain_row *row)
{
    int mode = fegetround();
    if (mla_plain_core(args, q) > 0 && mla_plain_has(variant, MLA_FAULT_WORKER_ROUNDS_DOWN)) {
        fesetround(FE_TOWARDZERO);
    }
    attend_query(args, variant, q, keys, row);
    fesetround(mode);
}

static int32_t attend_rows(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                           int64_t rows_n)
{
    int32_t status = MLA_ERR_NOMEM;
    /* Two more than the list: faults add to it. */
    size_t keys_most = (size_t)(args->dense ? args->keys : args->topk) + 2;
    int64_t parts_n = (int64_t)keys_most / MLA_PLAIN_SPARSE_TILE + 1;
    struct mla_plain_key *keys = calloc(keys_most, sizeof *keys);
    struct mla_plain_row row = {
        .keys = keys,
        .value_n = args->latent,
        .rope_n = args->rope,
        .scale = args->softmax_scale,
        .parts_n = parts_n,
        .tiles_per_part = 1,
        .parts = calloc(mla_plain_parts_floats(parts_n, args->latent + args->rope), sizeof(float)),
        .scores = calloc(keys_most, sizeof *row.scores),
        .head_factors = calloc(keys_most, sizeof *row.head_factors),
        .o = calloc((size_t)args->latent, sizeof *row.o),
        .run = {.last_shift = -INFINITY},
    };
    if (!keys || !row.scores || !row.head_factors || !row.o || !row.parts) {
        goto done;
    }
    for (int64_t i = 0; i < rows_n; i++) {
        int64_t q = variant.method == MLA_PLAIN_ROWS_REVERSED ? rows_n - 1 - i : i;
        if (variant.fault == MLA_FAULT_WORKER_ROUNDS_DOWN) {
            attend_in_other_mode(args, variant, q, keys, &row);
        } else {
            attend_query(args, variant, q, keys, &row);
        }
    }
    status = MLA_OK;
done:
    free(row.o);
    free(row.head_factors);
    free(row.scores);
    free(row.parts);
    free(keys);
    return status;
}

int32_t mla_plain_sparse(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         char *message, size_t message_bytes)
{
    bool ends = false;
    int64_t rows_n = 0;
    int32_t refusal = mla_plain_refuse(args, variant, message, message_bytes, &ends, &rows_n);
    if (ends && rows_n == 0) {
        return refusal;
    }
    int32_t status = attend_rows(args, variant, ends ? rows_n : args->queries);
    if (ends) {
        return refusal;
    }
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", status == MLA_OK ? "" : "out of memory");
    }
    return status;
}
