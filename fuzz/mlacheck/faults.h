/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.h - what the files of `mlacheck faults` share: cells, their trials, and the figures of both.
 */
#ifndef MLA_MLACHECK_FAULTS_H
#define MLA_MLACHECK_FAULTS_H

#include "fuzz/faults/faults.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/progress.h"
#include "fuzz/trial.h"

enum mla_faults_role {
    MLA_ROLE_CANARY = 0, /* must die on every judged case, or nothing is compared */
    MLA_ROLE_CONTROL,    /* right: must never be accused */
    MLA_ROLE_FAULT,      /* must be killed */
    MLA_ROLE_HIDDEN,     /* cannot be killed, the table says */
    MLA_ROLES_N
};

/* One search; its figures are final once it is done. */
struct mla_faults_attempt {
    uint64_t seed;
    struct mla_trial *trial; /* its process, while it has one */
    struct mla_trial_result result;
    bool started; /* else the time was up, or Ctrl-C came, before its turn */
    bool done;
};

/* A kernel on an operation. */
struct mla_faults_cell {
    const struct mla_fault *fault;
    enum mla_faults_role role;
    int32_t op; /* enum mla_op */
    struct mla_faults_attempt *attempts;
    int64_t attempts_n;
};

struct mla_faults {
    struct mla_options options;
    struct mla_progress progress;
    struct mla_kernel_list kernels; /* the chosen ones */
    struct mla_store *store;
    struct mla_faults_cell *cells; /* in the order of roles, then of the tables */
    size_t cells_n;
    double began;
    double deadline; /* of all but the canaries and the controls' least share */
    int code;        /* of an error that ends the run */
};

/* faults_hunt.c: all cells and their trials to the end, each stored when it ends. A canary that lives ends
 * it before anything else is run: false. */
bool mla_faults_hunt(struct mla_faults *f);

/* One trial with its cell. */
struct mla_faults_entry {
    const struct mla_faults_cell *cell;
    struct mla_faults_attempt *attempt;
    int64_t number;
};
/* faults_record.c: store a trial that is done (the status is the store's); tell of its kill. */
int32_t mla_faults_store(struct mla_faults *f, const struct mla_faults_entry *entry);
void mla_faults_print_kill(const struct mla_faults_entry *entry);

/* faults_figures.c: what the trials of a cell, or of all cells of a kernel, say together. */
struct mla_faults_sum {
    enum mla_trial_outcome
        outcome;    /* of a cell: of its trials; of a kernel: the worst of its cells */
    bool accused;   /* any trial killed */
    bool is_judged; /* of every cell some case was */
    bool not_run; /* not applied, and only because no trial was started (of a cell: none at all) */
    int64_t trials, killed;      /* trials: those that were started */
    int64_t executions, applied; /* over all trials */
    /* Medians to the kill, of a kernel those of its slowest cell; < 0 unless killed. */
    double median_executions, median_seconds;
    uint32_t detectors, rules; /* bits: who spoke against it in any survey */
};
struct mla_faults_sum mla_faults_sum_cell(const struct mla_faults_cell *cell);
/* Cells of one kernel are neighbours: those from `first` on; *next is the first of another. */
struct mla_faults_sum mla_faults_sum_kernel(const struct mla_faults *f, size_t first, size_t *next);
/* The median of values that may be infinite: of an even number the lower middle one. n >= 1; sorts. */
double mla_faults_median(double *values, size_t n);

/* Over all kernels. */
struct mla_faults_totals {
    int64_t faults, killed, survived, not_applied, not_run;
    int64_t honest, accused; /* honest: controls of which every cell was judged */
    int64_t idle;            /* the other controls: they prove nothing */
    int64_t hidden, hidden_killed;
    int64_t unmarked;      /* trials killed by cases that never reached the fault */
    int64_t troubled;      /* trials that could not work */
    int64_t oracle_failed; /* cases */
    int64_t executions;
    int64_t detectors[MLA_DETECTORS_N], rules[MLA_TRIAL_RULES_MAX]; /* faults each speaks against */
};
struct mla_faults_totals mla_faults_total(const struct mla_faults *f);

/* faults_report.c: the matrix, classes, totals, survivors; and one line of JSON. */
void mla_faults_print(const struct mla_faults *f, const struct mla_faults_totals *totals);
void mla_faults_print_json(const struct mla_faults *f, const struct mla_faults_totals *totals,
                           bool canary);

#endif
