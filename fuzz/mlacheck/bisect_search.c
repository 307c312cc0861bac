/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_search.c - the first bad commit.
 *
 * The state is the list of outcomes and nothing else: the commits that may be the first bad one are those
 * that the last bad one reaches and no good one does, and `git rev-list --bisect-all` lists them, best cut
 * first. So a search that goes on asks the same commits in the same order, each answer that was stored at
 * no cost, and an outcome that is taken back leaves no trace. (`git bisect` does the same over this very
 * list, but keeps its state in refs of the user's repository, and its answers are texts for people.)
 *
 * Merges: git counts, for each commit, how many of the others it reaches, so both sides of a merge are cut
 * like any other history. The one assumption is git's: what a good commit reaches is good. Commits of a side
 * branch that began before the good end are asked too, for they may have brought the fault.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"
#include "fuzz/mlacheck/bisect.h"
#include "fuzz/record.h"
#include "results/report_text.h"

/* ---- one step ---- */

static void print_step(const struct mla_bisect *b, const struct mla_store_step *step)
{
    static const char *const names[] = {"good", "bad", "skip"};
    char text[700], subject[100];
    mla_bisect_describe(step, text, sizeof text);
    mla_bisect_subject(b, step->commit, subject, sizeof subject);
    printf("%-4s %.12s  ", names[step->outcome], step->commit);
    mla_text_plain(stdout, subject);
    fputs("\n     ", stdout);
    mla_text_plain(stdout, text);
    putchar('\n');
    fflush(stdout);
}

void mla_bisect_spec(const struct mla_bisect *b, const char *path, char *spec, size_t spec_bytes)
{
    snprintf(spec, spec_bytes, "%s%s%s", path, b->kernel[0] == '\0' ? "" : ":", b->kernel);
}

/*
 * Ask a commit: build it, judge it, store the step. Of a step that was stored only what is missing is done.
 * is_bad_end: learn how often the fault shows.
 */
static int ask(struct mla_bisect *b, const char *commit, bool sure, bool is_bad_end)
{
    char path[MLA_BISECT_PATH], spec[MLA_BISECT_PATH + 260], why[400];
    struct mla_store_step *step = mla_bisect_step(b, commit, "");
    if (step == NULL)
        return MLA_EXIT_ENVIRONMENT;
    if (mla_bisect_is_settled(b, sure, step) && !is_bad_end)
        return 0;
    struct mla_store_step before = *step;
    double began = mla_call_clock();
    int code = mla_bisect_build(b, commit, path, why, sizeof why);
    if (code != 0)
        return code;
    step->seconds += mla_call_clock() - began;
    if (path[0] == '\0') {
        step->outcome = MLA_STORE_SKIP;
        snprintf(step->text, sizeof step->text, "%s", why);
    } else {
        mla_bisect_spec(b, path, spec, sizeof spec);
        code = is_bad_end ? mla_bisect_decide_bad(b, spec, &b->test, step)
                          : mla_bisect_decide(b, spec, &b->test, sure, step);
    }
    if (code != 0) {
        *step = before;
        return code;
    }
    if (before.tries != step->tries || before.tries == 0)
        print_step(b, step);
    return mla_bisect_store(b, step);
}

/* ---- the search ---- */

static int not_as_said(struct mla_bisect *b, const char *flag, const char *commit, const char *what)
{
    char text[700];
    const struct mla_store_step *step = mla_bisect_step(b, commit, "");
    if (step == NULL)
        return MLA_EXIT_ENVIRONMENT;
    mla_bisect_describe(step, text, sizeof text);
    return mla_options_fail(MLA_EXIT_USAGE, "bisect", "%s %.12s is not %s: %s", flag, commit, what,
                            text);
}

static bool has(struct mla_bisect *b, const char *commit, enum mla_store_outcome outcome)
{
    const struct mla_store_step *step = mla_bisect_step(b, commit, "");
    return step != NULL && step->outcome == outcome;
}

static int verify_ends(struct mla_bisect *b)
{
    const struct mla_store_step *good = mla_bisect_step(b, b->good, "");
    if (good == NULL)
        return MLA_EXIT_ENVIRONMENT;
    snprintf(b->reference, sizeof b->reference, "%s", good->bits); /* of an earlier call */
    int code = ask(b, b->good, true, false);
    if (code == 0 && !has(b, b->good, MLA_STORE_GOOD))
        return not_as_said(b, "--good", b->good, "good");
    code = code != 0 ? code : ask(b, b->bad, true, true);
    if (code == 0 && !has(b, b->bad, MLA_STORE_BAD))
        return not_as_said(b, "--bad", b->bad, "bad");
    if (code != 0 || b->passes == 0)
        return code;
    printf("unsteady: one bad try makes a commit bad, %" PRId64 " good ones make it good\n",
           b->passes);
    code = ask(b, b->good, true, false);
    if (code == 0 && !has(b, b->good, MLA_STORE_GOOD))
        return not_as_said(b, "--good", b->good, "good");
    return code;
}

/* Ask what the answer rests on until it is sure. *changed: an outcome was taken back. */
static int confirm(struct mla_bisect *b, bool *changed)
{
    char first[MLA_STORE_COMMIT_BYTES], name[MLA_STORE_COMMIT_BYTES + 4], *parents;
    int git_code = 0;
    snprintf(first, sizeof first, "%s", mla_bisect_last_bad(b));
    int code = ask(b, first, true, false);
    *changed = code == 0 && !has(b, first, MLA_STORE_BAD);
    if (code != 0 || *changed)
        return code;
    snprintf(name, sizeof name, "%s^@", first);
    code = mla_bisect_git(b, (const char *[]){"rev-parse", name, NULL}, &parents, &git_code);
    char *next = NULL;
    for (char *p = code == 0 ? strtok_r(parents, "\n", &next) : NULL; p != NULL && code == 0;
         p = strtok_r(NULL, "\n", &next)) {
        bool known = false;
        for (size_t i = 0; i < b->steps_n; i++)
            known = known ||
                    (strcmp(b->steps[i].commit, p) == 0 && b->steps[i].outcome == MLA_STORE_GOOD);
        if (!known) /* skipped, or an ancestor of a good one */
            continue;
        code = ask(b, p, true, false);
        *changed = *changed || (code == 0 && !has(b, p, MLA_STORE_GOOD));
    }
    free(parents);
    return code;
}

/* Ask until no commit is left that could be asked; c is then what may be the first bad one. */
static int narrow(struct mla_bisect *b, struct mla_bisect_candidates *c)
{
    bool changed = true;
    int code = 0;
    while (code == 0) {
        char commit[MLA_STORE_COMMIT_BYTES];
        code = mla_bisect_list_candidates(b, c);
        if (code != 0)
            break;
        const char *next = mla_bisect_choose(b, c);
        if (next == NULL) {
            code = confirm(b, &changed);
            if (code != 0 || !changed)
                break;
        } else {
            snprintf(commit, sizeof commit, "%s", next);
            printf("%zu commits may be the first bad one, about %d more to ask\n", c->n,
                   (int)ceil(log2((double)c->n)));
            fflush(stdout);
            code = ask(b, commit, false, false);
            mla_bisect_put_last(b, commit);
        }
        mla_bisect_free_candidates(c);
    }
    return code;
}

int mla_bisect_search(struct mla_bisect *b)
{
    struct mla_bisect_candidates c = {0};
    int code = mla_bisect_begin(b, b->good, b->bad);
    code = code != 0 ? code : verify_ends(b);
    code = code != 0 ? code : narrow(b, &c);
    code = code != 0 ? code : mla_bisect_answer(b, &c);
    mla_bisect_free_candidates(&c);
    return code != 0 ? code : MLA_EXIT_FAULT;
}
