/* SPDX-License-Identifier: Apache-2.0
 *
 * report_html.c - the page: its frame, and the words that all its sections use.
 *
 * No script, nothing fetched: the policy in the head forbids both, whatever a name in the database
 * may hold.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_page.h"
#include "results/report_text.h"
#include "results/store_internal.h"

void mla_page_figure(struct mla_page *page, double value)
{
    if (isnan(value)) {
        fputs("nan", page->file);
    } else if (isinf(value)) {
        fputs(value > 0 ? "inf" : "-inf", page->file);
    } else if (fabs(value) >= 1e5 || (value != 0 && fabs(value) < 1e-3)) {
        fprintf(page->file, "%.2e", value);
    } else {
        fprintf(page->file, "%.3g", value);
    }
}

void mla_page_text(struct mla_page *page, const char *begin, char *text, const char *end)
{
    fputs(begin, page->file);
    mla_text_html(page->file, text);
    fputs(end, page->file);
    free(text);
}

void mla_page_subject(struct mla_page *page, const struct mla_subject *subject)
{
    char *name = mla_subject_name(subject);
    mla_text_html(page->file, name);
    free(name);
}

void mla_page_named(struct mla_page *page, const struct mla_subject *subject)
{
    fprintf(page->file, "%s/", mla_subject_op(subject));
    mla_page_subject(page, subject);
}

void mla_page_run(struct mla_page *page, const struct mla_subject *subject, size_t rank,
                  const char *separator)
{
    const struct mla_run_row *run = &page->report->runs[rank];
    char *build = mla_report_build(page->report, rank, subject), day[11] = "";
    (void)snprintf(day, sizeof day, "%s", run->started);
    fprintf(page->file, "run %lld, ", (long long)run->id);
    mla_text_html(page->file, build);
    fputs(separator, page->file);
    mla_text_html(page->file, day);
    free(build);
}

bool mla_page_refer(struct mla_page *page, int64_t testcase, const struct mla_subject *subject)
{
    size_t index = (size_t)(subject - page->report->subjects);
    if (mla_report_case(page->report, testcase) == NULL) {
        return false;
    }
    for (size_t i = 0; i < page->refs_n; i++) {
        if (page->refs[i].testcase == testcase && page->refs[i].subject == index) {
            return true;
        }
    }
    struct mla_page_ref *refs = realloc(page->refs, (page->refs_n + 1) * sizeof refs[0]);
    if (refs == NULL) {
        return false;
    }
    page->refs = refs;
    refs[page->refs_n++] = (struct mla_page_ref){testcase, index};
    return true;
}

void mla_page_case(struct mla_page *page, int64_t testcase, const struct mla_subject *subject)
{
    if (mla_page_refer(page, testcase, subject)) {
        const char *id = mla_report_case(page->report, testcase)->id;
        fprintf(page->file, "<a href=\"#c-%s\"><code>%s</code></a>", id, id);
    }
}

void mla_page_repro(struct mla_page *page, const struct mla_subject *subject, int64_t testcase)
{
    const struct mla_case_row *row = mla_report_case(page->report, testcase);
    char *repro = mla_report_repro(page->report, subject, row);
    if (repro != NULL) {
        fputs("<pre>", page->file);
        mla_text_html(page->file, repro);
        fputs("</pre>\n", page->file);
    }
    free(repro);
}

/* Every case that was pointed to, once, with the kernels that were meant. */
static void write_cases(struct mla_page *page)
{
    struct mla_report *report = page->report;
    fputs(
        "<section id=\"cases\"><h2>Cases</h2>\n<p>Every case that this page points to. Its name is "
        "the beginning of the SHA-256 of its line; the line holds everything, so the command runs "
        "it anywhere.</p>\n",
        page->file);
    for (size_t i = 0; i < page->refs_n; i++) {
        int64_t testcase = page->refs[i].testcase;
        bool met = false;
        for (size_t k = 0; k < i && !met; k++) {
            met = page->refs[k].testcase == testcase;
        }
        const struct mla_case_row *row = met ? NULL : mla_report_case(report, testcase);
        if (row == NULL) {
            continue;
        }
        fprintf(page->file, "<article id=\"c-%s\"><h3>%s</h3><small>", row->id, row->id);
        mla_text_html(page->file, row->op);
        for (size_t k = i; k < page->refs_n; k++) {
            if (page->refs[k].testcase == testcase) {
                fputs(k == i ? ": " : ", ", page->file);
                mla_page_subject(page, &report->subjects[page->refs[k].subject]);
            }
        }
        fputs("</small>\n", page->file);
        mla_page_repro(page, &report->subjects[page->refs[i].subject], testcase);
        fputs("</article>\n", page->file);
    }
    fputs("</section>\n", page->file);
}

static void begin_page(struct mla_page *page)
{
    fprintf(page->file,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
            "'unsafe-inline'; img-src data:\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<link rel=\"icon\" href=\"data:,\">\n"
            "<title>mlacheck report</title>\n<style>\n%s</style>\n</head>\n<body>\n"
            "<h1>mlacheck report</h1>\n"
            "<nav><a href=\"#answer\">Answer</a><a href=\"#accuracy\">Accuracy</a>"
            "<a href=\"#plots\">Plots</a><a href=\"#faults\">Kill matrix</a>"
            "<a href=\"#speed\">Time</a><a href=\"#findings\">Findings</a>"
            "<a href=\"#notes\">Notes</a><a href=\"#cases\">Cases</a></nav>\n<main>\n",
            (const char *)mla_report_css);
}

static void write_notes(struct mla_page *page)
{
    fprintf(
        page->file,
        "<section id=\"notes\"><h2>How to read this</h2>\n<ul>\n"
        "<li><b>err/B</b> is the error of an output element over the half width of its certified "
        "interval, the worst of all elements judged: 1 or less is right, more is wrong. It has no "
        "unit. <b>ulp</b> is the spacing of bf16 at the true value.</li>\n"
        "<li><b>Counts</b> are of cases by their present state, whatever commit judged them last: "
        "what "
        "an earlier one passed and no later one met still passes, what failed still fails.</li>\n"
        "<li><b>Figures</b> are of the commit that the kernel was last judged at (of a plug-in: of "
        "the file, named by the beginning of its SHA-256), of every case the last verdict. What "
        "has "
        "no figure, a crash, a timeout, a wrong status, is named by its word and in no figure. "
        "Kernels "
        "that are wrong on purpose are in none but their own. -dirty: the work tree had changes, "
        "nobody can build that again. Builds with a sanitizer compute on other paths and stand "
        "apart, as in scalar [address].</li>\n"
        "<li><b>Flaky, m of n</b>: of the n runs that judged the case at that same clean commit "
        "and file m failed. It counts as failing until something else passes it.</li>\n"
        "<li><b>Regressed</b>: the last run that judged the case is held against every earlier run "
        "of "
        "the same kernel, and it fails and did pass. <b>Grew</b>, which is no regression: it "
        "passes, "
        "but its err/B is more than %g above that of an earlier run. <i>Since</i> is the first run "
        "after the last that did better. Cases that no earlier run passed cannot regress; if they "
        "fail they are among the failing. <i>Lost</i>: passed once, not judged now.</li>\n"
        "<li><b>Not stored</b>, so not shown: the errors of single elements (the histograms count "
        "cases, by their worst and by their 99th percentile), and statistics of cases that a hunt "
        "(fuzz) only counted: it stores faults and new worst errors.</li>\n"
        "<li>A plot shows the %d kernels with most cases; a point is the worst case of its bin "
        "(half an "
        "octave) and links to it.</li>\n</ul></section>\n",
        MLA_REPORT_GROWTH, MLA_PLOT_SERIES);
}

int32_t mla_report_html(struct mla_report *report, FILE *file)
{
    struct mla_page page = {.report = report, .file = file};
    size_t plots_n = 0;
    struct mla_plot *plots = mla_page_choose_plots(report, &plots_n);
    if (plots == NULL) {
        return mla_store_fail(report->store, MLA_STORE_ERR_NOMEM, "no memory for the plots");
    }
    int32_t status = mla_plots_draw(report->store, plots, plots_n);
    if (status == MLA_STORE_OK) {
        begin_page(&page);
        mla_page_answer(&page);
        mla_page_accuracy(&page);
        mla_page_plots(&page, plots, plots_n);
        mla_page_faults(&page);
        mla_page_planted(&page);
        mla_page_speed(&page);
        mla_page_findings(&page);
        write_notes(&page);
        write_cases(&page);
        fputs("</main>\n</body>\n</html>\n", file);
    }
    free(page.refs);
    mla_plots_free(plots, plots_n);
    return status;
}
