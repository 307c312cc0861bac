/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_figures.c - from trials to cells, from cells to kernels, from kernels to totals.
 *
 * A trial that did not kill counts as one that takes for ever, so a cell has a median where at least half
 * of its trials killed (with an even number the lower middle one counts): then it is killed. A fault is
 * killed when it is on every operation it is planted in.
 */
#include <math.h>
#include <stdlib.h>

#include "fuzz/mlacheck/faults.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mla_faults_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return values[(n - 1) / 2];
}

/* Of executions or seconds to the kill; -1: none. */
static double median_to_kill(const struct mla_faults_cell *cell, bool of_seconds)
{
    size_t n = 0;
    double *values = malloc((size_t)cell->attempts_n * sizeof *values);
    if (values == NULL)
        return -1;
    for (int64_t i = 0; i < cell->attempts_n; i++) {
        const struct mla_trial_result *r = &cell->attempts[i].result;
        double value = of_seconds ? r->cpu_seconds : (double)r->executions;
        if (cell->attempts[i].started)
            values[n++] = r->outcome == MLA_TRIAL_KILLED ? value : INFINITY;
    }
    double median = n == 0 ? INFINITY : mla_faults_median(values, n);
    free(values);
    return isinf(median) ? -1 : median;
}

struct mla_faults_sum mla_faults_sum_cell(const struct mla_faults_cell *cell)
{
    struct mla_faults_sum sum = {0};
    for (int64_t i = 0; i < cell->attempts_n; i++) {
        const struct mla_trial_result *r = &cell->attempts[i].result;
        sum.trials += cell->attempts[i].started;
        sum.killed += r->outcome == MLA_TRIAL_KILLED;
        sum.executions += r->executions;
        sum.applied += r->applied;
        sum.is_judged = sum.is_judged || r->judged > 0;
        for (int b = 0; b < MLA_DETECTORS_N; b++)
            sum.detectors |= r->detectors[b] > 0 ? 1u << b : 0;
        sum.detectors |= r->detected;
        for (int b = 0; b < MLA_TRIAL_RULES_MAX; b++)
            sum.rules |= r->rules[b] > 0 ? 1u << b : 0;
    }
    sum.accused = sum.killed > 0;
    sum.not_run = sum.trials == 0;
    sum.outcome = sum.killed > 0 && 2 * sum.killed >= sum.trials ? MLA_TRIAL_KILLED
                  : sum.applied > 0                              ? MLA_TRIAL_SURVIVED
                                                                 : MLA_TRIAL_NOT_APPLIED;
    sum.median_executions = median_to_kill(cell, false);
    sum.median_seconds = median_to_kill(cell, true);
    return sum;
}

/* Has it been given a chance that it did not take? */
static bool is_unreached(const struct mla_faults_sum *cell)
{
    return cell->outcome == MLA_TRIAL_NOT_APPLIED && !cell->not_run;
}

/* The kernel's outcome: one cell that survived outweighs one that was not reached, both outweigh kills. */
static enum mla_trial_outcome worse(enum mla_trial_outcome a, enum mla_trial_outcome b)
{
    if (a == MLA_TRIAL_SURVIVED || b == MLA_TRIAL_SURVIVED)
        return MLA_TRIAL_SURVIVED;
    return a == MLA_TRIAL_KILLED ? b : a;
}

struct mla_faults_sum mla_faults_sum_kernel(const struct mla_faults *f, size_t first, size_t *next)
{
    struct mla_faults_sum all = mla_faults_sum_cell(&f->cells[first]);
    bool unreached = is_unreached(&all);
    size_t i = first + 1;
    for (; i < f->cells_n && f->cells[i].fault == f->cells[first].fault; i++) {
        struct mla_faults_sum sum = mla_faults_sum_cell(&f->cells[i]);
        all.outcome = worse(all.outcome, sum.outcome);
        all.accused = all.accused || sum.accused;
        all.is_judged = all.is_judged && sum.is_judged;
        unreached = unreached || is_unreached(&sum);
        all.trials += sum.trials;
        all.killed += sum.killed;
        all.executions += sum.executions;
        all.applied += sum.applied;
        all.detectors |= sum.detectors;
        all.rules |= sum.rules;
        all.median_executions = fmax(all.median_executions, sum.median_executions);
        all.median_seconds = fmax(all.median_seconds, sum.median_seconds);
    }
    all.not_run = all.outcome == MLA_TRIAL_NOT_APPLIED && !unreached;
    if (all.outcome != MLA_TRIAL_KILLED)
        all.median_executions = all.median_seconds = -1;
    *next = i;
    return all;
}

static void count_trials(const struct mla_faults *f, struct mla_faults_totals *t)
{
    for (size_t c = 0; c < f->cells_n; c++)
        for (int64_t i = 0; i < f->cells[c].attempts_n; i++) {
            const struct mla_trial_result *r = &f->cells[c].attempts[i].result;
            t->executions += r->executions;
            t->unmarked += r->unmarked && f->cells[c].role == MLA_ROLE_FAULT;
            t->troubled += r->trouble[0] != '\0';
            t->oracle_failed += r->oracle_failed;
        }
}

static void count_fault(struct mla_faults_totals *t, const struct mla_faults_sum *sum)
{
    t->faults++;
    t->killed += sum->outcome == MLA_TRIAL_KILLED;
    t->survived += sum->outcome == MLA_TRIAL_SURVIVED;
    t->not_applied += sum->outcome == MLA_TRIAL_NOT_APPLIED && !sum->not_run;
    t->not_run += sum->not_run;
    for (int b = 0; b < MLA_DETECTORS_N; b++)
        t->detectors[b] += sum->detectors >> b & 1u;
    for (int b = 0; b < MLA_TRIAL_RULES_MAX; b++)
        t->rules[b] += sum->rules >> b & 1u;
}

struct mla_faults_totals mla_faults_total(const struct mla_faults *f)
{
    struct mla_faults_totals t = {0};
    for (size_t i = 0, next = 0; i < f->cells_n; i = next) {
        struct mla_faults_sum sum = mla_faults_sum_kernel(f, i, &next);
        switch (f->cells[i].role) {
        case MLA_ROLE_FAULT:
            count_fault(&t, &sum);
            break;
        case MLA_ROLE_CONTROL:
            t.honest += sum.is_judged;
            t.idle += !sum.is_judged;
            t.accused += sum.accused;
            break;
        case MLA_ROLE_HIDDEN:
            t.hidden++;
            t.hidden_killed += sum.accused;
            break;
        default:
            break;
        }
    }
    count_trials(f, &t);
    return t;
}
