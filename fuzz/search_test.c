/* SPDX-License-Identifier: Apache-2.0
 *
 * search_test.c - the search keeps what raises a counter, forgets nothing, and is the same by its seed.
 *
 * The kernel is an invention: its errors are a function of the case, so that thousands of executions
 * cost nothing and the test knows what each of them has shown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/family.h"
#include "fuzz/search.h"

static struct mla_verdict judge(const struct mla_case *test)
{
    uint64_t bits = mla_number_at(test->seed, (uint64_t)test->region, 1, 2);
    struct mla_verdict verdict = {.kind = MLA_VERDICT_PASS, .relation = "", .max_energy = -1};
    verdict.max_value_ratio = mla_number_unit(bits);
    verdict.max_value_ratio *= verdict.max_value_ratio * verdict.max_value_ratio;
    verdict.max_stats_ratio = test->stats ? verdict.max_value_ratio / 3 : -1;
    if (mla_case_has_sign_coins(test))
        verdict.max_energy = verdict.max_value_ratio / 5;
    return verdict;
}

/* Note a case; returns whether it raised a counter of *seen. */
static bool add(const struct mla_case *test, uint8_t *seen)
{
    static uint8_t now[MLA_GUIDANCE_COUNTERS];
    struct mla_verdict verdict = judge(test);
    bool raised = false;
    memset(now, 0, sizeof now);
    mla_guidance_note(test, &verdict, now);
    for (size_t i = 0; i < MLA_GUIDANCE_COUNTERS; i++) {
        raised = raised || now[i] > seen[i];
        seen[i] |= now[i];
    }
    return raised;
}

static void step(struct mla_search *search, struct mla_case *test)
{
    mla_search_next(search, test);
    struct mla_verdict verdict = judge(test);
    mla_search_learn(search, test, &verdict);
}

/* What raises a counter is kept, and what is kept raises every counter that was raised. */
static void test_keeps_what_raises(void **state)
{
    static uint8_t seen[MLA_GUIDANCE_COUNTERS], kept[MLA_GUIDANCE_COUNTERS];
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_search *search = mla_search_begin((enum mla_op)op, false, MLA_SEARCH_GUIDED, 7);
        size_t raised_n = 0, last = 0; /* kept for a counter */
        memset(seen, 0, sizeof seen);
        memset(kept, 0, sizeof kept);
        for (int i = 0; i < 1500; i++) {
            struct mla_case test;
            size_t before = mla_search_kept(search);
            step(search, &test);
            bool raised = add(&test, seen), grown = mla_search_kept(search) > before;
            raised_n += raised;
            if (raised) {
                assert_true(grown);
                last = before;
            }
        }
        size_t n = mla_search_kept(search);
        assert_in_range(n, raised_n, raised_n + 256);
        assert_true(raised_n > 100);
        for (size_t i = 0; i < n; i++)
            add(mla_search_case(search, i), kept);
        assert_memory_equal(seen, kept, sizeof seen);
        /* The check sees a loss: that of the last case that raised one. */
        memset(kept, 0, sizeof kept);
        for (size_t i = 0; i < last; i++)
            add(mla_search_case(search, i), kept);
        assert_memory_not_equal(seen, kept, sizeof seen);
        mla_search_end(search);
    }
}

static void test_cases_are_valid(void **state)
{
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int op = 0; op < MLA_OP_N; op++) {
            struct mla_search *search =
                mla_search_begin((enum mla_op)op, false, (enum mla_search_kind)kind, 3);
            for (int i = 0; i < 600; i++) {
                struct mla_case test;
                step(search, &test);
                assert_int_equal(test.op, op);
                if (mla_case_problem(&test, (int64_t)1 << 30, error) != NULL)
                    fail_msg("%s", error);
            }
            mla_search_end(search);
        }
}

static void test_seed_decides(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct mla_search *a = mla_search_begin(MLA_OP_RING, false, (enum mla_search_kind)kind, 11);
        struct mla_search *b = mla_search_begin(MLA_OP_RING, false, (enum mla_search_kind)kind, 11);
        struct mla_search *c = mla_search_begin(MLA_OP_RING, false, (enum mla_search_kind)kind, 12);
        bool differs = false;
        for (int i = 0; i < 500; i++) {
            struct mla_case x, y, z;
            char line_x[MLA_CASE_LINE_MAX], line_y[MLA_CASE_LINE_MAX], line_z[MLA_CASE_LINE_MAX];
            step(a, &x);
            step(b, &y);
            step(c, &z);
            mla_case_format(&x, line_x);
            mla_case_format(&y, line_y);
            mla_case_format(&z, line_z);
            assert_string_equal(line_x, line_y);
            differs = differs || strcmp(line_x, line_z) != 0;
        }
        assert_true(differs);
        assert_int_equal(mla_search_kept(a), mla_search_kept(b));
        mla_search_end(a);
        mla_search_end(b);
        mla_search_end(c);
    }
}

static void test_random_is_plain_draws(void **state)
{
    (void)state;
    for (int reject = 0; reject < 2; reject++) {
        struct mla_search *search =
            mla_search_begin(MLA_OP_SPARSE, reject != 0, MLA_SEARCH_RANDOM, 5);
        struct mla_rng rng = {mla_number_mix(5), 0};
        for (int i = 0; i < 200; i++) {
            struct mla_case test, drawn;
            char line[MLA_CASE_LINE_MAX], line_drawn[MLA_CASE_LINE_MAX];
            step(search, &test);
            mla_case_draw(&drawn, MLA_OP_SPARSE, &rng);
            if (reject != 0)
                mla_case_draw_violation(&drawn, &rng);
            mla_case_format(&test, line);
            mla_case_format(&drawn, line_drawn);
            assert_string_equal(line, line_drawn);
        }
        assert_int_equal(mla_search_kept(search), 0);
        mla_search_end(search);
    }
}

/* A guided search begins like a random one of its seed: what dies easily dies as soon. */
static void test_begins_with_draws(void **state)
{
    struct mla_search *guided = mla_search_begin(MLA_OP_RING, false, MLA_SEARCH_GUIDED, 4);
    struct mla_search *random = mla_search_begin(MLA_OP_RING, false, MLA_SEARCH_RANDOM, 4);
    int same = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct mla_case x, y;
        char line_x[MLA_CASE_LINE_MAX], line_y[MLA_CASE_LINE_MAX];
        step(guided, &x);
        step(random, &y);
        mla_case_format(&x, line_x);
        mla_case_format(&y, line_y);
        if (strcmp(line_x, line_y) != 0)
            break;
        same++;
    }
    assert_in_range(same, 256, 300);
    mla_search_end(guided);
    mla_search_end(random);
}

/* Blind to errors: the same shapes with other numbers are kept the same. */
static void test_shapes_see_no_errors(void **state)
{
    struct mla_search *a = mla_search_begin(MLA_OP_RING, false, MLA_SEARCH_SHAPES, 2);
    struct mla_search *b = mla_search_begin(MLA_OP_RING, false, MLA_SEARCH_SHAPES, 2);
    (void)state;
    for (int i = 0; i < 600; i++) {
        struct mla_case x, y;
        mla_search_next(a, &x);
        mla_search_next(b, &y);
        assert_true(x.seed == y.seed && x.ring.logical_n == y.ring.logical_n);
        struct mla_verdict verdict = judge(&x), worse = verdict;
        worse.max_value_ratio = 0.999;
        mla_search_learn(a, &x, &verdict);
        mla_search_learn(b, &y, &worse);
    }
    assert_int_equal(mla_search_kept(a), mla_search_kept(b));
    mla_search_end(a);
    mla_search_end(b);
}

/* Worse errors are found sooner than by draws: here they depend on the region alone. */
static void test_errors_attract(void **state)
{
    int64_t hits[2] = {0, 0};
    (void)state;
    for (int guided = 0; guided < 2; guided++) {
        struct mla_search *search =
            mla_search_begin(MLA_OP_RING, false, guided ? MLA_SEARCH_GUIDED : MLA_SEARCH_RANDOM, 9);
        for (int i = 0; i < 2000; i++) {
            struct mla_case test;
            mla_search_next(search, &test);
            struct mla_verdict verdict = judge(&test);
            bool deep = test.region == MLA_REGION_DEEP;
            verdict.max_value_ratio = deep ? 0.8 : 0.01;
            hits[guided] += deep;
            mla_search_learn(search, &test, &verdict);
        }
        mla_search_end(search);
    }
    assert_true(hits[1] > 3 * hits[0]);
}

/* Coins are never thrown once and looked at twice; a case keeps its size. */
static void test_coins_are_new(void **state)
{
    int coined = 0;
    (void)state;
    for (uint64_t i = 0; i < 300; i++) {
        struct mla_case test, child;
        struct mla_rng rng = {mla_number_mix(i), 0};
        mla_case_draw(&test, (enum mla_op)(i % 2), &rng);
        if (i % 3 == 0)
            test.seed = (i / 3 % 4 < 2 ? MLA_LARGE_SEEDS : MLA_MEDIUM_SEEDS) * (1 + i);
        child = test;
        mla_search_renew(&child, &rng);
        assert_int_equal(mla_case_may_be_large(&child), mla_case_may_be_large(&test));
        assert_int_equal(mla_case_may_be_medium(&child), mla_case_may_be_medium(&test));
        assert_int_equal(child.seed != test.seed, mla_case_has_sign_coins(&test));
        child = test;
        mla_search_vary(&child, i % 4 == 0 ? &test : NULL, &rng);
        if (mla_case_has_sign_coins(&child)) {
            coined++;
            assert_true(child.seed != test.seed);
        }
    }
    assert_true(coined > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps_what_raises), cmocka_unit_test(test_cases_are_valid),
        cmocka_unit_test(test_seed_decides),      cmocka_unit_test(test_random_is_plain_draws),
        cmocka_unit_test(test_begins_with_draws), cmocka_unit_test(test_shapes_see_no_errors),
        cmocka_unit_test(test_errors_attract),    cmocka_unit_test(test_coins_are_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
