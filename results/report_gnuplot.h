/* SPDX-License-Identifier: Apache-2.0
 *
 * report_gnuplot.h - one call of the program gnuplot.
 */
#ifndef MLA_RESULTS_REPORT_GNUPLOT_H
#define MLA_RESULTS_REPORT_GNUPLOT_H

#include "results/store.h"

/*
 * Run gnuplot (found in PATH; without the user's start-up files) on the script; *output, to be freed,
 * is what it printed. ERR_OPEN with the store's message when it cannot be run, or complains.
 */
int32_t mla_gnuplot(struct mla_store *store, const char *script, size_t bytes, char **output);

#endif
