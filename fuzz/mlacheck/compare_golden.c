/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_golden.c - `mlacheck compare --golden`: what a side says of fixed cases held against the file, or
 * written into it.
 */
#include "fuzz/mlacheck/compare_golden.h"

#include <inttypes.h>
#include <string.h>

#include "fuzz/judge.h"
#include "impl/registry.h"
#include "results/report_text.h"

#define TEXT_MAX 1024

struct tally {
    int64_t changes[MLA_GOLDEN_OTHER + 1], missing, unusable, added;
};

static bool is_of(const struct mla_golden_sum *sum, const struct mla_golden_row *row)
{
    return mla_golden_is(&sum->row, row->kernel, row->op, row->set);
}

/*
 * The next sum of a row's kernel, operation and set that is to be taken, from *at on; NULL: there are no more.
 * Not those of CPUs that cannot run it; where a machine judged the whole set, not those of others' parts.
 */
static const struct mla_golden_sum *next_sum(const struct mla_golden_summary *s,
                                             const struct mla_golden_row *row, size_t *at)
{
    bool any_whole = false;
    for (size_t i = 0; i < s->n; i++)
        any_whole = any_whole ||
                    (is_of(&s->sums[i], row) && !s->sums[i].is_unusable && s->sums[i].is_whole);
    while (*at < s->n) {
        const struct mla_golden_sum *sum = &s->sums[(*at)++];
        if (is_of(sum, row) && !sum->is_unusable && (sum->is_whole || !any_whole))
            return sum;
    }
    return NULL;
}

/* ---- against the file ---- */

/* isa: NULL, or which machines'. */
static void say(const char *word, const struct mla_golden_row *row, const char *isa,
                const char *text)
{
    printf("%s %s/", word, row->op);
    mla_text_plain(stdout, row->kernel);
    fputs(" on ", stdout);
    mla_text_plain(stdout, row->set);
    if (isa != NULL) {
        fputs(" for ", stdout);
        mla_text_plain(stdout, isa);
    }
    fputs(text[0] == '\0' ? "" : ": ", stdout);
    mla_text_plain(stdout, text);
    putchar('\n');
}

static bool has_several_isas(const struct mla_golden_summary *s)
{
    for (size_t i = 1; i < s->n; i++)
        if (strcmp(s->sums[i].isa, s->sums[0].isa) != 0)
            return true;
    return false;
}

static bool was_run(const struct mla_golden_summary *s, const char *kernel)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->sums[i].row.kernel, kernel) == 0)
            return true;
    return false;
}

/* Nobody judged it: because no machine can, or because it was left out. */
static void say_absent(const struct mla_golden_summary *s, const struct mla_golden_row *old,
                       struct tally *t)
{
    bool unusable = false;
    char text[TEXT_MAX];
    for (size_t i = 0; i < s->n; i++)
        unusable = unusable || (is_of(&s->sums[i], old) && s->sums[i].is_unusable);
    if (unusable || (!was_run(s, old->kernel) && mla_registry_is_left_out(old->kernel))) {
        t->unusable++;
        say("skipped", old, NULL, unusable ? MLA_REASON_NOT_USABLE : "not in this build");
        return;
    }
    t->missing++;
    snprintf(text, sizeof text, "kernel %s is in the golden file but was not run", old->kernel);
    say("MISSING", old, NULL, was_run(s, old->kernel) ? "not judged" : text);
}

static void compare_row(const struct mla_golden_summary *s, const struct mla_golden_row *old,
                        struct tally *t)
{
    static const char *const words[] = {
        [MLA_GOLDEN_SAME] = "same",   [MLA_GOLDEN_BITS] = "BITS",   [MLA_GOLDEN_BETTER] = "BETTER",
        [MLA_GOLDEN_WORSE] = "WORSE", [MLA_GOLDEN_OTHER] = "OTHER",
    };
    char text[TEXT_MAX];
    size_t at = 0;
    const struct mla_golden_sum *now = next_sum(s, old, &at);
    if (now == NULL)
        say_absent(s, old, t);
    for (; now != NULL; now = next_sum(s, old, &at)) {
        enum mla_golden_change change = mla_golden_compare(old, &now->row, text, sizeof text);
        t->changes[change]++;
        if (change != MLA_GOLDEN_SAME || s->c->options.verbose)
            say(words[change], old, has_several_isas(s) ? now->isa : NULL, text);
    }
}

static void say_new(const struct mla_golden_summary *s, struct tally *t)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct mla_golden_row *now = &s->sums[i].row;
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again = again || (is_of(&s->sums[j], now) && !s->sums[j].is_unusable);
        if (again || s->sums[i].is_unusable ||
            mla_golden_find(&s->golden, now->kernel, now->op, now->set) != NULL)
            continue;
        t->added++;
        say("NEW", now, NULL, "not in the golden file");
    }
}

static bool is_a_set(const struct mla_golden_summary *s, const char *set)
{
    for (int i = 0; i < s->sets.n; i++)
        if (strcmp(s->sets.names[i], set) == 0)
            return true;
    return false;
}

static void print_counts(const struct mla_golden_summary *s, const struct tally *t,
                         int64_t compared)
{
    const int64_t *n = t->changes;
    int64_t cut_off = mla_store_side_facts(s->c->sides[1]).cut_off_n;
    if (s->sanitized > 0)
        printf("%" PRId64 " verdicts of sanitizer builds are kept apart\n", s->sanitized);
    if (cut_off > 0)
        printf("B: %" PRId64
               " of its runs did not end (interrupted, killed or at work still): what is "
               "missing, or worse by cases that were not judged, may be what they did not reach\n",
               cut_off);
    printf("golden: %" PRId64 " rows compared: %" PRId64 " the same, %" PRId64
           " with other bits only, %" PRId64 " better, %" PRId64 " worse, %" PRId64
           " of other cases; %" PRId64 " not judged, %" PRId64 " not usable on this CPU, %" PRId64
           " new\n",
           compared, n[MLA_GOLDEN_SAME], n[MLA_GOLDEN_BITS], n[MLA_GOLDEN_BETTER],
           n[MLA_GOLDEN_WORSE], n[MLA_GOLDEN_OTHER], t->missing, t->unusable, t->added);
    if (compared + t->added > n[MLA_GOLDEN_SAME])
        printf("if that is meant: the same command with --update writes the new figures into %s\n",
               s->c->options.golden);
    if (t->missing > 0)
        printf("a kernel that is gone or renamed for good: delete its rows in %s\n",
               s->c->options.golden);
    if (s->c->options.json)
        printf("{\"same\":%" PRId64 ",\"bits\":%" PRId64 ",\"better\":%" PRId64
               ",\"worse\":%" PRId64 ",\"other_cases\":%" PRId64 ",\"missing\":%" PRId64
               ",\"unusable\":%" PRId64 ",\"new\":%" PRId64 ",\"runs_not_ended\":%" PRId64 "}\n",
               n[MLA_GOLDEN_SAME], n[MLA_GOLDEN_BITS], n[MLA_GOLDEN_BETTER], n[MLA_GOLDEN_WORSE],
               n[MLA_GOLDEN_OTHER], t->missing, t->unusable, t->added, cut_off);
}

static int report(const struct mla_golden_summary *s)
{
    struct tally t = {{0}, 0, 0, 0};
    int64_t compared = 0;
    for (size_t i = 0; i < s->golden.n; i++) {
        const struct mla_golden_row *old = &s->golden.rows[i];
        if (is_a_set(s, old->set) && mla_golden_is_wanted(s, old->kernel))
            compare_row(s, old, &t);
    }
    say_new(s, &t);
    for (int i = 0; i <= MLA_GOLDEN_OTHER; i++)
        compared += t.changes[i];
    print_counts(s, &t, compared);
    if (t.changes[MLA_GOLDEN_WORSE] + t.missing > 0)
        return MLA_EXIT_FAULT;
    if (t.changes[MLA_GOLDEN_OTHER] > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "compare",
                                "--golden: the file is about other cases");
    return compared == 0 ? MLA_EXIT_NOTHING : MLA_EXIT_PASSED;
}

/* ---- into the file ---- */

/* A summary of half a set would pass for one of all; and machines that differ have no summary. */
static int check_sum(const struct mla_golden_summary *s, const struct mla_golden_sum *sum)
{
    const struct mla_golden_row *row = &sum->row;
    char text[TEXT_MAX];
    size_t at = 0;
    if (!sum->is_whole)
        return mla_options_fail(
            MLA_EXIT_USAGE, "compare",
            "--update: %s/%s was judged on %" PRId64 " of %" PRId64 " cases of %s: all are needed",
            row->op, row->kernel, row->counts[MLA_GOLDEN_CASES], sum->due, row->set);
    const struct mla_golden_sum *first = next_sum(s, row, &at);
    if (mla_golden_compare(&first->row, row, text, sizeof text) != MLA_GOLDEN_SAME)
        return mla_options_fail(MLA_EXIT_USAGE, "compare",
                                "--update: %s/%s differs between machines (%s and %s: %s): give "
                                "one run",
                                row->op, row->kernel, first->isa, sum->isa, text);
    return 0;
}

static int take_row(struct mla_golden_summary *s, const struct mla_golden_row *now)
{
    struct mla_golden_row *old = mla_golden_find(&s->golden, now->kernel, now->op, now->set);
    if (old == NULL)
        old = mla_golden_add(&s->golden, now->kernel, now->op, now->set);
    if (old == NULL)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "out of memory");
    *old = *now;
    return 0;
}

static int update(struct mla_golden_summary *s)
{
    char error[1024];
    int64_t n = 0;
    int code = 0;
    for (size_t i = 0; i < s->n && code == 0; i++) {
        const struct mla_golden_row *row = &s->sums[i].row;
        const struct mla_golden_sum *sum;
        bool is_first = true;
        for (size_t j = 0; j < i; j++)
            is_first = is_first && !is_of(&s->sums[j], row);
        for (size_t at = 0; is_first && code == 0 && (sum = next_sum(s, row, &at)) != NULL; n++) {
            code = check_sum(s, sum);
            code = code != 0 ? code : take_row(s, &sum->row);
        }
    }
    if (code != 0)
        return code;
    if (n == 0)
        return mla_options_fail(MLA_EXIT_NOTHING, "compare",
                                "--update: nothing of these sets is stored");
    if (!mla_golden_write(s->c->options.golden, &s->golden, error, sizeof error))
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "--golden: %s", error);
    printf("%s: %" PRId64 " rows written, %zu in all\n", s->c->options.golden, n, s->golden.n);
    return 0;
}

/* ---- the whole ---- */

/* A file that is not there yet is one without rows, for who updates it. */
static int read_golden(struct mla_golden_summary *s)
{
    char error[1024];
    const struct mla_options *o = &s->c->options;
    FILE *file = fopen(o->golden, "r");
    if (file == NULL && o->update)
        return 0;
    if (file != NULL)
        fclose(file);
    if (mla_golden_read(o->golden, &s->golden, error, sizeof error))
        return 0;
    return mla_options_fail(file == NULL ? MLA_EXIT_ENVIRONMENT : MLA_EXIT_USAGE, "compare",
                            "--golden: %s", error);
}

int mla_compare_golden(struct mla_compare *c)
{
    struct mla_golden_summary s = {.c = c};
    int code = 0;
    if (c->options.words_n != 1)
        code = mla_options_fail(MLA_EXIT_USAGE, "compare",
                                "--golden: give one run, commit or database");
    code = code != 0 ? code : read_golden(&s);
    code = code != 0 ? code : mla_golden_sets_read(&c->options, &s.sets);
    code = code != 0 ? code : mla_compare_open(c, 1, c->options.words[0]);
    if (code == 0) {
        mla_golden_sum_up(&s);
        code = c->code != 0 ? c->code : mla_interrupted ? MLA_EXIT_INTERRUPTED : 0;
    }
    if (code == 0)
        code = c->options.update ? update(&s) : report(&s);
    mla_golden_free(&s.golden);
    mla_golden_sets_free(&s.sets);
    mla_golden_sums_free(&s);
    return code;
}
