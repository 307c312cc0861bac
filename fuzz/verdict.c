/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict.c - names of verdicts, and how a failure is recorded.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"

static const char *const names[MLA_VERDICTS_N] = {"pass",     "fail-certain", "fail-improbable",
                                                  "unjudged", "unsupported",  "refused",
                                                  "crash",    "timeout"};

const char *mla_detector_name(int i)
{
    static const char *const detectors[MLA_DETECTORS_N] = {"tier1",  "tier2",  "relation",
                                                           "status", "memory", "crash"};
    return i >= 0 && i < MLA_DETECTORS_N ? detectors[i] : NULL;
}

const char *mla_verdict_name(enum mla_verdict_kind kind)
{
    return names[kind];
}

bool mla_verdict_is_failure(enum mla_verdict_kind kind)
{
    return kind == MLA_VERDICT_FAIL_CERTAIN || kind == MLA_VERDICT_FAIL_IMPROBABLE ||
           kind == MLA_VERDICT_CRASH || kind == MLA_VERDICT_TIMEOUT;
}

bool mla_verdict_fail(struct mla_verdict *verdict, enum mla_verdict_kind kind, const char *format,
                      ...)
{
    va_list list;
    /* What could not be decided of one row excuses no fault of another. */
    bool undecided = verdict->kind == MLA_VERDICT_UNJUDGED && mla_verdict_is_failure(kind);
    if (verdict->kind != MLA_VERDICT_PASS && !undecided)
        return false;
    verdict->kind = kind;
    va_start(list, format);
    vsnprintf(verdict->reason, sizeof verdict->reason, format, list);
    va_end(list);
    return false;
}

bool mla_judge_call_end(const struct mla_call *call, struct mla_verdict *verdict)
{
    switch (call->end) {
    case MLA_CALL_RETURNED:
        return true;
    case MLA_CALL_CRASHED:
        verdict->detected |= MLA_DETECTOR_CRASH;
        if (call->signal_or_exit > 0)
            return mla_verdict_fail(verdict, MLA_VERDICT_CRASH, "signal %d (%s)",
                                    call->signal_or_exit, strsignal(call->signal_or_exit));
        return mla_verdict_fail(verdict, MLA_VERDICT_CRASH,
                                "process ended inside the kernel, exit %d", -call->signal_or_exit);
    case MLA_CALL_TIMED_OUT:
        verdict->detected |= MLA_DETECTOR_CRASH;
        return mla_verdict_fail(verdict, MLA_VERDICT_TIMEOUT, "no answer within %g s",
                                call->seconds);
    case MLA_CALL_NOT_MADE:
        break;
    }
    return mla_verdict_fail(verdict, MLA_VERDICT_UNJUDGED, "%s", call->message);
}
