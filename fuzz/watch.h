/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - what a hunt has reached within its processor time: the measure of its guidance.
 *
 * Wall time says how busy the machine was; processor time (all threads of the process) is what a
 * search had to spend.
 */
#ifndef MLA_FUZZ_WATCH_H
#define MLA_FUZZ_WATCH_H

#include <stdio.h>

#include "fuzz/guidance.h"

struct mla_watch {
    double limit; /* processor seconds; <= 0: none */
    int64_t executions;
    double worst;        /* largest err/B of values and statistics that passed */
    double energy;       /* .. and energy/threshold */
    double kill_seconds; /* of the first failure; < 0: none */
    int64_t kill_executions;
    int64_t features; /* counters raised so far */
    uint8_t seen[MLA_GUIDANCE_COUNTERS];
};

/* Processor seconds of this process. */
double mla_watch_clock(void);
void mla_watch_begin(struct mla_watch *watch, double limit);
/* One execution. counters: exactly its own, from mla_guidance_note. */
void mla_watch_learn(struct mla_watch *watch, const struct mla_verdict *verdict,
                     const uint8_t counters[MLA_GUIDANCE_COUNTERS]);
/* Is the time up, or the kernel dead? */
bool mla_watch_is_over(const struct mla_watch *watch);
/* One line: "watch worst=.. energy=.. executions=.. features=.. kill_seconds=.. kill_executions=..",
 * "inf" for a kill that never came. */
void mla_watch_print(const struct mla_watch *watch, FILE *file);

#endif
