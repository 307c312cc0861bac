/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_sequence.h - calls made in the process of the one that is judged, before it or beside it.
 */
#ifndef MLA_FUZZ_JUDGE_SEQUENCE_H
#define MLA_FUZZ_JUDGE_SEQUENCE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fuzz/relations.h"

struct mla_sequence {
    const struct mla_kernel *kernel;
    const struct mla_tensors *first; /* what the inputs of `last` must be when its turn comes */
    struct mla_tensors *last;        /* the call that is judged */
    int n;
    struct mla_tensors *earlier[MLA_RELATION_EARLIER_MAX];
    bool in_place[MLA_RELATION_EARLIER_MAX];
    bool is_beside;        /* the first of them is made while the last runs, again and again */
    int64_t repeats;       /* calls of the last one, at most, beside it */
    atomic_bool has_begun; /* it is being made */
    atomic_bool is_over;   /* the last call has returned */
    bool has_company;
    pthread_t company;
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

/* judge_company.c: begin making the first call over and over in a thread of its own; repeat the last one
 * while it gives what it gave alone, and end the thread. Where there can be no thread the last call is
 * made alone. sequence: a struct mla_sequence. */
void mla_company_begin(void *sequence);
void mla_company_end(void *sequence);

#endif
