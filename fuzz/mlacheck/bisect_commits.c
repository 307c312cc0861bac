/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_commits.c - the commits that may be the first bad one, and which of them to ask.
 *
 * git lists them, best cut first. What was skipped leaves the best cut to its neighbours, which often cannot be
 * tested either. So after s skipped ones at the head of the list the next is taken s/(s+4) of the way down the
 * rest: away from the place, still far from the ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/mlacheck/bisect.h"

#define GOODS_MAX 1024

static bool is_skipped(const struct mla_bisect *b, const char *commit)
{
    for (size_t i = 0; i < b->steps_n; i++)
        if (strcmp(b->steps[i].commit, commit) == 0)
            return b->steps[i].outcome == MLA_STORE_SKIP;
    return false;
}

/* Each bad commit was a candidate under the one before: the last one reaches the fewest. */
const char *mla_bisect_last_bad(const struct mla_bisect *b)
{
    const char *bad = b->bad;
    for (size_t i = 0; i < b->steps_n; i++)
        if (b->steps[i].outcome == MLA_STORE_BAD)
            bad = b->steps[i].commit;
    return bad;
}

/* Keep that order: a commit that was skipped when others were asked, and is bad now, stands before them. */
void mla_bisect_put_last(struct mla_bisect *b, const char *commit)
{
    size_t i = 0;
    while (i < b->steps_n && strcmp(b->steps[i].commit, commit) != 0)
        i++;
    if (i == b->steps_n || b->steps[i].outcome != MLA_STORE_BAD)
        return;
    struct mla_store_step step = b->steps[i];
    memmove(&b->steps[i], &b->steps[i + 1], (b->steps_n - i - 1) * sizeof step);
    b->steps[b->steps_n - 1] = step;
}

static void split(struct mla_bisect_candidates *c)
{
    size_t lines = 0;
    for (const char *p = c->text; *p != '\0'; p++)
        lines += *p == '\n';
    c->list = calloc(lines + 1, sizeof *c->list);
    for (char *p = c->text; c->list != NULL && *p != '\0' && c->n < lines;) {
        char *next = strchr(p, '\n') + 1;
        p[strspn(p, "0123456789abcdef")] = '\0'; /* "HASH (dist=N)" */
        c->list[c->n++] = p;
        p = next;
    }
}

void mla_bisect_free_candidates(struct mla_bisect_candidates *c)
{
    free(c->list);
    free(c->text);
    *c = (struct mla_bisect_candidates){0};
}

int mla_bisect_list_candidates(const struct mla_bisect *b, struct mla_bisect_candidates *c)
{
    static char without[GOODS_MAX][MLA_STORE_COMMIT_BYTES + 1];
    const char *arguments[GOODS_MAX + 8] = {"rev-list", "--bisect-all", mla_bisect_last_bad(b)};
    size_t n = 3, goods = 0;
    int git_code = 0;
    *c = (struct mla_bisect_candidates){0};
    for (size_t i = 0; i < b->steps_n && goods < GOODS_MAX; i++)
        if (b->steps[i].outcome == MLA_STORE_GOOD) {
            snprintf(without[goods], sizeof without[goods], "^%s", b->steps[i].commit);
            arguments[n++] = without[goods++];
        }
    int code = mla_bisect_git(b, arguments, &c->text, &git_code);
    if (code == 0)
        split(c);
    if (code == 0 && (git_code != 0 || c->list == NULL))
        code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "the commits could not be listed");
    return code;
}

/* The next commit to ask; NULL when none is left. */
const char *mla_bisect_choose(const struct mla_bisect *b, const struct mla_bisect_candidates *c)
{
    const char *bad = mla_bisect_last_bad(b);
    size_t skipped = 0, left = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->list[i], bad) == 0)
            continue;
        bool is = is_skipped(b, c->list[i]);
        skipped += is && left == 0;
        left += !is;
    }
    size_t place = left * skipped / (skipped + 4);
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->list[i], bad) != 0 && !is_skipped(b, c->list[i]) && place-- == 0)
            return c->list[i];
    return NULL;
}
