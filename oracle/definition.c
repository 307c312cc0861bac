/* SPDX-License-Identifier: Apache-2.0
 *
 * definition.c - the plain, slow, obviously right value of one output row, in MPFR.
 *
 *     x_j = scale * sum_i q_i k_ji,  M = max_j x_j,  p_j = exp(x_j - M),  Z = sum_j p_j,
 *     w_j = p_j / Z,  o_l = sum_j w_j v_jl
 *
 * Everything up to x_j - M is exact, and checked to be: a bf16 is m * 2^e with |m| <= 255, so over
 * the whole row all products q_i k_ji are integer multiples of one power of two, 2^(lq+lk), and
 * below 2^(tq+tk) in magnitude (l, t: lowest last place and highest leading place that occur). A
 * partial sum of `width` of them is such a multiple below width * 2^(tq+tk): tq+tk-lq-lk+ceil(log2
 * width) bits hold every one, whatever the order. The scale is a 24 bit integer times a power of
 * two, 24 bits more, and a difference of two scaled scores one more. MPFR's ternary value is 0 iff
 * a result is exact; a non-zero one is reported as MLA_ERR_INTERNAL.
 *
 * What follows is rounded to nearest with W = 192 bits, u = 2^-192, n keys, n <= 2^60:
 *     p_j   1 rounding of an exact argument                                  p_j (1+u)
 *     Z     n terms, n-1 additions                                           Z (1+u)^n
 *     N_l   product by an integer (1 rounding), n additions, p_j's own       each term (1+u)^(n+2)
 *     o_l   quotient, 1 rounding                                             (1+u)
 * so |o_l computed - o_l| <= ((1+u)^(n+3) (1-u)^-n - 1) * S_l <= (2n+8) u S_l, S_l = sum_j
 * w_j|v_jl|, as 2n u < 2^-100. exp may underflow MPFR's range (below 2^-(2^61)) to 0: an absolute
 * error that the smallest subnormal double in out_low_radius covers. o_l is split into two doubles,
 * the rest of which rounds by 2^-53 of the second.
 *
 * MPFR and GMP abort the process if they run out of memory; there is no way around it.
 */
#include "oracle/bf16.h"
#include "oracle/truth.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define WORK_BITS 192

/* ---- which exponents occur, and do all numbers take part as numbers? --------------------------*/

struct span {
    int low;  /* every number is a multiple of 2^low */
    int high; /* and below 2^high in magnitude; low > high: all are zero */
};

static const struct span empty_span = {INT16_MAX, INT16_MIN};

/* Widen the span by n numbers; false if one of them is NaN or Inf. */
static bool span_add(struct span *span, const uint16_t *numbers, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!mla_oracle_bf16_is_finite(numbers[i])) {
            return false;
        }
        if (mla_oracle_bf16_is_zero(numbers[i])) {
            continue;
        }
        const int exponent = mla_oracle_bf16_exponent(numbers[i]);

        span->low = exponent < span->low ? exponent : span->low;
        span->high = exponent + 8 > span->high ? exponent + 8 : span->high;
    }
    return true;
}

/* The spans of the query and of all keys; false if NaN or Inf takes part. */
static bool scan(const struct mla_oracle_input *input, struct span *query, struct span *keys)
{
    *query = empty_span;
    *keys = empty_span;
    for (int part = 0; part < 2; part++) {
        if (!span_add(query, input->query[part], input->part_n[part])) {
            return false;
        }
    }
    for (int64_t j = 0; j < input->keys_n; j++) {
        for (int part = 0; part < 2; part++) {
            if (!span_add(keys, input->keys[part][j], input->part_n[part])) {
                return false;
            }
        }
    }
    return true;
}

/* Bits that hold every partial sum, scaled score and difference of scaled scores (file head). */
static mpfr_prec_t exact_bits(struct span query, struct span keys, int64_t width)
{
    int bits = 24 + 1;

    for (int64_t reach = 1; reach < width; reach *= 2) {
        bits++;
    }
    if (query.low < query.high && keys.low < keys.high) {
        bits += query.high - query.low + keys.high - keys.low;
    }
    return bits < 64 ? 64 : bits;
}

/* ---- sums of magnitudes, in double, upward ----------------------------------------------------*/

/*
 * magnitude and lost of every key. Products of two bf16 are exact in double (16 bits, exponents
 * from -266 to 240); a sum of `width` of them and the product with the scale are `width` roundings.
 * Returns false if a magnitude may exceed FLT_MAX / 2, scaled or not.
 */
static bool magnitudes(const struct mla_oracle_input *input, struct mla_truth *truth)
{
    const double limit = (double)FLT_MAX / 2.0;

    for (int64_t j = 0; j < input->keys_n; j++) {
        double sum = 0.0;
        double lost = 0.0;

        for (int part = 0; part < 2; part++) {
            const uint16_t *q = input->query[part];
            const uint16_t *k = input->keys[part][j];

            for (int64_t i = 0; i < input->part_n[part]; i++) {
                const double product =
                    fabs(mla_oracle_bf16_value(q[i]) * mla_oracle_bf16_value(k[i]));

                sum += product;
                if (mla_oracle_bf16_is_subnormal(q[i]) || mla_oracle_bf16_is_subnormal(k[i])) {
                    lost += product;
                }
            }
        }
        sum = mla_oracle_up(sum, truth->width);
        truth->magnitude[j] = mla_oracle_up(sum * truth->scale, 1);
        truth->lost[j] = mla_oracle_up(lost * truth->scale, truth->width + 1);
        if (!(sum <= limit && truth->magnitude[j] <= limit)) {
            return false;
        }
    }
    return true;
}

/* abs_value of every column, and whether a value is subnormal. False beyond FLT_MAX / 2. */
static bool value_sums(struct mla_truth *truth)
{
    for (int64_t j = 0; j < truth->keys_n; j++) {
        for (int64_t l = 0; l < truth->columns_n; l++) {
            const uint16_t v = truth->value[j][l];

            truth->abs_value[l] += fabs(mla_oracle_bf16_value(v));
            truth->has_subnormal_value |= mla_oracle_bf16_is_subnormal(v);
        }
    }
    for (int64_t l = 0; l < truth->columns_n; l++) {
        truth->abs_value[l] = mla_oracle_up(truth->abs_value[l], truth->keys_n);
        if (!(truth->abs_value[l] <= (double)FLT_MAX / 2.0)) {
            return false;
        }
    }
    return true;
}

/* ---- exact part -------------------------------------------------------------------------------*/

/* x = scale * sum_i q_i k_i, exactly. Returns false if a rounding happened. */
static bool exact_score(const struct mla_oracle_input *input, int64_t j, mpfr_t x, mpfr_t product)
{
    int inexact = 0;

    mpfr_set_zero(x, 1);
    for (int part = 0; part < 2; part++) {
        const uint16_t *q = input->query[part];
        const uint16_t *k = input->keys[part][j];

        for (int64_t i = 0; i < input->part_n[part]; i++) {
            const int mantissa = mla_oracle_bf16_mantissa(q[i]) * mla_oracle_bf16_mantissa(k[i]);
            const int exponent = mla_oracle_bf16_exponent(q[i]) + mla_oracle_bf16_exponent(k[i]);

            inexact |= mpfr_set_si_2exp(product, mantissa, exponent, MPFR_RNDN);
            inexact |= mpfr_add(x, x, product, MPFR_RNDN);
        }
    }
    inexact |= mpfr_mul_d(x, x, (double)input->scale, MPFR_RNDN);
    return inexact == 0;
}

/* All x_j and their maximum, then x_j - M in place: exact throughout. */
static bool exact_gaps(const struct mla_oracle_input *input, struct mla_truth *truth, mpfr_t *x)
{
    mpfr_t product;
    bool is_exact = true;
    int inexact = 0;

    mpfr_init2(product, mpfr_get_prec(truth->exact_max));
    mpfr_set_inf(truth->exact_max, -1);
    for (int64_t j = 0; j < input->keys_n; j++) {
        is_exact = exact_score(input, j, x[j], product) && is_exact;
        inexact |= mpfr_max(truth->exact_max, truth->exact_max, x[j], MPFR_RNDN);
        truth->score[j] = fabs(mpfr_get_d(x[j], MPFR_RNDA));
    }
    for (int64_t j = 0; j < input->keys_n; j++) {
        inexact |= mpfr_sub(x[j], x[j], truth->exact_max, MPFR_RNDN);
        truth->gap[j] = fabs(mpfr_get_d(x[j], MPFR_RNDA));
    }
    mpfr_clear(product);
    return is_exact && inexact == 0;
}

/* ---- rounded part -----------------------------------------------------------------------------*/

/* p_j in place of x_j - M, Z, the weights and the log-sum-exp. */
static void softmax(struct mla_truth *truth, mpfr_t *p, mpfr_t z)
{
    mpfr_t t;

    mpfr_init2(t, WORK_BITS);
    mpfr_set_zero(z, 1);
    for (int64_t j = 0; j < truth->keys_n; j++) {
        mpfr_exp(t, p[j], MPFR_RNDN);
        mpfr_set_prec(p[j], WORK_BITS);
        mpfr_swap(p[j], t);
        mpfr_add(z, z, p[j], MPFR_RNDN);
    }
    for (int64_t j = 0; j < truth->keys_n; j++) {
        /* Too low by (1+u)^(n+2) at most before it is rounded up: one part in 2^52 covers it. */
        mpfr_div(t, p[j], z, MPFR_RNDU);
        truth->weight[j] = mla_oracle_up(mpfr_get_d(t, MPFR_RNDU), 0);
        truth->weight[j] = fmax(truth->weight[j], MLA_ORACLE_WEIGHT_MIN);
    }
    mpfr_log(t, z, MPFR_RNDN);
    truth->log_sum = mpfr_get_d(t, MPFR_RNDN);
    mpfr_add(truth->exact_lse, truth->exact_max, t, MPFR_RNDN);
    truth->log_sum_exp = mpfr_get_d(truth->exact_lse, MPFR_RNDN);
    truth->max = mpfr_get_d(truth->exact_max, MPFR_RNDN);
    mpfr_clear(t);
}

/* sums[l] = sum_j p_j v_jl: p times an integer (rounded), times a power of two, added (rounded). */
static void weighted_sums(const struct mla_truth *truth, mpfr_t *p, mpfr_t *sums)
{
    mpfr_t product;

    mpfr_init2(product, WORK_BITS);
    for (int64_t l = 0; l < truth->columns_n; l++) {
        mpfr_set_zero(sums[l], 1);
    }
    for (int64_t j = 0; j < truth->keys_n; j++) {
        for (int64_t l = 0; l < truth->columns_n; l++) {
            const uint16_t v = truth->value[j][l];

            if (mla_oracle_bf16_is_zero(v)) {
                continue;
            }
            mpfr_mul_si(product, p[j], mla_oracle_bf16_mantissa(v), MPFR_RNDN);
            mpfr_mul_2si(product, product, mla_oracle_bf16_exponent(v), MPFR_RNDN);
            mpfr_add(sums[l], sums[l], product, MPFR_RNDN);
        }
    }
    mpfr_clear(product);
}

/* o_l and its radius (file head). */
static void outputs(struct mla_truth *truth, mpfr_t *sums, mpfr_t z)
{
    const double factor = (double)(2 * truth->keys_n + 8);

    for (int64_t j = 0; j < truth->keys_n; j++) { /* S_l, gathered in out_radius */
        for (int64_t l = 0; l < truth->columns_n; l++) {
            truth->out_radius[l] +=
                truth->weight[j] * fabs(mla_oracle_bf16_value(truth->value[j][l]));
        }
    }
    for (int64_t l = 0; l < truth->columns_n; l++) {
        const double spread = mla_oracle_up(truth->out_radius[l], 2 * truth->keys_n);

        mpfr_div(sums[l], sums[l], z, MPFR_RNDN);
        truth->out[l] = mpfr_get_d(sums[l], MPFR_RNDN);
        (void)mpfr_sub_d(sums[l], sums[l], truth->out[l], MPFR_RNDN); /* exact */
        truth->out_low[l] = mpfr_get_d(sums[l], MPFR_RNDN);
        truth->out_low_radius[l] =
            mla_oracle_up(ldexp(spread * factor, -WORK_BITS) + 0x1p-53 * fabs(truth->out_low[l]),
                          4) +
            2.0 * DBL_TRUE_MIN;
        truth->out_radius[l] = mla_oracle_up(fabs(truth->out_low[l]) + truth->out_low_radius[l], 1);
    }
}

/* ---- memory -----------------------------------------------------------------------------------*/

static mpfr_t *numbers_new(int64_t n, mpfr_prec_t bits)
{
    mpfr_t *numbers = calloc((size_t)n, sizeof *numbers);

    for (int64_t i = 0; numbers != NULL && i < n; i++) {
        mpfr_init2(numbers[i], bits);
    }
    return numbers;
}

static void numbers_free(mpfr_t *numbers, int64_t n)
{
    for (int64_t i = 0; numbers != NULL && i < n; i++) {
        mpfr_clear(numbers[i]);
    }
    free(numbers);
}

/* ---- the row ----------------------------------------------------------------------------------*/

/* The MPFR part; truth's arrays exist and the row's state is OK. */
static int32_t evaluate(const struct mla_oracle_input *input, mpfr_prec_t bits,
                        struct mla_truth *truth)
{
    const struct mla_oracle_mpfr_state state = mla_oracle_mpfr_enter();
    mpfr_t *x = numbers_new(truth->keys_n, bits);
    mpfr_t *sums = numbers_new(truth->columns_n, WORK_BITS);
    mpfr_t z;
    int32_t status = MLA_ERR_NOMEM;

    mpfr_init2(z, WORK_BITS);
    mpfr_init2(truth->exact_max, bits);
    mpfr_init2(truth->exact_lse, WORK_BITS);
    truth->has_exact = true;
    if (x == NULL || sums == NULL) {
        goto done;
    }
    status = MLA_ERR_INTERNAL;
    if (!exact_gaps(input, truth, x)) {
        goto done;
    }
    softmax(truth, x, z);
    weighted_sums(truth, x, sums);
    outputs(truth, sums, z);
    status = MLA_OK;
done:
    mpfr_clear(z);
    numbers_free(sums, truth->columns_n);
    numbers_free(x, truth->keys_n);
    mla_oracle_mpfr_leave(&state);
    return status;
}

int32_t mla_oracle_define(const struct mla_oracle_input *input, struct mla_truth *truth)
{
    struct span query;
    struct span keys;

    mla_oracle_truth_begin(input, truth);
    if (input->is_pad) {
        truth->state = MLA_ROW_EMPTY;
        return MLA_OK;
    }
    if (!scan(input, &query, &keys)) {
        truth->state = MLA_ROW_NONFINITE;
        return MLA_OK;
    }
    if (input->keys_n == 0) {
        truth->state = MLA_ROW_EMPTY;
        return MLA_OK;
    }
    if (!mla_oracle_truth_allocate(truth)) {
        return MLA_ERR_NOMEM;
    }
    if (!magnitudes(input, truth) || !value_sums(truth)) {
        truth->state = MLA_ROW_RANGE;
        return MLA_OK;
    }
    truth->state = MLA_ROW_OK;
    return evaluate(input, exact_bits(query, keys, truth->width), truth);
}
