/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_weights.c - measured weights beside the definition's.
 *
 * What one key loses the softmax gives to the others: with 3 of 30 equal keys missing the rest have
 * 10/9 of their weight. So keys are compared after division by the factor that most of them share.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/blame_internal.h"

/* Below this a weight may have been flushed, or drowned by what rounds to bf16. */
#define TOO_SMALL 1e-7

static int ascending(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* The middle of the densest stretch of sorted ratios that spans 5 %, 1 without any. */
static double most_common(const double *ratios, int64_t n)
{
    int64_t best = 0, best_n = 0;
    for (int64_t i = 0, j = 0; i < n; i++) {
        while (j < n && ratios[j] <= ratios[i] * 1.05)
            j++;
        if (j - i > best_n) {
            best = i;
            best_n = j - i;
        }
    }
    return best_n == 0 ? 1 : ratios[best + best_n / 2];
}

static bool find_common(const struct mla_probe *p, struct mla_blame_weights *w)
{
    double *ratios = malloc((size_t)p->places_n * sizeof *ratios);
    int64_t n = 0;
    if (ratios == NULL)
        return false;
    for (int64_t i = 0; i < p->places_n; i++) {
        double due = (double)p->times[i] * p->weights[i];
        if (due > TOO_SMALL && w->measured[i] > 0)
            ratios[n++] = w->measured[i] / due;
    }
    qsort(ratios, (size_t)n, sizeof *ratios, ascending);
    w->common = most_common(ratios, n);
    free(ratios);
    return true;
}

/* Of m copies one alone weighs 1/m: a quarter of that is none. */
static enum mla_blame_mark mark_of(double due, double measured, int64_t times)
{
    if (times == 0)
        return measured > TOO_SMALL ? MLA_MARK_EXTRA : MLA_MARK_RIGHT;
    if (due < TOO_SMALL)
        return MLA_MARK_RIGHT;
    double ratio = measured / due;
    return ratio < 0.25 / (double)times ? MLA_MARK_MISSING
           : ratio < 0.75               ? MLA_MARK_LESS
           : ratio > 1.4                ? MLA_MARK_MORE
                                        : MLA_MARK_RIGHT;
}

static void mark(const struct mla_probe *p, struct mla_blame_weights *w)
{
    w->finite = true;
    for (int64_t i = 0; i < p->places_n; i++) {
        w->finite = w->finite && isfinite(w->measured[i]);
        w->total += w->measured[i];
    }
    for (int64_t i = 0; i < p->places_n && w->finite; i++) {
        double due = w->common * (double)p->times[i] * p->weights[i];
        enum mla_blame_mark m = mark_of(due, w->measured[i], p->times[i]);
        w->marks[i] = (uint8_t)m;
        w->n[m]++;
        w->weight[m] += w->total > 0 ? fabs(w->measured[i] - due) / w->total : 0;
    }
}

bool mla_blame_weights_measure(struct mla_probe *p, struct mla_blame_weights *w)
{
    size_t n = (size_t)p->places_n;
    *w = (struct mla_blame_weights){.common = 1,
                                    .marks = calloc(n, sizeof *w->marks),
                                    .measured = calloc(n, sizeof *w->measured)};
    if (w->marks == NULL || w->measured == NULL || !mla_probe_measure(p, w->measured) ||
        !find_common(p, w))
        return false;
    mark(p, w);
    return true;
}

void mla_blame_weights_free(struct mla_blame_weights *w)
{
    free(w->measured);
    free(w->marks);
    *w = (struct mla_blame_weights){0};
}
