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
#include "fuzz/judge_sequence.h"
#include "fuzz/kernels.h"
#include "fuzz/output_hash.h"

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

bool mla_judge_offered(const struct mla_tensors *t, const struct mla_kernel *kernel,
                       struct mla_verdict *verdict)
{
    bool is_ring = t->test.op == MLA_OP_RING;
    const char *why = NULL;
    if (!mla_kernel_is_usable(kernel))
        why = MLA_REASON_NOT_USABLE;
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
    if (!mla_judge_traces(t, call, verdict))
        return false;
    if ((kernel->promises & MLA_PROMISE_SCRATCH_UNTOUCHED) != 0 && !mla_judge_scratch(t, verdict))
        return false;
    return mla_judge_written(t, kernel->promises, verdict);
}

bool mla_judge_call(struct mla_tensors *t, const struct mla_kernel *kernel,
                    const struct mla_judge_options *options, struct mla_sequence *sequence,
                    struct mla_verdict *verdict)
{
    struct mla_call call;
    int calls = sequence == NULL ? 1 : 1 + sequence->n;
    struct mla_call_around around = {NULL, NULL, sequence};
    if (sequence != NULL && sequence->is_beside)
        around = (struct mla_call_around){mla_company_begin, mla_company_end, sequence};
    else if (sequence != NULL)
        around.before = mla_sequence_run;
    mla_call_make_amid(&around, kernel, t, options->seconds_limit * calls, &call);
    verdict->kernel_seconds += call.seconds;
    if (!mla_judge_call_end(&call, verdict) || !judge_status(&call, verdict))
        return false;
    if (judge_memory(t, kernel, &call, verdict))
        return true;
    verdict->detected |= MLA_DETECTOR_MEMORY;
    return false;
}

/* Two calls that agree may both be wrong: nobody passes by that. */
static void judge_bits(struct mla_subject *subject, const struct mla_kernel *kernel,
                       const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    mla_judge_relations(subject, kernel, options, verdict);
    mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "no oracle; %d relations held bit for bit",
                     __builtin_popcount(verdict->relations));
}

/* Is what lies around the call the only thing wrong so far, and are the inputs those it was made with?
 * Then its outputs can be read, to learn what else would have objected. */
static bool outputs_tell(const struct mla_subject *subject, const struct mla_verdict *verdict)
{
    struct mla_verdict damage = {.kind = MLA_VERDICT_PASS};
    return verdict->detected == MLA_DETECTOR_MEMORY && mla_judge_inputs(subject->tensors, &damage);
}

/* The energy of the drawn rows. Values that could not be judged would have been the verdict without
 * every_check; they stay it. */
static bool judge_energy(const struct mla_subject *subject, const struct mla_kernel *kernel,
                         const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    struct mla_verdict values = *verdict;
    bool likely = mla_judge_energy(subject, kernel, options, verdict);
    if (values.kind == MLA_VERDICT_UNJUDGED) {
        verdict->kind = values.kind;
        memcpy(verdict->reason, values.reason, sizeof verdict->reason);
    }
    return likely;
}

/* What the outputs say: values, then energy. false: nobody need ask further. */
static bool judge_outputs(struct mla_subject *subject, const struct mla_kernel *kernel,
                          const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    double start = mla_call_clock();
    int32_t status = mla_rows_truths(subject, options->oracle_threads, options->plain_oracle);
    verdict->oracle_failed = status == MLA_ERR_INTERNAL;
    if (status != MLA_OK)
        return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED,
                                "the oracle failed with status %" PRId32, status);
    bool inside = mla_judge_values(subject, kernel, verdict);
    bool likely =
        (inside || options->every_check) && judge_energy(subject, kernel, options, verdict);
    verdict->oracle_seconds = mla_call_clock() - start;
    return (inside && likely) || options->every_check;
}

static void check_rows(struct mla_verdict *verdict)
{
    if (verdict->rows_n == 0)
        mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED,
                         "none of %" PRId64 " drawn rows can be judged: %" PRId64
                         " see NaN or Inf, %" PRId64 " leave the range of float32, %" PRId64
                         " have no bound under the model, %" PRId64
                         " have no keys and no promised zeros",
                         verdict->unspecified_n, verdict->nonfinite_n, verdict->range_n,
                         verdict->no_bound_n, verdict->no_keys_n);
}

static void judge_valid(struct mla_subject *subject, const struct mla_kernel *kernel,
                        const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    bool clean = mla_judge_call(subject->tensors, kernel, options, NULL, verdict);
    if (!clean && !(options->every_check && outputs_tell(subject, verdict)))
        return;
    if (clean && options->output_hash)
        verdict->output_hash = mla_output_hash(subject->tensors);
    if (options->no_oracle) {
        judge_bits(subject, kernel, options, verdict);
        return;
    }
    bool further = judge_outputs(subject, kernel, options, verdict);
    if (subject->truths_made && further && verdict->rows_n > 0)
        mla_judge_relations(subject, kernel, options, verdict);
    if (subject->truths_made)
        check_rows(verdict);
}

static struct mla_verdict blank(const struct mla_judge_options *options)
{
    return (struct mla_verdict){.kind = MLA_VERDICT_PASS,
                                .relation = "",
                                .plain_oracle = options->plain_oracle,
                                .max_value_ratio = -1,
                                .max_stats_ratio = -1,
                                .max_energy = -1};
}

struct mla_tensors *mla_subject_tensors(struct mla_subject *subject)
{
    return subject->tensors;
}

void mla_subject_judge_results(struct mla_subject *subject, const struct mla_kernel *kernel,
                               const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    *verdict = blank(options);
    (void)judge_outputs(subject, kernel, options, verdict);
    if (subject->truths_made)
        check_rows(verdict);
}

void mla_subject_judge(struct mla_subject *subject, const struct mla_kernel *kernel,
                       const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    *verdict = blank(options);
    if (!refresh(subject, verdict) || !mla_judge_offered(subject->tensors, kernel, verdict))
        return;
    if (subject->tensors->test.set_n > 0)
        mla_judge_refusal(subject, kernel, options, verdict);
    else
        judge_valid(subject, kernel, options, verdict);
}
