/* SPDX-License-Identifier: Apache-2.0
 *
 * report_planted.c - kernels that are wrong on purpose, and the honest ones among them, where a run judged
 * them like others: a table of their own, because they count in no other figure.
 */
#include <inttypes.h>

#include "results/report_page.h"

static void write_row(struct mla_page *page, const struct mla_subject *s)
{
    int64_t failed = mla_subject_failing(s), judged = mla_subject_judged(s), all = s->tallied;
    for (int g = 0; g < MLA_GRADES_N; g++) {
        all += s->cases[g];
    }
    fputs("<tr><td class=\"name\">", page->file);
    mla_page_named(page, s);
    fprintf(page->file,
            "</td><td class=\"n\">%" PRId64 "</td><td class=\"n\">%" PRId64
            "</td><td class=\"n\">%" PRId64 "</td><td class=\"run\">",
            failed, judged - failed, all - judged);
    mla_page_run(page, s, s->rank, "<br>");
    fputs("</td></tr>\n", page->file);
}

void mla_page_planted(struct mla_page *page)
{
    size_t n = 0;
    for (size_t i = 0; i < page->report->subjects_n; i++) {
        const struct mla_subject *s = &page->report->subjects[i];
        if (!s->planted || !mla_page_shows(s)) {
            continue;
        }
        if (n++ == 0) {
            fputs("<section id=\"planted\"><h2>Planted faults judged by run and selfcheck</h2>\n"
                  "<p>Kernels of the harness, wrong on purpose or at the limit of their models, "
                  "that test the judge. They count in no other table, plot or answer.</p>\n"
                  "<div class=\"scroll\"><table><thead><tr><th>kernel</th>"
                  "<th class=\"n\">failed</th><th class=\"n\">passed</th>"
                  "<th class=\"n\">not judged</th><th>last run</th></tr></thead><tbody>\n",
                  page->file);
        }
        write_row(page, s);
    }
    fputs(n > 0 ? "</tbody></table></div></section>\n" : "", page->file);
}
