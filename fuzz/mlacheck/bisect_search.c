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
 *
 * What was skipped leaves the best cut to its neighbours, which often cannot be tested either. So after s
 * skipped ones at the head of the list the next is taken s/(s+4) of the way down the rest: away from the
 * place, still far from the ends.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/call.h"
#include "fuzz/mlacheck/bisect.h"
#include "fuzz/record.h"
#include "results/report_text.h"

#define GOODS_MAX 1024

/* Commits that may be the first bad one, best cut first. */
struct candidates {
    char *text; /* git's, cut into hashes */
    char **list;
    size_t n;
};

static bool is_skipped(const struct mla_bisect *b, const char *commit)
{
    for (size_t i = 0; i < b->steps_n; i++)
        if (strcmp(b->steps[i].commit, commit) == 0)
            return b->steps[i].outcome == MLA_STORE_SKIP;
    return false;
}

/* Each bad commit was a candidate under the one before: the last one reaches the fewest. */
static const char *last_bad(const struct mla_bisect *b)
{
    const char *bad = b->bad;
    for (size_t i = 0; i < b->steps_n; i++)
        if (b->steps[i].outcome == MLA_STORE_BAD)
            bad = b->steps[i].commit;
    return bad;
}

/* Keep that order: a commit that was skipped when others were asked, and is bad now, stands before them. */
static void put_last(struct mla_bisect *b, const char *commit)
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

static void split(struct candidates *c)
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

static void free_candidates(struct candidates *c)
{
    free(c->list);
    free(c->text);
    *c = (struct candidates){0};
}

static int list_candidates(const struct mla_bisect *b, struct candidates *c)
{
    static char without[GOODS_MAX][MLA_STORE_COMMIT_BYTES + 1];
    const char *arguments[GOODS_MAX + 8] = {"rev-list", "--bisect-all", last_bad(b)};
    size_t n = 3, goods = 0;
    int git_code = 0;
    *c = (struct candidates){0};
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
static const char *choose(const struct mla_bisect *b, const struct candidates *c)
{
    const char *bad = last_bad(b);
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

/* What a kernel of that plug-in is called by. */
static void spec_of(const struct mla_bisect *b, const char *path, char *spec, size_t spec_bytes)
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
        spec_of(b, path, spec, sizeof spec);
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
    snprintf(first, sizeof first, "%s", last_bad(b));
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
static int narrow(struct mla_bisect *b, struct candidates *c)
{
    bool changed = true;
    int code = 0;
    while (code == 0) {
        char commit[MLA_STORE_COMMIT_BYTES];
        code = list_candidates(b, c);
        if (code != 0)
            break;
        const char *next = choose(b, c);
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
            put_last(b, commit);
        }
        free_candidates(c);
    }
    return code;
}

/* ---- the answer ---- */

static void print_json(struct mla_bisect *b, const struct candidates *c)
{
    int64_t judged = 0, flaky = 0, skipped = 0;
    for (size_t i = 0; i < b->steps_n; i++) {
        const struct mla_store_step *s = &b->steps[i];
        judged += s->tries > 0;
        flaky += s->tries > 0 && s->outcome == MLA_STORE_SKIP;
        skipped += s->tries == 0;
    }
    printf("{\"found\":%s,\"commit\":\"%s\",\"range\":[", c->n == 1 ? "true" : "false",
           c->n == 1 ? last_bad(b) : "");
    for (size_t i = 0; i < c->n; i++)
        printf("%s\"%s\"", i == 0 ? "" : ",", c->list[i]);
    printf("],\"judged\":%" PRId64 ",\"flaky\":%" PRId64 ",\"skipped\":%" PRId64
           ",\"builds\":%" PRId64 ",\"steady\":%s}\n",
           judged, flaky, skipped, b->builds_n, b->passes == 0 ? "true" : "false");
}

static int store_answer(struct mla_bisect *b, const struct candidates *c)
{
    size_t room = c->n * MLA_STORE_COMMIT_BYTES + 1, n = 0;
    char *answer = calloc(room, 1);
    for (size_t i = 0; answer != NULL && i < c->n; i++)
        n += (size_t)snprintf(answer + n, room - n, "%s%s", i == 0 ? "" : " ", c->list[i]);
    bool ok = answer != NULL && mla_store_bisect_end(b->store, b->id, answer) == MLA_STORE_OK;
    free(answer);
    return ok ? 0
              : mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "%s", mla_store_message(b->store));
}

static void print_lines(char *text)
{
    char *next = text;
    while ((text = strsep(&next, "\n")) != NULL) {
        mla_text_plain(stdout, text);
        putchar('\n');
    }
}

/* What git says of the commit, and the command that shows the fault again. */
static int print_commit(struct mla_bisect *b, const char *commit)
{
    static const char format[] = "--format=commit %H%nauthor %an <%ae>%ndate   %ad%n%n    %s%n";
    char path[MLA_BISECT_PATH], spec[MLA_BISECT_PATH + 260], why[400], line[MLA_CASE_LINE_MAX],
        repro[MLA_REPRO_MAX], *show = NULL;
    int git_code = 0, code = mla_bisect_build(b, commit, path, why, sizeof why);
    if (code == 0)
        code = mla_bisect_git(b,
                              (const char *[]){"show", "--no-color", "--no-ext-diff", "--stat=100",
                                               format, commit, NULL},
                              &show, &git_code);
    if (code == 0) {
        const struct mla_store_step *step = mla_bisect_step(b, commit, "");
        mla_case_format(&b->test, line);
        spec_of(b, path, spec, sizeof spec);
        print_lines(show);
        mla_text_plain(stdout, step == NULL ? "" : step->text);
        printf("\n  repro: %s%s\n", mla_record_repro(spec, line, b->options.plain_oracle, repro),
               b->options.all_relations ? " --relations" : "");
    }
    free(show);
    return code;
}

int mla_bisect_search(struct mla_bisect *b)
{
    struct candidates c = {0};
    int code = mla_bisect_begin(b, b->good, b->bad);
    code = code != 0 ? code : verify_ends(b);
    code = code != 0 ? code : narrow(b, &c);
    if (code == 0) {
        if (c.n == 1)
            printf("\nfirst bad commit: %s\n", last_bad(b));
        else
            printf("\nthe first bad commit is one of %zu: the others could not be tested\n", c.n);
        for (size_t i = 0; c.n > 1 && i < c.n; i++)
            printf("  %s%s\n", c.list[i],
                   strcmp(c.list[i], last_bad(b)) == 0 ? "  the first that is known to be bad"
                                                       : "");
        code = print_commit(b, last_bad(b));
    }
    code = code != 0 ? code : store_answer(b, &c);
    if (code == 0 && b->options.json)
        print_json(b, &c);
    free_candidates(&c);
    return code != 0 ? code : MLA_EXIT_FAULT;
}
