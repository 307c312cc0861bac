/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h - a search of our own over cases, where no engine is at hand: what to run next.
 *
 *     mla_search_begin(..)
 *     loop: mla_search_next(&test), run and judge it, mla_search_learn(&test, &verdict)
 *     mla_search_end()
 *
 * Random: every case is a fresh draw. Guided: cases that raised a counter of guidance.h are kept, and
 * most cases are mutations and crossings of those. The sequence depends on the seed and on what is
 * learned only.
 */
#ifndef MLA_FUZZ_SEARCH_H
#define MLA_FUZZ_SEARCH_H

#include "fuzz/guidance.h"

enum mla_search_kind { MLA_SEARCH_RANDOM, MLA_SEARCH_GUIDED };

struct mla_search;

/* reject: cases that break a rule. NULL without memory. */
struct mla_search *mla_search_begin(enum mla_op op, bool reject, enum mla_search_kind kind,
                                    uint64_t seed);
/* A case without a problem (mla_case_problem). */
void mla_search_next(struct mla_search *search, struct mla_case *test);
void mla_search_learn(struct mla_search *search, const struct mla_case *test,
                      const struct mla_verdict *verdict);
/* Cases kept so far. */
size_t mla_search_kept(const struct mla_search *search);
void mla_search_end(struct mla_search *search);

#endif
