/* SPDX-License-Identifier: Apache-2.0
 *
 * known.c - the weights of a kernel that says in which frame its p becomes bf16.
 *
 * Notation of errors.c. The visible keys form blocks b = 0 .. in visiting order (ROW: one block):
 * p_block_keys each, or the K chunks as this model cuts them (chunks.c).
 * m^_b is the largest computed score in blocks 0 .. b, m^ the row's. Key j of block b gets
 *     p~_j = exponential of the argument for s^_j - m^_b,   P_j = p~_j rounded to bf16,
 *     W_j = P_j R_j,   R_j the product of the (at most T) rescale factors that carry block b's frame
 *                      to the row's last one,
 *     U_j = W_j if the sum adds rounded p, else p~_j R_j, with the very same R_j (O and l share it).
 * So these W and U are the computed weights themselves, in the kernel's frame; no frame is divided
 * out, and the absolute errors of errors.c, section 5, are taken as they arise.
 *
 * 1. WHERE THE MAXIMA ARE.  With |sigma s^_k - x_k| <= eps_k and gap_k = M - x_k,
 *        M - L_b <= sigma m^_b <= M + A_b,
 *        A_b = max (eps_k - gap_k),  L_b = min (eps_k + gap_k)   over the keys of blocks 0 .. b.
 *    M_b = max(|M + A_b|, |M - L_b|) >= |sigma m^_b|. N_b = max (eps_k - gap_k) over the keys of later
 *    blocks (none: -inf): m^ exceeds m^_b only by one of those.
 *    Scaled form: scores are scaled, and rounded, before maxima are taken; z_k = sigma s^_k (1+d),
 *    |d| <= g, takes the place of sigma s^_k, so eps'_k = eps_k + g X_k that of eps_k. (A kernel that
 *    scales the maximum instead lies in the same A_b and L_b, as t -+ g|t| grow with t; its
 *    arguments may be positive by slack = g (X_j + M_b).)
 *
 * 2. p BEFORE ITS ROUNDING.  Of the argument sigma(m^_b - s^_j), sign turned, is known
 *        max(-slack, gap_j - eps_j - L_b) <= . <= gap_j + eps_j + A_b =: range_j,
 *    -slack (else 0) because m^_b has seen key j. It is computed with an error of at most
 *        difference  g range_j                 (relative, section 2 of errors.c with T = 0)
 *        scaled      g (range_j + slack)       (the products' own errors are in eps')
 *        mixed       g (X_j + M_b)             (here the shift's own rounding does not cancel)
 *    and arg_abs. Hence p~_j lies between
 *        exp(-(range_j + arg_j + e'))  and  exp(-(max(-slack, gap_j - eps_j - L_b) - arg_j - e')).
 *    Nothing is assumed of exp(0): an argument that is exactly 0 may give 1 -+ exp_error. Unless the
 *    model says so (exp_slope > 0). Then p~_j is 1 where range_j and its errors are 0, as equal
 *    numbers have been subtracted; and e' is no more than (exp_slope |x| + 2 add_u)/(1-exp_error),
 *    x the computed argument: -ln(1-y) <= y/(1-e) for y <= e.
 *
 * 3. ITS ROUNDING.  Rounding to bf16, to nearest or toward zero, is monotone: P_j lies between the
 *    rounded ends. That holds where the lower end exceeds max(2^-126, exp_floor): above it the
 *    exponential neither underflows nor is returned as 0, and P_j is no subnormal that might be
 *    flushed. Below it all that is used is 0 <= P_j <= upper end, raised to that limit + 2 f before it
 *    is rounded, and the same for p~_j: a result below the normal range is off by at most f, and
 *    where s - m overflows the exponential is at most max(f, exp_floor) (errors.c, section 8).
 *    A kernel whose tie does not go to even loses nothing: a boundary inside the interval leaves
 *    both neighbours open.
 *
 * 4. TO THE ROW'S FRAME.  sigma(m^ - m^_b) lies between
 *        max(-s_b, -L - A_b)  (L of all keys)   and   max(0, N_b + L_b) =: carry,
 *    s_b = g (M_b + M_a) in the scaled form where carry > 0, else 0 (slack again).
 *    Where carry = 0 no later key can be the maximum: m^_b is m^, and kept. A weight of block b meets
 *    at most T_b rescales: no more than there are later blocks, and no more than T (ROW: T). With
 *    exp_slope a factor of exactly 1 is none, and only blocks count whose keys' greatest eps - gap
 *    exceeds -L of the blocks before: others cannot raise the maximum. The errors of exponentials
 *    are then (exp_slope sum |x| + 2 T_b add_u)/(1-exp_error) at most, with sum |x| <= carry + its
 *    errors. They have, telescoping as in errors.c, arguments off by at most
 *        difference  (g + rs (1+g)) carry
 *        scaled      (g + rs (1+g)) (carry + s_b)
 *        mixed       2 T_b g (1+rs) M_x + rs carry
 *    and arg_abs, none of it if T_b = 0; and factors e^(+-T_b (e' + alpha')). R_j lies between the
 *    two exponentials, and is 1 exactly if there is nothing to carry and no error to make.
 *    Each of T factors can lose F_w three times: W_j is off by key_loss = 3 T F_w growth besides;
 *    accumulators by row_loss; aD = (1+mu)(n key_loss + row_loss).
 *
 * 5. THE QUOTIENT.  Let P = Pc +- Ph, p~ = c~ +- h~, R = Rc +- Rh and t any number.
 *    Rounded sum, W = C +- h the product of the intervals of P and R:
 *        sum W (1+nu_j) v - t sum W (1+mu_j)
 *            = sum C (v - t) + sum (W - C)(v - t) + sum W (nu_j v - t mu_j):
 *        spread = h,  spill = nu most,  share = mu sum most.
 *    Unrounded sum: R (P v - t p~) - Rc (Pc v - t c~)
 *            = (R - Rc)(Pc v - t c~) + R ((P - Pc) v - t (p~ - c~)),
 *        and Pc v - t c~ = Pc (v - t) + t (Pc - c~):
 *        C = Rc Pc,  spread = Rh Pc,  spill = R Ph + nu most (R at its upper end),
 *        share = sum (R h~ + Rh |Pc - c~|) + mu sum R p~  (both at their upper ends).
 *    Where acc_stores says that stores are whole, nu, of spill only, is without them, and their own
 *    error is added; and the rescale factors, which a block's keys have in common, need not be in
 *    spread: stored.c. mu is what a block's own and later stores do; (1-mu)low likewise.
 *    What is left is sum C v - t S, S = sum C or sum Rc c~: 0 for t = their quotient. Then
 *        |N/D - t| <= ( sum spread |v-t| + sum spill |v| + share |t| + absN + flushed V + |t| absD )
 *                     / ( (1-mu)low sum(lower U) - absD ).
 *
 * Rounding of this file's own arithmetic. gap is up to 1 + 2^-50 too large, and sums like eps_k -
 * gap_k round by 2^-53 of their parts. In A_b, L_b and N_b only keys with gap_k <= G_b + 2 E matter,
 * G_b the least gap of blocks 0 .. b and E the greatest eps. A bound on an argument is the sum of
 * two gaps <= gap_j + 2 E and two eps, so off by less than 2^-48 (gap_j + E); one on a carry by less
 * than 2^-48 (L_b + 2 E); these are added. Other sums are of non-negative upper bounds and
 * raised. Ends of P are exact; products of ends are lowered and raised. t is computed in double: n
 * products, n additions, the sum S and a quotient, so sum C v - t S is not 0 but at most (n+8) 2^-52
 * (sum most |v| + |t| S), which spill and share contain.
 */
#include "oracle/known.h"

#include "oracle/bf16.h"
#include "oracle/stored.h"

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

/* e^-t for a lower t, upper; e^-t for an upper t >= 0, lower. Never subnormal. */
static double exp_above(double t)
{
    const double value = t > 0.0 ? up(exp(-down(t))) : up(exp(up(-t)));

    return fmax(value, MLA_ORACLE_WEIGHT_MIN);
}

static double exp_below(double t)
{
    const double value = t < 700.0 ? down(exp(-up(t))) : 0.0;

    return value > MLA_ORACLE_WEIGHT_MIN ? value : 0.0;
}

/* ---- the row ----------------------------------------------------------------------------------*/

struct interval {
    double low;
    double high;
};

struct row {
    const struct mla_truth *truth;
    const struct mla_model *model;
    const struct mla_oracle_errors *errors;
    double g;
    const int64_t *chunk; /* by key visited, where chunks are the blocks */
    int64_t last;         /* number of the last block */
    double any_eps;       /* E */
    double all_below;     /* L of all keys */
    double p_floor;       /* at or below it p~ may be anything down to 0 */
    double worst;         /* by how much an argument, or a carry, may come out positive */
    const double *later;  /* look_ahead: by key visited, */
    const double *raises; /* and by block */
    struct mla_oracle_sum_factor factor; /* of the block gone through */
};

/* What the keys of blocks 0 .. b say (section 1), and how their block is carried (section 4). */
struct frame {
    double above;          /* A_b */
    double below;          /* L_b */
    double size;           /* M_b */
    struct interval carry; /* R */
};

static int64_t key_at(const struct mla_truth *t, int64_t i)
{
    return t->visit != NULL ? t->visit[i] : i;
}

/* Block of the i-th visited key. */
static int64_t block_of(const struct row *r, int64_t i)
{
    if (r->model->p_frame == MLA_P_FRAME_ROW) {
        return 0;
    }
    return r->model->p_block_keys > 0 ? i / r->model->p_block_keys : r->chunk[i];
}

/* Where the block that starts at the i-th visited key ends. */
static int64_t block_end(const struct row *r, int64_t i)
{
    const int64_t block = block_of(r, i);

    while (i < r->truth->keys_n && block_of(r, i) == block) {
        i++;
    }
    return i;
}

/* eps_j, or eps'_j of the scaled form. */
static double uncertainty(const struct row *r, int64_t j)
{
    const double eps = r->errors->eps[j];

    return r->model->arg_form == MLA_ARG_SCALED ? up(eps + r->g * (r->truth->score[j] + eps)) : eps;
}

/* ---- sections 2 to 4 --------------------------------------------------------------------------*/

/* T_b. */
static double rescales_of(const struct row *r, int64_t block)
{
    const double all = r->errors->rescales;
    const double later = r->model->exp_slope > 0.0 ? r->raises[block] : (double)(r->last - block);

    return r->model->p_frame == MLA_P_FRAME_ROW ? all : fmin(all, later);
}

/* What `times` exponentials of arguments that add up to x at most can be off by, in logarithms. */
static double exp_error(const struct row *r, double times, double x)
{
    const struct mla_model *m = r->model;
    const double any = times * r->errors->exp_log;

    if (m->exp_slope == 0.0) {
        return any;
    }
    return fmin(any, up((m->exp_slope * x + 2.0 * times * m->add_u) / (1.0 - m->exp_error)));
}

/* The part of a bound on a carry that rounding may have taken. */
static double carry_rounding(const struct row *r, double below)
{
    return 0x1p-48 * (below + 2.0 * r->any_eps);
}

/* Where a block's frame is carried to: the row's last, or that of the next block. */
struct way {
    double later;    /* N_b, of the keys on the way */
    double below;    /* L of the keys up to its end */
    double size;     /* of the scaled maximum there */
    double rescales; /* T_b */
};

/* R of a block whose frame is located. */
static struct interval carry_of(struct row *r, const struct frame *frame, const struct way *way)
{
    const struct mla_oracle_errors *e = r->errors;
    const double rs = r->model->rescale_scale_u;
    const double rescales = way->rescales;
    const double tau = carry_rounding(r, frame->below);
    const double far = fmax(0.0, way->later + frame->below + tau);
    double slack = 0.0;
    double error = 0.0;

    if (r->model->arg_form == MLA_ARG_SCALED && far > 0.0) {
        slack = up(r->g * (frame->size + way->size));
    }
    if (rescales > 0.0) {
        error = r->model->arg_form == MLA_ARG_MIXED
                    ? 2.0 * rescales * r->g * (1.0 + rs) * e->max_any + rs * far
                    : (r->g + rs * (1.0 + r->g)) * (far + slack);
        error = up(error + e->arg_abs);
        error = up(error + exp_error(r, rescales, far + slack + error) + rescales * e->alpha_log);
    }
    const double near = fmax(-slack, -way->below - frame->above - tau);

    if (far + error == 0.0) {
        return (struct interval){1.0, 1.0};
    }
    r->worst = fmax(r->worst, error - near);
    return (struct interval){exp_below(up(far + error)), exp_above(near - error)};
}

/* p~ of key j (section 2). */
static struct interval p_before(struct row *r, const struct frame *frame, int64_t j)
{
    const struct mla_truth *t = r->truth;
    const double eps = uncertainty(r, j);
    const double gap = t->gap[j];
    const double tau = 0x1p-48 * (gap + r->any_eps);
    const double range = up(fmax(0.0, gap + eps + frame->above) + tau);
    const double x = up(t->score[j] + r->errors->eps[j]);
    double slack = 0.0;
    double arg = r->g * range;

    if (r->model->arg_form == MLA_ARG_SCALED) {
        slack = up(r->g * (x + frame->size));
        arg += r->g * slack;
    } else if (r->model->arg_form == MLA_ARG_MIXED) {
        arg = r->g * (x + frame->size);
    }
    const double near = fmax(-slack, gap - eps - frame->below - tau);
    const double size = up(range + slack + arg + r->errors->arg_abs);
    const double error = up(arg + r->errors->arg_abs + exp_error(r, 1.0, size));

    if (r->model->exp_slope > 0.0 && range + slack + arg == 0.0) {
        return (struct interval){1.0, 1.0}; /* equal numbers have been subtracted */
    }

    r->worst = fmax(r->worst, error - near);
    return (struct interval){exp_below(up(range + error)), exp_above(near - error)};
}

static double round_p(const struct row *r, double p)
{
    return mla_oracle_bf16_value(r->model->p_u == 0x1p-7 ? mla_oracle_bf16_truncate(p)
                                                         : mla_oracle_bf16_nearest(p));
}

/* P from p~ (section 3), which it widens where p~ may underflow. */
static struct interval p_after(const struct row *r, struct interval *p)
{
    if (p->low > r->p_floor) {
        return (struct interval){round_p(r, p->low), round_p(r, p->high)};
    }
    p->low = 0.0;
    p->high = up(fmax(p->high, r->p_floor) + 2.0 * r->errors->floor);
    return (struct interval){0.0, round_p(r, p->high)};
}

/* ---- section 5 --------------------------------------------------------------------------------*/

static struct interval product(struct interval a, struct interval b)
{
    return (struct interval){down(a.low * b.low), up(a.high * b.high)};
}

/* An exact product stays exact: most weights of a two-pass kernel are then certain. */
static struct interval carried(struct interval p, struct interval carry)
{
    return carry.low == 1.0 && carry.high == 1.0 ? p : product(p, carry);
}

static double centre_of(struct interval a)
{
    return 0.5 * (a.low + a.high);
}

/* Greatest distance of a's numbers from c. */
static double reach(struct interval a, double c)
{
    return a.low == a.high && a.low == c ? 0.0 : up(fmax(a.high - c, c - a.low));
}

/* Key j's entries and its parts of the sums; returns U's lower end, times its least 1+mu. */
static double weigh(const struct row *r, struct mla_oracle_known *known, int64_t j,
                    struct interval before, struct interval after, struct interval carry)
{
    const struct interval weight = carried(after, carry);
    const double factor = centre_of(carry);
    double u_centre;
    double u_half;

    known->most[j] = weight.high;
    known->spill[j] = r->errors->nu_terms * weight.high;
    if (r->model->sum_rounded) {
        known->centre[j] = centre_of(weight);
        known->half[j] = reach(weight, known->centre[j]);
        known->own[j] = reach(carried(after, (struct interval){factor, factor}), known->centre[j]);
        known->spread[j] = known->half[j];
        known->sum += known->centre[j];
        known->sum_half += known->half[j];
        known->sum_most += weight.high;
        known->sum_loose += r->factor.mu * weight.high;
        return weight.low * r->factor.mu_low;
    }
    const double factor_half = reach(carry, factor);
    const double p = centre_of(after);
    const struct interval u = carried(before, carry);

    u_centre = centre_of(before);
    u_half = reach(before, u_centre);
    known->centre[j] = factor * p;
    known->half[j] = reach(weight, known->centre[j]);
    known->own[j] = reach(carried(after, (struct interval){factor, factor}), known->centre[j]);
    known->spread[j] = up(factor_half * p);
    known->spill[j] += carry.high * reach(after, p);
    known->share += up(carry.high * u_half + factor_half * (fabs(p - u_centre) + 0x1p-52 * p));
    known->sum += factor * u_centre;
    known->sum_half += reach(u, factor * u_centre);
    known->sum_most += u.high;
    known->sum_loose += r->factor.mu * u.high;
    return u.low * r->factor.mu_low;
}

/* The sums' own rounding, the residual of t, and what underflow adds. */
static void finish(const struct row *r, struct mla_oracle_known *known, double least)
{
    const struct mla_oracle_errors *e = r->errors;
    const int64_t n = r->truth->keys_n;
    const double residual = (double)(n + 8) * 0x1p-52;

    known->sum_half = mla_oracle_up(known->sum_half, n) + residual * known->sum;
    known->sum_most = mla_oracle_up(known->sum_most, n);
    known->sum_loose = mla_oracle_up(known->sum_loose, n + 1);
    known->share = up(mla_oracle_up(known->share, n) + known->sum_loose) +
                   up(residual * (known->sum + known->sum_half));
    for (int64_t j = 0; j < n; j++) {
        known->spill[j] = up(known->spill[j] + residual * known->most[j]);
    }
    known->abs_d = up((1.0 + e->mu) * ((double)n * e->key_loss + e->row_loss));
    known->denominator = down(mla_oracle_down(least, n + 1) - known->abs_d);
    known->greatest = up(known->sum_most + known->sum_loose + known->abs_d);
    known->is_located = true;
}

/* ---- the blocks -------------------------------------------------------------------------------*/

/* raises[b]: how many blocks after b may hold a score above all before them. */
static void count_raises(const struct row *r, double *raises)
{
    const struct mla_truth *t = r->truth;
    double below = INFINITY; /* L of the blocks before */
    int64_t end;

    for (int64_t first = 0; first < t->keys_n; first = end) {
        double highest = -INFINITY;
        double lowest = INFINITY;

        end = block_end(r, first);
        for (int64_t i = first; i < end; i++) {
            const int64_t j = key_at(t, i);
            const double eps = uncertainty(r, j);

            highest = fmax(highest, eps - t->gap[j]);
            lowest = fmin(lowest, eps + t->gap[j]);
        }
        raises[block_of(r, first)] = highest + below + carry_rounding(r, below) > 0.0 ? 1.0 : 0.0;
        below = fmin(below, lowest);
    }
    double after = 0.0;

    for (int64_t b = r->last; b >= 0; b--) {
        const double own = raises[b];

        raises[b] = after;
        after += own;
    }
}

/* later[i]: max of eps - gap over the keys visited from the i-th on; later[n] = -inf. */
static void look_ahead(struct row *r, double *later)
{
    const struct mla_truth *t = r->truth;

    later[t->keys_n] = -INFINITY;
    r->all_below = INFINITY;
    for (int64_t i = t->keys_n - 1; i >= 0; i--) {
        const int64_t j = key_at(t, i);
        const double eps = uncertainty(r, j);

        r->any_eps = fmax(r->any_eps, eps);
        r->all_below = fmin(r->all_below, eps + t->gap[j]);
        later[i] = fmax(later[i + 1], eps - t->gap[j]);
    }
}

/*
 * d of a block (stored.c, section 2): its factor is 1 if it cannot raise the maximum, else the carry
 * of one rescale; centres are those that the weights before it and its own were given.
 */
static double step_of(struct row *r, const struct frame *before, const struct frame *frame,
                      double highest)
{
    const bool may_raise = highest + before->below + carry_rounding(r, before->below) > 0.0;
    const double times =
        r->model->exp_slope > 0.0 && !may_raise ? 0.0 : fmin(1.0, r->errors->rescales);
    const struct way way = {highest, frame->below, frame->size, times};
    const struct interval factor = carry_of(r, before, &way);
    const double centres = centre_of(frame->carry) / centre_of(before->carry);

    if (factor.low == 1.0 && factor.high == 1.0 && centres == 1.0) {
        return 0.0;
    }
    return up(fmax(up(factor.high * centres) - 1.0, 1.0 - down(factor.low * centres)) + 0x1p-50);
}

/* The greater magnitude, upper although both are sums of two numbers. */
static double greatest(double low, double high, double parts)
{
    return up(fmax(fabs(low), fabs(high)) + 0x1p-51 * parts);
}

/* All blocks in turn; returns the least sum of U (1+mu). */
static double weigh_blocks(struct row *r, struct mla_oracle_known *known)
{
    const struct mla_truth *t = r->truth;
    struct frame frame = {.above = -INFINITY, .below = INFINITY};
    double least = 0.0;
    int64_t end;

    for (int64_t first = 0; first < t->keys_n; first = end) {
        end = block_end(r, first);
        known->ends[known->blocks_n++] = end;
        r->factor = mla_oracle_sum_factor(r->errors, r->last - block_of(r, first) + 1);
        const struct frame last = frame;
        double highest = -INFINITY;

        for (int64_t i = first; i < end; i++) {
            const int64_t j = key_at(t, i);
            const double eps = uncertainty(r, j);

            highest = fmax(highest, eps - t->gap[j]);
            frame.below = fmin(frame.below, eps + t->gap[j]);
        }
        frame.above = fmax(frame.above, highest);
        frame.size = greatest(t->max - frame.below, t->max + frame.above,
                              fabs(t->max) + fabs(frame.above) + frame.below);
        const struct way way = {r->later[end], r->all_below, r->errors->max_abs,
                                rescales_of(r, block_of(r, first))};

        frame.carry = carry_of(r, &frame, &way);
        if (first > 0) {
            known->step[known->blocks_n - 1] = step_of(r, &last, &frame, highest);
        }
        for (int64_t i = first; i < end; i++) {
            const int64_t j = key_at(t, i);
            struct interval before = p_before(r, &frame, j);
            const struct interval after = p_after(r, &before);

            least += weigh(r, known, j, before, after, frame.carry);
        }
    }
    return least;
}

/* Is the set narrower than what the general formula of bound.c can give? Both are of the form
 * (sum a |v - t| + sum b |v| + c |t| + absolute) / D; compared for |v| = |t| = |v - t| = 1. */
static bool is_narrower(const struct row *r, const struct mla_oracle_known *known)
{
    const struct mla_oracle_errors *e = r->errors;
    const double n = (double)r->truth->keys_n;
    const double times = e->is_per_weight ? e->up_sum : 1.0;
    double wide =
        e->spread_sum + e->mu * e->up_sum + times * (n * e->key_abs + e->row_abs + e->abs_d);
    double narrow = known->share + n * e->key_loss + e->row_loss + known->abs_d;

    for (int64_t j = 0; j < r->truth->keys_n; j++) {
        wide += e->spill[j];
        narrow += known->spread[j] + known->spill[j];
    }
    return narrow * e->denominator < wide * known->denominator;
}

/* ---- interface --------------------------------------------------------------------------------*/

bool mla_oracle_known_applies(const struct mla_model *model)
{
    return model->p_frame != MLA_P_FRAME_UNKNOWN && (model->p_u == 0x1p-8 || model->p_u == 0x1p-7);
}

static bool allocate(struct mla_oracle_known *known, int64_t n)
{
    double **const arrays[] = {&known->centre, &known->half,  &known->most, &known->own,
                               &known->spread, &known->spill, &known->step};
    bool ok = true;

    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i] = calloc((size_t)n, sizeof(double));
        ok = ok && *arrays[i] != NULL;
    }
    known->ends = calloc((size_t)n, sizeof known->ends[0]);
    return ok && known->ends != NULL;
}

void mla_oracle_known_free(struct mla_oracle_known *known)
{
    free(known->ends);
    free(known->spill);
    free(known->step);
    free(known->spread);
    free(known->own);
    free(known->most);
    free(known->half);
    free(known->centre);
    *known = (struct mla_oracle_known){0};
}

int32_t mla_oracle_known_make(const struct mla_truth *truth, const struct mla_model *model,
                              const struct mla_oracle_errors *errors,
                              struct mla_oracle_known *known)
{
    struct row row = {.truth = truth, .model = model, .errors = errors, .g = errors->arg_u};
    const bool is_chunked = model->p_frame == MLA_P_FRAME_BLOCKS && model->p_block_keys == 0;

    *known = (struct mla_oracle_known){.is_stored = errors->stores > 0.0,
                                       .sum_rounded = model->sum_rounded != 0};
    if (!mla_oracle_known_applies(model) || errors->state != MLA_BOUND_OK ||
        (is_chunked && !truth->is_ring)) {
        return MLA_OK;
    }
    double *later = calloc(2 * (size_t)truth->keys_n + 1, sizeof *later); /* and raises */
    int64_t *chunk = is_chunked ? calloc((size_t)truth->keys_n, sizeof *chunk) : NULL;

    if (later == NULL || (is_chunked && chunk == NULL) || !allocate(known, truth->keys_n)) {
        free(chunk);
        free(later);
        return MLA_ERR_NOMEM;
    }
    if (is_chunked) {
        (void)mla_oracle_chunks(truth, model, chunk);
    }
    row.chunk = chunk;
    row.p_floor = fmax(0x1p-126, model->exp_floor);
    row.last = block_of(&row, truth->keys_n - 1);
    look_ahead(&row, later);
    count_raises(&row, later + truth->keys_n + 1);
    row.later = later;
    row.raises = later + truth->keys_n + 1;
    const double least = weigh_blocks(&row, known);

    free(chunk);
    free(later);
    /* Beyond e^1 nothing is gained, and numbers stay small when that is left out. */
    if (!(row.worst <= 1.0)) {
        return MLA_OK;
    }
    finish(&row, known, least);
    known->is_usable = known->denominator > 0.0 && is_narrower(&row, known);
    return MLA_OK;
}

/* middle[l] = sum_j centre_j v_jl, radius[l] = sum_j spill_j |v_jl|, in double. */
static void first_pass(const struct mla_truth *t, const struct mla_oracle_known *known,
                       double *restrict middles, double *restrict radii)
{
    for (int64_t l = 0; l < t->columns_n; l++) {
        middles[l] = 0.0;
        radii[l] = 0.0;
    }
    for (int64_t j = 0; j < t->keys_n; j++) {
        const uint16_t *restrict row = t->value[j];
        const double centre = known->centre[j];
        const double spill = known->spill[j];

        for (int64_t l = 0; l < t->columns_n; l++) {
            const double v = mla_oracle_bf16_value(row[l]);

            middles[l] += centre * v;
            radii[l] += spill * fabs(v);
        }
    }
}

/* work[l] = sum_j spread_j |v_jl - middle_l|. */
static void second_pass(const struct mla_truth *t, const struct mla_oracle_known *known,
                        const double *restrict middles, double *restrict work)
{
    for (int64_t l = 0; l < t->columns_n; l++) {
        work[l] = 0.0;
    }
    for (int64_t j = 0; j < t->keys_n; j++) {
        const uint16_t *restrict row = t->value[j];
        const double spread = known->spread[j];

        if (spread == 0.0) {
            continue;
        }
        for (int64_t l = 0; l < t->columns_n; l++) {
            work[l] += spread * fabs(mla_oracle_bf16_value(row[l]) - middles[l]);
        }
    }
}

void mla_oracle_known_columns(const struct mla_truth *t, const struct mla_oracle_errors *errors,
                              const struct mla_oracle_known *known, const double *lost,
                              double *middle, double *radius, double *work)
{
    struct mla_oracle_stored whole = {NULL, NULL};

    first_pass(t, known, middle, radius);
    for (int64_t l = 0; l < t->columns_n; l++) {
        middle[l] /= known->sum;
    }
    second_pass(t, known, middle, work);
    if (known->is_stored) {
        whole = mla_oracle_stored_columns(t, errors, known, known->sum_rounded ? middle : NULL,
                                          work + t->columns_n);
    }
    for (int64_t l = 0; l < t->columns_n; l++) {
        const double apart = mla_oracle_up(radius[l] + work[l], t->keys_n + 8);
        const double terms =
            known->is_stored && known->sum_rounded ? fmin(apart, whole.apart[l]) : apart;
        const double stored = known->is_stored ? whole.stored[l] : 0.0;
        const double size = fabs(middle[l]);
        const double absolute =
            up((1.0 + errors->nu) * (errors->key_loss * t->abs_value[l] + errors->row_loss)) +
            lost[l] + size * known->abs_d;

        radius[l] = up((terms + stored + known->share * size + absolute) / known->denominator);
    }
}
