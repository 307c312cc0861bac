/* SPDX-License-Identifier: Apache-2.0
 *
 * fixed_test.c - the wide integers against MPFR with more bits than they have.
 */
#include "oracle/fixed.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static uint64_t next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A double with a random sign, exponent and number of bits that fixed can hold. */
static double draw(uint64_t *random)
{
    const int exponent = (int)(next(random) % 560) - 266;
    const double integer = (double)(next(random) >> (11 + next(random) % 53));
    const double y = ldexp(integer, exponent > 250 ? 250 : exponent);

    return (next(random) & 1) != 0 ? -y : y;
}

static void assert_equal(const struct mla_oracle_fixed *x, mpfr_t want)
{
    mpfr_t got;

    mpfr_init2(got, 64);
    mla_oracle_fixed_get(got, x);
    assert_true(mpfr_equal_p(got, want));
    mpfr_clear(got);
}

static void test_sums_are_exact(void **state)
{
    uint64_t random = 7;
    mpfr_t want;

    (void)state;
    mpfr_init2(want, 900);
    for (int round = 0; round < 400; round++) {
        struct mla_oracle_fixed x = {{0}};

        mpfr_set_zero(want, 1);
        for (int i = 0; i < 30; i++) {
            const double y = draw(&random);

            mla_oracle_fixed_add(&x, y);
            mpfr_add_d(want, want, y, MPFR_RNDN);
            assert_equal(&x, want);
            if (i % 7 == 3) { /* back to almost nothing */
                mla_oracle_fixed_add(&x, -y);
                mpfr_sub_d(want, want, y, MPFR_RNDN);
                assert_equal(&x, want);
            }
        }
    }
    mpfr_clear(want);
}

static void test_bins(void **state)
{
    uint64_t random = 11;
    mpfr_t want;
    mpfr_t term;

    (void)state;
    mpfr_init2(want, 900);
    mpfr_init2(term, 64);
    for (int round = 0; round < 300; round++) {
        struct mla_oracle_fixed x;
        int64_t bins[512] = {0};

        mpfr_set_zero(want, 1);
        for (int i = 0; i < 40; i++) {
            const int bin = (int)(next(&random) % 507);
            const int64_t m = (int64_t)(next(&random) >> 34) - (1 << 29);

            bins[bin] += m;
            mpfr_set_si_2exp(term, m, bin + MLA_ORACLE_FIXED_UNIT, MPFR_RNDN);
            mpfr_add(want, want, term, MPFR_RNDN);
        }
        mla_oracle_fixed_from_bins(&x, bins, 512);
        assert_equal(&x, want);
    }
    mpfr_clear(term);
    mpfr_clear(want);
}

static void test_order_difference_and_double(void **state)
{
    uint64_t random = 13;
    mpfr_t a;
    mpfr_t b;

    (void)state;
    mpfr_init2(a, 900);
    mpfr_init2(b, 900);
    for (int round = 0; round < 5000; round++) {
        struct mla_oracle_fixed x = {{0}};
        struct mla_oracle_fixed y = {{0}};
        const double u = draw(&random);
        const double v = draw(&random);
        const double w = round % 3 == 0 ? u : draw(&random);

        mla_oracle_fixed_add(&x, u);
        mla_oracle_fixed_add(&x, v);
        mla_oracle_fixed_add(&y, w);
        mpfr_set_d(a, u, MPFR_RNDN);
        mpfr_add_d(a, a, v, MPFR_RNDN);
        mpfr_set_d(b, w, MPFR_RNDN);
        assert_int_equal(mla_oracle_fixed_greater(&x, &y), mpfr_cmp(a, b) > 0);
        assert_false(mla_oracle_fixed_greater(&x, &x));
        const struct mla_oracle_fixed difference = mla_oracle_fixed_minus(&x, &y);

        mpfr_sub(a, a, b, MPFR_RNDN);
        assert_equal(&difference, a);
        mpfr_abs(a, a, MPFR_RNDN);
        assert_true(mla_oracle_fixed_abs_up(&difference) == mpfr_get_d(a, MPFR_RNDU));
    }
    mpfr_clear(b);
    mpfr_clear(a);
}

/* floor(x scale 2^shift), or saturated. */
static void test_scaled(void **state)
{
    const float scales[] = {1.0f,    0.0416667f, 0.1352337f, 0x1p-149f, 0x1.8p-140f,
                            FLT_MIN, 0x1p-60f,   3e4f,       FLT_MAX,   0x1.fffffep-1f};
    uint64_t random = 17;
    int saturated = 0;
    mpfr_t want;
    mpz_t integer;

    (void)state;
    mpfr_init2(want, 900);
    mpz_init(integer);
    for (int round = 0; round < 20000; round++) {
        struct mla_oracle_fixed x = {{0}};
        const double y = fabs(draw(&random));
        const double z = fabs(draw(&random));
        const double scale = (double)scales[next(&random) % (sizeof scales / sizeof scales[0])];

        mla_oracle_fixed_add(&x, y);
        mla_oracle_fixed_add(&x, z);
        const unsigned __int128 got = mla_oracle_fixed_scaled(&x, scale, 118);

        mpfr_set_d(want, y, MPFR_RNDN);
        mpfr_add_d(want, want, z, MPFR_RNDN);
        mpfr_mul_d(want, want, scale, MPFR_RNDN);
        mpfr_mul_2si(want, want, 118, MPFR_RNDN);
        mpfr_get_z(integer, want, MPFR_RNDD);
        if (mpz_sizeinbase(integer, 2) > 128) {
            assert_true(got == ~(unsigned __int128)0);
            saturated++;
            continue;
        }
        assert_true((uint64_t)got == mpz_get_ui(integer));
        mpz_fdiv_q_2exp(integer, integer, 64);
        assert_true((uint64_t)(got >> 64) == mpz_get_ui(integer));
    }
    assert_true(saturated > 1000 && saturated < 19000);
    mpz_clear(integer);
    mpfr_clear(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_exact),
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_order_difference_and_double),
        cmocka_unit_test(test_scaled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
