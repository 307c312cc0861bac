/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_energy_test.c - rows beyond chance: who is put to the test, and who fails it.
 *
 * The kernel is the honest control under a model that allows more than it does: p may be rounded to
 * bf16 in a frame nobody knows. A single key dropped of five hundred hides in that freedom from the
 * interval, on every element; not from the energy of the row.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/faults/plain.h"
#include "fuzz/judge.h"
#include "fuzz/record.h"
#include "fuzz/tensors.h"

static bool drops_a_key, writes_nan;

static int32_t ring(const struct mla_ring_args *a, char *message, size_t message_bytes)
{
    struct mla_plain_variant variant = {drops_a_key ? MLA_FAULT_LAST_KEY_DROPPED : MLA_FAULT_NONE,
                                        MLA_PLAIN_ONLINE};
    int32_t status = mla_plain_ring(a, variant, message, message_bytes);
    if (writes_nan)
        a->out[0][3] = MLA_BF16_NAN;
    return status;
}

static int32_t sparse(const struct mla_sparse_args *a, char *message, size_t message_bytes)
{
    struct mla_plain_variant variant = {drops_a_key ? MLA_FAULT_LAST_KEY_DROPPED : MLA_FAULT_NONE,
                                        MLA_PLAIN_ONLINE};
    int32_t status = mla_plain_sparse(a, variant, message, message_bytes);
    if (writes_nan)
        a->out[3] = MLA_BF16_NAN;
    return status;
}

static struct mla_kernel make_kernel(void)
{
    struct mla_kernel kernel = {.abi = MLA_KERNEL_ABI,
                                .struct_size = sizeof kernel,
                                .name = "lax",
                                .promises = MLA_PLAIN_PROMISES,
                                .ring_model = MLA_PLAIN_ONLINE_RING_MODEL,
                                .sparse_model = MLA_PLAIN_ONLINE_SPARSE_MODEL,
                                .ring = ring,
                                .sparse = sparse};
    kernel.ring_model.p_u = kernel.sparse_model.p_u = 0x1p-8;
    return kernel;
}

/* About five hundred equal keys for the rows that are judged. */
static struct mla_case make_case(enum mla_op op)
{
    struct mla_case test;
    mla_case_init(&test, op);
    test.family = mla_family_find("profile");
    test.region = MLA_REGION_FLAT;
    test.seed = 11;
    test.row_seed = 2; /* draws the last row, which alone sees the last key */
    test.rows = op == MLA_OP_RING ? 8 : 2;
    test.ring.q_rows = test.ring.kv_rows = test.ring.gathered_rows = test.ring.logical_n = 512;
    test.sparse.keys = 1024;
    test.sparse.topk = 512;
    test.indices = MLA_INDICES_DISTINCT;
    return test;
}

static struct mla_verdict judge(const struct mla_case *test, const struct mla_kernel *kernel,
                                bool drops, double row_tests)
{
    struct mla_subject *subject = NULL;
    struct mla_verdict verdict;
    struct mla_judge_options options = {.oracle_threads = 1, .row_tests = row_tests};
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_problem(test, INT64_MAX, error) != NULL ||
        mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    drops_a_key = drops;
    mla_subject_judge(subject, kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static void expect(const struct mla_verdict *verdict, enum mla_verdict_kind kind, bool tested)
{
    if (verdict->kind != kind || tested != (verdict->max_energy >= 0))
        fail_msg("%s, energy/threshold %g: %s", mla_verdict_name(verdict->kind),
                 verdict->max_energy, verdict->reason);
}

static void test_a_dropped_key_is_improbable(void **state)
{
    struct mla_kernel kernel = make_kernel();
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test = make_case((enum mla_op)op);
        struct mla_verdict verdict = judge(&test, &kernel, false, 0);
        expect(&verdict, MLA_VERDICT_PASS, true);
        assert_true(verdict.max_energy <= 0.5);
        verdict = judge(&test, &kernel, true, 0);
        expect(&verdict, MLA_VERDICT_FAIL_IMPROBABLE, true);
        assert_true(verdict.max_energy > 1 && verdict.max_ratio <= 1);
        assert_true(mla_verdict_is_failure(verdict.kind));
        printf("  %s: %s\n", mla_case_op_name(op), verdict.reason);
        assert_non_null(strstr(verdict.reason, op == MLA_OP_RING ? "row d=0,b=0,h=0,r=511: error "
                                                                   "energy "
                                                                 : "row q=0,h="));
        assert_non_null(strstr(verdict.reason, "threshold "));
        assert_non_null(strstr(verdict.reason, "chance of it is below 10^-"));
    }
}

/* The interval alone lets it pass: where the test may not be made it is not, and says so. */
static void test_only_who_promises_is_tested(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_kernel kernel = make_kernel();
        struct mla_case test = make_case((enum mla_op)op);
        kernel.ring_model.weights_ignore_v = kernel.sparse_model.weights_ignore_v = 0;
        struct mla_verdict verdict = judge(&test, &kernel, true, 0);
        expect(&verdict, MLA_VERDICT_PASS, false);
    }
}

/* Binary32 results are tested where nothing was rounded but what the test grants. */
static void test_which_float32_results_are_tested(void **state)
{
    static const struct {
        double add_u;
        int32_t div_roundings, out_round;
        bool tested;
    } models[] = {{0, 0, MLA_OUT_NEAREST, true}, /* those of the kernel */
                  {0x1p-53, 1, MLA_OUT_NEAREST, false},
                  {0x1p-24, 0, MLA_OUT_NEAREST, false},
                  {0x1p-24, 1, MLA_OUT_TRUNCATE, false}};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct mla_kernel kernel = make_kernel();
        struct mla_case test = make_case(MLA_OP_RING);
        struct mla_subject *subject = NULL;
        struct mla_verdict verdict;
        const struct mla_judge_options options = {.oracle_threads = 1};
        char error[MLA_CASE_ERROR_MAX];
        assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
        drops_a_key = true;
        mla_subject_judge(subject, &kernel, &options, &verdict);
        expect(&verdict, MLA_VERDICT_FAIL_IMPROBABLE, true);
        if (models[i].add_u != 0) {
            kernel.ring_model.add_u = models[i].add_u;
            kernel.ring_model.div_roundings = models[i].div_roundings;
            kernel.ring_model.out_round = models[i].out_round;
        }
        mla_subject_tensors(subject)->out_format = MLA_FORMAT_F32; /* the values bf16 ones */
        mla_subject_judge_results(subject, &kernel, &options, &verdict);
        if (models[i].tested != (verdict.max_energy >= 0))
            fail_msg("model %zu: energy/threshold %g", i, verdict.max_energy);
        mla_subject_free(subject);
    }
}

static void test_only_coins_are_tested(void **state)
{
    struct mla_kernel kernel = make_kernel();
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test = make_case((enum mla_op)op);
        test.put_n = 1; /* the last bit of one value, which the kernel sees like any other */
        test.put[0] = (struct mla_override){.at = 5, .bits = 0x3f81};
        snprintf(test.put[0].tensor, sizeof test.put[0].tensor, "%s",
                 op == MLA_OP_RING ? "kv" : "c_kv");
        struct mla_verdict verdict = judge(&test, &kernel, true, 0);
        expect(&verdict, MLA_VERDICT_PASS, false);
        test = make_case((enum mla_op)op);
        for (test.family = 0; mla_family_name(test.family) != NULL; test.family++) {
            bool coins = strcmp(mla_family_name(test.family), "profile") == 0;
            size_t families_n;
            test.region = (int32_t)mla_families(&families_n)[test.family]->regions[0];
            verdict = judge(&test, &kernel, false, 0);
            expect(&verdict, MLA_VERDICT_PASS, coins);
            assert_true(mla_judge_row_tests(&test) == (coins ? (double)test.rows : 0));
        }
    }
}

/* A replaced index changes which keys are seen, not what they hold. */
static void test_which_cases_have_coins(void **state)
{
    struct mla_case test = make_case(MLA_OP_SPARSE);
    (void)state;
    assert_true(mla_case_has_sign_coins(&test));
    test.put_n = 1;
    test.put[0] = (struct mla_override){.tensor = "topk_indices", .at = 3, .bits = 7};
    assert_true(mla_case_has_sign_coins(&test));
    assert_true(mla_judge_row_tests(&test) == 2);
    test.put_n = 2;
    test.put[1] = (struct mla_override){.tensor = "q_pe", .at = 3, .bits = 7};
    assert_false(mla_case_has_sign_coins(&test));
    test.put_n = 0;
    test.rows = 0;
    assert_true(mla_judge_row_tests(&test) == 16);
    test.set_n = 1; /* to be refused: no values */
    assert_true(mla_judge_row_tests(&test) == 0);
    test.set_n = 0;
    test.family = -1;
    assert_false(mla_case_has_sign_coins(&test));
}

/* More tests in the run, a higher threshold; none given, as many as a hunt is taken to make. */
static void test_the_threshold_follows_the_run(void **state)
{
    struct mla_kernel kernel = make_kernel();
    struct mla_case test = make_case(MLA_OP_RING);
    (void)state;
    double few = judge(&test, &kernel, true, 1).max_energy;
    double many = judge(&test, &kernel, true, 1e12).max_energy;
    assert_true(few > 1.2 * many);
    assert_true(judge(&test, &kernel, true, 0).max_energy == many);
    assert_true(judge(&test, &kernel, true, 0.5).max_energy == few);
    assert_true(judge(&test, &kernel, true, 1e200).max_energy < 0.6 * many);
}

/* What is certain is said, not what is improbable. */
static void test_certain_faults_come_first(void **state)
{
    struct mla_kernel kernel = make_kernel();
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test = make_case((enum mla_op)op);
        test.rows = op == MLA_OP_RING ? 8 : 0;
        writes_nan = true;
        struct mla_verdict verdict = judge(&test, &kernel, true, 0);
        writes_nan = false;
        expect(&verdict, MLA_VERDICT_FAIL_CERTAIN, false);
    }
}

/* All regions, honest kernels: rows of few and of many keys, pad rows, a poisoned future. */
static void test_every_region_passes(void **state)
{
    struct mla_kernel kernel = make_kernel();
    size_t families_n;
    const struct mla_family *profile = mla_families(&families_n)[mla_family_find("profile")];
    (void)state;
    for (size_t i = 0; i < profile->regions_n; i++)
        for (int op = 0; op < MLA_OP_N; op++) {
            struct mla_case test;
            mla_case_init(&test, (enum mla_op)op);
            test.family = mla_family_find("profile");
            test.region = (int32_t)profile->regions[i];
            test.amount = (int64_t)(i % 9);
            test.seed = i;
            test.ring.ring_size = 2;
            test.ring.logical_n = 50;
            test.ring.gathered_rows = 64;
            test.has_future = op == MLA_OP_RING && i % 2 == 0;
            test.future = test.has_future ? 40 : 0;
            test.indices = (int32_t)(i % MLA_INDICES_N);
            struct mla_verdict verdict = judge(&test, &kernel, false, 0);
            expect(&verdict, MLA_VERDICT_PASS, true);
        }
}

static void test_a_failure_names_the_row(void **state)
{
    struct mla_kernel kernel = make_kernel();
    struct mla_case test = make_case(MLA_OP_RING);
    struct mla_verdict verdict = judge(&test, &kernel, true, 0);
    char text[4096] = "";
    FILE *file = tmpfile();
    (void)state;
    assert_non_null(file);
    mla_record_print(file, &test, "lax", &verdict);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(text, "fail-improbable: row d=0,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dropped_key_is_improbable),
        cmocka_unit_test(test_only_who_promises_is_tested),
        cmocka_unit_test(test_which_float32_results_are_tested),
        cmocka_unit_test(test_only_coins_are_tested),
        cmocka_unit_test(test_which_cases_have_coins),
        cmocka_unit_test(test_the_threshold_follows_the_run),
        cmocka_unit_test(test_certain_faults_come_first),
        cmocka_unit_test(test_every_region_passes),
        cmocka_unit_test(test_a_failure_names_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
