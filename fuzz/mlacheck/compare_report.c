/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_report.c - what moved, for people and as one line of JSON; and what it means for the caller.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fuzz/mlacheck/compare.h"
#include "results/report_text.h"

#define SHOWN_MAX 20 /* of one kind, without --verbose */

static const struct {
    const char *word, *plural; /* of a line; of a count in JSON */
    const char *what;          /* of the count, for people */
} kinds[MLA_MOVED_N] = {
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

/* ---- small words ---- */

static const char *ratio_text(double ratio, char text[32])
{
    if (ratio < 0)
        return "-";
    snprintf(text, 32, "%.6g", ratio);
    return text;
}

/* JSON has no inf and no nan: texts, as everywhere in mlacheck. */
static void json_ratio(double ratio)
{
    if (ratio < 0)
        printf("null");
    else
        printf(isfinite(ratio) ? "%.6g" : "\"%g\"", ratio);
}

/* ,"name":"text" */
static void json_member(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    mla_text_json(stdout, text);
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

/* ---- items ---- */

static void print_item(const struct mla_compare *c, const struct mla_moved_item *item)
{
    char a[32], b[32];
    bool promoted = item->moved == MLA_MOVED_NEW_FAILURE && mla_compare_is_regression(c, item);
    printf("%s ", promoted ? "REGRESSION" : kinds[item->moved].word);
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
        if (c->items[i].moved == moved && (n++ < SHOWN_MAX || c->options.verbose))
            print_item(c, &c->items[i]);
    if (n > SHOWN_MAX && !c->options.verbose)
        printf("%s: %" PRId64 " more (--verbose: all)\n", kinds[moved].word, n - SHOWN_MAX);
}

static int64_t count_regressions(const struct mla_compare *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->items_n; i++)
        n += mla_compare_is_regression(c, &c->items[i]);
    return n;
}

static int64_t count_all(const struct mla_compare *c, enum mla_moved moved)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->groups_n; i++)
        n += c->groups[i].count[moved];
    return n;
}

/* ---- kernels ---- */

/* Both sides judged it, and B has an error that A never had. NaN is worse than anything. */
static bool is_new_worst(const struct mla_compare_group *g)
{
    return g->worst[0] >= 0 && !(g->worst[1] <= g->worst[0]);
}

static void print_worst(const struct mla_compare *c)
{
    char a[32], b[32], before[32];
    for (size_t i = 0; i < c->groups_n; i++) {
        const struct mla_compare_group *g = &c->groups[i];
        if (!is_new_worst(g))
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

struct shift {
    size_t runs[2];
    double medians[2];
    struct mla_rank_test test;
};

/* false: too few runs to say anything. */
static bool measure(const struct mla_compare_sample *a, const struct mla_compare_sample *b,
                    struct shift *shift)
{
    double values[2][MLA_RANK_TEST_MAX];
    if (b == NULL || a->runs_n < MLA_COMPARE_RUNS_MIN || b->runs_n < MLA_COMPARE_RUNS_MIN)
        return false;
    memcpy(values[0], a->values, sizeof values[0]);
    memcpy(values[1], b->values, sizeof values[1]);
    shift->runs[0] = a->runs_n;
    shift->runs[1] = b->runs_n;
    shift->test = mla_rank_test(values[0], a->runs_n, values[1], b->runs_n);
    for (int s = 0; s < 2; s++)
        shift->medians[s] = mla_rank_median(values[s], shift->runs[s]);
    return true;
}

static void print_shift(const struct mla_compare_sample *a, const struct mla_compare_sample *b,
                        const struct shift *shift)
{
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

static void json_shift(const struct mla_compare_sample *a, const struct shift *shift, bool first)
{
    printf("%s{\"op\":\"%s\"", first ? "" : ",", a->op);
    json_member("kernel", a->kernel);
    json_member("sanitizer", a->sanitizer);
    json_member("isa", a->isa);
    json_member("metric", a->name);
    printf(",\"runs\":[%zu,%zu],\"medians\":[", shift->runs[0], shift->runs[1]);
    for (int s = 0; s < 2; s++)
        printf(isfinite(shift->medians[s]) ? "%s%.6g" : "%s\"%g\"", s == 0 ? "" : ",",
               shift->medians[s]);
    printf("],\"p\":%.6g,\"exact\":%s}", shift->test.p, shift->test.exact ? "true" : "false");
}

/* All tests; those below the level are printed. Returns how many those are. */
static int64_t print_shifts(const struct mla_compare *c, bool json, int64_t *tests_n)
{
    int64_t n = 0;
    *tests_n = 0;
    for (size_t i = 0; i < c->samples[0].n; i++) {
        const struct mla_compare_sample *a = &c->samples[0].list[i];
        const struct mla_compare_sample *b = mla_compare_partner(c, a);
        struct shift shift;
        if (!measure(a, b, &shift))
            continue;
        ++*tests_n;
        if (!(shift.test.p < MLA_COMPARE_LEVEL))
            continue;
        if (json)
            json_shift(a, &shift, n == 0);
        else
            print_shift(a, b, &shift);
        n++;
    }
    return n;
}

static void print_distributions(const struct mla_compare *c)
{
    int64_t tests, shifts = print_shifts(c, false, &tests);
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

/* ---- JSON ---- */

static void json_item(const struct mla_compare *c, const struct mla_moved_item *item)
{
    const struct mla_compare_group *g = &c->groups[item->group];
    printf("{\"case\":\"%s\",\"op\":\"%s\"", item->id, g->op);
    json_member("kernel", g->kernel);
    json_member("sanitizer", g->sanitizer);
    printf(",\"before\":");
    printf(item->before == NULL ? "null" : "\"%s\"", item->before);
    printf(",\"after\":");
    printf(item->after == NULL ? "null" : "\"%s\"", item->after);
    printf(",\"err_over_bound\":[");
    json_ratio(item->ratios[0]);
    putchar(',');
    json_ratio(item->ratios[1]);
    printf("],\"judged\":[%" PRId64 ",%" PRId64 "],\"failed\":[%" PRId64 ",%" PRId64
           "],\"unseen_relation\":",
           item->judged[0], item->judged[1], item->failed[0], item->failed[1]);
    printf(item->unseen == NULL ? "null" : "\"%s\"", item->unseen);
    printf(",\"regression\":%s,\"reason\":", mla_compare_is_regression(c, item) ? "true" : "false");
    mla_text_json(stdout, item->reason);
    printf(",\"repro\":");
    if (item->repro == NULL)
        printf("null");
    else
        mla_text_json(stdout, item->repro);
    putchar('}');
}

/* Verdicts that turned are listed to the last, the rest as for people: there may be a million. */
static void json_items(const struct mla_compare *c, enum mla_moved moved)
{
    int64_t n = 0;
    bool all = c->options.verbose || moved <= MLA_MOVED_FIXED;
    printf("\"%s\":[", kinds[moved].plural);
    for (size_t i = 0; i < c->items_n && (all || n < SHOWN_MAX); i++) {
        if (c->items[i].moved != moved)
            continue;
        printf("%s", n++ == 0 ? "" : ",");
        json_item(c, &c->items[i]);
    }
    printf("],");
}

static void json_group(const struct mla_compare_group *g)
{
    printf("{\"op\":\"%s\"", g->op);
    json_member("kernel", g->kernel);
    json_member("sanitizer", g->sanitizer);
    json_member("isa", g->isa);
    printf(",\"paired\":%" PRId64 ",\"only_a\":%" PRId64 ",\"only_b\":%" PRId64
           ",\"failed\":[%" PRId64 ",%" PRId64 "],\"same_bits\":%" PRId64
           ",\"changed_bits\":%" PRId64 ",\"unknown_bits\":%" PRId64 ",\"worst\":[",
           g->paired, g->only[0], g->only[1], g->failed[0], g->failed[1], g->same_bits,
           g->count[MLA_MOVED_BITS], g->no_bits);
    json_ratio(g->worst[0]);
    putchar(',');
    json_ratio(g->worst[1]);
    printf("],\"new_worst\":");
    printf(is_new_worst(g) ? "\"%s\"" : "null", g->worst_id[1]);
    putchar('}');
}

static void print_json(const struct mla_compare *c, int64_t paired, int64_t regressions)
{
    int64_t tests;
    printf("{\"paired\":%" PRId64 ",\"regressed\":%" PRId64 ",\"moved\":{", paired, regressions);
    for (int m = 0; m < MLA_MOVED_N; m++)
        printf("%s\"%s\":%" PRId64, m == 0 ? "" : ",", kinds[m].plural,
               count_all(c, (enum mla_moved)m));
    printf("},");
    for (int m = 0; m < MLA_MOVED_N; m++)
        json_items(c, (enum mla_moved)m);
    printf("\"shifts\":[");
    print_shifts(c, true, &tests);
    printf("],\"shift_tests\":%" PRId64 ",\"kernels\":[", tests);
    for (size_t i = 0; i < c->groups_n; i++) {
        printf("%s", i == 0 ? "" : ",");
        json_group(&c->groups[i]);
    }
    printf("],\"interrupted\":%s}\n", mla_interrupted ? "true" : "false");
}

int mla_compare_report(const struct mla_compare *c)
{
    int64_t paired = 0, regressions = count_regressions(c);
    for (size_t i = 0; i < c->groups_n; i++)
        paired += c->groups[i].paired;
    print_side(c, 0);
    print_side(c, 1);
    print_apart(c);
    for (int m = 0; m < MLA_MOVED_N; m++)
        print_items(c, (enum mla_moved)m);
    print_worst(c);
    print_distributions(c);
    print_groups(c);
    printf("%" PRId64 " pairs compared, %" PRId64 " regressions", paired, regressions);
    for (int m = 0; m < MLA_MOVED_N; m++)
        if (count_all(c, (enum mla_moved)m) > 0)
            printf("; %" PRId64 " %s", count_all(c, (enum mla_moved)m), kinds[m].what);
    printf("%s\n", mla_interrupted ? "; interrupted" : "");
    if (c->options.json)
        print_json(c, paired, regressions);
    if (regressions > 0)
        return MLA_EXIT_FAULT;
    if (mla_interrupted)
        return MLA_EXIT_INTERRUPTED;
    return paired == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}
