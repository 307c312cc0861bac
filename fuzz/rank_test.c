/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_test.c - the test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947).
 */
#include "fuzz/rank_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mla_rank_median(double *numbers, size_t n)
{
    qsort(numbers, n, sizeof *numbers, compare);
    double low = numbers[(n - 1) / 2], high = numbers[n / 2];
    return low == high ? low : (low + high) / 2; /* inf and inf have no sum to halve */
}

/*
 * The chance of u <= limit when all orders are equally likely. Of a and b numbers the largest belongs to
 * the first sample with a chance of a/(a+b), and is then larger than all b of the other:
 *     P(a, b, u) = a/(a+b) P(a-1, b, u-b) + b/(a+b) P(a, b-1, u)
 */
static double chance_at_most(size_t a_n, size_t b_n, size_t limit)
{
    size_t room = a_n * b_n + 1;
    double *rows = calloc((b_n + 1) * room, sizeof *rows); /* P(a, 0 .. b_n, u) for one a */
    double sum = 0;
    if (rows == NULL)
        return NAN;
    for (size_t b = 0; b <= b_n; b++)
        rows[b * room] = 1; /* a = 0: u is 0 */
    for (size_t a = 1; a <= a_n; a++)
        for (size_t b = 0; b <= b_n; b++)
            for (size_t u = room; u-- > 0;) { /* downward: u-b still belongs to a-1 */
                double left = u >= b ? rows[b * room + u - b] : 0;
                double below = b > 0 ? rows[(b - 1) * room + u] : 0;
                rows[b * room + u] = ((double)a * left + (double)b * below) / (double)(a + b);
            }
    for (size_t u = 0; u <= limit && u < room; u++)
        sum += rows[b_n * room + u];
    free(rows);
    return sum;
}

/* Sum of t^3 - t over the runs of t equal numbers among both samples. */
static double tie_sum(const double *a, size_t a_n, const double *b, size_t b_n)
{
    double all[2 * MLA_RANK_TEST_MAX], sum = 0;
    size_t n = a_n + b_n;
    memcpy(all, a, a_n * sizeof *a);
    memcpy(all + a_n, b, b_n * sizeof *b);
    qsort(all, n, sizeof *all, compare);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && all[end] == all[i];)
            end++;
        double t = (double)(end - i);
        sum += t * t * t - t;
    }
    return sum;
}

/* The normal curve with the variance that ties leave, and the correction for whole steps of u. */
static double normal_chance(double u, double a_n, double b_n, double ties)
{
    double n = a_n + b_n, off = fabs(u - a_n * b_n / 2);
    double variance = a_n * b_n / 12 * (n + 1 - ties / (n * (n - 1)));
    if (!(variance > 0) || off <= 0.5)
        return 1;
    return erfc((off - 0.5) / sqrt(variance) / sqrt(2));
}

struct mla_rank_test mla_rank_test(const double *a, size_t a_n, const double *b, size_t b_n)
{
    struct mla_rank_test result = {0};
    for (size_t i = 0; i < a_n; i++)
        for (size_t j = 0; j < b_n; j++)
            result.u += a[i] > b[j] ? 1 : a[i] == b[j] ? 0.5 : 0;
    double ties = tie_sum(a, a_n, b, b_n), pairs = (double)(a_n * b_n);
    result.exact = ties == 0;
    if (result.exact) {
        double least = result.u < pairs - result.u ? result.u : pairs - result.u;
        result.p = fmin(1, 2 * chance_at_most(a_n, b_n, (size_t)least));
    } else {
        result.p = normal_chance(result.u, (double)a_n, (double)b_n, ties);
    }
    return result;
}
