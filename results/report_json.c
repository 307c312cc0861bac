/* SPDX-License-Identifier: Apache-2.0
 *
 * report_json.c - the report as JSON. A figure that is not finite is null, as JSON has no other word.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "results/report_page.h"
#include "results/report_text.h"

static void member_text(FILE *f, const char *name, const char *text)
{
    fprintf(f, "\"%s\":", name);
    mla_text_json(f, text);
}

static void member_number(FILE *f, const char *name, bool known, double value)
{
    fprintf(f, ",\"%s\":", name);
    mla_text_number(f, known ? value : NAN);
}

static void member_run(struct mla_report *r, FILE *f, const char *name, const struct mla_subject *s,
                       size_t rank)
{
    const struct mla_run_row *run = &r->runs[rank];
    fprintf(f, ",\"%s\":{\"run\":%" PRId64 ",", name, run->id);
    member_text(f, "commit", run->commit);
    fprintf(f, ",\"dirty\":%s,", run->dirty ? "true" : "false");
    member_text(f, "sanitizer", run->sanitizer);
    fputc(',', f);
    member_text(f, "file", r->states[mla_report_state(r, rank, s->kernel)].file);
    fputc(',', f);
    member_text(f, "started", run->started);
    fputc('}', f);
}

static void member_point(struct mla_report *r, FILE *f, const char *name,
                         const struct mla_subject *s, const struct mla_point *point)
{
    const struct mla_case_row *row = point->n > 0 ? mla_report_case(r, point->testcase) : NULL;
    if (row == NULL) {
        fprintf(f, ",\"%s\":null", name);
        return;
    }
    char *repro = mla_report_repro(r, s, row);
    fprintf(f, ",\"%s\":{\"value\":", name);
    mla_text_number(f, point->y);
    fprintf(f, ",\"finite\":%s,\"case\":\"%s\",", isfinite(point->y) ? "true" : "false", row->id);
    member_text(f, "repro", repro);
    fputc('}', f);
    free(repro);
}

static void write_subject(struct mla_report *r, FILE *f, const struct mla_subject *s)
{
    static const char *const grades[MLA_GRADES_N] = {NULL,       "unsupported", "pass",
                                                     "unjudged", "refused",     "fail_improbable",
                                                     "timeout",  "crash",       "fail_certain"};
    fputc('{', f);
    member_text(f, "op", mla_subject_op(s));
    fputc(',', f);
    member_text(f, "kernel", s->kernel);
    fputc(',', f);
    member_text(f, "sanitizer", s->sanitizer);
    fprintf(f, ",\"planted\":%s", s->planted ? "true" : "false");
    member_run(r, f, "last", s, s->rank);
    for (int g = MLA_GRADE_UNSUPPORTED; g < MLA_GRADES_N; g++) {
        fprintf(f, ",\"%s\":%" PRId64, grades[g], s->cases[g]);
    }
    fprintf(f,
            ",\"tallied\":%" PRId64 ",\"compared\":%" PRId64 ",\"fails\":%" PRId64
            ",\"grew\":%" PRId64 ",\"lost\":%" PRId64 ",\"flaky\":%" PRId64,
            s->tallied, s->compared, s->fails, s->grew, s->lost, s->flaky);
    if (s->fails + s->grew > 0) {
        member_run(r, f, "since", s, s->since);
    }
    member_number(f, "compared_before_err_over_bound", s->worst_before >= 0, s->worst_before);
    member_number(f, "compared_now_err_over_bound", s->worst_now >= 0, s->worst_now);
    char *word, *reason;
    mla_report_reason(r, s->gravest_verdict, &word, &reason);
    member_point(r, f, "worst", s, &s->gravest);
    fprintf(f, ",\"worst_fails\":%s,\"worst_verdict\":", s->gravest_fails ? "true" : "false");
    mla_text_json(f, word);
    free(word);
    free(reason);
    fprintf(f,
            ",\"now_judged\":%" PRId64 ",\"now_unsupported\":%" PRId64 ",\"now_unjudged\":%" PRId64,
            s->now_judged, s->now_unsupported, s->now_unjudged);
    member_point(r, f, "max_err_over_bound", s, &s->worst);
    member_point(r, f, "max_ulp", s, &s->max_ulp);
    member_point(r, f, "p99_ulp", s, &s->p99_ulp);
    fprintf(f, ",\"measured\":%" PRId64, s->measured);
    member_number(f, "mean_rounded_percent", s->rounded_n > 0,
                  s->rounded_sum / (double)s->rounded_n);
    member_number(f, "min_rounded_percent", s->rounded_n > 0, s->rounded_least);
    member_number(f, "bias_se", s->bias_up_n > 0, s->bias_up);
    member_number(f, "bias_outward_se", s->bias_outward_n > 0, s->bias_outward);
    member_number(f, "kernel_seconds", s->timed > 0, s->kernel_seconds);
    fputc('}', f);
}

static void write_change(struct mla_report *r, FILE *f, const struct mla_change *c)
{
    static const char *const kinds[] = {[MLA_SAME] = "same",
                                        [MLA_LOST] = "lost",
                                        [MLA_GREW] = "grew",
                                        [MLA_BROKEN] = "never-passed",
                                        [MLA_FAILS] = "fails"};
    const struct mla_subject *s = &r->subjects[c->subject];
    const struct mla_case_row *row = mla_report_case(r, c->testcase);
    char *repro = mla_report_repro(r, s, row), *word, *reason;
    mla_report_reason(r, c->verdict, &word, &reason);
    fputc('{', f);
    member_text(f, "op", mla_subject_op(s));
    fputc(',', f);
    member_text(f, "kernel", s->kernel);
    fputc(',', f);
    member_text(f, "sanitizer", s->sanitizer);
    fprintf(f, ",\"kind\":\"%s\",\"case\":\"%s\",\"failed_runs\":%" PRId64 ",\"runs\":%" PRId64 ",",
            kinds[c->kind], row != NULL ? row->id : "", c->failed_n, c->runs_n);
    member_text(f, "verdict", word);
    fputc(',', f);
    member_text(f, "reason", reason);
    member_number(f, "before_err_over_bound", c->before >= 0, c->before);
    member_number(f, "err_over_bound", c->ratio >= 0, c->ratio);
    member_run(r, f, "since", s, c->since);
    if (c->kind != MLA_BROKEN) {
        member_run(r, f, "last_better", s, c->good);
    }
    fputc(',', f);
    member_text(f, "repro", repro);
    fputc('}', f);
    free(repro);
    free(word);
    free(reason);
}

void mla_report_json(struct mla_report *r, FILE *f)
{
    const struct mla_report_answer *a = &r->answer;
    bool first = true;
    fputc('{', f);
    mla_report_last_json(r, f);
    fputc(',', f);
    fprintf(f,
            "\"regressed\":%" PRId64 ",\"fails\":%" PRId64 ",\"grew\":%" PRId64 ",\"lost\":%" PRId64
            ",\"failing\":%" PRId64 ",\"flaky\":%" PRId64 ",\"compared\":%" PRId64
            ",\"cases\":%" PRId64 ",\"judged\":%" PRId64 ",\"idle\":%" PRId64
            ",\"verdicts\":%" PRId64 ",\"latest_run_ended\":%s,\"kernels\":[",
            a->fails, a->fails, a->grew, a->lost, a->failing, a->flaky, a->compared, a->cases,
            a->judged, a->idle, a->verdicts, mla_report_cut_off(r) == NULL ? "true" : "false");
    for (size_t i = 0; i < r->subjects_n; i++) {
        if (mla_page_shows(&r->subjects[i])) {
            fputs(first ? "\n" : ",\n", f);
            write_subject(r, f, &r->subjects[i]);
            first = false;
        }
    }
    fputs("],\n\"worse\":[", f);
    for (size_t i = 0; i < r->changes_n; i++) {
        fputs(i == 0 ? "\n" : ",\n", f);
        write_change(r, f, &r->changes[i]);
    }
    fputs("]}\n", f);
}
