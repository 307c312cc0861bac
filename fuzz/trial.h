/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.h - how long a search takes to catch one kernel, and what else would have caught it.
 *
 * A trial is a process of its own: a planted fault may crash, hang, corrupt memory or keep state from one
 * call to the next. It runs the search of search.h on the kernel, in that process and without a fork for
 * each call, until a verdict is a failure or its budget is used up; then it waits for more, so that a
 * budget that grows costs nothing twice. The process's death inside the kernel is a kill as well, with the
 * case it was at; a death anywhere else, or by a signal that only others send, is trouble and says nothing
 * about the kernel.
 *
 * After the kill comes the survey: the killing case and some more that reach the fault are judged with
 * every check (the killing one with every relation too, the others with a hunt's choice), to see which of them, and which published rule, speaks against the
 * kernel. Time and executions to the kill are those of the hunt alone, with its checks as in any hunt.
 */
#ifndef MLA_FUZZ_TRIAL_H
#define MLA_FUZZ_TRIAL_H

#include "fuzz/judge.h"
#include "fuzz/search.h"

#define MLA_TRIAL_RULES_MAX 32 /* published rules: bits of mla_metrics.would_pass */

enum mla_trial_outcome {
    MLA_TRIAL_NOT_APPLIED = 0, /* no case has reached the fault: it was not put to the test */
    MLA_TRIAL_SURVIVED,        /* cases reached it, no verdict failed */
    MLA_TRIAL_KILLED,
    MLA_TRIAL_OUTCOMES_N
};
/* "not-applied", "survived", "killed". */
const char *mla_trial_outcome_name(enum mla_trial_outcome outcome);

struct mla_trial_plan {
    const struct mla_kernel *kernel;
    const struct mla_kernel *honest; /* for the rules, below; NULL: none */
    bool
        marks; /* the kernel says when its fault is applied (mla_fault_is_applied); else every judged
                     case counts as applied */
    bool rejects; /* every fourth case breaks a rule, if the kernel promises refusals */
    enum mla_op op;
    enum mla_search_kind search;
    uint64_t seed;
    double case_seconds;  /* > 0: a call that takes longer, by the clock on the wall, is a hang */
    int64_t survey_cases; /* applied ones judged after the killing one */
    bool keep_output;     /* leave the kernel's and sanitizers' output alone; else it is dropped */
};

/* Of the hunt, in all: it goes on until both are reached, or the most executions (0: any number). */
struct mla_trial_budget {
    double cpu_seconds;
    int64_t executions;
    int64_t executions_most;
};

struct mla_trial_result {
    enum mla_trial_outcome outcome;
    int64_t executions, judged,
        applied;        /* cases tried; neither unjudged nor unsupported; applied */
    double cpu_seconds; /* of the hunt's process, all its threads */
    bool unmarked;      /* killed, and yet no case has reached the fault: its mark is wrong, or the
                              kernel around it */
    int64_t oracle_failed; /* cases in which the oracle contradicted itself: nothing is sure then */
    char trouble[256];     /* not "": the trial could not work and says nothing */

    /* Of the kill. line: the case; "": none. */
    char line[MLA_CASE_LINE_MAX];
    enum mla_verdict_kind verdict;
    uint32_t detected; /* enum mla_detector, or-ed: what spoke against it then */
    char relation[32], reason[256];

    /* Of the survey, in cases. rules: those the rule rejects although it passes the honest kernel's output
     * on the same case (a rule that rejects both does not tell them apart). */
    int64_t surveyed, surveyed_failed;
    int64_t detectors[MLA_DETECTORS_N];
    int64_t rules[MLA_TRIAL_RULES_MAX];
};

struct mla_trial;

enum mla_trial_state {
    MLA_TRIAL_RUNNING,
    MLA_TRIAL_PAUSED, /* the budget is used up */
    MLA_TRIAL_ENDED
};

/* Start the process. The plan is copied; kernels stay the caller's. NULL: no memory, no process. */
struct mla_trial *mla_trial_start(const struct mla_trial_plan *plan,
                                  const struct mla_trial_budget *budget);
/* What it does now, without waiting. */
enum mla_trial_state mla_trial_look(struct mla_trial *trial);
/* A descriptor that can be read (poll) once the state changes; most kernels let it be, none must. */
int mla_trial_descriptor(const struct mla_trial *trial);
/* Let a paused trial go on. */
void mla_trial_resume(struct mla_trial *trial, const struct mla_trial_budget *budget);
/* Ask it to end after the case at hand; a paused one ends at once. */
void mla_trial_stop(struct mla_trial *trial);
/* Final once the trial is paused or has ended; before that it may be half written. */
const struct mla_trial_result *mla_trial_result(const struct mla_trial *trial);
/* End the process if need be, and free everything. NULL is allowed. */
void mla_trial_free(struct mla_trial *trial);

/* Start, wait until it pauses or ends, free. false: it could not be started. */
bool mla_trial_run(const struct mla_trial_plan *plan, const struct mla_trial_budget *budget,
                   struct mla_trial_result *result);

#endif
