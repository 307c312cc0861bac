/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c - `mlacheck compare`: what moved between two runs, commits or databases.
 */
#include "fuzz/mlacheck/compare.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "usage: mlacheck compare A B [--db FILE] [--json] [--verbose]\n"
    "       mlacheck compare --golden FILE --set CORPUS.. [--kernel NAME].. B [--update]\n\n"
    "A and B: the number of a run; the beginning of a commit (>= 4 hex digits, -dirty appended "
    "for\n"
    "runs of a changed tree); or a database file, all of it. Verdicts are paired by case, kernel,\n"
    "sanitizer and instruction set. Of several runs in a side the latest counts, with the others "
    "of\n"
    "its clean commit, and a case that failed in any of them failed (flaky: m of n).\n\n"
    "A regression, and only that, gives exit code 1:\n"
    "  a case that passed (or was refused as due) in A and fails, crashes or hangs in B;\n"
    "  a kernel that passed (or refused as due) some case of A and failed none fails in B on a "
    "case,\n"
    "  or by a relation, that A did not judge. Operations, sanitizers and instruction sets count "
    "apart;\n"
    "  a kernel that failed in A, passed nothing there or is not in A is told as NEW.\n"
    "A plug-in goes by its file's base name, wherever the file lies: mine.so:NAME.\n"
    "Told, but no regression: changed bits, larger errors in bounds, shifts of distributions, "
    "cases\n"
    "that are no longer judged or failed by a relation that B did not look at, cases of one side "
    "only.\n\n"
    "  --golden FILE    hold B against a summary that may only improve: exit code 1 where it is "
    "worse\n"
    "  --set CORPUS     the cases of the summary (any number)\n"
    "  --kernel NAME    only these kernels\n"
    "  --update         write B's figures into FILE instead; rows that B does not have stay\n"
    "  --db FILE        where runs and commits are (default results/mlacheck.db)\n"
    "  --json           end with one JSON object\n"
    "  --verbose        everything, not the first of each kind\n"
    "  --quiet          no progress on stderr\n\n"
    "examples:\n"
    "  mlacheck compare 12 15                       two runs\n"
    "  mlacheck compare 9f31c02 yesterday.db        a commit in the database, another database\n"
    "  mlacheck compare --golden results/golden.csv --set corpus/special.txt 15\n\n"
    "exit: 0 no regression, 1 a regression, 2 bad usage or input, 3 environment, 77 nothing could "
    "be\n"
    "compared\n";

int mla_compare_store_failed(struct mla_compare *c, int side)
{
    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "compare", "%c: %s", 'A' + side,
                            mla_store_message(c->stores[side]));
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

int mla_compare_open(struct mla_compare *c, int side, const char *word)
{
    struct mla_options options = c->options;
    struct stat status;
    bool is_file = (stat(word, &status) == 0 && S_ISREG(status.st_mode)) ||
                   strchr(word, '/') != NULL || ends_with(word, ".db");
    c->names[side] = word;
    options.db = is_file ? word : c->options.db;
    c->stores[side] = mla_options_look_store(&options, "compare");
    if (c->stores[side] == NULL)
        return MLA_EXIT_ENVIRONMENT;
    int32_t code = mla_store_side_open(c->stores[side], is_file ? NULL : word, &c->sides[side]);
    if (code == MLA_STORE_OK)
        return 0;
    bool missing = code == MLA_STORE_ERR_NOT_FOUND || code == MLA_STORE_ERR_AMBIGUOUS;
    return missing ? mla_options_fail(MLA_EXIT_USAGE, "compare", "%s",
                                      mla_store_message(c->stores[side]))
                   : mla_compare_store_failed(c, side);
}

static int compare_sides(struct mla_compare *c)
{
    const struct mla_options *o = &c->options;
    if (o->sets_n > 0 || o->kernels_n > 0 || o->update)
        return mla_options_fail(MLA_EXIT_USAGE, "compare",
                                "--set, --kernel and --update belong to --golden");
    if (o->words_n != 2)
        return mla_options_fail(MLA_EXIT_USAGE, "compare",
                                "give two runs, commits or databases (mlacheck compare --help)");
    int code = mla_compare_open(c, 0, o->words[0]);
    code = code != 0 ? code : mla_compare_open(c, 1, o->words[1]);
    if (code != 0)
        return code;
    mla_compare_walk(c);
    if (c->code == 0 && !mla_interrupted)
        mla_compare_collect(c);
    return c->code != 0 ? c->code : mla_compare_report(c);
}

int mla_verb_compare(int argc, char **argv)
{
    struct mla_compare c = {0};
    int code = mla_options_parse(&c.options, "compare", "dszkUJvqh", argc, argv);
    if (code != 0 || c.options.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    mla_progress_begin(&c.progress, c.options.quiet);
    code = c.options.golden != NULL ? mla_compare_golden(&c) : compare_sides(&c);
    mla_compare_free(&c);
    return code;
}
