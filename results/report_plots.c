/* SPDX-License-Identifier: Apache-2.0
 *
 * report_plots.c - which plots a report has, and their points.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/report_page.h"

#define PLOTS_MAX  (2 * (MLA_ULPS_N + MLA_PARAMETERS_N + 1 + MLA_PLOT_SERIES) + 1)
#define RUNS_SHOWN 60

static const char digits[] = "0123456789abcdef";

/* The kernels of an operation with most cases, in the order of the table. */
struct chosen {
    const struct mla_subject *list[MLA_PLOT_SERIES];
    size_t n;
};

static struct chosen choose(const struct mla_report *report, bool ring)
{
    struct chosen c = {.n = 0};
    for (size_t i = 0; i < report->subjects_n; i++) {
        const struct mla_subject *s = &report->subjects[i];
        if (s->ring != ring || s->worst.n == 0 || s->planted) {
            continue;
        }
        size_t least = 0;
        for (size_t k = 1; k < c.n; k++) {
            least = c.list[k]->worst.n < c.list[least]->worst.n ? k : least;
        }
        if (c.n < MLA_PLOT_SERIES) {
            c.list[c.n++] = s;
        } else if (c.list[least]->worst.n < s->worst.n) {
            memmove(&c.list[least], &c.list[least + 1], (c.n - 1 - least) * sizeof c.list[0]);
            c.list[c.n - 1] = s;
        }
    }
    return c;
}

static struct mla_plot *add_plot(struct mla_plot *plots, size_t *n, enum mla_plot_kind kind)
{
    struct mla_plot *plot = &plots[(*n)++];
    *plot = (struct mla_plot){.kind = kind};
    return plot;
}

static bool add_point(struct mla_plot *plot, struct mla_series *series, struct mla_mark mark)
{
    plot->cases += mark.n;
    return mla_plot_add(series, mark);
}

static bool add_ulps(struct mla_plot *plots, size_t *n, const struct chosen *c, const char *op,
                     enum mla_ulp which)
{
    static const char *const names[MLA_ULPS_N] = {"worst", "99th percentile"};
    struct mla_plot *plot = add_plot(plots, n, MLA_PLOT_LINES);
    bool fine = true;
    (void)snprintf(plot->title, sizeof plot->title, "%s: error in ulp, %s element of a case", op,
                   names[which]);
    (void)snprintf(plot->x_label, sizeof plot->x_label, "|error| in bf16 ulp, up to");
    (void)snprintf(plot->y_label, sizeof plot->y_label, "cases, percent of the kernel's");
    plot->x_log = true;
    int last = 0; /* bin that any kernel reaches */
    for (size_t k = 0; k < c->n; k++) {
        for (int i = last; i < MLA_REPORT_ULPS; i++) {
            last = c->list[k]->ulps[which][i].n > 0 ? i : last;
        }
    }
    for (size_t k = 0; k < c->n; k++) {
        const struct mla_subject *s = c->list[k];
        struct mla_series *series = &plot->series[plot->series_n++];
        double all = 0;
        series->subject = s;
        for (int i = 0; i < MLA_REPORT_ULPS; i++) {
            all += (double)s->ulps[which][i].n;
        }
        for (int i = 0; all > 0 && i <= last; i++) {
            const struct mla_point *p = &s->ulps[which][i];
            plot->beyond += p->n > 0 && !(p->x <= ldexp(1, i - 8)); /* the last bin has no end */
            fine &= add_point(plot, series,
                              (struct mla_mark){.x = ldexp(1, i - 8),
                                                .y = 100 * (double)p->n / all,
                                                .n = p->n,
                                                .testcase = p->testcase});
        }
    }
    return fine;
}

static bool add_parameter(struct mla_plot *plots, size_t *n, const struct chosen *c, bool ring,
                          enum mla_parameter by)
{
    static const char *const labels[2][MLA_PARAMETERS_N] = {
        {"K, keys a query row attends to", "H, heads", "softmax scale"},
        {"L, length of the sequence in keys", "R, ranks of the ring", "softmax scale"}};
    static const char *const names[2][MLA_PARAMETERS_N] = {{"K", "H", "scale"},
                                                           {"L", "R", "scale"}};
    struct mla_plot *plot = add_plot(plots, n, MLA_PLOT_LINES);
    bool fine = true;
    double worst = 0;
    (void)snprintf(plot->title, sizeof plot->title, "%s: worst error over bound against %s",
                   ring ? "ring" : "sparse", names[ring][by]);
    (void)snprintf(plot->x_label, sizeof plot->x_label, "%s", labels[ring][by]);
    (void)snprintf(plot->y_label, sizeof plot->y_label, "err/B");
    plot->x_log = plot->has_one = true;
    for (size_t k = 0; k < c->n; k++) {
        struct mla_series *series = &plot->series[plot->series_n++];
        series->subject = c->list[k];
        for (int i = 0; i < MLA_REPORT_BINS; i++) {
            const struct mla_point *p = &c->list[k]->by[by][i];
            if (p->n > 0) {
                worst = fmax(worst, p->y);
                fine &=
                    add_point(plot, series, (struct mla_mark){p->x, p->y, 0, p->n, p->testcase});
            }
        }
    }
    plot->y_log = worst > 2;
    return fine;
}

static bool add_shapes(struct mla_plot *plots, size_t *n, const struct mla_subject *s)
{
    struct mla_plot *plot = add_plot(plots, n, MLA_PLOT_CELLS);
    struct mla_series *series = &plot->series[plot->series_n++];
    bool fine = true;
    (void)snprintf(plot->title, sizeof plot->title, "%s: worst err/B by shape", mla_subject_op(s));
    (void)snprintf(plot->x_label, sizeof plot->x_label, "%s, from",
                   s->ring ? "L, keys" : "K, keys a row");
    (void)snprintf(plot->y_label, sizeof plot->y_label, "%s, from",
                   s->ring ? "R, ranks" : "H, heads");
    plot->x_log = plot->y_log = true;
    series->subject = s;
    for (int x = 0; x < MLA_SHAPE_X; x++) {
        for (int y = 0; y < MLA_SHAPE_Y; y++) {
            const struct mla_point *p = &s->shapes[x][y];
            plot->beyond += p->n > 0 && (x == MLA_SHAPE_X - 1 || y == MLA_SHAPE_Y - 1) && p->over;
            if (p->n > 0) {
                fine &=
                    add_point(plot, series,
                              (struct mla_mark){ldexp(1, x), ldexp(1, y), p->y, p->n, p->testcase});
            }
        }
    }
    return fine;
}

/* "1a2b3c4", changed "1a2b3c4+", a plug-in's "1a2b:5d6e"; "-" where it is no hash. */
static const char *const *state_ticks(const struct mla_report *report, size_t *n)
{
    static char text[MLA_REPORT_STATES][14];
    static const char *ticks[MLA_REPORT_STATES];
    *n = report->states_n - report->states_first;
    for (size_t i = 0; i < *n; i++) {
        const struct mla_state *s = &report->states[report->states_first + i];
        int length = (int)strspn(s->commit, digits), most = s->file[0] == '\0' ? 7 : 4;
        (void)snprintf(text[i], sizeof text[i], "%.*s%s%s%.4s", length < most ? length : most,
                       s->commit,
                       length == 0 ? "-"
                       : s->dirty  ? "+"
                                   : "",
                       s->file[0] == '\0' ? "" : ":", s->file);
        ticks[i] = text[i];
    }
    return ticks;
}

static bool add_trend(const struct mla_report *report, struct mla_plot *plots, size_t *n,
                      const struct chosen *c, const char *op)
{
    struct mla_plot *plot = add_plot(plots, n, MLA_PLOT_LINES);
    bool fine = true;
    double worst = 0;
    (void)snprintf(plot->title, sizeof plot->title,
                   "%s: worst err/B of the cases each commit judged", op);
    (void)snprintf(plot->x_label, sizeof plot->x_label,
                   "commit, oldest first (+ changed, : plug-in)");
    (void)snprintf(plot->y_label, sizeof plot->y_label, "err/B");
    plot->has_one = true;
    plot->ticks = state_ticks(report, &plot->ticks_n);
    for (size_t k = 0; k < c->n; k++) {
        struct mla_series *series = &plot->series[plot->series_n++];
        series->subject = c->list[k];
        for (size_t i = 0; i < plot->ticks_n; i++) {
            const struct mla_point *p = &c->list[k]->trend[i];
            if (p->n > 0 && p->y >= 0) {
                worst = fmax(worst, p->y);
                fine &= add_point(plot, series,
                                  (struct mla_mark){(double)i, p->y, 0, p->n, p->testcase});
            }
        }
    }
    plot->y_log = worst > 2;
    return fine;
}

/* It ended, took a second at least (times are whole seconds) and judged something. */
static bool is_timed(const struct mla_run_row *run)
{
    return run->seconds > 0.5 && run->cases > 0; /* whole seconds, but as shares of a day */
}

static bool add_speed(const struct mla_report *report, struct mla_plot *plots, size_t *n)
{
    static char text[RUNS_SHOWN][24];
    static const char *ticks[RUNS_SHOWN];
    struct mla_plot *plot = add_plot(plots, n, MLA_PLOT_LINES);
    struct mla_series *series = &plot->series[plot->series_n++];
    bool fine = true;
    size_t skip = 0, at = 0;
    (void)snprintf(plot->title, sizeof plot->title, "results judged per second, by run");
    (void)snprintf(plot->x_label, sizeof plot->x_label, "run");
    (void)snprintf(plot->y_label, sizeof plot->y_label, "results a second");
    plot->y_log = true;
    plot->ticks = ticks;
    for (size_t i = 0; i < report->runs_n; i++) {
        skip += is_timed(&report->runs[i]);
    }
    skip = skip > RUNS_SHOWN ? skip - RUNS_SHOWN : 0;
    for (size_t i = 0; i < report->runs_n; i++) {
        const struct mla_run_row *run = &report->runs[i];
        if (!is_timed(run)) {
            continue;
        }
        if (skip > 0) {
            skip--;
            continue;
        }
        (void)snprintf(text[at], sizeof text[at], "%lld", (long long)run->id);
        ticks[at] = text[at];
        fine &= add_point(plot, series,
                          (struct mla_mark){.x = (double)at,
                                            .y = (double)run->cases / run->seconds,
                                            .n = run->cases});
        at++;
    }
    plot->ticks_n = at;
    return fine;
}

static bool add_operation(const struct mla_report *report, struct mla_plot *plots, size_t *n,
                          bool ring)
{
    const char *op = ring ? "ring" : "sparse";
    struct chosen c = choose(report, ring);
    bool fine = true;
    if (c.n == 0) {
        return true;
    }
    for (int i = 0; i < MLA_ULPS_N; i++) {
        fine &= add_ulps(plots, n, &c, op, (enum mla_ulp)i);
    }
    for (int i = 0; i < MLA_PARAMETERS_N; i++) {
        if (ring || i != MLA_BY_RANKS) {
            fine &= add_parameter(plots, n, &c, ring, (enum mla_parameter)i);
        }
    }
    fine &= add_trend(report, plots, n, &c, op);
    for (size_t i = 0; i < c.n; i++) {
        fine &= add_shapes(plots, n, c.list[i]);
    }
    return fine;
}

struct mla_plot *mla_page_choose_plots(struct mla_report *report, size_t *plots_n)
{
    struct mla_plot *plots = calloc(PLOTS_MAX, sizeof plots[0]);
    if (plots == NULL) {
        return NULL;
    }
    bool fine = add_operation(report, plots, plots_n, true) &&
                add_operation(report, plots, plots_n, false) && add_speed(report, plots, plots_n);
    size_t kept = 0;
    for (size_t i = 0; i < *plots_n; i++) { /* none without a point */
        if (plots[i].cases > 0) {
            plots[kept] = plots[i];
            mla_plot_range(&plots[kept++]);
        }
    }
    *plots_n = kept;
    if (!fine) {
        mla_plots_free(plots, *plots_n);
        return NULL;
    }
    return plots;
}
