/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_report.c - what moved, for people; and what it means for the caller.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fuzz/mlacheck/compare.h"
#include "results/report_text.h"

/* ---- small words ---- */

static const char *ratio_text(double ratio, char text[32])
{
    if (ratio < 0)
        return "-";
    snprintf(text, 32, "%.6g", ratio);
    return text;
}

/* Texts of a database may be anything: nothing of them but letters reaches the terminal. */
static void print_padded(const char *text, size_t width)
{
    mla_text_plain(stdout, text);
    for (size_t i = strlen(text); i < width; i++)
        putchar(' ');
}

/* "ring/scalar", and the sanitizer of its build where it has one. */
static void print_who(const struct mla_compare_group *g)
{
    printf("%s/", g->op);
    mla_text_plain(stdout, g->kernel);
    if (g->sanitizer[0] != '\0') {
        fputs(" (", stdout);
        mla_text_plain(stdout, g->sanitizer);
        putchar(')');
    }
}

/* ---- the sides ---- */

static void print_side(const struct mla_compare *c, int s)
{
    char commit[20];
    struct mla_side_facts f = mla_store_side_facts(c->sides[s]);
    printf("%c: ", 'A' + s);
    mla_text_plain(stdout, c->names[s]);
    fputs(": ", stdout);
    if (f.runs_n == 1)
        printf("run %" PRId64 ", ", f.first_run);
    else
        printf("%" PRId64 " runs (%" PRId64 " to %" PRId64 "), ", f.runs_n, f.first_run,
               f.last_run);
    if (f.commits_n > 1)
        printf("%" PRId64 " commits, the latest ", f.commits_n);
    fputs("commit ", stdout);
    snprintf(commit, sizeof commit, "%.12s%s", f.commit,
             strstr(f.commit, "-dirty") != NULL ? "-dirty" : "");
    mla_text_plain(stdout, commit);
    putchar('\n');
    if (f.cut_off_n > 0)
        printf("%c: %" PRId64 " of them did not end (interrupted, killed or at work still): a case "
               "that is only in %c may be one that %c did not reach\n",
               'A' + s, f.cut_off_n, 'B' - s, 'A' + s);
    if (f.tallied > 0)
        printf("%c: %" PRId64 " cases of hunts were counted without a row: not compared\n", 'A' + s,
               f.tallied);
}

static bool has_kind(const struct mla_compare *c, int side, const struct mla_compare_group *like)
{
    for (size_t i = 0; i < c->groups_n; i++) {
        const struct mla_compare_group *g = &c->groups[i];
        if (g->paired + g->only[side] > 0 && strcmp(g->sanitizer, like->sanitizer) == 0 &&
            strcmp(g->isa, like->isa) == 0)
            return true;
    }
    return false;
}

static void print_kind(const struct mla_compare_group *g, int side)
{
    fputs(g->sanitizer[0] == '\0' ? "kept apart: builds with no sanitizer"
                                  : "kept apart: builds with sanitizer ",
          stdout);
    mla_text_plain(stdout, g->sanitizer);
    fputs(" for ", stdout);
    mla_text_plain(stdout, g->isa);
    printf(" are only in %c\n", 'A' + side);
}

/* Builds that only one side has: their figures have no partner. Each kind once. */
static void print_apart(const struct mla_compare *c)
{
    for (size_t i = 0; i < c->groups_n; i++) {
        const struct mla_compare_group *g = &c->groups[i];
        bool said = false;
        for (size_t j = 0; j < i; j++)
            said = said || (strcmp(c->groups[j].sanitizer, g->sanitizer) == 0 &&
                            strcmp(c->groups[j].isa, g->isa) == 0);
        for (int s = 0; s < 2 && !said; s++)
            if (has_kind(c, s, g) && !has_kind(c, 1 - s, g))
                print_kind(g, s);
    }
}

/* A plug-in is no part of the commit: whether it is the same one is for its file to say. Each once. */
static void print_rebuilt(const struct mla_compare *c)
{
    for (size_t i = 0; i < c->groups_n; i++) {
        const struct mla_compare_group *g = &c->groups[i];
        bool said = !mla_compare_is_rebuilt(g);
        for (size_t j = 0; j < i; j++)
            said = said || strcmp(c->groups[j].kernel, g->kernel) == 0;
        if (said)
            continue;
        fputs("kernel file changed: ", stdout);
        mla_text_plain(stdout, g->kernel);
        printf(" (%s -> %s)\n", g->files[0], g->files[1]);
    }
}

/* ---- items ---- */

static void print_item(const struct mla_compare *c, const struct mla_moved_item *item)
{
    char a[32], b[32];
    bool promoted = item->moved == MLA_MOVED_NEW_FAILURE && mla_compare_is_regression(c, item);
    printf("%s ", promoted ? "REGRESSION" : mla_moved_words[item->moved].word);
    print_who(&c->groups[item->group]);
    printf(" case=%s %s -> %s, err/bound %s -> %s", item->id,
           item->before == NULL ? "not judged" : item->before,
           item->after == NULL ? "not judged" : item->after, ratio_text(item->ratios[0], a),
           ratio_text(item->ratios[1], b));
    if (item->unseen != NULL)
        printf("; %s did not look at relation %s",
               item->moved == MLA_MOVED_APART ? "not comparable: B" : "A", item->unseen);
    for (int s = 0; s < 2; s++)
        if (item->failed[s] > 0 && item->failed[s] < item->judged[s])
            printf("; flaky in %c: failed %" PRId64 " of %" PRId64, 'A' + s, item->failed[s],
                   item->judged[s]);
    if (promoted)
        printf("; the kernel failed nowhere in A");
    fputs(item->reason[0] == '\0' ? "" : ": ", stdout);
    mla_text_plain(stdout, item->reason);
    fputs(item->repro == NULL ? "" : "\n  repro: ", stdout);
    mla_text_plain(stdout, item->repro);
    putchar('\n');
}

static void print_items(const struct mla_compare *c, enum mla_moved moved)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->items_n; i++)
        if (c->items[i].moved == moved && (n++ < MLA_COMPARE_SHOWN || c->options.verbose))
            print_item(c, &c->items[i]);
    if (n > MLA_COMPARE_SHOWN && !c->options.verbose)
        printf("%s: %" PRId64 " more (--verbose: all)\n", mla_moved_words[moved].word,
               n - MLA_COMPARE_SHOWN);
}

/* ---- kernels ---- */

static void print_worst(const struct mla_compare *c)
{
    char a[32], b[32], before[32];
    for (size_t i = 0; i < c->groups_n; i++) {
        const struct mla_compare_group *g = &c->groups[i];
        if (!mla_compare_is_new_worst(g))
            continue;
        printf("WORST ");
        print_who(g);
        printf(" err/bound %s -> %s, case=%s (%s%s)\n", ratio_text(g->worst[0], a),
               ratio_text(g->worst[1], b), g->worst_id[1],
               g->worst_before < 0 ? "not in A" : "there it was ",
               g->worst_before < 0 ? "" : ratio_text(g->worst_before, before));
    }
}

static void print_groups(const struct mla_compare *c)
{
    char a[32], b[32], build[9];
    printf("%-6s %-28s %-8s %7s %7s %7s %8s %8s %9s %9s %9s %10s %10s\n", "op", "kernel", "build",
           "paired", "only A", "only B", "failed A", "failed B", "same bits", "new bits", "unknown",
           "worst A", "worst B");
    for (size_t i = 0; i < c->groups_n; i++) {
        const struct mla_compare_group *g = &c->groups[i];
        printf("%-6s ", g->op);
        print_padded(g->kernel, 28);
        snprintf(build, sizeof build, "%s", g->sanitizer[0] == '\0' ? "plain" : g->sanitizer);
        putchar(' ');
        print_padded(build, 8);
        printf(" %7" PRId64 " %7" PRId64 " %7" PRId64 " %8" PRId64 " %8" PRId64 " %9" PRId64
               " %9" PRId64 " %9" PRId64 " %10s %10s\n",
               g->paired, g->only[0], g->only[1], g->failed[0], g->failed[1], g->same_bits,
               g->count[MLA_MOVED_BITS], g->no_bits, ratio_text(g->worst[0], a),
               ratio_text(g->worst[1], b));
    }
    for (size_t i = 0; i < c->groups_n; i++)
        for (int s = 0; s < 2; s++)
            if (c->groups[i].paired == 0 && c->groups[i].only[1 - s] == 0) {
                printf("only in %c: ", 'A' + s);
                print_who(&c->groups[i]);
                printf(" (%" PRId64 " cases)\n", c->groups[i].only[s]);
            }
}

/* ---- distributions ---- */

static void print_shift(const struct mla_compare_shift *shift)
{
    const struct mla_compare_sample *a = shift->samples[0], *b = shift->samples[1];
    printf("SHIFT %s/", a->op);
    mla_text_plain(stdout, a->kernel);
    fputs(a->sanitizer[0] == '\0' ? "" : " ", stdout);
    mla_text_plain(stdout, a->sanitizer);
    putchar(' ');
    mla_text_plain(stdout, a->name);
    printf(": median %.6g of %zu runs -> %.6g of %zu runs, p = %.2g%s", shift->medians[0],
           shift->runs[0], shift->medians[1], shift->runs[1], shift->test.p,
           shift->test.exact ? "" : " (with ties)");
    printf(" (cases a run: A %" PRId64 " to %" PRId64 ", B %" PRId64 " to %" PRId64 ")\n",
           a->cases_min, a->cases_max, b->cases_min, b->cases_max);
}

static void print_distributions(const struct mla_compare *c)
{
    struct mla_compare_shift shift;
    int64_t tests = 0, shifts = 0;
    for (size_t at = 0; mla_compare_next_shift(c, &at, &shift); tests++)
        if (shift.is_told) {
            print_shift(&shift);
            shifts++;
        }
    if (tests == 0)
        printf("distributions: not compared: %d runs of the command `run` with the same build are "
               "needed on each side, A has %" PRId64 " runs and B %" PRId64 "\n",
               MLA_COMPARE_RUNS_MIN, mla_store_side_facts(c->sides[0]).runs_n,
               mla_store_side_facts(c->sides[1]).runs_n);
    else
        printf("distributions: %" PRId64 " of %" PRId64
               " tests below p = %g; if nothing moved, %.2g would be\n",
               shifts, tests, MLA_COMPARE_LEVEL, MLA_COMPARE_LEVEL * (double)tests);
}

int mla_compare_report(const struct mla_compare *c)
{
    int64_t paired = 0, regressions = mla_compare_count_regressions(c);
    for (size_t i = 0; i < c->groups_n; i++)
        paired += c->groups[i].paired;
    print_side(c, 0);
    print_side(c, 1);
    print_apart(c);
    print_rebuilt(c);
    for (int m = 0; m < MLA_MOVED_N; m++)
        print_items(c, (enum mla_moved)m);
    print_worst(c);
    print_distributions(c);
    print_groups(c);
    printf("%" PRId64 " pairs compared, %" PRId64 " regressions", paired, regressions);
    for (int m = 0; m < MLA_MOVED_N; m++)
        if (mla_compare_count(c, (enum mla_moved)m) > 0)
            printf("; %" PRId64 " %s", mla_compare_count(c, (enum mla_moved)m),
                   mla_moved_words[m].what);
    printf("%s\n", mla_interrupted ? "; interrupted" : "");
    if (c->options.json)
        mla_compare_print_json(c, paired, regressions);
    if (regressions > 0)
        return MLA_EXIT_FAULT;
    if (mla_interrupted)
        return MLA_EXIT_INTERRUPTED;
    return paired == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}
