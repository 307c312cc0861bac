/* SPDX-License-Identifier: Apache-2.0
 *
 * nearest.c - the correctly rounded bf16 of an output, by Ziv's strategy.
 *
 * An interval that contains o decides its rounding unless a midpoint of two neighbouring bf16 lies
 * in it. The first interval is the truth's own; each next one comes from MPFR with twice the bits:
 * exact scores and gaps (integers), then n exponentials, sums and a quotient to W bits, off by at
 * most (2n+8) 2^-W sum_j w_j|v_j| as in definition.c, or by nothing when no operation was inexact.
 */
#include "oracle/bf16.h"
#include "oracle/fixed.h"
#include "oracle/truth.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define FIRST_BITS 256
#define LAST_BITS  1024

/* ---- one column with W bits -------------------------------------------------------------------*/

static void exact_score(const struct mla_oracle_input *input, int64_t j,
                        struct mla_oracle_fixed *score)
{
    int64_t bins[512] = {0};

    for (int part = 0; part < 2; part++) {
        const uint16_t *q = input->query[part];
        const uint16_t *k = input->keys[part][j];

        for (int64_t i = 0; i < input->part_n[part]; i++) {
            const int exponent = mla_oracle_bf16_exponent(q[i]) + mla_oracle_bf16_exponent(k[i]);

            bins[exponent - MLA_ORACLE_FIXED_UNIT] +=
                mla_oracle_bf16_mantissa(q[i]) * mla_oracle_bf16_mantissa(k[i]);
        }
    }
    mla_oracle_fixed_from_bins(score, bins, 512);
}

/* The largest score, and the row's scores. NULL when memory is short. */
static struct mla_oracle_fixed *exact_scores(const struct mla_truth *truth,
                                             struct mla_oracle_fixed *max)
{
    struct mla_oracle_fixed *scores = malloc((size_t)truth->keys_n * sizeof *scores);

    for (int64_t j = 0; scores != NULL && j < truth->keys_n; j++) {
        exact_score(&truth->input, j, &scores[j]);
        if (j == 0 || mla_oracle_fixed_greater(&scores[j], max)) {
            *max = scores[j];
        }
    }
    return scores;
}

/* o of the column with the precision of o; returns whether every operation was exact. */
static bool evaluate(const struct mla_truth *truth, const struct mla_oracle_fixed *scores,
                     const struct mla_oracle_fixed *max, int64_t column, mpfr_t o)
{
    const mpfr_prec_t bits = mpfr_get_prec(o);
    int inexact = 0;
    mpfr_t gap;
    mpfr_t p;
    mpfr_t z;

    mpfr_init2(gap, 64 * MLA_ORACLE_FIXED_LIMBS + 24);
    mpfr_init2(p, bits);
    mpfr_init2(z, bits);
    mpfr_set_zero(z, 1);
    mpfr_set_zero(o, 1);
    for (int64_t j = 0; j < truth->keys_n; j++) {
        const struct mla_oracle_fixed below = mla_oracle_fixed_minus(&scores[j], max);
        const uint16_t v = truth->value[j][column];

        mla_oracle_fixed_get(gap, &below);
        (void)mpfr_prec_round(gap, 64 * MLA_ORACLE_FIXED_LIMBS + 24, MPFR_RNDN);
        (void)mpfr_mul_d(gap, gap, truth->scale, MPFR_RNDN); /* exact */
        inexact |= mpfr_exp(p, gap, MPFR_RNDN);
        inexact |= mpfr_add(z, z, p, MPFR_RNDN);
        inexact |= mpfr_mul_si(p, p, mla_oracle_bf16_mantissa(v), MPFR_RNDN);
        (void)mpfr_mul_2si(p, p, mla_oracle_bf16_exponent(v), MPFR_RNDN);
        inexact |= mpfr_add(o, o, p, MPFR_RNDN);
    }
    inexact |= mpfr_div(o, o, z, MPFR_RNDN);
    mpfr_clear(z);
    mpfr_clear(p);
    mpfr_clear(gap);
    return inexact == 0;
}

/* ---- deciding ---------------------------------------------------------------------------------*/

static uint16_t next_up(uint16_t y)
{
    return y == 0x8000u ? 1 : (y & 0x8000u) != 0 ? (uint16_t)(y - 1u) : (uint16_t)(y + 1u);
}

static uint16_t next_down(uint16_t y)
{
    return (uint16_t)(next_up(y ^ 0x8000u) ^ 0x8000u);
}

/* The number half way from a finite y to the next one up, exactly; Inf counts as 2^128. */
static double middle_above(uint16_t y)
{
    const uint16_t next = next_up(y);
    const double above = (next & 0x7fffu) == 0x7f80u ? 0x1p128 : mla_oracle_bf16_value(next);

    return (mla_oracle_bf16_value(y) + above) / 2.0;
}

/*
 * The values that numbers in [low, high] round to, near the guess: the one below or above counts
 * as possible where the interval reaches its midpoint. An interval of one number on a midpoint is a
 * tie and goes to the even neighbour.
 */
static void decide(mpfr_t low, mpfr_t high, uint16_t guess, uint16_t nearest[2])
{
    const uint16_t down = next_down(guess);
    const double below = -middle_above((uint16_t)(guess ^ 0x8000u));
    const double above = middle_above(guess);
    const bool is_point = mpfr_equal_p(low, high) != 0;

    nearest[0] = guess;
    nearest[1] = guess;
    if (mpfr_cmp_d(low, below) <= 0) {
        nearest[0] = is_point && mpfr_cmp_d(low, below) == 0 && (guess & 1u) == 0 ? guess : down;
        nearest[1] = mpfr_cmp_d(high, below) < 0 || is_point ? nearest[0] : guess;
    }
    if (mpfr_cmp_d(high, above) >= 0) {
        nearest[1] =
            is_point && mpfr_cmp_d(high, above) == 0 && (guess & 1u) == 0 ? guess : next_up(guess);
        nearest[0] = mpfr_cmp_d(low, above) > 0 || is_point ? nearest[1] : nearest[0];
    }
}

/* From o and a radius. */
static void decide_around(mpfr_t o, double radius, uint16_t nearest[2])
{
    const uint16_t guess = mla_oracle_bf16_nearest(mpfr_get_d(o, MPFR_RNDN));
    mpfr_t low;
    mpfr_t high;

    if (!mla_oracle_bf16_is_finite(guess)) { /* |o| is out of range: the row would not be OK */
        nearest[0] = guess;
        nearest[1] = guess;
        return;
    }
    mpfr_init2(low, mpfr_get_prec(o));
    mpfr_init2(high, mpfr_get_prec(o));
    (void)mpfr_sub_d(low, o, radius, MPFR_RNDD);
    (void)mpfr_add_d(high, o, radius, MPFR_RNDU);
    decide(low, high, guess, nearest);
    mpfr_clear(high);
    mpfr_clear(low);
}

/* sum_j w_j |v_j| of a column, upper. */
static double spread_of(const struct mla_truth *truth, int64_t column)
{
    double spread = 0.0;

    for (int64_t j = 0; j < truth->keys_n; j++) {
        spread += truth->weight[j] * fabs(mla_oracle_bf16_value(truth->value[j][column]));
    }
    return mla_oracle_up(spread, 2 * truth->keys_n);
}

static int32_t evaluate_again(const struct mla_truth *truth, int64_t column, uint16_t nearest[2])
{
    const double factor = (double)(2 * truth->keys_n + 8) * spread_of(truth, column);
    struct mla_oracle_fixed max = {{0}};
    struct mla_oracle_fixed *scores = exact_scores(truth, &max);

    if (scores == NULL) {
        return MLA_ERR_NOMEM;
    }
    for (mpfr_prec_t bits = FIRST_BITS; bits <= LAST_BITS && nearest[0] != nearest[1]; bits *= 2) {
        mpfr_t o;

        mpfr_init2(o, bits);
        const bool is_exact = evaluate(truth, scores, &max, column, o);

        /* Values below 2^-50 carry the radius below the normal doubles: one more of the smallest
         * covers what is rounded away there. */
        const double radius = mla_oracle_up(ldexp(factor, (int)-bits), 4) + DBL_TRUE_MIN;

        decide_around(o, is_exact ? 0.0 : radius, nearest);
        mpfr_clear(o);
    }
    free(scores);
    return MLA_OK;
}

int32_t mla_truth_nearest(const struct mla_truth *truth, int64_t column, uint16_t nearest[2])
{
    if (truth->state != MLA_ROW_OK || column < 0 || column >= truth->columns_n) {
        return MLA_ERR_PARAM;
    }
    const struct mla_oracle_mpfr_state state = mla_oracle_mpfr_enter();
    int32_t status = MLA_OK;
    mpfr_t o;

    mpfr_init2(o, 2200); /* any sum of two doubles */
    (void)mpfr_set_d(o, truth->out[column], MPFR_RNDN);
    (void)mpfr_add_d(o, o, truth->out_low[column], MPFR_RNDN);
    decide_around(o, truth->out_low_radius[column], nearest);
    mpfr_clear(o);
    if (nearest[0] != nearest[1]) {
        status = evaluate_again(truth, column, nearest);
    }
    mla_oracle_mpfr_leave(&state);
    return status;
}
