/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_internal.h - what a trial's process and its parent share.
 */
#ifndef MLA_FUZZ_TRIAL_INTERNAL_H
#define MLA_FUZZ_TRIAL_INTERNAL_H

#include <stdatomic.h>

#include "fuzz/trial.h"

/* In memory that both see. The process writes, the parent reads once it waits or is gone; but for
 * `stop`, which the parent may set at any time. */
struct mla_trial_shared {
    struct mla_trial_result result;
    struct mla_trial_budget budget;
    int stop;            /* atomic: end after this case */
    bool finished;       /* it ended of its own accord, not inside the kernel */
    bool in_kernel;      /* the kernel on trial is at work: its death is that one's doing */
    atomic_bool applied; /* the case in flight has reached the fault */
    bool isolated;       /* survey with a fork for each call: the hunt has died of one */
    char noted[MLA_CASE_LINE_MAX]; /* the case in flight or the last one; "": none yet */
};

/* The process's side: hunt if nothing is killed yet, survey if something is, end. At a budget's end it
 * writes a byte to fd and waits for one. */
void mla_trial_work(const struct mla_trial_plan *plan, struct mla_trial_shared *shared, int fd);

#endif
