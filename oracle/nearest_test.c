/* SPDX-License-Identifier: Apache-2.0
 *
 * nearest_test.c - correctly rounded outputs where the answer is known by hand, on both sides of
 * ties and on ties.
 */
#include "oracle/bf16.h"
#include "oracle/test_row.h"
#include "oracle/truth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define WIDTH   64
#define COLUMNS 32

/*
 * Column 0 of a row of n keys with these values and scaled scores (the scale is 1). Returns what
 * the bound says is nearest: the same, if a double and another are enough to see it.
 */
static uint16_t nearest_of(int64_t n, const float *values, const float *scores, uint16_t nearest[2])
{
    const struct mla_model model = {.add_u = 0x1p-24, .acc_depth = {.per_key = 1.0}};
    struct mla_bound bounds[COLUMNS];
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(n, WIDTH, COLUMNS, 1.0f);
    struct mla_truth *truth;

    row->q[WIDTH - 1] = mla_oracle_test_bf16(1.0f);
    for (int64_t j = 0; j < n; j++) {
        row->kv[j * WIDTH] = mla_oracle_test_bf16(values[j]);
        row->kv[j * WIDTH + WIDTH - 1] = mla_oracle_test_bf16(scores[j]);
    }
    assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
    assert_int_equal(mla_truth_nearest(truth, 0, nearest), MLA_OK);
    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_OK);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
    return bounds[0].nearest;
}

#define BF(x) mla_oracle_test_bf16(x)

/* Equal scores: the mean, exactly; a mean half way between two bf16 goes to the even one. */
static void test_exact_ties(void **state)
{
    const float none[2] = {0.0f, 0.0f};
    uint16_t got[2];

    (void)state;
    nearest_of(2, (const float[]){1.0f, 1.0f + 0x1p-7f}, none, got); /* 1 + 2^-8 */
    assert_true(got[0] == BF(1.0f) && got[1] == got[0]);
    nearest_of(2, (const float[]){1.0f + 0x1p-7f, 1.0f + 0x1p-6f}, none, got);
    assert_true(got[0] == BF(1.0f + 0x1p-6f) && got[1] == got[0]);
    nearest_of(2, (const float[]){-1.0f, -1.0f - 0x1p-7f}, none, got);
    assert_true(got[0] == BF(-1.0f) && got[1] == got[0]);
    nearest_of(2, (const float[]){-1.0f - 0x1p-7f, -1.0f - 0x1p-6f}, none, got);
    assert_true(got[0] == BF(-1.0f - 0x1p-6f) && got[1] == got[0]);
    nearest_of(2, (const float[]){0.0f, 0x1p-133f}, none, got); /* half the smallest: to 0 */
    assert_true((got[0] & 0x7fffu) == 0 && (got[1] & 0x7fffu) == 0);
    nearest_of(2, (const float[]){0x1p-133f, 0x1p-132f}, none, got);
    assert_true(got[0] == 2 && got[1] == 2);
}

/* A third key with a weight of e^-60 or e^-300 tips the tie: 87 and 433 bits below. */
static void test_beside_ties(void **state)
{
    const float far[] = {-60.0f, -300.0f, -600.0f};
    uint16_t got[2];

    (void)state;
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        const float scores[3] = {0.0f, 0.0f, far[i]};

        uint16_t quick = nearest_of(3, (const float[]){1.0f, 1.0f + 0x1p-7f, 2.0f}, scores, got);

        assert_true(got[0] == BF(1.0f + 0x1p-7f) && got[1] == got[0]);
        assert_true(quick == got[0] || i > 0);
        quick = nearest_of(3, (const float[]){1.0f + 0x1p-7f, 1.0f + 0x1p-6f, 0.0f}, scores, got);
        assert_true(got[0] == BF(1.0f + 0x1p-7f) && got[1] == got[0]);
        assert_true(quick == got[0] || i > 0);
        nearest_of(3, (const float[]){-1.0f - 0x1p-7f, -1.0f - 0x1p-6f, -2.0f}, scores, got);
        assert_true(got[0] == BF(-1.0f - 0x1p-6f) && got[1] == got[0]);
        nearest_of(3, (const float[]){-1.0f - 0x1p-7f, -1.0f - 0x1p-6f, 2.0f}, scores, got);
        assert_true(got[0] == BF(-1.0f - 0x1p-7f) && got[1] == got[0]);
    }
}

/* Two pairs of equal scores over 1 and 1 + 2^-7: the tie 1 + 2^-8 with irrational weights. And a
 * weight of e^-900, beyond 1024 bits. Both stay undecided, between the same neighbours. */
static void test_undecided(void **state)
{
    const float pairs[4] = {0.0f, 0.0f, -1.0f, -1.0f};
    const float far[3] = {0.0f, 0.0f, -900.0f};
    uint16_t got[2];

    (void)state;
    nearest_of(4, (const float[]){1.0f, 1.0f + 0x1p-7f, 1.0f, 1.0f + 0x1p-7f}, pairs, got);
    assert_true(got[0] == BF(1.0f) && got[1] == BF(1.0f + 0x1p-7f));
    nearest_of(3, (const float[]){1.0f, 1.0f + 0x1p-7f, 2.0f}, far, got);
    assert_true(got[0] == BF(1.0f) && got[1] == BF(1.0f + 0x1p-7f));
    nearest_of(3, (const float[]){-1.0f, -1.0f - 0x1p-7f, 2.0f}, far, got);
    assert_true(got[0] == BF(-1.0f - 0x1p-7f) && got[1] == BF(-1.0f));
}

/* The same of tiny values, where the radius at 1024 bits is below the smallest double. */
static void test_undecided_and_tiny(void **state)
{
    const float pairs[4] = {0.0f, 0.0f, -1.0f, -1.0f};
    uint16_t got[2];

    (void)state;
    for (int exponent = -1; exponent >= -124; exponent -= 3) {
        const float low = ldexpf(1.0f, exponent);
        const float high = ldexpf(1.0f + 0x1p-7f, exponent);

        nearest_of(4, (const float[]){low, high, low, high}, pairs, got);
        assert_true(got[0] == BF(low) && got[1] == BF(high));
    }
}

/* Away from ties it is the plain rounding, of either sign. */
static void test_ordinary_rows(void **state)
{
    struct mla_oracle_test_random random = {1};

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct mla_oracle_test_row *row = mla_oracle_test_row_new(20, WIDTH, COLUMNS, 0.3f);
        struct mla_truth *truth;

        for (int64_t i = 0; i < WIDTH; i++) {
            row->q[i] = BF((float)mla_oracle_test_normal(&random));
        }
        for (int64_t i = 0; i < row->n * WIDTH; i++) {
            row->kv[i] = BF((float)mla_oracle_test_normal(&random));
        }
        assert_int_equal(mla_definition_ring(&row->args, row->row, &truth), MLA_OK);
        for (int64_t l = 0; l < COLUMNS; l++) {
            uint16_t got[2];

            assert_int_equal(mla_truth_nearest(truth, l, got), MLA_OK);
            assert_int_equal(got[0], mla_oracle_bf16_nearest(truth->out[l]));
            assert_int_equal(got[1], got[0]);
        }
        uint16_t none[2];

        assert_int_equal(mla_truth_nearest(truth, COLUMNS, none), MLA_ERR_PARAM);
        assert_int_equal(mla_truth_nearest(truth, -1, none), MLA_ERR_PARAM);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_ties),    cmocka_unit_test(test_beside_ties),
        cmocka_unit_test(test_undecided),     cmocka_unit_test(test_undecided_and_tiny),
        cmocka_unit_test(test_ordinary_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
