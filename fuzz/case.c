/* SPDX-License-Identifier: Apache-2.0
 *
 * case.c - what can be said about a case from its fields: defaults, sizes, validity.
 */
#include "fuzz/case.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/arguments.h"
#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "oracle/oracle.h"

void mla_case_init(struct mla_case *test, enum mla_op op)
{
    memset(test, 0, sizeof *test);
    test->op = (int32_t)op;
    test->version = MLA_CASE_VERSION;
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

int64_t mla_case_bytes(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    if (test->op == MLA_OP_RING)
        return saturate(r->ring_size *
                        (product(r->batch, r->heads, r->q_rows, 2 * (r->head_dim + r->head_dim_v)) +
                         product(r->batch, r->heads, r->q_rows, 8) +
                         product(r->kv_batch, r->kv_rows, r->head_dim, 2) +
                         product(r->gathered_batch, r->gathered_rows, r->head_dim, 2)));
    int64_t slots = s->dense ? 0 : (s->queries + 127) / 128 * 128;
    return saturate(product(s->queries, s->heads, 2 * (2 * MLA_LATENT + s->rope), 1) +
                    product(s->queries, s->heads, 8, 1) +
                    product(s->keys, 2 * (MLA_LATENT + s->rope), 1, 1) +
                    product(slots, s->topk, 4, 1));
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

/* What the definition says of the shape alone: pointers stand for themselves, indices are not read.
 */
static struct mla_refusal shape_refusal(const struct mla_case *test)
{
    static const uint16_t element;
    static uint16_t sink;
    if (test->op == MLA_OP_RING) {
        const uint16_t *in[MLA_RING_SIZE_MAX];
        uint16_t *out[MLA_RING_SIZE_MAX];
        for (int i = 0; i < MLA_RING_SIZE_MAX; i++) {
            in[i] = &element;
            out[i] = &sink;
        }
        struct mla_ring_args args = mla_arguments_ring(test);
        args.q = args.kv = in;
        args.gathered = args.out = out;
        return mla_refuse_ring(&args);
    }
    struct mla_sparse_args args = mla_arguments_sparse(test);
    args.q_lift = args.q_pe = args.c_kv = args.k_pe = &element;
    args.out = &sink;
    if (args.dense == 0 && (args.topk < 1 || args.topk % MLA_TOPK_MULTIPLE != 0)) {
        struct mla_refusal refusal = {MLA_ERR_SHAPE, "topk", ""};
        snprintf(refusal.value, sizeof refusal.value, "%" PRId64, args.topk);
        return refusal;
    }
    args.dense = args.dense == 0 ? 1 : args.dense; /* so that no index list is looked for */
    return mla_refuse_sparse(&args);
}

static const char *recipe_problem(const struct mla_case *test, char error[MLA_CASE_ERROR_MAX])
{
    const struct mla_family *family = mla_families(&(size_t){0})[test->family];
    if (!mla_family_knows(test->family, test->region))
        snprintf(error, MLA_CASE_ERROR_MAX, "region = %s: family %s does not know it",
                 mla_case_region_name(test->region), family->name);
    else if (test->amount < family->amount_min || test->amount > family->amount_max)
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "amount = %" PRId64 ": family %s takes %" PRId64 " .. %" PRId64, test->amount,
                 family->name, family->amount_min, family->amount_max);
    else if (test->rows < 0)
        snprintf(error, MLA_CASE_ERROR_MAX, "rows = %" PRId64 ": must be >= 0 (0: all)",
                 test->rows);
    else if (test->has_future && test->future < 0)
        snprintf(error, MLA_CASE_ERROR_MAX, "future = %" PRId64 ": must be >= 0 or -",
                 test->future);
    else
        return NULL;
    return error;
}

const char *mla_case_problem(const struct mla_case *test, int64_t max_bytes,
                             char error[MLA_CASE_ERROR_MAX])
{
    struct mla_refusal refusal = shape_refusal(test);
    if (refusal.status != MLA_OK) {
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "%s = %s: the call must be refused (status %" PRId32
                 "); a case that is to be refused breaks its rule through set=",
                 refusal.field, refusal.value, refusal.status);
        return error;
    }
    if (recipe_problem(test, error) != NULL)
        return error;
    if (mla_case_bytes(test) > max_bytes) {
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "tensors of %" PRId64 " bytes: more than the limit of %" PRId64 " bytes",
                 mla_case_bytes(test), max_bytes);
        return error;
    }
    return NULL;
}
