/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c - a search of our own over cases.
 */
#include "fuzz/search.h"

#include <stdlib.h>

struct mla_search {
    enum mla_op op;
    bool reject;
    enum mla_search_kind kind;
    struct mla_rng rng;
};

struct mla_search *mla_search_begin(enum mla_op op, bool reject, enum mla_search_kind kind,
                                    uint64_t seed)
{
    struct mla_search *s = calloc(1, sizeof *s);
    if (s != NULL)
        *s = (struct mla_search){op, reject, kind, {mla_number_mix(seed), 0}};
    return s;
}

void mla_search_next(struct mla_search *search, struct mla_case *test)
{
    mla_case_draw(test, search->op, &search->rng);
    if (search->reject)
        mla_case_draw_violation(test, &search->rng);
}

void mla_search_learn(struct mla_search *search, const struct mla_case *test,
                      const struct mla_verdict *verdict)
{
    (void)search;
    (void)test;
    (void)verdict;
}

size_t mla_search_kept(const struct mla_search *search)
{
    (void)search;
    return 0;
}

void mla_search_end(struct mla_search *search)
{
    free(search);
}
