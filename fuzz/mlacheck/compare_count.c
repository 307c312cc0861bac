/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_count.c - what moved in words and numbers, and which of it is a regression.
 */
#include "fuzz/mlacheck/compare.h"

#include <string.h>

const struct mla_moved_word mla_moved_words[MLA_MOVED_N] = {
    [MLA_MOVED_REGRESSION] = {"REGRESSION", "regressions", "passed in A and fail in B"},
    [MLA_MOVED_NEW_FAILURE] = {"NEW", "new_failures", "fail in B and were not judged in A"},
    [MLA_MOVED_FIXED] = {"FIXED", "fixed", "failed in A and pass in B"},
    [MLA_MOVED_LOST] = {"LOST", "lost", "were judged in A and are not in B"},
    [MLA_MOVED_APART] = {"APART", "not_comparable",
                         "failed in A by a relation that B did not look at: not comparable"},
    [MLA_MOVED_UNSTEADY] = {"UNSTEADY", "unsteady",
                            "have other verdicts when judged again on the same side"},
    [MLA_MOVED_BITS] = {"BITS", "bits_changed", "pass in both with other output bits"},
};

bool mla_compare_is_regression(const struct mla_compare *c, const struct mla_moved_item *item)
{
    const struct mla_compare_group *g = &c->groups[item->group];
    if (item->moved == MLA_MOVED_NEW_FAILURE)
        return g->failed[0] == 0 && g->passed[0] > 0;
    return item->moved == MLA_MOVED_REGRESSION;
}

int64_t mla_compare_count_regressions(const struct mla_compare *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->items_n; i++)
        n += mla_compare_is_regression(c, &c->items[i]);
    return n;
}

int64_t mla_compare_count(const struct mla_compare *c, enum mla_moved moved)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->groups_n; i++)
        n += c->groups[i].count[moved];
    return n;
}

bool mla_compare_is_new_worst(const struct mla_compare_group *g)
{
    return g->worst[0] >= 0 && !(g->worst[1] <= g->worst[0]);
}

bool mla_compare_is_rebuilt(const struct mla_compare_group *g)
{
    return g->files[0][0] != '\0' && g->files[1][0] != '\0' &&
           strcmp(g->files[0], g->files[1]) != 0;
}
