/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_rows.c - the list of rows, peaks, medians, and what rows say of each other.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/mlacheck/bench.h"

/* Room for one more; false without memory. */
static bool make_room(void **list, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return true;
    size_t more = *room == 0 ? 64 : *room * 2;
    void *grown = realloc(*list, more * bytes);
    if (grown == NULL)
        return false;
    *list = grown;
    *room = more;
    return true;
}

struct mla_bench_row *mla_bench_add_row(struct mla_bench *bench)
{
    void *list = bench->rows;
    if (!make_room(&list, bench->rows_n, &bench->rows_room, sizeof *bench->rows))
        return NULL;
    bench->rows = list;
    bench->rows[bench->rows_n] = (struct mla_bench_row){.times_first = 1};
    return &bench->rows[bench->rows_n++];
}

double mla_bench_peak(struct mla_bench *bench, enum mla_peak_isa isa, int threads)
{
    double peak = mla_peak_measure(isa, threads), *best = &bench->best_peak[isa][threads];
    void *list = bench->peaks;
    *best = peak > *best ? peak : *best;
    if (isa == bench->isa && threads == 1 && peak > 0 &&
        make_room(&list, bench->peaks_n, &bench->peaks_room, sizeof *bench->peaks)) {
        bench->peaks = list;
        bench->peaks[bench->peaks_n++] = peak;
    }
    return peak;
}

bool mla_bench_is_low(const struct mla_bench *bench, enum mla_peak_isa isa, int threads,
                      double peak)
{
    return peak < (1 - MLA_BENCH_STILL) * bench->best_peak[isa][threads];
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mla_bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void mla_bench_set_times(struct mla_bench_row *row, double *times, int n)
{
    row->reps = n;
    row->seconds = mla_bench_median(times, n);
    row->spread = (times[n - 1] - times[0]) / row->seconds;
}

void mla_bench_relate(struct mla_bench *bench, size_t first)
{
    for (size_t i = first; i < bench->rows_n; i++) {
        struct mla_bench_row *row = &bench->rows[i];
        const struct mla_bench_row *best = NULL;
        row->times_first = 1;
        for (size_t k = bench->rows_n; k > first; k--) {
            const struct mla_bench_row *other = &bench->rows[k - 1];
            if (strcmp(other->name, row->name) == 0 && other->is_peer == row->is_peer)
                row->times_first = other->seconds / row->seconds; /* the first one stays */
            if (!other->is_peer && other->threads == row->threads &&
                (best == NULL || other->seconds < best->seconds))
                best = other;
        }
        if (row->is_peer && best != NULL) {
            row->against = best->name;
            row->ratio = row->seconds / best->seconds;
        }
    }
}
