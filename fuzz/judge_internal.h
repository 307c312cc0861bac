/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_internal.h - what the files of the judge share.
 */
#ifndef MLA_FUZZ_JUDGE_INTERNAL_H
#define MLA_FUZZ_JUDGE_INTERNAL_H

#include "fuzz/judge.h"
#include "fuzz/tensors.h"
#include "oracle/oracle.h"

struct mla_subject {
    struct mla_tensors *tensors;
    int64_t rows_n;
    struct mla_row *rows;
    struct mla_truth **truths; /* NULL until asked for */
    bool truths_made;
    bool plain;            /* they come from the plain definition */
    double oracle_seconds; /* of making the truths */
};

/* rows.c: draw the rows to judge. NULL when memory is missing. */
struct mla_row *mla_rows_draw(const struct mla_case *test, int64_t *rows_n);
/* rows.c: how many that are. */
int64_t mla_rows_count(const struct mla_case *test);
/* rows.c: the i-th of all rows of a call: by rank, batch entry, head, row. */
struct mla_row mla_rows_at(const struct mla_case *test, int64_t i);
/* rows.c: compute all truths that are missing, on that many threads, in MPFR (plain) or fast.
 * MLA_OK or the oracle's status. */
int32_t mla_rows_truths(struct mla_subject *subject, int threads, bool plain);

/* rows.c: one truth. */
int32_t mla_rows_truth(const struct mla_tensors *t, struct mla_row row, bool plain,
                       struct mla_truth **truth);
/* rows.c: does this query row see no key (a pad row, or all its keys dropped)? */
bool mla_rows_empty(const struct mla_tensors *t, int64_t rank, int64_t row);

/* verdict.c: record a failure; the first one recorded stays, but a fault displaces UNJUDGED. Returns
 * false, for `return fail(..)`. */
__attribute__((format(printf, 3, 4))) bool
mla_verdict_fail(struct mla_verdict *verdict, enum mla_verdict_kind kind, const char *format, ...);

/* verdict.c: how the call ended. false: a crash or timeout is recorded. */
struct mla_call;
bool mla_judge_call_end(const struct mla_call *call, struct mla_verdict *verdict);

/* judge.c: does the kernel offer this call? false: an unsupported verdict is set. */
bool mla_judge_offered(const struct mla_tensors *tensors, const struct mla_kernel *kernel,
                       struct mla_verdict *verdict);
/* judge.c: call and check all that needs no oracle. sequence: what is called before it, or NULL.
 * false: a failure is recorded, or why nothing can be said. */
struct mla_sequence;
bool mla_judge_call(struct mla_tensors *tensors, const struct mla_kernel *kernel,
                    const struct mla_judge_options *options, struct mla_sequence *sequence,
                    struct mla_verdict *verdict);

/* judge_relations.c: the relations that options name, after the first call has passed. */
void mla_judge_relations(struct mla_subject *subject, const struct mla_kernel *kernel,
                         const struct mla_judge_options *options, struct mla_verdict *verdict);

/* judge_memory.c: what a call may not have touched. false: a failure is recorded. */
bool mla_judge_inputs(const struct mla_tensors *tensors, struct mla_verdict *verdict);
/* The same, and what else a call that returned may not leave: environment, processes, threads. */
struct mla_call;
bool mla_judge_traces(const struct mla_tensors *tensors, const struct mla_call *call,
                      struct mla_verdict *verdict);
bool mla_judge_untouched(const struct mla_tensors *tensors, struct mla_verdict *verdict);
bool mla_judge_scratch(struct mla_tensors *tensors, struct mla_verdict *verdict);
bool mla_judge_written(const struct mla_tensors *tensors, uint64_t promises,
                       struct mla_verdict *verdict);
/* May the contents of this output element be anything, under these promises? */
bool mla_judge_is_free(const struct mla_tensors *tensors, const struct mla_tensor *tensor,
                       int64_t element, uint64_t promises);

/* judge_values.c: every judged row against the oracle. false: a failure is recorded. */
bool mla_judge_values(struct mla_subject *subject, const struct mla_kernel *kernel,
                      struct mla_verdict *verdict);

/* judge_stats.c: the statistics of a row, or its log-sum-exp. false: a failure is recorded, or why nothing
 * can be said. */
bool mla_judge_stats(const struct mla_tensors *tensors, struct mla_row row,
                     const struct mla_truth *truth, const struct mla_model *model,
                     struct mla_verdict *verdict);
bool mla_judge_lse(const struct mla_tensors *tensors, struct mla_row row,
                   const struct mla_truth *truth, const struct mla_model *model,
                   struct mla_verdict *verdict);

/* judge_energy.c: after that, the drawn rows against chance, if the case and the model allow it.
 * false: a failure is recorded. */
bool mla_judge_energy(const struct mla_subject *subject, const struct mla_kernel *kernel,
                      const struct mla_judge_options *options, struct mla_verdict *verdict);

/* judge_refusal.c: a call that must be refused. Sets the verdict. */
void mla_judge_refusal(struct mla_subject *subject, const struct mla_kernel *kernel,
                       const struct mla_judge_options *options, struct mla_verdict *verdict);

/* Where element (row, natural column) stands in the output tensor of its rank, and its name. */
int64_t mla_judge_place(const struct mla_tensors *tensors, struct mla_row row, int64_t column);
void mla_judge_element(const struct mla_tensors *tensors, struct mla_row row, int64_t column,
                       char text[96]);
/* A row's outputs, and where among them a natural column is. */
const uint16_t *mla_judge_row_of(const struct mla_tensors *tensors, struct mla_row row);
int64_t mla_judge_column(const struct mla_tensors *tensors, int64_t column);
/* The two statistics of a row, of a call that has them: returns the maximum. */
const float *mla_judge_stats_of(const struct mla_tensors *tensors, struct mla_row row,
                                const float **sum);

#endif
