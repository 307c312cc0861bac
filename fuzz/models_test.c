/* SPDX-License-Identifier: Apache-2.0
 *
 * models_test.c - no built-in kernel's model is so wide that the two classic faults fit into it.
 *
 * "One key of 2048 near-equal ones is dropped" and "the first rescale of the accumulator is
 * forgotten" are what published accuracy rules let by. Each is planted around every built-in
 * kernel, with that kernel's arithmetic and model, on data made for it; the verdict must accuse it
 * and must not accuse the kernel itself. What published rules would have said is printed.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/criteria.h"
#include "fuzz/judge.h"
#include "impl/attend.h"
#include "impl/registry.h"
#include "impl/ring.h"
#include "impl/sparse.h"

static const char *const lines[MLA_OP_N] = {
    /* 32 rows behind 2016 cached keys: the last row sees 2048. */
    "ring v=1 R=1 B=1 H=1 Nq=32 Nk=2048 Bk=1 G=2048 Bg=1 DH=576 DV=512 L=2048 scale=0x1.14f5b8p-3 "
    "balanced=0 slot=- P=- topology=ring links=1 q_chunk=32 k_chunk=128 threads=1 family=profile "
    "region=flat amount=1 poison=nan future=- stats=0 seed=1 rows=0 row_seed=1 slow=0 set=- put=-",
    "sparse v=1 S=1 S_kv=2048 H=16 Rr=64 K=128 tiled=0 dense=1 offset=4096 order=mx4 cores=1 "
    "threads=1 scale=0x1.14f5b8p-3 family=profile region=flat amount=1 indices=sorted poison=nan "
    "stats=0 seed=1 rows=0 row_seed=1 slow=0 set=- put=-"};

/* ---- the faults ---- */

static const struct mla_kernel *honest;
static const struct mla_attend *attend; /* the steps of the honest kernel */

/* The last key takes no part. */
static int32_t drop_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    struct mla_ring_args less = *args;
    less.logical_n--;
    return honest->ring(&less, message, bytes);
}

static int32_t drop_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    struct mla_sparse_args less = *args;
    less.keys--;
    return honest->sparse(&less, message, bytes);
}

/* One thread: the calls above say threads=1 and one rank. */
static bool forgotten[MLA_ATTEND_ROWS];

static void query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                  const uint16_t *main, const uint16_t *rope)
{
    forgotten[row] = false;
    attend->query(shape, scratch, row, main, rope);
}

/* The step, and then out as it were if its first rescale had been left out. */
static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    float max[MLA_ATTEND_ROWS];
    float *out = malloc((size_t)(rows_n * shape->value_n) * sizeof *out);
    assert_non_null(out);
    memcpy(max, state->max, (size_t)rows_n * sizeof *max);
    memcpy(out, state->out, (size_t)(rows_n * shape->value_n) * sizeof *out);
    attend->block[0](shape, scratch, rows_n, visible, keys, scale, state);
    for (int64_t r = 0; r < rows_n; r++) {
        if (forgotten[r] || isinf(max[r]) || !(state->max[r] > max[r]))
            continue;
        double kept = 1.0 - exp((double)scale * ((double)max[r] - (double)state->max[r]));
        for (int64_t l = r * shape->value_n; l < (r + 1) * shape->value_n; l++)
            state->out[l] += (float)(kept * (double)out[l]);
        forgotten[r] = true;
    }
    free(out);
}

static struct mla_attend forgetful;

static int32_t forget_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_ring_run(args, &forgetful, message, bytes);
}

static int32_t forget_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_sparse_run(args, &forgetful, message, bytes);
}

/* ---- judging ---- */

static struct mla_case make_case(enum mla_op op, enum mla_region region, int64_t amount)
{
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_parse(lines[op], strlen(lines[op]), &test, error) != MLA_OK ||
        mla_case_problem(&test, INT64_MAX, error) != NULL)
        fail_msg("%s", error);
    test.region = (int32_t)region;
    test.amount = amount;
    return test;
}

static struct mla_verdict judge(const struct mla_kernel *kernel, const struct mla_case *test)
{
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {.seconds_limit = 0, .oracle_threads = 1};
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

/* "rule rule": those that would have let it by. */
static void blind_rules(const struct mla_verdict *verdict, char *text, size_t bytes)
{
    size_t n;
    const struct mla_criterion *criteria = mla_criteria(&n);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((verdict->metrics.would_pass >> i & 1u) != 0)
            snprintf(text + strlen(text), bytes - strlen(text), " %s", criteria[i].name);
}

/* Returns whether the fault was caught; the honest kernel must pass the same case. */
static bool is_caught(const char *fault, const struct mla_kernel *spoiled,
                      const struct mla_case *test)
{
    char blind[512];
    struct mla_verdict right = judge(honest, test), wrong = judge(spoiled, test);
    if (right.kind != MLA_VERDICT_PASS)
        fail_msg("%s accused on %s: %s", honest->name, mla_case_region_name(test->region),
                 right.reason);
    blind_rules(&wrong, blind, sizeof blind);
    printf("  %-13s %-6s %-14s %-8s %-15s err/B %8.3g (honest %.3g) energy %8.3g; let by by%s\n",
           honest->name, mla_case_op_name(test->op), fault, mla_case_region_name(test->region),
           mla_verdict_name(wrong.kind), wrong.max_ratio, right.max_ratio, wrong.max_energy,
           blind[0] != '\0' ? blind : " none");
    return wrong.kind == MLA_VERDICT_FAIL_CERTAIN || wrong.kind == MLA_VERDICT_FAIL_IMPROBABLE;
}

static void test_dropped_key(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&n);
    int missed = 0;
    (void)state;
    for (size_t k = 0; k < n; k++)
        for (int op = 0; op < MLA_OP_N; op++) {
            struct mla_case test = make_case((enum mla_op)op, MLA_REGION_FLAT, 1);
            struct mla_kernel spoiled = *kernels[k];
            honest = kernels[k];
            if (honest->usable != NULL && !honest->usable())
                continue;
            spoiled.ring = drop_ring;
            spoiled.sparse = drop_sparse;
            missed += !is_caught("key dropped", &spoiled, &test);
        }
    assert_int_equal(missed, 0);
}

static void test_forgotten_rescale(void **state)
{
    /* The kernels of one pass; the others have nothing to rescale. */
    static const struct {
        const char *kernel;
        const struct mla_attend *attend;
    } steps[] = {
        {"scalar", &mla_attend_scalar},
        {"emulate-ttnn", &mla_attend_ttnn},
#if defined(MLA_HAS_AVX2)
        {"avx2", &mla_attend_avx2},
#endif
#if defined(MLA_HAS_AVX512BF16)
        {"avx512bf16", &mla_attend_avx512bf16},
#endif
    };
    int missed = 0;
    (void)state;
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++)
        for (int op = 0; op < MLA_OP_N; op++) {
            /* Two blocks, the second with the larger scores: its rescale halves the first. */
            struct mla_case test = make_case((enum mla_op)op, MLA_REGION_RISING, 1);
            honest = mla_registry_find(steps[k].kernel);
            assert_non_null(honest);
            if (honest->usable != NULL && !honest->usable())
                continue;
            attend = steps[k].attend;
            assert_int_equal(mla_attend_passes(attend), 1);
            struct mla_kernel spoiled = *honest;
            forgetful = *attend;
            forgetful.query = query;
            forgetful.block[0] = block;
            spoiled.ring = forget_ring;
            spoiled.sparse = forget_sparse;
            test.ring.logical_n = 256;
            test.sparse.keys = 256;
            missed += !is_caught("no rescale", &spoiled, &test);
        }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dropped_key),
        cmocka_unit_test(test_forgotten_rescale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
