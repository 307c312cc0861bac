/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.c - what a declared arithmetic can do to the weights and sums of one row.
 *
 * Standard model: a rounded operation gives exact*(1+d), |d| <= u, or, if the result is below the
 * normal range, exact + e with |e| <= f. All figures below are bounds over every choice of the d
 * and e, hence over every order of summation, block order and rounding direction.
 * P(u,k) = (1+u)^k - 1 bounds a product of k factors (1+d) from both sides: it is its upper end,
 * and 1 - (1-u)^k <= k u <= P(u,k). w: columns of a key, n: keys, T: rescales.
 * f = max(2^-149, or 2^-126 where subnormals are flushed; 2^-126 add_u): below the normal range a
 * directed rounding to binary32 errs by less than the spacing 2^-149, one to a format of unit
 * add_u by up to 2^-126 add_u (to nearest: half the spacing 2 add_u 2^-126; in one direction: all
 * of the spacing add_u 2^-126), which is the greater where add_u > 2^-23.
 *
 * Where this is sharper than the textbook, and why it may be:
 *   - products of k factors are bounded by (1+u)^k - 1, not k u/(1 - k u). The latter majorises it,
 *     because it also serves quotients of such products; numerator and denominator are kept apart
 *     here and no quotient is formed, so the product itself is enough;
 *   - the least denominator has (1-u)^k, not 1 - P(u,k): a product's own lower end;
 *   - the score's rounding is taken of |s| + its error, not of sum |q k|: it happens once, to the
 *     finished sum;
 *   - rescale errors telescope: running maxima only grow, so all rescale arguments on one key's way
 *     add up to one range instead of T ranges;
 *   - the maximum of the computed scores is placed with every key's gap: a key far below M cannot
 *     carry it up, however uncertain its score;
 *   - errors common to all keys (frame, last shift) cancel between numerator and denominator.
 * And where the textbook's model leaves out what these formulas must not:
 *   - each operation may underflow: the floors F below, in the spacing of its own result's format;
 *   - a subnormal scale has fewer bits: g is widened (section 2), and the row is not judged when
 *     nothing of the scale is left;
 *   - reported statistics may be the shift rounded once more (bound_stats.c);
 *   - a difference of two scores may overflow although each is in range (section 8).
 *
 * 1. SCORES.  a = P(add_u, score_depth), pi = product_u, A_j = sum_i |q_i k_ji|.
 *    A product carries (1+pi) and at most score_depth factors (1+d) on its way into the score:
 *      |s^ - s| <= A ((1+pi)(1+a) - 1) =: A b.
 *    The finished score is rounded once more: |s^(1+d) - s| <= A b + score_u (|s| + A b).
 *    Underflow: each of w products and at most w additions can lose F_s, and so can the score's
 *    own rounding, each scaled by later factors <= (1+a)(1+score_u); if inputs may be flushed,
 *    products with a subnormal operand vanish whole ("lost").
 *    (Products that are all 0 lose nothing: eps = 0.)
 *    F_s = max(f, 2^-126 score_u, 2^-126 product_u): below 2^-126 a rounding to a format of
 *    relative unit u is an absolute error up to u 2^-126.
 *      eps_j = sigma [ A_j b + score_u (|s_j| + A_j b)
 *                      + (1+a)(1+score_u) ( [flush] (1+pi) lost_j + (2w+1) F_s ) ]
 *    sigma*m^, the scaled maximum of the computed scores, lies in [M - max_below, M + max_above],
 *      max_above = max_j (eps_j - gap_j),  max_below = min_j (eps_j + gap_j),  gap_j = M - x_j.
 *    The maximum itself is a selection and rounds nothing.
 *
 * 2. THE EXPONENTIAL'S ARGUMENT.  g = P(add_u, arg_roundings), widened to (1+g)(1+ts) - 1 with
 *    ts = min(1, f/sigma) if sigma < 2^-125: there the scale, or scale*log2(e), is subnormal.
 *    The shift is a running maximum m^_b of computed scores that has seen key j, s^_j <= m^_b <=
 *    m^. range_j = max_above + gap_j + eps_j bounds sigma(m^ - s^_j). X_j = |x_j| + eps_j,
 *    M_a >= |sigma m^|, M_x = max(M_a, max X).
 *    difference: sigma(s^_j - m^_b) is off by at most g sigma(m^_b - s^_j); the rescale that
 *      carries m^_b to m^_b+1 by g sigma(m^_b+1 - m^_b). Maxima only grow, so these telescope:
 *      g range_j.
 *    scaled: z_j = sigma s^_j (1+d), |d| <= g, and the kept shift Z_b is one of them; the row's
 *      last shift Z is the common frame, so its own error cancels. Off by g X_j (key j's own
 *      product) and g |Z - z_j| <= g (range_j + g (X_j + M_a)) (differences, telescoping again).
 *    mixed: sigma m^ is rounded anew at each use: g (X_j + |sigma m^_b|) for key j and
 *      g (|sigma m^_b| + |sigma m^_b+1|) for each of T rescales. The last maximum is used once,
 *      each of the T before it at most twice: g (X_j + M_a + 2 T M_x).
 *    A rescale whose scale is off by rs = rescale_scale_u adds rs times its (rounded) argument;
 *      telescoped: rs (1+g) range_j, with range_j + g (X_j + M_a) if scaled; mixed: rs range_j,
 *      and the rounding term times (1+rs).
 *    Underflow: each of arg_roundings operations in each of T+1 arguments: at most f, times sigma
 *      if it is multiplied by it later: (T+1) arg_roundings f max(1,sigma) (1+g) (1+rs).
 *    The sum of all this is arg_j.
 *
 * 3. WEIGHTS.  An exponential carries a factor whose logarithm is at most e' = -ln(1-exp_error) in
 *    magnitude, a rescale factor also alpha' = -ln(1-alpha_u). With
 *      h_j = eps_j + arg_j + e' + T (e' + alpha')
 *    key j's weight in the frame of the row's last shift is exp(x_j - shift)(1+theta_j),
 *    e^-h - 1 <= theta <= e^h - 1 = H_j. Frame and Z cancel in the quotient. Rounding p:
 *      sum adds rounded p    t = (1+theta)(1+r), 1+G = (1+H)(1+p_u), 1-Gl = e^-h (1-p_u), rho = 0
 *      sum adds unrounded p  t = 1+theta,        1+G = 1+H,          1-Gl = e^-h,    |rho| <= p_u
 *
 * 4. SUMS.  A depth counts roundings on a term's longest path,
 *      constant + per_width w + per_key min(n, most_keys) + per_block blocks   (at least 0),
 *    without the minimum if most_keys is 0. That is for a sum that starts from nothing every so many
 *    keys and is then added to what is held: a key's term passes the roundings of its own part, at
 *    most most_keys of them however long the row, and from then on only what is counted per block.
 *    blocks = ceil(n/block_keys), or for block_keys 0 the K chunks the row sees (chunks.c).
 *    mu = (1+P(add_u, acc_depth))(1+P(acc_u, acc_extra)) - 1; nu the same with one factor
 *    (1+pv_product_u). From below: ml = (1-add_u)^acc_depth (1-acc_u)^acc_extra, and times
 *    1-pv_product_u.
 *
 * 5. UNDERFLOW IN WEIGHTS AND SUMS.  First in the kernel's frame. growth bounds any product of a
 *    computed p and rescale factors: true exponentials are <= 1, as arguments are <= 0 up to their
 *    rounding (difference: a rounding keeps the sign; scaled: g (X+M_a); mixed: (T+1) 2 g M_x
 *    (1+rs)):  growth = e^grown (1+p_u), grown = (T+1) e' + T alpha' + that + underflow.
 *    Each of T+1 exponentials can lose F_w = max(f, exp_floor, 2^-126 p_u, 2^-126 alpha_u) three
 *    times: returned as 0, rounded, flushed as an operand; telescoping the product of T+1 factors,
 *    the weight is off by at most  key = 3 (T+1) F_w growth.
 *    Accumulators: n products, n additions (any tree), and at most n T rescales and n acc_extra
 *    stores that change a non-zero partial sum (each lies on some key's path). Where results are
 *    flushed, a rescale by exactly 1 can still flush; it then clears a partial sum that an earlier
 *    operation had filled, so there are at most 2 n of those. Each loses F_a = max(f, 2^-126
 *    acc_u, 2^-126 pv_product_u), scaled later by at most growth:
 *      row = n (T + acc_extra + 4) F_a growth;   absD = (1+mu) (n key + row).
 *    The kernel's frame is c = exp(M - shift) Z times the normalised one. 1/c is bounded in two
 *    ways. shift <= M + max_above (+ g M_a if scaled), so
 *      1/c <= lead = exp(max_above [+ g M_a]) / Z.
 *    Or: the key that attains the maximum has an argument of 0 but for its rounding and meets no
 *    larger maximum later, so its own term c w t is at least
 *      least = e^-grown (1-p_u if the sum adds rounded p),  and  1/c <= sum_j w_j t_j / least.
 *    The second, "per weight", needs no idea of where the maximum is: where scores are uncertain
 *    by tens or hundreds it is the only one of use. It is taken where, by the first, absD would eat
 *    more than 2^-10 of the least denominator.
 *
 * 6. DENOMINATOR.  computed / c lies between
 *      ml sum_j w_j (1-Gl_j) - absD      and (1+mu) sum_j w_j (1+G_j) + absD, or, per weight,
 *      (ml - absD) sum_j w_j (1-Gl_j)    and (1+mu+absD) sum_j w_j (1+G_j).
 *
 * 7. NORMALISATION.  div = P(add_u, div_roundings); div_abs = (div_roundings + 1) f (1+div): each
 *    operation and the store. A reciprocal of the sum is far from underflow: 1 <~ sum <~ n.
 *
 * 8. RANGE.  Scores and their sums stay within FLT_MAX by the definition's own limit of FLT_MAX/2
 *    and errors below 2 times; partial sums of the accumulators by growth (1+nu) sum_j |v_j|. Left
 *    is s - m of the difference form: up to range_j/sigma (1+add_u). When that overflows (to Inf or,
 *    rounded toward zero, FLT_MAX) the weight is as good as 0. Unrounded it would have been at most
 *      exp(-(sigma FLT_MAX (1-g) (1-rs) - arg_abs)),
 *    and if this is no more than max(f, exp_floor) the loss is one that F_w already allows; else
 *    the row is out of range. In the other forms the difference is the argument itself: where it
 *    overflows, no exponential is left.
 *
 * Rounding of this file's own arithmetic: every formula is a short chain of additions and products
 * of non-negative upper bounds and is raised by mla_oracle_up with at least its number of
 * operations. libm's exp, expm1, log1p and log are taken to err by less than 2^-50 relative
 * (glibc: 2^-52); their arguments are raised first, so that cancellation in e^y - 1 needs no
 * further care.
 */
#include "oracle/errors.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Operations in the longest formula here, generously. */
#define FORMULA 60

static double up(double x)
{
    return mla_oracle_up(x, FORMULA);
}

static double down(double x)
{
    return mla_oracle_down(x, FORMULA);
}

/* e^y - 1 and e^y, upper, for an upper y >= 0; e^-y, lower. */
static double expm1_up(double y)
{
    return up(expm1(up(y)));
}

static double exp_up(double y)
{
    return up(exp(up(y)));
}

static double exp_minus_down(double y)
{
    /* e^-708 is the last normal double; below, 0 is a lower bound. */
    return y < 708.0 ? down(exp(-up(y))) : 0.0;
}

/* -ln(1-u), upper. */
static double minus_log_1m(double u)
{
    return up(-log1p(-u));
}

/* (1+u)^k - 1, upper, for k >= 0 and 0 <= u < 1; may be +inf. */
static double compound(double u, double k)
{
    return expm1_up(up(k * up(log1p(u))));
}

/* (1-u)^k, lower. */
static double compound_down(double u, double k)
{
    return exp_minus_down(up(k * minus_log_1m(u)));
}

static double max3(double a, double b, double c)
{
    return fmax(a, fmax(b, c));
}

/* constant + per_width*width + per_key*min(keys, most_keys) + per_block*blocks for this row (section
 * 4); NaN when a shard-wise count is asked of the sparse operation. */
static double depth_of(const struct mla_depth *depth, const struct mla_truth *truth,
                       const struct mla_model *model)
{
    const int64_t keys =
        depth->most_keys > 0 && depth->most_keys < truth->keys_n ? depth->most_keys : truth->keys_n;
    double blocks = 0.0;

    if (depth->per_block != 0.0 && depth->block_keys > 0) {
        const int64_t rest = truth->keys_n % depth->block_keys != 0;

        blocks = (double)(truth->keys_n / depth->block_keys + rest);
    } else if (depth->per_block != 0.0) {
        blocks = truth->is_ring ? (double)mla_oracle_chunks(truth, model, NULL) : NAN;
    }
    double total = depth->constant + depth->per_width * (double)truth->width +
                   depth->per_key * (double)keys + depth->per_block * blocks;
    return total > 0.0 ? up(total) : 0.0; /* a negative constant may outweigh the rest */
}

/* What is computed once for a row before its keys are gone through. */
struct setting {
    const struct mla_truth *truth;
    const struct mla_model *model;
    double f;
    double rescales;  /* T */
    double acc_depth; /* */
    double acc_extra; /* */
    double a;         /* section 1 */
    double b;         /* section 1 */
    double g;         /* section 2, widened */
    double rs;        /* rescale_scale_u */
    double e;         /* e' */
    double alpha;     /* alpha' */
    double arg_abs;   /* underflow of all arguments on one key's way */
    double max_abs;   /* M_a */
    double max_any;   /* M_x */
    double declared;  /* section 2: g before it is widened */
    double widest;    /* max_j range_j */
};

static struct setting setting_make(const struct mla_truth *t, const struct mla_model *m)
{
    struct setting s = {.truth = t, .model = m};

    s.f = fmax(m->flush ? 0x1p-126 : 0x1p-149, 0x1p-126 * m->add_u);
    s.rescales = depth_of(&m->rescales, t, m);
    s.acc_depth = depth_of(&m->acc_depth, t, m);
    s.acc_extra = depth_of(&m->acc_extra, t, m);
    s.a = compound(m->add_u, depth_of(&m->score_depth, t, m));
    s.b = up(s.a + m->product_u * (1.0 + s.a));
    s.declared = compound(m->add_u, m->arg_roundings);
    s.g = s.declared;
    if (t->scale < 0x1p-125) {
        const double subnormal = fmin(1.0, s.f / t->scale);

        s.g = up(s.g + subnormal * (1.0 + s.g));
    }
    s.rs = m->rescale_scale_u;
    s.e = minus_log_1m(m->exp_error);
    s.alpha = minus_log_1m(m->alpha_u);
    s.arg_abs = up((s.rescales + 1.0) * m->arg_roundings * s.f * fmax(1.0, t->scale) * (1.0 + s.g) *
                   (1.0 + s.rs));
    return s;
}

/* eps_j (section 1). magnitude, score and lost carry the scale already. */
static double score_error(const struct setting *s, int64_t j)
{
    const struct mla_truth *t = s->truth;
    const struct mla_model *m = s->model;
    const double floor_s = max3(s->f, 0x1p-126 * m->score_u, 0x1p-126 * m->product_u);
    const double sum = up(t->magnitude[j] * s->b);
    double small = (2.0 * (double)t->width + 1.0) * floor_s * t->scale;

    if (t->magnitude[j] == 0.0) {
        return 0.0; /* all products are 0, and so are all sums of them */
    }
    if (m->flush) {
        small += (1.0 + m->product_u) * t->lost[j];
    }
    return up(sum + m->score_u * (t->score[j] + sum) + (1.0 + s->a) * (1.0 + m->score_u) * small);
}

/* eps of every key, max_above and max_below, and the setting's max_abs and max_any. */
static void locate_maximum(struct setting *s, struct mla_oracle_errors *errors)
{
    const struct mla_truth *t = s->truth;
    double any = 0.0;

    errors->max_above = 0.0; /* the key that attains M has gap 0 and eps >= 0 */
    errors->max_below = INFINITY;
    for (int64_t j = 0; j < t->keys_n; j++) {
        const double eps = score_error(s, j);

        errors->eps[j] = eps;
        any = fmax(any, up(t->score[j] + eps));
        /* gap is at most 1 + 2^-52 times too large: down() takes more than that off. */
        errors->max_above = fmax(errors->max_above, up(fmax(0.0, eps - down(t->gap[j]))));
        errors->max_below = fmin(errors->max_below, up(eps + t->gap[j]));
    }
    s->max_abs = up(fabs(t->max) + fmax(errors->max_above, errors->max_below));
    s->max_any = fmax(s->max_abs, any);
}

/* arg_j (section 2) of a key with gap_j and eps_j. */
static double argument_error(const struct setting *s, double gap, double score, double eps,
                             double max_above)
{
    const double range = up(max_above + gap + eps);
    const double x = up(score + eps);

    switch (s->model->arg_form) {
    case MLA_ARG_DIFFERENCE:
        return up(s->g * range + s->rs * (1.0 + s->g) * range + s->arg_abs);
    case MLA_ARG_SCALED: {
        const double wide = up(range + s->g * (x + s->max_abs));

        return up(s->g * x + s->g * wide + s->rs * (1.0 + s->g) * wide + s->arg_abs);
    }
    default: { /* MLA_ARG_MIXED */
        const double uses = x + s->max_abs + 2.0 * s->rescales * s->max_any;

        return up(s->g * (1.0 + s->rs) * uses + s->rs * range + s->arg_abs);
    }
    }
}

/*
 * w e^h, upper, for h >= 0. Above h = 20 from exponents, so that a key of no weight whose
 * argument is uncertain by hundreds does not become 0 * inf: h - gap - ln Z is raised by more than
 * its rounding (three operations, relative to the sum of magnitudes).
 */
static double weight_times_exp(const struct mla_truth *t, int64_t j, double h)
{
    if (h <= 20.0) {
        return up(t->weight[j] * exp_up(h));
    }
    const double gap = down(t->gap[j]);
    const double exponent = h - gap - t->log_sum + 0x1p-50 * (h + gap + fabs(t->log_sum) + 1.0);

    if (exponent > 700.0) {
        return INFINITY;
    }
    return fmax(up(exp(exponent)), MLA_ORACLE_WEIGHT_MIN);
}

/* The arrays of errors for key j with logarithmic error h (section 3). */
static void weigh(const struct setting *s, struct mla_oracle_errors *errors, int64_t j, double h)
{
    const struct mla_truth *t = s->truth;
    const double p_u = s->model->p_u;
    const double w = t->weight[j];
    const double w_low = w > MLA_ORACLE_WEIGHT_MIN ? down(w) : 0.0;
    const double w_exp = weight_times_exp(t, j, h);
    const double w_expm1 = h <= 20.0 ? up(w * expm1_up(h)) : w_exp;

    errors->most[j] = up(w_exp * (1.0 + p_u));
    errors->spill[j] = up(errors->rho * w_exp + errors->nu * errors->most[j]);
    errors->down[j] = down(w_low * exp_minus_down(h));
    if (s->model->sum_rounded) {
        errors->up[j] = errors->most[j];
        errors->spread[j] = up(w_expm1 * (1.0 + p_u) + w * p_u);
        errors->down[j] = down(errors->down[j] * (1.0 - p_u));
    } else {
        errors->up[j] = w_exp;
        errors->spread[j] = w_expm1;
    }
}

static void sum_factors(const struct setting *s, struct mla_oracle_errors *errors)
{
    const struct mla_model *m = s->model;
    const double rounded = compound(m->add_u, s->acc_depth);
    const double stored = compound(m->acc_u, s->acc_extra);

    errors->rho = m->sum_rounded ? 0.0 : m->p_u;
    errors->mu = up(rounded + stored + rounded * stored);
    errors->nu = up(errors->mu + m->pv_product_u * (1.0 + errors->mu));
    errors->mu_low =
        down(compound_down(m->add_u, s->acc_depth) * compound_down(m->acc_u, s->acc_extra));
    errors->nu_low = down(errors->mu_low * down(1.0 - m->pv_product_u));
    errors->mu_terms = rounded;
    errors->mu_terms_low = compound_down(m->add_u, s->acc_depth);
    errors->nu_terms = errors->nu;
    if (m->acc_stores == MLA_ACC_STORES_BLOCKS && m->acc_u > 0.0) {
        errors->stores = m->acc_extra.per_block;
        errors->store_u = m->acc_u;
        /* So large that its products with weights and values are no subnormal doubles. */
        errors->store = fmax(compound(m->acc_u, errors->stores), 0x1p-100);
        errors->nu_terms = up(rounded + m->pv_product_u * (1.0 + rounded));
    }
    errors->div = compound(m->add_u, m->div_roundings);
    errors->div_abs = up((m->div_roundings + 1.0) * s->f * (1.0 + errors->div));
}

struct mla_oracle_sum_factor mla_oracle_sum_factor(const struct mla_oracle_errors *errors,
                                                   int64_t blocks)
{
    if (errors->stores == 0.0) {
        return (struct mla_oracle_sum_factor){errors->mu, errors->mu_low};
    }
    const double stores = errors->stores * (double)blocks;
    const double stored = compound(errors->store_u, stores);

    return (struct mla_oracle_sum_factor){
        .mu = up(errors->mu_terms + stored + errors->mu_terms * stored),
        .mu_low = down(errors->mu_terms_low * compound_down(errors->store_u, stores))};
}

/* ln growth's slack: by how much a computed argument can be positive. */
static double positive_arguments(const struct setting *s)
{
    switch (s->model->arg_form) {
    case MLA_ARG_DIFFERENCE:
        return s->arg_abs;
    case MLA_ARG_SCALED: /* Z and z_j are each off by g times their magnitude, and once more */
        return up(2.0 * s->g * (1.0 + s->g) * (1.0 + s->rs) * (s->max_any + s->max_abs) +
                  s->arg_abs);
    default:
        return up(2.0 * (s->rescales + 1.0) * s->g * (1.0 + s->rs) * s->max_any + s->arg_abs);
    }
}

/* Sections 5 and 6; needs up_sum. down_sum: sum of down, lower. */
static void underflow(const struct setting *s, struct mla_oracle_errors *e, double down_sum)
{
    const struct mla_model *m = s->model;
    const double n = (double)s->truth->keys_n;
    const double floor_w = fmax(fmax(s->f, m->exp_floor), 0x1p-126 * fmax(m->p_u, m->alpha_u));
    const double floor_a = max3(s->f, 0x1p-126 * m->acc_u, 0x1p-126 * m->pv_product_u);
    const double frame = m->arg_form == MLA_ARG_SCALED ? up(s->g * s->max_abs) : 0.0;
    const double lead = up(exp_up(up(e->max_above + frame)) * exp(-s->truth->log_sum));
    const double grown =
        up((s->rescales + 1.0) * s->e + s->rescales * s->alpha + positive_arguments(s));
    const double least = down(exp_minus_down(grown) * (m->sum_rounded ? 1.0 - m->p_u : 1.0));

    const double small = up(
        n * (3.0 * (s->rescales + 1.0) * floor_w + (s->rescales + s->acc_extra + 4.0) * floor_a) *
        (1.0 + e->mu));

    e->growth = up(exp_up(grown) * (1.0 + m->p_u));
    e->key_loss = up(3.0 * s->rescales * floor_w * e->growth);
    e->row_loss = up(n * (s->rescales + s->acc_extra + 4.0) * floor_a * e->growth);
    e->is_per_weight = !(small * e->growth * lead <= 0x1p-10 * down_sum * e->mu_low);
    const double scale = up(e->growth * (e->is_per_weight ? 1.0 / least : lead));

    e->key_abs = up(3.0 * (s->rescales + 1.0) * floor_w * scale);
    e->row_abs = up(n * (s->rescales + s->acc_extra + 4.0) * floor_a * scale);
    e->abs_d = up(small * scale);
    if (e->is_per_weight) {
        e->denominator = down(down_sum * down(e->mu_low - e->abs_d)); /* lower if positive */
        e->greatest = up(e->up_sum * (1.0 + e->mu + e->abs_d));
    } else {
        e->denominator = down(down(down_sum * e->mu_low) - e->abs_d); /* lower if positive */
        e->greatest = up(e->up_sum * (1.0 + e->mu) + e->abs_d);
    }
}

static bool allocate(struct mla_oracle_errors *errors, int64_t n)
{
    double **const arrays[] = {&errors->up,    &errors->down, &errors->spread,
                               &errors->spill, &errors->most, &errors->eps};
    bool ok = true;

    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i] = calloc((size_t)n, sizeof(double));
        ok = ok && *arrays[i] != NULL;
    }
    return ok;
}

void mla_oracle_errors_free(struct mla_oracle_errors *errors)
{
    free(errors->eps);
    free(errors->most);
    free(errors->spill);
    free(errors->spread);
    free(errors->down);
    free(errors->up);
}

/* May s - m overflow where its exponential still matters (section 8)? */
static bool difference_overflows(const struct setting *s)
{
    const double sigma = s->truth->scale;
    const struct mla_model *m = s->model;
    const double least =
        down(sigma * (double)FLT_MAX * fmax(0.0, 1.0 - s->g) * (1.0 - s->rs)) - s->arg_abs;

    return m->arg_form == MLA_ARG_DIFFERENCE &&
           !(up(s->widest / sigma * (1.0 + m->add_u)) <= (double)FLT_MAX) &&
           !(up(exp(-down(least))) <= fmax(s->f, m->exp_floor));
}

/* MLA_BOUND_OK, or why the row cannot be judged: factors without meaning, a scale of which
 * rounding leaves nothing, or a number in the kernel that the declared errors may carry beyond
 * binary32. */
static int32_t judge(const struct setting *s, const struct mla_oracle_errors *errors)
{
    const struct mla_truth *t = s->truth;
    const double score = (1.0 + s->a) * (1.0 + s->model->product_u) * (1.0 + s->model->score_u);

    if (!(errors->mu < 1.0 && errors->nu < 1.0 && score * (1.0 + s->declared) <= 2.0 &&
          errors->div < 1.0)) {
        return MLA_BOUND_MODEL;
    }
    if (!(score * (1.0 + s->g) <= 2.0) || difference_overflows(s)) {
        return MLA_BOUND_RANGE;
    }
    if (!(errors->growth < DBL_MAX && errors->up_sum < DBL_MAX && errors->abs_d < DBL_MAX &&
          errors->denominator > 0.0)) {
        return MLA_BOUND_MODEL;
    }
    for (int64_t l = 0; l < t->columns_n; l++) {
        if (!(up(t->abs_value[l] * errors->growth * (1.0 + errors->nu)) <= (double)FLT_MAX)) {
            return MLA_BOUND_RANGE;
        }
    }
    return MLA_BOUND_OK;
}

int32_t mla_oracle_errors_make(const struct mla_truth *truth, const struct mla_model *model,
                               struct mla_oracle_errors *errors)
{
    struct setting s = setting_make(truth, model);
    double down_sum = 0.0;

    *errors = (struct mla_oracle_errors){.arg_u = s.g, .arg_abs = s.arg_abs};
    if (!allocate(errors, truth->keys_n)) {
        return MLA_ERR_NOMEM;
    }
    locate_maximum(&s, errors);
    sum_factors(&s, errors);
    for (int64_t j = 0; j < truth->keys_n; j++) {
        const double eps = errors->eps[j];
        const double arg =
            argument_error(&s, truth->gap[j], truth->score[j], eps, errors->max_above);
        const double h = up(eps + arg + s.e + s.rescales * (s.e + s.alpha));

        s.widest = fmax(s.widest, up(errors->max_above + truth->gap[j] + eps));
        weigh(&s, errors, j, h);
        errors->up_sum += errors->up[j];
        errors->spread_sum += errors->spread[j];
        down_sum += errors->down[j];
    }
    errors->up_sum = mla_oracle_up(errors->up_sum, truth->keys_n);
    errors->spread_sum = mla_oracle_up(errors->spread_sum, truth->keys_n);
    down_sum = mla_oracle_down(down_sum, truth->keys_n);
    errors->floor = s.f;
    errors->rescales = s.rescales;
    errors->exp_log = s.e;
    errors->alpha_log = s.alpha;
    errors->max_abs = s.max_abs;
    errors->max_any = s.max_any;
    underflow(&s, errors, down_sum);
    errors->state = judge(&s, errors);
    return MLA_OK;
}
