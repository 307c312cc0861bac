/* SPDX-License-Identifier: Apache-2.0
 *
 * gather.c - from a call and a row to that row's truth.
 *
 * Collects the query row and the rows of all visible keys as pointers into the caller's tensors and
 * hands them to the fast evaluation or to the plain one. No arithmetic happens here.
 */
#include "oracle/truth.h"
#include "oracle/visible.h"

#include <math.h>
#include <stdlib.h>

/* Pointers for n keys, both parts; NULL and false when memory is short. n may be 0. */
static bool allocate_keys(struct mla_oracle_input *input, int64_t n)
{
    const size_t slots = n > 0 ? (size_t)n : 1;

    input->keys_n = n;
    input->keys[0] = calloc(slots, sizeof *input->keys[0]);
    input->keys[1] = calloc(slots, sizeof *input->keys[1]);
    return input->keys[0] != NULL && input->keys[1] != NULL;
}

/* The truth takes over the arrays of keys; *input has none afterwards. */
static int32_t evaluate(struct mla_oracle_input *input, bool is_plain, struct mla_truth **truth)
{
    struct mla_truth *made = calloc(1, sizeof *made);
    bool is_fine = false;
    int32_t status = MLA_OK;

    if (made != NULL && !is_plain) {
        status = mla_oracle_attend(input, made, &is_fine);
        if (status == MLA_OK && !is_fine) {
            mla_truth_free(made);
            made = calloc(1, sizeof *made);
        }
    }
    if (made == NULL) {
        return MLA_ERR_NOMEM;
    }
    if (status == MLA_OK && !is_fine) {
        status = mla_oracle_define(input, made);
    }
    if (status != MLA_OK) {
        mla_truth_free(made);
        return status;
    }
    made->input = *input;
    input->keys[0] = NULL;
    input->keys[1] = NULL;
    *truth = made;
    return MLA_OK;
}

static float ring_scale(const struct mla_ring_args *a)
{
    return a->has_scale ? a->scale : (float)(1.0 / sqrt((double)a->head_dim));
}

/*
 * visit of a truth with keys, from the order of the shards. Whoever cuts shards into chunks relies on
 * a prefix of each being visible, which is checked here.
 */
static int32_t schedule(const struct mla_oracle_visible *visible, const int64_t *order,
                        struct mla_truth *truth)
{
    int64_t n = 0;

    truth->visit = calloc((size_t)visible->keys_n, sizeof *truth->visit);
    if (truth->visit == NULL) {
        return MLA_ERR_NOMEM;
    }
    for (int64_t i = 0; i < truth->input.shards_n; i++) {
        int64_t row = 0;

        for (int64_t j = 0; j < visible->keys_n; j++) {
            if (visible->keys[j].source != order[i]) {
                continue;
            }
            if (visible->keys[j].row != row) {
                return MLA_ERR_INTERNAL;
            }
            truth->visit[n++] = j;
            row++;
        }
    }
    return MLA_OK;
}

static int32_t truth_ring(const struct mla_ring_args *a, struct mla_row row, bool is_plain,
                          struct mla_truth **truth)
{
    struct mla_oracle_input input = {
        .part_n = {a->head_dim, 0}, .columns_n = a->head_dim_v, .scale = ring_scale(a)};
    struct mla_oracle_visible visible;
    int64_t order[MLA_RING_SIZE_MAX];
    int32_t status;

    *truth = NULL;
    if (row.rank < 0 || row.rank >= a->ring_size || row.batch < 0 || row.batch >= a->batch ||
        row.head < 0 || row.head >= a->heads || row.row < 0 || row.row >= a->q_rows) {
        return MLA_ERR_PARAM;
    }
    status = mla_oracle_visible_ring(a, row.rank, row.row, &visible);
    if (status != MLA_OK) {
        return status;
    }
    if (!allocate_keys(&input, visible.keys_n)) {
        status = MLA_ERR_NOMEM;
        goto done;
    }
    const int64_t cache = a->has_slot ? a->kv_cache_batch_idx : row.batch;

    for (int64_t j = 0; j < visible.keys_n; j++) {
        const struct mla_oracle_key key = visible.keys[j];

        input.keys[0][j] = a->kv[key.source] + (cache * a->kv_rows + key.row) * a->head_dim;
    }
    mla_oracle_visiting_order(a, row.rank, order);
    input.chunk_keys = a->k_chunk_size;
    input.shards_n = a->ring_size;
    for (int64_t i = 0; i < a->ring_size; i++) {
        input.shard_n[i] = visible.shard_n[order[i]];
    }
    input.is_pad = visible.is_pad;
    input.query[0] =
        a->q[row.rank] + ((row.batch * a->heads + row.head) * a->q_rows + row.row) * a->head_dim;
    status = evaluate(&input, is_plain, truth);
    if (status == MLA_OK && visible.keys_n > 0) {
        status = schedule(&visible, order, *truth);
        if (status != MLA_OK) {
            mla_truth_free(*truth);
            *truth = NULL;
        }
    }
done:
    free(input.keys[1]);
    free(input.keys[0]);
    mla_oracle_visible_free(&visible);
    return status;
}

static int32_t truth_sparse(const struct mla_sparse_args *a, struct mla_row row, bool is_plain,
                            struct mla_truth **truth)
{
    struct mla_oracle_input input = {
        .part_n = {a->latent, a->rope}, .columns_n = a->latent, .scale = a->softmax_scale};
    struct mla_oracle_visible visible;
    int32_t status;

    *truth = NULL;
    if (row.rank != 0 || row.batch != 0 || row.head < 0 || row.head >= a->heads || row.row < 0 ||
        row.row >= a->queries) {
        return MLA_ERR_PARAM;
    }
    status = mla_oracle_visible_sparse(a, row.row, &visible);
    if (status != MLA_OK) {
        return status;
    }
    if (!allocate_keys(&input, visible.keys_n)) {
        status = MLA_ERR_NOMEM;
        goto done;
    }
    for (int64_t j = 0; j < visible.keys_n; j++) {
        input.keys[0][j] = a->c_kv + visible.keys[j].row * a->latent;
        input.keys[1][j] = a->k_pe + visible.keys[j].row * a->rope;
    }
    input.query[0] = a->q_lift + (row.row * a->heads + row.head) * a->latent;
    input.query[1] = a->q_pe + (row.row * a->heads + row.head) * a->rope;
    status = evaluate(&input, is_plain, truth);
done:
    free(input.keys[1]);
    free(input.keys[0]);
    mla_oracle_visible_free(&visible);
    return status;
}

int32_t mla_truth_ring(const struct mla_ring_args *args, struct mla_row row,
                       struct mla_truth **truth)
{
    return truth_ring(args, row, false, truth);
}

int32_t mla_truth_sparse(const struct mla_sparse_args *args, struct mla_row row,
                         struct mla_truth **truth)
{
    return truth_sparse(args, row, false, truth);
}

int32_t mla_definition_ring(const struct mla_ring_args *args, struct mla_row row,
                            struct mla_truth **truth)
{
    return truth_ring(args, row, true, truth);
}

int32_t mla_definition_sparse(const struct mla_sparse_args *args, struct mla_row row,
                              struct mla_truth **truth)
{
    return truth_sparse(args, row, true, truth);
}
