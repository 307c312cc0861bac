/* SPDX-License-Identifier: Apache-2.0
 *
 * report_page.h - what the files that write the HTML page share.
 */
#ifndef MLA_RESULTS_REPORT_PAGE_H
#define MLA_RESULTS_REPORT_PAGE_H

#include "results/report_plot.h"

/* A case that something on the page points to, with the kernel it was the worst of. */
struct mla_page_ref {
    int64_t testcase;
    size_t subject;
};

struct mla_page {
    struct mla_report *report;
    FILE *file;
    struct mla_page_ref *refs;
    size_t refs_n;
};

/* Bytes of report.css, NUL at the end. */
extern const unsigned char mla_report_css[];

/* A figure with a few digits. */
void mla_page_figure(struct mla_page *page, double value);
/* The same, "-" where it is not known. */
static inline void mla_page_known(struct mla_page *page, bool known, double value)
{
    if (known) {
        mla_page_figure(page, value);
    } else {
        fputc('-', page->file);
    }
}
/* The kernel's name, escaped. */
void mla_page_subject(struct mla_page *page, const struct mla_subject *subject);
/* The same as "ring/scalar". */
void mla_page_named(struct mla_page *page, const struct mla_subject *subject);
/* "run 12, 1a2b3c4d5e6f" (mla_report_build) and, after the separator, the day. */
void mla_page_run(struct mla_page *page, const struct mla_subject *subject, size_t rank,
                  const char *separator);
/* Plain text, escaped, between two pieces of HTML. Frees the text. */
void mla_page_text(struct mla_page *page, const char *begin, char *text, const char *end);
/* A link to the case in the list at the end, with its short id. */
void mla_page_case(struct mla_page *page, int64_t testcase, const struct mla_subject *subject);
/* The same reference for a link that the caller writes; false when the case cannot be read. */
bool mla_page_refer(struct mla_page *page, int64_t testcase, const struct mla_subject *subject);
/* A line that can be copied. */
void mla_page_repro(struct mla_page *page, const struct mla_subject *subject, int64_t testcase);
/* Has it anything to show? */
static inline bool mla_page_shows(const struct mla_subject *s)
{
    int64_t n = s->tallied;
    for (int i = 0; i < MLA_GRADES_N; i++) {
        n += s->cases[i];
    }
    return n > 0;
}

/* Sections, in the order of the page. */
void mla_page_headline(struct mla_page *page); /* of the answer */
void mla_page_answer(struct mla_page *page);
void mla_page_accuracy(struct mla_page *page);
void mla_page_plots(struct mla_page *page, const struct mla_plot *plots, size_t plots_n);
void mla_page_faults(struct mla_page *page);
void mla_page_planted(struct mla_page *page);
void mla_page_speed(struct mla_page *page);
void mla_page_findings(struct mla_page *page);

/* The plots of a report, not yet drawn; NULL without memory. */
struct mla_plot *mla_page_choose_plots(struct mla_report *report, size_t *plots_n);

#endif
