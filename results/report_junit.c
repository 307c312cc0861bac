/* SPDX-License-Identifier: Apache-2.0
 *
 * report_junit.c - the report as JUnit XML: a suite for each kernel and operation; a test case for each
 * failing case that is named, one for all others that were judged together (a million would help nobody),
 * and one, skipped, for those that were not judged. Where none was judged that one is an error: what never
 * passed is never green.
 *
 * A crash or a timeout is an error, a wrong result a failure. Planted faults have no suite.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "results/report_page.h"
#include "results/report_text.h"

/* Test cases of a suite, or of all. */
struct totals {
    size_t tests, failures, errors, skipped;
};

/* What the test cases of a subject are. */
struct suite {
    struct totals totals;
    int64_t others, others_bad; /* judged, and not named */
    int64_t not_judged;
    bool idle; /* none was judged: an error, not skipped */
};

static bool is_named(size_t subject, const struct mla_change *c)
{
    return c->subject == subject && (c->kind == MLA_FAILS || c->kind == MLA_BROKEN);
}

static bool is_error(struct mla_report *r, const struct mla_change *c)
{
    char *word, *reason;
    mla_report_reason(r, c->verdict, &word, &reason);
    enum mla_grade grade = mla_grade_of(word);
    free(word);
    free(reason);
    return grade == MLA_GRADE_CRASH || grade == MLA_GRADE_TIMEOUT;
}

static struct suite suite_of(struct mla_report *r, size_t subject)
{
    const struct mla_subject *s = &r->subjects[subject];
    struct suite suite = {.others = mla_subject_judged(s),
                          .others_bad = mla_subject_failing(s),
                          .idle = mla_subject_is_idle(s),
                          .not_judged = s->cases[MLA_GRADE_UNSUPPORTED] +
                                        s->cases[MLA_GRADE_UNJUDGED] + s->cases[MLA_GRADE_NONE]};
    struct totals *t = &suite.totals;
    for (size_t i = 0; i < r->changes_n; i++) {
        if (is_named(subject, &r->changes[i])) {
            bool error = is_error(r, &r->changes[i]);
            t->failures += !error;
            t->errors += error;
            suite.others--;
            suite.others_bad--;
        }
    }
    t->tests = t->failures + t->errors + (suite.others > 0) + (suite.idle || suite.not_judged > 0);
    t->errors += suite.idle;
    t->failures += suite.others_bad > 0;
    t->skipped = !suite.idle && suite.not_judged > 0;
    return suite;
}

static void write_class(FILE *f, const struct mla_subject *s)
{
    char *name = mla_subject_name(s);
    fprintf(f, "<testcase classname=\"%s.", mla_subject_op(s));
    mla_text_html(f, name);
    fputs("\" name=\"", f);
    free(name);
}

static void write_named(struct mla_report *r, FILE *f, const struct mla_change *c)
{
    const struct mla_subject *s = &r->subjects[c->subject];
    const struct mla_case_row *row = mla_report_case(r, c->testcase);
    char *repro = mla_report_repro(r, s, row), *build = mla_report_build(r, c->since, s);
    char *word, *reason;
    mla_report_reason(r, c->verdict, &word, &reason);
    const char *element = is_error(r, c) ? "error" : "failure";
    write_class(f, s);
    fprintf(f, "%s\"><%s type=\"%s\" message=\"%s, since run %" PRId64 ", commit ",
            row != NULL ? row->id : "", element,
            c->kind == MLA_FAILS ? "passed-now-fails" : "never-passed", mla_change_text(c->kind),
            r->runs[c->since].id);
    mla_text_html(f, build);
    if (c->ratio >= 0) {
        fprintf(f, ", err/B %.3g", c->ratio);
    }
    if (mla_change_is_flaky(c)) {
        fprintf(f, ", flaky: in %" PRId64 " of %" PRId64 " run%s", c->failed_n, c->runs_n,
                mla_s(c->runs_n));
    }
    fputs("\">", f);
    mla_text_html(f, word);
    fputs(": ", f);
    mla_text_html(f, reason);
    fputc('\n', f);
    mla_text_html(f, repro);
    fprintf(f, "</%s></testcase>\n", element);
    free(repro);
    free(build);
    free(word);
    free(reason);
}

/* The cases that are not named. */
static void write_rest(struct mla_report *r, FILE *f, const struct mla_subject *s,
                       const struct suite *suite)
{
    if (suite->others > 0) {
        write_class(f, s);
        fprintf(f, "%" PRId64 " other judged case%s\">", suite->others, mla_s(suite->others));
        if (suite->others_bad > 0) {
            fprintf(f,
                    "<failure type=\"not-named\" message=\"%" PRId64
                    " of them fail%s, too many to name\"/>",
                    suite->others_bad, suite->others_bad == 1 ? "s" : "");
        }
        fputs("</testcase>\n", f);
    }
    if (suite->idle) {
        char *text = mla_report_idle(r, s);
        write_class(f, s);
        fputs("no case judged\"><error type=\"nothing-judged\" message=\"", f);
        mla_text_html(f, text);
        fputs("\"/></testcase>\n", f);
        free(text);
    } else if (suite->not_judged > 0) {
        write_class(f, s);
        fprintf(f,
                "%" PRId64 " case%s not judged\"><skipped message=\"%" PRId64
                " unsupported, %" PRId64 " unjudged; %" PRId64
                " of them passed once\"/></testcase>\n",
                suite->not_judged, mla_s(suite->not_judged), s->cases[MLA_GRADE_UNSUPPORTED],
                suite->not_judged - s->cases[MLA_GRADE_UNSUPPORTED], s->lost);
    }
}

static void write_suite(struct mla_report *r, FILE *f, size_t subject)
{
    const struct mla_subject *s = &r->subjects[subject];
    struct suite suite = suite_of(r, subject);
    char *name = mla_subject_name(s);
    fprintf(f, "<testsuite name=\"%s/", mla_subject_op(s));
    mla_text_html(f, name);
    fprintf(f, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
            suite.totals.tests, suite.totals.failures, suite.totals.errors, suite.totals.skipped,
            s->kernel_seconds);
    for (size_t i = 0; i < r->changes_n; i++) {
        if (is_named(subject, &r->changes[i])) {
            write_named(r, f, &r->changes[i]);
        }
    }
    write_rest(r, f, s, &suite);
    fputs("</testsuite>\n", f);
    free(name);
}

void mla_report_junit(struct mla_report *r, FILE *f)
{
    struct totals all = {0};
    for (size_t i = 0; i < r->subjects_n; i++) {
        if (mla_page_shows(&r->subjects[i]) && !r->subjects[i].planted) {
            struct totals t = suite_of(r, i).totals;
            all.tests += t.tests;
            all.failures += t.failures;
            all.errors += t.errors;
            all.skipped += t.skipped;
        }
    }
    fprintf(f,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mlacheck\" "
            "tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n",
            all.tests, all.failures, all.errors, all.skipped);
    for (size_t i = 0; i < r->subjects_n; i++) {
        if (mla_page_shows(&r->subjects[i]) && !r->subjects[i].planted) {
            write_suite(r, f, i);
        }
    }
    fputs("</testsuites>\n", f);
}
