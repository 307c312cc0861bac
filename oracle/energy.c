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
 *    underflows of O, may depend on V in any way. With the middle o_l = sum_j w_j v_jl
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
 *    at most that, and so is the one from a computed middle if b_l contains the middle's own error.
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
 *        L_g = G_g |1 - W_g| + W_g sum_{h != g} G_h + P_g + W_g q,
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
 * 5. WHERE THE ROUNDING OF p IS KNOWN (known.h), all of it holds in units of that file's S = `sum`
 *    with other contents, since its weights and their intervals look at no V either:
 *        o_l     its middle sum_j C_j v_jl / S instead of the truth (the quotient's distance from
 *                there is all the test uses),
 *        W_g     sum of C_j / S; they need not add up to 1: nothing above uses that,
 *        G_g     rounded sum: sum of half_j / S, for D - 1 = sum_g S_g + Q again; else 0,
 *        P_g     rounded sum: 0; else sum of half_j / S,
 *        q       rounded sum: the rounding of S itself, else sum_half; and mu sum_most + absD; over S.
 *        nu      where the model says when accumulators are stored, without those stores, whose
 *                errors (stored.c; they may depend on the coins) are added to b' as they are.
 *    Known weights are taken wherever they are usable, which the scores decide.
 *
 * Rounding of this file's own arithmetic is in favour of the kernel: tau_l, b_l and the threshold
 * are raised, e_l and E lowered. Squares of small numbers: coefficients are divided by the greatest
 * of them and held at 2^-350 or more, so that no square times a bf16's square is subnormal.
 */
#include "oracle/bf16.h"
#include "oracle/energy_weights.h"
#include "oracle/wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* A length sqrt(sum_g c_g^2 v_g^2) waiting for its v: c_g^2 = scale^2 square_g. */
struct length {
    double scale;
    double *square;
};

/* Sums over the value rows, for each column. */
struct columns {
    double *middle;  /* computed o_l */
    double *radius;  /* and its distance from o_l, at most */
    double *reach;   /* sum_g most_g |v_gl| */
    double *first;   /* of L (direct) or G (centred) */
    double *second;  /* centred: of P + W q */
    double *area;    /* centred: A */
    double *centre;  /* centred: k */
    double *inverse; /* centred: 1/A */
};

struct work {
    const struct mla_truth *truth;
    const struct mla_model *model;
    const struct mla_oracle_errors *errors;
    const struct mla_oracle_energy_weights *weights;
    bool is_centred;
    struct length first;
    struct length second;
    struct length area;
    struct columns columns;
    double *numbers; /* all arrays */
};

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
static bool is_centred(const struct mla_oracle_energy_weights *w, const double *direct_length)
{
    double area = 0.0;
    double spread = 0.0;
    double loose = 0.0;
    double direct = 0.0;
    double centre = 0.0;

    for (int64_t g = 0; g < w->n; g++) {
        area += w->weight[g] * w->weight[g];
        spread += w->spread[g] * w->spread[g];
        loose += w->loose[g] * w->loose[g];
        direct += direct_length[g] * direct_length[g];
    }
    for (int64_t g = 0; g < w->n; g++) {
        centre += w->spread[g] * fabs(1.0 - w->weight[g] / area);
    }
    return sqrt(spread + area * centre * centre) + sqrt(loose) < CENTRED_GAIN * sqrt(direct);
}

/* L_g of every value row. The sum, raised, less one of its terms is an upper bound of the others. */
static void set_direct(const struct mla_oracle_energy_weights *w, double *direct)
{
    for (int64_t g = 0; g < w->n; g++) {
        const double rest = fmax(1.0 - w->weight_low[g], w->weight[g] - 1.0);

        direct[g] =
            up(w->spread[g] * rest + w->weight[g] * (w->spread_sum - w->spread[g]) + w->loose[g]);
    }
}

/* ---- sums over the value rows -----------------------------------------------------------------*/

static double magnitude(uint16_t v)
{
    return mla_oracle_bf16_value((uint16_t)(v & 0x7fffu));
}

MLA_ORACLE_INNER void sum_direct(const struct work *work)
{
    const int64_t columns_n = work->truth->columns_n;
    double *restrict reach = work->columns.reach;
    double *restrict first = work->columns.first;

    for (int64_t g = 0; g < work->weights->n; g++) {
        const uint16_t *restrict row = work->weights->value[g];
        const double most = work->weights->most[g];
        const double square = work->first.square[g];

        for (int64_t l = 0; l < columns_n; l++) {
            const double v = magnitude(row[l]);

            reach[l] += most * v;
            first[l] += square * (v * v);
        }
    }
}

MLA_ORACLE_INNER void sum_centred(const struct work *work)
{
    const int64_t columns_n = work->truth->columns_n;
    double *restrict reach = work->columns.reach;
    double *restrict first = work->columns.first;
    double *restrict second = work->columns.second;
    double *restrict area = work->columns.area;

    for (int64_t g = 0; g < work->weights->n; g++) {
        const uint16_t *restrict row = work->weights->value[g];
        const double most = work->weights->most[g];
        const double first_square = work->first.square[g];
        const double second_square = work->second.square[g];
        const double area_square = work->area.square[g];

        for (int64_t l = 0; l < columns_n; l++) {
            const double v = magnitude(row[l]);

            reach[l] += most * v;
            first[l] += first_square * (v * v);
            second[l] += second_square * (v * v);
            area[l] += area_square * (v * v);
        }
    }
}

/*
 * A, then k, of every column. W_g v^2/A is formed with three roundings; A is the double it is. As
 * the greatest weight is at least 1/n or so and none was held below 2^-350 of it, all is finite.
 */
MLA_ORACLE_INNER void sum_centre(const struct work *work)
{
    const int64_t columns_n = work->truth->columns_n;
    const struct mla_oracle_energy_weights *w = work->weights;
    double *restrict area = work->columns.area;
    double *restrict inverse = work->columns.inverse;
    double *restrict centre = work->columns.centre;

    for (int64_t l = 0; l < columns_n; l++) {
        area[l] = up(work->area.scale * work->area.scale * mla_oracle_up(area[l], w->n + 4));
        inverse[l] = area[l] > 0.0 ? 1.0 / area[l] : 0.0;
    }
    for (int64_t g = 0; g < w->n; g++) {
        const uint16_t *restrict row = w->value[g];
        const double spread = w->spread[g];
        const double low = w->weight_low[g] * (1.0 - 0x1p-50);
        const double high = w->weight[g] * (1.0 + 0x1p-50);

        for (int64_t l = 0; l < columns_n; l++) {
            const double v = magnitude(row[l]);
            const double part = v * v * inverse[l];
            const double below = 1.0 - low * part;
            const double above = high * part - 1.0;

            centre[l] += spread * (below > above ? below : above);
        }
    }
    for (int64_t l = 0; l < columns_n; l++) {
        centre[l] = mla_oracle_up(centre[l], w->n + 4);
    }
}

MLA_ORACLE_INNER void sum_all(const struct work *work)
{
    if (work->is_centred) {
        sum_centred(work);
        sum_centre(work);
    } else {
        sum_direct(work);
    }
}

MLA_ORACLE_WIDE static void sum_all_wide(const struct work *work)
{
    sum_all(work);
}

/* The middles, and how far they are from what they stand for. Needs reach. */
static void set_middles(const struct work *work)
{
    const struct mla_oracle_energy_weights *w = work->weights;
    const struct columns *sums = &work->columns;
    const int64_t columns_n = work->truth->columns_n;
    double *restrict middle = sums->middle;

    if (!w->is_known) {
        memcpy(middle, work->truth->out, (size_t)columns_n * sizeof(double));
        memcpy(sums->radius, work->truth->out_radius, (size_t)columns_n * sizeof(double));
        return;
    }
    for (int64_t g = 0; g < w->n; g++) {
        const uint16_t *restrict row = w->value[g];
        const double centre = w->centre[g];

        for (int64_t l = 0; l < columns_n; l++) {
            middle[l] += centre * mla_oracle_bf16_value(row[l]);
        }
    }
    for (int64_t l = 0; l < columns_n; l++) {
        sums->radius[l] = up(mla_oracle_up(sums->reach[l], w->n + 4) *
                             (double)(work->truth->keys_n + 8) * 0x1p-52);
    }
}

/* ---- the test ---------------------------------------------------------------------------------*/

/* tau_l. */
static double deviation(const struct work *work, int64_t l)
{
    const struct columns *sums = &work->columns;
    const int64_t n = work->weights->n;
    double length = length_of(&work->first, sums->first[l], n);

    if (work->is_centred) {
        const double shift = up(sqrt(sums->area[l]) * sums->centre[l]);

        length = up(hypot(length, shift)) + length_of(&work->second, sums->second[l], n);
    }
    const double tau = up((1.0 + work->errors->div) * length / work->weights->denominator);

    return tau <= DBL_MAX ? tau : INFINITY; /* errors beyond all numbers: nothing to say */
}

/* b_l. */
static double slack(const struct work *work, int64_t l)
{
    const struct mla_oracle_errors *e = work->errors;
    const struct mla_oracle_energy_weights *w = work->weights;
    const double reach = mla_oracle_up(work->columns.reach[l], w->n + 4);
    const double radius = work->columns.radius[l];
    const double absolute = (1.0 + e->nu) * (w->key_abs * work->truth->abs_value[l] + w->row_abs);
    const double quotient = up((w->nu * reach + w->stored[l] + absolute) / w->denominator);
    const double size = fabs(work->columns.middle[l]) + radius;

    return up((1.0 + e->div) * quotient + e->div * size + e->div_abs + radius);
}

/* e_l from the computed middle, lower. Inf is a rounding like any other here. */
static double distance(const struct work *work, int64_t l, uint16_t y)
{
    const struct mla_bound anything = {
        .lo = -INFINITY, .hi = INFINITY, .o = work->columns.middle[l], .radius = 1.0};

    return down(mla_bound_error(&anything, work->model, y).distance);
}

static void judge(const struct work *work, const uint16_t *y, double log_tests,
                  struct mla_energy *energy)
{
    double sum = 0.0;
    int64_t n = 0;

    for (int64_t l = 0; l < work->truth->columns_n; l++) {
        const double tau = deviation(work, l);
        const double excess = down(distance(work, l, y[l]) - slack(work, l));

        n += tau > 0.0;
        if ((y[l] & 0x7fffu) > 0x7f80u) {
            sum = INFINITY; /* NaN */
        } else if (excess > 0.0) {
            const double ratio = tau > 0.0 ? excess / tau : INFINITY;

            sum += ratio * ratio;
        }
    }
    energy->columns_n = n;
    energy->energy = mla_oracle_down(sum, work->truth->columns_n + 4);
    energy->threshold = up((double)n + 2.0 * sqrt((double)n * log_tests) + 2.0 * log_tests);
}

/* ---- memory, and the row ----------------------------------------------------------------------*/

static bool allocate(struct work *work)
{
    struct columns *s = &work->columns;
    double **const per_row[] = {&work->first.square, &work->second.square, &work->area.square};
    double **const per_column[] = {&s->middle, &s->radius, &s->reach,  &s->first,
                                   &s->second, &s->area,   &s->centre, &s->inverse};
    const size_t rows = sizeof per_row / sizeof per_row[0];
    const size_t columns = sizeof per_column / sizeof per_column[0];
    const size_t n = (size_t)work->weights->n;
    const size_t columns_n = (size_t)work->truth->columns_n;

    work->numbers = calloc(rows * n + columns * columns_n, sizeof(double));
    for (size_t i = 0; work->numbers != NULL && i < rows; i++) {
        *per_row[i] = work->numbers + i * n;
    }
    for (size_t i = 0; work->numbers != NULL && i < columns; i++) {
        *per_column[i] = work->numbers + rows * n + i * columns_n;
    }
    return work->numbers != NULL;
}

static void test_row(struct work *work, const uint16_t *y, double log_tests,
                     struct mla_energy *energy)
{
    const struct mla_oracle_energy_weights *w = work->weights;
    double *direct = work->second.square; /* in use when centred only */

    set_direct(w, direct);
    work->is_centred = is_centred(w, direct);
    length_set(&work->first, work->is_centred ? w->spread : direct, w->n);
    if (work->is_centred) {
        length_set(&work->second, w->loose, w->n);
        length_set(&work->area, w->weight, w->n);
    }
    if (mla_oracle_is_wide()) {
        sum_all_wide(work);
    } else {
        sum_all(work);
    }
    set_middles(work);
    judge(work, y, log_tests, energy);
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
    struct mla_oracle_energy_weights weights = {0};
    struct work work = {.truth = truth, .model = model, .errors = &errors, .weights = &weights};
    int32_t state = state_of(truth);

    if (state != MLA_BOUND_OK) {
        return state;
    }
    if (!model->weights_ignore_v || mla_bound_model_error(model, truth->is_ring) != NULL) {
        return MLA_BOUND_MODEL;
    }
    state = MLA_ERR_NOMEM;
    if (mla_oracle_errors_make(truth, model, &errors) != MLA_OK) {
        goto done;
    }
    state = errors.state;
    if (state != MLA_BOUND_OK) {
        goto done;
    }
    state = MLA_ERR_NOMEM;
    if (mla_oracle_energy_weights_make(truth, model, &errors, &weights) == MLA_OK &&
        allocate(&work)) {
        test_row(&work, y, log_tests, energy);
        state = MLA_BOUND_OK;
    }
done:
    free(work.numbers);
    mla_oracle_energy_weights_free(&weights);
    mla_oracle_errors_free(&errors);
    return state;
}
