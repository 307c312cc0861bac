/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.c - the sums over the judged elements, and the figures made of them.
 *
 * An element is measured in units of the last place at o, a power of two read off the bits of o.
 * This runs for every judged element while fuzzing: one division, one square root, no library call,
 * and no branch that depends on the sign or size of an error, which nobody can predict.
 */
#include "fuzz/metrics.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "fuzz/criteria.h"
#include "fuzz/number.h"

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 1 over the spacing of bf16 at a finite |o| < 2^128: 2^(7-exponent), at most 2^133. */
static double per_ulp(double o)
{
    uint64_t exponent = bits_of(o) >> 52 & 0x7ff; /* biased by 1023; below 2^-126: as there */
    exponent = exponent < 1023 - 126 ? 1023 - 126 : exponent;
    return from_bits((2 * 1023 + 7 - exponent) << 52);
}

/* The top 16 bits of a positive double are its exponent and four more: 16 steps an octave. */
#define BUCKET_SHIFT 48
#define BUCKET_FIRST ((uint64_t)(1023 + MLA_METRICS_ULP_LOW) << 4)

static size_t bucket_of(double ulp)
{
    uint64_t key = bits_of(ulp) >> BUCKET_SHIFT;
    if (key < BUCKET_FIRST)
        return 0;
    key -= BUCKET_FIRST - 1;
    return key < MLA_METRICS_BUCKETS_N ? (size_t)key : MLA_METRICS_BUCKETS_N - 1;
}

/* The least number above all of a bucket. */
static double bucket_end(size_t bucket)
{
    if (bucket == MLA_METRICS_BUCKETS_N - 1)
        return INFINITY;
    return from_bits((BUCKET_FIRST + bucket) << BUCKET_SHIFT);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* What the published rules need. */
static void add_moments(struct mla_metrics_sums *s, double got, double value, double error)
{
    if (s->elements_n == s->nonfinite_n + 1) { /* the first finite one */
        s->value_first = value;
        s->got_first = got;
    }
    double v = value - s->value_first, g = got - s->got_first;
    s->value_sum += v;
    s->got_sum += g;
    s->value_moment += v * v;
    s->got_moment += g * g;
    s->product_moment += v * g;
    s->error2 += error * error;
    s->value2 += value * value;
    s->got2 += got * got;
    s->max_error = larger(fabs(error), s->max_error);
    s->max_value = larger(fabs(value), s->max_value);
    s->elements_broken |= mla_criteria_element(error, value);
}

/* Of one rounding, in square units of the last place, about 0: c of the header. */
static double rounding_variance(const struct mla_model *model)
{
    return model->out_round == MLA_OUT_NEAREST ? 1.0 / 12 : 1.0 / 3;
}

void mla_metrics_add(struct mla_metrics_sums *s, uint16_t bits, const struct mla_bound *bound,
                     const struct mla_model *model, double ratio)
{
    double got = (double)mla_number_from_bf16(bits), value = bound->o;
    s->elements_n++;
    if (!isfinite(got)) {
        s->nonfinite_n++;
        return;
    }
    double error = got - value, unit = per_ulp(value), ulp = fabs(error) * unit;
    double allowed = bound->radius * unit, rounding = rounding_variance(model);
    double z2 = ulp * ulp / (allowed * allowed * (1.0 / 3) + rounding), size = sqrt(z2);
    s->z2 += z2;
    s->z_up += copysign(size, error);
    s->z_outward += value == 0 ? size : copysign(size, error) * copysign(1.0, value);
    s->max_ratio = larger(ratio, s->max_ratio);
    s->max_ulp = larger(ulp, s->max_ulp);
    s->ulp_n[bucket_of(ulp)]++;
    s->exact_n += (bits == bound->nearest) | (((bits | bound->nearest) & 0x7fff) == 0);
    add_moments(s, got, value, error);
}

/* The percentile, over finite elements and those that are not: they come last. */
static double percentile(const struct mla_metrics_sums *s, int64_t percent)
{
    int64_t rank = (s->elements_n * percent + 99) / 100, below = 0;
    for (size_t i = 0; i < MLA_METRICS_BUCKETS_N; i++) {
        below += s->ulp_n[i];
        if (below >= rank)
            return bucket_end(i) < s->max_ulp ? bucket_end(i) : s->max_ulp;
    }
    return INFINITY;
}

void mla_metrics_finish(const struct mla_metrics_sums *s, struct mla_metrics *m)
{
    *m = (struct mla_metrics){.elements_n = s->elements_n};
    if (s->elements_n == 0)
        return;
    bool finite = s->nonfinite_n == 0;
    double n = (double)s->elements_n, scale = sqrt(s->z2);
    m->max_err_over_bound = finite ? s->max_ratio : INFINITY;
    m->max_ulp = finite ? s->max_ulp : INFINITY;
    m->p50_ulp = percentile(s, 50);
    m->p99_ulp = percentile(s, 99);
    m->rms_relative = !finite ? INFINITY : s->error2 == 0 ? 0 : sqrt(s->error2 / s->value2);
    m->bias_se = !finite ? NAN : scale == 0 ? 0 : s->z_up / scale;
    m->bias_outward_se = !finite ? NAN : scale == 0 ? 0 : s->z_outward / scale;
    m->correctly_rounded_percent = 100 * (double)s->exact_n / n;
    m->chi_square_ratio = finite ? s->z2 / n : INFINITY;
    m->would_pass = mla_criteria_judge(s);
}

#define FIGURE(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct mla_metrics, name)                                                  \
    }

static const struct {
    const char *name;
    size_t offset;
} figures[] = {
    FIGURE(max_err_over_bound),
    FIGURE(max_ulp),
    FIGURE(p50_ulp),
    FIGURE(p99_ulp),
    FIGURE(rms_relative),
    FIGURE(bias_se),
    FIGURE(bias_outward_se),
    FIGURE(correctly_rounded_percent),
    FIGURE(chi_square_ratio),
};
#define FIGURES_N (sizeof figures / sizeof figures[0])

bool mla_metrics_figure(const struct mla_metrics *metrics, size_t i,
                        struct mla_metrics_figure *figure)
{
    size_t criteria_n;
    const struct mla_criterion *criteria = mla_criteria(&criteria_n);
    if (i < FIGURES_N) {
        figure->name = figures[i].name;
        memcpy(&figure->value, (const char *)metrics + figures[i].offset, sizeof figure->value);
        return true;
    }
    i -= FIGURES_N;
    if (i >= criteria_n)
        return false;
    figure->name = criteria[i].metric;
    figure->value = (double)(metrics->would_pass >> i & 1u);
    return true;
}
