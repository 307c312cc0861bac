/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_refusal.c - a call that breaks a rule: right status, right message, not one byte written.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Does text hold word, not as part of a longer name or number? */
static bool holds_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        bool begins = at == text || !is_word_byte(at[-1]);
        bool ends = !is_word_byte(at[n]);
        if (begins && ends)
            return true;
    }
    return false;
}

static void judge_answer(const struct mla_call *call, const struct mla_refusal *due,
                         struct mla_verdict *verdict)
{
    if (call->status == MLA_OK)
        mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                         "accepted where status %" PRId32 " is due (%s = %s)", due->status,
                         due->field, due->value);
    else if (call->status != due->status)
        mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                         "status %" PRId32 " where %" PRId32 " is due (%s = %s)", call->status,
                         due->status, due->field, due->value);
    else if (!holds_word(call->message, due->field))
        mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN, "message '%.120s' does not name %s",
                         call->message, due->field);
    else if (due->value[0] != '\0' && !holds_word(call->message, due->value))
        mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                         "message '%.120s' does not give the value %s", call->message, due->value);
}

/* The same refusal, whatever room there is for its words. */
static bool judge_cramped(struct mla_tensors *t, const struct mla_kernel *kernel,
                          const struct mla_refusal *due, const struct mla_judge_options *options,
                          struct mla_verdict *verdict)
{
    struct mla_cramped cramped;
    const struct mla_call *call = &cramped.call;
    struct mla_verdict end = {.kind = MLA_VERDICT_PASS};
    mla_call_make_cramped(kernel, t, due->status, options->seconds_limit, &cramped);
    verdict->kernel_seconds += call->seconds;
    if (!mla_judge_call_end(call, &end)) {
        verdict->detected |= end.detected;
        return mla_verdict_fail(verdict, end.kind, "with %zu bytes for the message: %.200s",
                                cramped.room, end.reason);
    }
    verdict->detected |= MLA_DETECTOR_STATUS;
    if (cramped.fault == MLA_MESSAGE_OVERRUN)
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "with %zu bytes for the message: more were written", cramped.room);
    if (cramped.fault == MLA_MESSAGE_UNTERMINATED)
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "with %zu bytes for the message: it is not terminated",
                                cramped.room);
    if (call->status != due->status)
        return mla_verdict_fail(verdict, MLA_VERDICT_FAIL_CERTAIN,
                                "with %zu bytes for the message: status %" PRId32 " where %" PRId32
                                " is due",
                                cramped.room, call->status, due->status);
    verdict->detected &= ~(uint32_t)MLA_DETECTOR_STATUS;
    return true;
}

/* Of the call as it is made: a kernel that does not promise statistics is not asked for them. */
static struct mla_refusal refusal_due(const struct mla_tensors *t, const struct mla_kernel *kernel)
{
    struct mla_ring_args ring = t->ring;
    if (t->test.op == MLA_OP_SPARSE)
        return mla_refuse_sparse(&t->sparse);
    if ((kernel->promises & MLA_PROMISE_STATS) == 0)
        ring.stats = NULL;
    return mla_refuse_ring(&ring);
}

void mla_judge_refusal(struct mla_subject *subject, const struct mla_kernel *kernel,
                       const struct mla_judge_options *options, struct mla_verdict *verdict)
{
    struct mla_tensors *t = subject->tensors;
    struct mla_call call;
    struct mla_refusal due = refusal_due(t, kernel);
    uint64_t promise =
        due.status == MLA_ERR_INDEX ? MLA_PROMISE_INDEX_CHECKED : MLA_PROMISE_REFUSES;
    if (due.status == MLA_OK) {
        mla_verdict_fail(
            verdict, MLA_VERDICT_UNSUPPORTED,
            "without statistics, which the kernel does not promise, nothing is broken");
        return;
    }
    if ((kernel->promises & promise) == 0) {
        mla_verdict_fail(verdict, MLA_VERDICT_UNSUPPORTED, "refusals are not promised");
        return;
    }
    mla_call_make(kernel, t, options->seconds_limit, &call);
    verdict->kernel_seconds = call.seconds;
    if (!mla_judge_call_end(&call, verdict))
        return;
    bool was_refused = call.status != MLA_OK; /* otherwise it may well have written its outputs */
    if (!mla_judge_traces(t, &call, verdict) || (was_refused && !mla_judge_untouched(t, verdict))) {
        verdict->detected |= MLA_DETECTOR_MEMORY;
        return;
    }
    judge_answer(&call, &due, verdict);
    if (mla_verdict_is_failure(verdict->kind))
        verdict->detected |= MLA_DETECTOR_STATUS;
    else if (judge_cramped(t, kernel, &due, options, verdict))
        verdict->kind = MLA_VERDICT_REFUSED;
}
