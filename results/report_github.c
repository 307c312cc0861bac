/* SPDX-License-Identifier: Apache-2.0
 *
 * report_github.c - the answer as GitHub workflow commands: annotations of a job.
 *
 * A command is a line; in its message GitHub turns %0A into a line's end, and so shows what to run on a line
 * of its own. It shows ten errors and ten warnings of a step, the first ones: so the answer comes first.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "results/report_internal.h"
#include "results/report_text.h"

#define CHANGES_SHOWN 9

/* The answer, before what GitHub may leave out. */
static void github_answer(FILE *f, struct mla_report *r)
{
    const struct mla_report_answer *a = &r->answer;
    const char *level = a->failing > 0 ? "error" : a->idle > 0 ? "warning" : "notice";
    const char *said = a->fails > 0      ? "regressed"
                       : a->failing > 0  ? "failing, not passed before"
                       : a->idle > 0     ? "kernels not judged"
                       : a->compared > 0 ? "no regression"
                                         : "nothing to compare yet";
    char *counts = mla_report_counts(r), *last = mla_report_last(r),
         *kernels = mla_report_failing(r);
    fprintf(f, "::%s title=mlacheck: %s::", level, said);
    if (a->compared > 0) {
        fprintf(f, "%" PRId64 " of %" PRId64 " result%s compared with earlier runs regressed; ",
                a->fails, a->compared, mla_s(a->compared));
    }
    mla_text_github_message(f, counts);
    fputs(kernels != NULL ? ".%0A" : ".", f);
    mla_text_github_message(f, kernels);
    if (r->changes_all > CHANGES_SHOWN) {
        fprintf(f, "%%0AThe gravest %d of %" PRId64 " cases follow, the report names more.",
                CHANGES_SHOWN, r->changes_all);
    }
    fputs("%0A", f);
    mla_text_github_message(f, last);
    fputc('\n', f);
    free(kernels);
    free(counts);
    free(last);
}

/* A line each: what it is, since when, how to run it. */
static void github_change(FILE *f, struct mla_report *r, const struct mla_change *c)
{
    const struct mla_subject *s = &r->subjects[c->subject];
    char *repro = mla_report_repro(r, s, mla_report_case(r, c->testcase)), *word, *reason;
    char *name = mla_subject_name(s), *build = mla_report_build(r, c->since, s);
    mla_report_reason(r, c->verdict, &word, &reason);
    fprintf(f, "::%s title=%s/", c->kind == MLA_GREW ? "warning" : "error", mla_subject_op(s));
    mla_text_github_property(f, name);
    fprintf(f, " %s::", mla_change_text(c->kind));
    if (c->kind != MLA_GREW) {
        mla_text_github_message(f, word);
        fputs(": ", f);
        mla_text_github_message(f, reason);
        fputs("%0A", f);
    }
    fprintf(f, "since run %" PRId64 ", commit ", r->runs[c->since].id);
    mla_text_github_message(f, build);
    if (c->kind != MLA_BROKEN) {
        free(build);
        build = mla_report_build(r, c->good, s);
        fprintf(f, "; last better in run %" PRId64 ", commit ", r->runs[c->good].id);
        mla_text_github_message(f, build);
    }
    if (c->ratio >= 0) {
        fprintf(f, "; err/B %.3g", c->ratio);
    }
    if (mla_change_is_flaky(c)) {
        fprintf(f, "; flaky, failed in %" PRId64 " of %" PRId64 " run%s", c->failed_n, c->runs_n,
                mla_s(c->runs_n));
    }
    fputs("%0Arun it: ", f);
    mla_text_github_message(f, repro);
    fputc('\n', f);
    free(name);
    free(build);
    free(repro);
    free(word);
    free(reason);
}

/* A kernel that was never judged is not green. */
static void github_idle(FILE *f, struct mla_report *r, const struct mla_subject *s)
{
    char *name = mla_subject_name(s), *text = mla_report_idle(r, s);
    fprintf(f, "::warning title=%s/", mla_subject_op(s));
    mla_text_github_property(f, name);
    fputs(" no case judged::", f);
    mla_text_github_message(f, text);
    fputc('\n', f);
    free(name);
    free(text);
}

void mla_report_github(struct mla_report *r, FILE *f)
{
    github_answer(f, r);
    for (size_t i = 0; i < r->subjects_n; i++) {
        if (mla_subject_is_idle(&r->subjects[i]) && !r->subjects[i].planted) {
            github_idle(f, r, &r->subjects[i]);
        }
    }
    for (size_t i = 0; i < r->changes_n && i < CHANGES_SHOWN; i++) {
        github_change(f, r, &r->changes[i]);
    }
}
