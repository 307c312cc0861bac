/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_sequence.h - earlier calls, made in the process of the call that is judged.
 */
#ifndef MLA_FUZZ_JUDGE_SEQUENCE_H
#define MLA_FUZZ_JUDGE_SEQUENCE_H

#include "fuzz/relations.h"

struct mla_sequence {
    const struct mla_kernel *kernel;
    const struct mla_tensors *first; /* what the inputs of `last` must be when its turn comes */
    struct mla_tensors *last;        /* the call that is judged */
    int n;
    struct mla_tensors *earlier[MLA_RELATION_EARLIER_MAX];
    bool in_place[MLA_RELATION_EARLIER_MAX];
};

/* The earlier calls of a relation that the kernel offers; none for one without. false: no memory,
 * error says so. Freed whatever the result. */
bool mla_sequence_make(struct mla_sequence *sequence, const struct mla_relation *relation,
                       const struct mla_kernel *kernel, const struct mla_tensors *first,
                       struct mla_tensors *last, char error[MLA_CASE_ERROR_MAX]);
void mla_sequence_free(struct mla_sequence *sequence);

/* Make the earlier calls, in this process, and leave the last one's tensors as they were. What the
 * calls return is judged elsewhere, on cases of their own. sequence: a struct mla_sequence. */
void mla_sequence_run(void *sequence);

#endif
