/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.c - the set of outputs a declared arithmetic may produce, column by column.
 *
 * errors.c has shown: the kernel's quotient before normalisation rounding is y = N/D with
 *     N = sum_j w_j t_j (1+rho_j)(1+nu_j) v_j + aN,   D = sum_j w_j t_j (1+mu_j) + aD > 0,
 *     1-Gl_j <= t_j <= 1+G_j,  |rho_j| <= rho,  |nu_j| <= nu,  |mu_j| <= mu,
 *     |aN| <= absN + flushed V, |aD| <= absD, or, "per weight", absN and absD times sum w_j t_j.
 *     absN = (1+nu) (key_abs sum_j |v_j| + row_abs),
 *     flushed V = (1+nu) sum over subnormal v_j of most_j |v_j|.
 *
 * A. THE COMMON FORMULA.  With o = sum w_j v_j and sum w_j = 1, sum w_j (v_j - o) = 0, hence
 *        N - o D = sum w_j (t_j - 1)(v_j - o)
 *                + sum w_j t_j ((1+rho_j)(1+nu_j) - 1) v_j - o sum w_j t_j mu_j + aN - o aD:
 *    numerator and denominator see the same weights, and an error common to all cancels in the
 *    first line.
 *        |y - o| <= [ sum w_j G_j |v_j - o| + sum w_j (1+G_j)(rho + nu(1+rho)) |v_j|
 *                     + mu |o| sum w_j (1+G_j) + absN + flushed V + |o| absD ] / least D.
 *    (If the sum adds rounded p, rho = 0 and its rounding is in G; else G = H: both are "spill".
 *    Per weight, absN and absD count times the greatest sum w_j t_j.)
 *
 * B. THE EXACT END, where the least D is small and A is lavish.  y >= t needs N - t D >= 0, and
 *    its largest value over every choice above is
 *        F(t) = sum_j max over t_j of w_j t_j c_j(t) + absN + flushed V + |t| absD,
 *        c_j(t) = max (1+rho)(1+nu) v_j - t (1+mu)
 *               = v_j (v_j > 0 ? (1+rho)(1+nu) : (1-rho)(1-nu)low)
 *                 - t (t > 0 ? (1-mu)low : 1+mu).
 *    c_j is convex in t, so is the maximum of its positive multiples, so is F; and F falls
 *    everywhere at a rate of at least the least D: c_j by (1-mu)low or more, times w_j (1-Gl_j) or
 *    more, less absD. (Per weight absN + |t| absD is added to every c_j instead: convex as well,
 *    and c_j falls by (1-mu)low - absD or more.) So F(t) <= 0 makes t an upper bound of y, and for
 *    every t whatsoever
 *        y <= t + max(0, F(t)) / (least D).
 *    Newton's steps t + F/|F'| from t = o, where F(o) >= 0 up to its rounding, stay left of the
 *    root of a convex falling function and close in on it. Nothing rests on that: F falls at a rate
 *    of at least the least D everywhere, so from any t, also one right of the root, one last step
 *    F/(least D), taken only if F > 0, ends at or beyond the root. Where we start and stop decides
 *    how sharp the end is, not whether it holds.
 *    F is evaluated upward: a term is five operations, each off by 2^-53 of its parts' magnitudes
 *    w_j t_j (|v_j| + |t|), the sum n more: below (n+9) 2^-52 of their total. The sign of c_j
 *    chooses between the ends of t_j, which may lie far apart, and rounding may turn it; so the
 *    upper end is taken unless c_j is below 0 by 2^-50 of its parts, beyond any rounding. Where
 *    that makes a term too small, it is by at most 4 * 2^-52 of the magnitudes with the upper end,
 *    which are then the ones counted: together below (n+16) 2^-52.
 *    The lower end is the same with v -> -v.
 *
 *    This end is attained, but for the absolute terms: it needs no first-order term, and no 1 - k u
 *    in a denominator, which the common formula's textbook form would have.
 *
 * Then the normalisation: |result - y| <= div |y| + div_abs, and the model's output rounding,
 * which is monotone, maps the two real ends to the ends of the accepted set.
 */
#include "oracle/bf16.h"
#include "oracle/errors.h"
#include "oracle/known.h"
#include "oracle/stored.h"
#include "oracle/wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Below this least denominator the exact end is worth its cost. */
#define COMMON_MIN 0.9

/* Newton steps of the exact end; piecewise linear functions need few. */
#define STEPS_MAX 24

/* Operations in the longest formula here, generously. */
#define FORMULA 40

static double up(double x)
{
    return mla_oracle_up(x, FORMULA);
}

/* ---- what V meets by underflow ----------------------------------------------------------------*/

/* absN of one column. */
static double numerator_abs(const struct mla_oracle_errors *e, double abs_value)
{
    return up((1.0 + e->nu) * (e->key_abs * abs_value + e->row_abs));
}

/* Flushed V of every column, into lost. most: the greatest weight each value can meet. */
static void flushed_values(const struct mla_truth *t, const struct mla_oracle_errors *e,
                           const double *most, double *lost)
{
    memset(lost, 0, (size_t)t->columns_n * sizeof *lost);
    for (int64_t j = 0; j < t->keys_n; j++) {
        for (int64_t l = 0; l < t->columns_n; l++) {
            if (mla_oracle_bf16_is_subnormal(t->value[j][l])) {
                lost[l] += most[j] * fabs(mla_oracle_bf16_value(t->value[j][l]));
            }
        }
    }
    for (int64_t l = 0; l < t->columns_n; l++) {
        lost[l] = mla_oracle_up(lost[l] * (1.0 + e->nu), 2 * t->keys_n + 2);
    }
}

/* ---- A. the common formula --------------------------------------------------------------------*/

/* One key's term of every column's sum below. */
MLA_ORACLE_INNER void add_common(const uint16_t *restrict row, const double *restrict out,
                                 double spread, double spill, int64_t n, double *restrict sums)
{
    for (int64_t l = 0; l < n; l++) {
        const double v = mla_oracle_bf16_value(row[l]);

        sums[l] += spread * fabs(v - out[l]) + spill * fabs(v);
    }
}

MLA_ORACLE_WIDE static void add_common_wide(const uint16_t *row, const double *out, double spread,
                                            double spill, int64_t n, double *sums)
{
    add_common(row, out, spread, spill, n, sums);
}

/* sums[l] = sum_j spread_j |v_jl - out_l| + spill_j |v_jl|, upper but for |out_l - o_l|. */
static void common_sums(const struct mla_truth *t, const struct mla_oracle_errors *e, double *sums)
{
    const bool is_wide = mla_oracle_is_wide();

    for (int64_t j = 0; j < t->keys_n; j++) {
        if (is_wide) {
            add_common_wide(t->value[j], t->out, e->spread[j], e->spill[j], t->columns_n, sums);
        } else {
            add_common(t->value[j], t->out, e->spread[j], e->spill[j], t->columns_n, sums);
        }
    }
    for (int64_t l = 0; l < t->columns_n; l++) {
        sums[l] = mla_oracle_up(sums[l], t->keys_n + 8); /* four operations a term, then the sum */
    }
}

/* |result - o| before output rounding. */
static double common_radius(const struct mla_truth *t, const struct mla_oracle_errors *e, int64_t l,
                            double sum, double lost)
{
    const double size = up(fabs(t->out[l]) + t->out_radius[l]);
    const double times = e->is_per_weight ? e->up_sum : 1.0;
    const double numerator = sum + e->spread_sum * t->out_radius[l] + e->mu * size * e->up_sum +
                             (numerator_abs(e, t->abs_value[l]) + size * e->abs_d) * times + lost;
    const double quotient = up(numerator / e->denominator);

    return up(quotient + e->div * (size + quotient) + e->div_abs);
}

/* ---- B. the exact end -------------------------------------------------------------------------*/

/* One column, seen from above: v holds the values, or their negatives for the lower end. */
struct column {
    const struct mla_oracle_errors *errors;
    const double *v;
    int64_t keys_n;
    double abs_n;  /* absN */
    double lost;   /* flushed V */
    double grow;   /* (1+rho)(1+nu), upper */
    double shrink; /* (1-rho)(1-nu), lower */
    double widest; /* max |v_j| */
    double slope;  /* set by excess(): |F'(t)|, for the next step only */
};

/* What excess() adds up over the keys. */
struct terms {
    double gain;      /* w_j t_j c_j(t) */
    double magnitude; /* of their parts */
    double weight;    /* w_j t_j */
};

/* How the terms depend on t. */
struct point {
    double shift; /* t times its factor */
    double lift;  /* per weight: absN + |t| absD */
};

#define LANES 8

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t masks __attribute__((vector_size(LANES * sizeof(int64_t))));

/* Keys eight at a time: any order of the sums is within the bound of the file head. */
MLA_ORACLE_INNER void add_terms(const struct column *c, const struct point *at, struct terms *sums)
{
    const struct mla_oracle_errors *e = c->errors;
    const lanes grow = (lanes){0} + c->grow;
    const lanes shrink = (lanes){0} + c->shrink;
    lanes gains = {0};
    lanes magnitudes = {0};
    lanes weights = {0};
    int64_t j = 0;

    for (; j + LANES <= c->keys_n; j += LANES) {
        lanes v;
        lanes up_j;
        lanes down_j;

        memcpy(&v, c->v + j, sizeof v);
        memcpy(&up_j, e->up + j, sizeof up_j);
        memcpy(&down_j, e->down + j, sizeof down_j);
        const masks is_positive = v > 0.0;

        v *= (lanes)((is_positive & (masks)grow) | (~is_positive & (masks)shrink));
        const lanes parts = (lanes)((masks)v & INT64_MAX) + fabs(at->shift) + at->lift;
        const lanes gain = v - at->shift + at->lift;
        const masks takes_up = gain > -0x1p-50 * parts;
        const lanes weight = (lanes)((takes_up & (masks)up_j) | (~takes_up & (masks)down_j));

        gains += weight * gain;
        magnitudes += weight * parts;
        weights += weight;
    }
    *sums = (struct terms){0.0, 0.0, 0.0};
    for (int i = 0; i < LANES; i++) {
        sums->gain += gains[i];
        sums->magnitude += magnitudes[i];
        sums->weight += weights[i];
    }
    for (; j < c->keys_n; j++) {
        const double v = c->v[j] * (c->v[j] > 0.0 ? c->grow : c->shrink);
        const double parts = fabs(v) + fabs(at->shift) + at->lift;
        const double gain = v - at->shift + at->lift;
        const double weight = gain > -0x1p-50 * parts ? e->up[j] : e->down[j];

        sums->gain += weight * gain;
        sums->magnitude += weight * parts;
        sums->weight += weight;
    }
}

MLA_ORACLE_WIDE static void add_terms_wide(const struct column *c, const struct point *at,
                                           struct terms *sums)
{
    add_terms(c, at, sums);
}

/* F(t), upper. */
static double excess(struct column *c, double t)
{
    const struct mla_oracle_errors *e = c->errors;
    const double factor = t > 0.0 ? e->mu_low : 1.0 + e->mu;
    const double turn = t > 0.0 ? -e->abs_d : e->abs_d; /* what |t| absD does to the slope */
    const double absolute = up(c->abs_n + fabs(t) * e->abs_d);
    const struct point at = {.shift = t * factor, .lift = e->is_per_weight ? absolute : 0.0};
    const double once = up((e->is_per_weight ? 0.0 : absolute) + c->lost);
    struct terms sums;

    if (mla_oracle_is_wide()) {
        add_terms_wide(c, &at, &sums);
    } else {
        add_terms(c, &at, &sums);
    }
    const double rounding = up(sums.magnitude * ((double)c->keys_n + 16.0) * 0x1p-52);

    c->slope = e->is_per_weight ? sums.weight * (factor + turn) : sums.weight * factor + turn;
    /* Two additions more: of magnitudes already in `rounding`, and of `once`. */
    return sums.gain + rounding + up(once) + 0x1p-52 * once;
}

/*
 * A point between t and end with F <= 0, or end. Where weights are so uncertain that the least D is
 * 10^-15 or less, F's rounding over it is no use; a point just right of the root shows itself by
 * its sign instead.
 */
static double step_beyond(struct column *c, double t, double end)
{
    for (double step = fmax(0x1p-48 * fmax(fabs(t), c->widest), 0x1p-200); t + step < end;
         step *= 4.0) {
        if (excess(c, t + step) <= 0.0) {
            return t + step;
        }
    }
    return end + 0x1p-52 * fabs(end);
}

/* An upper bound of y for the column, from t = start. */
static double upper_end(struct column *c, double start)
{
    double t = start;
    double f = excess(c, t);

    for (int step = 0; step < STEPS_MAX && f > 0.0; step++) {
        const double next = t + f / fmax(c->slope, c->errors->denominator);
        const double moved = next - t;

        if (!(moved > 0x1p-30 * (next - start)) || !(moved > 0x1p-50 * fabs(next))) {
            break;
        }
        t = next;
        f = excess(c, t);
    }
    const double end = t + up(fmax(0.0, f) / c->errors->denominator);

    return step_beyond(c, t, end);
}

/* Ends of the result before output rounding, from the ends of y: normalisation added. */
static double normalised_end(const struct mla_oracle_errors *e, double y)
{
    const double end = y + up(e->div * fabs(y) + e->div_abs);

    return end + 0x1p-52 * fabs(end);
}

/* Both ends of one column, by B. values: room for keys_n doubles. */
static void exact_ends(const struct mla_truth *t, const struct mla_oracle_errors *e, int64_t l,
                       double lost, double *values, double *low, double *high)
{
    struct column c = {.errors = e, .v = values, .keys_n = t->keys_n};

    c.abs_n = numerator_abs(e, t->abs_value[l]);
    c.lost = lost;
    c.grow = up((1.0 + e->rho) * (1.0 + e->nu));
    c.shrink = mla_oracle_down((1.0 - e->rho) * e->nu_low, FORMULA);
    for (int64_t j = 0; j < t->keys_n; j++) {
        values[j] = mla_oracle_bf16_value(t->value[j][l]);
        c.widest = fmax(c.widest, fabs(values[j]));
    }
    *high = normalised_end(e, upper_end(&c, t->out[l]));
    for (int64_t j = 0; j < t->keys_n; j++) {
        values[j] = -values[j];
    }
    *low = -normalised_end(e, upper_end(&c, -t->out[l]));
}

/* ---- the accepted set -------------------------------------------------------------------------*/

static uint16_t rounded(const struct mla_model *model, double x)
{
    return model->out_round == MLA_OUT_TRUNCATE ? mla_oracle_bf16_truncate(x)
                                                : mla_oracle_bf16_nearest(x);
}

/* An element's real ends; what is still missing follows in finish_all. */
static struct mla_bound element(double o, double low, double high)
{
    return (struct mla_bound){.o = o, .low = low, .high = high};
}

/*
 * Is a double from 2^-126 on more than one of its own places away from every tie between two bf16?
 * Those have a 1 and then zeros in the 45 bits of the fraction that a bf16 lacks.
 */
static bool is_clear_of_ties(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= (UINT64_C(1) << 45) - 1;
    return fabs(x) >= 0x1p-126 &&
           (bits < (UINT64_C(1) << 44) - 1 || bits > (UINT64_C(1) << 44) + 1);
}

/*
 * The bf16 nearest to o_l. Where o's double is half way between two of them, the side is told by the
 * rest of o, unless that is not known to be on either (mla_truth_nearest asks further).
 */
static uint16_t nearest_to(const struct mla_truth *t, int64_t l)
{
    if (is_clear_of_ties(t->out[l])) {
        return mla_oracle_bf16_nearest(t->out[l]);
    }
    const uint16_t below = mla_oracle_bf16_nearest(nextafter(t->out[l], -INFINITY));
    const uint16_t above = mla_oracle_bf16_nearest(nextafter(t->out[l], INFINITY));

    if (below == above || fabs(t->out_low[l]) <= t->out_low_radius[l]) {
        return mla_oracle_bf16_nearest(t->out[l]);
    }
    return t->out_low[l] > 0.0 ? above : below;
}

/* Output rounding of the ends, and the figures that describe them. */
static void finish_all(const struct mla_truth *t, const struct mla_model *model,
                       struct mla_bound *bounds)
{
    for (int64_t l = 0; l < t->columns_n; l++) {
        struct mla_bound *bound = &bounds[l];

        bound->lo = (float)mla_oracle_bf16_value(rounded(model, bound->low));
        bound->hi = (float)mla_oracle_bf16_value(rounded(model, bound->high));
        bound->nearest = nearest_to(t, l);
        bound->radius = up(fmax(fabs(bound->high - bound->o), fabs(bound->low - bound->o)));
    }
}

static int32_t state_of(const struct mla_truth *truth)
{
    switch (truth->state) {
    case MLA_ROW_OK:
        return MLA_BOUND_OK;
    case MLA_ROW_EMPTY:
        return MLA_BOUND_EMPTY;
    case MLA_ROW_NONFINITE:
        return MLA_BOUND_NONFINITE;
    default:
        return MLA_BOUND_RANGE;
    }
}

/* Beyond the real number that was rounded to x: a normal x moves on by at least one place. */
static double beyond(double x)
{
    return x + (0x1p-52 * fabs(x) + 0x1p-1000);
}

static void all_common(const struct mla_truth *t, const struct mla_oracle_errors *e, double *sums,
                       const double *lost, struct mla_bound *bounds)
{
    common_sums(t, e, sums);
    for (int64_t l = 0; l < t->columns_n; l++) {
        /* |out - o| <= out_radius is part of the distance from `out`. */
        const double radius = up(common_radius(t, e, l, sums[l], lost[l]) + t->out_radius[l]);
        const double o = t->out[l];

        bounds[l] = element(o, -beyond(radius - o), beyond(o + radius));
    }
}

static void all_exact(const struct mla_truth *t, const struct mla_oracle_errors *e, double *values,
                      const double *lost, struct mla_bound *bounds)
{
    for (int64_t l = 0; l < t->columns_n; l++) {
        double low;
        double high;

        exact_ends(t, e, l, lost[l], values, &low, &high);
        bounds[l] = element(t->out[l], fmin(low, t->out[l]), fmax(high, t->out[l]));
    }
}

/*
 * C. KNOWN ROUNDING OF p. Where the model says how and in which frame p is rounded, known.c gives a
 * second interval for the quotient. A conforming kernel lies in both, so in what they share. That
 * is taken of the real ends; it cannot be empty unless the oracle is wrong.
 */
static int32_t all_known(const struct mla_truth *t, const struct mla_model *model,
                         const struct mla_oracle_errors *e, double *lost, struct mla_bound *bounds)
{
    const size_t columns_n = (size_t)t->columns_n;
    double *room = NULL; /* middle, radius, work */
    struct mla_oracle_known known;
    int32_t state = mla_oracle_known_make(t, model, e, &known);

    if (state != MLA_OK || !known.is_usable) {
        goto done;
    }
    state = MLA_ERR_NOMEM;
    room = calloc((3 + MLA_ORACLE_STORED_ROOM) * columns_n, sizeof *room);
    if (room == NULL) {
        goto done;
    }
    if (model->flush && t->has_subnormal_value) {
        flushed_values(t, e, known.most, lost);
    }
    mla_oracle_known_columns(t, e, &known, lost, room, room + columns_n, room + 2 * columns_n);
    state = MLA_OK;
    for (int64_t l = 0; l < t->columns_n; l++) {
        const double middle = room[l];
        const double radius = room[t->columns_n + l];
        const double wide = radius + 0x1p-52 * (fabs(middle) + radius); /* middle -+ it rounds */
        const double low = -normalised_end(e, wide - middle);
        const double high = normalised_end(e, middle + wide);
        struct mla_bound *bound = &bounds[l];

        bound->low = fmax(low, bound->low);
        bound->high = fmin(high, bound->high);
        if (!(bound->low <= bound->high)) {
            state = MLA_ERR_INTERNAL;
        }
    }
done:
    free(room);
    mla_oracle_known_free(&known);
    return state;
}

int32_t mla_bound_row(const struct mla_truth *truth, const struct mla_model *model,
                      struct mla_bound *bounds)
{
    struct mla_oracle_errors errors = {0};
    int32_t state = state_of(truth);
    double *lost = NULL;
    double *work = NULL;

    if (state != MLA_BOUND_OK) {
        return state;
    }
    if (mla_bound_model_error(model, truth->is_ring) != NULL) {
        return MLA_BOUND_MODEL;
    }
    const int64_t work_n = truth->columns_n > truth->keys_n ? truth->columns_n : truth->keys_n;

    lost = calloc((size_t)truth->columns_n, sizeof *lost);
    work = calloc((size_t)work_n, sizeof *work);
    state = MLA_ERR_NOMEM;
    if (lost == NULL || work == NULL || mla_oracle_errors_make(truth, model, &errors) != MLA_OK) {
        goto done;
    }
    state = errors.state;
    if (state != MLA_BOUND_OK) {
        goto done;
    }
    if (model->flush && truth->has_subnormal_value) {
        flushed_values(truth, &errors, errors.most, lost);
    }
    if (errors.denominator >= COMMON_MIN) {
        all_common(truth, &errors, work, lost, bounds);
    } else {
        all_exact(truth, &errors, work, lost, bounds);
    }
    state = all_known(truth, model, &errors, lost, bounds);
    finish_all(truth, model, bounds);
done:
    mla_oracle_errors_free(&errors);
    free(work);
    free(lost);
    return state;
}
