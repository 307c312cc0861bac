/* SPDX-License-Identifier: Apache-2.0
 *
 * report_figure.c - a plot on the page: gnuplot's drawing, the points as links over it, legend and the
 * number of cases behind.
 */
#include <inttypes.h>
#include <math.h>

#include "results/report_page.h"
#include "results/report_text.h"

/* "scalar: err/B 0.43 at 256, the worst of 37 cases (1a2b3c4d5e6f)" */
static void write_tip(struct mla_page *page, const struct mla_series *series,
                      const struct mla_mark *mark, bool cell, const char *id)
{
    FILE *f = page->file;
    fputs("<title>", f);
    if (series->subject != NULL) {
        mla_page_subject(page, series->subject);
        fputs(": ", f);
    }
    mla_page_figure(page, cell ? mark->z : mark->y);
    fputs(" at ", f);
    mla_page_figure(page, mark->x);
    if (cell) {
        fputs(" and ", f);
        mla_page_figure(page, mark->y);
    }
    fprintf(f, ", %" PRId64 " case%s", mark->n, mark->n == 1 ? "" : "s");
    if (id != NULL) {
        fprintf(f, ", worst %s", id);
    }
    fputs("</title>", f);
}

static void write_dot(struct mla_page *page, const struct mla_plot *plot, size_t series,
                      const struct mla_mark *mark, const char *id)
{
    FILE *f = page->file;
    double x = mla_plot_x(plot, mark->x), y = mla_plot_y(plot, mark->y);
    if (id != NULL) {
        fprintf(f, "<a href=\"#c-%s\">", id);
    } else {
        fputs("<g>", f);
    }
    write_tip(page, &plot->series[series], mark, false, id);
    fprintf(f, "<circle class=\"hit\" cx=\"%.1f\" cy=\"%.1f\" r=\"8\"/>", x, y);
    fprintf(f, "<circle class=\"dot s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>%s\n", series + 1, x, y,
            id != NULL ? "</a>" : "</g>");
}

static void write_cell(struct mla_page *page, const struct mla_plot *plot,
                       const struct mla_mark *mark, const char *id)
{
    FILE *f = page->file;
    double left = mla_plot_x(plot, mark->x), right = mla_plot_x(plot, 2 * mark->x);
    double bottom = mla_plot_y(plot, mark->y), top = mla_plot_y(plot, 2 * mark->y);
    double dark = mark->z < 1 ? mark->z : 1;
    if (id != NULL) {
        fprintf(f, "<a href=\"#c-%s\">", id);
    } else {
        fputs("<g>", f);
    }
    write_tip(page, &plot->series[0], mark, true, id);
    fprintf(f,
            "<rect class=\"cell%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
            "fill-opacity=\"%.2f\"/><text class=\"cellname\" x=\"%.1f\" y=\"%.1f\">",
            mark->z > 1 ? " over" : "", left, top, right - left, bottom - top,
            mark->z > 1 ? 0.9 : 0.55 * dark, (left + right) / 2, (top + bottom) / 2 + 3.5);
    if (isfinite(mark->z) && mark->z < 10) {
        fprintf(f, "%.2f", mark->z);
    } else {
        fputs(isfinite(mark->z) ? "&gt;10" : "inf", f);
    }
    fprintf(f, "</text>%s\n", id != NULL ? "</a>" : "</g>");
}

static void write_legend(struct mla_page *page, const struct mla_plot *plot)
{
    FILE *f = page->file;
    fputs("<ul class=\"legend\">", f);
    for (size_t s = 0; s < plot->series_n; s++) {
        if (plot->series[s].subject == NULL || plot->kind == MLA_PLOT_CELLS) {
            continue;
        }
        fputs("<li>", f);
        if (plot->kind == MLA_PLOT_LINES) {
            fprintf(f,
                    "<svg viewBox=\"0 0 36 14\" aria-hidden=\"true\"><path d=\"M0,7H36\" "
                    "stroke=\"rgb(%3zu, %3zu, %3zu)\" stroke-width=\"1.5\"/><circle class=\"s%zu\" "
                    "cx=\"18\" cy=\"7\" r=\"4\"/></svg> ",
                    s + 1, s + 1, s + 1, s + 1);
        }
        mla_page_subject(page, plot->series[s].subject);
        fputs("</li>", f);
    }
    if (plot->has_one) {
        fputs("<li><svg viewBox=\"0 0 36 14\" aria-hidden=\"true\"><path d=\"M0,7H36\" "
              "stroke=\"rgb(  9, "
              "  9,   9)\" stroke-width=\"1.5\" stroke-dasharray=\"5,3\"/></svg> 1: the bound</li>",
              f);
    }
    fputs("</ul>", f);
}

/* What is above may be far above: that is said loudly. Below is what has next to no error. */
static void write_beyond(FILE *f, struct mla_beyond beyond, double low)
{
    if (beyond.above > 0) {
        fprintf(f, " <b class=\"beyond\">%zu beyond the upper end, drawn there.</b>", beyond.above);
    }
    if (beyond.below > 0) {
        fprintf(f, " %zu below %g, drawn there.", beyond.below, low);
    }
}

static void write_figure(struct mla_page *page, const struct mla_plot *plot)
{
    FILE *f = page->file;
    bool cells = plot->kind == MLA_PLOT_CELLS;
    fprintf(f, "<figure><figcaption><b>%s", plot->title);
    if (cells) {
        fputs(", ", f);
        mla_page_subject(page, plot->series[0].subject);
    }
    fprintf(
        f, "</b>%" PRId64 " %s behind it.%s", plot->cases, plot->cases == 1 ? "result" : "results",
        cells ? " A cell is an octave by an octave, the darker the nearer to 1, the bound." : "");
    write_beyond(f, mla_plot_beyond(plot), plot->y_low);
    fprintf(f,
            "</figcaption>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"%s\">%s\n",
            MLA_PLOT_WIDTH, MLA_PLOT_HEIGHT, plot->title, plot->svg);
    for (size_t s = 0; s < plot->series_n; s++) {
        for (size_t i = 0; i < plot->series[s].n; i++) {
            const struct mla_mark *mark = &plot->series[s].marks[i];
            const char *id = NULL;
            if (mark->n == 0) { /* only for the line */
                continue;
            }
            if (plot->series[s].subject != NULL && mark->testcase != 0 &&
                mla_page_refer(page, mark->testcase, plot->series[s].subject)) {
                id = mla_report_case(page->report, mark->testcase)->id;
            }
            if (plot->kind == MLA_PLOT_CELLS) {
                write_cell(page, plot, mark, id);
            } else {
                write_dot(page, plot, s, mark, id);
            }
        }
    }
    fputs("</svg>\n", f);
    write_legend(page, plot);
    fputs("</figure>\n", f);
}

void mla_page_plots(struct mla_page *page, const struct mla_plot *plots, size_t plots_n)
{
    fputs("<section id=\"plots\"><h2>Plots</h2>\n<div class=\"plots\">\n", page->file);
    for (size_t i = 0; i < plots_n; i++) {
        write_figure(page, &plots[i]);
    }
    fputs(plots_n == 0 ? "<p class=\"soft\">There is nothing to plot.</p></div></section>\n"
                       : "</div></section>\n",
          page->file);
}
