/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_memory.c - inputs unchanged, surroundings whole, scratch as allowed, outputs written.
 */
#include <inttypes.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"

static bool surroundings(const struct mla_tensor *tensor, struct mla_verdict *verdict)
{
    int64_t offset;
    if (mla_guard_intact(&tensor->guard, &offset))
        return true;
    return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                            "%s[%" PRId64 "]: byte %" PRId64 " outside its %zu bytes was written",
                            tensor->name, tensor->rank, offset, tensor->guard.bytes);
}

bool mla_judge_inputs(const struct mla_tensors *tensors, struct mla_verdict *verdict)
{
    for (size_t i = 0; i < tensors->n; i++) {
        const struct mla_tensor *tensor = &tensors->list[i];
        if (!surroundings(tensor, verdict))
            return false;
        if (tensor->role == MLA_TENSOR_INPUT && mla_tensor_check(tensor) != tensor->check)
            return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                    "%s[%" PRId64 "]: the input was written", tensor->name,
                                    tensor->rank);
    }
    return true;
}

bool mla_judge_traces(const struct mla_tensors *tensors, const struct mla_call *call,
                      struct mla_verdict *verdict)
{
    const char *left = call->changed_environment ? "the floating-point environment changed"
                       : call->left_process      ? "a process behind"
                       : call->left_thread       ? "a thread behind"
                                                 : NULL;
    if (left != NULL)
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN, "the kernel left %s", left);
    if (!mla_judge_inputs(tensors, verdict))
        return false;
    if (call->input_written < 0)
        return true;
    const struct mla_tensor *tensor = &tensors->list[call->input_written];
    return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                            "%s[%" PRId64 "]: the input was written, with the bytes it held",
                            tensor->name, tensor->rank);
}

/* Nothing but the pattern; no early end, so that it runs at the memory's speed. */
static bool holds_pattern(const uint16_t *words, int64_t n, uint16_t pattern)
{
    uint16_t other = 0;
    for (int64_t i = 0; i < n; i++)
        other |= words[i] ^ pattern;
    return other == 0;
}

bool mla_judge_untouched(const struct mla_tensors *tensors, struct mla_verdict *verdict)
{
    if (!mla_judge_inputs(tensors, verdict))
        return false;
    for (size_t i = 0; i < tensors->n; i++)
        if (tensors->list[i].role != MLA_TENSOR_INPUT &&
            !holds_pattern((const uint16_t *)(const void *)tensors->list[i].guard.data,
                           (int64_t)tensors->list[i].guard.bytes / 2,
                           mla_tensors_pattern16(tensors)))
            return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                    "%s[%" PRId64 "]: a refused call wrote to it",
                                    tensors->list[i].name, tensors->list[i].rank);
    return true;
}

/* A row of gathered: all old bytes, or (where allowed) the source's row. */
static bool row_allowed(const uint16_t *row, const uint16_t *source, uint16_t pattern,
                        int64_t columns)
{
    if (source != NULL && memcmp(row, source, (size_t)columns * sizeof *row) == 0)
        return true;
    return holds_pattern(row, columns, pattern);
}

/* The row of kv that may have come to rest at (batch, row) of gathered, or NULL. */
static const uint16_t *source_row(const struct mla_tensors *t, int64_t batch, int64_t row)
{
    const struct mla_ring_args *a = &t->ring;
    int64_t source = row / a->kv_rows, local = row % a->kv_rows, kv_batch = batch;
    int64_t slab = a->ring_size * a->q_rows;
    int64_t moved = a->has_prior ? (a->logical_n + slab - 1) / slab * a->q_rows : a->kv_rows;
    if (a->has_slot) {
        int64_t place = a->gathered_batch == a->kv_batch ? a->kv_cache_batch_idx : 0;
        if (batch != place)
            return NULL;
        kv_batch = a->kv_cache_batch_idx;
    }
    if (source >= a->ring_size || local >= moved)
        return NULL;
    return t->kv[source] + (kv_batch * a->kv_rows + local) * a->head_dim;
}

bool mla_judge_scratch(struct mla_tensors *tensors, struct mla_verdict *verdict)
{
    const struct mla_ring_args *a = &tensors->ring;
    if (tensors->test.op != MLA_OP_RING)
        return true;
    for (int64_t d = 0; d < a->ring_size; d++)
        for (int64_t b = 0; b < a->gathered_batch; b++)
            for (int64_t r = 0; r < a->gathered_rows; r++) {
                const uint16_t *row =
                    tensors->gathered[d] + (b * a->gathered_rows + r) * a->head_dim;
                if (!row_allowed(row, source_row(tensors, b, r), mla_tensors_pattern16(tensors),
                                 a->head_dim))
                    return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                            "gathered[%" PRId64 "]: row %" PRId64
                                            " of batch %" PRId64
                                            " holds neither its old bytes nor its source's row",
                                            d, r, b);
            }
    return true;
}

/* The query row an element of an output belongs to. */
static int64_t row_of_element(const struct mla_tensors *t, const struct mla_tensor *tensor,
                              int64_t element)
{
    bool is_stats = strcmp(tensor->name, "stats") == 0;
    if (t->test.op == MLA_OP_RING)
        return (is_stats ? element : element / t->ring.head_dim_v) % t->ring.q_rows;
    return element / (t->sparse.heads * (is_stats ? 2 : t->sparse.latent));
}

bool mla_judge_is_free(const struct mla_tensors *tensors, const struct mla_tensor *tensor,
                       int64_t element, uint64_t promises)
{
    if ((promises & MLA_PROMISE_STATS) == 0 && strcmp(tensor->name, "stats") == 0)
        return true;
    return (promises & MLA_PROMISE_PAD_ZERO) == 0 &&
           mla_rows_empty(tensors, tensor->rank, row_of_element(tensors, tensor, element));
}

/* How many elements hold nothing but the pattern; every 16-bit half of it is the same. */
static int64_t count_unwritten(const struct mla_tensor *tensor, uint16_t pattern)
{
    int64_t n = 0, words = (int64_t)tensor->element_bytes / 2;
    const uint16_t *data = (const uint16_t *)(const void *)tensor->guard.data;
    if (words == 1)
        for (int64_t e = 0; e < tensor->elements_n; e++)
            n += data[e] == pattern;
    else
        for (int64_t e = 0; e < tensor->elements_n; e++)
            n += data[2 * e] == pattern && data[2 * e + 1] == pattern;
    return n;
}

/* The first element that holds the pattern and must not, or -1. */
static int64_t find_unwritten(const struct mla_tensors *tensors, const struct mla_tensor *tensor,
                              uint64_t promises)
{
    uint16_t pattern = mla_tensors_pattern16(tensors);
    int64_t words = (int64_t)tensor->element_bytes / 2, row = -1;
    const uint16_t *data = (const uint16_t *)(const void *)tensor->guard.data;
    bool is_free = false;
    for (int64_t e = 0; e < tensor->elements_n; e++) {
        if (data[e * words] != pattern || data[e * words + words - 1] != pattern)
            continue;
        /* Elements of a row stand together, and whether it is free takes long to find out. */
        if (row != row_of_element(tensors, tensor, e)) {
            row = row_of_element(tensors, tensor, e);
            is_free = mla_judge_is_free(tensors, tensor, e, promises);
        }
        if (!is_free)
            return e;
    }
    return -1;
}

bool mla_judge_written(const struct mla_tensors *tensors, uint64_t promises,
                       struct mla_verdict *verdict)
{
    uint16_t pattern = mla_tensors_pattern16(tensors);
    for (size_t i = 0; i < tensors->n; i++) {
        const struct mla_tensor *tensor = &tensors->list[i];
        if (tensor->role != MLA_TENSOR_OUTPUT || count_unwritten(tensor, pattern) == 0)
            continue;
        int64_t e = find_unwritten(tensors, tensor, promises);
        if (e >= 0)
            return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                    "%s[%" PRId64 "]: element %" PRId64 " was never written",
                                    tensor->name, tensor->rank, e);
    }
    return true;
}
