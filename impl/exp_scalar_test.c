/* SPDX-License-Identifier: Apache-2.0
 *
 * exp_scalar_test.c - the kernel's exponential and bfloat16 conversions against independent values.
 *
 * The reference is expl. Its own error is below an ulp of long double; the test allows 4 of them
 * beside the proven bound, which on a machine with 64-bit significands is 2^-61 against 2^-40.
 */
#include "impl/bf16.h"
#include "impl/exp_scalar.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

static long double worst;

/*
 * Sharper than the relative error: the result must be the float nearest to the true value, unless
 * that lies within 2^-40 of the midpoint of two floats. This sees an error of the polynomial that
 * is far below half an ulp, by the roundings it turns over.
 */
static void expect_rounding(float x, float got, long double want)
{
    const long double slack = want * (0x1p-40L + 4 * LDBL_EPSILON);
    const long double above = ((long double)got + nextafterf(got, INFINITY)) / 2;
    const long double below = ((long double)got + nextafterf(got, 0.0f)) / 2;
    if (!(want <= above + slack && want >= below - slack)) {
        print_error("exp(%a) = %a is not nearest to %La\n", (double)x, (double)got, want);
        fail();
    }
}

static void expect_exp(float x)
{
    const float got = mla_exp_scalar(x);
    const long double want = expl((long double)x);
    if (want < 0x1p-126L) {
        assert_int_equal(bits_of(got), 0);
        return;
    }
    const long double error = fabsl((long double)got - want) / want;
    const long double bound = (long double)MLA_EXP_SCALAR_ERROR + 4 * LDBL_EPSILON;
    if (!(error <= bound)) {
        print_error("exp(%a) = %a, relative error %Lg\n", (double)x, (double)got, error);
        fail();
    }
    expect_rounding(x, got, want);
    worst = error > worst ? error : worst;
}

/* Every 331st float of [-110, -0], some 3.4 million, a stride that is no power of two. */
static void test_sweep(void **state)
{
    (void)state;
    for (uint32_t bits = bits_of(-0.0f); bits <= bits_of(-110.0f); bits += 331) {
        expect_exp(float_of(bits));
    }
    print_message("worst relative error %.9Lg * 2^-24\n", worst * 0x1p24L);
    assert_true(worst > 0x1.fp-25L); /* the sweep must have come near a halfway case */
}

/* Around each change of k, each power of two, and the threshold: all floats in a neighbourhood. */
static void test_edges(void **state)
{
    (void)state;
    for (int k = 0; k <= 130; k++) {
        const uint32_t middle = bits_of((float)(-(k + 0.5) * 0.69314718055994531));
        const uint32_t multiple = bits_of((float)(-k * 0.69314718055994531));
        for (uint32_t i = 0; i < 400; i++) {
            expect_exp(float_of(middle - 200 + i));
            expect_exp(float_of((multiple | UINT32_C(0x80000000)) + i));
            if (k > 0) {
                expect_exp(float_of(multiple - i));
            }
        }
    }
    for (int e = -149; e <= 6; e++) {
        const uint32_t power = bits_of(-ldexpf(1.0f, e));
        for (uint32_t i = 0; i < 64; i++) {
            expect_exp(float_of(power + i));
            expect_exp(float_of(power > UINT32_C(0x80000000) + i ? power - i : power));
        }
    }
    for (uint32_t i = 0; i < 40000; i++) {
        expect_exp(float_of(bits_of(MLA_EXP_SCALAR_LOWEST) - 20000 + i));
    }
}

static void test_special(void **state)
{
    const float below = nextafterf(MLA_EXP_SCALAR_LOWEST, -INFINITY);
    (void)state;
    assert_true(mla_exp_scalar(0.0f) == 1.0f);
    assert_true(mla_exp_scalar(-0.0f) == 1.0f);
    assert_true(mla_exp_scalar(-FLT_TRUE_MIN) == 1.0f);
    assert_int_equal(bits_of(mla_exp_scalar(-INFINITY)), 0);
    assert_int_equal(bits_of(mla_exp_scalar(-FLT_MAX)), 0);
    assert_true(mla_exp_scalar(MLA_EXP_SCALAR_LOWEST) >= FLT_MIN);
    assert_int_equal(bits_of(mla_exp_scalar(below)), 0);
    assert_true(expl((long double)MLA_EXP_SCALAR_LOWEST) >= 0x1p-126L);
    assert_true(expl((long double)below) < 0x1p-126L);
    assert_true(isnan(mla_exp_scalar(NAN)));
    assert_true(mla_exp_scalar(-1.0f) == 0x1.78b564p-2f); /* 0.36787944 */
}

static void test_bf16_rounding(void **state)
{
    static const struct {
        uint32_t wide;
        uint16_t narrow;
    } table[] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80}, /* 0, -0, 1 */
        {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},                       /* ties: to even */
        {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80},                       /* beside a tie */
        {0xbf818000, 0xbf82}, {0x3fffffff, 0x4000},                       /* sign; next binade */
        {0x7f7fffff, 0x7f80}, {0x7f7f7fff, 0x7f7f},                       /* to infinity, or not */
        {0x7f800000, 0x7f80}, {0xff800000, 0xff80},                       /* infinities */
        {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00018000, 0x0002}, /* subnormals */
        {0x7f800001, 0x7fc0}, {0xff800001, 0xffc0}, {0x7fffffff, 0x7fff}, /* NaN, also all ones */
        {0xffffffff, 0xffff},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(mla_bf16_from_float(float_of(table[i].wide)), table[i].narrow);
    }
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        const float wide = mla_bf16_to_float((uint16_t)bits);
        const bool is_quiet = !isnan(wide) || (bits & 0x40U) != 0;
        assert_int_equal(bits_of(wide), bits << 16);
        assert_int_equal(mla_bf16_from_float(wide), is_quiet ? bits : (bits | 0x40U));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_bf16_rounding),
    };
    return cmocka_run_group_tests_name("exp_scalar", tests, NULL, NULL);
}
