/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_test_test.c - medians and the rank test against worked examples and a count of all orders.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuzz/rank_test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_close(double got, double wanted, double off)
{
    if (!(fabs(got - wanted) <= off))
        fail_msg("%.10g where %.10g is due", got, wanted);
}

/* Hollander and Wolfe, Nonparametric Statistical Methods (1973), p. 69 f.: permeability of a membrane
 * at term and earlier. U is 35; its one-sided chance is 0.1272. */
static void test_published_without_ties(void **state)
{
    static const double term[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    static const double early[] = {1.15, 0.88, 0.90, 0.74, 1.21};
    (void)state;
    struct mla_rank_test test = mla_rank_test(term, COUNT(term), early, COUNT(early));
    assert_true(test.exact);
    assert_close(test.u, 35, 0);
    assert_close(test.p, 2 * 0.1272, 1e-4);
    test = mla_rank_test(early, COUNT(early), term, COUNT(term));
    assert_close(test.u, 15, 0);
    assert_close(test.p, 2 * 0.1272, 1e-4);
}

/* Ozone in New York in May and August 1973 (R's data set airquality, as its manual tests it): many ties.
 * U is 127.5, two-sided chance 0.0001208. */
static void test_published_with_ties(void **state)
{
    static const double may[] = {41, 36, 12, 18, 28, 23, 19, 8, 7,  16, 11, 14,  18,
                                 14, 34, 6,  30, 11, 1,  11, 4, 32, 23, 45, 115, 37};
    static const double august[] = {39, 9,  16, 78, 35, 66, 122, 89,  110, 44, 28,  65, 22,
                                    59, 23, 31, 44, 21, 9,  45,  168, 73,  76, 118, 84, 85};
    (void)state;
    struct mla_rank_test test = mla_rank_test(may, COUNT(may), august, COUNT(august));
    assert_false(test.exact);
    assert_close(test.u, 127.5, 0);
    assert_close(test.p, 0.0001208, 5e-8);
}

/* Every choice of 4 of the numbers 1 .. 9 is equally likely: count those as far out. */
static void test_all_orders(void **state)
{
    (void)state;
    for (unsigned chosen = 0; chosen < 1u << 9; chosen++) {
        double a[9], b[9];
        size_t a_n = 0, b_n = 0;
        for (unsigned i = 0; i < 9; i++)
            if ((chosen >> i & 1u) != 0)
                a[a_n++] = i;
            else
                b[b_n++] = i;
        if (a_n != 4)
            continue;
        struct mla_rank_test test = mla_rank_test(a, 4, b, 5);
        int all = 0, as_far = 0;
        for (unsigned other = 0; other < 1u << 9; other++) {
            double u = 0;
            int n = 0;
            for (unsigned i = 0; i < 9; i++) {
                n += (other >> i & 1u) != 0;
                for (unsigned j = 0; j < i; j++)
                    u += (other >> i & 1u) != 0 && (other >> j & 1u) == 0;
            }
            all += n == 4;
            as_far += n == 4 && fabs(u - 10) >= fabs(test.u - 10);
        }
        assert_int_equal(all, 126);
        assert_close(test.p, as_far / 126.0, 1e-12);
    }
}

static void test_extremes(void **state)
{
    static const double low[] = {1, 2, 3}, high[] = {4, 5, INFINITY}, same[] = {7, 7, 7};
    static const double never[] = {INFINITY, INFINITY, INFINITY};
    (void)state;
    assert_close(mla_rank_test(low, 3, high, 3).u, 0, 0);
    assert_close(mla_rank_test(low, 3, high, 3).p, 2.0 / 20, 1e-12); /* two of (6 over 3) orders */
    assert_close(mla_rank_test(same, 3, same, 3).p, 1, 0);
    assert_close(mla_rank_test(never, 3, never, 3).p, 1, 0);
    assert_true(mla_rank_test(never, 3, low, 3).p < 0.1);
    /* Sixty-four against as many, all larger: both ends of an exact count that large. */
    double a[64], b[64];
    for (int i = 0; i < 64; i++) {
        a[i] = i;
        b[i] = 64 + i;
    }
    double p = mla_rank_test(a, 64, b, 64).p;
    assert_true(p > 0 && p < 1e-30);
}

static void test_median(void **state)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, mixed[] = {INFINITY, 1, INFINITY, INFINITY};
    (void)state;
    assert_close(mla_rank_median(odd, 3), 2, 0);
    assert_close(mla_rank_median(even, 4), 2.5, 0);
    assert_true(isinf(mla_rank_median(mixed, 4)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_without_ties),
        cmocka_unit_test(test_published_with_ties),
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
