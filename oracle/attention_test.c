/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_test.c - the fast evaluation against the plain one: on both sides of every limit it
 * has, and over rows of every kind. They may differ by their radii, which are fine.
 */
#include "oracle/test_row.h"
#include "oracle/truth.h"
#include "oracle/wide.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WIDTH   96
#define COLUMNS 64

static struct mla_oracle_test_row *row_new(int64_t n, float scale)
{
    return mla_oracle_test_row_new(n, WIDTH, COLUMNS, scale);
}

static uint16_t power(int exponent, bool negative)
{
    const uint16_t bits = mla_oracle_test_bf16(ldexpf(1.0f, exponent));

    return (uint16_t)(bits | (negative ? 0x8000u : 0));
}

/* With and without wider vector units: the same bits. */
static void same_without_width(const struct mla_oracle_test_row *row, const struct mla_truth *wide)
{
    const size_t columns = COLUMNS * sizeof(double);
    struct mla_truth *narrow;

    mla_oracle_allow_wide(false);
    assert_int_equal(mla_truth_ring(&row->args, row->row, &narrow), MLA_OK);
    mla_oracle_allow_wide(true);
    assert_int_equal(narrow->state, wide->state);
    if (wide->state == MLA_ROW_OK) {
        const size_t keys = (size_t)wide->keys_n * sizeof(double);

        assert_memory_equal(narrow->weight, wide->weight, keys);
        assert_memory_equal(narrow->magnitude, wide->magnitude, keys);
        assert_memory_equal(narrow->out, wide->out, columns);
        assert_memory_equal(narrow->out_low, wide->out_low, columns);
        assert_memory_equal(narrow->out_radius, wide->out_radius, columns);
        assert_memory_equal(narrow->abs_value, wide->abs_value, columns);
        assert_true(narrow->max == wide->max && narrow->log_sum == wide->log_sum);
    }
    mla_truth_free(narrow);
}

/* The two truths of a row agree; returns by how much of their radii they differ. */
static double compare(const struct mla_oracle_test_row *row, int32_t state)
{
    struct mla_truth *fast;
    struct mla_truth *plain;

    assert_int_equal(mla_truth_ring(&row->args, row->row, &fast), MLA_OK);
    assert_int_equal(mla_definition_ring(&row->args, row->row, &plain), MLA_OK);
    assert_int_equal(plain->state, state);
    assert_int_equal(fast->state, state);
    const double ratio = mla_truth_disagreement(fast, plain);

    assert_true(ratio <= 1.0);
    same_without_width(row, fast);
    for (int64_t l = 0; state == MLA_ROW_OK && l < COLUMNS; l++) {
        double spread = 0.0;

        for (int64_t j = 0; j < fast->keys_n; j++) {
            spread += fast->weight[j] * fabs((double)mla_oracle_test_value(fast->value[j][l]));
        }
        assert_true(fast->out_low_radius[l] <= fmax(0x1p-63 * spread, 0x1p-190));
        assert_true(fabs(fast->out_low[l]) <= 0x1p-52 * fabs(fast->out[l]));
        assert_true(fast->out_radius[l] <=
                    0x1p-51 * fabs(fast->out[l]) + 0x1p-60 * spread + 1e-300);
    }
    mla_truth_free(plain);
    mla_truth_free(fast);
    return ratio;
}

static void fill_normal(struct mla_oracle_test_row *row, double q_size,
                        struct mla_oracle_test_random *random)
{
    for (int64_t i = 0; i < WIDTH; i++) {
        row->q[i] = mla_oracle_test_bf16((float)(q_size * mla_oracle_test_normal(random)));
    }
    for (int64_t i = 0; i < row->n * WIDTH; i++) {
        row->kv[i] = mla_oracle_test_bf16((float)mla_oracle_test_normal(random));
    }
}

static void test_ordinary_rows(void **state)
{
    const int64_t lengths[] = {1, 2, 3, 31, 32, 33, 200, 1000};
    const double sizes[] = {0x1p-8, 1.0, 30.0, 3000.0};
    struct mla_oracle_test_random random = {1};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct mla_oracle_test_row *row = row_new(lengths[i], 0.1f);

            fill_normal(row, sizes[k], &random);
            compare(row, MLA_ROW_OK);
            mla_oracle_test_row_free(row);
        }
    }
}

/* 255 * 2^exponent, or 1 * 2^exponent with the last bit of its mantissa set, 129 * 2^(exponent-7). */
static uint16_t full(int exponent, bool negative)
{
    return (uint16_t)(power(exponent + 7, negative) | 0x7f);
}

static uint16_t odd(int exponent)
{
    return (uint16_t)(power(exponent, false) | 1);
}

/*
 * The window of a score. Half of the columns are as large as they can be, the other half takes
 * them away again, and one small product, `gap` bits below, is what remains: it is added when the
 * sum is at its greatest, in one lane and over the lanes. gap runs over the limits of the narrow
 * sum (53 bits) and of the split one (106 less log2 width), to the widest that bf16 has.
 */
static void test_both_sides_of_every_window(void **state)
{
    const int64_t small = 11 * 8 + 3;

    (void)state;
    for (int gap = 0; gap <= 200; gap++) {
        struct mla_oracle_test_row *row = row_new(8, 0x1p-20f);
        const int top = gap > 100 ? 40 : 0;

        /* From where the split begins, half of them lie just below half of the split's unit. */
        const int down = gap >= 32 ? 23 : 0;

        for (int64_t j = 0; j < row->n; j++) {
            uint16_t *key = row->kv + j * WIDTH;

            for (int64_t i = 0; i < WIDTH; i++) {
                const int lower = i < WIDTH / 2 ? 0 : down;

                row->q[i] = full(top / 2 - lower, false);
                key[i] = full(top - top / 2 - lower, i % 8 >= 4);
            }
            /* The lanes that take away are one product ahead; that one is left out. */
            key[small] = 0;
            key[WIDTH - 1] = 0;
            row->q[small] = odd(top / 2 - gap / 2);
            key[small] = odd(top - top / 2 - (gap - gap / 2) + (int)(j % 2));
            key[COLUMNS + 20] = (uint16_t)(0x3f80 + j); /* some difference between values */
            row->q[COLUMNS + 20] = 0;
            row->q[COLUMNS + 16] = 0;
        }
        compare(row, MLA_ROW_OK);
        mla_oracle_test_row_free(row);
    }
}

static void test_extremes(void **state)
{
    struct mla_oracle_test_random random = {3};

    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        struct mla_oracle_test_row *row = row_new(40, kind == 7 ? 0x1p-140f : 0.25f);

        fill_normal(row, 1.0, &random);
        for (int64_t i = 0; i < row->n * WIDTH; i++) {
            const uint16_t bits = (uint16_t)mla_oracle_test_bits(&random);
            uint16_t *k = &row->kv[i];

            switch (kind) {
            case 0: /* subnormal values and keys */
                *k = bits & 0x807f;
                break;
            case 1: /* one subnormal here and there */
                *k = bits % 50 == 0 ? bits & 0x807f : *k;
                break;
            case 2: /* any exponent below 2^60 */
                *k = (uint16_t)((bits & 0x807f) | (uint16_t)(bits * 31 % 180) << 7);
                break;
            case 3: /* zeros of both signs */
                *k = bits % 3 == 0 ? bits & 0x8000 : *k;
                break;
            case 4: /* all keys zero */
                *k = 0;
                break;
            case 5: /* largest finite values in a few columns: sums stay in range */
                *k = i % WIDTH == 5 && i / WIDTH == 3 ? 0x7eff : *k;
                break;
            default: /* the same key everywhere */
                *k = row->kv[i % WIDTH];
                break;
            }
        }
        if (kind == 5) {
            row->q[5] = power(-130, false);
        }
        compare(row, MLA_ROW_OK);
        mla_oracle_test_row_free(row);
    }
}

static void test_zero_query_and_far_keys(void **state)
{
    struct mla_oracle_test_random random = {4};

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct mla_oracle_test_row *row = row_new(64, 1.0f);

        fill_normal(row, 1.0, &random);
        memset(row->q, 0, WIDTH * sizeof *row->q);
        if (kind > 0) { /* gaps up to and beyond where weights count as nothing */
            row->q[WIDTH - 1] = power(0, false);
            for (int64_t j = 0; j < row->n; j++) {
                row->kv[j * WIDTH + WIDTH - 1] =
                    mla_oracle_test_bf16((float)(kind == 1 ? -8 * j : -1000 * (j % 3)));
            }
        }
        compare(row, MLA_ROW_OK);
        mla_oracle_test_row_free(row);
    }
}

/* Weights that count as nothing, below 2^-600, are all that a column has. */
static void test_only_far_keys_have_values(void **state)
{
    struct mla_oracle_test_row *row = row_new(3, 1.0f);
    struct mla_truth *fast;
    struct mla_truth *plain;

    (void)state;
    row->q[WIDTH - 1] = power(0, false);
    for (int64_t j = 0; j < row->n; j++) {
        row->kv[j * WIDTH + WIDTH - 1] = mla_oracle_test_bf16((float)(-417 * j));
        for (int64_t l = 0; j > 0 && l < COLUMNS; l++) {
            row->kv[j * WIDTH + l] = power((int)(3 * l) - 120, l % 2 == 0);
        }
    }
    assert_int_equal(mla_truth_ring(&row->args, row->row, &fast), MLA_OK);
    assert_int_equal(mla_definition_ring(&row->args, row->row, &plain), MLA_OK);
    assert_true(plain->out[COLUMNS - 1] != 0.0);
    assert_true(mla_truth_disagreement(fast, plain) <= 1.0);
    mla_truth_free(plain);
    mla_truth_free(fast);
    mla_oracle_test_row_free(row);
}

/* Values that cancel: the output is far smaller than what it is the sum of. */
static void test_cancelling_values(void **state)
{
    struct mla_oracle_test_random random = {5};
    struct mla_oracle_test_row *row = row_new(128, 0.2f);

    (void)state;
    fill_normal(row, 1.0, &random);
    for (int64_t j = 0; j + 1 < row->n; j += 2) {
        memcpy(row->kv + (j + 1) * WIDTH, row->kv + j * WIDTH, WIDTH * sizeof *row->kv);
        for (int64_t l = 0; l < COLUMNS; l++) {
            row->kv[(j + 1) * WIDTH + l] ^= 0x8000;
        }
    }
    memset(row->q, 0, COLUMNS * sizeof *row->q); /* scores from the other columns: equal in pairs */
    compare(row, MLA_ROW_OK);
    mla_oracle_test_row_free(row);
}

static void test_rows_without_a_value(void **state)
{
    struct mla_oracle_test_random random = {6};
    struct mla_oracle_test_row *row = row_new(33, 0.2f);

    (void)state;
    fill_normal(row, 1.0, &random);
    const uint16_t kept = row->kv[40];

    row->kv[40] = 0x7fc1;
    compare(row, MLA_ROW_NONFINITE);
    row->kv[40] = 0xff80;
    row->kv[50] = 0x7f7f; /* not finite comes before out of range */
    row->q[50] = 0x7f7f;
    compare(row, MLA_ROW_NONFINITE);
    row->kv[40] = kept;
    compare(row, MLA_ROW_RANGE);
    row->q[50] = 0;
    row->kv[50 + WIDTH] = 0x7f7f; /* two of the largest in one column of values */
    compare(row, MLA_ROW_RANGE);
    row->q[3] = 0x7f80;
    compare(row, MLA_ROW_NONFINITE);
    mla_oracle_test_row_free(row);
}

/*
 * A sum of magnitudes at the limit, FLT_MAX/2, in an order that matters: eight products make 53 bits
 * and each of 24 more adds half of the last. One after the other all of these are lost to rounding;
 * in lanes they are not.
 */
static void test_the_line_of_range(void **state)
{
    int in_range = 0;

    (void)state;
    for (uint64_t below = 150; below < 260; below += 2) {
        struct mla_oracle_test_row *row = row_new(1, 0x1p-100f);
        uint64_t rest = (UINT64_C(1) << 53) - (UINT64_C(1) << 29) - below; /* units of 2^74 */
        struct mla_truth *plain;

        for (int64_t i = COLUMNS; i < WIDTH; i++) {
            row->q[i] = power(0, false);
            row->kv[i] = i < COLUMNS + 8 ? 0 : power(73, false);
        }
        for (int64_t i = COLUMNS; rest != 0; i++) {
            const int bits = 64 - __builtin_clzll(rest);
            const int shift = bits > 8 ? bits - 8 : 0;
            const uint64_t part = rest >> shift;

            assert_true(i < COLUMNS + 8);
            row->kv[i] = mla_oracle_test_bf16(ldexpf((float)part, shift + 74));
            rest -= part << shift;
        }
        assert_int_equal(mla_definition_ring(&row->args, row->row, &plain), MLA_OK);
        in_range += plain->state == MLA_ROW_OK;
        compare(row, plain->state);
        mla_truth_free(plain);
        mla_oracle_test_row_free(row);
    }
    assert_true(in_range > 5 && in_range < 50);
}

/* The tables of the exponential do not depend on who makes them. Must be the first test that
 * evaluates a row. */
static void test_a_narrow_exponent_range(void **state)
{
    const mpfr_exp_t emin = mpfr_get_emin();
    const mpfr_exp_t emax = mpfr_get_emax();
    struct mla_oracle_test_random random = {8};
    struct mla_oracle_test_row *row = row_new(20, 0.2f);

    (void)state;
    fill_normal(row, 1.0, &random);
    assert_int_equal(mpfr_set_emin(-60), 0);
    assert_int_equal(mpfr_set_emax(60), 0);
    mpfr_clear_flags();
    compare(row, MLA_ROW_OK);
    assert_true(mpfr_get_emin() == -60 && mpfr_get_emax() == 60);
    assert_int_equal(mpfr_flags_save(), 0);
    assert_int_equal(mpfr_set_emin(emin), 0);
    assert_int_equal(mpfr_set_emax(emax), 0);
    mla_oracle_test_row_free(row);
}

/* One number of a truth is replaced: it does not agree any more, until it is put back. */
static void damage(struct mla_truth *fast, const struct mla_truth *plain, double *number,
                   double wrong)
{
    const double right = *number;

    assert_true(mla_truth_disagreement(fast, plain) <= 1.0);
    *number = wrong;
    assert_true(mla_truth_disagreement(fast, plain) > 1.0);
    assert_true(mla_truth_disagreement(plain, fast) > 1.0);
    *number = right;
}

/* A truth that is wrong in its last certified place does not agree. */
static void test_a_wrong_truth_is_seen(void **state)
{
    struct mla_oracle_test_random random = {7};
    struct mla_oracle_test_row *row = row_new(100, 0.2f);
    struct mla_truth *fast;
    struct mla_truth *plain;

    (void)state;
    fill_normal(row, 1.0, &random);
    const uint16_t kept = row->kv[7 * WIDTH];

    assert_int_equal(mla_truth_ring(&row->args, row->row, &fast), MLA_OK);
    assert_int_equal(mla_definition_ring(&row->args, row->row, &plain), MLA_OK);
    assert_true(mla_truth_disagreement(fast, plain) <= 1.0);
    fast->out_low[9] += 3.0 * (fast->out_low_radius[9] + plain->out_low_radius[9]);
    assert_true(mla_truth_disagreement(fast, plain) > 1.0);
    fast->out_low[9] = plain->out_low[9];
    fast->weight[20] *= 1.0 + 0x1p-40;
    assert_true(isinf(mla_truth_disagreement(fast, plain)));
    fast->weight[20] = plain->weight[20];
    fast->gap[20] = 0.0;
    assert_true(isinf(mla_truth_disagreement(fast, plain)));
    fast->gap[20] = plain->gap[20];
    damage(fast, plain, &fast->out[9], NAN);
    damage(fast, plain, &fast->out[COLUMNS - 1], NAN);
    damage(fast, plain, &fast->out_low[9], NAN);
    damage(fast, plain, &fast->out_low_radius[9], INFINITY);
    damage(fast, plain, &fast->out_low_radius[9], 0x1p-60);
    damage(fast, plain, &fast->out_low_radius[9], -1.0);
    damage(fast, plain, &fast->out_low_radius[9], NAN);
    damage(fast, plain, &fast->out_radius[9], 0.0);
    damage(fast, plain, &fast->out_radius[9], INFINITY);
    damage(fast, plain, &fast->max, nextafter(fast->max, 1e9));
    damage(fast, plain, &fast->log_sum, nextafter(nextafter(fast->log_sum, 1e9), 1e9));
    damage(fast, plain, &fast->log_sum_exp, nextafter(fast->log_sum_exp, 1e9));
    damage(fast, plain, &fast->scale, 0.3);
    row->kv[7 * WIDTH] = 1; /* a subnormal value that nobody noticed */
    assert_false(fast->has_subnormal_value);
    assert_true(isinf(mla_truth_disagreement(fast, plain)));
    row->kv[7 * WIDTH] = kept;
    fast->state = MLA_ROW_RANGE;
    assert_true(isinf(mla_truth_disagreement(fast, plain)));
    fast->state = MLA_ROW_OK;
    mpfr_add_d(fast->exact_lse, fast->exact_lse, 1e-15, MPFR_RNDN);
    assert_true(mla_truth_disagreement(fast, plain) > 1.0);
    mpfr_set_nan(fast->exact_lse);
    assert_true(mla_truth_disagreement(fast, plain) > 1.0);
    mla_truth_free(plain);
    mla_truth_free(fast);
    mla_oracle_test_row_free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_narrow_exponent_range),
        cmocka_unit_test(test_ordinary_rows),
        cmocka_unit_test(test_both_sides_of_every_window),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_zero_query_and_far_keys),
        cmocka_unit_test(test_only_far_keys_have_values),
        cmocka_unit_test(test_cancelling_values),
        cmocka_unit_test(test_rows_without_a_value),
        cmocka_unit_test(test_the_line_of_range),
        cmocka_unit_test(test_a_wrong_truth_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
