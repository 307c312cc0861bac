/* SPDX-License-Identifier: Apache-2.0
 *
 * attend.c - the online softmax of one row, every rounding chosen.
 *
 * What a greedy one wants: an output o + B. The output is N/D with N = sum t_j v_j, D = sum t_j, so
 * key j's weight t_j helps if v_j lies beyond the target (v_j - target has the direction's sign) and
 * hurts otherwise: that is the key's direction, for its score, its argument, its exponential. A
 * rescale moves all keys of a state by one factor: it follows the sign of their sum of
 * t_j (v_j - target), the state's tilt. A rounding of p that only N sees follows the sign of v_j,
 * one of N the direction, one of D alone the opposite of direction times the sign of the target. The
 * target is o, or, aimed a second time, the output the first shot reached: with that one the choice
 * is the best one where errors are so large that D matters.
 *
 * Two choosers: one for all that makes weights (scores, maxima, p, rescale factors, the sum l) and
 * one for the sums over V. A blind adversary's first chooser has directions that know nothing of V.
 *
 * Counting, for the models (n keys, b blocks, P parts): a product and n - 1 additions, b - 1
 * rescales, of l one rounding less, which is left for its store as a binary32; P - 1 merges rescale
 * and add once each, and as each other part has a key at least, the additions stay n - 1 in all.
 * Restarting: a block's n_b products are exact, its sum has n_b - 1 roundings, and a rescale and the
 * sum's addition are one. Of l a block's first addition is left exact, for the store again.
 */
#include "fuzz/adversary/attend.h"

#include "oracle/bf16.h"

struct state {
    double m; /* running maximum: of scores, or of scaled scores where the model keeps those */
    double l;
    double *o;
    double tilt;
};

struct shot {
    struct mla_adversary_row *row;
    struct mla_adversary_work *work;
    struct mla_choice weights;
    struct mla_choice sums;
    double scale;     /* as it is multiplied by: in the log2 domain a rounded constant */
    double direction; /* of the output that is aimed at, and of all sums over V */
    double against;   /* of l */
    double target;
    double level_l[MLA_ADVERSARY_LEVELS];
    bool sees; /* weights follow the values */
};

static double value_of(const struct mla_adversary_row *row, int64_t j, int64_t column)
{
    return (double)mla_number_from_bf16(row->keys[0][j][column]);
}

static double add_u(const struct shot *s)
{
    return s->row->model->add_u;
}

static double weight_round(struct shot *s, double x, double dir)
{
    return mla_choice_round(&s->weights, x, add_u(s), dir);
}

/* ---- the weights ---- */

static double argument(struct shot *s, double scale, double score, double m, double dir)
{
    switch (s->row->model->arg_form) {
    case MLA_ARG_DIFFERENCE:
        return weight_round(s, weight_round(s, score - m, dir) * scale, dir);
    case MLA_ARG_SCALED:
        return weight_round(s, score - m, dir);
    default:
        return weight_round(
            s, weight_round(s, score * scale, dir) - weight_round(s, m * scale, -dir), dir);
    }
}

/* The largest relative error an exponential may have at this argument. */
static double exp_error(const struct mla_model *m, double argument)
{
    if (m->exp_slope == 0.0)
        return m->exp_error;
    return argument == 0.0 ? 0.0
                           : fmin(m->exp_error, m->exp_slope * fabs(argument) + 2.0 * m->add_u);
}

static double exponential(struct shot *s, double argument, double dir)
{
    const struct mla_model *m = s->row->model;
    double exact = s->row->plan->is_log2 ? exp2(argument) : exp(argument);
    if (exact <= m->exp_floor)
        return mla_choice_yes(&s->weights, -dir) ? 0.0 : exact;
    return mla_choice_round(&s->weights, exact, exp_error(m, argument), dir);
}

/* p as it meets V. A declared frame declares a true rounding to bf16: nothing is left to choose. */
static double cut(struct shot *s, double p, double dir)
{
    const struct mla_model *m = s->row->model;
    if (m->p_u == 0.0)
        return p;
    if (m->p_frame == MLA_P_FRAME_UNKNOWN)
        return mla_choice_round(&s->weights, p, m->p_u, dir);
    uint16_t bits = m->p_u < 0x1p-7 ? mla_oracle_bf16_nearest(p) : mla_oracle_bf16_truncate(p);
    return mla_choice_input(&s->weights, mla_oracle_bf16_value(bits), dir);
}

/* The kept scaled score is a binary32 where it is reported as it is. */
static double scaled_score(struct shot *s, double score, double dir)
{
    const struct mla_model *m = s->row->model;
    if (m->arg_form != MLA_ARG_SCALED)
        return score;
    if (m->stats_max == MLA_STATS_SHIFT)
        return (double)(float)(score * s->scale);
    return weight_round(s, score * s->scale, dir);
}

/* Accumulators that are stored with few bits. */
static void store_extra(struct shot *s, struct state *st)
{
    double u = s->row->model->acc_u;
    if (u == 0.0)
        return;
    st->l = mla_choice_round(&s->weights, st->l, u, s->against);
    for (int64_t c = 0; c < s->row->columns_n; c++)
        st->o[c] = mla_choice_round(&s->sums, st->o[c], u, s->direction);
}

/* By what a state is multiplied when its maximum becomes m; 1: it is left alone. */
static double rescale_factor(struct shot *s, const struct state *st, double m)
{
    const struct mla_model *model = s->row->model;
    double dir = s->sees ? s->direction * (st->tilt < 0.0 ? -1.0 : 1.0) : s->against;
    double scale = s->scale;
    if (st->l == 0.0 || m == st->m)
        return 1.0;
    if (model->rescale_scale_u > 0.0)
        scale = mla_choice_round(&s->weights, scale, model->rescale_scale_u, -dir);
    double alpha = exponential(s, argument(s, scale, st->m, m, dir), dir);
    if (model->alpha_u > 0.0)
        alpha = mla_choice_round(&s->weights, alpha, model->alpha_u, dir);
    return alpha;
}

static void rescale(struct shot *s, struct state *st, double m)
{
    bool stays = st->l == 0.0 || m == st->m;
    double alpha = rescale_factor(s, st, m);
    st->m = m;
    if (stays)
        return;
    st->l = weight_round(s, st->l * alpha, s->against);
    st->tilt *= alpha;
    for (int64_t c = 0; c < s->row->columns_n; c++)
        st->o[c] = mla_choice_round(&s->sums, st->o[c] * alpha, add_u(s), s->direction);
    if (s->row->plan->stores_twice)
        store_extra(s, st);
}

/* ---- the sums over V ---- */

static double product(struct shot *s, double p, uint16_t v)
{
    const struct mla_model *m = s->row->model;
    double exact = p * mla_choice_input(&s->sums, (double)mla_number_from_bf16(v), s->direction);
    if (m->pv_product_u > 0.0)
        exact = mla_choice_round(&s->sums, exact, m->pv_product_u, s->direction);
    return mla_choice_round(&s->sums, exact, m->add_u, s->direction);
}

static double sum_of_two(struct shot *s, double a, double b)
{
    if (a == 0.0 || b == 0.0)
        return a + b;
    return mla_choice_round(&s->sums, a + b, add_u(s), s->direction);
}

static void add_key(struct shot *s, const uint16_t *v, double p, double *o)
{
    for (int64_t c = 0; c < s->row->columns_n; c++)
        o[c] = sum_of_two(s, o[c], product(s, p, v[c]));
}

/* sum + a*b, rounded once; exact where there is nothing to add to or nothing to add. */
static double fused(struct shot *s, double sum, double a, double b)
{
    double u = sum == 0.0 || a * b == 0.0 ? 0.0 : add_u(s);
    return mla_choice_round(&s->sums, sum + a * b, u, s->direction);
}

static void add_vector(struct shot *s, double *to, const double *from)
{
    for (int64_t c = 0; c < s->row->columns_n; c++)
        to[c] = sum_of_two(s, to[c], from[c]);
}

static double sum_of_weights(struct shot *s, double a, double b)
{
    return a == 0.0 || b == 0.0 ? a + b : weight_round(s, a + b, s->against);
}

/* The i-th leaf of a pairwise sum: partial sums of equal size meet, as in a binary counter. */
static void add_leaf(struct shot *s, int64_t i, const uint16_t *v, double p, double added)
{
    double **level = s->work->level;
    int at = 0;
    for (; (i >> at & 1) != 0; at++)
        added = sum_of_weights(s, s->level_l[at], added);
    s->level_l[at] = added;
    for (int64_t c = 0; c < s->row->columns_n; c++) {
        double sum = product(s, p, v[c]);
        for (int k = 0; k < at; k++)
            sum = sum_of_two(s, level[k][c], sum);
        level[at][c] = sum;
    }
}

/* What the counter still holds after n leaves, smallest first. */
static void add_levels(struct shot *s, int64_t n, struct state *st)
{
    double **level = s->work->level;
    int low = 0;
    for (; (n >> low & 1) == 0; low++)
        ;
    for (int k = low + 1; n >> k != 0; k++)
        if ((n >> k & 1) != 0) {
            add_vector(s, level[low], level[k]);
            s->level_l[low] = sum_of_weights(s, s->level_l[low], s->level_l[k]);
        }
    add_vector(s, st->o, level[low]);
    st->l = sum_of_weights(s, st->l, s->level_l[low]);
}

/* ---- blocks ---- */

/* A key's p as it meets V and as the sum adds it. */
struct weight {
    double met, added;
};

static struct weight weigh(struct shot *s, struct state *st, int64_t j, int64_t column)
{
    const struct mla_adversary_row *row = s->row;
    double dir = s->work->dir[j];
    double p = exponential(s, argument(s, s->scale, s->work->score[j], st->m, dir), dir);
    double value = s->sees ? value_of(row, j, column) : 0.0;
    double only_v = s->sees ? s->direction * (value < 0.0 ? -1.0 : 1.0) : dir;
    double met = cut(s, p, row->model->sum_rounded ? dir : only_v);
    st->tilt += met * (value - s->target);
    return (struct weight){met, row->model->sum_rounded ? met : p};
}

static void absorb_key(struct shot *s, struct state *st, int64_t j, int64_t place, int64_t column)
{
    struct weight w = weigh(s, st, j, column);
    const uint16_t *v = s->row->keys[0][j];
    if (s->row->plan->is_tree) {
        add_leaf(s, place, v, w.met, w.added);
        return;
    }
    st->l = sum_of_weights(s, st->l, w.added);
    add_key(s, v, w.met, st->o);
}

/* A block's own sums, and then alpha times what is held added to them. */
static void absorb_anew(struct shot *s, struct state *st, double m, int64_t first, int64_t end)
{
    double alpha = rescale_factor(s, st, m), l = 0.0, *o = s->work->level[0];
    int64_t column = s->row->column < 0 ? 0 : s->row->column;
    st->m = m;
    st->tilt *= alpha;
    for (int64_t c = 0; c < s->row->columns_n; c++)
        o[c] = 0.0;
    for (int64_t i = first; i < end; i++) {
        int64_t j = s->work->order[i];
        const uint16_t *v = s->row->keys[0][j];
        struct weight w = weigh(s, st, j, column);
        l = i - first == 1 ? l + w.added : sum_of_weights(s, l, w.added);
        for (int64_t c = 0; c < s->row->columns_n; c++)
            o[c] =
                fused(s, o[c], w.met,
                      mla_choice_input(&s->sums, (double)mla_number_from_bf16(v[c]), s->direction));
    }
    st->l = sum_of_weights(s, st->l * alpha, l);
    for (int64_t c = 0; c < s->row->columns_n; c++)
        st->o[c] = fused(s, o[c], alpha, st->o[c]);
}

static void absorb_block(struct shot *s, struct state *st, int64_t first, int64_t end)
{
    const int64_t *order = s->work->order;
    double m = st->m;
    for (int64_t i = first; i < end; i++)
        m = fmax(m, s->work->score[order[i]]);
    if (s->row->plan->restarts) {
        absorb_anew(s, st, m, first, end);
        return;
    }
    rescale(s, st, m);
    for (int64_t i = first; i < end; i++)
        absorb_key(s, st, order[i], i - first, s->row->column < 0 ? 0 : s->row->column);
    if (s->row->plan->is_tree)
        add_levels(s, end - first, st);
    store_extra(s, st);
}

/* b into a: both to the common maximum, then added. */
static void merge(struct shot *s, struct state *a, struct state *b)
{
    double m = fmax(a->m, b->m);
    rescale(s, a, m);
    rescale(s, b, m);
    a->l = weight_round(s, a->l + b->l, s->against);
    a->tilt += b->tilt;
    add_vector(s, a->o, b->o);
}

/* ---- a shot ---- */

/* Directions of the weights that know nothing of the values. */
static double blind_direction(const struct shot *s, int64_t j)
{
    switch (s->row->seed >> 8 & 3) {
    case 0:
        return j % 2 == 0 ? 1.0 : -1.0;
    case 1:
        return j < s->row->keys_n / 2 ? 1.0 : -1.0;
    case 2:
        return s->work->exact[j] < 0.0 ? 1.0 : -1.0;
    default:
        return mla_number_mix(s->row->seed ^ (uint64_t)j) >> 63 != 0 ? 1.0 : -1.0;
    }
}

/*
 * The directions d for which sum_j p_j d_j v_j is longest over all columns, nearly: for fixed x the
 * best d_j is the sign of <x, v_j>, and x = sum_j p_j d_j v_j; a few rounds of that.
 */
static void aim_along(struct shot *s)
{
    const struct mla_adversary_row *row = s->row;
    double *x = s->work->level[0], max = -INFINITY;
    for (int64_t j = 0; j < row->keys_n; j++)
        max = fmax(max, s->work->exact[j]);
    for (int round = 0; round < 8; round++) {
        for (int64_t c = 0; c < row->columns_n; c++)
            x[c] = 0.0;
        for (int64_t j = 0; j < row->keys_n; j++) {
            double p = s->work->dir[j] * exp(row->scale * (s->work->exact[j] - max));
            for (int64_t c = 0; c < row->columns_n; c++)
                x[c] += p * value_of(row, j, c);
        }
        for (int64_t j = 0; j < row->keys_n; j++) {
            double along = 0.0;
            for (int64_t c = 0; c < row->columns_n; c++)
                along += x[c] * value_of(row, j, c);
            s->work->dir[j] = along < 0.0 ? -1.0 : 1.0;
        }
    }
}

static void aim(struct shot *s)
{
    struct mla_adversary_row *row = s->row;
    for (int64_t j = 0; j < row->keys_n; j++) {
        double beyond = s->sees ? value_of(row, j, row->column) - s->target : 0.0;
        s->work->dir[j] = !s->sees        ? blind_direction(s, j)
                          : beyond >= 0.0 ? s->direction
                                          : -s->direction;
    }
    if (row->plan->peeks)
        aim_along(s);
    s->against = s->sees                      ? s->direction * (s->target < 0.0 ? 1.0 : -1.0)
                 : (row->seed >> 10 & 1) != 0 ? 1.0
                                              : -1.0;
}

static void finish(struct shot *s, const struct state *st)
{
    struct mla_adversary_row *row = s->row;
    const struct mla_model *m = row->model;
    for (int64_t c = 0; c < row->columns_n; c++) {
        double y = st->o[c] / st->l;
        for (int32_t i = 0; i < m->div_roundings; i++)
            y = mla_choice_round(&s->sums, y, m->add_u, s->direction);
        row->real[c] = y;
    }
    double max =
        m->arg_form == MLA_ARG_SCALED ? st->m : weight_round(s, st->m * row->scale, s->direction);
    if (m->stats_max == MLA_STATS_OTHER) /* some number below, and the sum in its frame */
        max -= mla_number_unit(row->seed);
    row->max = (double)(float)max;
    row->sum = st->l;
    if (m->stats_max == MLA_STATS_OTHER) {
        double shift = m->arg_form == MLA_ARG_SCALED ? st->m : st->m * row->scale;
        row->sum *= exp(shift - row->max);
    }
    row->sum = (double)(float)row->sum;
}

static void fire(struct shot *s, struct mla_adversary_scores *scores)
{
    const struct mla_adversary_row *row = s->row;
    struct state st[MLA_ADVERSARY_PARTS];
    int64_t parts = row->plan->parts > 1 ? row->plan->parts : 1, first = 0;
    int64_t column = s->sees && s->weights.is_greedy ? row->column : -1;
    int64_t blocks_n = mla_adversary_order(row, s->work, &s->weights, column);
    aim(s);
    for (int64_t j = 0; j < row->keys_n; j++) {
        double dir = s->work->dir[j];
        s->work->score[j] = scaled_score(s, mla_adversary_score(scores, &s->weights, j, dir), dir);
    }
    for (int64_t k = 0, block = 0; k < parts; k++) {
        st[k] = (struct state){.m = -INFINITY, .o = s->work->sum[k]};
        for (int64_t c = 0; c < row->columns_n; c++)
            st[k].o[c] = 0.0;
        for (; block < blocks_n * (k + 1) / parts; block++) {
            absorb_block(s, &st[k], first, s->work->ends[block]);
            first = s->work->ends[block];
        }
    }
    int64_t into = -1; /* parts without a block have no state */
    for (int64_t k = 0; k < parts; k++) {
        if (blocks_n * (k + 1) / parts == blocks_n * k / parts)
            continue;
        if (into >= 0)
            merge(s, &st[into], &st[k]);
        else
            into = k;
    }
    finish(s, &st[into]);
}

/* The true output of a column, well enough to aim at. */
static double truth_of(const struct mla_adversary_row *row, const struct mla_adversary_work *work,
                       int64_t column)
{
    double max = -INFINITY, sum = 0.0, out = 0.0;
    for (int64_t j = 0; j < row->keys_n; j++)
        max = fmax(max, work->exact[j]);
    for (int64_t j = 0; j < row->keys_n; j++) {
        double p = exp(row->scale * (work->exact[j] - max));
        sum += p;
        out += p * value_of(row, j, column);
    }
    return out / sum;
}

static struct shot load(struct mla_adversary_row *row, struct mla_adversary_work *work)
{
    bool is_random = row->seed % 4 == 0;
    struct mla_choice choice = {{row->seed, 0}, !is_random, row->model->flush != 0};
    struct shot s = {.row = row, .work = work, .weights = choice, .sums = choice};
    s.sums.rng.key = mla_number_mix(~row->seed);
    if (row->plan->is_blind) {
        s.weights.is_greedy = (row->seed >> 2 & 3) != 0; /* else at random under greedy sums */
    } else {
        s.sees = true;
    }
    row->column = (int64_t)(row->seed >> 32) % row->columns_n;
    row->direction = s.direction = (row->seed >> 4 & 1) != 0 ? 1.0 : -1.0;
    s.scale = row->scale;
    if (row->plan->is_log2)
        s.scale = weight_round(&s, row->scale * 0x1.71547652b82fep+0, 1.0);
    return s;
}

void mla_adversary_attend(struct mla_adversary_row *row, struct mla_adversary_work *work)
{
    struct mla_adversary_scores scores = {.row = row, .work = work};
    row->max = -INFINITY;
    row->sum = 0.0;
    row->column = -1;
    for (int64_t c = 0; row->keys_n == 0 && c < row->columns_n; c++)
        row->real[c] = 0.0;
    if (row->keys_n == 0)
        return;
    mla_adversary_scores_exact(&scores);
    struct shot s = load(row, work);
    s.target = truth_of(row, work, row->column);
    fire(&s, &scores);
    if (row->plan->refines && s.sees && s.weights.is_greedy) {
        s.target = row->real[row->column];
        fire(&s, &scores);
    }
}
