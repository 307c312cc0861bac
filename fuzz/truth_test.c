/* SPDX-License-Identifier: Apache-2.0
 *
 * truth_test.c - the fast oracle against the plain definition on drawn cases of every family and
 * score region, of both operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/judge_internal.h"

#define ROWS_MAX 3

static double worst;
static int64_t compared_n, unspecified_n;

static void compare_rows(const struct mla_case *test)
{
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX], line[MLA_CASE_LINE_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    for (int64_t i = 0; i < subject->rows_n && i < ROWS_MAX; i++) {
        struct mla_truth *fast, *plain;
        struct mla_row row = subject->rows[i];
        assert_int_equal(mla_rows_truth(subject->tensors, row, false, &fast), MLA_OK);
        assert_int_equal(mla_rows_truth(subject->tensors, row, true, &plain), MLA_OK);
        double ratio = mla_truth_disagreement(fast, plain);
        bool valued = mla_truth_info(plain).state == MLA_ROW_OK;
        compared_n += valued;
        unspecified_n += !valued;
        worst = ratio > worst ? ratio : worst;
        if (!(ratio <= 1)) {
            mla_case_format(test, line);
            fail_msg("row %d: they differ by %g of their radii: %s", (int)i, ratio, line);
        }
        mla_truth_free(plain);
        mla_truth_free(fast);
    }
    mla_subject_free(subject);
}

/* A drawn geometry under this recipe, with no more keys than the plain evaluation does quickly. */
static void compare_recipe(int32_t family, int32_t region, int64_t amount, uint64_t number)
{
    struct mla_rng rng = {mla_number_mix(number), 0};
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test;
        do
            mla_case_draw(&test, (enum mla_op)op, &rng);
        while (mla_case_bytes(&test) > 4000000);
        test.family = family;
        test.region = region;
        test.amount = amount;
        if (op == MLA_OP_SPARSE)
            test.sparse.topk = 128;
        mla_case_fix(&test);
        compare_rows(&test);
    }
}

static void test_every_family_and_region(void **state)
{
    size_t families_n;
    const struct mla_family *const *families = mla_families(&families_n);
    (void)state;
    for (size_t f = 0; f < families_n; f++)
        for (size_t r = 0; r < families[f]->regions_n; r++)
            for (int k = 0; k < 2; k++)
                compare_recipe((int32_t)f, (int32_t)families[f]->regions[r],
                               k == 0 ? families[f]->amount_min : families[f]->amount_max,
                               (f * 100 + r) * 2 + (uint64_t)k);
    printf("  %d rows compared, %d unspecified, worst difference %.3g of the radii\n",
           (int)compared_n, (int)unspecified_n, worst);
    assert_true(compared_n > 4 * unspecified_n && compared_n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_family_and_region)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
