/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate_set.c - from one call that must be refused to another: the same rule by another value or at
 * another place, a second rule beside it, one rule less, or another rule.
 */
#include <string.h>

#include "fuzz/draw.h"

/* Rules or not, together: two may undo each other. */
static bool is_valid(const struct mla_case *test)
{
    char error[MLA_CASE_ERROR_MAX];
    bool twice = test->set_n == 2 && strcmp(test->set[0].field, test->set[1].field) == 0;
    return !twice && mla_case_problem(test, INT64_MAX, error) == NULL;
}

static void drop(struct mla_case *test, size_t i)
{
    test->set[i] = test->set[test->set_n - 1];
    memset(&test->set[--test->set_n], 0, sizeof test->set[0]);
}

static void add(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_violation *v = &test->set[test->set_n];
    mla_draw_broken_rule(test, v, rng);
    if (strcmp(v->field, test->set[0].field) == 0)
        memset(v, 0, sizeof *v);
    else
        test->set_n++;
}

void mla_mutate_set(struct mla_case *test, struct mla_rng *rng)
{
    for (size_t i = test->set_n; i > 0; i--) /* the shape may have changed under them */
        if (!mla_draw_breaks_a_rule(test, &test->set[i - 1]))
            drop(test, i - 1);
    if (test->set_n == 0) {
        mla_case_draw_violation(test, rng);
        return;
    }
    size_t i = (size_t)mla_rng_below(rng, (int64_t)test->set_n);
    switch (mla_rng_below(rng, 5)) {
    case 0:
        if (test->set_n < MLA_CASE_SET_MAX)
            add(test, rng);
        else
            drop(test, i);
        break;
    case 1:
        (void)mla_draw_other_place(test, &test->set[i], rng);
        break;
    case 2:
    case 3:
        (void)mla_draw_other_value(test, &test->set[i], rng);
        break;
    default:
        mla_draw_broken_rule(test, &test->set[i], rng);
        break;
    }
    if (!is_valid(test))
        mla_case_draw_violation(test, rng);
}
