/* SPDX-License-Identifier: Apache-2.0
 *
 * report_answer.c - the page's first screen: did anything regress, which kernel, how much, since when.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "results/report_page.h"
#include "results/report_text.h"

#define REGRESSED_SHOWN 10
#define CHANGES_OPEN    12 /* the others are folded away */

/* Which kernel, how much, since when: one line each. */
static void write_regressed(struct mla_page *page)
{
    FILE *f = page->file;
    size_t n = 0;
    for (size_t i = 0; i < page->report->subjects_n; i++) {
        const struct mla_subject *s = &page->report->subjects[i];
        if (s->fails + s->grew == 0 || n == REGRESSED_SHOWN) {
            continue;
        }
        fputs(n++ == 0 ? "<ul>\n<li><b>" : "<li><b>", f);
        mla_page_named(page, s);
        fputs("</b>: ", f);
        if (s->fails > 0) {
            fprintf(f, "%" PRId64 " now fail%s%s", s->fails, s->fails == 1 ? "s" : "",
                    s->grew > 0 ? ", " : "");
        }
        if (s->grew > 0) {
            fprintf(f, "the error of %" PRId64 " grew, by up to %.2g of the bound", s->grew,
                    s->growth);
        }
        if (s->worst_now >= 0 && s->worst_before >= 0) {
            fputs("; worst err/B of the cases compared ", f);
            mla_page_figure(page, s->worst_before);
            fputs(" → ", f);
            mla_page_figure(page, s->worst_now);
        }
        fputs("; since ", f);
        mla_page_run(page, s, s->since, ", ");
        fputs("</li>\n", f);
    }
    fputs(n > 0 ? "</ul>\n" : "", f);
}

/* "0.25 → 0.5", "0.5" without an earlier one; negative: none. */
static void write_step(struct mla_page *page, double before, double now)
{
    if (before >= 0) {
        mla_page_figure(page, before);
        fputs(" → ", page->file);
    }
    mla_page_known(page, now >= 0, now);
}

static void write_subject_row(struct mla_page *page, const struct mla_subject *s)
{
    FILE *f = page->file;
    int64_t bad = mla_subject_failing(s);
    fputs("<tr><td class=\"name\">", f);
    mla_page_named(page, s);
    fprintf(f, "</td><td class=\"n%s\">%" PRId64, bad > 0 ? " bad" : "", bad);
    if (s->flaky > 0) {
        fprintf(f, "<br>%" PRId64 " flaky", s->flaky);
    }
    fprintf(f, "</td><td class=\"n%s\">%" PRId64 "</td>", s->fails > 0 ? " bad" : "", s->fails);
    fprintf(f, "<td class=\"n%s\">%" PRId64 "</td>", s->grew > 0 ? " bad" : "", s->grew);
    fputs("<td>", f);
    write_step(page, s->worst_before, s->worst_now);
    fputs("</td><td class=\"run\">", f);
    if (s->fails + s->grew > 0) {
        mla_page_run(page, s, s->since, "<br>");
    } else {
        fputs("-", f);
    }
    fputs("</td>", f);
    const int64_t counts[] = {mla_subject_judged(s), s->tallied, s->compared, s->lost,
                              s->cases[MLA_GRADE_UNSUPPORTED] + s->cases[MLA_GRADE_UNJUDGED]};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fprintf(f, "<td class=\"n\">%" PRId64 "</td>", counts[i]);
    }
    fputs("<td class=\"run\">", f);
    mla_page_run(page, s, s->rank, "<br>");
    fputs("</td></tr>\n", f);
}

/* "pass → fail-certain", flaky or not. */
static void write_kind(struct mla_page *page, const struct mla_change *c, const char *word)
{
    FILE *f = page->file;
    if (c->kind == MLA_GREW) {
        fputs("error grew", f);
        return;
    }
    fputs(c->kind == MLA_FAILS ? "<span class=\"bad\">pass → " : "<span class=\"bad\">", f);
    mla_text_html(f, word);
    fputs("</span>", f);
    if (mla_change_is_flaky(c)) {
        fprintf(f, "<br>flaky: %" PRId64 " of %" PRId64 " run%s", c->failed_n, c->runs_n,
                mla_s(c->runs_n));
    } else if (c->kind == MLA_BROKEN) {
        fputs("<br>never passed", f);
    }
}

static void write_change(struct mla_page *page, const struct mla_change *c)
{
    FILE *f = page->file;
    const struct mla_subject *s = &page->report->subjects[c->subject];
    char *word = NULL, *reason = NULL;
    mla_report_reason(page->report, c->verdict, &word, &reason);
    fputs("<tr><td>", f);
    mla_page_case(page, c->testcase, s);
    fputs("</td><td class=\"name\">", f);
    mla_page_named(page, s);
    fputs("</td><td class=\"what\">", f);
    write_kind(page, c, word);
    fputs("</td><td>", f);
    write_step(page, c->before, c->ratio);
    fputs("</td><td class=\"run\">", f);
    mla_page_run(page, s, c->since, "<br>");
    fputs("</td><td class=\"run\">", f);
    if (c->kind == MLA_BROKEN) {
        fputs("-", f);
    } else {
        mla_page_run(page, s, c->good, "<br>");
    }
    fputs("</td><td class=\"wrap\">", f);
    mla_text_html(f, reason);
    fputs("</td></tr>\n", f);
    free(word);
    free(reason);
}

static void write_change_table(struct mla_page *page, size_t from, size_t to)
{
    fputs("<div class=\"scroll\"><table><thead><tr><th>case</th><th>kernel</th><th>what</th>"
          "<th>err/B</th><th>since</th><th>last better</th><th>reason</th></tr></thead><tbody>\n",
          page->file);
    for (size_t i = from; i < to && i < page->report->changes_n; i++) {
        write_change(page, &page->report->changes[i]);
    }
    fputs("</tbody></table></div>\n", page->file);
}

static void write_changes(struct mla_page *page)
{
    struct mla_report *report = page->report;
    if (report->changes_n == 0) {
        return;
    }
    fprintf(page->file,
            "<h3>Cases that fail or got worse, gravest first</h3>\n<p class=\"soft\">%zu of "
            "%" PRId64 " named.</p>\n",
            report->changes_n, report->changes_all);
    write_change_table(page, 0, CHANGES_OPEN);
    if (report->changes_n > CHANGES_OPEN) {
        fprintf(page->file, "<details><summary>%zu more</summary>\n",
                report->changes_n - CHANGES_OPEN);
        write_change_table(page, CHANGES_OPEN, report->changes_n);
        fputs("</details>\n", page->file);
    }
}

static void write_worst(struct mla_page *page)
{
    const struct mla_subject *s = mla_report_worst(page->report);
    if (s == NULL) {
        return;
    }
    fputs("<h3>The worst case</h3>\n<p>", page->file);
    mla_page_case(page, s->gravest.testcase, s);
    fputs(" with ", page->file);
    mla_page_named(page, s);
    if (s->gravest_known) {
        fputs(", err/B ", page->file);
        mla_page_figure(page, s->gravest.y);
    }
    if (s->gravest_fails) {
        char *word, *reason;
        mla_report_reason(page->report, s->gravest_verdict, &word, &reason);
        mla_page_text(page, ": it fails, <b class=\"bad\">", word, "</b> (");
        mla_page_text(page, "", reason, "). Run it:</p>\n");
    } else {
        fputs(": it passes. Run it:</p>\n", page->file);
    }
    mla_page_repro(page, s, s->gravest.testcase);
}

void mla_page_answer(struct mla_page *page)
{
    fputs("<section id=\"answer\">\n", page->file);
    mla_page_headline(page);
    write_regressed(page);
    write_worst(page);
    fputs(
        "<h3>By operation and kernel</h3>\n<div class=\"scroll\"><table><thead><tr><th>kernel</th>"
        "<th class=\"n\">failing</th><th class=\"n\">regressed</th>"
        "<th class=\"n\">error<br>grew</th><th>worst err/B<br>of those compared</th>"
        "<th>worse since</th><th class=\"n\">judged</th>"
        "<th class=\"n\">only<br>counted</th><th class=\"n\">compared</th>"
        "<th class=\"n\">lost</th><th class=\"n\">not<br>judged</th><th>last run</th>"
        "</tr></thead><tbody>\n",
        page->file);
    for (size_t i = 0; i < page->report->subjects_n; i++) {
        if (mla_page_shows(&page->report->subjects[i]) && !page->report->subjects[i].planted) {
            write_subject_row(page, &page->report->subjects[i]);
        }
    }
    fputs("</tbody></table></div>\n", page->file);
    write_changes(page);
    fputs("</section>\n", page->file);
}
