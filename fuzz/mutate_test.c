/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate_test.c - mutated and crossed cases are valid, small, survive their line, and keep what was
 * replaced in them; those to be refused are refused for one rule or two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/draw.h"
#include "fuzz/indices.h"
#include "fuzz/tensors.h"
#include "oracle/oracle.h"

/* Steps of each test: fewer under sanitizers. */
static int64_t steps(void)
{
    const char *text = getenv("MLA_TEST_DRAWS");
    return text == NULL ? 25000 : strtoll(text, NULL, 10);
}

/* Keys of a sparse row's list, or of its prefix, that q_pos_offset and causality leave it. */
static int64_t kept_of(const struct mla_case *test, int64_t q)
{
    const struct mla_sparse_args *s = &test->sparse;
    int64_t start = s->has_q_pos_offset ? s->q_pos_offset : 0, kept = 0;
    int32_t list[MLA_DEEP_KEYS];
    if (s->dense)
        return s->keys - start <= q ? s->keys : start + q + 1;
    mla_indices_fill(test, q, list);
    for (int64_t j = 0; j < s->topk; j++)
        kept += !s->has_q_pos_offset || list[j] - start <= q;
    return kept;
}

/* Multiply-adds that the call takes. */
static int64_t work_of(const struct mla_case *test)
{
    const struct mla_sparse_args *s = &test->sparse;
    int64_t keys = 0;
    if (test->op == MLA_OP_RING)
        return mla_case_work(test);
    for (int64_t q = 0; q < s->queries; q++)
        keys += kept_of(test, q);
    return keys * s->heads * (2 * MLA_LATENT + s->rope);
}

/* Valid, within the budgets of its size class, and the same after its own line. */
static void check_sound(const struct mla_case *test)
{
    struct mla_case again;
    char line[MLA_CASE_LINE_MAX], error[MLA_CASE_ERROR_MAX], second[MLA_CASE_LINE_MAX];
    size_t n = mla_case_format(test, line);
    const char *problem = mla_case_problem(test, (int64_t)100 << 20, error);
    if (problem != NULL)
        fail_msg("%s: %s", problem, line);
    if (mla_case_parse(line, n, &again, error) != MLA_OK)
        fail_msg("%s: %s", error, line);
    mla_case_format(&again, second);
    assert_string_equal(line, second);
    bool tall = test->op == MLA_OP_SPARSE && test->sparse.queries >= 127;
    /* the largest there are: 131 rows of 128 keys, or one of 4224; 16 heads, 1024 + 128 columns */
    int64_t most = tall                           ? INT64_C(131) * 128 * 16 * 1152
                   : mla_case_may_be_large(test)  ? MLA_DEEP_KEYS * 16 * 1152
                   : mla_case_may_be_medium(test) ? 15000000
                                                  : 6500000;
    if (work_of(test) > most)
        fail_msg("too large: %s", line);
    assert_false(test->slow);
}

/* An index that was replaced is one that its list holds anyway. */
static void check_indices(const struct mla_case *test)
{
    int32_t list[MLA_DEEP_KEYS];
    for (size_t i = 0; i < test->put_n; i++) {
        bool found = strcmp(test->put[i].tensor, "topk_indices") != 0;
        for (int64_t q = 0; q < test->sparse.queries && !found; q++) {
            mla_indices_fill(test, q, list);
            for (int64_t j = 0; j < test->sparse.topk && !found; j++)
                found = test->put[i].bits == (uint32_t)list[j];
        }
        assert_true(found);
    }
}

static void test_mutations_are_sound(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_rng rng = {42, 0};
        struct mla_case test;
        int64_t with_put = 0, full = 0;
        mla_case_draw(&test, (enum mla_op)op, &rng);
        for (int64_t i = 0; i < steps(); i++) {
            mla_case_mutate(&test, &rng);
            check_sound(&test);
            check_indices(&test);
            assert_int_equal(test.set_n, 0);
            assert_int_equal(test.op, op);
            with_put += test.put_n > 0;
            full += test.put_n > 2;
        }
        assert_true(with_put > steps() / 20 && full > 0);
    }
}

static void test_crossings_are_sound(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_rng rng = {43, 0};
        struct mla_case test, other;
        mla_case_draw(&test, (enum mla_op)op, &rng);
        for (int64_t i = 0; i < steps(); i++) {
            mla_case_draw(&other, (enum mla_op)op, &rng);
            mla_mutate_put(&other, &rng);
            mla_case_cross(&test, &other, &rng);
            check_sound(&test);
            check_indices(&test);
        }
    }
}

/* Only what either parent has: every field of a child that fix leaves alone. */
static void test_crossing_takes_from_both(void **state)
{
    struct mla_rng rng = {44, 0};
    int from_a = 0, from_b = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct mla_case a, b, child;
        mla_case_draw(&a, MLA_OP_RING, &rng);
        mla_case_draw(&b, MLA_OP_RING, &rng);
        child = a;
        mla_case_cross(&child, &b, &rng);
        assert_true(child.seed == a.seed || child.seed == b.seed);
        assert_true(child.family == a.family || child.family == b.family);
        assert_true(child.ring.topology == a.ring.topology ||
                    child.ring.topology == b.ring.topology);
        from_a += child.seed == a.seed;
        from_b += child.seed == b.seed;
    }
    assert_true(from_a > 300 && from_b > 300);
}

/* What is replaced stays at its coordinates when the shape changes, or goes. */
static void test_overrides_keep_their_coordinates(void **state)
{
    struct mla_case test, wide;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.heads = 2;
    test.put_n = 3;
    test.put[0] = (struct mla_override){"q", 0, (1 * 32 + 5) * 64 + 7, 0x4049}; /* head 1, row 5 */
    test.put[1] = (struct mla_override){"kv", 0, 3 * 64 + 60, 0x3f80};          /* row 3 */
    test.put[2] = (struct mla_override){"kv", 0, 31 * 64, 0x3f80};
    wide = test;
    wide.ring.head_dim = 96;
    wide.ring.q_rows = wide.ring.kv_rows = wide.ring.gathered_rows = 64;
    wide.put_n = 0;
    mla_carry_put(&wide, &test);
    assert_int_equal(wide.put_n, 3);
    assert_int_equal(wide.put[0].at, (1 * 64 + 5) * 96 + 7);
    assert_int_equal(wide.put[0].bits, 0x4049);
    assert_int_equal(wide.put[1].at, 3 * 96 + 60);
    test.put_n = 0;
    test.ring.heads = 1;
    mla_carry_put(&test, &wide);
    assert_int_equal(test.put_n, 2); /* there is no head 1 */
    assert_int_equal(test.put[0].at, 3 * 64 + 60);
    mla_carry_put(&test, &wide); /* twice at one place is once */
    assert_int_equal(test.put_n, 2);
}

static void test_overrides_keep_their_list_position(void **state)
{
    struct mla_case flat, tiled;
    int32_t list[256];
    (void)state;
    mla_case_init(&flat, MLA_OP_SPARSE);
    flat.sparse.queries = 9;
    flat.sparse.topk = 256;
    flat.put_n = 1;
    mla_indices_fill(&flat, 8, list);
    flat.put[0] = (struct mla_override){"topk_indices", 0, 8 * 256 + 37, (uint32_t)list[5]};
    tiled = flat;
    tiled.sparse.topk_tiled = 1;
    tiled.put_n = 0;
    mla_carry_put(&tiled, &flat);
    assert_int_equal(tiled.put_n, 1);
    assert_int_equal(tiled.put[0].at, mla_indices_place(&tiled.sparse, 8, 37));
    flat.put_n = 0;
    mla_carry_put(&flat, &tiled);
    assert_int_equal(flat.put[0].at, 8 * 256 + 37);
    assert_int_equal(flat.put[0].bits, list[5]);
    flat.seed++; /* another list: the number is one of its own now */
    mla_carry_put(&flat, &flat);
    check_indices(&flat);
    assert_int_equal(flat.put_n, 1);
}

static bool is_broken_by(const struct mla_case *test, size_t i)
{
    struct mla_case alone = *test;
    char error[MLA_CASE_ERROR_MAX];
    alone.set[0] = test->set[i];
    alone.set_n = 1;
    return mla_case_problem(&alone, INT64_MAX, error) == NULL;
}

/* One rule or two, each broken by itself; fields, places and numbers of rules all vary. */
static void test_refusals_are_mutated(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_rng rng = {45, 0};
        struct mla_case test, other;
        int64_t two = 0, other_value = 0, other_place = 0;
        mla_case_draw(&test, (enum mla_op)op, &rng);
        mla_case_draw_violation(&test, &rng);
        for (int64_t i = 0; i < steps() / 4; i++) {
            struct mla_violation before = test.set[0];
            if (i % 3 == 0) {
                mla_case_draw(&other, (enum mla_op)op, &rng);
                mla_case_draw_violation(&other, &rng);
                mla_case_cross(&test, &other, &rng);
            } else {
                mla_case_mutate(&test, &rng);
            }
            assert_true(test.set_n >= 1);
            check_sound(&test);
            for (size_t k = 0; k < test.set_n; k++)
                assert_true(is_broken_by(&test, k));
            two += test.set_n == 2;
            bool same = strcmp(before.field, test.set[0].field) == 0;
            other_value += same && strcmp(before.value, test.set[0].value) != 0;
            other_place += same && before.at != test.set[0].at;
        }
        assert_true(two > steps() / 40 && other_value > steps() / 100);
        assert_true(op == MLA_OP_RING || other_place > 0);
    }
}

/* The tensors of mutated cases are calls that the definition accepts: index lists included. */
static void test_mutated_calls_are_accepted(void **state)
{
    struct mla_rng rng = {46, 0};
    struct mla_case test;
    (void)state;
    mla_case_draw(&test, MLA_OP_SPARSE, &rng);
    for (int i = 0; i < 300; i++) {
        struct mla_tensors *t;
        char error[MLA_CASE_ERROR_MAX];
        mla_case_mutate(&test, &rng);
        mla_mutate_put(&test, &rng);
        if (mla_tensors_make(&test, 0, &t, error) != MLA_OK)
            fail_msg("%s", error);
        assert_int_equal(mla_refuse_sparse(&t->sparse).status, MLA_OK);
        mla_tensors_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations_are_sound),
        cmocka_unit_test(test_crossings_are_sound),
        cmocka_unit_test(test_crossing_takes_from_both),
        cmocka_unit_test(test_overrides_keep_their_coordinates),
        cmocka_unit_test(test_overrides_keep_their_list_position),
        cmocka_unit_test(test_refusals_are_mutated),
        cmocka_unit_test(test_mutated_calls_are_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
