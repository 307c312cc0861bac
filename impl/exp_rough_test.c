/* SPDX-License-Identifier: Apache-2.0
 *
 * exp_rough_test.c - the rough exponential against libm's, over every float32 it works on.
 *
 * The reference is exp in double, whose error of about 2^-53 vanishes beside a bound of 2^-9. From
 * -2^-12 down to below the threshold every float32 is tried, some 160 million; between -2^-12 and
 * 0, where the polynomial is 1 + x*(1.014 + ..) and off by less than 2^-17, every 331st.
 */
#include "impl/bf16.h"
#include "impl/exp_rough.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Relative error at x; a threshold that lies elsewhere shows as an error of 1 or infinity. */
static double error_at(float x)
{
    const double want = exp((double)x);
    const double got = (double)mla_exp_rough(x);
    if (want < 0x1p-126) {
        return got == 0.0 ? 0.0 : INFINITY;
    }
    return fabs(got / want - 1.0);
}

static double worst_between(float from, float to, uint32_t stride, float *at)
{
    double worst = 0.0;
    for (uint32_t bits = bits_of(from); bits <= bits_of(to); bits += stride) {
        const double error = error_at(float_of(bits));
        if (!(error <= worst)) {
            worst = error;
            *at = float_of(bits);
        }
    }
    return worst;
}

static void test_all(void **state)
{
    float at = 0.0f;
    (void)state;
    const double worst = worst_between(-0x1p-12f, -90.0f, 1, &at);
    print_message("worst relative error %.9g at %a\n", worst, (double)at);
    assert_true(worst <= MLA_EXP_ROUGH_ERROR);
    assert_true(worst > 0.0019636); /* the polynomial's own, reached: no more is declared */
}

static void test_small(void **state)
{
    float at = 0.0f;
    (void)state;
    assert_true(worst_between(-0.0f, -0x1p-12f, 331, &at) < 0x1p-17);
}

/*
 * Near 0 the error is small as x is: over |x| and apart from 2^-23. Every float32 from -2^-6 to -1, where
 * the bound on all errors is met; towards 0, where only roundings are left, every 331st.
 */
static void test_slope(void **state)
{
    double worst = 0.0;
    (void)state;
    for (uint32_t bits = bits_of(-0.0f); bits <= bits_of(-1.0f);
         bits += bits < bits_of(-0x1p-6f) ? 331 : 1) {
        const float x = float_of(bits);
        const double slope = (error_at(x) - 0x1p-23) / fmax(fabs((double)x), 0x1p-149);
        worst = slope <= worst ? worst : slope;
    }
    print_message("worst slope %.9g\n", worst);
    assert_true(worst <= MLA_EXP_ROUGH_SLOPE);
    assert_true(worst > 0.014);                                   /* no more is declared */
    assert_true(MLA_EXP_ROUGH_SLOPE * 1.0 > MLA_EXP_ROUGH_ERROR); /* further off it says nothing */
}

static void test_special(void **state)
{
    const float below = nextafterf(MLA_EXP_ROUGH_LOWEST, -INFINITY);
    (void)state;
    assert_true(mla_exp_rough(0.0f) == 1.0f);
    assert_true(mla_exp_rough(-0.0f) == 1.0f);
    assert_true(mla_exp_rough(-FLT_TRUE_MIN) == 1.0f);
    assert_int_equal(bits_of(mla_exp_rough(-INFINITY)), 0);
    assert_int_equal(bits_of(mla_exp_rough(-FLT_MAX)), 0);
    assert_int_equal(bits_of(mla_exp_rough(below)), 0);
    assert_true(mla_exp_rough(MLA_EXP_ROUGH_LOWEST) > 0.0f);
    assert_true(isnan(mla_exp_rough(NAN)));
}

/* To nearest and toward zero, one bf16 apart or none; of every seventh float. */
static void test_bf16(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7f7f0000U; bits += 7 * 331) {
        const float x = float_of(bits);
        const float cut = mla_bf16_cut(x);
        const float next = float_of(bits_of(cut) + 0x10000U);
        const double middle = ((double)cut + (double)next) / 2;
        const float nearest = mla_bf16_round(x);
        assert_int_equal(bits_of(cut) & 0xffffU, 0);
        assert_true(cut <= x && x < next);
        assert_true(mla_bf16_cut(-x) == -cut && mla_bf16_round(-x) == -nearest);
        if ((double)x != middle) {
            assert_true(nearest == ((double)x < middle ? cut : next));
        } else {
            assert_true((bits_of(nearest) & 0x10000U) == 0 && (nearest == cut || nearest == next));
        }
    }
    assert_true(isnan(mla_bf16_round(NAN)));
    assert_true(mla_bf16_round(0x1.01p+0f) == 0x1p+0f && mla_bf16_round(0x1.03p+0f) == 0x1.04p+0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),     cmocka_unit_test(test_small), cmocka_unit_test(test_slope),
        cmocka_unit_test(test_special), cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests_name("exp_rough", tests, NULL, NULL);
}
