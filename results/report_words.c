/* SPDX-License-Identifier: Apache-2.0
 *
 * report_words.c - sentences that every format says in the same words; plain text, which each escapes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_internal.h"
#include "results/report_text.h"

#define KERNELS_SHOWN 3
#define FAILING_SHOWN 6

static bool is_verb(const struct mla_run_row *run, const char *verb)
{
    size_t n = strlen(verb);
    return strncmp(run->command, verb, n) == 0 &&
           (run->command[n] == '\0' || run->command[n] == ' ');
}

/* "a, b, c and 2 more" of "a,b,c,d,e". */
static void write_kernels(FILE *f, const char *kernels)
{
    int64_t n = 0, shown = 0;
    for (const char *at = kernels; *at != '\0'; n++) {
        size_t length = strcspn(at, ",");
        if (n < KERNELS_SHOWN) {
            fprintf(f, "%s%.*s", n == 0 ? "" : ", ", (int)length, at);
            shown++;
        }
        at += length + (at[length] == ',');
    }
    if (n > shown) {
        fprintf(f, " and %" PRId64 " more", n - shown);
    }
}

static void write_found(FILE *f, const struct mla_run_row *run)
{
    bool hunt = is_verb(run, "fuzz");
    if (run->cases == 0) {
        fputs(is_verb(run, "bench") ? "timings, no case" : "no case", f);
        return;
    }
    const char *what = hunt || run->trials > 0 ? "execution" : "result";
    fprintf(f, "%" PRId64 " %s%s", run->cases, what, mla_s(run->cases));
    if (run->trials == run->cases) { /* the kill matrix says what came of them */
        return;
    }
    int64_t idle = run->cases - run->trials - run->judged;
    if (run->judged == 0) {
        fputs(", none of them judged", f);
        return;
    }
    if (idle > 0) {
        fprintf(f, ", %" PRId64 " of them not judged", idle);
    }
    if (run->failed == 0) {
        fputs(hunt ? ", no fault found" : ", none failed", f);
    } else if (hunt) {
        fprintf(f, ", %" PRId64 " fault%s found", run->failed, mla_s(run->failed));
    } else {
        fprintf(f, ", %" PRId64 " failed", run->failed);
    }
    if (run->failed_planted > 0) {
        fprintf(f, " (%" PRId64 " by a kernel that is wrong on purpose, which counts nowhere else)",
                run->failed_planted);
    }
}

char *mla_report_last(const struct mla_report *report)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = report->runs_n > 0 ? open_memstream(&text, &bytes) : NULL;
    if (f == NULL) {
        return NULL;
    }
    const struct mla_run_row *run = &report->runs[report->runs_n - 1];
    bool hunt = is_verb(run, "fuzz");
    fprintf(f, "The last run, %" PRId64 ", was %smlacheck %.*s%s with ", run->id,
            hunt ? "a hunt (" : "", (int)strcspn(run->command, " "), run->command, hunt ? ")" : "");
    write_kernels(f, run->kernels);
    fputs(": ", f);
    write_found(f, run);
    fputs(run->ended[0] == '\0' ? "; it did not end." : ".", f);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void mla_report_last_json(const struct mla_report *report, FILE *f)
{
    if (report->runs_n == 0) {
        fputs("\"last_run\":null", f);
        return;
    }
    const struct mla_run_row *run = &report->runs[report->runs_n - 1];
    char *verb = strndup(run->command, strcspn(run->command, " "));
    fprintf(f, "\"last_run\":{\"run\":%" PRId64 ",\"verb\":", run->id);
    mla_text_json(f, verb);
    fputs(",\"kernels\":", f);
    mla_text_json(f, run->kernels);
    fprintf(f,
            ",\"results\":%" PRId64 ",\"judged\":%" PRId64 ",\"failed\":%" PRId64
            ",\"failed_planted\":%" PRId64 ",\"ended\":%s}",
            run->cases, run->judged, run->failed, run->failed_planted,
            run->ended[0] != '\0' ? "true" : "false");
    free(verb);
}

char *mla_report_counts(const struct mla_report *report)
{
    const struct mla_report_answer *a = &report->answer;
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL) {
        return NULL;
    }
    fprintf(f, "%" PRId64 " of %" PRId64 " judged result%s failing now", a->failing, a->judged,
            mla_s(a->judged));
    if (a->flaky > 0) {
        fprintf(f, ", %" PRId64 " of them flaky", a->flaky);
    }
    if (a->cases > a->judged) {
        fprintf(f, "; %" PRId64 " not judged", a->cases - a->judged);
    }
    if (a->lost > 0) {
        fprintf(f, ", %" PRId64 " of them passed once", a->lost);
    }
    if (a->grew > 0) {
        fprintf(f, "; %" PRId64 " pass%s with a larger error than before", a->grew,
                a->grew == 1 ? "es" : "");
    }
    int64_t tallied = 0;
    for (size_t i = 0; i < report->subjects_n; i++) {
        tallied += report->subjects[i].planted ? 0 : report->subjects[i].tallied;
    }
    if (tallied > 0) {
        fprintf(f, "; %" PRId64 " more %s only counted", tallied, tallied == 1 ? "was" : "were");
    }
    if (a->idle > 0) {
        fprintf(f, "; of %" PRId64 " kernel%s and operation%s nothing was judged", a->idle,
                mla_s(a->idle), mla_s(a->idle));
    }
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *mla_report_failing(const struct mla_report *report)
{
    int64_t n = 0;
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = report->answer.failing > 0 ? open_memstream(&text, &bytes) : NULL;
    if (f == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < report->subjects_n; i++) {
        const struct mla_subject *s = &report->subjects[i];
        int64_t failing = mla_subject_failing(s);
        if (s->planted || failing == 0 || n++ >= FAILING_SHOWN) {
            continue;
        }
        char *name = mla_subject_name(s);
        fprintf(f, "%s%s/%s %" PRId64, n == 1 ? "Failing: " : ", ", mla_subject_op(s), name,
                failing);
        if (s->fails > 0) {
            fprintf(f, " (%" PRId64 " regressed since run %" PRId64 ")", s->fails,
                    report->runs[s->since].id);
        }
        free(name);
    }
    if (n > FAILING_SHOWN) {
        fprintf(f, " and %" PRId64 " more kernel%s", n - FAILING_SHOWN, mla_s(n - FAILING_SHOWN));
    }
    fputc('.', f);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *mla_report_idle(struct mla_report *report, const struct mla_subject *s)
{
    char *word, *reason, *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL) {
        return NULL;
    }
    int64_t n = s->now_unsupported + s->now_unjudged;
    fprintf(f,
            "none of its %" PRId64 " case%s was judged: %" PRId64 " unsupported, %" PRId64
            " unjudged",
            n, mla_s(n), s->now_unsupported, s->now_unjudged);
    mla_report_reason(report, s->idle_verdict, &word, &reason);
    if (word != NULL && word[0] != '\0') {
        fprintf(f, "; one is %s: %s", word,
                reason != NULL && reason[0] != '\0' ? reason : "no reason is stored");
    }
    free(word);
    free(reason);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
