/* SPDX-License-Identifier: Apache-2.0
 *
 * counts.h - what a run that judges prints: a verdict, its counts, and the exit code they mean.
 */
#ifndef MLA_MLACHECK_COUNTS_H
#define MLA_MLACHECK_COUNTS_H

#include "fuzz/record.h"

/* The lines of one verdict: a failure's two, why nothing was judged; of all others one if verbose. */
void mla_verdict_report(const struct mla_case *test, const char *spec,
                        const struct mla_verdict *verdict, bool verbose);

/* "N judged: ..", and the rows. */
void mla_counts_print(const struct mla_counts *counts, int64_t slow_skipped);
/* The members of a JSON object, the brace before them included. */
void mla_counts_print_json(const struct mla_counts *counts, int64_t slow_skipped);
/* enum mla_exit; complains where the oracle contradicted itself. */
int mla_counts_exit(const char *verb, const struct mla_counts *counts);

#endif
