/* SPDX-License-Identifier: Apache-2.0
 *
 * report_junit.c - the report as JUnit XML: a suite for each kernel and operation; a test case for each
 * regressed case that is named, and one for all others together, as a million would help nobody.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "results/report_page.h"
#include "results/report_text.h"

static size_t failures_of(const struct mla_report *r, size_t subject)
{
    size_t n = 0;
    for (size_t i = 0; i < r->changes_n; i++) {
        n += r->changes[i].subject == subject && r->changes[i].kind == MLA_FAILS;
    }
    return n;
}

static void write_failure(struct mla_report *r, FILE *f, const struct mla_change *c)
{
    const struct mla_subject *s = &r->subjects[c->subject];
    const struct mla_case_row *row = mla_report_case(r, c->testcase);
    char *repro = mla_report_repro(r, s, row), *word, *reason;
    mla_report_reason(r, c->verdict, &word, &reason);
    fprintf(f, "<testcase classname=\"%s.", mla_subject_op(s));
    mla_text_html(f, s->kernel);
    fprintf(f,
            "\" name=\"%s\"><failure type=\"passed-now-fails\" message=\"since run %" PRId64
            ", commit ",
            row != NULL ? row->id : "", r->runs[c->since].id);
    mla_text_html(f, r->runs[c->since].commit);
    if (c->ratio >= 0) {
        fprintf(f, ", err/B %.3g", c->ratio);
    }
    fputs("\">", f);
    mla_text_html(f, word);
    fputs(": ", f);
    mla_text_html(f, reason);
    fputc('\n', f);
    mla_text_html(f, repro);
    fputs("</failure></testcase>\n", f);
    free(repro);
    free(word);
    free(reason);
}

static void write_suite(struct mla_report *r, FILE *f, size_t subject)
{
    const struct mla_subject *s = &r->subjects[subject];
    size_t failures = failures_of(r, subject);
    char *name = mla_subject_name(s);
    fprintf(f, "<testsuite name=\"%s/", mla_subject_op(s));
    mla_text_html(f, name);
    fprintf(f, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%d\" time=\"%.3f\">\n",
            failures + 1, failures, s->compared == 0, s->kernel_seconds);
    for (size_t i = 0; i < r->changes_n; i++) {
        if (r->changes[i].subject == subject && r->changes[i].kind == MLA_FAILS) {
            write_failure(r, f, &r->changes[i]);
        }
    }
    fprintf(f, "<testcase classname=\"%s.", mla_subject_op(s));
    mla_text_html(f, s->kernel);
    int64_t unnamed = s->fails - (int64_t)failures;
    fprintf(f, "\" name=\"%" PRId64 " other compared cases%s\">%s</testcase>\n</testsuite>\n",
            s->compared - (int64_t)failures, unnamed > 0 ? ", some of them regressed" : "",
            s->compared == 0 ? "<skipped message=\"no case was judged by two runs\"/>" : "");
    free(name);
}

void mla_report_junit(struct mla_report *r, FILE *f)
{
    size_t suites = 0, failures = 0;
    for (size_t i = 0; i < r->subjects_n; i++) {
        suites += mla_page_shows(&r->subjects[i]);
        failures += failures_of(r, i);
    }
    fprintf(
        f,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mlacheck\" tests=\"%zu\" "
        "failures=\"%zu\">\n",
        suites + failures, failures);
    for (size_t i = 0; i < r->subjects_n; i++) {
        if (mla_page_shows(&r->subjects[i])) {
            write_suite(r, f, i);
        }
    }
    fputs("</testsuites>\n", f);
}
