/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_work.c - inside a trial's process: the hunt, then the survey.
 *
 * Everything is written into shared memory at once, since the process may die at any call. A call that
 * takes too long is ended by a timer's SIGALRM, in whatever lock it hangs; the judge around it has far more
 * time, and whether the process dies inside or outside the kernel is written down as well.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/call.h"
#include "fuzz/faults/faults.h"
#include "fuzz/guard.h"
#include "fuzz/relations.h"
#include "fuzz/trial_internal.h"

#define REJECT_EVERY 4   /* one case in so many breaks a rule */
#define UNMADE_MAX   100 /* cases without tensors in a row: then it is not their doing */
#define JUDGE_TIMES  30  /* as long as one call may take: all of judging a case but its calls */
#define SURVEY_DRAWS 8   /* cases drawn at most for each that is surveyed: a rare fault is let go */

struct worker {
    const struct mla_trial_plan *plan;
    struct mla_trial_shared *shared;
    struct mla_search *searches[2]; /* of valid cases; of those that break a rule, or NULL */
    struct mla_search *asked;       /* the one that gave the last case */
    int64_t drawn;
    int fd;
};

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* 0: off. */
static void set_timer(double seconds)
{
    double whole = floor(seconds);
    const struct itimerval timer = {
        .it_value = {(time_t)whole, (suseconds_t)((seconds - whole) * 1e6)}};
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* The process's only trial, for a callback that takes no context. */
static const struct worker *at_work;

/* An honest kernel that is compared with is no more than a part of the judge. */
static void enter_or_leave(const struct mla_kernel *kernel)
{
    struct mla_trial_shared *shared = at_work->shared;
    double seconds = at_work->plan->case_seconds;
    if (kernel == at_work->plan->kernel) {
        shared->in_kernel = true;
        set_timer(seconds);
    } else if (shared->in_kernel) {
        set_timer(JUDGE_TIMES * seconds);
        shared->in_kernel = false;
    }
}

static bool fail(struct worker *w, const char *why)
{
    snprintf(w->shared->result.trouble, sizeof w->shared->result.trouble, "%.250s", why);
    return false;
}

static bool begin(struct worker *w)
{
    const struct mla_trial_plan *plan = w->plan;
    uint64_t promised = plan->kernel->promises & (MLA_PROMISE_REFUSES | MLA_PROMISE_INDEX_CHECKED);
    bool rejects = plan->rejects && promised != 0;
    w->searches[0] = mla_search_begin(plan->op, false, plan->search, plan->seed);
    if (rejects)
        w->searches[1] =
            mla_search_begin(plan->op, true, plan->search, mla_number_at(plan->seed, 1, 0, 0));
    if (w->searches[0] == NULL || (rejects && w->searches[1] == NULL))
        return fail(w, "out of memory");
    return true;
}

/* The next case and its tensors. Some have none (two rules broken at once, where the first leaves nothing to
 * break) and are left out, as in any hunt. NULL: many in a row, which is trouble. */
static struct mla_subject *next_case(struct worker *w, struct mla_case *test)
{
    struct mla_subject *subject = NULL;
    char error[MLA_CASE_ERROR_MAX] = "";
    for (int i = 0; i < UNMADE_MAX && subject == NULL; i++) {
        bool reject = w->searches[1] != NULL && w->drawn % REJECT_EVERY == REJECT_EVERY - 1;
        w->asked = w->searches[reject];
        w->drawn++;
        mla_search_next(w->asked, test);
        (void)mla_subject_make(test, &subject, error);
    }
    if (subject == NULL)
        fail(w, error);
    return subject;
}

static bool was_judged(const struct mla_verdict *verdict)
{
    return verdict->kind != MLA_VERDICT_UNJUDGED && verdict->kind != MLA_VERDICT_UNSUPPORTED;
}

/* Has the case put the fault to the test? */
static bool is_applied(const struct worker *w, const struct mla_verdict *verdict)
{
    return w->plan->marks ? mla_fault_is_applied() : was_judged(verdict);
}

/* honest: judge that kernel too (it marks nothing), or NULL. Ends the subject. */
static void judge(struct worker *w, const struct mla_case *test, struct mla_subject *subject,
                  const struct mla_judge_options *options, struct mla_verdict *verdict,
                  struct mla_verdict *honest)
{
    mla_case_format(test, w->shared->noted);
    set_timer(options->seconds_limit > 0 ? 0 : JUDGE_TIMES * w->plan->case_seconds);
    mla_fault_reset_applied();
    mla_subject_judge(subject, w->plan->kernel, options, verdict);
    if (honest != NULL)
        mla_subject_judge(subject, w->plan->honest, options, honest);
    set_timer(0);
    mla_subject_free(subject);
    w->shared->result.oracle_failed += verdict->oracle_failed;
}

/* ---- the hunt ---- */

static void kill_by(struct mla_trial_result *r, const char *line, const struct mla_verdict *verdict)
{
    r->unmarked = r->applied == 0;
    r->outcome = MLA_TRIAL_KILLED;
    r->verdict = verdict->kind;
    r->detected = verdict->detected;
    snprintf(r->line, sizeof r->line, "%s", line);
    snprintf(r->relation, sizeof r->relation, "%s", verdict->relation);
    snprintf(r->reason, sizeof r->reason, "%s", verdict->reason);
}

/* One case of the hunt. false: the trial cannot go on. */
static bool try_case(struct worker *w)
{
    struct mla_trial_result *r = &w->shared->result;
    struct mla_case test;
    struct mla_verdict verdict;
    struct mla_subject *subject = next_case(w, &test);
    if (subject == NULL)
        return false;
    struct mla_judge_options options = {.oracle_threads = 1,
                                        .relations = mla_relations_choose(&test),
                                        .relation_rows = MLA_RELATION_ROWS,
                                        .row_tests = MLA_JUDGE_ROW_TESTS};
    judge(w, &test, subject, &options, &verdict, NULL);
    r->executions++;
    r->judged += was_judged(&verdict);
    r->applied += is_applied(w, &verdict);
    r->outcome = r->applied > 0 ? MLA_TRIAL_SURVIVED : MLA_TRIAL_NOT_APPLIED;
    if (mla_verdict_is_failure(verdict.kind))
        kill_by(r, w->shared->noted, &verdict);
    else
        mla_search_learn(w->asked, &test, &verdict);
    r->cpu_seconds = cpu_seconds();
    return true;
}

static bool is_stopped(const struct worker *w)
{
    return __atomic_load_n(&w->shared->stop, __ATOMIC_RELAXED) != 0;
}

static bool is_used_up(const struct mla_trial_shared *shared)
{
    const struct mla_trial_result *r = &shared->result;
    const struct mla_trial_budget *b = &shared->budget;
    return (b->executions_most > 0 && r->executions >= b->executions_most) ||
           (r->cpu_seconds >= b->cpu_seconds && r->executions >= b->executions);
}

/* Wait for a larger budget. false: there will be none. */
static bool wait_for_more(struct worker *w)
{
    char byte = 'p';
    return write(w->fd, &byte, 1) == 1 && read(w->fd, &byte, 1) == 1;
}

static bool hunt(struct worker *w)
{
    const struct mla_trial_result *r = &w->shared->result;
    while (r->outcome != MLA_TRIAL_KILLED) {
        while (!is_stopped(w) && is_used_up(w->shared))
            if (!wait_for_more(w))
                return false;
        if (is_stopped(w) || !try_case(w))
            return false;
    }
    return true;
}

/* ---- the survey ---- */

static void count_rules(struct mla_trial_result *r, const struct mla_verdict *verdict,
                        const struct mla_verdict *honest)
{
    uint32_t told_apart = honest->metrics.would_pass & ~verdict->metrics.would_pass;
    if (verdict->metrics.elements_n == 0 || honest->metrics.elements_n == 0)
        return;
    for (int i = 0; i < MLA_TRIAL_RULES_MAX; i++)
        r->rules[i] += told_apart >> i & 1u;
}

static void survey_case(struct worker *w, const struct mla_case *test, struct mla_subject *subject,
                        bool is_killing)
{
    struct mla_trial_result *r = &w->shared->result;
    struct mla_verdict verdict, honest = {0};
    struct mla_judge_options options = {
        .seconds_limit = w->shared->isolated ? w->plan->case_seconds : 0,
        .oracle_threads = 1,
        .relations = is_killing ? UINT32_MAX : mla_relations_choose(test),
        .relation_rows = MLA_RELATION_ROWS,
        .every_check = true,
        .row_tests = MLA_JUDGE_ROW_TESTS};
    bool compare = w->plan->honest != NULL && test->set_n == 0;
    judge(w, test, subject, &options, &verdict, compare ? &honest : NULL);
    if (!is_killing && !is_applied(w, &verdict))
        return;
    r->surveyed++;
    r->surveyed_failed += mla_verdict_is_failure(verdict.kind);
    for (int i = 0; i < MLA_DETECTORS_N; i++)
        r->detectors[i] += verdict.detected >> i & 1u;
    count_rules(r, &verdict, &honest);
}

static void survey(struct worker *w)
{
    const struct mla_trial_result *r = &w->shared->result;
    struct mla_case test;
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_parse(r->line, strlen(r->line), &test, error) != MLA_OK ||
        mla_subject_make(&test, &subject, error) != MLA_OK) {
        fail(w, error);
        return;
    }
    survey_case(w, &test, subject, true);
    int64_t draws = SURVEY_DRAWS * w->plan->survey_cases;
    while (draws-- > 0 && !is_stopped(w) && r->surveyed <= w->plan->survey_cases) {
        subject = next_case(w, &test);
        if (subject == NULL)
            return;
        survey_case(w, &test, subject, false);
    }
}

void mla_trial_work(const struct mla_trial_plan *plan, struct mla_trial_shared *shared, int fd)
{
    struct worker w = {.plan = plan, .shared = shared, .fd = fd};
    at_work = &w;
    mla_call_watch(enter_or_leave);
    mla_fault_keep_mark_in(&shared->applied);
    mla_guard_forget();
    mla_guard_keep_heap();
    if (begin(&w) && hunt(&w))
        survey(&w);
    mla_search_end(w.searches[0]);
    mla_search_end(w.searches[1]);
    mla_call_watch(NULL);
    at_work = NULL;
}
