/* SPDX-License-Identifier: Apache-2.0
 *
 * merge.c - `mlacheck merge`: databases of many machines into one.
 *
 * Each source is one transaction of the store's, so whatever ends this between or during two of them, the
 * same command finishes it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz/mlacheck/options.h"

static const char help[] =
    "usage: mlacheck merge INTO.db FROM.db... [flags]\n\n"
    "Bring everything stored in FROM.db... into INTO.db, which is made if it is not there.\n"
    "Merging a file again adds only what is new in it, and the order of merging changes nothing\n"
    "but the numbers of runs. FROM.db is only read, and may be in use and of an older version.\n"
    "A finding keeps the first and the last time that any file saw it; it is `known` if one says\n"
    "so, else in the state of the file that saw it last.\n\n"
    "flags:\n"
    "  --json           end with one JSON object of counts\n"
    "  --quiet          no line for each file\n\n"
    "example: mlacheck merge all.db ci-1/mlacheck.db ci-2/mlacheck.db\n\n"
    "exit: 0 merged, 2 bad usage, 3 a file cannot be read or written (those before it are\n"
    "merged), 130 interrupted; then give the same command again\n";

static void add(struct mla_store_merged *sum, const struct mla_store_merged *n)
{
    sum->runs_new += n->runs_new;
    sum->runs_later += n->runs_later;
    sum->cases_new += n->cases_new;
    sum->verdicts += n->verdicts;
    sum->findings_new += n->findings_new;
}

static void report(const char *from, const struct mla_store_merged *n)
{
    printf("%s: %" PRId64 " runs new, %" PRId64 " known that went on; %" PRId64
           " verdicts, %" PRId64 " new cases, %" PRId64 " new findings\n",
           from, n->runs_new, n->runs_later, n->verdicts, n->cases_new, n->findings_new);
    (void)fflush(stdout);
}

static int merge_all(struct mla_store *store, const struct mla_options *o)
{
    struct mla_store_merged sum = {0}, n = {0};
    int code = 0, merged_n = 0;
    for (int i = 1; i < o->words_n && code == 0; i++) {
        int32_t status = mla_interrupted
                             ? (int32_t)MLA_STORE_ERR_STOPPED
                             : mla_store_merge(store, o->words[i], &mla_interrupted, &n);
        if (status == MLA_STORE_OK) {
            add(&sum, &n);
            merged_n++;
            if (!o->quiet)
                report(o->words[i], &n);
        } else if (status == MLA_STORE_ERR_STOPPED) {
            code = mla_options_fail(MLA_EXIT_INTERRUPTED, "merge",
                                    "interrupted before '%s' was in: merge it again", o->words[i]);
        } else {
            code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "merge", "%s", mla_store_message(store));
        }
    }
    if (o->json)
        printf("{\"merged\":%d,\"left\":%d,\"runs_new\":%" PRId64 ",\"runs_later\":%" PRId64
               ",\"verdicts\":%" PRId64 ",\"cases_new\":%" PRId64 ",\"findings_new\":%" PRId64
               "}\n",
               merged_n, o->words_n - 1 - merged_n, sum.runs_new, sum.runs_later, sum.verdicts,
               sum.cases_new, sum.findings_new);
    return code;
}

int mla_verb_merge(int argc, char **argv)
{
    struct mla_options o;
    int code = mla_options_parse(&o, "merge", "Jqh*", argc, argv);
    if (code != 0 || o.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    if (o.words_n < 2)
        return mla_options_fail(MLA_EXIT_USAGE, "merge",
                                "give the database to merge into and at least one to merge");
    for (int i = 1; i < o.words_n; i++)
        if (mla_options_same_file(o.words[0], o.words[i]))
            return mla_options_fail(MLA_EXIT_USAGE, "merge", "'%s' cannot be merged into itself",
                                    o.words[i]);
    /* A misspelt source must not leave an empty database behind. */
    for (int i = 1; i < o.words_n; i++)
        if (access(o.words[i], R_OK) != 0)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "merge", "'%s' cannot be read",
                                    o.words[i]);
    o.db = o.words[0];
    struct mla_store *store = mla_options_store(&o, "merge");
    if (store == NULL)
        return MLA_EXIT_ENVIRONMENT;
    code = merge_all(store, &o);
    if (mla_store_close(store) != MLA_STORE_OK && code == 0)
        code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "merge", "the database could not be written");
    return code;
}
