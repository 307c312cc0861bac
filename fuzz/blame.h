/* SPDX-License-Identifier: Apache-2.0
 *
 * blame.h - what is wrong with a kernel that failed a case, in words.
 *
 * Found by experiments: the kernel is called again on the same shape with other numbers (probe.h), in
 * forked children. What an experiment shows is said; where experiments do not decide, the cause is
 * UNKNOWN and the text says what each of them showed.
 */
#ifndef MLA_FUZZ_BLAME_H
#define MLA_FUZZ_BLAME_H

#include "fuzz/cause.h"
#include "fuzz/judge.h"

struct mla_blame {
    enum mla_cause cause;
    char text[640]; /* one to three sentences */
    int calls_n;    /* of the kernel */
};

/*
 * Explain a failing verdict on a case. call_seconds: limit of one call, > 0. A verdict that is no
 * failure gives UNKNOWN. Uses no state; any thread.
 */
void mla_blame_find(const struct mla_case *test, const struct mla_kernel *kernel,
                    const struct mla_verdict *verdict, double call_seconds,
                    struct mla_blame *blame);

#endif
