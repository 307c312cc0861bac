/* SPDX-License-Identifier: Apache-2.0
 *
 * case.c - what can be said about a case from its fields alone: defaults and sizes.
 */
#include "fuzz/case.h"

#include <math.h>
#include <string.h>

void mla_case_init(struct mla_case *test, enum mla_op op)
{
    memset(test, 0, sizeof *test);
    test->op = (int32_t)op;
    mla_case_set_bits(test, MLA_CASE_BITS_ALL);
    test->region = MLA_REGION_NORMAL;
    test->ring = (struct mla_ring_args){.ring_size = 1,
                                        .batch = 1,
                                        .heads = 1,
                                        .q_rows = 32,
                                        .kv_rows = 32,
                                        .kv_batch = 1,
                                        .gathered_rows = 32,
                                        .gathered_batch = 1,
                                        .head_dim = 64,
                                        .head_dim_v = 32,
                                        .logical_n = 32,
                                        .num_links = 1,
                                        .q_chunk_size = 32,
                                        .k_chunk_size = 32};
    test->sparse = (struct mla_sparse_args){.queries = 1,
                                            .keys = 128,
                                            .heads = 16,
                                            .rope = 64,
                                            .topk = 128,
                                            .cores = 1,
                                            .softmax_scale = 0x1.555556p-5f}; /* 576^-0.5 */
}

static void set_version(struct mla_case *test)
{
    test->version = test->data[0] != '\0' ? 3 : test->bits != MLA_CASE_BITS_ALL ? 2 : 1;
}

void mla_case_set_bits(struct mla_case *test, int64_t bits)
{
    test->bits = bits;
    set_version(test);
}

void mla_case_set_data(struct mla_case *test, const char *data)
{
    memset(test->data, 0, sizeof test->data);
    memcpy(test->data, data, strnlen(data, sizeof test->data - 1));
    set_version(test);
}

static int64_t saturate(__int128 value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* Products of up to four non-negative 63-bit numbers, saturating: enough for every tensor here. */
static __int128 product(int64_t a, int64_t b, int64_t c, int64_t d)
{
    __int128 result = (__int128)a * b;
    if (result > INT64_MAX)
        return INT64_MAX;
    result *= c;
    if (result > INT64_MAX)
        return INT64_MAX;
    result *= d;
    return result > INT64_MAX ? INT64_MAX : result;
}

bool mla_case_is_thin(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    return (test->op == MLA_OP_RING ? product(r->kv_batch, r->kv_rows, r->head_dim, 1)
                                    : product(test->sparse.keys, MLA_LATENT, 1, 1)) > INT32_MAX;
}

int64_t mla_case_cache_bytes(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    if (test->op == MLA_OP_RING)
        return saturate(product(saturate(product(r->ring_size, r->kv_batch, 1, 1)), r->kv_rows,
                                r->head_dim, 2));
    return saturate(product(test->sparse.keys, 2 * (MLA_LATENT + test->sparse.rope), 1, 1));
}

/* Rows of one rank's cache that are made: of a thin one the slot's and its neighbours', or the listed
 * ones and theirs. A thin cache without slots or lists counts whole. */
static int64_t cache_rows(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    const int64_t around = 2 * MLA_CASE_NEIGHBOURS + 1;
    if (test->op == MLA_OP_RING)
        return saturate(product(mla_case_is_thin(test) && r->has_slot ? around : r->kv_batch,
                                r->kv_rows, 1, 1));
    if (!mla_case_is_thin(test) || s->dense)
        return s->keys;
    return saturate(product(s->queries, s->topk, around, 1));
}

int64_t mla_case_bytes(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    int64_t rows = cache_rows(test);
    if (test->op == MLA_OP_RING)
        return saturate(r->ring_size *
                        (product(r->batch, r->heads, r->q_rows, 2 * (r->head_dim + r->head_dim_v)) +
                         product(r->batch, r->heads, r->q_rows, 8) +
                         product(rows, r->head_dim, 2, 1) +
                         product(r->gathered_batch, r->gathered_rows, r->head_dim, 2)));
    int64_t slots = s->dense ? 0 : (s->queries + 127) / 128 * 128;
    return saturate(product(s->queries, s->heads, 2 * (2 * MLA_LATENT + s->rope), 1) +
                    product(s->queries, s->heads, 8, 1) +
                    product(rows, 2 * (MLA_LATENT + s->rope), 1, 1) +
                    product(slots, s->topk, 4, 1));
}

int64_t mla_case_truth_bytes(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    bool is_ring = test->op == MLA_OP_RING;
    int64_t all = saturate(is_ring ? product(r->ring_size, r->batch, r->heads, r->q_rows)
                                   : product(s->queries, s->heads, 1, 1));
    int64_t rows = test->rows == 0 || test->rows > all ? all : test->rows;
    int64_t keys = is_ring ? r->logical_n : s->dense ? s->keys : s->topk;
    return saturate(product(rows, keys, 80, 1) + product(rows, mla_case_value_width(test), 48, 1));
}

int64_t mla_case_work(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    if (test->op == MLA_OP_RING)
        return saturate(
            product(r->ring_size * r->batch, r->heads, r->q_rows,
                    saturate(product(r->logical_n, r->head_dim + r->head_dim_v, 1, 1))));
    return saturate(
        product(s->queries, s->heads, s->dense ? s->keys : s->topk, 2 * MLA_LATENT + s->rope));
}

int64_t mla_case_width(const struct mla_case *test)
{
    return test->op == MLA_OP_RING ? test->ring.head_dim : MLA_LATENT + test->sparse.rope;
}

int64_t mla_case_value_width(const struct mla_case *test)
{
    return test->op == MLA_OP_RING ? test->ring.head_dim_v : MLA_LATENT;
}

float mla_case_scale(const struct mla_case *test)
{
    if (test->op == MLA_OP_SPARSE)
        return test->sparse.softmax_scale;
    if (test->ring.has_scale)
        return test->ring.scale;
    return (float)(1.0 / sqrt((double)test->ring.head_dim));
}
