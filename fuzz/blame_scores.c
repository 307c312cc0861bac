/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_scores.c - are the weights right where scores differ?
 *
 * All keys take part as often as they should (blame_keys.c has seen to that), so what is wrong now is
 * how scores become weights. The logarithm of measured over true weight, key by key, has the shape of
 * the mistake: a line in the score is a wrong scale, steps by block are rescales that did not happen.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "fuzz/blame_internal.h"
#include "fuzz/probe_maps.h"

/* Rounding to bf16, some times over: 16 half units of 2^-8. */
#define COARSE 0x1p-4
/* Smaller weights are left out: kernels may flush them. */
#define WEIGHT_MIN 1e-6

/* One visible key: its score and ln(measured / (common * true)). */
struct point {
    int64_t place;
    double x, off;
};

struct points {
    int64_t n;
    struct point *list;
    double max_x, min_x, worst; /* worst |off| */
    int64_t lost_n;             /* of weight 0 where there must be some */
    int64_t risen_n;            /* with weight where there must be next to none */
    double risen;               /* their share */
};

static bool collect(const struct mla_probe *p, const struct mla_blame_weights *w, struct points *s)
{
    *s = (struct points){.list = calloc((size_t)p->places_n, sizeof *s->list),
                         .max_x = -INFINITY,
                         .min_x = INFINITY};
    for (int64_t i = 0; s->list != NULL && i < p->places_n; i++) {
        double due = w->common * (double)p->times[i] * p->weights[i];
        bool risen = p->times[i] > 0 && due < WEIGHT_MIN && w->measured[i] > 2 * WEIGHT_MIN;
        s->risen_n += risen;
        s->risen += risen ? w->measured[i] / w->total : 0;
        if (due < WEIGHT_MIN)
            continue;
        s->max_x = fmax(s->max_x, p->scores[i]);
        s->min_x = fmin(s->min_x, p->scores[i]);
        s->lost_n += w->measured[i] <= 0;
        if (w->measured[i] <= 0)
            continue;
        double off = log(w->measured[i] / due);
        s->worst = fmax(s->worst, fabs(off));
        s->list[s->n++] = (struct point){i, p->scores[i], off};
    }
    return s->list != NULL;
}

/* What the declared rounding of scores may do to a weight, and what bf16 scores would. */
static double allowed(const struct mla_probe *p, const struct points *s, bool as_bf16)
{
    const struct mla_model *m =
        p->tensors->test.op == MLA_OP_RING ? &p->kernel->ring_model : &p->kernel->sparse_model;
    double u = as_bf16 ? 0x1p-7 : 4 * m->score_u + 64 * m->add_u;
    return COARSE + u * (fabs(s->max_x) + fabs(s->min_x));
}

/* off = a + c*x by least squares; rms of what is left. */
static double fit_line(const struct points *s, double *c)
{
    double mx = 0, my = 0, xx = 0, xy = 0, rest = 0, n = (double)s->n;
    for (int64_t i = 0; i < s->n; i++) {
        mx += s->list[i].x / n;
        my += s->list[i].off / n;
    }
    for (int64_t i = 0; i < s->n; i++) {
        xx += (s->list[i].x - mx) * (s->list[i].x - mx);
        xy += (s->list[i].x - mx) * (s->list[i].off - my);
    }
    *c = xx > 0 ? xy / xx : 0;
    for (int64_t i = 0; i < s->n; i++) {
        double d = s->list[i].off - my - *c * (s->list[i].x - mx);
        rest += d * d;
    }
    return sqrt(rest / n);
}

/* The places, in order, in how many stretches of one factor? 0: not so. *at: where the first ends. */
static int64_t count_steps(const struct points *s, int64_t *at)
{
    int64_t steps = 1;
    *at = -1;
    for (int64_t i = 1; i < s->n; i++)
        if (fabs(s->list[i].off - s->list[i - 1].off) > COARSE) {
            steps++;
            *at = *at < 0 ? s->list[i].place : *at;
        }
    return steps * 8 <= s->n ? steps : 0;
}

/* All scores of visible keys ignored? Their weights are then equal, whatever is due. */
static bool is_flat(const struct mla_probe *p, const struct mla_blame_weights *w)
{
    double least = INFINITY, most = 0;
    for (int64_t i = 0; i < p->places_n; i++)
        if (p->times[i] > 0) {
            least = fmin(least, w->measured[i] / (double)p->times[i]);
            most = fmax(most, w->measured[i] / (double)p->times[i]);
        }
    return most < 1.1 * least;
}

bool mla_blame_score_columns(struct mla_probe *p, struct mla_blame *blame)
{
    struct mla_probe_columns n;
    if (!mla_probe_count_score_columns(p, &n) || (n.value_n == p->value_n && n.rope_n == p->rope_n))
        return false;
    if (n.value_n * p->rope_n == n.rope_n * p->value_n && n.rope_n > 0)
        return mla_blame_say(
            blame, MLA_CAUSE_WEIGHTS_OFF,
            "Every column of query and key counts %.3g times in the scores: as if the "
            "scale were that many times what it is.",
            (double)n.rope_n / (double)p->rope_n);
    return mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                         "Not the right columns make the scores: of %" PRId64
                         " that are also value %" PRId64 " take part, of %" PRId64
                         " others %" PRId64 ".",
                         p->value_n, n.value_n, p->rope_n, n.rope_n);
}

static bool explain(const struct mla_probe *p, const struct points *s, struct mla_blame *blame)
{
    double slope, rest = fit_line(s, &slope), spread = s->max_x - s->min_x;
    int64_t at, steps = count_steps(s, &at);
    if (fabs(slope) * spread > COARSE && rest < 0.1 * fabs(slope) * spread)
        /* weights are read from bf16 outputs: three digits are what there is */
        return mla_blame_say(
            blame, MLA_CAUSE_WEIGHTS_OFF,
            "The right keys have wrong weights, off by exp(%.3g * score): as if the "
            "scale were %.3g times the given one.",
            slope, 1 + slope);
    if (steps > 1)
        return mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                             "The right keys have wrong weights, by factors that are the same "
                             "throughout each of %" PRId64
                             " stretches of keys; the first step is at "
                             "place %" PRId64 ": a rescale between blocks is wrong or missing.",
                             steps, at);
    if (s->lost_n == 0 && s->worst < allowed(p, s, true))
        return mla_blame_say(blame, MLA_CAUSE_PRECISION,
                             "The weights are right but for rounding: off by up to %.3g, which is "
                             "more than declared and no more than scores in bf16 would give.",
                             expm1(s->worst));
    if (s->lost_n > 0)
        return mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                             "%" PRId64 " of %" PRId64
                             " visible keys that must have weight have none.",
                             s->lost_n, s->lost_n + s->n);
    return mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                         "The right keys have wrong weights: off by factors up to %.3g.",
                         exp(s->worst));
}

/* The weights under the scores that are set, found wrong or not. */
static bool judge_weights(struct mla_probe *p, struct mla_blame *blame)
{
    struct mla_blame_weights w;
    struct points points = {0};
    char extra[256];
    bool found = false;
    if (!mla_blame_weights_measure(p, &w) || !collect(p, &w, &points)) {
        found = mla_blame_say(blame, MLA_CAUSE_UNKNOWN,
                              "The kernel did not return when its weights were measured.");
    } else if (!w.finite) {
        found = mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                              "The scores alone make the row not finite, with values of 0 and 1: a "
                              "weight or their sum overflows, or all weights vanish.");
    } else if (w.n[MLA_MARK_EXTRA] > 0) {
        mla_blame_name_places(p, &w, MLA_MARK_EXTRA, extra);
        found =
            mla_blame_say(blame, MLA_CAUSE_KEYS_EXTRA,
                          "Keys that the row must not see take part, though not under scores of "
                          "0: %s.",
                          extra);
    } else if (is_flat(p, &w) && (points.risen_n > 0 || points.max_x - points.min_x > 1)) {
        found = mla_blame_score_columns(p, blame) ||
                mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                              "All visible keys weigh the same although their scores differ.");
    } else if (points.risen_n > 0) {
        found =
            mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                          "%" PRId64 " visible keys whose scores leave them next to no weight have "
                          "%.3g of it; all weights sum to %.4g%s.",
                          points.risen_n, points.risen, w.total,
                          w.total > 1.1 ? ": what came before a rise of the maximum is not "
                                          "scaled down as the sum is"
                                        : "");
    } else if (points.lost_n > 0 || points.worst > allowed(p, &points, false)) {
        found = explain(p, &points, blame);
    } else if (fabs(w.common - 1) > COARSE && points.n > 0) {
        found = mla_blame_say(blame, MLA_CAUSE_WEIGHTS_OFF,
                              "The weights are in proportion, but sum to %.4g: numerator and "
                              "denominator are not of the same weights.",
                              w.total);
    }
    free(points.list);
    mla_blame_weights_free(&w);
    return found;
}

/* Other rows and heads ask for nothing: all their scores are 0. */
static void silence_others(struct mla_probe *p)
{
    int64_t own = mla_probe_query_number(p, p->row);
    for (int64_t i = 0; i < mla_probe_queries_n(p); i++)
        for (int64_t c = 0; i != own && c < p->rope_n; c++)
            mla_probe_query_rope(p, i)[c] = 0;
}

/* Other rows and heads have the scores of this one with the other sign. */
static void oppose_others(struct mla_probe *p)
{
    int64_t own = mla_probe_query_number(p, p->row);
    for (int64_t i = 0; i < mla_probe_queries_n(p); i++)
        for (int64_t c = 0; i != own && c < p->rope_n; c++)
            mla_probe_query_rope(p, i)[c] ^= 0x8000;
}

/* Scores that a right kernel takes without harm. */
#define SPAN   200.0 /* from the first visible place to the last */
#define GENTLE 4.0   /* the same, with no weight too small to see */
#define DEEP   (-200000.0)

enum profile { CASE, ALONE, SLOPE, APART, RISING, FALLING, BELOW, PROFILES_N };

static void set_profile(struct mla_probe *p, enum profile profile, double *scores)
{
    int64_t seen = 0, visible = 0;
    for (int64_t i = 0; i < p->places_n; i++)
        visible += p->times[i] > 0;
    for (int64_t i = 0; i < p->places_n; i++) {
        double part = visible > 1 ? (double)seen / (double)(visible - 1) : 0;
        scores[i] = profile == SLOPE || profile == APART ? GENTLE * (part - 0.5)
                    : profile == RISING                  ? SPAN * (part - 0.5)
                    : profile == FALLING                 ? SPAN * (0.5 - part)
                    : profile == BELOW                   ? DEEP
                                                         : p->case_scores[i];
        seen += p->times[i] > 0 && seen < visible - 1;
    }
    mla_probe_set_scores(p, scores);
    if (profile == ALONE)
        silence_others(p);
    if (profile == APART)
        oppose_others(p);
}

bool mla_blame_scores(struct mla_probe *p, struct mla_blame *blame)
{
    static const char *const words[PROFILES_N] = {
        "That is under the case's scores.",
        "That is under the case's scores in this row and head, while all others have scores of 0: "
        "it "
        "depends on other rows or heads.",
        "That is under scores that rise from -2 to 2, not under the case's.",
        "That is under scores that rise from -2 to 2 in this row and head and fall in all others: "
        "it "
        "depends on other rows or heads.",
        "That is under scores that rise from -100 to 100, not under the case's.",
        "That is under scores that fall from 100 to -100, not under the case's.",
        "That is under scores that are all -200000, not under the case's."};
    double *scores = calloc((size_t)p->places_n, sizeof *scores);
    bool found = false;
    for (int i = 0; scores != NULL && i < PROFILES_N && p->visible_n > 0 && !found; i++) {
        set_profile(p, (enum profile)i, scores);
        found = judge_weights(p, blame);
        if (found)
            mla_blame_add(blame, "%s", words[i]);
    }
    free(scores);
    return found;
}
