/* SPDX-License-Identifier: Apache-2.0
 *
 * report_plot.c - axes of a plot, and gnuplot's script for it.
 *
 * The frame has fixed margins and both ends of each axis are given, so that a point's place is known
 * here. Colours are names for the style sheet: rgb(1,1,1) is series 1 (report.css).
 */
#include "results/report_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_gnuplot.h"
#include "results/store_internal.h"

/* The frame, in shares of width and height. */
#define LEFT   0.14
#define RIGHT  0.97
#define BOTTOM 0.2
#define TOP    0.95

bool mla_plot_add(struct mla_series *series, struct mla_mark mark)
{
    struct mla_mark *marks = realloc(series->marks, (series->n + 1) * sizeof marks[0]);
    if (marks == NULL) {
        return false;
    }
    series->marks = marks;
    marks[series->n++] = mark;
    return true;
}

struct range {
    double low, high;
};

static void extend(struct range *range, double value, bool log)
{
    if (isfinite(value) && (!log || value > 0)) {
        range->low = fmin(range->low, value);
        range->high = fmax(range->high, value);
    }
}

static struct range round_out(struct range range, bool log, double base)
{
    if (range.low > range.high) {
        return (struct range){log ? 1 : 0, log ? base : 1};
    }
    if (!log) {
        return (struct range){fmin(range.low, 0), fmax(range.high, 1) * 1.05};
    }
    struct range r = {pow(base, floor(log2(range.low) / log2(base))),
                      pow(base, ceil(log2(range.high) / log2(base)))};
    r.high = r.high > r.low ? r.high : r.low * base;
    return r;
}

void mla_plot_range(struct mla_plot *plot)
{
    struct range x = {INFINITY, -INFINITY}, y = x;
    bool cells = plot->kind == MLA_PLOT_CELLS;
    for (size_t s = 0; s < plot->series_n; s++) {
        for (size_t i = 0; i < plot->series[s].n; i++) {
            const struct mla_mark *m = &plot->series[s].marks[i];
            extend(&x, m->x, plot->x_log);
            extend(&y, m->y, plot->y_log);
            extend(&x, cells ? 1.9 * m->x : m->x, plot->x_log); /* a cell is [x, 2x) */
            extend(&y, cells ? 1.9 * m->y : m->y, plot->y_log);
        }
    }
    x = round_out(x, plot->x_log, 2);
    if (!plot->x_log) {
        x = (struct range){-0.5, fmax((double)plot->ticks_n, 1) - 0.5};
    }
    y = round_out(y, plot->y_log, cells ? 2 : 10);
    if (plot->has_one && plot->y_log) { /* err/B: what is beyond is drawn at the end */
        y.low = fmin(fmax(y.low, 1e-3), 0.1);
        y.high = fmax(fmin(y.high, 1e4), 10);
    }
    plot->x_low = x.low;
    plot->x_high = x.high;
    plot->y_low = y.low;
    plot->y_high = y.high;
}

struct mla_beyond mla_plot_beyond(const struct mla_plot *p)
{
    struct mla_beyond n = {.above = p->beyond};
    for (size_t s = 0; s < p->series_n; s++) {
        for (size_t i = 0; i < p->series[s].n; i++) {
            const struct mla_mark *m = &p->series[s].marks[i];
            if (m->n > 0) {
                n.above += !(m->x <= p->x_high && m->y <= p->y_high);
                n.below += (p->x_log && m->x < p->x_low) || (p->y_log && m->y < p->y_low);
            }
        }
    }
    return n;
}

static double share(double value, double low, double high, bool log)
{
    if (!(value > low)) {
        return 0;
    }
    if (!(value < high)) {
        return 1;
    }
    return log ? log2(value / low) / log2(high / low) : (value - low) / (high - low);
}

double mla_plot_x(const struct mla_plot *p, double x)
{
    return MLA_PLOT_WIDTH * (LEFT + (RIGHT - LEFT) * share(x, p->x_low, p->x_high, p->x_log));
}

double mla_plot_y(const struct mla_plot *p, double y)
{
    double at = BOTTOM + (TOP - BOTTOM) * share(y, p->y_low, p->y_high, p->y_log);
    return MLA_PLOT_HEIGHT * (1 - at);
}

static void write_names(FILE *file, const struct mla_plot *plot)
{
    size_t step = (plot->ticks_n + 11) / 12;
    fputs("unset logscale x\nset xtics rotate by -35 (", file);
    for (size_t i = 0; i < plot->ticks_n; i += step) {
        fprintf(file, "%s\"%s\" %zu", i == 0 ? "" : ", ", plot->ticks[i], i);
    }
    fputs(")\n", file);
}

/* Ticks of a logarithmic axis by name, at most eight: 4, 0.25, 2^20. */
static void write_powers(FILE *file, char axis, double base, double low, double high)
{
    int first = (int)lround(log2(low) / log2(base)), last = (int)lround(log2(high) / log2(base));
    int step = (last - first) / (axis == 'x' ? 6 : 8) + 1;
    fprintf(file, "set logscale %c %g\nset %ctics rotate by 0 (", axis, base, axis);
    for (int i = first; i <= last; i += step) {
        double value = pow(base, i);
        if (value < 0.9e4 && value > (base < 10 ? 0.01 : 0.9e-3)) { /* %.4g holds it */
            fprintf(file, "%s\"%.4g\" %.9g", i == first ? "" : ", ", value, value);
        } else {
            fprintf(file, "%s\"%g^%d\" %.9g", i == first ? "" : ", ", base, i, value);
        }
    }
    fputs(")\n", file);
}

static void write_scales(FILE *file, const struct mla_plot *plot)
{
    if (plot->ticks != NULL) {
        write_names(file, plot);
    } else if (plot->x_log) {
        write_powers(file, 'x', 2, plot->x_low, plot->x_high);
    }
    if (plot->y_log) {
        write_powers(file, 'y', plot->kind == MLA_PLOT_CELLS ? 2 : 10, plot->y_low, plot->y_high);
    }
}

static void write_data(FILE *file, const struct mla_plot *plot)
{
    bool log = plot->y_log;
    fputs("plot NaN notitle", file);
    if (plot->has_one) {
        fputs(", 1 with lines lw 1.5 dt 2 lc rgb '#090909'", file);
    }
    for (size_t s = 0; plot->kind == MLA_PLOT_LINES && s < plot->series_n; s++) {
        fprintf(file, ", '-' using 1:2 with lines lw 1.5 dt %zu lc rgb '#0%zu0%zu0%zu'", s % 4 + 1,
                s + 1, s + 1, s + 1);
    }
    fputc('\n', file);
    for (size_t s = 0; plot->kind == MLA_PLOT_LINES && s < plot->series_n; s++) {
        for (size_t i = 0; i < plot->series[s].n; i++) {
            const struct mla_mark *m = &plot->series[s].marks[i];
            double y = !(m->y < plot->y_high)         ? plot->y_high
                       : log && !(m->y > plot->y_low) ? plot->y_low
                                                      : m->y;
            fprintf(file, "%.9g %.9g\n", m->x, y);
        }
        if (plot->series[s].n == 0) {
            fputs("NaN NaN\n", file);
        }
        fputs("e\n", file);
    }
}

/* An end by itself; a logarithmic one a millionth further out, or gnuplot leaves its tick out at times. */
static double end_of(double end, bool log, int outward)
{
    return log ? end * (1 + outward * 1e-6) : end;
}

static void write_plot(FILE *file, const struct mla_plot *plot, size_t number)
{
    fprintf(file, "reset\nset encoding utf8\n");
    fprintf(
        file,
        "set terminal svg name \"plot%zu\" size %d,%d dynamic noenhanced font \"sans-serif,13\"\n",
        number, MLA_PLOT_WIDTH, MLA_PLOT_HEIGHT);
    fprintf(file,
            "set lmargin at screen %g\nset rmargin at screen %g\nset bmargin at screen %g\n"
            "set tmargin at screen %g\n",
            LEFT, RIGHT, BOTTOM, TOP);
    write_scales(file, plot);
    fprintf(file,
            "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\nset xlabel \"%s\"\nset ylabel \"%s\"\n"
            "set tics scale 0.5 nomirror\nunset key\nset border 3\n"
            "set grid xtics ytics lt 1 lc rgb '#0a0a0a' lw 0.5\n",
            end_of(plot->x_low, plot->x_log, -1), end_of(plot->x_high, plot->x_log, 1),
            end_of(plot->y_low, plot->y_log, -1), end_of(plot->y_high, plot->y_log, 1),
            plot->x_label, plot->y_label);
    write_data(file, plot);
}

/* The drawing itself: without the head, whose definitions are for points we do not ask for. */
static char *cut(const char *begin, const char *end)
{
    const char *body = strstr(begin, "</defs>");
    if (body == NULL || body >= end) {
        return strndup(begin, (size_t)(end - begin));
    }
    body += strlen("</defs>");
    for (const char *at = end; at > body;
         at--) { /* closes the canvas, which was opened in the head */
        if (strncmp(at, "</g>", strlen("</g>")) == 0) {
            end = at;
            break;
        }
    }
    return strndup(body, (size_t)(end - body));
}

int32_t mla_plots_draw(struct mla_store *store, struct mla_plot *plots, size_t plots_n)
{
    char *script = NULL, *drawn = NULL;
    size_t bytes = 0, n = 0;
    FILE *file = open_memstream(&script, &bytes);
    if (file == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory for the plots");
    }
    for (size_t i = 0; i < plots_n; i++) {
        write_plot(file, &plots[i], i + 1);
    }
    bool written = fclose(file) == 0;
    int32_t status = written
                         ? mla_gnuplot(store, script, bytes, &drawn)
                         : mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory for the plots");
    free(script);
    if (status != MLA_STORE_OK) {
        return status;
    }
    for (const char *at = drawn; n < plots_n; n++) {
        const char *begin = strstr(at, "<svg"), *end = begin ? strstr(begin, "</svg>") : NULL;
        if (end == NULL) {
            break;
        }
        plots[n].svg = cut(begin, end);
        at = end + strlen("</svg>");
    }
    free(drawn);
    return n == plots_n ? MLA_STORE_OK
                        : mla_store_fail(store, MLA_STORE_ERR_OPEN, "gnuplot drew %zu of %zu plots",
                                         n, plots_n);
}

void mla_plots_free(struct mla_plot *plots, size_t plots_n)
{
    for (size_t i = 0; i < plots_n; i++) {
        for (size_t s = 0; s < plots[i].series_n; s++) {
            free(plots[i].series[s].marks);
        }
        free(plots[i].svg);
    }
    free(plots);
}
