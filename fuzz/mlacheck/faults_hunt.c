/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_hunt.c - who is tried when: canaries, then controls, then the faults in rounds.
 *
 * In a round every fault that still lives may use as much processor time as all rounds before it together
 * gave it, so the easy ones are through early and the hard ones share what is left. A trial of all faults
 * is over when its share of the time that is left is used up; then the next one begins.
 */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz/call.h"
#include "fuzz/case_fields.h"
#include "fuzz/mlacheck/faults.h"

#define CANARY_CASES       20
#define CONTROL_EXECUTIONS 200  /* at least, whatever the time */
#define CONTROL_SHARE      0.1  /* of the time */
#define FIRST_SECONDS      0.5  /* of a processor for each fault in the first round */
#define SURVEY_CASES       8    /* after the killing one */
#define CASE_SECONDS       20.0 /* unless --limit says otherwise */
#define JOBS_MAX           256

static const char *const roles[MLA_ROLES_N] = {[MLA_ROLE_CANARY] = "canaries",
                                               [MLA_ROLE_CONTROL] = "controls",
                                               [MLA_ROLE_FAULT] = "faults",
                                               [MLA_ROLE_HIDDEN] = "faults"};

/* ---- one trial ---- */

static struct mla_trial_plan plan_of(const struct mla_faults *f, const struct mla_faults_entry *e)
{
    size_t n;
    bool canary = e->cell->role == MLA_ROLE_CANARY;
    return (struct mla_trial_plan){
        .kernel = e->cell->fault->kernel,
        .honest = canary ? NULL : mla_fault_controls(&n)[0].kernel,
        .marks = e->cell->role == MLA_ROLE_FAULT || e->cell->role == MLA_ROLE_HIDDEN,
        .rejects = !canary, /* they refuse as they must */
        .op = (enum mla_op)e->cell->op,
        .search = f->options.draws ? MLA_SEARCH_RANDOM : MLA_SEARCH_GUIDED,
        .seed = e->attempt->seed,
        .case_seconds = f->options.limit > 0 ? f->options.limit : CASE_SECONDS,
        .survey_cases = canary ? CANARY_CASES - 1 : SURVEY_CASES,
        .keep_output = false};
}

/* The trial's figures are final: keep them, end its process. */
static void finish(struct mla_faults *f, struct mla_faults_entry *e)
{
    if (e->attempt->done)
        return;
    if (e->attempt->trial != NULL)
        e->attempt->result = *mla_trial_result(e->attempt->trial);
    mla_trial_free(e->attempt->trial);
    e->attempt->trial = NULL;
    e->attempt->done = true;
    mla_progress_clear(&f->progress);
    if (e->attempt->result.outcome == MLA_TRIAL_KILLED &&
        (f->options.verbose || e->cell->role == MLA_ROLE_CONTROL))
        mla_faults_print_kill(e);
    if (e->attempt->started && mla_faults_store(f, e) != MLA_STORE_OK && f->code == 0)
        f->code =
            mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults", "%s", mla_store_message(f->store));
}

static void go_on(struct mla_faults *f, struct mla_faults_entry *e,
                  const struct mla_trial_budget *budget)
{
    struct mla_trial_plan plan = plan_of(f, e);
    if (e->attempt->trial != NULL) {
        mla_trial_resume(e->attempt->trial, budget);
        return;
    }
    e->attempt->started = true;
    e->attempt->trial = mla_trial_start(&plan, budget);
    if (e->attempt->trial == NULL) {
        snprintf(e->attempt->result.trouble, sizeof e->attempt->result.trouble,
                 "its process could not be started");
        finish(f, e);
    }
}

/* ---- many trials at once ---- */

static bool is_over(const struct mla_faults *f, double deadline)
{
    return mla_interrupted || f->code != 0 || mla_call_clock() >= deadline;
}

static void wait_for_any(struct mla_faults_entry *const *active, size_t n)
{
    struct pollfd polled[JOBS_MAX];
    for (size_t i = 0; i < n; i++)
        polled[i] = (struct pollfd){.fd = mla_trial_descriptor(active[i]->attempt->trial),
                                    .events = POLLIN};
    (void)poll(polled, (nfds_t)n, 20);
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); /* one may have closed its end */
}

/* Look at those that run; who pauses leaves the list, who has ended is finished too. */
static size_t sweep(struct mla_faults *f, struct mla_faults_entry **active, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        enum mla_trial_state state = mla_trial_look(active[i]->attempt->trial);
        if (state == MLA_TRIAL_ENDED)
            finish(f, active[i]);
        if (state == MLA_TRIAL_RUNNING)
            active[left++] = active[i];
    }
    return left;
}

static size_t alive(const struct mla_faults_entry *entries, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += !entries[i].attempt->done;
    return left;
}

/* Of the time that all may take, as nobody knows how soon the faults die. */
static void progress(struct mla_faults *f, const struct mla_faults_entry *entries, size_t n)
{
    char note[96];
    snprintf(note, sizeof note, "%s, trial %" PRId64 ": %zu of %zu live",
             n == 0 ? "" : roles[entries[0].cell->role], n == 0 ? 0 : entries[0].number,
             alive(entries, n), n);
    mla_progress_say(&f->progress, mla_call_clock() - f->began, f->options.seconds, "s at most",
                     note);
}

/* Let all that are not done use up the budget, some at a time. At the deadline those that run are asked to
 * end; a case that hangs is ended by its own timer. */
static void run_round(struct mla_faults *f, struct mla_faults_entry *entries, size_t n,
                      const struct mla_trial_budget *budget, double deadline)
{
    struct mla_faults_entry *active[JOBS_MAX];
    size_t active_n = 0, next = 0;
    bool told = false;
    while (active_n > 0 || (next < n && !is_over(f, deadline))) {
        while (active_n < (size_t)f->options.jobs && next < n && !is_over(f, deadline)) {
            struct mla_faults_entry *e = &entries[next++];
            if (!e->attempt->done)
                go_on(f, e, budget);
            if (!e->attempt->done)
                active[active_n++] = e;
        }
        for (size_t i = 0; i < active_n && !told && is_over(f, deadline); i++)
            mla_trial_stop(active[i]->attempt->trial);
        told = is_over(f, deadline);
        progress(f, entries, n);
        if (active_n > 0)
            wait_for_any(active, active_n);
        active_n = sweep(f, active, active_n);
    }
}

static void finish_all(struct mla_faults *f, struct mla_faults_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        finish(f, &entries[i]);
}

/* Trial `number` of all cells of a role (or two). Room for cells_n entries. */
static size_t gather(struct mla_faults *f, enum mla_faults_role role, enum mla_faults_role or_role,
                     int64_t number, struct mla_faults_entry *entries)
{
    size_t n = 0;
    for (size_t i = 0; i < f->cells_n; i++) {
        struct mla_faults_cell *cell = &f->cells[i];
        if ((cell->role == role || cell->role == or_role) && number < cell->attempts_n)
            entries[n++] = (struct mla_faults_entry){cell, &cell->attempts[number], number};
    }
    return n;
}

/* ---- canaries, controls, faults ---- */

/* The first judged case and every one after it must fail. */
static bool has_died(const struct mla_trial_result *r)
{
    return r->outcome == MLA_TRIAL_KILLED && r->judged == 1 && r->surveyed > 0 &&
           r->surveyed_failed == r->surveyed;
}

static bool canaries_die(struct mla_faults *f, struct mla_faults_entry *entries)
{
    const struct mla_trial_budget budget = {INFINITY, 0, CANARY_CASES};
    size_t n = gather(f, MLA_ROLE_CANARY, MLA_ROLE_CANARY, 0, entries);
    bool all = true;
    run_round(f, entries, n, &budget, INFINITY);
    finish_all(f, entries, n);
    for (size_t i = 0; i < n && !mla_interrupted && f->code == 0; i++) {
        if (has_died(&entries[i].attempt->result))
            continue;
        all = false;
        printf("VOID the canary fault:%s lives on %s: nothing is being compared\n",
               entries[i].cell->fault->name, mla_case_op_name(entries[i].cell->op));
    }
    return all;
}

static void hold_controls(struct mla_faults *f, struct mla_faults_entry *entries)
{
    size_t n = gather(f, MLA_ROLE_CONTROL, MLA_ROLE_CONTROL, 0, entries);
    double seconds = CONTROL_SHARE * f->options.seconds;
    struct mla_trial_budget budget = {0, CONTROL_EXECUTIONS, 0};
    run_round(f, entries, n, &budget, INFINITY);
    budget.cpu_seconds = n == 0 ? 0 : seconds * (double)f->options.jobs / (double)n;
    run_round(f, entries, n, &budget, mla_call_clock() + seconds);
    finish_all(f, entries, n);
}

static void hunt_faults(struct mla_faults *f, struct mla_faults_entry *entries, int64_t trial)
{
    double now = mla_call_clock();
    double deadline = now + (f->deadline - now) / (double)(f->options.number - trial);
    struct mla_trial_budget budget = {FIRST_SECONDS, 1, 0};
    size_t n = gather(f, MLA_ROLE_FAULT, MLA_ROLE_HIDDEN, trial, entries);
    run_round(f, entries, n, &budget, deadline);
    for (size_t i = 0; i < n; i++) /* one round is enough for what cannot be killed */
        if (entries[i].cell->role == MLA_ROLE_HIDDEN)
            finish(f, &entries[i]);
    while (alive(entries, n) > 0 && !is_over(f, deadline)) {
        budget.cpu_seconds *= 2;
        run_round(f, entries, n, &budget, deadline);
    }
    finish_all(f, entries, n);
}

bool mla_faults_hunt(struct mla_faults *f)
{
    struct mla_faults_entry *entries = calloc(f->cells_n + 1, sizeof *entries);
    if (entries == NULL) {
        f->code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "faults", "out of memory");
        return true;
    }
    mla_progress_begin(&f->progress, f->options.quiet);
    bool died = canaries_die(f, entries);
    f->deadline = mla_call_clock() + f->options.seconds;
    if (died)
        hold_controls(f, entries);
    for (int64_t t = 0; t < f->options.number && died; t++)
        hunt_faults(f, entries, t);
    mla_progress_clear(&f->progress);
    free(entries);
    return died;
}
