/* SPDX-License-Identifier: Apache-2.0
 *
 * report_headline.c - the page's first sentences: did anything regress, what was run last, how much fails
 * now, and what was not judged.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "results/report_page.h"
#include "results/report_text.h"

#define IDLE_SHOWN 10

/* What keeps news from being good, after "No regression"; false: nothing does. */
static bool write_but(FILE *f, const struct mla_report_answer *a, const char *which)
{
    if (a->failing > 0) {
        fprintf(f, ", but %" PRId64 " failing%s", a->failing, which);
    }
    if (a->idle > 0) {
        fprintf(f, ", %s%" PRId64 " kernel%s and operation%s %s not judged at all",
                a->failing > 0 ? "and " : "but ", a->idle, mla_s(a->idle), mla_s(a->idle),
                a->idle == 1 ? "was" : "were");
    }
    return a->failing + a->idle > 0;
}

static void write_no_regression(FILE *f, const struct mla_report_answer *a)
{
    bool bad = a->failing + a->idle > 0;
    fprintf(f, "<p class=\"answer%s\">", bad ? " bad" : a->judged > 0 ? " good" : "");
    if (a->compared > 0) {
        fputs("No regression", f);
        (void)write_but(f, a, " that no earlier run passed");
        fprintf(f, ": %" PRId64 " of %" PRId64 " result%s %s compared with earlier runs.</p>\n",
                a->compared, a->cases, mla_s(a->cases), a->compared == 1 ? "was" : "were");
        return;
    }
    fputs("Nothing to compare yet (no case was judged by two runs)", f);
    if (!write_but(f, a, "") && a->judged > 0) {
        fputs(", and nothing fails", f);
    }
    fputs(".</p>\n", f);
}

static void write_headline(struct mla_page *page)
{
    const struct mla_report_answer *a = &page->report->answer;
    FILE *f = page->file;
    int64_t kernels = 0;
    for (size_t i = 0; i < page->report->subjects_n; i++) {
        kernels += page->report->subjects[i].fails > 0;
    }
    if (a->fails > 0) {
        fprintf(f,
                "<p class=\"answer bad\">Regressed: %" PRId64 " of %" PRId64
                " result%s passed before and fail%s now, %" PRId64 " kernel%s and "
                "operation%s concerned.</p>\n",
                a->fails, a->compared, mla_s(a->compared), a->fails == 1 ? "s" : "", kernels,
                mla_s(kernels), mla_s(kernels));
    } else {
        write_no_regression(f, a);
    }
    mla_page_text(page, "<p>", mla_report_last(page->report), "</p>\n");
    mla_page_text(page, a->failing > 0 ? "<p><b class=\"bad\">" : "<p><b>",
                  mla_report_counts(page->report), "</b>. ");
    int64_t runs = (int64_t)page->report->runs_n;
    fprintf(
        f,
        "A result is one kernel on one case, as the last run that judged it left it; the database "
        "holds %" PRId64 " verdict%s and counted case%s of %" PRId64 " run%s.</p>\n",
        a->verdicts, mla_s(a->verdicts), mla_s(a->verdicts), runs, mla_s(runs));
}

/* Kernels that ran for nothing: they are in no figure, and not green. */
static void write_idle(struct mla_page *page)
{
    FILE *f = page->file;
    size_t n = 0;
    for (size_t i = 0; i < page->report->subjects_n; i++) {
        const struct mla_subject *s = &page->report->subjects[i];
        if (!mla_subject_is_idle(s) || s->planted || n == IDLE_SHOWN) {
            continue;
        }
        fputs(n++ == 0 ? "<ul>\n<li><b class=\"bad\">" : "<li><b class=\"bad\">", f);
        mla_page_named(page, s);
        fputs("</b> in ", f);
        mla_page_run(page, s, s->rank, ", ");
        mla_page_text(page, ": ", mla_report_idle(page->report, s), "</li>\n");
    }
    fputs(n > 0 ? "</ul>\n" : "", f);
}

static void write_cut_off(struct mla_page *page)
{
    const struct mla_run_row *run = mla_report_cut_off(page->report);
    if (run != NULL) {
        fprintf(
            page->file,
            "<p><b class=\"bad\">The latest run, %" PRId64
            ", did not end</b>: it was interrupted or "
            "killed, or is at work still. Cases that it did not reach stand here as earlier runs "
            "judged them.</p>\n",
            run->id);
    }
}

void mla_page_headline(struct mla_page *page)
{
    write_headline(page);
    write_cut_off(page);
    write_idle(page);
}
