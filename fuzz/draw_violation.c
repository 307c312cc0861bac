/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_violation.c - breaking one rule of a valid call, or two: values that no call may have. Which
 * there are stands in draw_rules.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/draw.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Entries that are rows of no cache. The fourth is a NaN's pattern, and 0 after a product with the
 * width in 32 bits. */
static const char *const bad_indices = "-2147483648 -123456 -1 2143289344 2147480000 2147483647";

/* Copy the i-th of the space-separated words; returns how many there are. */
static int64_t word(const char *words, int64_t i, char *text, size_t bytes)
{
    int64_t n = 0;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (n == i)
            snprintf(text, bytes, "%.*s", (int)length, words);
        n++;
        words += length + (words[length] == ' ');
    }
    return n;
}

static void break_value(struct mla_violation *v, const char *words, struct mla_rng *rng)
{
    int64_t n = word(words, -1, v->value, sizeof v->value);
    word(words, mla_rng_below(rng, n), v->value, sizeof v->value);
}

/* A place in the list: its ends, those of the first row, a row of the last core, the last row. */
static int64_t choose_place(const struct mla_case *test, struct mla_rng *rng)
{
    const struct mla_sparse_args *s = &test->sparse;
    int64_t all = s->queries * s->topk, last = all / s->cores;
    int64_t any = mla_rng_below(rng, all), of_core = all - 1 - mla_rng_below(rng, last);
    int64_t of_row = all - 1 - mla_rng_below(rng, s->topk);
    const int64_t places[] = {0, all - 1, s->topk - 1, any, of_core, of_row};
    return places[mla_rng_below(rng, COUNT(places))];
}

static void break_index(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    const int64_t beside[] = {-1, test->sparse.keys, test->sparse.keys + 1};
    int64_t kind = mla_rng_below(rng, 5);
    v->at = choose_place(test, rng);
    if (kind < (int64_t)COUNT(beside))
        snprintf(v->value, sizeof v->value, "%" PRId64, beside[kind]);
    else
        break_value(v, bad_indices, rng);
}

/* "kv[0]" of the table stands for any rank. */
static void choose_rank(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    char *bracket = strchr(v->field, '[');
    if (bracket == NULL)
        return;
    int64_t rank = mla_rng_below(rng, test->ring.ring_size);
    snprintf(bracket, sizeof v->field - (size_t)(bracket - v->field), "[%" PRId64 "]", rank);
}

static const struct mla_breakage *choose(const struct mla_breakage *list, size_t n,
                                         struct mla_rng *rng)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += list[i].weight;
    for (int64_t at = mla_rng_below(rng, sum); at >= list->weight; list++)
        at -= list->weight;
    return list;
}

static void suspect_one(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    struct mla_breakage list[MLA_BREAKAGES_MAX];
    size_t n = mla_draw_breakages(test, list);
    const struct mla_breakage *chosen = choose(list, n, rng);
    memset(v, 0, sizeof *v);
    snprintf(v->field, sizeof v->field, "%s", chosen->field);
    if (chosen->values == NULL)
        snprintf(v->value, sizeof v->value, "%" PRId64, chosen->value);
    else if (strcmp(chosen->values, MLA_BREAKAGE_INDEX) == 0)
        break_index(test, v, rng);
    else
        break_value(v, chosen->values, rng);
    choose_rank(test, v, rng);
}

bool mla_draw_breaks_a_rule(const struct mla_case *test, const struct mla_violation *v)
{
    struct mla_case alone = *test;
    char error[MLA_CASE_ERROR_MAX];
    alone.put_n = 0;
    alone.set_n = 1;
    alone.set[0] = *v;
    return mla_case_problem(&alone, INT64_MAX, error) == NULL;
}

void mla_draw_broken_rule(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    do
        suspect_one(test, v, rng);
    while (!mla_draw_breaks_a_rule(test, v));
}

/* Another way to break a rule of the same field, if the tables know one. */
bool mla_draw_other_value(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    struct mla_breakage list[MLA_BREAKAGES_MAX];
    size_t n = mla_draw_breakages(test, list), same_n = 0;
    struct mla_violation other = *v;
    for (size_t i = 0; i < n; i++)
        if (list[i].values != NULL && strcmp(list[i].field, v->field) == 0)
            list[same_n++] = list[i];
    const char *values = same_n == 0 ? NULL : list[mla_rng_below(rng, (int64_t)same_n)].values;
    if (strcmp(v->field, "topk_indices") == 0 && strcmp(v->value, "null") != 0)
        values = bad_indices;
    if (values != NULL && strcmp(values, MLA_BREAKAGE_INDEX) != 0)
        break_value(&other, values, rng);
    if (!mla_draw_breaks_a_rule(test, &other))
        return false;
    *v = other;
    return true;
}

bool mla_draw_other_place(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    struct mla_violation other = *v;
    if (test->op == MLA_OP_RING)
        choose_rank(test, &other, rng);
    else if (strcmp(v->field, "topk_indices") == 0 && strcmp(v->value, "null") != 0)
        other.at = choose_place(test, rng);
    if (!mla_draw_breaks_a_rule(test, &other))
        return false;
    *v = other;
    return true;
}

/* A list so tall that the tiled layout has a second tile of rows, and a bad entry in it. Nothing is
 * computed or judged of a call that is refused, so height costs little. */
static void break_tall_list(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    test->seed -= test->seed % MLA_LARGE_SEEDS; /* so that it may be large */
    s->queries = 129 + mla_rng_below(rng, 2);
    s->cores = mla_rng_chance(rng, 1, 2) ? 2 + s->queries % 2 : 1;
    s->heads = 16;
    s->topk = 128;
    s->dense = 0;
    s->topk_tiled = mla_rng_chance(rng, 3, 4);
    s->keys = 300;
    mla_case_fix(test);
    snprintf(test->set[0].field, sizeof test->set[0].field, "topk_indices");
    break_index(test, &test->set[0], rng);
    test->set[0].at = s->queries * s->topk - 1 - mla_rng_below(rng, s->topk);
    test->set_n = 1;
}

void mla_case_draw_violation(struct mla_case *test, struct mla_rng *rng)
{
    char error[MLA_CASE_ERROR_MAX];
    test->put_n = 0;
    do {
        memset(test->set, 0, sizeof test->set);
        test->set_n = 0;
        if (test->op == MLA_OP_SPARSE && mla_draw_chance(rng, mla_draw_chances.tall_list)) {
            break_tall_list(test, rng);
            continue;
        }
        mla_draw_broken_rule(test, &test->set[0], rng);
        test->set_n = mla_draw_chance(rng, mla_draw_chances.second_rule) ? 2 : 1;
        if (test->set_n == 2)
            mla_draw_broken_rule(test, &test->set[1], rng);
        if (test->set_n == 2 && strcmp(test->set[0].field, test->set[1].field) == 0)
            memset(&test->set[--test->set_n], 0, sizeof test->set[0]);
    } while (mla_case_problem(test, INT64_MAX, error) != NULL); /* two may undo each other */
}
