/* SPDX-License-Identifier: Apache-2.0
 *
 * energy.c - the row-energy test: are the errors of one row larger than chance can make them?
 *
 * The interval of bound.c holds for every choice of errors, also for one that pushes all n keys of
 * an element the same way. Errors of weights that were formed without looking at V cannot do that
 * if V's signs are fair coins: they add up like a random walk, sqrt(n) times less. This file turns
 * that into a theorem: a kernel that keeps its model is accused with a chance of at most
 * e^-log_tests for each row it is judged on, whatever else it does.
 *
 * 1. PREMISES.
 *    (a) v_jl = c |v_jl|, where c is a fair coin, the coins of different value rows or columns are
 *        independent of each other, and copies of one value row (equal pointers) share theirs.
 *    (b) The query, the scores, the magnitudes |v_jl|, which keys a row sees and in which order are
 *        independent of the coins: that is the caller's to know (fuzz/family.h, sign_coins).
 *    (c) weights_ignore_v: p, its rounding, the maximum, the rescale factors and the sum l do not
 *        depend on V. Chance inside the kernel is allowed, if independent of the coins.
 *    All that follows holds given everything but the coins; "fixed" means: determined by that.
 *
 * 2. THE ERROR OF ONE ELEMENT.  errors.c: the quotient before normalisation is y = N_l/D with
 *        N_l = sum_j w_j t_j (1+rho_j)(1+nu_jl) v_jl + aN_l,   D = sum_j w_j t_j (1+mu_j) + aD.
 *    By (c) t_j, rho_j, mu_j and aD are fixed, D therefore too; nu_jl and aN_l, the roundings and
 *    underflows of O, may depend on V in any way. With o_l = sum_j w_j v_jl
 *        y - o_l = X_l + Y_l,
 *        X_l = sum_j w_j ( t_j (1+rho_j) - D ) v_jl / D,
 *        Y_l = ( sum_j w_j t_j (1+rho_j) nu_jl v_jl + aN_l ) / D.
 *    X_l has fixed coefficients: it is a sum of independent signs. The part -o_l (D-1)/D of the
 *    error, which looks as if it depended on V, is such a sum itself and has gone into X_l.
 *        |Y_l| <= ( nu sum_j most_j |v_jl| + absN_l ) / least D =: b'
 *    (absN as in bound.c; per weight, absN times the greatest sum w_j t_j). Losses of weights by
 *    underflow belong to absN although a weight ignores V: whether an operand p is flushed in the
 *    product p v may be up to v. A v that is flushed itself is in absN already, as the underflow of
 *    its product: it takes p |v| < growth 2^-126 <= growth F_a along (errors.c, section 5), and a
 *    product is lost once.
 *    Normalisation: |result - y| <= div |y| + div_abs, and |y| <= |o_l| + |X_l| + b', so
 *        |result - o_l| <= (1+div) |X_l| + b_l,   b_l = (1+div) b' + div |o_l| + div_abs.
 *    The output is the rounded result, so the distance e_l from o_l to the reals that round to it is
 *    at most that, and with |out - o_l| <= out_radius added to b_l, the one from `out` is.
 *    b_l may depend on the coins (by o_l): the inequality holds for each outcome of them.
 *
 * 3. THE LENGTH OF X_l.  Keys with the same coins are summed first; g counts value rows:
 *        W_g = sum of w_j,  S_g = sum of w_j (t_j - 1),  R_g = sum of w_j t_j rho_j  (j copies of g),
 *        D - 1 = sum_g S_g + Q,   Q = sum_j w_j t_j mu_j + aD,
 *        D X_l = sum_g c_gl |v_gl| ( S_g - W_g sum_h S_h + R_g - W_g Q ),
 *    with |S_g| <= G_g (sum of spread_j), |R_g| <= P_g = rho sum of up_j, |Q| <= q = mu sum_j up_j +
 *    absD (rounded sum: rho = 0, the rounding of p is in G). Wanted is tau_l with
 *        tau_l^2 >= sum over coins of (coefficient)^2 (1+div)^2.
 *    Two ways, either holds for every row; which is used is decided by the weights alone:
 *    direct. S_g - W_g sum_h S_h = S_g (1 - W_g) - W_g sum_{h != g} S_h, so coefficient g is at most
 *        L_g = G_g (1 - W_g) + W_g sum_{h != g} G_h + P_g + W_g q,
 *        (D tau_l)^2 = sum_g L_g^2 |v_gl|^2.
 *      Good for peaked weights: a heavy key's own error moves D along. One value row only: L = 0 but
 *      for P and q, a common error cancels.
 *    centred. For A >= sum_g W_g^2 v_gl^2, T = sum_h S_h and B = sum_g W_g S_g v_gl^2
 *        sum_g (S_g - W_g T)^2 v_gl^2 <= sum_g S_g^2 v_gl^2 - 2 T B + A T^2
 *                                     <= sum_g S_g^2 v_gl^2 + A (T - B/A)^2,
 *        |T - B/A| = |sum_g S_g (1 - W_g v_gl^2/A)| <= k = sum_g G_g |1 - W_g v_gl^2/A|,
 *      and the rest by the triangle inequality for lengths:
 *        D tau_l = sqrt( sum_g G_g^2 v_gl^2 + A k^2 ) + sqrt( sum_g (P_g + W_g q)^2 v_gl^2 ).
 *      Good for flat weights, where L_g is nearly 2 G_g and k is small: up to half of the first.
 *
 * 4. THE TEST.  N columns have tau_l > 0 (a fixed set). Let
 *        E = sum_l ( max(0, e_l - b_l) / tau_l )^2 <= sum_l ((1+div) X_l / tau_l)^2,
 *    where a column with tau_l = 0 has X_l = 0, so e_l <= b_l; a violation there makes E infinite.
 *    For X = sum_k a_k c_k with sum a_k^2 <= tau^2 and a standard normal g, independent of the coins,
 *        E exp(s X^2/tau^2) = E exp(sqrt(2s) g X/tau) = E_g prod_k cosh(sqrt(2s) g a_k/tau)
 *                          <= E_g exp(s g^2 sum a_k^2/tau^2) <= (1-2s)^(-1/2),  0 <= s < 1/2,
 *    from E exp(z g) = exp(z^2/2) and cosh z <= exp(z^2/2) (Rademacher sums are subgaussian:
 *    Hoeffding, J. Amer. Statist. Assoc. 58, 1963). Given all but the coins the X_l of different
 *    columns are independent, so the moment generating function of the whole sum is at most
 *    (1-2s)^(-N/2), that of a chi-square with N degrees of freedom, and the chi-square's tail bound,
 *    which uses nothing else (Laurent and Massart, Ann. Statist. 28, 2000, lemma 1), gives
 *        P( E > N + 2 sqrt(N t) + 2 t ) <= e^-t.
 *    Rows share keys and heads share coins; a union bound needs no independence: with t = ln(10^12 *
 *    row tests) the chance of one false accusation in all of them is at most 10^-12. It is a chance
 *    over the coins: with one seed kept for ever it is taken once.
 *
 * Rounding of this file's own arithmetic is in favour of the kernel: tau_l, b_l and the threshold
 * are raised, e_l and E lowered. Squares of small numbers: coefficients are divided by the greatest
 * of them and held at 2^-350 or more, so that no square times a bf16's square is subnormal.
 */
#include "oracle/bf16.h"
#include "oracle/errors.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Operations in the longest formula here, generously. */
#define FORMULA 40

/* Least coefficient relative to the greatest: its square times 2^-266 is a normal double. */
#define RATIO_MIN 0x1p-350

/* Is centred preferred? Not for a gain that may turn out smaller than its cost. */
#define CENTRED_GAIN 0.9

static double up(double x)
{
    return mla_oracle_up(x, FORMULA);
}

static double down(double x)
{
    return mla_oracle_down(x, FORMULA);
}

/*
 * The value rows of one output row, each once, with bounds of section 3; and what is the same for
 * all of them. Nothing here depends on a sign of V.
 */
struct coins {
    int64_t n;
    const uint16_t **value;
    double *weight;     /* W_g, upper */
    double *weight_low; /* W_g, lower */
    double *spread;     /* G_g */
    double *loose;      /* P_g + W_g q */
    double *most;       /* sum of the weights as they meet V */
    double *direct;     /* L_g */
    double spread_sum;  /* sum_g G_g */
};

/* A length sqrt(sum_g c_g^2 v_g^2) waiting for its v: c_g^2 = scale^2 square_g. */
struct length {
    double scale;
    double *square;
};

/* Sums over the value rows, for each column. */
struct columns {
    double *reach;   /* sum_g most_g |v_gl| */
    double *first;   /* of L (direct) or G (centred) */
    double *second;  /* centred: of P + W q */
    double *area;    /* centred: A */
    double *centre;  /* centred: k */
    double *inverse; /* centred: 1/A */
};

/* All arrays in one piece. */
struct work {
    struct coins coins;
    struct length first;
    struct length second;
    struct length area;
    struct columns columns;
    double *numbers;
    struct copy *copies;
};

/* A key and where its value stands. */
struct copy {
    const uint16_t *value;
    int64_t key;
};

/* ---- one entry for each value row -------------------------------------------------------------*/

/* By place, then by key, so that sums do not depend on the sort. */
static int compare_copies(const void *a, const void *b)
{
    const struct copy *x = a;
    const struct copy *y = b;

    if (x->value != y->value) {
        return (uintptr_t)x->value < (uintptr_t)y->value ? -1 : 1;
    }
    return (x->key > y->key) - (x->key < y->key);
}

static void add_copy(struct coins *c, const struct mla_truth *t, const struct mla_oracle_errors *e,
                     int64_t j)
{
    const int64_t g = c->n - 1;
    const double w = t->weight[j];

    c->weight[g] += w;
    /* A weight at the floor may be anything below it. */
    c->weight_low[g] += w > MLA_ORACLE_WEIGHT_MIN ? mla_oracle_down(w, 4) : 0.0;
    c->spread[g] += e->spread[j];
    c->loose[g] += e->rho * e->up[j];
    c->most[g] += e->most[j];
}

/* From the keys' errors to the value rows'. */
static void collect(struct work *work, const struct mla_truth *t, const struct mla_oracle_errors *e)
{
    struct coins *c = &work->coins;
    const int64_t n = t->keys_n;
    const double common = up(e->mu * e->up_sum + e->abs_d * (e->is_per_weight ? e->up_sum : 1.0));

    for (int64_t j = 0; j < n; j++) {
        work->copies[j] = (struct copy){t->value[j], j};
    }
    qsort(work->copies, (size_t)n, sizeof work->copies[0], compare_copies);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || work->copies[i].value != work->copies[i - 1].value) {
            c->value[c->n++] = work->copies[i].value;
        }
        add_copy(c, t, e, work->copies[i].key);
    }
    for (int64_t g = 0; g < c->n; g++) {
        c->weight[g] = mla_oracle_up(c->weight[g], n);
        c->weight_low[g] = mla_oracle_down(c->weight_low[g], n);
        c->spread[g] = mla_oracle_up(c->spread[g], n);
        c->loose[g] = up(mla_oracle_up(c->loose[g], n) + c->weight[g] * common);
        c->most[g] = mla_oracle_up(c->most[g], n);
        c->spread_sum += c->spread[g];
    }
    c->spread_sum = mla_oracle_up(c->spread_sum, c->n);
    for (int64_t g = 0; g < c->n; g++) {
        /* The sum, raised, less one of its terms is an upper bound of the sum of the others. */
        c->direct[g] = up(c->spread[g] * (1.0 - c->weight_low[g]) +
                          c->weight[g] * (c->spread_sum - c->spread[g]) + c->loose[g]);
    }
}

/* ---- lengths ----------------------------------------------------------------------------------*/

static void length_set(struct length *length, const double *c, int64_t n)
{
    length->scale = 0.0;
    for (int64_t g = 0; g < n; g++) {
        length->scale = fmax(length->scale, c[g]);
    }
    for (int64_t g = 0; g < n; g++) {
        const double ratio = length->scale < DBL_MAX ? c[g] / length->scale : 1.0;
        const double least = ratio > RATIO_MIN ? ratio : RATIO_MIN; /* NaN, 0 over 0: the least */

        length->square[g] = up(least * least);
    }
}

/* The length for a column whose sum of square_g v_g^2 is given. */
static double length_of(const struct length *length, double sum, int64_t n)
{
    if (length->scale == 0.0 || sum == 0.0) {
        return 0.0;
    }
    return up(length->scale * sqrt(mla_oracle_up(sum, n + 4)));
}

/* Which way is shorter, were all |v| = 1? A guess about sharpness: nothing rests on it. */
static bool is_centred(const struct coins *c)
{
    double area = 0.0;
    double spread = 0.0;
    double loose = 0.0;
    double direct = 0.0;
    double centre = 0.0;

    for (int64_t g = 0; g < c->n; g++) {
        area += c->weight[g] * c->weight[g];
        spread += c->spread[g] * c->spread[g];
        loose += c->loose[g] * c->loose[g];
        direct += c->direct[g] * c->direct[g];
    }
    for (int64_t g = 0; g < c->n; g++) {
        centre += c->spread[g] * fabs(1.0 - c->weight[g] / area);
    }
    return sqrt(spread + area * centre * centre) + sqrt(loose) < CENTRED_GAIN * sqrt(direct);
}

/* ---- sums over the value rows -----------------------------------------------------------------*/

static double magnitude(uint16_t v)
{
    return mla_oracle_bf16_value((uint16_t)(v & 0x7fffu));
}

static void sum_direct(const struct work *work, int64_t columns_n)
{
    const struct columns *sums = &work->columns;

    for (int64_t g = 0; g < work->coins.n; g++) {
        const uint16_t *row = work->coins.value[g];
        const double most = work->coins.most[g];
        const double first = work->first.square[g];

        for (int64_t l = 0; l < columns_n; l++) {
            const double v = magnitude(row[l]);

            sums->reach[l] += most * v;
            sums->first[l] += first * (v * v);
        }
    }
}

static void sum_centred(const struct work *work, int64_t columns_n)
{
    const struct columns *sums = &work->columns;

    for (int64_t g = 0; g < work->coins.n; g++) {
        const uint16_t *row = work->coins.value[g];
        const double most = work->coins.most[g];
        const double first = work->first.square[g];
        const double second = work->second.square[g];
        const double area = work->area.square[g];

        for (int64_t l = 0; l < columns_n; l++) {
            const double v = magnitude(row[l]);

            sums->reach[l] += most * v;
            sums->first[l] += first * (v * v);
            sums->second[l] += second * (v * v);
            sums->area[l] += area * (v * v);
        }
    }
}

/*
 * A, then k, of every column. W_g v^2/A is formed with three roundings; A is the double it is, and
 * as A >= W_g^2 v^2 no quotient exceeds 1/W_g < 2^601.
 */
static void sum_centre(const struct work *work, int64_t columns_n)
{
    const struct columns *sums = &work->columns;
    const struct coins *c = &work->coins;

    for (int64_t l = 0; l < columns_n; l++) {
        sums->area[l] =
            up(work->area.scale * work->area.scale * mla_oracle_up(sums->area[l], c->n + 4));
        sums->inverse[l] = sums->area[l] > 0.0 ? 1.0 / sums->area[l] : 0.0;
    }
    for (int64_t g = 0; g < c->n; g++) {
        const uint16_t *row = c->value[g];
        const double spread = c->spread[g];
        const double low = c->weight_low[g] * (1.0 - 0x1p-50);
        const double high = c->weight[g] * (1.0 + 0x1p-50);

        for (int64_t l = 0; l < columns_n; l++) {
            const double v = magnitude(row[l]);
            const double part = v * v * sums->inverse[l];
            const double below = 1.0 - low * part;
            const double above = high * part - 1.0;

            sums->centre[l] += spread * (below > above ? below : above);
        }
    }
    for (int64_t l = 0; l < columns_n; l++) {
        sums->centre[l] = mla_oracle_up(sums->centre[l], c->n + 4);
    }
}

/* ---- the test ---------------------------------------------------------------------------------*/

/* tau_l. */
static double deviation(const struct work *work, const struct mla_oracle_errors *e, bool centred,
                        int64_t l)
{
    const struct columns *sums = &work->columns;
    double length = length_of(&work->first, sums->first[l], work->coins.n);

    if (centred) {
        const double shift = up(sqrt(sums->area[l]) * sums->centre[l]);

        length =
            up(hypot(length, shift)) + length_of(&work->second, sums->second[l], work->coins.n);
    }
    const double tau = up((1.0 + e->div) * length / e->denominator);

    return tau <= DBL_MAX ? tau : INFINITY; /* errors beyond all numbers: nothing to say */
}

/* b_l, out_radius included. */
static double slack(const struct work *work, const struct mla_truth *t,
                    const struct mla_oracle_errors *e, int64_t l)
{
    const double reach = mla_oracle_up(work->columns.reach[l], work->coins.n + 4);
    const double times = e->is_per_weight ? e->up_sum : 1.0;
    const double absolute = (1.0 + e->nu) * (e->key_abs * t->abs_value[l] + e->row_abs) * times;
    const double quotient = up((e->nu * reach + absolute) / e->denominator);
    const double size = fabs(t->out[l]) + t->out_radius[l];

    return up((1.0 + e->div) * quotient + e->div * size + e->div_abs + t->out_radius[l]);
}

/* The distance from `out` to what rounds to y, lower. Inf is a rounding like any other here. */
static double distance(const struct mla_truth *t, const struct mla_model *model, int64_t l,
                       uint16_t y)
{
    const struct mla_bound anything = {
        .lo = -INFINITY, .hi = INFINITY, .o = t->out[l], .radius = 1.0};

    return down(mla_bound_error(&anything, model, y).distance);
}

static void judge(const struct work *work, const struct mla_truth *t, const struct mla_model *model,
                  const struct mla_oracle_errors *e, bool centred, const uint16_t *y,
                  double log_tests, struct mla_energy *energy)
{
    double sum = 0.0;
    int64_t n = 0;

    for (int64_t l = 0; l < t->columns_n; l++) {
        const double tau = deviation(work, e, centred, l);
        const double excess = down(distance(t, model, l, y[l]) - slack(work, t, e, l));

        n += tau > 0.0;
        if ((y[l] & 0x7fffu) > 0x7f80u) {
            sum = INFINITY; /* NaN */
        } else if (excess > 0.0) {
            const double ratio = tau > 0.0 ? excess / tau : INFINITY;

            sum += ratio * ratio;
        }
    }
    energy->columns_n = n;
    energy->energy = mla_oracle_down(sum, t->columns_n + 4);
    energy->threshold = up((double)n + 2.0 * sqrt((double)n * log_tests) + 2.0 * log_tests);
}

/* ---- memory, and the row ----------------------------------------------------------------------*/

static bool allocate(struct work *work, int64_t keys_n, int64_t columns_n)
{
    struct coins *c = &work->coins;
    double **const per_key[] = {
        &c->weight, &c->weight_low,      &c->spread,           &c->loose,         &c->most,
        &c->direct, &work->first.square, &work->second.square, &work->area.square};
    struct columns *s = &work->columns;
    double **const per_column[] = {&s->reach, &s->first,  &s->second,
                                   &s->area,  &s->centre, &s->inverse};
    const size_t keys_arrays = sizeof per_key / sizeof per_key[0];
    const size_t column_arrays = sizeof per_column / sizeof per_column[0];

    work->numbers =
        calloc(keys_arrays * (size_t)keys_n + column_arrays * (size_t)columns_n, sizeof(double));
    work->copies = calloc((size_t)keys_n, sizeof work->copies[0]);
    c->value = calloc((size_t)keys_n, sizeof c->value[0]);
    if (work->numbers == NULL || work->copies == NULL || c->value == NULL) {
        return false;
    }
    double *next = work->numbers;

    for (size_t i = 0; i < keys_arrays; i++, next += keys_n) {
        *per_key[i] = next;
    }
    for (size_t i = 0; i < column_arrays; i++, next += columns_n) {
        *per_column[i] = next;
    }
    return true;
}

static void test_row(struct work *work, const struct mla_truth *t, const struct mla_model *model,
                     const struct mla_oracle_errors *e, const uint16_t *y, double log_tests,
                     struct mla_energy *energy)
{
    collect(work, t, e);
    const struct coins *c = &work->coins;
    const bool centred = is_centred(c);

    length_set(&work->first, centred ? c->spread : c->direct, c->n);
    if (centred) {
        length_set(&work->second, c->loose, c->n);
        length_set(&work->area, c->weight, c->n);
        sum_centred(work, t->columns_n);
        sum_centre(work, t->columns_n);
    } else {
        sum_direct(work, t->columns_n);
    }
    judge(work, t, model, e, centred, y, log_tests, energy);
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

int32_t mla_bound_energy(const struct mla_truth *truth, const struct mla_model *model,
                         const uint16_t *y, double log_tests, struct mla_energy *energy)
{
    struct mla_oracle_errors errors = {0};
    struct work work = {0};
    int32_t state = state_of(truth);

    if (state != MLA_BOUND_OK) {
        return state;
    }
    if (!model->weights_ignore_v ||
        mla_bound_model_error(model, truth->shard_blocks >= 0) != NULL) {
        return MLA_BOUND_MODEL;
    }
    state = MLA_ERR_NOMEM;
    if (allocate(&work, truth->keys_n, truth->columns_n) &&
        mla_oracle_errors_make(truth, model, &errors) == MLA_OK) {
        state = errors.state;
    }
    if (state == MLA_BOUND_OK) {
        test_row(&work, truth, model, &errors, y, log_tests, energy);
    }
    mla_oracle_errors_free(&errors);
    free(work.coins.value);
    free(work.copies);
    free(work.numbers);
    return state;
}
