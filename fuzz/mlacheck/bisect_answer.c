/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_answer.c - what is told and stored of the commit that was found, or of those it may be.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/mlacheck/bisect.h"
#include "fuzz/record.h"
#include "results/report_text.h"

static void print_json(struct mla_bisect *b, const struct mla_bisect_candidates *c)
{
    int64_t judged = 0, flaky = 0, skipped = 0;
    for (size_t i = 0; i < b->steps_n; i++) {
        const struct mla_store_step *s = &b->steps[i];
        judged += s->tries > 0;
        flaky += s->tries > 0 && s->outcome == MLA_STORE_SKIP;
        skipped += s->tries == 0;
    }
    printf("{\"found\":%s,\"commit\":\"%s\",\"range\":[", c->n == 1 ? "true" : "false",
           c->n == 1 ? mla_bisect_last_bad(b) : "");
    for (size_t i = 0; i < c->n; i++)
        printf("%s\"%s\"", i == 0 ? "" : ",", c->list[i]);
    printf("],\"judged\":%" PRId64 ",\"flaky\":%" PRId64 ",\"skipped\":%" PRId64
           ",\"builds\":%" PRId64 ",\"steady\":%s}\n",
           judged, flaky, skipped, b->builds_n, b->passes == 0 ? "true" : "false");
}

static int store_answer(struct mla_bisect *b, const struct mla_bisect_candidates *c)
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
        mla_bisect_spec(b, path, spec, sizeof spec);
        print_lines(show);
        mla_text_plain(stdout, step == NULL ? "" : step->text);
        printf("\n  repro: %s%s\n", mla_record_repro(spec, line, b->options.plain_oracle, repro),
               b->options.all_relations ? " --relations" : "");
    }
    free(show);
    return code;
}

int mla_bisect_answer(struct mla_bisect *b, const struct mla_bisect_candidates *c)
{
    const char *first = mla_bisect_last_bad(b);
    if (c->n == 1)
        printf("\nfirst bad commit: %s\n", first);
    else
        printf("\nthe first bad commit is one of %zu: the others could not be tested\n", c->n);
    for (size_t i = 0; c->n > 1 && i < c->n; i++)
        printf("  %s%s\n", c->list[i],
               strcmp(c->list[i], first) == 0 ? "  the first that is known to be bad" : "");
    int code = print_commit(b, first);
    code = code != 0 ? code : store_answer(b, c);
    if (code == 0 && b->options.json)
        print_json(b, c);
    return code;
}
