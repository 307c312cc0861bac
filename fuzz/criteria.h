/* SPDX-License-Identifier: Apache-2.0
 *
 * criteria.h - what published accuracy rules would have said of a kernel's output.
 *
 * For comparison only: which of the rules in use would let a fault by that the certified interval
 * catches, and which would accuse a kernel that computes all it promised. Each rule is stated here
 * as its source has it today, constants included, but for three things, the same for all:
 *   - the reference is the true value o (nearest double), not another implementation; no rule sees
 *     o rounded to bf16, though some sources round their reference so;
 *   - it sees the judged elements of the case, not the whole tensor;
 *   - a NaN or Inf in the output fails it, although comp_pcc masks them out.
 */
#ifndef MLA_FUZZ_CRITERIA_H
#define MLA_FUZZ_CRITERIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mla_metrics_sums;

struct mla_criterion {
    const char *name;   /* [a-z0-9_]+, stable */
    const char *metric; /* what its verdict, 1 or 0, is stored as: "would_pass_" and the name */
    const char *what;   /* the rule in one line */
    const char *source; /* repository and file */
    bool (*passes)(const struct mla_metrics_sums *sums);
};

/* Rule i is bit i of mla_metrics.would_pass. */
const struct mla_criterion *mla_criteria(size_t *criteria_n);

/* Bit i of the result: rule i passes. Of no element at all none does. */
uint32_t mla_criteria_judge(const struct mla_metrics_sums *sums);

/* Rules that look at each element alone: the set of those that (e, o) breaks, as bits that only
 * criteria.c reads. Called for each element, finite ones only. */
uint32_t mla_criteria_element(double error, double value);

#endif
