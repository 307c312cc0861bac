/* SPDX-License-Identifier: Apache-2.0
 *
 * report_markdown.c - the report as GitHub's Markdown (a job's summary), and as CSV.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "results/report_page.h"
#include "results/report_text.h"

#define CASES_SHOWN 20

static void write_name(FILE *f, const struct mla_subject *s)
{
    char *name = mla_subject_name(s);
    fprintf(f, "%s/", mla_subject_op(s));
    mla_text_markdown(f, name);
    free(name);
}

static void write_run(FILE *f, const struct mla_report *r, const struct mla_subject *s, size_t rank)
{
    char *build = mla_report_build(r, rank, s), day[11];
    (void)snprintf(day, sizeof day, "%s", r->runs[rank].started);
    fprintf(f, "run %" PRId64 ", ", r->runs[rank].id);
    mla_text_markdown(f, build);
    fputs(", ", f);
    mla_text_markdown(f, day);
    free(build);
}

/* Takes the text. */
static void write_text(FILE *f, const char *begin, char *text, const char *end)
{
    fputs(begin, f);
    mla_text_markdown(f, text);
    fputs(end, f);
    free(text);
}

/* Kernels that ran for nothing. */
static void write_idle(struct mla_report *r, FILE *f)
{
    bool first = true;
    for (size_t i = 0; i < r->subjects_n; i++) {
        const struct mla_subject *s = &r->subjects[i];
        if (mla_subject_is_idle(s) && !s->planted) {
            fputs(first ? "\n### Not judged at all\n\n- " : "- ", f);
            write_name(f, s);
            fputs(", ", f);
            write_run(f, r, s, s->rank);
            write_text(f, ": ", mla_report_idle(r, s), "\n");
            first = false;
        }
    }
}

static void write_answer(struct mla_report *r, FILE *f)
{
    const struct mla_report_answer *a = &r->answer;
    if (a->fails > 0) {
        fprintf(f,
                "**Regressed: %" PRId64 " of %" PRId64 " result%s** passed before and fail%s now.",
                a->fails, a->compared, mla_s(a->compared), a->fails == 1 ? "s" : "");
    } else if (a->compared > 0) {
        fprintf(f, "**No regression**: %" PRId64 " result%s %s compared with earlier runs.",
                a->compared, mla_s(a->compared), a->compared == 1 ? "was" : "were");
    } else {
        fputs("**Nothing to compare yet**: no case was judged by two runs.", f);
    }
    write_text(f, a->failing > 0 ? " **" : " ", mla_report_counts(r),
               a->failing > 0 ? "**. " : ". ");
    if (a->failing > 0) {
        write_text(f, "", mla_report_failing(r), " ");
    }
    write_text(f, "", mla_report_last(r), "\n");
    const struct mla_run_row *run = mla_report_cut_off(r);
    if (run != NULL) {
        fprintf(f,
                "\n**The latest run, %" PRId64
                ", did not end**: cases that it did not reach stand here as "
                "earlier runs judged them.\n",
                run->id);
    }
    write_idle(r, f);
}

/* "crash: why". */
static void write_reason(struct mla_report *r, FILE *f, int64_t verdict)
{
    char *word, *reason;
    mla_report_reason(r, verdict, &word, &reason);
    write_text(f, "**", word, "**: ");
    write_text(f, "", reason, "");
}

static void write_case(struct mla_report *r, FILE *f, const struct mla_subject *s, int64_t testcase)
{
    const struct mla_case_row *row = mla_report_case(r, testcase);
    char *repro = mla_report_repro(r, s, row);
    fputs("  ", f);
    mla_text_code(f, repro);
    fputc('\n', f);
    free(repro);
}

static void write_changes(struct mla_report *r, FILE *f)
{
    if (r->changes_n > 0) {
        size_t n = r->changes_n < CASES_SHOWN ? r->changes_n : CASES_SHOWN;
        fprintf(f, "\n### Failing or worse than before, gravest first: %zu of %" PRId64 "\n\n", n,
                r->changes_all);
    }
    for (size_t i = 0; i < r->changes_n && i < CASES_SHOWN; i++) {
        const struct mla_change *c = &r->changes[i];
        const struct mla_subject *s = &r->subjects[c->subject];
        fputs("- ", f);
        write_name(f, s);
        fprintf(f, ": %s", mla_change_text(c->kind));
        if (mla_change_is_flaky(c)) {
            fprintf(f, ", flaky: in %" PRId64 " of %" PRId64 " run%s", c->failed_n, c->runs_n,
                    mla_s(c->runs_n));
        }
        if (c->before >= 0 && c->ratio >= 0) {
            fprintf(f, ", err/B %.3g to %.3g", c->before, c->ratio);
        } else if (c->ratio >= 0) {
            fprintf(f, ", err/B %.3g", c->ratio);
        }
        fputs(", since ", f);
        write_run(f, r, s, c->since);
        if (c->kind != MLA_BROKEN) {
            fputs("; last better in ", f);
            write_run(f, r, s, c->good);
        }
        if (c->kind != MLA_GREW) {
            fputs(". ", f);
            write_reason(r, f, c->verdict);
        }
        fputs("\n\n", f);
        write_case(r, f, s, c->testcase);
    }
}

/* One cell; "-" for what was not measured. */
static __attribute__((format(printf, 2, 0))) void write_figure(FILE *f, const char *format,
                                                               bool known, double value)
{
    fputs(" | ", f);
    if (known) {
        fprintf(f, format, value);
    } else {
        fputc('-', f);
    }
}

void mla_report_markdown(struct mla_report *r, FILE *f)
{
    const struct mla_subject *worst = mla_report_worst(r);
    fputs("## mlacheck report\n\n", f);
    write_answer(r, f);
    write_changes(r, f);
    if (worst != NULL) {
        fputs("\n### Worst case\n\n", f);
        write_name(f, worst);
        if (worst->gravest_known) {
            fprintf(f, ", err/B %.3g", worst->gravest.y);
        }
        fputs(worst->gravest_fails ? ", fails, " : ", passes", f);
        if (worst->gravest_fails) {
            write_reason(r, f, worst->gravest_verdict);
        }
        fputs("\n\n", f);
        write_case(r, f, worst, worst->gravest.testcase);
    }
    fputs("\n### Accuracy\n\n"
          "| kernel | cases | max ulp | p99 ulp | max err/B | rounded %, mean | least | bias up "
          "(se) | "
          "outward (se) | last run |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
          f);
    for (size_t i = 0; i < r->subjects_n; i++) {
        const struct mla_subject *s = &r->subjects[i];
        if (!s->planted && (s->measured > 0 || s->gravest.n > 0)) {
            fputs("| ", f);
            write_name(f, s);
            fprintf(f, " | %" PRId64, s->measured);
            write_figure(f, "%.4g", s->max_ulp.n > 0, s->max_ulp.y);
            write_figure(f, "%.4g", s->p99_ulp.n > 0, s->p99_ulp.y);
            write_figure(f, "%.3g", s->worst.n > 0, s->worst.y);
            write_figure(f, "%.2f", s->rounded_n > 0, s->rounded_sum / (double)s->rounded_n);
            write_figure(f, "%.2f", s->rounded_n > 0, s->rounded_least);
            write_figure(f, "%.3g", s->bias_up_n > 0, s->bias_up);
            write_figure(f, "%.3g", s->bias_outward_n > 0, s->bias_outward);
            fputs(" | ", f);
            write_run(f, r, s, s->rank);
            fputs(" |\n", f);
        }
    }
}

/* A figure, or an empty cell where there is none. */
static void csv_figure(FILE *f, bool known, double value)
{
    fputc(',', f);
    if (known) {
        fprintf(f, "%.9g", value);
    }
}

static void csv_case(struct mla_report *r, FILE *f, const struct mla_point *point)
{
    const struct mla_case_row *row = point->n > 0 ? mla_report_case(r, point->testcase) : NULL;
    fprintf(f, ",%s", row != NULL ? row->id : "");
}

static void csv_row(struct mla_report *r, FILE *f, const struct mla_subject *s)
{
    const struct mla_run_row *run = &r->runs[s->rank];
    const struct mla_case_row *row = NULL;
    mla_text_csv(f, mla_subject_op(s));
    fputc(',', f);
    mla_text_csv(f, s->kernel);
    fputc(',', f);
    mla_text_csv(f, s->sanitizer);
    fprintf(f, ",%" PRId64 ",", run->id);
    mla_text_csv(f, run->commit);
    fprintf(f, ",%d", run->dirty);
    for (int g = MLA_GRADE_UNSUPPORTED; g < MLA_GRADES_N; g++) {
        fprintf(f, ",%" PRId64, s->cases[g]);
    }
    fprintf(f, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, s->tallied, s->compared,
            s->fails, s->grew, s->lost);
    csv_figure(f, s->worst_before >= 0, s->worst_before);
    csv_figure(f, s->worst_now >= 0, s->worst_now);
    csv_figure(f, s->worst.n > 0, s->worst.y);
    csv_case(r, f, &s->worst);
    csv_figure(f, s->max_ulp.n > 0, s->max_ulp.y);
    csv_case(r, f, &s->max_ulp);
    csv_figure(f, s->p99_ulp.n > 0, s->p99_ulp.y);
    csv_case(r, f, &s->p99_ulp);
    fprintf(f, ",%" PRId64, s->measured);
    csv_figure(f, s->rounded_n > 0, s->rounded_sum / (double)s->rounded_n);
    csv_figure(f, s->rounded_n > 0, s->rounded_least);
    csv_figure(f, s->bias_up_n > 0, s->bias_up);
    csv_figure(f, s->bias_outward_n > 0, s->bias_outward);
    csv_figure(f, s->timed > 0, s->kernel_seconds);
    fputc(',', f);
    row = s->gravest.n > 0 ? mla_report_case(r, s->gravest.testcase) : NULL;
    char *repro = mla_report_repro(r, s, row);
    mla_text_csv(f, repro);
    free(repro);
    fprintf(f, ",%s,%s,%" PRId64 ",%d,%s", row != NULL ? row->id : "",
            row == NULL        ? ""
            : s->gravest_fails ? "1"
                               : "0",
            s->flaky, s->planted, r->states[s->state].file);
    fputs("\r\n", f);
}

void mla_report_csv(struct mla_report *r, FILE *f)
{
    fputs("op,kernel,sanitizer,run,commit,dirty,unsupported,pass,unjudged,refused,fail_improbable,"
          "timeout,"
          "crash,fail_certain,tallied,compared,fails,grew,lost,"
          "compared_before_err_over_bound,compared_now_err_over_bound,max_err_over_bound,"
          "max_err_over_bound_case,max_ulp,max_ulp_case,p99_ulp,p99_ulp_case,measured,"
          "mean_rounded_percent,min_rounded_percent,bias_se,bias_outward_se,kernel_seconds,repro,"
          "worst_case,worst_case_fails,flaky,planted,kernel_file\r\n",
          f);
    for (size_t i = 0; i < r->subjects_n; i++) {
        if (mla_page_shows(&r->subjects[i])) {
            csv_row(r, f, &r->subjects[i]);
        }
    }
}
