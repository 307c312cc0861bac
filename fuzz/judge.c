/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.c - the order of the checks, from the call to the relations.
 */
#include "fuzz/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"
#include "fuzz/kernels.h"
#include "fuzz/relations.h"

static void drop_truths(struct mla_subject *subject)
{
    for (int64_t i = 0; subject->truths != NULL && i < subject->rows_n; i++) {
        mla_truth_free(subject->truths[i]);
        subject->truths[i] = NULL;
    }
    subject->truths_made = false;
}

/* After a kernel that wrote where it must not, the next one gets fresh tensors. */
static bool refresh(struct mla_subject *subject, struct mla_verdict *verdict)
{
    struct mla_verdict damage = {.kind = MLA_VERDICT_PASS};
    struct mla_tensors *fresh;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_judge_inputs(subject->tensors, &damage)) {
        mla_tensors_reset(subject->tensors);
        return true;
    }
    if (mla_tensors_make(&subject->tensors->test, 0, &fresh, error) != MLA_OK)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "%.200s", error);
    drop_truths(subject); /* they point into the old tensors */
    mla_tensors_free(subject->tensors);
    subject->tensors = fresh;
    return true;
}

int32_t mla_subject_make(const struct mla_case *test, struct mla_subject **subject,
                         char error[MLA_CASE_ERROR_MAX])
{
    struct mla_subject *s = calloc(1, sizeof *s);
    *subject = NULL;
    if (s == NULL) {
        snprintf(error, MLA_CASE_ERROR_MAX, "out of memory");
        return MLA_ERR_NOMEM;
    }
    int32_t status = mla_tensors_make(test, 0, &s->tensors, error);
    if (status == MLA_OK) {
        s->rows = mla_rows_draw(test, &s->rows_n);
        s->truths = s->rows == NULL ? NULL : calloc((size_t)s->rows_n, sizeof(void *));
        if (s->truths == NULL) {
            snprintf(error, MLA_CASE_ERROR_MAX, "out of memory for %" PRId64 " rows", s->rows_n);
            status = MLA_ERR_NOMEM;
        }
    }
    if (status != MLA_OK) {
        mla_subject_free(s);
        return status;
    }
    *subject = s;
    return MLA_OK;
}

void mla_subject_free(struct mla_subject *subject)
{
    if (subject == NULL)
        return;
    drop_truths(subject);
    free(subject->truths);
    free(subject->rows);
    mla_tensors_free(subject->tensors);
    free(subject);
}

/* A NaN or Inf in a key that some rows see and others must not notice: by recipe or by override. */
static bool has_poisoned_future(const struct mla_case *test)
{
    for (size_t i = 0; i < test->put_n; i++)
        if (test->put[i].tensor[0] != 'q' && strcmp(test->put[i].tensor, "topk_indices") != 0 &&
            (test->put[i].bits & 0x7f80u) == 0x7f80u)
            return true;
    return test->has_future;
}

/* Does the kernel offer this call? false: an unsupported verdict is set. */
static bool offered(const struct mla_tensors *t, const struct mla_kernel *kernel,
                    struct mla_verdict *verdict)
{
    bool is_ring = t->test.op == MLA_OP_RING;
    const char *why = NULL;
    if (!mla_kernel_is_usable(kernel))
        why = "the kernel is not usable on this CPU";
    else if (is_ring ? kernel->ring == NULL : kernel->sparse == NULL)
        why = "the kernel does not offer this operation";
    else if (t->test.set_n > 0)
        return true;
    else if (is_ring ? kernel->ring_supports != NULL && !kernel->ring_supports(&t->ring)
                     : kernel->sparse_supports != NULL && !kernel->sparse_supports(&t->sparse))
        why = "the kernel says it does not support this call";
    else if (has_poisoned_future(&t->test) && (kernel->promises & MLA_PROMISE_NO_FUTURE_LEAK) == 0)
        why = "NO_FUTURE_LEAK is not promised";
    return why == NULL || mla_verdict_fail(verdict, MLA_VERDICT_UNSUPPORTED, "%s", why);
}

/* Did the call of a valid case end as it must? */
static bool judge_status(const struct mla_call *call, struct mla_verdict *verdict)
{
    if (call->status == MLA_OK)
        return true;
    if (call->status == MLA_ERR_UNSUPPORTED)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNSUPPORTED, "%.200s", call->message);
    if (call->status == MLA_ERR_NOMEM)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED,
                                "out of memory in the kernel: %.180s", call->message);
    verdict->detected |= MLA_DETECTOR_STATUS;
    return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                            "a valid call returned status %" PRId32 ": %.180s", call->status,
                            call->message);
}

/* Is everything around the call as it must be? */
static bool judge_memory(struct mla_tensors *t, const struct mla_kernel *kernel,
                         const struct mla_call *call, struct mla_verdict *verdict)
{
    if (call->changed_environment)
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "the kernel left the floating-point environment changed");
    if (call->left_process)
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "the kernel left a process behind");
    if (!mla_judge_inputs(t, verdict))
        return false;
    if ((kernel->promises & MLA_PROMISE_SCRATCH_UNTOUCHED) != 0 && !mla_judge_scratch(t, verdict))
        return false;
    return mla_judge_written(t, kernel->promises, verdict);
}

/* Call and check all that needs no oracle. */
static bool judge_call(struct mla_tensors *t, const struct mla_kernel *kernel,
                       const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    struct mla_call call;
    mla_call_make(kernel, t, options->seconds_limit, &call);
    verdict->kernel_seconds += call.seconds;
    if (!mla_judge_call_end(&call, verdict) || !judge_status(&call, verdict))
        return false;
    if (judge_memory(t, kernel, &call, verdict))
        return true;
    verdict->detected |= MLA_DETECTOR_MEMORY;
    return false;
}

/* The first output element in which two calls differ, of those whose contents are promised. */
static bool same_outputs(const struct mla_tensors *a, struct mla_tensors *b, uint64_t promises,
                         const char *relation, struct mla_verdict *verdict)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct mla_tensor *x = &a->list[i];
        if (x->role != MLA_TENSOR_OUTPUT)
            continue;
        const struct mla_tensor *y = mla_tensors_find(b, x->name, x->rank);
        size_t bytes = x->element_bytes;
        if (memcmp(x->guard.data, y->guard.data, x->guard.bytes) == 0)
            continue;
        for (int64_t e = 0; e < x->elements_n; e++) {
            size_t at = (size_t)e * bytes;
            if (memcmp(x->guard.data + at, y->guard.data + at, bytes) == 0 ||
                mla_judge_is_free(a, x, e, promises))
                continue;
            snprintf(verdict->element, sizeof verdict->element, "%s[%" PRId64 "] element %" PRId64,
                     x->name, x->rank, e);
            return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                    "relation %s: the two calls differ in bits", relation);
        }
    }
    return true;
}

static void judge_relation(struct mla_subject *subject, const struct mla_relation *relation,
                           const struct mla_kernel *kernel, const struct mla_judge_options *options,
                           struct mla_verdict *verdict)
{
    struct mla_case varied = subject->tensors->test;
    struct mla_tensors *other;
    char error[MLA_CASE_ERROR_MAX];
    if ((kernel->promises & relation->promise) == 0 || !relation->vary(&varied))
        return;
    if ((relation->same_inputs
             ? mla_tensors_copy(subject->tensors, &varied, relation->other_dirt, &other, error)
             : mla_tensors_make(&varied, relation->other_dirt, &other, error)) != MLA_OK) {
        mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "relation %s: %.200s", relation->name,
                         error);
        return;
    }
    struct mla_verdict second = {.relation = "", .kind = MLA_VERDICT_PASS};
    if (judge_call(other, kernel, options, &second))
        same_outputs(subject->tensors, other, kernel->promises, relation->name, &second);
    if (mla_verdict_is_failure(second.kind)) {
        verdict->detected |= second.detected | MLA_DETECTOR_RELATION;
        if (mla_verdict_is_failure(verdict->kind)) /* of an earlier check */
            goto done;
        verdict->kind = second.kind;
        verdict->relation = relation->name;
        memcpy(verdict->reason, second.reason, sizeof verdict->reason);
        memcpy(verdict->element, second.element, sizeof verdict->element);
    }
done:
    mla_tensors_free(other);
}

static void judge_relations(struct mla_subject *subject, const struct mla_kernel *kernel,
                            const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    size_t relations_n;
    const struct mla_relation *relations = mla_relations(&relations_n);
    for (size_t i = 0; i < relations_n; i++)
        if ((options->relations >> i & 1u) != 0 &&
            (verdict->kind == MLA_VERDICT_PASS || options->every_check))
            judge_relation(subject, &relations[i], kernel, options, verdict);
}

static void judge_valid(struct mla_subject *subject, const struct mla_kernel *kernel,
                        const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    if (!judge_call(subject->tensors, kernel, options, verdict))
        return;
    double start = mla_call_clock();
    int32_t status = mla_rows_truths(subject, options->oracle_threads, options->plain_oracle);
    verdict->oracle_failed = status == MLA_ERR_INTERNAL;
    if (status != MLA_OK) {
        mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "the oracle failed with status %" PRId32,
                         status);
        return;
    }
    bool inside = mla_judge_values(subject, kernel, verdict);
    bool likely =
        (inside || options->every_check) && mla_judge_energy(subject, kernel, options, verdict);
    verdict->oracle_seconds = mla_call_clock() - start;
    if (((inside && likely) || options->every_check) && verdict->rows_n > 0)
        judge_relations(subject, kernel, options, verdict);
    if (verdict->rows_n == 0)
        mla_verdict_fail(
            verdict, MLA_VERDICT_UNJUDGED,
            "none of %" PRId64 " drawn rows can be judged: %" PRId64 " see NaN or Inf, %" PRId64
            " leave the range of float32, %" PRId64 " have no bound under the model",
            verdict->unspecified_n, verdict->nonfinite_n, verdict->range_n, verdict->no_bound_n);
}

void mla_subject_judge(struct mla_subject *subject, const struct mla_kernel *kernel,
                       const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    *verdict = (struct mla_verdict){.kind = MLA_VERDICT_PASS,
                                    .relation = "",
                                    .plain_oracle = options->plain_oracle,
                                    .max_value_ratio = -1,
                                    .max_stats_ratio = -1,
                                    .max_energy = -1};
    if (!refresh(subject, verdict) || !offered(subject->tensors, kernel, verdict))
        return;
    if (subject->tensors->test.set_n > 0)
        mla_judge_refusal(subject, kernel, options, verdict);
    else
        judge_valid(subject, kernel, options, verdict);
}
