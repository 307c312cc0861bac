/* SPDX-License-Identifier: Apache-2.0
 *
 * report_read.h - the passes over the database that fill a report.
 */
#ifndef MLA_RESULTS_REPORT_READ_H
#define MLA_RESULTS_REPORT_READ_H

#include "results/report_internal.h"
#include "results/store_internal.h"

/* Runs by rank, and the subjects with the commit that counts; in this order, first of all. */
int32_t mla_report_read_runs(struct mla_report *report);
int32_t mla_report_read_subjects(struct mla_report *report);
/* Cases counted without a verdict. */
int32_t mla_report_read_tallies(struct mla_report *report);
/* All verdicts, case by case. */
int32_t mla_report_read_verdicts(struct mla_report *report);

/* What a run judged, from the kernels it names: sets state and files. False without memory. */
bool mla_report_add_states(struct mla_report *report, struct mla_run_row *run, const char *kernels);
/* The rank of a run that is in the database. */
size_t mla_report_rank(const struct mla_report *report, int64_t run);
/* The subject, made at first sight; NULL without memory. Moves the others: keep no pointer. */
struct mla_subject *mla_report_subject(struct mla_report *report, const char *kernel,
                                       const char *sanitizer, bool ring);

/* What is known of a case beside its verdicts; columns of the pass. */
struct mla_shape {
    int64_t testcase;
    bool ring;
    double keys;  /* ring: logical_n; sparse: topk, or all keys if dense */
    double ranks; /* ring: ring_size; sparse: heads */
    double scale; /* 0: unknown */
};
/* Add one run's outcome to the trend, the one that a case's present state is to the counts, and one of the
 * subject's last commit to its figures. */
void mla_report_add_trend(struct mla_report *report, struct mla_subject *subject,
                          const struct mla_outcome *outcome, int64_t testcase);
void mla_report_add_state(struct mla_report *report, struct mla_subject *subject,
                          const struct mla_outcome *outcome, int64_t testcase);
int32_t mla_report_add_figures(struct mla_report *report, struct mla_subject *subject,
                               const struct mla_outcome *outcome, const struct mla_shape *shape);
/* Count a change, and keep it if it is among the gravest. */
void mla_report_add_change(struct mla_report *report, struct mla_subject *subject,
                           struct mla_change change);

#endif
