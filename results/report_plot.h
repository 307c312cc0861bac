/* SPDX-License-Identifier: Apache-2.0
 *
 * report_plot.h - plots: gnuplot draws frame, scales, grid and lines; the page lays the points over
 * them, so that each can be a link. No text of the database goes to gnuplot.
 */
#ifndef MLA_RESULTS_REPORT_PLOT_H
#define MLA_RESULTS_REPORT_PLOT_H

#include "results/report_internal.h"

#define MLA_PLOT_SERIES 8 /* colours that can be told apart */
#define MLA_PLOT_WIDTH  480
#define MLA_PLOT_HEIGHT 300

enum mla_plot_kind {
    MLA_PLOT_LINES = 0, /* a point is a dot on its line */
    MLA_PLOT_CELLS      /* a point is an octave by an octave, the darker the larger z */
};

struct mla_mark {
    double x, y; /* y beyond the axis: drawn at its end */
    double z;    /* of cells */
    int64_t n;   /* cases behind it */
    int64_t testcase;
};

struct mla_series {
    const struct mla_subject *subject; /* or NULL */
    struct mla_mark *marks;
    size_t n;
};

struct mla_plot {
    enum mla_plot_kind kind;
    char title[160], x_label[64], y_label[64]; /* our own words, ASCII, without quotes */
    bool x_log, y_log;                         /* base 2, base 10 */
    bool has_one;                              /* a line at y = 1, the bound */
    size_t beyond;            /* points whose bin is the last and holds all beyond */
    const char *const *ticks; /* names of x = 0, 1, ..; hex digits; NULL: numbers */
    size_t ticks_n;
    double x_low, x_high, y_low, y_high; /* set by mla_plot_range */
    struct mla_series series[MLA_PLOT_SERIES];
    size_t series_n;
    int64_t cases;
    char *svg; /* what gnuplot drew, without the svg element; set by mla_plots_draw */
};

/* Add a point; false without memory. */
bool mla_plot_add(struct mla_series *series, struct mla_mark mark);
/* The axes that hold all points. */
void mla_plot_range(struct mla_plot *plot);
/* Points that lie beyond an end of an axis, and are drawn at it. */
struct mla_beyond {
    size_t above, below;
};
struct mla_beyond mla_plot_beyond(const struct mla_plot *plot);
/* Where a point lies in the drawing. */
double mla_plot_x(const struct mla_plot *plot, double x);
double mla_plot_y(const struct mla_plot *plot, double y);

/*
 * Draw all with one gnuplot (found in PATH, script on its standard input). On failure ERR_OPEN and
 * the store's message.
 */
int32_t mla_plots_draw(struct mla_store *store, struct mla_plot *plots, size_t plots_n);
void mla_plots_free(struct mla_plot *plots, size_t plots_n);

#endif
