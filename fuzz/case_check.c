/* SPDX-License-Identifier: Apache-2.0
 *
 * case_check.c - can a case be run? Shape, recipe, overrides and violations, before any tensor exists.
 *
 * Validity of a call is the oracle's word (oracle/refuse.c), asked with pointers that stand for
 * themselves; index lists are made valid by construction and not read here.
 */
#include "fuzz/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/arguments.h"
#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/indices.h"
#include "oracle/oracle.h"

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

/* Elements of an input tensor by name and rank; 0 when there is no such tensor. */
static int64_t input_elements(const struct mla_case *test, const char *name, int64_t rank)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    const struct {
        const char *name;
        enum mla_op op;
        __int128 elements;
    } inputs[] = {
        {"q", MLA_OP_RING, (__int128)r->batch * r->heads * r->q_rows * r->head_dim},
        {"kv", MLA_OP_RING, (__int128)r->kv_batch * r->kv_rows * r->head_dim},
        {"q_lift", MLA_OP_SPARSE, (__int128)s->queries * s->heads * MLA_LATENT},
        {"q_pe", MLA_OP_SPARSE, (__int128)s->queries * s->heads * s->rope},
        {"c_kv", MLA_OP_SPARSE, (__int128)s->keys * MLA_LATENT},
        {"k_pe", MLA_OP_SPARSE, (__int128)s->keys * s->rope},
        {"topk_indices", MLA_OP_SPARSE, s->dense ? 0 : mla_indices_elements(s)},
    };
    if (rank < 0 || rank >= (test->op == MLA_OP_RING ? r->ring_size : 1))
        return 0;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if ((int32_t)inputs[i].op == test->op && strcmp(inputs[i].name, name) == 0)
            return inputs[i].elements > INT64_MAX ? INT64_MAX : (int64_t)inputs[i].elements;
    return 0;
}

/* Does a query row read that element of the index tensor? The other slots of the tiled layout may hold
 * anything. */
static bool is_read(const struct mla_sparse_args *s, int64_t at)
{
    for (int64_t q = 0; q < s->queries; q++)
        for (int64_t j = 0; j < s->topk; j++)
            if (mla_indices_place(s, q, j) == at)
                return true;
    return false;
}

static const char *override_problem(const struct mla_case *test, const struct mla_override *o,
                                    char error[MLA_CASE_ERROR_MAX])
{
    int64_t elements = input_elements(test, o->tensor, o->rank);
    bool is_index = strcmp(o->tensor, "topk_indices") == 0;
    if (elements == 0)
        snprintf(error, MLA_CASE_ERROR_MAX, "put = %s.%" PRId64 ": no such input tensor", o->tensor,
                 o->rank);
    else if (o->at < 0 || o->at >= elements)
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "put = %s.%" PRId64 "@%" PRId64 ": element must lie in 0 .. %" PRId64, o->tensor,
                 o->rank, o->at, elements - 1);
    else if (!is_index && o->bits > 0xffff)
        snprintf(error, MLA_CASE_ERROR_MAX, "put = %s: %" PRIx32 " is no bf16 pattern (0 .. ffff)",
                 o->tensor, o->bits);
    else if (is_index && o->bits >= test->sparse.keys && is_read(&test->sparse, o->at))
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "put = topk_indices.0@%" PRId64 ": %" PRId32
                 " is no row of the cache (0 .. %" PRId64
                 "); a call to be refused is written with set",
                 o->at, (int32_t)o->bits, test->sparse.keys - 1);
    else
        return NULL;
    return error;
}

/* An index list broken at one place: is the place there, and the number no cache row? */
static bool breaks_index(const struct mla_case *test, const struct mla_violation *v)
{
    char *end;
    long long number = strtoll(v->value, &end, 10);
    const struct mla_sparse_args *s = &test->sparse;
    return test->op == MLA_OP_SPARSE && !s->dense && v->at >= 0 && v->at < s->queries * s->topk &&
           *end == '\0' && end != v->value && number >= INT32_MIN && number <= INT32_MAX &&
           (number < 0 || number >= s->keys);
}

/* Does the call with its violations have to be refused? */
static bool is_refused(const struct mla_case *test)
{
    static uint16_t element;
    const uint16_t *q[MLA_RING_SIZE_MAX], *kv[MLA_RING_SIZE_MAX];
    uint16_t *gathered[MLA_RING_SIZE_MAX], *out[MLA_RING_SIZE_MAX];
    float *stats[MLA_RING_SIZE_MAX], number;
    struct mla_ring_args ring = mla_arguments_ring(test);
    struct mla_sparse_args sparse = mla_arguments_sparse(test);
    for (int i = 0; i < MLA_RING_SIZE_MAX; i++) {
        q[i] = kv[i] = &element;
        gathered[i] = out[i] = &element;
        stats[i] = &number;
    }
    ring.stats = test->stats ? stats : NULL;
    ring.q = q;
    ring.kv = kv;
    ring.gathered = gathered;
    ring.out = out;
    sparse.q_lift = sparse.q_pe = sparse.c_kv = sparse.k_pe = sparse.out = &element;
    sparse.topk_indices = sparse.dense ? NULL : &(int32_t){0};
    for (size_t i = 0; i < test->set_n; i++) {
        void *args = test->op == MLA_OP_RING ? (void *)&ring : (void *)&sparse;
        bool is_index = strcmp(test->set[i].field, "topk_indices") == 0 &&
                        strcmp(test->set[i].value, "null") != 0;
        if (is_index)
            return true; /* checked by breaks_index; whatever else breaks only changes the status */
        mla_arguments_set((enum mla_op)test->op, args, &test->set[i]);
    }
    if (test->op == MLA_OP_RING)
        return mla_refuse_ring(&ring).status != MLA_OK;
    if (sparse.dense == 0 &&
        (sparse.topk_indices == NULL || sparse.topk < 1 || sparse.topk % MLA_TOPK_MULTIPLE != 0 ||
         sparse.topk >
             INT64_MAX / 8 / (test->sparse.queries + 128))) /* the list's bytes overflow */
        return true;
    if (sparse.dense == 0) { /* so that no index list is looked for */
        sparse.dense = 1;
        sparse.topk_indices = NULL;
    }
    return mla_refuse_sparse(&sparse).status != MLA_OK;
}

static const char *violation_problem(const struct mla_case *test, const struct mla_violation *v,
                                     char error[MLA_CASE_ERROR_MAX])
{
    void *entries[5][MLA_RING_SIZE_MAX] = {{NULL}};
    struct mla_ring_args ring = mla_arguments_ring(test);
    struct mla_sparse_args sparse = mla_arguments_sparse(test);
    void *args = test->op == MLA_OP_RING ? (void *)&ring : (void *)&sparse;
    bool is_index = strcmp(v->field, "topk_indices") == 0 && strcmp(v->value, "null") != 0;
    const char *bracket = strchr(v->field, '[');
    bool no_rank = bracket != NULL && strtoll(bracket + 1, NULL, 10) >= test->ring.ring_size;
    memcpy(&ring.q, &(void *){entries[0]}, sizeof(void *));
    memcpy(&ring.kv, &(void *){entries[1]}, sizeof(void *));
    memcpy(&ring.gathered, &(void *){entries[2]}, sizeof(void *));
    memcpy(&ring.out, &(void *){entries[3]}, sizeof(void *));
    memcpy(&ring.stats, &(void *){entries[4]}, sizeof(void *));
    if (is_index && breaks_index(test, v))
        return NULL;
    if (!is_index && v->at == 0 && !no_rank && mla_arguments_set((enum mla_op)test->op, args, v))
        return NULL;
    snprintf(error, MLA_CASE_ERROR_MAX,
             "set = %s@%" PRId64 ":%s: no such field, position or rule-breaking value", v->field,
             v->at, v->value);
    return error;
}

/* An array that is null has no entry that could be set. */
static bool is_entry_of_null(const struct mla_case *test)
{
    const struct mla_violation *set = test->set;
    size_t n = strlen(set[0].field);
    return test->set_n == 2 && strcmp(set[0].value, "null") == 0 &&
           strncmp(set[1].field, set[0].field, n) == 0 && set[1].field[n] == '[';
}

static const char *change_problem(const struct mla_case *test, char error[MLA_CASE_ERROR_MAX])
{
    for (size_t i = 0; i < test->put_n; i++)
        if (override_problem(test, &test->put[i], error) != NULL)
            return error;
    for (size_t i = 0; i < test->set_n; i++)
        if (violation_problem(test, &test->set[i], error) != NULL)
            return error;
    if (is_entry_of_null(test)) {
        snprintf(error, MLA_CASE_ERROR_MAX, "set = %s@%" PRId64 ":%s: %s is null, without entries",
                 test->set[1].field, test->set[1].at, test->set[1].value, test->set[0].field);
        return error;
    }
    if (test->set_n > 0 && !is_refused(test)) {
        snprintf(error, MLA_CASE_ERROR_MAX, "set = %s@%" PRId64 ":%s: breaks no rule of this call",
                 test->set[0].field, test->set[0].at, test->set[0].value);
        return error;
    }
    return NULL;
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
    else if (test->has_future && test->future < 0)
        snprintf(error, MLA_CASE_ERROR_MAX, "future = %" PRId64 ": must be >= 0 or -",
                 test->future);
    else if (test->data[0] != '\0' &&
             (test->family != 0 || test->region != MLA_REGION_NORMAL || test->amount != 0 ||
              test->has_future || test->bits != MLA_CASE_BITS_ALL))
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "data = file: there is no recipe then: family=upstream region=normal amount=0 "
                 "future=- bits=8");
    else if (test->data[0] != '\0' && mla_case_is_thin(test))
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "data = file: caches of more than 2^31 elements come from recipes only");
    else if (test->bits < 1 || test->bits > MLA_CASE_BITS_ALL)
        snprintf(error, MLA_CASE_ERROR_MAX, "bits = %" PRId64 ": must be 1 .. 8", test->bits);
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
                 "%s%s%s: the call must be refused (status %" PRId32
                 "); a case that is to be refused breaks its rule through set=",
                 refusal.field, refusal.value[0] == '\0' ? "" : " = ", refusal.value,
                 refusal.status);
        return error;
    }
    if (recipe_problem(test, error) != NULL || change_problem(test, error) != NULL)
        return error;
    if (mla_case_is_thin(test) && mla_case_cache_bytes(test) > MLA_CASE_CACHE_MAX) {
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "caches of %" PRId64 " bytes: no more than %" PRId64 " are mapped",
                 mla_case_cache_bytes(test), MLA_CASE_CACHE_MAX);
        return error;
    }
    if (mla_case_bytes(test) > max_bytes) {
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "tensors of %" PRId64 " bytes: more than the limit of %" PRId64 " bytes",
                 mla_case_bytes(test), max_bytes);
        return error;
    }
    if (mla_case_truth_bytes(test) > max_bytes) {
        snprintf(error, MLA_CASE_ERROR_MAX,
                 "rows = %" PRId64 ": the oracle needs %" PRId64
                 " bytes for them, more than the limit of %" PRId64 " bytes",
                 test->rows, mla_case_truth_bytes(test), max_bytes);
        return error;
    }
    return NULL;
}
