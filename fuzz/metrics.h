/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.h - statistics of a verdict that may only improve.
 *
 * The verdict says right or wrong; these say how good. They fail nothing: they are stored with the
 * verdict and compared with the same kernel's past. Every judged element that has a value is added
 * to a set of sums of fixed size (rows without keys have none to measure), which is then finished
 * into figures. y is the output, o the definition's value, e = y - o, n the number of elements.
 *
 * A NaN or Inf among the outputs is an infinite error: the maxima, the RMS and the chi-square ratio
 * are +inf then, a percentile where its rank falls on one, both biases NaN, and every published
 * rule fails.
 */
#ifndef MLA_FUZZ_METRICS_H
#define MLA_FUZZ_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oracle/oracle.h"

struct mla_metrics {
    int64_t elements_n; /* n; with 0 nothing below means anything */

    /* The worst err/B: 1 or less is inside the certified interval (mla_bound_error). */
    double max_err_over_bound;

    /* |e| in units of the last place of bf16 at o (2^-7 of o's power of two, 2^-133 at least). The
     * percentile p is the least error that p % of the elements do not exceed; it is given as the
     * upper edge of a bucket, at most 1/16 above the true one (2^-8 where that is less), and never
     * above max_ulp, which also stands for a percentile beyond 2^24. */
    double max_ulp, p50_ulp, p99_ulp;

    double rms_relative; /* sqrt(sum e^2 / sum o^2); 0 when e is 0 throughout, inf if only o is */

    /* sum z / sqrt(sum z^2), z = e / sigma (below): the mean of z over the standard error that it
     * has if the true mean is 0. Near +-1 for errors that cancel at random, +-sqrt(n) if all are
     * equal. bias_se counts errors up as positive, bias_outward_se errors away from zero: that is
     * where truncation and lost weight show, whatever the sign of the values. */
    double bias_se, bias_outward_se;

    double correctly_rounded_percent; /* y is the bf16 nearest to o; -0 is 0 */

    /*
     * Mean of (e/sigma)^2, where sigma^2 = B^2/3 + c h^2: h the spacing of bf16 at o, c = 1/12 for
     * an output rounded to nearest (uniform in +-h/2) and 1/3, the mean square, for one cut toward
     * zero (uniform in [0, h)).
     *
     * B^2/3 is what the declared unit roundoffs allow if rounding errors behave as Higham and Mary
     * (SIAM J. Sci. Comput. 41, 2019) take them: independent, of mean 0. To first order the error
     * is sum_i a_i delta_i with |delta_i| <= u_i, and B >= sum_i |a_i| u_i. A delta_i spread evenly
     * over +-u_i has variance u_i^2/3, so the whole has sum_i a_i^2 u_i^2 / 3 <= B^2/3, with
     * equality when one rounding carries all; m equal shares give B^2/(3m), the sqrt(m) u law.
     *
     * So 1 is the most that independent roundings of the declared size explain, reached where the
     * output's own rounding dominates; well below 1, the declaration is wider than the arithmetic
     * needs, or many roundings share B; clearly above 1, the errors pull together or sit at the
     * ends of what is allowed. There |e| = B + half a spacing at y (a whole one if cut), which
     * makes 3 (1+x)^2/(1+x^2) <= 6 with x = 2B/h (B/h if cut), and below 10 where y lies in the
     * next binade: no conforming kernel exceeds that.
     */
    double chi_square_ratio;

    uint32_t would_pass; /* bit i: published rule i of mla_criteria() would have passed this */
};

/* Buckets of |e| in ulp: 16 for each power of two from 2^-8 to 2^24, one below, one above. */
#define MLA_METRICS_ULP_LOW   (-8)
#define MLA_METRICS_ULP_HIGH  24
#define MLA_METRICS_BUCKETS_N (16 * (MLA_METRICS_ULP_HIGH - MLA_METRICS_ULP_LOW) + 2)

/* What is kept of the elements so far. Zero it before the first. */
struct mla_metrics_sums {
    int64_t elements_n, exact_n, nonfinite_n; /* all; y nearest to o; y NaN or Inf */
    double max_ratio, max_ulp;
    double z_up, z_outward, z2; /* sums of z, of z along o's sign, of z^2 */
    /* The rest is of the finite ones. */
    double max_error, max_value; /* of |e|, |o| */
    double error2, value2, got2; /* sums of e^2, o^2, y^2 */
    /* For the correlation: moments about the first o and the first y, which makes those of a
     * constant exactly 0 and keeps a large mean from drowning the spread. */
    double value_first, got_first;
    double value_sum, got_sum, value_moment, got_moment, product_moment;
    uint32_t elements_broken; /* bits of mla_criteria_element, of all elements together */
    int64_t ulp_n[MLA_METRICS_BUCKETS_N];
};

/*
 * Add one element: the output's bits, its bound (MLA_BOUND_OK), the model that gave the bound, and
 * the ratio that mla_bound_error gives for them. Some nanoseconds.
 */
void mla_metrics_add(struct mla_metrics_sums *sums, uint16_t bits, const struct mla_bound *bound,
                     const struct mla_model *model, double ratio);
void mla_metrics_finish(const struct mla_metrics_sums *sums, struct mla_metrics *metrics);

/*
 * Figure i by name (its unit is part of it), in a fixed order: those of struct mla_metrics, then 1
 * or 0 for each published rule under its metric's name. false beyond the last.
 */
struct mla_metrics_figure {
    const char *name;
    double value;
};
bool mla_metrics_figure(const struct mla_metrics *metrics, size_t i,
                        struct mla_metrics_figure *figure);

#endif
