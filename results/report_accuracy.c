/* SPDX-License-Identifier: Apache-2.0
 *
 * report_accuracy.c - the page's table of accuracy, a row a kernel and operation.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "results/report_page.h"
#include "results/report_text.h"

static void write_known_cell(struct mla_page *page, bool known, double value)
{
    fputs("<td class=\"n\">", page->file);
    mla_page_known(page, known, value);
    fputs("</td>", page->file);
}

static void write_worst_cell(struct mla_page *page, const struct mla_subject *s,
                             const struct mla_point *point)
{
    fputs("<td class=\"n\">", page->file);
    if (point->n > 0) {
        mla_page_figure(page, point->y);
        fputs("<br>", page->file);
        mla_page_case(page, point->testcase, s);
    } else {
        fputs("-", page->file);
    }
    fputs("</td>", page->file);
}

static void write_accuracy_row(struct mla_page *page, const struct mla_subject *s)
{
    FILE *f = page->file;
    fputs("<tr><td class=\"name\">", f);
    mla_page_named(page, s);
    fprintf(f, "</td><td class=\"n\">%" PRId64 "</td>", s->measured);
    write_worst_cell(page, s, &s->max_ulp);
    write_worst_cell(page, s, &s->p99_ulp);
    write_worst_cell(page, s, &s->worst);
    write_known_cell(page, s->rounded_n > 0, s->rounded_sum / (double)s->rounded_n);
    write_known_cell(page, s->rounded_n > 0, s->rounded_least);
    write_known_cell(page, s->bias_up_n > 0, s->bias_up);
    write_known_cell(page, s->bias_outward_n > 0, s->bias_outward);
    if (s->gravest.n > 0) {
        const struct mla_case_row *row = mla_report_case(page->report, s->gravest.testcase);
        char *repro = mla_report_repro(page->report, s, row);
        char *word, *reason;
        mla_report_reason(page->report, s->gravest_verdict, &word, &reason);
        fputs("</tr>\n<tr><td class=\"wide\" colspan=\"9\">", f);
        if (s->gravest_fails) {
            fputs("<span class=\"bad\">fails, ", f);
            mla_text_html(f, word);
            fputs(":</span> <code>", f);
        } else {
            fputs("nearest to failing: <code>", f);
        }
        free(word);
        free(reason);
        mla_text_html(f, repro);
        fputs("</code></td>", f);
        free(repro);
    }
    fputs("</tr>\n", f);
}

void mla_page_accuracy(struct mla_page *page)
{
    fputs("<section id=\"accuracy\"><h2>Accuracy</h2>\n"
          "<p>Of the cases with statistics, the worst of all. Percent correctly rounded: elements "
          "that are the bf16 nearest to the true value, mean over cases and least. Bias: the mean "
          "error "
          "in its standard errors, the value farthest from 0; up counts errors toward +inf as "
          "positive, outward those away from zero. Below each: the command that runs its "
          "worst case, one that fails if any does. -: not measured.</p>\n"
          "<div class=\"scroll\"><table><thead><tr><th>kernel</th>"
          "<th class=\"n\">cases</th><th class=\"n\">max ulp</th><th class=\"n\">p99 ulp</th>"
          "<th class=\"n\">max err/B</th><th class=\"n\">rounded %<br>mean</th>"
          "<th class=\"n\">rounded %<br>least</th><th class=\"n\">bias up</th>"
          "<th class=\"n\">bias outward</th></tr></thead><tbody>\n",
          page->file);
    for (size_t i = 0; i < page->report->subjects_n; i++) {
        const struct mla_subject *s = &page->report->subjects[i];
        if (!s->planted && (s->gravest.n > 0 || s->measured > 0)) {
            write_accuracy_row(page, s);
        }
    }
    fputs("</tbody></table></div></section>\n", page->file);
}
