/* SPDX-License-Identifier: Apache-2.0
 *
 * adversary_test.c - adversaries against the interval before output rounding.
 *
 * The command's `selfcheck` sees outputs, which the rounding to bf16 has moved; here the real number
 * behind each output is held against B itself. Sound: it never lies outside. Sharp: model by model, the
 * column that was aimed at comes as near as the table says; where that is not near, the comment says
 * which term of the bound nobody can reach.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/adversary/attend.h"
#include "fuzz/family.h"
#include "fuzz/judge_internal.h"
#include "fuzz/selfcheck.h"
#include "oracle/bf16.h"

#define COLUMNS_MAX 512

struct tally {
    long rows, unjudged, outside;
    double worst; /* distance from the middle over half the width, of all columns */
};

/* How many cases each adversary gets: fewer under sanitizers. */
static int cases_each(void)
{
    const char *text = getenv("MLA_TEST_CASES");
    int n = text == NULL ? 60 : atoi(text);
    return n > 0 ? n : 60;
}

static void one_row(const struct mla_tensors *t, const struct mla_adversary *adversary,
                    struct mla_row row, struct mla_adversary_result *result)
{
    struct mla_adversary_place place = {row.rank, row.batch, row.head, row.row};
    assert_int_equal(t->test.op == MLA_OP_RING
                         ? mla_adversary_ring_one(adversary, &t->ring, place, result)
                         : mla_adversary_sparse_one(adversary, &t->sparse, place, result),
                     MLA_OK);
}

static void judge_row(const struct mla_tensors *t, const struct mla_adversary *adversary,
                      struct mla_row row, struct tally *tally)
{
    static struct mla_bound bounds[COLUMNS_MAX];
    static double real[COLUMNS_MAX];
    struct mla_adversary_result result = {.real = real};
    const struct mla_model *model =
        t->test.op == MLA_OP_RING ? &adversary->kernel.ring_model : &adversary->kernel.sparse_model;
    struct mla_truth *truth;
    assert_int_equal(mla_rows_truth(t, row, false, &truth), MLA_OK);
    int32_t state = mla_bound_row(truth, model, bounds);
    int64_t columns_n = mla_truth_info(truth).columns_n;
    bool outside = false;
    if (state == MLA_BOUND_OK) {
        one_row(t, adversary, row, &result);
        for (int64_t c = 0; c < columns_n; c++) {
            double half = (bounds[c].high - bounds[c].low) / 2;
            double ratio = fabs(real[c] - bounds[c].low - half) / half;
            outside = outside || !(ratio <= 1.0);
            tally->worst = fmax(tally->worst, ratio);
        }
        tally->rows++;
        tally->outside += outside;
    }
    tally->unjudged += state != MLA_BOUND_OK && state != MLA_BOUND_EMPTY;
    mla_truth_free(truth);
}

/* Case `number` of an operation by one adversary. */
static void judge_case(const struct mla_adversary *adversary, enum mla_op op, uint64_t number,
                       struct tally *tally)
{
    struct mla_rng rng = {mla_number_at(77, (uint64_t)op, number, 0), 0};
    struct mla_case test;
    struct mla_tensors *tensors;
    char error[MLA_CASE_ERROR_MAX];
    int64_t rows_n;
    long before = tally->outside;
    mla_selfcheck_draw(&test, op, &rng);
    if (mla_tensors_make(&test, 0, &tensors, error) != MLA_OK)
        fail_msg("%s", error);
    struct mla_row *rows = mla_rows_draw(&test, &rows_n);
    assert_non_null(rows);
    for (int64_t i = 0; i < rows_n; i++)
        judge_row(tensors, adversary, rows[i], tally);
    if (tally->outside > before && adversary->uses == NULL) {
        char line[MLA_CASE_LINE_MAX];
        mla_case_format(&test, line);
        print_error("%s outside: worst %.9g\n%s\n", adversary->kernel.name, tally->worst, line);
    }
    free(rows);
    mla_tensors_free(tensors);
}

static struct tally judge_many(const struct mla_adversary *adversary, size_t place)
{
    struct tally tally = {0};
    for (int i = 0; i < cases_each(); i++)
        judge_case(adversary, (enum mla_op)(i % MLA_OP_N), (uint64_t)i * 100 + place, &tally);
    return tally;
}

static void test_nobody_leaves_the_interval(void **state)
{
    size_t n;
    const struct mla_adversary *const *all = mla_adversaries(&n);
    long outside = 0;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct tally tally = judge_many(all[i], i);
        print_message("  %-24s %.4f of B in %ld rows, %ld unjudged\n", all[i]->kernel.name,
                      tally.worst, tally.rows, tally.unjudged);
        outside += tally.outside;
    }
    assert_int_equal(outside, 0);
}

/* Those whose cheating no interval of this build would show are not asked here. */
static void test_cheats_leave_the_interval(void **state)
{
    static const char *const shown[] = {"cheat-add",   "cheat-p",      "cheat-exp",
                                        "cheat-frame", "cheat-blocks", "cheat-most"};
    size_t n;
    const struct mla_adversary *const *cheats = mla_adversary_cheats(&n);
    size_t asked = 0;
    (void)state;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++)
            if (strcmp(cheats[i]->kernel.name, shown[k]) == 0) {
                struct tally tally = judge_many(cheats[i], 90 + i);
                print_message("  %-24s outside in %ld of %ld rows\n", shown[k], tally.outside,
                              tally.rows);
                assert_true(tally.outside > tally.rows / 50);
                asked++;
            }
    assert_int_equal(asked, sizeof shown / sizeof shown[0]);
}

/* Names tell adversaries apart, models are well formed, and only the blind say they are. */
static void test_tables(void **state)
{
    size_t n;
    const struct mla_adversary *const *all = mla_adversaries(&n);
    (void)state;
    assert_true(n >= 30);
    for (size_t i = 0; i < n; i++) {
        const struct mla_kernel *kernel = &all[i]->kernel;
        assert_null(mla_bound_model_error(&kernel->ring_model, true));
        assert_null(mla_bound_model_error(&kernel->sparse_model, false));
        assert_int_equal(kernel->ring_model.weights_ignore_v, all[i]->plan.is_blind);
        assert_int_equal(kernel->sparse_model.weights_ignore_v, all[i]->plan.is_blind);
        assert_null(all[i]->uses);
        assert_false(all[i]->plan.peeks);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(kernel->name, all[k]->kernel.name);
    }
}

/* What is drawn can be run; among it are single keys, thousands, and every region. */
static void test_draws(void **state)
{
    int regions[MLA_REGION_N] = {0}, single = 0, many = 0, flat = 0;
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    for (uint64_t i = 0; i < 8000; i++) {
        struct mla_rng rng = {i, 0};
        struct mla_case test;
        mla_selfcheck_draw(&test, (enum mla_op)(i % MLA_OP_N), &rng);
        if (mla_case_problem(&test, (int64_t)1 << 28, error) != NULL)
            fail_msg("%s", error);
        int64_t keys_n = test.op == MLA_OP_RING ? test.ring.logical_n : test.sparse.keys;
        single += keys_n == 1;
        many += keys_n >= 2048;
        flat += keys_n == 512 && test.region == MLA_REGION_FLAT;
        regions[test.region]++;
    }
    assert_true(single > 20 && many > 2 && flat > 5);
    for (int i = 1; i < MLA_REGION_N; i++)
        assert_true(regions[i] > 20);
}

/* ---- the row-energy test ---- */

static void energy_of_row(const struct mla_tensors *t, const struct mla_adversary *adversary,
                          struct mla_row row, double log_tests, double *worst, long *rows_n)
{
    static double real[COLUMNS_MAX];
    static uint16_t y[COLUMNS_MAX];
    struct mla_adversary_result result = {.real = real};
    const struct mla_model *model =
        t->test.op == MLA_OP_RING ? &adversary->kernel.ring_model : &adversary->kernel.sparse_model;
    struct mla_truth *truth;
    struct mla_energy energy;
    assert_int_equal(mla_rows_truth(t, row, false, &truth), MLA_OK);
    if (mla_truth_info(truth).state == MLA_ROW_OK) {
        one_row(t, adversary, row, &result);
        for (int64_t c = 0; c < mla_truth_info(truth).columns_n; c++)
            y[c] = model->out_round == MLA_OUT_TRUNCATE ? mla_oracle_bf16_truncate(real[c])
                                                        : mla_oracle_bf16_nearest(real[c]);
        if (mla_bound_energy(truth, model, y, log_tests, &energy) == MLA_BOUND_OK) {
            assert_true(energy.energy <= energy.threshold);
            *worst = fmax(*worst, energy.energy / energy.threshold);
            ++*rows_n;
        }
    }
    mla_truth_free(truth);
}

/* Flat, peaked and clustered scores over hundreds of keys; the values' signs are coins. */
static void test_the_blind_are_not_accused(void **state)
{
    size_t n;
    const struct mla_adversary *const *all = mla_adversaries(&n);
    const double log_tests = log(1e12 * 1e6);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        double worst = 0.0;
        long rows = 0;
        if (!all[i]->plan.is_blind)
            continue;
        for (int k = 0; k < cases_each(); k++) {
            struct mla_rng rng = {mla_number_at(78, (uint64_t)k, i, 0), 0};
            struct mla_case test;
            struct mla_tensors *tensors;
            char error[MLA_CASE_ERROR_MAX];
            int64_t rows_n;
            size_t families_n;
            mla_selfcheck_draw(&test, (enum mla_op)(k % MLA_OP_N), &rng);
            test.family = mla_family_find("profile");
            const struct mla_family *family = mla_families(&families_n)[test.family];
            test.region = (int32_t)family->regions[mla_rng_below(&rng, (int64_t)family->regions_n)];
            test.amount = mla_rng_below(&rng, 9);
            if (mla_tensors_make(&test, 0, &tensors, error) != MLA_OK)
                fail_msg("%s", error);
            struct mla_row *list = mla_rows_draw(&test, &rows_n);
            assert_non_null(list);
            for (int64_t r = 0; r < rows_n; r++)
                energy_of_row(tensors, all[i], list[r], log_tests, &worst, &rows);
            free(list);
            mla_tensors_free(tensors);
        }
        print_message("  %-24s %.4f of the threshold in %ld rows\n", all[i]->kernel.name, worst,
                      rows);
        assert_true(rows > cases_each());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_nobody_leaves_the_interval),
        cmocka_unit_test(test_cheats_leave_the_interval),
        cmocka_unit_test(test_the_blind_are_not_accused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
