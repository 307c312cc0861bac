/* SPDX-License-Identifier: Apache-2.0
 *
 * exponential_test.c - the exponential against MPFR, over random arguments of every size and at
 * the edges of its tables.
 */
#include "oracle/exponential.h"

#include <mpfr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

typedef unsigned __int128 wide;

static uint64_t next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* |head + tail - e^-(t 2^-118)| / e^-(t 2^-118) */
static double relative_error(wide t, struct mla_oracle_exp got)
{
    mpfr_t x;
    mpfr_t y;
    double error;

    mpfr_init2(x, 300);
    mpfr_init2(y, 300);
    mpfr_set_ui_2exp(x, (uint64_t)(t >> 64), 64, MPFR_RNDN);
    mpfr_add_ui(x, x, (uint64_t)t, MPFR_RNDN);
    mpfr_mul_2si(x, x, -MLA_ORACLE_EXP_SHIFT, MPFR_RNDN);
    mpfr_neg(x, x, MPFR_RNDN);
    mpfr_exp(x, x, MPFR_RNDN);
    mpfr_set_d(y, got.head, MPFR_RNDN);
    mpfr_add_d(y, y, got.tail, MPFR_RNDN);
    mpfr_sub(y, y, x, MPFR_RNDN);
    mpfr_div(y, y, x, MPFR_RNDN);
    mpfr_abs(y, y, MPFR_RNDN);
    error = mpfr_get_d(y, MPFR_RNDU);
    mpfr_clear(y);
    mpfr_clear(x);
    return error;
}

/* Also: head has 45 significant bits, the tail is below its last place. */
static double check(wide t)
{
    const struct mla_oracle_exp got = mla_oracle_exp(t);
    const double error = relative_error(t, got);

    assert_true(error < MLA_ORACLE_EXP_ERROR);
    mpfr_t head;
    mpfr_init2(head, 53);
    mpfr_set_d(head, got.head, MPFR_RNDN);
    assert_true(mpfr_min_prec(head) <= 45);
    mpfr_clear(head);
    assert_true(got.tail >= 0.0 && got.tail <= got.head * 0x1p-43);
    return error;
}

static void test_random_arguments(void **state)
{
    uint64_t random = 1;
    double worst = 0.0;

    (void)state;
    for (int i = 0; i < 60000; i++) {
        const wide high = next(&random);
        const wide t = (high << 64 | next(&random)) >> (next(&random) % 127);

        if (t < (wide)MLA_ORACLE_EXP_MAX << MLA_ORACLE_EXP_SHIFT) {
            const double error = check(t);

            worst = error > worst ? error : worst;
        }
    }
    printf("  worst relative error %.3g, proved below %.3g\n", worst, MLA_ORACLE_EXP_ERROR);
}

/* Around multiples of ln 2, of 2^-8 and of 2^-16, where indices change. */
static void test_edges(void **state)
{
    const wide one = (wide)1 << MLA_ORACLE_EXP_SHIFT;
    mpfr_t ln2;
    mpz_t integer;

    (void)state;
    mpfr_init2(ln2, 200);
    mpz_init(integer);
    for (int n = 1; n <= 600; n++) {
        mpfr_const_log2(ln2, MPFR_RNDN);
        mpfr_mul_si(ln2, ln2, n, MPFR_RNDN);
        mpfr_mul_2si(ln2, ln2, MLA_ORACLE_EXP_SHIFT - 64, MPFR_RNDN);
        mpfr_get_z(integer, ln2, MPFR_RNDD);
        const wide near = (wide)mpz_get_ui(integer) << 64;

        for (int d = -2; d <= 2; d++) {
            check(near + (((wide)1 << 64) * (unsigned)(d + 2)) - ((wide)2 << 64));
            check(near + (unsigned)(d + 2));
        }
    }
    for (unsigned i = 1; i < 400; i++) {
        check(one / 256 * i);
        check(one / 256 * i - 1);
        check(one / 65536 * i);
        check(one / 65536 * i - 1);
    }
    for (int bit = 0; bit < 126; bit++) {
        check((wide)1 << bit);
    }
    mpz_clear(integer);
    mpfr_clear(ln2);
}

static void test_ends(void **state)
{
    const wide end = (wide)MLA_ORACLE_EXP_MAX << MLA_ORACLE_EXP_SHIFT;

    (void)state;
    assert_true(mla_oracle_exp(0).head == 1.0 && mla_oracle_exp(0).tail == 0.0);
    assert_true(mla_oracle_exp(end).head == 0.0 && mla_oracle_exp(end).tail == 0.0);
    assert_true(mla_oracle_exp(~(wide)0).head == 0.0);
    check(end - 1);
    assert_true(mla_oracle_exp(end - 1).head < 0x1p-600 * 1.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_arguments),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_ends),
    };

    mla_oracle_exp_prepare();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
