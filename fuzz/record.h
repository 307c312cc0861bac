/* SPDX-License-Identifier: Apache-2.0
 *
 * record.h - what becomes of a verdict: counted, printed when it is a fault, stored.
 */
#ifndef MLA_FUZZ_RECORD_H
#define MLA_FUZZ_RECORD_H

#include <stdio.h>

#include "fuzz/judge.h"
#include "results/store.h"

/* (case, kernel) pairs by outcome. judged = passed + failed + improbable + refused + crashed. */
struct mla_counts {
    int64_t cases, judged, passed, failed, improbable, unjudged, refused, crashed, unsupported;
    int64_t rows_judged, rows_nonfinite, rows_out_of_range, rows_without_bound, rows_without_keys;
    int64_t oracle_failed; /* pairs in which the oracle contradicted itself */
};

void mla_counts_add(struct mla_counts *counts, const struct mla_verdict *verdict);

/* The store's view of a case. line must outlive the result. */
void mla_record_case(const struct mla_case *test, const char *line, struct mla_store_case *row);

#define MLA_REPRO_MAX (MLA_CASE_LINE_MAX + 340)
/* A space and a word of a shell, quoted where it has to be; cut where there is no room. */
void mla_record_append_word(char text[MLA_REPRO_MAX], const char *word);
/* "mlacheck run --kernel SPEC --case 'LINE'", with --oracle definition if plain; returns text. */
const char *mla_record_repro(const char *spec, const char *line, bool plain_oracle,
                             char text[MLA_REPRO_MAX]);

/*
 * The two lines of a failure:
 *   FAIL ring/scalar case=9f31c02ab7d1 fail-certain out[..] got=.. allowed=[..] err/bound=..:
 * reason repro: mlacheck run --kernel scalar --case '..'
 */
void mla_record_print(FILE *file, const struct mla_case *test, const char *spec,
                      const struct mla_verdict *verdict);

/* Store a verdict as a row (with its statistics), or only in the tally. */
int32_t mla_record_store(struct mla_store *store, const struct mla_case *test, const char *spec,
                         const struct mla_verdict *verdict);
int32_t mla_record_tally(struct mla_store *store, const struct mla_case *test, const char *spec,
                         const struct mla_verdict *verdict);

#endif
