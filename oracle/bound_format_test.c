/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_format_test.c - results in binary16 and binary32, and the log-sum-exp as one number.
 *
 * Rounding is checked at every binary16 against the format's own definition; the sets against a float32
 * evaluation that keeps to a model, which must be inside, and one that drops a key, which must not.
 */
#include "oracle/test_row.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_DIM   64
#define HEAD_DIM_V 32

static const struct mla_model nearest = {.add_u = 0x1p-24, .div_roundings = 1};
static const struct mla_model toward_zero = {
    .add_u = 0x1p-24, .div_roundings = 1, .out_round = MLA_OUT_TRUNCATE};

/* The value of a positive binary16 pattern, as IEEE 754 defines it. */
static double f16_value(unsigned bits)
{
    const unsigned exponent = bits >> 10;
    const unsigned fraction = bits & 0x3ffu;

    return exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, (int)exponent - 25);
}

/* What x is rounded to: both ends of the set of the interval that holds x alone. */
static double rounded(double x, const struct mla_model *model, enum mla_out_format format)
{
    const struct mla_bound bound = {.low = x, .high = x, .o = x};
    const struct mla_bound_ends ends = mla_bound_ends(&bound, model, format);

    assert_true(ends.lo == ends.hi);
    return ends.lo;
}

static void both_signs(double x, double want, const struct mla_model *model)
{
    assert_true(rounded(x, model, MLA_FORMAT_F16) == want);
    assert_true(rounded(-x, model, MLA_FORMAT_F16) == -want);
}

static void binary16_is_rounded_as_defined(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x7bffu; bits++) {
        const double low = f16_value(bits);
        const double high = f16_value(bits + 1);
        const double middle = (low + high) / 2.0;

        both_signs(low, low, &nearest);
        both_signs(nextafter(middle, 0.0), low, &nearest);
        both_signs(middle, bits % 2 == 0 ? low : high, &nearest);
        both_signs(nextafter(middle, INFINITY), high, &nearest);
        both_signs(nextafter(high, 0.0), low, &toward_zero);
        both_signs(low, low, &toward_zero);
    }
    both_signs(nextafter(65520.0, 0.0), 65504.0, &nearest);
    both_signs(65520.0, INFINITY, &nearest);
    both_signs(1e30, 65504.0, &toward_zero);
}

/* The last rounding of float32 arithmetic is in the interval already: nothing is granted twice. */
static void binary32_is_not_widened(void **state)
{
    const double one_up = 1.0 + 0x1p-23;
    const struct mla_bound bound = {.low = 1.0, .high = 1.0 + 0.75 * 0x1p-23, .o = 1.0};
    struct mla_model finer = nearest;
    struct mla_model uncounted = nearest;

    (void)state;
    finer.add_u = 0x1p-53;
    uncounted.div_roundings = 0;
    assert_true(mla_bound_ends(&bound, &nearest, MLA_FORMAT_F32).hi < one_up);
    assert_true(mla_bound_error_in(&bound, &nearest, MLA_FORMAT_F32, one_up).ratio > 1.0);
    assert_true(mla_bound_error_in(&bound, &nearest, MLA_FORMAT_F32, 1.0).ratio <= 1.0);
    assert_true(mla_bound_ends(&bound, &finer, MLA_FORMAT_F32).hi == one_up);
    assert_true(mla_bound_error_in(&bound, &finer, MLA_FORMAT_F32, one_up).ratio <= 1.0);
    assert_true(mla_bound_ends(&bound, &uncounted, MLA_FORMAT_F32).hi == one_up);
    finer.out_round = MLA_OUT_TRUNCATE;
    assert_true(mla_bound_ends(&bound, &finer, MLA_FORMAT_F32).hi == 1.0);
    assert_true(rounded(0x1p128, &finer, MLA_FORMAT_F32) == 0x1.fffffep127);
}

/* The ratio and the ends say the same. */
static void ratio_agrees_with_ends(void **state)
{
    struct mla_oracle_test_random random = {7};
    struct mla_model finer = nearest;

    (void)state;
    finer.add_u = 0x1p-53;
    for (int i = 0; i < 200000; i++) {
        const struct mla_model *models[] = {&nearest, &toward_zero, &finer};
        const struct mla_model *model = models[i % 3];
        const enum mla_out_format format = i % 2 == 0 ? MLA_FORMAT_F16 : MLA_FORMAT_F32;
        const double o = mla_oracle_test_normal(&random);
        const double b =
            ldexp(mla_oracle_test_uniform(&random), format == MLA_FORMAT_F16 ? -9 : -22);
        const struct mla_bound bound = {.low = o - b, .high = o + b, .o = o};
        const struct mla_bound at = {.low = o + 3 * b * (mla_oracle_test_uniform(&random) - 0.5)};
        const double y = mla_bound_ends(&at, &finer, format).lo;
        const struct mla_bound_ends ends = mla_bound_ends(&bound, model, format);
        const double ratio = mla_bound_error_in(&bound, model, format, y).ratio;

        if (fabs(ratio - 1.0) > 1e-6) {
            assert_int_equal(y >= ends.lo && y <= ends.hi, ratio <= 1.0);
        }
    }
}

static void what_is_no_number(void **state)
{
    const struct mla_bound bound = {.low = 1.0, .high = 2.0, .o = 1.5, .lo = 1.0f, .hi = 2.0f};
    const struct mla_bound large = {.low = 65000.0, .high = 65530.0, .o = 65200.0};

    (void)state;
    for (int format = MLA_FORMAT_BF16; format <= MLA_FORMAT_F32; format++) {
        assert_true(isinf(
            mla_bound_error_in(&bound, &nearest, (enum mla_out_format)format, (double)NAN).ratio));
        assert_true(isinf(
            mla_bound_error_in(&bound, &nearest, (enum mla_out_format)format, INFINITY).ratio));
    }
    assert_true(mla_bound_error_in(&large, &nearest, MLA_FORMAT_F16, INFINITY).ratio <= 1.0);
    assert_true(isinf(mla_bound_error_in(&large, &nearest, MLA_FORMAT_F16, -INFINITY).ratio));
    assert_true(mla_bound_error_in(&bound, &nearest, MLA_FORMAT_BF16, 1.5).ratio <= 1.0);
}

/* Who cuts toward zero stores all that lies beyond the range as its last number. */
static void what_is_cut_at_the_end_of_the_range(void **state)
{
    const struct mla_bound beyond = {.low = 70000.0, .high = 90000.0, .o = 80000.0};
    const struct mla_bound below = {.low = 65500.0, .high = 65503.0, .o = 65501.0};
    const struct mla_bound wide = {.low = 0x1p128, .high = 0x1.4p128, .o = 0x1.2p128};
    struct mla_model finer = toward_zero;

    (void)state;
    finer.add_u = 0x1p-53;
    const struct mla_bound_error cut =
        mla_bound_error_in(&beyond, &toward_zero, MLA_FORMAT_F16, 65504.0);
    const struct mla_bound_error wide_cut =
        mla_bound_error_in(&wide, &finer, MLA_FORMAT_F32, 0x1.fffffep127);
    assert_true(cut.ratio == 0.0 && wide_cut.ratio == 0.0);
    assert_true(mla_bound_error_in(&below, &toward_zero, MLA_FORMAT_F16, 65504.0).ratio > 1.0);
    assert_true(mla_bound_error_in(&beyond, &toward_zero, MLA_FORMAT_F16, 65472.0).ratio > 1.0);
}

/* ---- a kernel ---------------------------------------------------------------------------------*/

/* Float32 as evaluate() below does it; expf of a good library is within one last place. */
static const struct mla_model plain = {.add_u = 0x1p-24,
                                       .score_depth = {.per_width = 1},
                                       .arg_roundings = 2,
                                       .exp_error = 0x1p-23,
                                       .exp_floor = 0x1p-126,
                                       .acc_depth = {.constant = 1, .per_key = 1},
                                       .div_roundings = 1};

static struct mla_oracle_test_row *draw(int64_t n, uint64_t seed)
{
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(n, HEAD_DIM, HEAD_DIM_V, 0.125f);
    struct mla_oracle_test_random random = {seed};

    for (int64_t i = 0; i < n * HEAD_DIM; i++) {
        row->kv[i] = mla_oracle_test_bf16((float)mla_oracle_test_normal(&random));
    }
    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = mla_oracle_test_bf16((float)mla_oracle_test_normal(&random));
    }
    return row;
}

/* Keys first .. n-1 of the row; returns m + ln(l). */
static float evaluate(const struct mla_oracle_test_row *row, int64_t first, float out[HEAD_DIM_V])
{
    float scores[256];
    float max = -INFINITY;
    float sum = 0.0f;

    for (int64_t j = first; j < row->n; j++) {
        scores[j] = 0.0f;
        for (int64_t i = 0; i < HEAD_DIM; i++) {
            scores[j] +=
                mla_oracle_test_value(row->q[i]) * mla_oracle_test_value(row->kv[j * HEAD_DIM + i]);
        }
        max = fmaxf(max, scores[j]);
    }
    memset(out, 0, HEAD_DIM_V * sizeof *out);
    for (int64_t j = first; j < row->n; j++) {
        const float p = expf((scores[j] - max) * 0.125f);

        sum += p;
        for (int64_t c = 0; c < HEAD_DIM_V; c++) {
            out[c] += p * mla_oracle_test_value(row->kv[j * HEAD_DIM + c]);
        }
    }
    for (int64_t c = 0; c < HEAD_DIM_V; c++) {
        out[c] /= sum;
    }
    return 0.125f * max + logf(sum);
}

/* How many of the row's results are outside; *worst: the largest error over the bound. */
static int outside(const float out[HEAD_DIM_V], const struct mla_bound bounds[HEAD_DIM_V],
                   enum mla_out_format format, double *worst)
{
    int n = 0;

    for (int c = 0; c < HEAD_DIM_V; c++) {
        const double y =
            format == MLA_FORMAT_F16 ? rounded((double)out[c], &plain, format) : (double)out[c];
        const struct mla_bound_ends ends = mla_bound_ends(&bounds[c], &plain, format);

        n += !(y >= ends.lo && y <= ends.hi);
        *worst = fmax(*worst, mla_bound_error_in(&bounds[c], &plain, format, y).ratio);
    }
    return n;
}

static void float32_is_inside_and_a_key_less_is_not(void **state)
{
    struct mla_bound bounds[HEAD_DIM_V];
    float out[HEAD_DIM_V];
    double worst = 0.0;

    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct mla_oracle_test_row *row = draw(1 + (int64_t)(seed * 7 % 200), seed);
        struct mla_truth *truth = NULL;
        bool accepted = false;
        double ratio = 0.0;
        double ignored = 0.0;

        assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
        assert_int_equal(mla_bound_row(truth, &plain, bounds), MLA_BOUND_OK);
        float lse = evaluate(row, 0, out);
        assert_int_equal(outside(out, bounds, MLA_FORMAT_F32, &worst), 0);
        assert_int_equal(outside(out, bounds, MLA_FORMAT_F16, &ignored), 0);
        assert_int_equal(mla_bound_lse_accepts(truth, &plain, 4, lse, &accepted, &ratio),
                         MLA_BOUND_OK);
        assert_true(accepted && ratio <= 1.0);
        if (row->n > 1) {
            lse = evaluate(row, 1, out);
            assert_true(outside(out, bounds, MLA_FORMAT_F32, &ignored) > HEAD_DIM_V / 2);
            assert_int_equal(mla_bound_lse_accepts(truth, &plain, 4, lse, &accepted, &ratio),
                             MLA_BOUND_OK);
            assert_false(accepted);
        }
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    assert_true(worst > 0.0);
}

static void log_sum_exp_alone(void **state)
{
    struct mla_oracle_test_row *row = draw(40, 3);
    struct mla_truth *truth = NULL;
    struct mla_model other = plain;
    struct mla_bound_stats stats;
    bool accepted = false;
    double ratio = 0.0;

    (void)state;
    other.stats_max = MLA_STATS_OTHER;
    assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
    assert_int_equal(mla_bound_stats(truth, &plain, &stats), MLA_BOUND_OK);
    const float just_off = (float)(stats.lse + 40 * stats.lse_radius);
    const float values[] = {NAN, INFINITY, -INFINITY, just_off};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mla_bound_lse_accepts(truth, &plain, 3, values[i], &accepted, &ratio),
                         MLA_BOUND_OK);
        assert_false(accepted);
    }
    assert_int_equal(mla_bound_lse_accepts(truth, &other, 3, (float)stats.lse, &accepted, &ratio),
                     MLA_BOUND_MODEL);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary16_is_rounded_as_defined),
        cmocka_unit_test(binary32_is_not_widened),
        cmocka_unit_test(ratio_agrees_with_ends),
        cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(what_is_cut_at_the_end_of_the_range),
        cmocka_unit_test(float32_is_inside_and_a_key_less_is_not),
        cmocka_unit_test(log_sum_exp_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
