/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h - how far long work is, on stderr: a bar on a terminal, a line now and then elsewhere.
 */
#ifndef MLA_MLACHECK_PROGRESS_H
#define MLA_MLACHECK_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct mla_progress {
    FILE *file;    /* NULL: says nothing */
    bool terminal; /* a bar that is drawn again and again; else whole lines */
    double began, said;
    bool drawn; /* a bar stands on the line */
};

/* From now on. quiet: never say anything. */
void mla_progress_begin(struct mla_progress *progress, bool quiet);
/*
 * done of total units ("cases") are done; total <= 0: nobody knows how many there are. note: what else a
 * person wants to see ("2 faults"), or "". Cheap: says something ten times a second at most, on what is no
 * terminal every ten seconds, the first time after ten. Not thread-safe.
 */
void mla_progress_say(struct mla_progress *progress, double done, double total, const char *unit,
                      const char *note);
/* Take the bar away, as other lines are about to be printed. */
void mla_progress_clear(struct mla_progress *progress);

/* For tests: the same at a time of theirs, and the text alone, at most columns wide. */
void mla_progress_say_at(struct mla_progress *progress, double now, double done, double total,
                         const char *unit, const char *note);
void mla_progress_text(char *text, size_t text_bytes, bool bar, double seconds, double done,
                       double total, const char *unit, const char *note);

#endif
