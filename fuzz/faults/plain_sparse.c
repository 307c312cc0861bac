/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_sparse.c - the sparse operation, plainly: for every query row, list its cache rows, attend.
 *
 * The list is the row's multiset in listed order (or 0, 1, ... when dense) without the entries that
 * q_pos_offset drops; tiles are 128 kept entries, so that the number of tiles follows from the
 * number of keys alone, as the declared model needs it.
 */
#include "fuzz/faults/bf16.h"
#include "fuzz/faults/plain_row.h"
#include "impl/validate.h"

#include <stdio.h>
#include <stdlib.h>

/* Entry j of row q. Tiled: row q sits in block q/128, partition (q%128)/8, lanes 16*(q%8) .. +15.
 */
static int64_t listed_index(const struct mla_sparse_args *args, int64_t q, int64_t j)
{
    if (!args->topk_tiled) {
        return args->topk_indices[q * args->topk + j];
    }
    int64_t per_lane = args->topk / 16;
    int64_t in_block = q % 128;
    int64_t partition = (q / 128) * 16 + in_block / 8;
    int64_t lane = 16 * (in_block % 8) + j % 16;
    return args->topk_indices[(partition * 128 + lane) * per_lane + j / 16];
}

/* The largest index row q may use. q_pos_offset may be as large as INT64_MAX: saturate. */
static int64_t last_allowed(const struct mla_sparse_args *args, int64_t q,
                            struct mla_plain_variant variant)
{
    if (!args->dense && !args->has_q_pos_offset) {
        return INT64_MAX;
    }
    int64_t offset = args->has_q_pos_offset ? args->q_pos_offset : 0;
    int64_t last = offset > INT64_MAX - 1 - q ? INT64_MAX - 1 : offset + q;
    if (mla_plain_has(variant, MLA_FAULT_CAUSAL_ONE_MORE)) {
        last += 1;
    }
    if (mla_plain_has(variant, MLA_FAULT_CAUSAL_ONE_LESS)) {
        last -= 1;
    }
    return last;
}

static int64_t list_keys(const struct mla_sparse_args *args, int64_t q,
                         struct mla_plain_variant variant, struct mla_plain_key *keys)
{
    int64_t last = last_allowed(args, q, variant);
    int64_t listed_n = args->dense ? args->keys : args->topk;
    int64_t keys_n = 0;
    for (int64_t j = 0; j < listed_n; j++) {
        int64_t index = args->dense ? j : listed_index(args, q, j);
        if (index > last) {
            continue;
        }
        keys[keys_n] = (struct mla_plain_key){.value = args->c_kv + index * args->latent,
                                              .rope = args->k_pe + index * args->rope,
                                              .tile = keys_n / MLA_PLAIN_SPARSE_TILE};
        keys_n++;
    }
    if (keys_n > 0 && mla_plain_has(variant, MLA_FAULT_LAST_KEY_DROPPED)) {
        keys_n--;
    }
    return keys_n;
}

static int64_t out_column(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                          int64_t l)
{
    if (args->out_order == MLA_OUT_NATURAL || mla_plain_has(variant, MLA_FAULT_NATURAL_ORDER)) {
        return l;
    }
    return (l % 4) * (args->latent / 4) + l / 4;
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

static void attend_query(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         int64_t q, struct mla_plain_key *keys, struct mla_plain_row *row)
{
    row->keys_n = list_keys(args, q, variant, keys);
    for (int64_t h = 0; h < args->heads; h++) {
        int64_t plane = q * args->heads + h;
        row->head = h;
        mla_plain_row_attend(row, args->q_lift + plane * args->latent,
                             args->q_pe + plane * args->rope, variant);
        store_row(args, variant, q, h, row);
    }
}

int32_t mla_plain_sparse(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         char *message, size_t message_bytes)
{
    int32_t status = mla_validate_sparse(args, message, message_bytes);
    if (status != MLA_OK) {
        return status;
    }
    status = MLA_ERR_NOMEM;
    size_t keys_most = (size_t)(args->dense ? args->keys : args->topk);
    struct mla_plain_key *keys = calloc(keys_most, sizeof *keys);
    struct mla_plain_row row = {
        .keys = keys,
        .value_n = args->latent,
        .rope_n = args->rope,
        .scale = args->softmax_scale,
        .parts_n = (int64_t)(keys_most - 1) / MLA_PLAIN_SPARSE_TILE + 1,
        .tiles_per_part = 1,
        .scores = calloc(keys_most, sizeof *row.scores),
        .o = calloc((size_t)args->latent, sizeof *row.o),
    };
    row.parts =
        calloc(mla_plain_parts_floats(row.parts_n, args->latent + args->rope), sizeof *row.parts);
    if (!keys || !row.scores || !row.o || !row.parts) {
        goto done;
    }
    for (int64_t q = 0; q < args->queries; q++) {
        attend_query(args, variant, q, keys, &row);
    }
    status = MLA_OK;
done:
    free(row.parts);
    free(row.o);
    free(row.scores);
    free(keys);
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", status == MLA_OK ? "" : "out of memory");
    }
    return status;
}
