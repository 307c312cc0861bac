/* SPDX-License-Identifier: Apache-2.0
 *
 * faults_report.c - the kill matrix for people, and the same figures as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/case_fields.h"
#include "fuzz/criteria.h"
#include "fuzz/mlacheck/faults.h"

/* One letter for each check, one digit for each rule; the legend explains them. */
static const char detector_letters[MLA_DETECTORS_N + 1] = "12rsmc";
static const char rule_letters[MLA_TRIAL_RULES_MAX + 1] = "123456789abcdefghijklmnopqrstuvw";

static const char *letters(uint32_t bits, const char *all, size_t n, char *text)
{
    for (size_t i = 0; i < n; i++)
        text[i] = (bits >> i & 1u) != 0 ? all[i] : '.';
    text[n] = '\0';
    return text;
}

static size_t rules_n(void)
{
    size_t n;
    (void)mla_criteria(&n);
    return n < MLA_TRIAL_RULES_MAX ? n : MLA_TRIAL_RULES_MAX;
}

/* ---- the matrix ---- */

static const char *outcome_text(const struct mla_faults_cell *cell,
                                const struct mla_faults_sum *sum)
{
    if (cell->role == MLA_ROLE_CONTROL)
        return sum->accused ? "ACCUSED" : sum->is_judged ? "passed" : "NOT JUDGED";
    if (sum->not_run)
        return "not run";
    return sum->outcome == MLA_TRIAL_KILLED     ? "killed"
           : sum->outcome == MLA_TRIAL_SURVIVED ? "SURVIVED"
                                                : "NOT APPLIED";
}

static void print_cell(const struct mla_faults_cell *cell)
{
    struct mla_faults_sum sum = mla_faults_sum_cell(cell);
    char detectors[MLA_DETECTORS_N + 1], rules[MLA_TRIAL_RULES_MAX + 1];
    bool shows = sum.median_executions >= 0;
    printf("%-32s %-6s %-11s %3" PRId64 "/%-3" PRId64, cell->fault->name,
           mla_case_op_name(cell->op), outcome_text(cell, &sum), sum.killed, sum.trials);
    if (shows)
        printf(" %9.0f %9.3f", sum.median_executions, sum.median_seconds);
    else
        printf(" %9" PRId64 " %9s", sum.executions, "-");
    printf("  %s  %s\n", letters(sum.detectors, detector_letters, MLA_DETECTORS_N, detectors),
           letters(sum.rules, rule_letters, rules_n(), rules));
}

static void print_role(const struct mla_faults *f, enum mla_faults_role role, const char *title)
{
    bool any = false;
    for (size_t i = 0; i < f->cells_n; i++) {
        if (f->cells[i].role != role)
            continue;
        if (!any)
            printf("\n%-32s %-6s %-11s %7s %9s %9s  %-6s  %s\n", title, "op", "outcome", "trials",
                   "execs", "cpu s", "checks", "published rules");
        any = true;
        print_cell(&f->cells[i]);
        if (role == MLA_ROLE_HIDDEN)
            printf("    %s\n", f->cells[i].fault->hidden);
    }
}

static void print_legend(const struct mla_faults_totals *t)
{
    size_t n = rules_n();
    const struct mla_criterion *rules = mla_criteria(&(size_t){0});
    printf(
        "\ntrials: how many killed, of how many. execs and cpu s: medians to the kill; without one,"
        " executions in all.\nchecks and rules: who speaks against it on the killing case or %s.\n",
        "some more that reach the fault");
    printf("%-32s faults it speaks against\n", "check");
    for (int i = 0; i < MLA_DETECTORS_N; i++)
        printf("  %c %-28s %" PRId64 " of %" PRId64 "\n", detector_letters[i], mla_detector_name(i),
               t->detectors[i], t->faults);
    printf("%-32s faults it rejects where it passes an honest kernel\n", "published rule");
    for (size_t i = 0; i < n; i++)
        printf("  %c %-28s %" PRId64 " of %" PRId64 "\n", rule_letters[i], rules[i].name,
               t->rules[i], t->faults);
}

/* ---- classes ---- */

struct class_sum {
    const char *name;
    int64_t faults, killed;
    double *seconds; /* of the killed ones */
};

static void add_to_class(struct class_sum *classes, size_t *classes_n, const char *name,
                         const struct mla_faults_sum *sum, size_t room)
{
    size_t c = 0;
    while (c < *classes_n && strcmp(classes[c].name, name) != 0)
        c++;
    if (c == *classes_n) {
        classes[c] = (struct class_sum){.name = name, .seconds = malloc(room * sizeof(double))};
        ++*classes_n;
    }
    classes[c].faults++;
    if (sum->outcome == MLA_TRIAL_KILLED && classes[c].seconds != NULL)
        classes[c].seconds[classes[c].killed++] = sum->median_seconds;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct class_sum *)a)->name, ((const struct class_sum *)b)->name);
}

static void print_classes(const struct mla_faults *f)
{
    struct class_sum *classes = calloc(f->cells_n + 1, sizeof *classes);
    size_t n = 0, whole = 0;
    for (size_t i = 0, next = 0; i < f->cells_n && classes != NULL; i = next) {
        struct mla_faults_sum sum = mla_faults_sum_kernel(f, i, &next);
        if (f->cells[i].role == MLA_ROLE_FAULT)
            add_to_class(classes, &n, f->cells[i].fault->class, &sum, f->cells_n);
    }
    if (n > 0) {
        qsort(classes, n, sizeof *classes, by_name);
        printf("\n%-32s %8s %16s\n", "class", "killed", "median cpu s");
    }
    for (size_t c = 0; c < n; c++) {
        printf("%-32s %4" PRId64 "/%-3" PRId64, classes[c].name, classes[c].killed,
               classes[c].faults);
        if (classes[c].killed > 0)
            printf(" %16.3f", mla_faults_median(classes[c].seconds, (size_t)classes[c].killed));
        putchar('\n');
        whole += classes[c].killed == classes[c].faults;
        free(classes[c].seconds);
    }
    free(classes);
    printf("%zu of %zu classes with every fault killed\n", whole, n);
}

/* ---- who lives ---- */

static void print_hint(const struct mla_faults_cell *cell, const struct mla_faults_sum *sum)
{
    const char *name = cell->fault->name, *op = mla_case_op_name(cell->op);
    if (sum->not_run)
        printf("not run: %s on %s: the time was up before its turn; give more with --time\n", name,
               op);
    else if (sum->outcome == MLA_TRIAL_NOT_APPLIED)
        printf("not applied: %s on %s: none of %" PRId64 " cases reached it; is what triggers it"
               " ever drawn?\n    %s\n",
               name, op, sum->executions, cell->fault->what);
    else
        printf("survived: %s on %s: reached by %" PRId64 " of %" PRId64 " cases, killed in %" PRId64
               " of %" PRId64 " trials; what would make it show?\n    %s\n",
               name, op, sum->applied, sum->executions, sum->killed, sum->trials,
               cell->fault->what);
}

static void print_living(const struct mla_faults *f)
{
    for (size_t i = 0; i < f->cells_n; i++) {
        const struct mla_faults_cell *cell = &f->cells[i];
        struct mla_faults_sum sum = mla_faults_sum_cell(cell);
        if (cell->role == MLA_ROLE_FAULT && sum.outcome != MLA_TRIAL_KILLED)
            print_hint(cell, &sum);
        if (cell->role == MLA_ROLE_HIDDEN && sum.accused)
            printf("exposed: %s on %s was killed, and the table says that no input can do that\n",
                   cell->fault->name, mla_case_op_name(cell->op));
        if (cell->role == MLA_ROLE_CONTROL && !sum.is_judged)
            printf("not judged: the control %s on %s: none of %" PRId64 " cases was; nothing shows"
                   " that right kernels pass\n",
                   cell->fault->name, mla_case_op_name(cell->op), sum.executions);
        for (int64_t k = 0; k < cell->attempts_n; k++) {
            const struct mla_trial_result *r = &cell->attempts[k].result;
            if (r->trouble[0] != '\0')
                printf("trouble: %s on %s, trial %" PRId64 ": %s\n", cell->fault->name,
                       mla_case_op_name(cell->op), k, r->trouble);
            if (r->unmarked && cell->role == MLA_ROLE_FAULT)
                printf(
                    "unmarked: %s on %s was killed by a case that never reached it: its mark or the"
                    " kernel around it is wrong\n",
                    cell->fault->name, mla_case_op_name(cell->op));
        }
    }
}

void mla_faults_print(const struct mla_faults *f, const struct mla_faults_totals *t)
{
    print_role(f, MLA_ROLE_CANARY, "canary");
    print_role(f, MLA_ROLE_CONTROL, "honest control");
    print_role(f, MLA_ROLE_FAULT, "fault");
    print_role(f, MLA_ROLE_HIDDEN, "fault no input can expose");
    print_legend(t);
    print_classes(f);
    putchar('\n');
    print_living(f);
    printf("%" PRId64 " faults: %" PRId64 " killed, %" PRId64 " survived, %" PRId64
           " not applied, %" PRId64 " not run; %" PRId64 " hidden, %" PRId64
           " of them exposed; %" PRId64 " honest controls, %" PRId64 " accused; %" PRId64
           " executions in %.0f s, %s%s\n",
           t->faults, t->killed, t->survived, t->not_applied, t->not_run, t->hidden,
           t->hidden_killed, t->honest, t->accused, t->executions, mla_call_clock() - f->began,
           f->options.draws ? "random draws" : "guided search",
           mla_interrupted ? "; interrupted" : "");
}

/* ---- JSON: names are [a-z0-9_-]+, nothing to escape ---- */

static bool is_listed(enum mla_faults_role role, const struct mla_faults_sum *sum,
                      enum mla_faults_role wanted, enum mla_trial_outcome outcome, bool run)
{
    if (role != wanted)
        return false;
    if (wanted != MLA_ROLE_FAULT)
        return sum->accused;
    return sum->outcome == outcome && sum->not_run == !run;
}

/* Of kernels: faults of that outcome that were run, or were not; controls and hidden faults that any trial
 * killed. */
static void print_names(const struct mla_faults *f, const char *key, enum mla_faults_role role,
                        enum mla_trial_outcome outcome, bool run)
{
    const char *comma = "";
    printf(",\"%s\":[", key);
    for (size_t i = 0, next = 0; i < f->cells_n; i = next) {
        struct mla_faults_sum sum = mla_faults_sum_kernel(f, i, &next);
        if (!is_listed(f->cells[i].role, &sum, role, outcome, run))
            continue;
        printf("%s\"%s\"", comma, f->cells[i].fault->name);
        comma = ",";
    }
    printf("]");
}

static void print_medians(const struct mla_faults *f, const char *key, bool of_seconds)
{
    const char *comma = "";
    printf(",\"%s\":{", key);
    for (size_t i = 0, next = 0; i < f->cells_n; i = next) {
        struct mla_faults_sum sum = mla_faults_sum_kernel(f, i, &next);
        if (f->cells[i].role != MLA_ROLE_FAULT || sum.outcome != MLA_TRIAL_KILLED)
            continue;
        printf("%s\"%s\":%.6g", comma, f->cells[i].fault->name,
               of_seconds ? sum.median_seconds : sum.median_executions);
        comma = ",";
    }
    printf("}");
}

void mla_faults_print_json(const struct mla_faults *f, const struct mla_faults_totals *t,
                           bool canary)
{
    const struct mla_criterion *rules = mla_criteria(&(size_t){0});
    printf("{\"faults\":%" PRId64 ",\"killed\":%" PRId64, t->faults, t->killed);
    print_names(f, "survived", MLA_ROLE_FAULT, MLA_TRIAL_SURVIVED, true);
    print_names(f, "not_applied", MLA_ROLE_FAULT, MLA_TRIAL_NOT_APPLIED, true);
    printf(",\"honest\":%" PRId64 ",\"accused\":%" PRId64 ",\"canary\":%s", t->honest, t->accused,
           canary ? "true" : "false");
    print_medians(f, "median_execs", false);
    print_medians(f, "median_seconds", true);
    printf(",\"criteria\":{");
    for (size_t i = 0; i < rules_n(); i++)
        printf("%s\"%s\":%" PRId64, i == 0 ? "" : ",", rules[i].name, t->rules[i]);
    printf("},\"detectors\":{");
    for (int i = 0; i < MLA_DETECTORS_N; i++)
        printf("%s\"%s\":%" PRId64, i == 0 ? "" : ",", mla_detector_name(i), t->detectors[i]);
    printf("},\"random\":%s,\"trials\":%" PRId64, f->options.draws ? "true" : "false",
           f->options.number);
    print_names(f, "not_run", MLA_ROLE_FAULT, MLA_TRIAL_NOT_APPLIED, false);
    printf(",\"idle_controls\":%" PRId64, t->idle);
    print_names(f, "accused_controls", MLA_ROLE_CONTROL, MLA_TRIAL_KILLED, true);
    printf(",\"hidden\":%" PRId64, t->hidden);
    print_names(f, "exposed", MLA_ROLE_HIDDEN, MLA_TRIAL_KILLED, true);
    printf(",\"executions\":%" PRId64 ",\"seconds\":%.3f,\"interrupted\":%s}\n", t->executions,
           mla_call_clock() - f->began, mla_interrupted ? "true" : "false");
}
