/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_shapes_test.c - every shape can be made; flops and bytes against tables, closed forms and
 * the oracle's lists of keys.
 */
#include "fuzz/mlacheck/bench_shapes.h"
#include "oracle/visible.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static void test_shapes(void **state)
{
    (void)state;
    size_t n;
    const struct mla_bench_shape *shapes = mla_bench_shapes(&n);
    for (size_t i = 0; i < n; i++) {
        struct mla_case test;
        char error[MLA_CASE_ERROR_MAX];
        const char *problem = mla_bench_shape_case(shapes[i].line, &test, error);
        if (problem != NULL)
            fail_msg("%s: %s", shapes[i].name, problem);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(shapes[k].name, shapes[i].name);
    }
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    assert_non_null(mla_bench_shape_case("sparse v=1 S=1", &test, error));
}

static struct mla_case shape(const char *name)
{
    size_t n;
    struct mla_case test = {0};
    char error[MLA_CASE_ERROR_MAX];
    const struct mla_bench_shape *shapes = mla_bench_shapes(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(shapes[i].name, name) == 0) {
            assert_null(mla_bench_shape_case(shapes[i].line, &test, error));
            return test;
        }
    fail_msg("no shape %s", name);
    return test;
}

static int asked_for(const char *asked)
{
    size_t n;
    int asked_n = 0;
    const struct mla_bench_shape *shapes = mla_bench_shapes(&n);
    for (size_t i = 0; i < n; i++)
        asked_n +=
            mla_bench_shape_is_asked(&shapes[i], strstr(shapes[i].line, "slow=1") != NULL, asked);
    return asked_n;
}

/* By name, by glob, by what several begin with; the names users know all mean something. */
static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *asked;
        int n;
    } known[] = {{"deepseek", 1},
                 {"deepseek-short", 3},
                 {"deepseek-short-2", 1},
                 {"deepseek*", 4},
                 {"long-cache", 1},
                 {"glm", 1},
                 {"upstream-tiny", 1},
                 {"upstream-4k", 1},
                 {"upstream-1k", 1},
                 {"indexed-small", 1},
                 {"chunked-small", 1},
                 {"rotation-small", 1},
                 {"rotation-reuse", 1},
                 {"mla-100k", 2},
                 {"mla-100k-32", 1},
                 {"kimi-50k", 2},
                 {"mla-100k*", 0},
                 {"ring-4096", 1},
                 {"ring-2048-512", 6},
                 {"ring-40", 0},
                 {"", 0},
                 {"-", 0},
                 {"deepseek-", 0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (asked_for(known[i].asked) != known[i].n)
            fail_msg("'%s': %d, not %d", known[i].asked, asked_for(known[i].asked), known[i].n);
    size_t n;
    (void)mla_bench_shapes(&n);
    assert_int_equal(asked_for(NULL), (int)n - 4); /* the dear ones */
    assert_int_equal(asked_for("*"), (int)n - 4);
}

/* GFLOP by the formula of the public kernel's documents, to the digit they give. */
static void test_sparse_flops(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double gflop;
    } known[] = {{"upstream-tiny", 2.3},      {"upstream-4k", 4.6},      {"upstream-1k", 9.1},
                 {"deepseek", 73.0},          {"deepseek-short-2", 1.1}, {"deepseek-short-16", 9.1},
                 {"deepseek-short-32", 18.3}, {"long-cache", 9.1},       {"glm", 9.1},
                 {"sparse-32k", 146.0},       {"sparse-4k", 146.0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct mla_case test = shape(known[i].name);
        double gflop = mla_bench_flops(&test) / 1e9;
        if (fabs(gflop - known[i].gflop) > 0.05)
            fail_msg("%s: %g, not %g", known[i].name, gflop, known[i].gflop);
    }
    struct mla_case test = shape("deepseek");
    assert_true(mla_bench_bytes(&test) == 128.0 * 2048 * 576 * 2);
}

/* A causal prefill of n rows: n(n+1)/2 pairs; its last m rows: those less (n-m)(n-m+1)/2. */
static void test_ring_flops(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double n, left_out, heads, columns;
    } known[] = {{"ring-4096", 4096, 0, 16, 1088},
                 {"ring-4096-balanced", 4096, 0, 16, 1088},
                 {"ring-2048-128-128", 2048, 0, 128, 704},
                 {"ring-2048-512-16-balanced", 2048, 0, 16, 1088},
                 {"ring-2048-512-128-chunked", 2048, 1024, 128, 1088},
                 {"kimi-50k-8", 56320, 51200, 16, 1088},
                 {"indexed-small", 256, 0, 4, 96},
                 {"chunked-small", 256, 128, 4, 96},
                 {"rotation-small", 512, 384, 4, 96},
                 {"rotation-reuse", 256, 192, 4, 96},
                 {"kimi-50k-4", 56320, 51200, 16, 1088},
                 {"mla-100k-32", 102400, 0, 29, 704}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct mla_case test = shape(known[i].name);
        double n = known[i].n, m = known[i].left_out;
        double due = (n * (n + 1) - m * (m + 1)) / 2 * known[i].heads * 2 * known[i].columns;
        if (mla_bench_flops(&test) != due) /* integers below 2^53: exact */
            fail_msg("%s: %.17g, not %.17g", known[i].name, mla_bench_flops(&test), due);
    }
    /* 2 ranks, 256 rows each: q, out, own shards, and each shard to the other rank. */
    struct mla_case test = shape("ring-512");
    assert_true(mla_bench_bytes(&test) ==
                2.0 * 2 * (16 * 256 * (576 + 512) + 256 * 576 + 256 * 576));
}

/* Keys by the oracle's lists, in every mode, pad rows and a short sequence too. */
static void test_keys(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct mla_case test;
        struct mla_rng rng = {seed * 0x9e3779b97f4a7c15u + 1, 0};
        double keys = 0;
        struct mla_oracle_visible seen;
        mla_case_draw(&test, seed % 2 == 0 ? MLA_OP_RING : MLA_OP_SPARSE, &rng);
        if (test.op == MLA_OP_RING) {
            for (int64_t rank = 0; rank < test.ring.ring_size; rank++)
                for (int64_t row = 0; row < test.ring.q_rows; row++) {
                    assert_int_equal(mla_oracle_visible_ring(&test.ring, rank, row, &seen), MLA_OK);
                    keys += (double)seen.keys_n;
                    mla_oracle_visible_free(&seen);
                }
            keys *= (double)(test.ring.batch * test.ring.heads);
        } else {
            if (!test.sparse.dense)
                continue; /* a list: test_sparse_flops */
            for (int64_t row = 0; row < test.sparse.queries; row++) {
                assert_int_equal(mla_oracle_visible_sparse(&test.sparse, row, &seen), MLA_OK);
                keys += (double)seen.keys_n;
                mla_oracle_visible_free(&seen);
            }
            keys *= (double)test.sparse.heads;
        }
        double columns = (double)(mla_case_width(&test) + mla_case_value_width(&test));
        assert_true(mla_bench_flops(&test) == keys * 2 * columns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_sparse_flops), cmocka_unit_test(test_ring_flops),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
