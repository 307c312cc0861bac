/* SPDX-License-Identifier: Apache-2.0
 *
 * relations.h - what two calls must have in common, without an oracle.
 *
 * A relation changes a case into one whose output must have the same bits. Contents of tensors
 * depend only on seed and place, so the change of a field (threads, index layout, poison) is the
 * whole relation. Adding one: a function and a line in the table.
 */
#ifndef MLA_FUZZ_RELATIONS_H
#define MLA_FUZZ_RELATIONS_H

#include "fuzz/case.h"
#include "impl/mla_kernel.h"

struct mla_relation {
    const char *name;
    const char *what;
    uint64_t promise; /* tested only on kernels that promise this */
    bool same_inputs; /* the changed case has the same input tensors */
    bool other_dirt;  /* outputs and scratch start with another pattern */
    /* Change the case; false where the relation does not apply. */
    bool (*vary)(struct mla_case *test);
};

const struct mla_relation *mla_relations(size_t *relations_n);

/* Those a hunt tries on this case, as bits: one, all of them in turn, since each costs another call. */
uint32_t mla_relations_choose(const struct mla_case *test);

#endif
