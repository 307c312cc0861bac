/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_walk.c - two sides in the same order, row by row: what moved, and the counts of each kernel.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/judge.h"
#include "fuzz/mlacheck/compare.h"
#include "fuzz/relations.h"
#include "results/report_text.h"

/* The three things a verdict can mean for somebody who compares. */
enum meaning { GOOD, BAD, NOTHING };

static enum meaning meaning_of(const struct mla_side_row *row)
{
    if (mla_side_is_failure(row->verdict))
        return BAD;
    return strcmp(row->verdict, "pass") == 0 || strcmp(row->verdict, "refused") == 0 ? GOOD
                                                                                     : NOTHING;
}

/* The verdict's name as a constant, as rows do not last. */
static const char *verdict_name(const char *name)
{
    for (int i = 0; i < MLA_VERDICTS_N; i++)
        if (strcmp(mla_verdict_name((enum mla_verdict_kind)i), name) == 0)
            return mla_verdict_name((enum mla_verdict_kind)i);
    return "?";
}

static int out_of_memory(struct mla_compare *c)
{
    c->code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
    return c->code;
}

/* ---- groups ---- */

static bool is_group(const struct mla_compare_group *g, const struct mla_side_row *row)
{
    return strcmp(g->kernel, row->kernel) == 0 && strcmp(g->op, row->op) == 0 &&
           strcmp(g->sanitizer, row->sanitizer) == 0 && strcmp(g->isa, row->isa) == 0;
}

/* There are some dozens at most. */
static struct mla_compare_group *group_of(struct mla_compare *c, const struct mla_side_row *row)
{
    for (size_t i = 0; i < c->groups_n; i++)
        if (is_group(&c->groups[i], row))
            return &c->groups[i];
    if (c->groups_n == c->groups_room) {
        size_t room = 2 * c->groups_room + 16;
        struct mla_compare_group *grown = realloc(c->groups, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        c->groups = grown;
        c->groups_room = room;
    }
    struct mla_compare_group *g = &c->groups[c->groups_n++];
    *g = (struct mla_compare_group){.op = strdup(row->op),
                                    .kernel = strdup(row->kernel),
                                    .sanitizer = strdup(row->sanitizer),
                                    .isa = strdup(row->isa),
                                    .worst = {-1, -1},
                                    .worst_before = -1};
    bool ok = g->op != NULL && g->kernel != NULL && g->sanitizer != NULL && g->isa != NULL;
    return ok ? g : NULL;
}

static void count_row(struct mla_compare_group *g, int side, const struct mla_side_row *row,
                      const struct mla_side_row *before)
{
    enum meaning meaning = meaning_of(row);
    g->passed[side] += meaning == GOOD;
    g->failed[side] += meaning == BAD;
    if (isnan(g->worst[side]) || row->max_ratio <= g->worst[side] || row->max_ratio < 0)
        return; /* NaN is the worst, and not less or equal */
    g->worst[side] = row->max_ratio;
    memcpy(g->worst_id[side], row->id, 12);
    if (side == 1)
        g->worst_before = before == NULL ? -1 : before->max_ratio;
}

/* ---- items ---- */

static struct mla_moved_item *new_item(struct mla_compare *c)
{
    if (c->items_n == c->items_room) {
        size_t room = 2 * c->items_room + 64;
        struct mla_moved_item *grown = realloc(c->items, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        c->items = grown;
        c->items_room = room;
    }
    c->items[c->items_n] = (struct mla_moved_item){.ratios = {-1, -1}};
    return &c->items[c->items_n++];
}

/* The relation, static, that one of two failed by and the other, which passed, did not look at; NULL: none. */
static const char *unseen_relation(const struct mla_side_row *a, const struct mla_side_row *b)
{
    const struct mla_side_row *bad = meaning_of(a) == BAD ? a : b, *other = bad == a ? b : a;
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    if (meaning_of(bad) != BAD || meaning_of(other) != GOOD || bad->relation[0] == '\0')
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(relations[i].name, bad->relation) == 0)
            return other->relations >= 0 && (other->relations >> i & 1) != 0 ? NULL
                                                                             : relations[i].name;
    return "that is no more";
}

/* rows: A's and B's, either may be NULL. */
static void note(struct mla_compare *c, struct mla_compare_group *g, enum mla_moved moved,
                 const struct mla_side_row *const rows[2])
{
    const struct mla_side_row *row = rows[1] != NULL ? rows[1] : rows[0];
    struct mla_moved_item *item = new_item(c);
    if (item == NULL) {
        out_of_memory(c);
        return;
    }
    item->moved = moved;
    item->group = (size_t)(g - c->groups);
    memcpy(item->id, row->id, 12);
    item->before = rows[0] == NULL ? NULL : verdict_name(rows[0]->verdict);
    item->after = rows[1] == NULL ? NULL : verdict_name(rows[1]->verdict);
    for (int s = 0; s < 2; s++) {
        item->ratios[s] = rows[s] == NULL ? -1 : rows[s]->max_ratio;
        item->judged[s] = rows[s] == NULL ? 0 : rows[s]->judged_n;
        item->failed[s] = rows[s] == NULL ? 0 : rows[s]->failed_n;
    }
    item->unseen = rows[0] == NULL || rows[1] == NULL ? NULL : unseen_relation(rows[0], rows[1]);
    item->reason = strdup(row->reason);
    g->count[moved]++;
    if (item->reason == NULL)
        out_of_memory(c);
    else if (rows[1] != NULL && meaning_of(rows[1]) == BAD &&
             mla_store_side_repro(c->sides[1], rows[1], &item->repro) != MLA_STORE_OK)
        c->code = mla_compare_store_failed(c, 1);
}

static void compare_bits(struct mla_compare *c, struct mla_compare_group *g,
                         const struct mla_side_row *const rows[2])
{
    double a = rows[0]->output_hash, b = rows[1]->output_hash;
    if (a <= 0 || b <= 0)
        g->no_bits++;
    else if (a == b)
        g->same_bits++;
    else
        note(c, g, MLA_MOVED_BITS, rows);
}

static void compare_pair(struct mla_compare *c, const struct mla_side_row *const rows[2])
{
    struct mla_compare_group *g = group_of(c, rows[1]);
    if (g == NULL) {
        out_of_memory(c);
        return;
    }
    enum meaning before = meaning_of(rows[0]), after = meaning_of(rows[1]);
    g->paired++;
    count_row(g, 0, rows[0], NULL);
    count_row(g, 1, rows[1], rows[0]);
    bool unseen = unseen_relation(rows[0], rows[1]) != NULL;
    if (before == GOOD && after == BAD && !unseen)
        note(c, g, MLA_MOVED_REGRESSION, rows);
    else if (before != BAD && after == BAD)
        note(c, g, MLA_MOVED_NEW_FAILURE, rows);
    else if (before == BAD && after == GOOD)
        note(c, g, unseen ? MLA_MOVED_APART : MLA_MOVED_FIXED, rows);
    else if (before != NOTHING && after == NOTHING)
        note(c, g, MLA_MOVED_LOST, rows);
    else if (strcmp(rows[0]->verdict, "pass") == 0 && strcmp(rows[1]->verdict, "pass") == 0)
        compare_bits(c, g, rows);
    if (!rows[0]->is_steady || !rows[1]->is_steady)
        note(c, g, MLA_MOVED_UNSTEADY, rows);
}

static void take_single(struct mla_compare *c, int side, const struct mla_side_row *row)
{
    const struct mla_side_row *const rows[2] = {side == 0 ? row : NULL, side == 1 ? row : NULL};
    struct mla_compare_group *g = group_of(c, row);
    if (g == NULL) {
        out_of_memory(c);
        return;
    }
    g->only[side]++;
    if (c->options.verbose) {
        mla_progress_clear(&c->progress);
        printf("only in %c: %s/", 'A' + side, row->op);
        mla_text_plain(stdout, row->kernel);
        printf(" case=%.12s %s\n", row->id, row->verdict);
    }
    count_row(g, side, row, NULL);
    if (side == 1 && meaning_of(row) == BAD)
        note(c, g, MLA_MOVED_NEW_FAILURE, rows);
    if (!row->is_steady)
        note(c, g, MLA_MOVED_UNSTEADY, rows);
}

/* ---- the walk ---- */

/* As the sides are ordered. A side at its end comes after everything. */
static int order(const struct mla_side_row rows[2], const bool there[2])
{
    const char *const a[] = {rows[0].id, rows[0].kernel, rows[0].sanitizer, rows[0].isa};
    const char *const b[] = {rows[1].id, rows[1].kernel, rows[1].sanitizer, rows[1].isa};
    int difference = 0;
    if (!there[0] || !there[1])
        return there[0] ? -1 : 1;
    for (size_t i = 0; i < 4 && difference == 0; i++)
        difference = strcmp(a[i], b[i]);
    return difference;
}

static bool next(struct mla_compare *c, int side, struct mla_side_row *row)
{
    int32_t status = mla_store_side_next(c->sides[side], row);
    if (status != MLA_STORE_OK && status != MLA_STORE_ERR_NOT_FOUND)
        c->code = mla_compare_store_failed(c, side);
    return status == MLA_STORE_OK;
}

void mla_compare_walk(struct mla_compare *c)
{
    struct mla_side_row rows[2];
    bool there[2] = {next(c, 0, &rows[0]), next(c, 1, &rows[1])};
    double done = 0;
    while ((there[0] || there[1]) && c->code == 0 && !mla_interrupted) {
        int which = order(rows, there);
        if (which == 0)
            compare_pair(c, (const struct mla_side_row *const[]){&rows[0], &rows[1]});
        else
            take_single(c, which > 0, &rows[which > 0]);
        mla_progress_say(&c->progress, ++done, 0, "verdicts compared", "");
        if (which <= 0)
            there[0] = next(c, 0, &rows[0]);
        if (which >= 0)
            there[1] = next(c, 1, &rows[1]);
    }
    mla_progress_clear(&c->progress);
    for (size_t i = 0; i < c->groups_n && c->code == 0; i++)
        for (int s = 0; s < 2 && c->code == 0; s++)
            if (mla_store_side_kernel_file(c->sides[s], c->groups[i].kernel,
                                           c->groups[i].files[s]) != MLA_STORE_OK)
                c->code = mla_compare_store_failed(c, s);
}

void mla_compare_free(struct mla_compare *c)
{
    for (size_t i = 0; i < c->groups_n; i++) {
        free(c->groups[i].op);
        free(c->groups[i].kernel);
        free(c->groups[i].sanitizer);
        free(c->groups[i].isa);
    }
    for (size_t i = 0; i < c->items_n; i++) {
        free(c->items[i].reason);
        free(c->items[i].repro);
    }
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < c->samples[s].n; i++) {
            free(c->samples[s].list[i].op);
            free(c->samples[s].list[i].kernel);
            free(c->samples[s].list[i].sanitizer);
            free(c->samples[s].list[i].isa);
            free(c->samples[s].list[i].name);
        }
        free(c->samples[s].list);
        mla_store_side_close(c->sides[s]);
        mla_store_close(c->stores[s]);
    }
    free(c->groups);
    free(c->items);
}
