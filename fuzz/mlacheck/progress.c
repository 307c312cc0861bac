/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c - "[#####---------------] 25 % 100 of 400 cases, 35/s, 9 s left, 2 faults".
 */
#include "fuzz/mlacheck/progress.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/call.h"

#define BAR            20  /* characters */
#define DRAW_SECONDS   0.1 /* between two bars */
#define LINE_SECONDS   10.0
#define SETTLE_SECONDS 1.0 /* before that a rate is noise */

void mla_progress_begin(struct mla_progress *p, bool quiet)
{
    double now = mla_call_clock();
    bool terminal = isatty(STDERR_FILENO) == 1;
    *p = (struct mla_progress){.file = quiet ? NULL : stderr,
                               .terminal = terminal,
                               .began = now,
                               .said = terminal ? now - DRAW_SECONDS : now};
}

/* "9 s", "3 min 20 s", "2 h 5 min" */
static void duration(char text[40], double seconds)
{
    double s = ceil(seconds);
    if (s < 60)
        snprintf(text, 40, "%.0f s", s);
    else if (s < 3600)
        snprintf(text, 40, "%.0f min %.0f s", floor(s / 60), fmod(s, 60));
    else
        snprintf(text, 40, "%.0f h %.0f min", floor(fmin(s, 1e9) / 3600),
                 floor(fmod(fmin(s, 1e9), 3600) / 60));
}

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t bytes, const char *format,
                                                      ...)
{
    va_list list;
    size_t n = strlen(text);
    va_start(list, format);
    vsnprintf(text + n, bytes - n, format, list);
    va_end(list);
}

/* "s", "s at most": the work is a span of time, which has no rate. */
static bool is_time(const char *unit)
{
    return unit[0] == 's' && (unit[1] == '\0' || unit[1] == ' ');
}

void mla_progress_text(char *text, size_t bytes, bool bar, double seconds, double done,
                       double total, const char *unit, const char *note)
{
    char left[40];
    double share = total > 0 ? fmin(1, done / total) : 0, rate = seconds > 0 ? done / seconds : 0;
    text[0] = '\0';
    if (bar && total > 0) {
        add(text, bytes, "[");
        for (int i = 0; i < BAR; i++)
            add(text, bytes, i < (int)(share * BAR) ? "#" : "-");
        add(text, bytes, "] ");
    }
    if (total > 0)
        add(text, bytes, "%.0f %% ", floor(100 * share));
    add(text, bytes, "%.0f ", done);
    if (total > 0)
        add(text, bytes, "of %.0f ", total);
    add(text, bytes, "%s", unit);
    if (seconds >= SETTLE_SECONDS && rate > 0) {
        if (!is_time(unit))
            add(text, bytes, ", %.3g/s", rate);
        if (total > done) {
            duration(left, (total - done) / rate);
            add(text, bytes, ", %s left", left);
        }
    }
    if (note[0] != '\0')
        add(text, bytes, ", %s", note);
}

void mla_progress_say_at(struct mla_progress *p, double now, double done, double total,
                         const char *unit, const char *note)
{
    char text[200];
    if (p->file == NULL || now - p->said < (p->terminal ? DRAW_SECONDS : LINE_SECONDS))
        return;
    p->said = now;
    mla_progress_text(text, sizeof text, p->terminal, now - p->began, done, total, unit, note);
    /* Erase to the end of the line: the last text may have been longer. */
    fprintf(p->file, p->terminal ? "\r%.99s\033[K" : "%.199s\n", text);
    fflush(p->file);
    p->drawn = p->terminal;
}

void mla_progress_say(struct mla_progress *p, double done, double total, const char *unit,
                      const char *note)
{
    mla_progress_say_at(p, mla_call_clock(), done, total, unit, note);
}

void mla_progress_clear(struct mla_progress *p)
{
    if (!p->drawn)
        return;
    fputs("\r\033[K", p->file);
    fflush(p->file);
    p->drawn = false;
}
