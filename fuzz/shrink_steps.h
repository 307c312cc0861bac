/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink_steps.h - the ways in which a case can become simpler, and what simpler means.
 */
#ifndef MLA_FUZZ_SHRINK_STEPS_H
#define MLA_FUZZ_SHRINK_STEPS_H

#include "fuzz/case.h"

/* One kind of reduction. */
struct mla_shrink_step {
    const char *name;
    uint32_t operations; /* bit op: it applies to that operation */
    /*
     * The i-th proposal for a case, i = 0, 1, .., the boldest first: *to holds a copy of it on entry.
     * false: there are no more. A proposal may be no legal case, or not smaller.
     */
    bool (*propose)(const struct mla_case *from, int64_t i, struct mla_case *to);
};

/* The table, in the order in which the steps are tried. */
const struct mla_shrink_step *mla_shrink_steps(size_t *steps_n);

/* Lengths that follow from those a step changed; overrides and violations stay at their coordinates. */
void mla_shrink_settle(const struct mla_case *from, struct mla_case *to);

/*
 * Is a simpler than b? Compared in this order: bytes of the tensors; blocks of keys; judged rows; how
 * far the other fields are from their plainest; seeds. A strict order on tuples of integers from 0 on,
 * so that steps which only ever go down come to an end.
 */
bool mla_shrink_is_simpler(const struct mla_case *a, const struct mla_case *b);

#endif
