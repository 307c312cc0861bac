/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_care.h - what keeps hunts healthy for weeks: a small database, small corpora.
 */
#ifndef MLA_MLACHECK_FUZZ_CARE_H
#define MLA_MLACHECK_FUZZ_CARE_H

#include "fuzz/mlacheck/options.h"

/* Bound the rows that hunts left in the database; a failure is told on stderr and is none of the hunt. */
void mla_fuzz_prune(const struct mla_options *options);

/*
 * Merge the corpora of a folder whose files have become too many (all of them with --merge): of the
 * inputs only enough stay to raise every feature again that they raised together, coverage and the
 * counters of guidance alike. programs: where fuzz_ring and the others lie. A corpus whose merging does
 * not come to its end is left as it was.
 */
void mla_fuzz_merge(const struct mla_options *options, const char *programs, const char *folder);

#endif
