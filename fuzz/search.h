/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h - a search of our own over cases, where no engine is at hand: what to run next.
 *
 *     mla_search_begin(..)
 *     loop: mla_search_next(&test), run and judge it, mla_search_learn(&test, &verdict)
 *     mla_search_end()
 *
 * Random: every case is a fresh draw. Guided: cases that raised a counter of guidance.h are kept, and
 * after a few hundred draws, the same as random with that seed makes, most cases are mutations and
 * crossings of those. The sequence depends on the seed and on what is
 * learned only.
 */
#ifndef MLA_FUZZ_SEARCH_H
#define MLA_FUZZ_SEARCH_H

#include "fuzz/guidance.h"

enum mla_search_kind {
    MLA_SEARCH_RANDOM,
    MLA_SEARCH_GUIDED,
    MLA_SEARCH_SHAPES /* guided, but blind to errors: what these add is measured against it */
};

struct mla_search;

/* reject: cases that break a rule. NULL without memory. */
struct mla_search *mla_search_begin(enum mla_op op, bool reject, enum mla_search_kind kind,
                                    uint64_t seed);
/* A case without a problem (mla_case_problem). */
void mla_search_next(struct mla_search *search, struct mla_case *test);
/*
 * A case that raises a counter is kept until the end, so that for every counter raised a case is at
 * hand that does; so is, up to a limit, one whose err/B is the worst so far. Never more than
 * MLA_GUIDANCE_COUNTERS + 256 of them, about 1 KB each. Without memory for one it is forgotten.
 */
void mla_search_learn(struct mla_search *search, const struct mla_case *test,
                      const struct mla_verdict *verdict);
/* Cases kept so far, and the i-th of them. */
size_t mla_search_kept(const struct mla_search *search);
const struct mla_case *mla_search_case(const struct mla_search *search, size_t i);
void mla_search_end(struct mla_search *search);

/* One case in so many is drawn anew: the draw knows where faults live, and what was never met cannot be
 * varied. */
#define MLA_SEARCH_FRESH 3
/* A new case, of the values or of what must be refused. */
void mla_search_draw(struct mla_case *test, enum mla_op op, bool reject, struct mla_rng *rng);
/*
 * A kept case to a new one: mutated, or crossed with other (may be NULL). If the signs of its values
 * are coins they are thrown anew: the row-energy test (judge_energy.c) holds for coins nobody has
 * looked at, and a case is kept for what its coins did.
 */
void mla_search_vary(struct mla_case *test, const struct mla_case *other, struct mla_rng *rng);
/* The coins alone, of a case that was changed in another way. */
void mla_search_renew(struct mla_case *test, struct mla_rng *rng);

#endif
