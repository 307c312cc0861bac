/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_sequence.c - earlier calls, on memory of their own or on that of the call to come.
 */
#include "fuzz/judge_sequence.h"

#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"

/* Do all tensors of one call fit into those of the other? */
static bool fits(const struct mla_tensors *small, const struct mla_tensors *large)
{
    bool ok = small->test.op == large->test.op && small->n == large->n;
    for (size_t i = 0; ok && i < small->n; i++)
        ok = small->list[i].guard.bytes <= large->list[i].guard.bytes;
    return ok;
}

bool mla_sequence_make(struct mla_sequence *sequence, const struct mla_relation *relation,
                       const struct mla_kernel *kernel, const struct mla_tensors *first,
                       struct mla_tensors *last, char error[MLA_CASE_ERROR_MAX])
{
    struct mla_earlier earlier;
    memset(sequence, 0, sizeof *sequence);
    sequence->kernel = kernel;
    sequence->first = first;
    sequence->last = last;
    sequence->is_beside = relation->is_beside;
    for (int i = 0; i < MLA_RELATION_EARLIER_MAX && relation->earlier != NULL &&
                    relation->earlier(&last->test, i, &earlier);
         i++) {
        struct mla_verdict unoffered = {.relation = ""};
        struct mla_tensors *tensors;
        mla_case_set_data(&earlier.test,
                          ""); /* other shapes have no file, other contents no need */
        if (mla_tensors_make(&earlier.test, 0, &tensors, error) != MLA_OK)
            return false;
        if (!mla_judge_offered(tensors, kernel, &unoffered)) {
            mla_tensors_free(tensors);
            continue;
        }
        sequence->earlier[sequence->n] = tensors;
        sequence->in_place[sequence->n++] = earlier.in_place && fits(tensors, last);
    }
    return true;
}

void mla_sequence_free(struct mla_sequence *sequence)
{
    for (int i = 0; i < sequence->n; i++)
        mla_tensors_free(sequence->earlier[i]);
    sequence->n = 0;
}

/* The inputs of one call to the places of another. */
static void load(const struct mla_tensors *from, struct mla_tensors *to)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->list[i].role == MLA_TENSOR_INPUT)
            memcpy(to->list[i].guard.data, from->list[i].guard.data, from->list[i].guard.bytes);
}

/* The arguments of an earlier call with the pointers of the last one, which get its own back. */
static void call_in_place(const struct mla_kernel *kernel, const struct mla_tensors *earlier,
                          struct mla_tensors *last)
{
    struct mla_ring_args ring = last->ring;
    struct mla_sparse_args sparse = last->sparse;
    struct mla_call call;
    load(earlier, last);
    last->ring = earlier->ring;
    last->ring.q = ring.q;
    last->ring.kv = ring.kv;
    last->ring.gathered = ring.gathered;
    last->ring.out = ring.out;
    last->ring.stats = ring.stats;
    last->sparse = earlier->sparse;
    last->sparse.q_lift = sparse.q_lift;
    last->sparse.q_pe = sparse.q_pe;
    last->sparse.c_kv = sparse.c_kv;
    last->sparse.k_pe = sparse.k_pe;
    last->sparse.topk_indices = sparse.topk_indices;
    last->sparse.out = sparse.out;
    last->sparse.stats = sparse.stats;
    mla_call_make(kernel, last, 0, &call);
    last->ring = ring;
    last->sparse = sparse;
}

void mla_sequence_run(void *context)
{
    struct mla_sequence *sequence = context;
    struct mla_call call;
    for (int i = 0; i < sequence->n; i++)
        if (sequence->in_place[i])
            call_in_place(sequence->kernel, sequence->earlier[i], sequence->last);
        else
            mla_call_make(sequence->kernel, sequence->earlier[i], 0, &call);
    load(sequence->first, sequence->last);
    mla_tensors_reset(sequence->last);
}
