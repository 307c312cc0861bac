/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics_test.c - figures and published rules against values worked out by hand.
 *
 * An output must be a bf16 number, a true value need not: every error wanted is made by choosing
 * the true value. Spacings of bf16: 2^-7 in [1, 2), 2^-6 in [2, 4), 2^-133 at and around zero.
 */
#include "fuzz/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/criteria.h"
#include "fuzz/number.h"

static struct mla_metrics_sums sums;
static const struct mla_model nearest_model = {.out_round = MLA_OUT_NEAREST};
static const struct mla_model truncating_model = {.out_round = MLA_OUT_TRUNCATE};

static void start(void)
{
    memset(&sums, 0, sizeof sums);
}

static void add_bits(uint16_t bits, double o, double radius, const struct mla_model *model)
{
    struct mla_bound bound = {.lo = -INFINITY,
                              .hi = INFINITY,
                              .nearest = mla_number_to_bf16(o),
                              .o = o,
                              .radius = radius};
    mla_metrics_add(&sums, bits, &bound, model, mla_bound_error(&bound, model, bits).ratio);
}

/* y must be a bf16 number. */
static void add(double y, double o)
{
    assert_true((double)mla_number_from_bf16(mla_number_to_bf16(y)) == y);
    add_bits(mla_number_to_bf16(y), o, 0x1p-20, &nearest_model);
}

static void add_times(int n, double y, double o)
{
    for (int i = 0; i < n; i++)
        add(y, o);
}

static struct mla_metrics finish(void)
{
    struct mla_metrics metrics;
    mla_metrics_finish(&sums, &metrics);
    return metrics;
}

static void near(double got, double due, double tolerance)
{
    if (!(fabs(got - due) <= tolerance))
        fail_msg("%.17g, not %.17g", got, due);
}

static bool passes(const char *rule)
{
    size_t n;
    const struct mla_criterion *criteria = mla_criteria(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(criteria[i].name, rule) == 0)
            return (finish().would_pass >> i & 1) != 0;
    fail_msg("no rule '%s'", rule);
    return false;
}

static uint32_t all_rules(void)
{
    size_t n;
    mla_criteria(&n);
    assert_true(n < 32);
    return (1u << n) - 1;
}

/* ---- figures ---- */

static void test_nothing(void **state)
{
    (void)state;
    start();
    struct mla_metrics m = finish();
    assert_int_equal(m.elements_n, 0);
    assert_int_equal(m.would_pass, 0);
    assert_true(m.max_ulp == 0 && m.p99_ulp == 0 && m.rms_relative == 0 && m.bias_se == 0);
}

static void test_exact(void **state)
{
    (void)state;
    start();
    for (int i = 1; i <= 100; i++)
        add(i, i);
    struct mla_metrics m = finish();
    assert_int_equal(m.elements_n, 100);
    assert_true(m.max_err_over_bound == 0 && m.max_ulp == 0 && m.p50_ulp == 0 && m.p99_ulp == 0);
    assert_true(m.rms_relative == 0 && m.bias_se == 0 && m.bias_outward_se == 0);
    assert_true(m.correctly_rounded_percent == 100 && m.chi_square_ratio == 0);
    assert_int_equal(m.would_pass, all_rules());
}

/* Errors of -1/4, +1/2 (a tie, to even), +1 and 0 units of 2^-6; the third value negative. */
static void test_four_by_hand(void **state)
{
    (void)state;
    start();
    add_bits(mla_number_to_bf16(2.5), 2.5 + 0x1p-8, 0, &nearest_model);
    add_bits(mla_number_to_bf16(3), 3 - 0x1p-7, 0, &nearest_model);
    add_bits(mla_number_to_bf16(-3), -3 - 0x1p-6, 0, &nearest_model);
    add_bits(mla_number_to_bf16(2), 2, 0, &nearest_model);
    struct mla_metrics m = finish();
    assert_true(m.max_err_over_bound == INFINITY); /* one is off, and nothing is allowed */
    assert_true(m.max_ulp == 1);
    assert_true(m.p50_ulp == 0.25 * 17 / 16); /* the second of four, rounded up to a bucket's end */
    assert_true(m.p99_ulp == 1);
    assert_true(m.correctly_rounded_percent == 75);
    /* 21 * 2^-16 / (2.50390625^2 + 2.9921875^2 + 3.015625^2 + 2^2) */
    near(m.rms_relative, sqrt(21 * 0x1p-16 / 28.3167266845703125), 1e-15);
    near(m.chi_square_ratio, 12 * (0.0625 + 0.25 + 1) / 4, 1e-12);
    /* up: -1/4 + 1/2 + 1; outward: -1/4 + 1/2 - 1; over sqrt(1/16 + 1/4 + 1) */
    near(m.bias_se, 1.0910894511799618, 1e-14);
    near(m.bias_outward_se, -0.65465367070797709, 1e-14);
}

static void test_units_of_the_last_place(void **state)
{
    static const struct {
        double y, o, ulp;
    } cases[] = {
        {1, 1 + 0x1p-7, 1},
        {1, 1 - 0x1p-8, 1},                   /* seen from o, below the power of two */
        {-128, -128.5, 0.5},                  /* 2^0 in [128, 256) */
        {0, 0x1p-133, 1},                     /* the least subnormal */
        {0, 0x1p-140, 0x1p-7},                /* below it */
        {0, 0x1p-126, 128},                   /* the least normal */
        {0x1p-133, 0, 1},                     /* around zero as at the subnormals */
        {0x1.fep127, 0x1.fcp127, 1},          /* the largest */
        {-0x1.fep127, 0x1.fep127, 510},       /* as far off as can be */
        {1, 0x1p-20, (1 - 0x1p-20) * 0x1p27}, /* beyond the last bucket */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start();
        add(cases[i].y, cases[i].o);
        struct mla_metrics m = finish();
        if (m.max_ulp != cases[i].ulp || m.p50_ulp != m.max_ulp || m.p99_ulp != m.max_ulp)
            fail_msg("case %zu: %g (%g, %g), not %g", i, m.max_ulp, m.p50_ulp, m.p99_ulp,
                     cases[i].ulp);
    }
}

/* Rank and resolution: 98 % at 1/2 (bucket end 17/32), 1 % at 3, 1 % at 40. */
static void test_percentiles(void **state)
{
    (void)state;
    start();
    add_times(98, 1, 1 + 0x1p-8);
    add(1, 1 + 3 * 0x1p-7);
    add(1, 1 + 40 * 0x1p-7);
    struct mla_metrics m = finish();
    assert_true(m.p50_ulp == 17.0 / 32);
    assert_true(m.p99_ulp == 3 + 2.0 / 16); /* [3, 3 + 1/8) */
    assert_true(m.max_ulp == 40);
    add_times(2, 1, 1 + 40 * 0x1p-7); /* now 99 % of 102 is the 101st */
    m = finish();
    assert_true(m.p99_ulp == 40);
    start(); /* small ones share the lowest bucket */
    add_times(3, 1, 1 + 0x1p-17);
    add(1, 1 + 0x1p-8);
    assert_true(finish().p50_ulp == 0x1p-8);
}

/* (e/sigma)^2 for an error of one place: sigma^2 = B^2/3 + 1/12 or 1/3, in units of the place. */
static void test_chi_square(void **state)
{
    static const struct {
        const struct mla_model *model;
        double radius, due;
    } cases[] = {
        {&nearest_model, 0, 12},
        {&nearest_model, 0x1p-7, 12.0 / 5},
        {&nearest_model, 0x1p-6, 12.0 / 17},
        {&truncating_model, 0, 3},
        {&truncating_model, 0x1p-7, 1.5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start();
        add_bits(mla_number_to_bf16(1), 1 + 0x1p-7, cases[i].radius, cases[i].model);
        near(finish().chi_square_ratio, cases[i].due, 1e-12);
    }
}

static uint16_t truncated(double o)
{
    uint16_t bits = mla_number_to_bf16(o);
    return (uint16_t)(fabs((double)mla_number_from_bf16(bits)) > fabs(o) ? bits - 1 : bits);
}

/* n true values of both signs, spread over binades; the output is only the last rounding. */
static void round_many(int n, const struct mla_model *model)
{
    start();
    for (int i = 0; i < n; i++) {
        uint64_t bits = mla_number_at(1, (uint64_t)i, 0, 0);
        double o = ldexp(1 + mla_number_unit(bits), (int)(bits & 7));
        o = (bits & 8) != 0 ? -o : o;
        add_bits(model == &nearest_model ? mla_number_to_bf16(o) : truncated(o), o, 0, model);
    }
}

/*
 * What 1 means. Roundings alone: (e/sigma)^2 has mean 1 and variance 4/5 either way (12^2 E u^4 - 1
 * for u in +-1/2; 3^2 E u^4 - 1 for u in [0, 1)), so 5 standard deviations of the mean of 20000 are
 * 5 sqrt(4/5/20000) = 0.032. Cut toward zero, z has mean sqrt(3)/2: bias -sqrt(3)/2 sqrt(20000)
 * = -122.5, give or take 5 * 0.5 for z's spread of 1/2.
 */
static void test_roundings_score_one(void **state)
{
    (void)state;
    round_many(20000, &nearest_model);
    struct mla_metrics m = finish();
    near(m.chi_square_ratio, 1, 0.032);
    near(m.bias_se, 0, 5);
    near(m.bias_outward_se, 0, 5);
    assert_true(m.correctly_rounded_percent == 100 && m.max_ulp <= 0.5);
    round_many(20000, &truncating_model);
    m = finish();
    near(m.chi_square_ratio, 1, 0.032);
    near(m.bias_se, 0, 5);
    near(m.bias_outward_se, -122.5, 2.5);
    assert_true(m.correctly_rounded_percent > 45 && m.correctly_rounded_percent < 55);
}

/* Errors that are sums of m independent ones of B/m each, B a thousand places: 1/m. The relative
 * standard deviation of the mean of 20000 squares is at most sqrt(2/20000) = 0.01. */
static void test_shared_roundings(void **state)
{
    (void)state;
    for (int m = 1; m <= 64; m *= 8) {
        start();
        for (int i = 0; i < 20000; i++) {
            double e = 0, radius = 1000 * 0x1p-7;
            for (int k = 0; k < m; k++) {
                double unit = mla_number_unit(mla_number_at(2, (uint64_t)i, (uint64_t)k, 0));
                e += (2 * unit - 1) * radius / m;
            }
            add_bits(mla_number_to_bf16(1), 1 - e * 0x1p-4, radius * 0x1p-4, &nearest_model);
        }
        near(finish().chi_square_ratio * m, 1, 0.05 + 0.01 * m * 12 / 1000);
    }
}

/* ---- what is not finite, zero, constant, alone ---- */

static void test_not_finite(void **state)
{
    static const uint16_t bad[] = {MLA_BF16_NAN, MLA_BF16_INF, MLA_BF16_INF | 0x8000, 0xffff};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int place = 0; place < 3; place++) { /* first, in the middle, last */
            start();
            for (int k = 0; k < 300; k++)
                if (k == place * 149 + (place == 2))
                    add_bits(bad[i], 1, 1, &nearest_model);
                else
                    add(k + 1 < 256 ? k + 1 : 1, k + 1 < 256 ? k + 1 : 1);
            struct mla_metrics m = finish();
            assert_int_equal(m.elements_n, 300);
            assert_int_equal(m.would_pass, 0);
            assert_true(m.max_err_over_bound == INFINITY && m.max_ulp == INFINITY);
            assert_true(m.p50_ulp == 0 && m.p99_ulp == 0); /* one of 300 lies beyond 99 % */
            assert_true(m.rms_relative == INFINITY && m.chi_square_ratio == INFINITY);
            assert_true(isnan(m.bias_se) && isnan(m.bias_outward_se));
            near(m.correctly_rounded_percent, 100 * 299.0 / 300, 1e-12);
        }
    start();
    add_bits(MLA_BF16_NAN, 1, 1, &nearest_model);
    struct mla_metrics m = finish();
    assert_true(m.p50_ulp == INFINITY && m.p99_ulp == INFINITY && m.would_pass == 0);
    assert_true(m.correctly_rounded_percent == 0);
}

static void test_zeros(void **state)
{
    (void)state;
    start();
    add_times(5, 0, 0);
    add_bits(0x8000, 0, 0, &nearest_model);
    struct mla_metrics m = finish();
    assert_true(m.max_ulp == 0 && m.rms_relative == 0 && m.correctly_rounded_percent == 100);
    /* Zeros against zeros divide 0 by 0 in calc_diff; its `<` refuses NaN, ggml's `>` lets it by,
     * FlashMLA looks first. */
    assert_false(passes("calc_diff_1e3"));
    assert_false(passes("calc_diff_1e5"));
    assert_true(passes("nmse_5e4") && passes("flashmla") && passes("ring_full"));
    assert_true(passes("ring_chunked") && passes("allclose_1e2") && passes("global_max_5e2"));
    start(); /* something where nothing should be */
    add_times(5, 0x1p-10, 0);
    m = finish();
    assert_true(m.rms_relative == INFINITY && m.bias_outward_se > 2.2);
    assert_false(passes("nmse_5e4") || passes("calc_diff_1e3") || passes("ring_chunked"));
}

/* A constant has no correlation: what the source makes of it is "passed", except zeros against
 * something else. */
static void test_constants(void **state)
{
    (void)state;
    start();
    add_times(1000, 0x1.9ap-4, 3); /* 0.1 in bf16, against 3 */
    assert_true(passes("ring_chunked"));
    assert_false(passes("ring_full")); /* the RMSE sees it */
    assert_false(passes("calc_diff_1e3"));
    start();
    for (int i = 0; i < 100; i++)
        add(0x1.9ap-4, i);
    assert_true(passes("ring_chunked"));
    start();
    for (int i = 0; i < 100; i++)
        add(i, 0.3);
    assert_true(passes("ring_chunked"));
    start();
    for (int i = 1; i < 100; i++)
        add(0, i);
    assert_false(passes("ring_chunked"));
    start();
    for (int i = 1; i < 100; i++)
        add(i, 0);
    assert_false(passes("ring_chunked"));
    start(); /* not constant, and upside down */
    for (int i = 1; i < 100; i++)
        add(i, -i);
    assert_false(passes("ring_chunked"));
}

static void test_one_element(void **state)
{
    (void)state;
    start();
    add_bits(mla_number_to_bf16(3), 3 + 0x1p-7, 0x1p-9, &nearest_model);
    struct mla_metrics m = finish();
    assert_true(m.max_ulp == 0.5 && m.p50_ulp == 0.5 && m.p99_ulp == 0.5);
    assert_true(m.bias_se == -1 && m.bias_outward_se == -1);
    assert_true(m.correctly_rounded_percent == 100); /* the tie goes to the even one */
    near(m.rms_relative, 0x1p-7 / 3.0078125, 1e-15);
    assert_true(passes("ring_full") && passes("flashmla"));
}

/* ---- the rules at their thresholds ---- */

/* y = h (1, -1, 0, 0) against o = y + h b (0, 0, 1, -1): PCC 1/sqrt(1+b^2), RMSE h b/sqrt(2). */
static void add_tilted(double h, double b)
{
    start();
    add(h, h);
    add(-h, -h);
    add(0, h * b);
    add(0, -h * b);
}

static void test_correlation_rules(void **state)
{
    (void)state;
    add_tilted(0.5, 0.1099); /* 0.994015 */
    assert_true(passes("ring_full"));
    add_tilted(0.5, 0.1102); /* 0.993983 */
    assert_false(passes("ring_full"));
    add_tilted(0.5, 0.1424); /* 0.990013 */
    assert_true(passes("ring_chunked"));
    add_tilted(0.5, 0.1426); /* 0.989985 */
    assert_false(passes("ring_chunked"));
    for (int side = 0; side < 2; side++) { /* the RMSE alone */
        double e = side == 0 ? 0.0499 : 0.0501;
        start();
        add(16, 16 + e);
        add(-16, -16 + e);
        assert_true(passes("ring_chunked"));
        assert_int_equal(passes("ring_full"), side == 0);
    }
}

/* (1, 0) against (1, e). */
static bool passes_beside(const char *rule, double e)
{
    start();
    add(1, 1);
    add(0, e);
    return passes(rule);
}

/* 1 against 1 + e, in the company of n exact ones. */
static bool passes_off_by(const char *rule, double e, int n)
{
    start();
    add(1, 1 + e);
    add_times(n, 1, 1);
    return passes(rule);
}

static void test_norm_rules(void **state)
{
    (void)state;
    /* e^2 / (2 + e^2) */
    assert_true(passes_beside("calc_diff_1e3", 0.0447));
    assert_false(passes_beside("calc_diff_1e3", 0.0448));
    assert_true(passes_beside("calc_diff_1e5", 0.004472));
    assert_false(passes_beside("calc_diff_1e5", 0.004473));
    assert_true(passes_beside("nmse_5e4", 0.0223)); /* e^2 */
    assert_false(passes_beside("nmse_5e4", 0.0224));
    /* 0.0225^2 over the output's square is 5.06e-4; over the reference's it would be 4.84e-4 */
    assert_false(passes_off_by("nmse_5e4", 0.0225, 0));
    assert_true(passes_off_by("nmse_5e4", 0.0223, 0));
}

static void test_element_rules(void **state)
{
    (void)state;
    /* The tolerance grows with the reference: 0.020201 at 1.0201, 0.020203 at 1.0203. */
    assert_true(passes_off_by("allclose_1e2", 0.0201, 1000));
    assert_false(passes_off_by("allclose_1e2", 0.0203, 1000));
    assert_true(passes_off_by("allclose_2e2", 0.0408, 1000));
    assert_false(passes_off_by("allclose_2e2", 0.0409, 1000));
    for (int side = 0; side < 2; side++) { /* 0.05 + 0.05 * 10 for every element */
        start();
        add(8, -10);
        add(0, 0);
        assert_false(passes("global_max_5e2"));
        start();
        add(-10, -10);
        add(0, side == 0 ? -0.549 : -0.551);
        assert_int_equal(passes("global_max_5e2"), side == 0);
    }
}

static void test_flashmla_rule(void **state)
{
    (void)state;
    /* Relative: 0.02408/1.024081 = 0.023514 < 3.01/128 = 0.0235156 < 0.0241/1.024101. */
    assert_true(passes_off_by("flashmla", 0.02408, 1000));
    assert_false(passes_off_by("flashmla", 0.0241, 1000));
    assert_true(passes_beside("flashmla", 7.9e-4)); /* absolute */
    assert_false(passes_beside("flashmla", 8.1e-4));
    /* Cosine: 0.02^2 / (2 k + 1 + 1.02^2) is 1.05e-5 for k = 18, 9.99e-6 for 19. */
    assert_false(passes_off_by("flashmla", 0.02, 18));
    assert_true(passes_off_by("flashmla", 0.02, 19));
    start(); /* a reference that vanishes has no direction */
    add_times(10, 0x1p-11, 0x1p-23);
    assert_true(passes("flashmla"));
    assert_false(passes("calc_diff_1e5"));
}

/* ---- names ---- */

static void test_figures_by_name(void **state)
{
    struct mla_metrics_figure f, g;
    size_t n = 0, criteria_n;
    const struct mla_criterion *criteria = mla_criteria(&criteria_n);
    struct mla_metrics m = {.max_err_over_bound = 1, .max_ulp = 2, .p50_ulp = 3, .p99_ulp = 4};
    (void)state;
    m.chi_square_ratio = 9;
    m.would_pass = 2; /* only the second rule */
    for (; mla_metrics_figure(&m, n, &f); n++)
        for (size_t k = 0; k < n; k++) {
            assert_true(mla_metrics_figure(&m, k, &g));
            assert_string_not_equal(f.name, g.name);
        }
    assert_int_equal(n, 9 + criteria_n);
    for (size_t i = 0; i < 4; i++) {
        assert_true(mla_metrics_figure(&m, i, &f));
        assert_true(f.value == (double)(i + 1));
    }
    assert_true(mla_metrics_figure(&m, 8, &f));
    assert_string_equal(f.name, "chi_square_ratio");
    assert_true(f.value == 9);
    for (size_t i = 0; i < criteria_n; i++) {
        assert_true(mla_metrics_figure(&m, 9 + i, &f));
        assert_string_equal(f.name, criteria[i].metric);
        assert_true(strncmp(f.name, "would_pass_", 11) == 0);
        assert_string_equal(f.name + 11, criteria[i].name);
        assert_true(f.value == (i == 1));
    }
    assert_false(mla_metrics_figure(&m, n + 1, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_four_by_hand),
        cmocka_unit_test(test_units_of_the_last_place),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_chi_square),
        cmocka_unit_test(test_roundings_score_one),
        cmocka_unit_test(test_shared_roundings),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_one_element),
        cmocka_unit_test(test_correlation_rules),
        cmocka_unit_test(test_norm_rules),
        cmocka_unit_test(test_element_rules),
        cmocka_unit_test(test_flashmla_rule),
        cmocka_unit_test(test_figures_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
