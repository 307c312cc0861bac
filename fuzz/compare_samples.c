/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_samples.c - medians and rank tests of what scripts/measure-guidance has collected.
 *
 * Input: lines "measure<TAB>arm<TAB>number" on stdin ("inf": it never came). For every measure the
 * median of each arm, and the first arm against each of the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/rank_test.h"

#define SAMPLES_MAX 256
#define NAME_MAX    64

struct sample {
    char measure[NAME_MAX], arm[NAME_MAX];
    double numbers[MLA_RANK_TEST_MAX];
    size_t n;
};

static struct sample samples[SAMPLES_MAX];
static size_t samples_n;

static struct sample *find(const char *measure, const char *arm)
{
    for (size_t i = 0; i < samples_n; i++)
        if (strcmp(samples[i].measure, measure) == 0 && strcmp(samples[i].arm, arm) == 0)
            return &samples[i];
    if (samples_n == SAMPLES_MAX)
        return NULL;
    struct sample *fresh = &samples[samples_n++];
    snprintf(fresh->measure, NAME_MAX, "%s", measure);
    snprintf(fresh->arm, NAME_MAX, "%s", arm);
    return fresh;
}

static int read_lines(void)
{
    char line[512], measure[NAME_MAX], arm[NAME_MAX];
    for (int number = 1; fgets(line, sizeof line, stdin) != NULL; number++) {
        double value;
        struct sample *sample;
        if (sscanf(line, "%63s %63s %lf", measure, arm, &value) != 3 ||
            (sample = find(measure, arm)) == NULL || sample->n == MLA_RANK_TEST_MAX) {
            fprintf(stderr, "line %d: not a measure, an arm and a number, or too many: %s", number,
                    line);
            return 2;
        }
        sample->numbers[sample->n++] = value;
    }
    return samples_n == 0 ? 2 : 0;
}

/* The first arm of a measure stands first in the input. */
static const struct sample *first_of(const char *measure)
{
    for (size_t i = 0; i < samples_n; i++)
        if (strcmp(samples[i].measure, measure) == 0)
            return &samples[i];
    return NULL;
}

int main(void)
{
    int bad = read_lines();
    printf("%-36s %-10s %4s %12s %8s %10s\n", "measure", "arm", "n", "median", "U", "p");
    for (size_t i = 0; i < samples_n; i++) {
        const struct sample *first = first_of(samples[i].measure);
        struct sample sorted = samples[i];
        printf("%-36s %-10s %4zu %12.5g", sorted.measure, sorted.arm, sorted.n,
               mla_rank_median(sorted.numbers, sorted.n));
        if (first != &samples[i]) {
            struct mla_rank_test test =
                mla_rank_test(first->numbers, first->n, samples[i].numbers, samples[i].n);
            printf(" %8g %10.3g%s", test.u, test.p, test.exact ? "" : " (normal)");
        }
        printf("\n");
    }
    return bad;
}
