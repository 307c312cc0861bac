/* SPDX-License-Identifier: Apache-2.0
 *
 * test_toy.c - see test_toy.h.
 *
 * Values are carried in double. An honest rounding makes them binary32 (a sum, difference, product
 * or quotient of two binary32, formed in double and rounded once more, is correctly rounded). A
 * choosing kernel multiplies the exact result by 1 + u*s with |s| < 1 by a millionth, which pays
 * for the double arithmetic around it, or in the subnormal range adds up to f.
 */
#include "oracle/test_toy.h"

#include "oracle/bf16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS     MLA_ORACLE_TOY_COLUMNS
#define NORMAL_MIN  0x1p-126
#define JUST_INSIDE (1.0 - 1e-6)

struct state {
    double
        m; /* running maximum, of raw scores or of scaled ones if the model keeps a scaled shift */
    double raw; /* where the shift is the maximum scaled: that maximum */
    double l;
    double o[COLUMNS];
    double tilt; /* sum of weights times (v - target) in the pushed column: which way a rescale
                    pushes */
    int64_t rescales_n; /* so far */
};

/* ---- choosing a rounding ----------------------------------------------------------------------*/

/* Does it go as far as it may in the direction given? */
static bool pushes(const struct mla_oracle_toy *toy)
{
    return toy->choice == MLA_ORACLE_TOY_GREEDY || toy->choice == MLA_ORACLE_TOY_BLIND;
}

/* Where the sums of column l are pushed. */
static double push_of(const struct mla_oracle_toy *toy, int64_t l)
{
    return toy->choice == MLA_ORACLE_TOY_BLIND ? toy->push[l] : toy->direction;
}

/* A number in [-1, 1]: towards dir if it pushes, anything if random. */
static double choose(const struct mla_oracle_toy *toy, double dir)
{
    if (pushes(toy)) {
        return dir * JUST_INSIDE;
    }
    const double uniform = mla_oracle_test_uniform(toy->random);

    if (uniform < 0.4) {
        return uniform < 0.2 ? -JUST_INSIDE : JUST_INSIDE;
    }
    return (2.0 * mla_oracle_test_uniform(toy->random) - 1.0) * JUST_INSIDE;
}

/* Would a choosing kernel flush this subnormal? Only if that goes the right way. */
static bool chooses_to_flush(const struct mla_oracle_toy *toy, double x, double dir)
{
    if (pushes(toy)) {
        return x * dir < 0.0;
    }
    return mla_oracle_test_uniform(toy->random) < 0.5;
}

/* x after a rounding of relative size u (0: none) by a choosing kernel; dir is where it pushes x.
 */
static double chosen(const struct mla_oracle_toy *toy, double x, double u, double dir)
{
    if (x == 0.0) {
        return x;
    }
    if (fabs(x) < NORMAL_MIN) {
        if (toy->model->flush) {
            return chooses_to_flush(toy, x, dir) ? 0.0 : x;
        }
        return u > 0.0 ? x + choose(toy, dir) * 0x1p-149 : x;
    }
    return x + fabs(x) * u * choose(toy, dir);
}

static double flushed(const struct mla_oracle_toy *toy, double x)
{
    return toy->model->flush && fabs(x) < NORMAL_MIN ? 0.0 : x;
}

/* One binary32 operation with exact result x. */
static double rounded(const struct mla_oracle_toy *toy, double x, double dir)
{
    if (toy->choice != MLA_ORACLE_TOY_HONEST) {
        return chosen(toy, x, toy->model->add_u, dir);
    }
    float y = (float)x;

    if (toy->model->add_u > 0x1p-24 && fabs((double)y) > fabs(x)) {
        y = nextafterf(y, 0.0f); /* a truncating unit */
    }
    return flushed(toy, (double)y);
}

/* An extra rounding of relative size u: none, as honestly if it is finer than bf16's, to nearest
 * bf16 (2^-8), or towards zero (2^-7). */
static double extra(const struct mla_oracle_toy *toy, double x, double u, double dir)
{
    if (u == 0.0) {
        return x;
    }
    if (toy->choice != MLA_ORACLE_TOY_HONEST) {
        return chosen(toy, x, u, dir);
    }
    if (u < 0x1p-8) {
        return x;
    }
    if (u < 0x1p-7) {
        return flushed(toy, mla_oracle_test_value(mla_oracle_test_bf16((float)x)));
    }
    return flushed(toy, mla_oracle_bf16_value(mla_oracle_bf16_truncate(x)));
}

/* An input: may count as zero if it is subnormal and subnormals are flushed. */
static double input(const struct mla_oracle_toy *toy, uint16_t b, double dir)
{
    const double x = (double)mla_oracle_test_value(b);

    if (!toy->model->flush || x == 0.0 || fabs(x) >= NORMAL_MIN) {
        return x;
    }
    if (toy->choice == MLA_ORACLE_TOY_HONEST) {
        return 0.0;
    }
    return chooses_to_flush(toy, x, dir) ? 0.0 : x;
}

static double exponential(const struct mla_oracle_toy *toy, double arg, double dir)
{
    const struct mla_model *m = toy->model;
    const double exact = toy->log2_domain ? exp2(arg) : exp(arg);
    double error = m->exp_error;

    if (m->exp_slope > 0.0) {
        if (arg == 0.0) {
            return 1.0;
        }
        error = fmin(error, m->exp_slope * fabs(arg) + 2.0 * m->add_u);
    }
    if (exact <= m->exp_floor) {
        const bool is_zero = toy->choice == MLA_ORACLE_TOY_HONEST ? true
                             : pushes(toy)                        ? dir < 0.0
                                                                  : chooses_to_flush(toy, 1, 0);

        return is_zero ? 0.0 : exact;
    }
    if (toy->choice != MLA_ORACLE_TOY_HONEST) {
        return chosen(toy, exact, error, dir);
    }
    /* A rough exponential is off by a wavy 3/4 of what it declares. */
    return (double)(float)(exact * (1.0 + 0.75 * (error - 0x1p-24) * sin(1e3 * arg)));
}

/* ---- scores and arguments ---------------------------------------------------------------------*/

/* Key j's score, pushed towards dir. */
static double score(const struct mla_oracle_toy *toy, const struct mla_oracle_test_row *row,
                    int64_t j, double dir)
{
    const struct mla_model *m = toy->model;
    const int64_t width = row->args.head_dim;
    double s = 0.0;

    for (int64_t i = 0; i < width; i++) {
        const double q = input(toy, row->q[i], 0.0);
        const double k = input(toy, row->kv[j * width + i], dir * q);
        double product = q * k;

        if (m->product_u > 0.0) {
            product = extra(toy, product, m->product_u, dir);
        }
        if (toy->choice == MLA_ORACLE_TOY_HONEST) {
            product = (double)(float)product;
        } else {
            product = chosen(toy, product, 0.0, dir);
        }
        s = s == 0.0 ? product : rounded(toy, s + product, dir);
    }
    s = extra(toy, s, m->score_u, dir);
    if (m->arg_form == MLA_ARG_SCALED) {
        s *= (double)row->args.scale; /* scores are scaled from here on */
        s = toy->fuses ? s : rounded(toy, s, dir);
    }
    return s;
}

/* The scale times log2 e where that is the domain; one rounding, the same for all keys. */
static double scale_of(const struct mla_oracle_toy *toy, const struct mla_oracle_test_row *row)
{
    const double scale = toy->fault == MLA_ORACLE_TOY_FORGETS_SCALE ? 1.0 : (double)row->args.scale;

    return toy->log2_domain ? rounded(toy, scale * 0x1.71547652b82fep+0, 1.0) : scale;
}

/* The exponential's argument for score s (or an old maximum) under the shift m. */
static double argument(const struct mla_oracle_toy *toy, double scale, double s, double m,
                       double dir)
{
    switch (toy->model->arg_form) {
    case MLA_ARG_DIFFERENCE:
        return rounded(toy, rounded(toy, s - m, dir) * scale, dir);
    case MLA_ARG_SCALED:
        return rounded(toy, s - m, dir);
    default:
        return rounded(toy, rounded(toy, s * scale, dir) - rounded(toy, m * scale, -dir), dir);
    }
}

/* ---- the online softmax -----------------------------------------------------------------------*/

/* Carry a state to the shift m. */
static void rescale(const struct mla_oracle_toy *toy, double scale, struct state *st, double m)
{
    const struct mla_model *model = toy->model;
    const bool is_blind = toy->choice == MLA_ORACLE_TOY_BLIND;
    const double dir = toy->direction * (st->tilt < 0.0 && !is_blind ? -1.0 : 1.0);
    const double against = toy->direction * (toy->target < 0.0 ? 1.0 : -1.0);
    double used = scale;

    if (st->l == 0.0 || m == st->m) {
        st->m = m;
        return;
    }
    if (model->rescale_scale_u > 0.0) {
        used = extra(toy, scale, model->rescale_scale_u, -dir);
    }
    double alpha = exponential(toy, argument(toy, used, st->m, m, dir), dir);

    alpha = extra(toy, alpha, model->alpha_u, dir);
    st->m = m;
    st->rescales_n++;
    if (toy->fault == MLA_ORACLE_TOY_OMITS_RESCALE ||
        (toy->fault == MLA_ORACLE_TOY_OMITS_FIRST_RESCALE && st->rescales_n == 1)) {
        return;
    }
    st->l = rounded(toy, st->l * alpha, against);
    st->tilt *= alpha;
    if (toy->fault == MLA_ORACLE_TOY_RESCALES_SUM_ONLY) {
        return;
    }
    for (int64_t l = 0; l < COLUMNS; l++) {
        st->o[l] = rounded(toy, st->o[l] * alpha, push_of(toy, l));
    }
}

/* p as it meets V. Where its rounding is declared, only whether a subnormal is flushed is a choice.
 */
static double cut(const struct mla_oracle_toy *toy, double p, double dir)
{
    const struct mla_model *m = toy->model;
    const bool is_known =
        m->p_frame != MLA_P_FRAME_UNKNOWN && (m->p_u == 0x1p-8 || m->p_u == 0x1p-7);

    if (!is_known || toy->choice == MLA_ORACLE_TOY_HONEST) {
        return extra(toy, p, m->p_u, dir);
    }
    const double rounded_p = mla_oracle_bf16_value(m->p_u == 0x1p-7 ? mla_oracle_bf16_truncate(p)
                                                                    : mla_oracle_bf16_nearest(p));

    if (m->flush && rounded_p > 0.0 && rounded_p < NORMAL_MIN) {
        return chooses_to_flush(toy, rounded_p, dir) ? 0.0 : rounded_p;
    }
    return rounded_p;
}

/* Add one key of score s. */
static void absorb_key(const struct mla_oracle_toy *toy, double scale, struct state *st,
                       const uint16_t *v, double s, double dir)
{
    const struct mla_model *m = toy->model;
    const double against = toy->direction * (toy->target < 0.0 ? 1.0 : -1.0);
    const double p = exponential(toy, argument(toy, scale, s, st->m, dir), dir);
    const double value = (double)mla_oracle_test_value(v[toy->column]);
    const double p_dir = m->sum_rounded || toy->choice == MLA_ORACLE_TOY_BLIND
                             ? dir
                             : toy->direction * (value < 0.0 ? -1.0 : 1.0);
    const double p_cut = cut(toy, p, p_dir);
    const double added = m->sum_rounded ? p_cut : p;

    st->l = st->l == 0.0 ? added : rounded(toy, st->l + added, against);
    st->tilt += p_cut * (value - toy->target);
    for (int64_t l = 0; l < COLUMNS; l++) {
        const double push = push_of(toy, l);
        double product = p_cut * input(toy, v[l], push);

        if (m->pv_product_u > 0.0) {
            product = extra(toy, product, m->pv_product_u, push);
        }
        product = rounded(toy, product, push);
        st->o[l] = st->o[l] == 0.0 ? product : rounded(toy, st->o[l] + product, push);
    }
}

/* Round the accumulators as their format says. */
static void store(const struct mla_oracle_toy *toy, struct state *st)
{
    const double u = toy->model->acc_u;

    st->l = extra(toy, st->l, u, toy->direction * (toy->target < 0.0 ? 1.0 : -1.0));
    for (int64_t l = 0; l < COLUMNS; l++) {
        st->o[l] = extra(toy, st->o[l], u, push_of(toy, l));
    }
}

/* How many stores come before a block's keys, out and sum being only rescaled. */
static int64_t early_stores(const struct mla_oracle_toy *toy)
{
    const struct mla_model *m = toy->model;
    const int64_t declared =
        m->acc_stores == MLA_ACC_STORES_BLOCKS ? (int64_t)m->acc_extra.per_block - 1 : 0;

    return declared + (toy->fault == MLA_ORACLE_TOY_STORES_TWICE ? 1 : 0);
}

/* Keys first .. end-1 as one block; scores and directions are indexed by key. */
static void absorb_block(const struct mla_oracle_toy *toy, const struct mla_oracle_test_row *row,
                         double scale, struct state *st, const double *scores, const double *dirs,
                         int64_t first, int64_t end)
{
    double m = toy->fuses ? st->raw : st->m;

    for (int64_t j = first; j < end; j++) {
        m = fmax(m, scores[j]);
    }
    if (toy->fuses) {
        const bool is_kept = m == st->raw;

        st->raw = m;
        m = is_kept ? st->m : rounded(toy, m, -toy->direction);
    }
    rescale(toy, scale, st, m);
    for (int64_t i = 0; i < early_stores(toy); i++) {
        store(toy, st);
    }
    for (int64_t j = first; j < end; j++) {
        if (toy->fault == MLA_ORACLE_TOY_DROPS_A_KEY && j == row->n / 2) {
            continue;
        }
        absorb_key(toy, scale, st, row->kv + j * row->args.head_dim, scores[j], dirs[j]);
    }
    store(toy, st);
}

static void absorb_range(const struct mla_oracle_toy *toy, const struct mla_oracle_test_row *row,
                         double scale, struct state *st, const double *scores, const double *dirs,
                         int64_t first, int64_t end)
{
    const int64_t step = toy->block_keys > 0 ? toy->block_keys : end - first;
    const int64_t *listed = toy->block_ends;
    int64_t j = first;

    while (j < end) {
        const int64_t block_end = listed != NULL ? *listed++ : j + step;

        absorb_block(toy, row, scale, st, scores, dirs, j, block_end < end ? block_end : end);
        j = block_end;
    }
}

/* b into a: both to the common maximum, then added. */
static void merge(const struct mla_oracle_toy *toy, double scale, struct state *a, struct state *b)
{
    const double m = fmax(a->m, b->m);
    const double against = toy->direction * (toy->target < 0.0 ? 1.0 : -1.0);

    rescale(toy, scale, a, m);
    rescale(toy, scale, b, m);
    a->l = rounded(toy, a->l + b->l, against);
    for (int64_t l = 0; l < COLUMNS; l++) {
        a->o[l] = rounded(toy, a->o[l] + b->o[l], push_of(toy, l));
    }
}

static void finish(const struct mla_oracle_toy *toy, double scale, const struct state *st,
                   struct mla_oracle_toy_result *result)
{
    const bool truncates = toy->model->out_round == MLA_OUT_TRUNCATE;

    for (int64_t l = 0; l < COLUMNS; l++) {
        double y = rounded(toy, st->o[l] / st->l, push_of(toy, l));

        y = flushed(toy, y);
        result->real[l] = y;
        result->out[l] = truncates                              ? mla_oracle_bf16_truncate(y)
                         : toy->choice == MLA_ORACLE_TOY_HONEST ? mla_oracle_test_bf16((float)y)
                                                                : mla_oracle_bf16_nearest(y);
    }
    result->sum = st->l;
    result->max = toy->model->arg_form == MLA_ARG_SCALED ? st->m : rounded(toy, st->m * scale, 1.0);
}

void mla_oracle_toy_run(const struct mla_oracle_toy *toy, const struct mla_oracle_test_row *row,
                        struct mla_oracle_toy_result *result)
{
    const int64_t n = row->n + (toy->fault == MLA_ORACLE_TOY_SEES_THE_FUTURE);
    const int64_t half = toy->merges ? n / 2 : n;
    const double scale = scale_of(toy, row);
    double *scores = calloc((size_t)n, sizeof *scores);
    double *dirs = calloc((size_t)n, sizeof *dirs);
    struct state st = {.m = -INFINITY, .raw = -INFINITY};
    struct state other = {.m = -INFINITY, .raw = -INFINITY};

    if (scores == NULL || dirs == NULL) {
        abort();
    }
    for (int64_t j = 0; j < n; j++) {
        const double v =
            (double)mla_oracle_test_value(row->kv[j * row->args.head_dim + toy->column]);

        dirs[j] = v >= toy->target ? toy->direction : -toy->direction;
        if (toy->choice == MLA_ORACLE_TOY_BLIND) {
            dirs[j] = toy->blind[j];
        }
        scores[j] = score(toy, row, j, dirs[j]);
    }
    absorb_range(toy, row, scale, &st, scores, dirs, 0, half);
    if (half < n) {
        absorb_range(toy, row, scale, &other, scores, dirs, half, n);
        if (half == 0) {
            st = other;
        } else {
            merge(toy, scale, &st, &other);
        }
    }
    finish(toy, (double)row->args.scale, &st, result);
    free(dirs);
    free(scores);
}
