/* SPDX-License-Identifier: Apache-2.0
 *
 * blame_test.c - does blame name what was planted? Faults of the table on their first kill, and kernels
 * here that do one thing wrong each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "fuzz/blame.h"
#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/faults/faults.h"
#include "fuzz/relations.h"

/* Draws under cheap relations, then some under all of them. */
#define DRAWS_CHEAP 40
#define DRAWS_MAX   46
#define LIMIT       20.0

/* limit 0: in this process, which is quicker. */
static struct mla_verdict judge_once(const struct mla_kernel *kernel, const struct mla_case *test,
                                     uint32_t relations, double limit)
{
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {
        .seconds_limit = limit, .oracle_threads = 1, .relations = relations};
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

/* The first drawn case on which the kernel fails, from a stream of its own. false: none. */
static bool first_kill(const struct mla_kernel *kernel, enum mla_op op, double limit,
                       struct mla_case *test, struct mla_verdict *verdict)
{
    for (uint64_t i = 0; i < DRAWS_MAX; i++) {
        struct mla_rng rng = {mla_number_at(11, i, 0, 0), 0};
        mla_case_draw(test, op, &rng);
        *verdict =
            judge_once(kernel, test, i < DRAWS_CHEAP ? mla_relations_cheap(op) : UINT32_MAX, limit);
        if (mla_verdict_is_failure(verdict->kind))
            return true;
    }
    return false;
}

/* Blame a failure, and print it; a wrong cause with its case. */
static bool is_right(const char *name, const struct mla_kernel *kernel, const struct mla_case *test,
                     const struct mla_verdict *verdict, enum mla_cause cause)
{
    struct mla_blame blame;
    char line[MLA_CASE_LINE_MAX];
    mla_blame_find(test, kernel, verdict, LIMIT, &blame);
    assert_true(blame.text[0] != '\0');
    printf("  %s %-6s %-24s %-14s %-14s %3d calls  %s\n", blame.cause == cause ? "   " : "NOT",
           mla_case_op_name(test->op), name, mla_cause_name(cause), mla_cause_name(blame.cause),
           blame.calls_n, blame.text);
    mla_case_format(test, line);
    if (blame.cause != cause)
        printf("        %s: %s\n        %s\n", mla_verdict_name(verdict->kind), verdict->reason,
               line);
    return blame.cause == cause;
}

/* How many planted faults to ask about; a number above theirs is all of them. */
static size_t faults_asked(void)
{
    const char *text = getenv("MLA_TEST_CASES");
    int n = text == NULL ? 16 : atoi(text);
    return n > 0 ? (size_t)n : 16;
}

/*
 * On the first kill from a stream of cases the cause is the fault's own for two of three at least. The
 * rest are faults whose first kill shows them by something that is also true: one that reads keys by a
 * wrong map may show as missing, extra or moved ones.
 */
static void test_planted_faults(void **state)
{
    size_t n, asked = 0, right = 0;
    const struct mla_fault *faults = mla_faults(&n);
    size_t every = n > faults_asked() ? (n + faults_asked() - 1) / faults_asked() : 1;
    (void)state;
    for (size_t i = 0; i < n; i += every)
        for (int op = 0; op < MLA_OP_N; op++) {
            struct mla_case test;
            struct mla_verdict verdict;
            double limit = faults[i].cause == MLA_CAUSE_MEMORY ? LIMIT : 0;
            if ((faults[i].operations >> op & 1u) == 0 || faults[i].hidden != NULL ||
                !first_kill(faults[i].kernel, (enum mla_op)op, limit, &test, &verdict))
                continue;
            asked++;
            right += is_right(faults[i].name, faults[i].kernel, &test, &verdict, faults[i].cause);
        }
    printf("  %zu of %zu\n", right, asked);
    assert_true(asked >= n / every);
    assert_true(right * 3 >= asked * 2);
}

/* ---- one thing wrong each, on a case of the test's own ---- */

static const struct mla_kernel *honest(void)
{
    return mla_fault_controls(&(size_t){0})[0].kernel;
}

/* A copy of a rank's tensor, to be freed. */
static uint16_t *copy_of(const uint16_t *from, int64_t n)
{
    uint16_t *to = malloc((size_t)n * sizeof *to);
    if (to != NULL)
        memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

/* Query of head 0 for every head. */
static int32_t head_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    struct mla_ring_args changed = *args;
    uint16_t *q[MLA_RING_SIZE_MAX];
    int64_t plane = args->q_rows * args->head_dim;
    for (int64_t d = 0; d < args->ring_size; d++) {
        q[d] = copy_of(args->q[d], args->batch * args->heads * plane);
        for (int64_t h = 1; h < args->heads; h++)
            memcpy(q[d] + h * plane, q[d], (size_t)plane * sizeof(uint16_t));
    }
    changed.q = (const uint16_t *const *)q;
    int32_t status = honest()->ring(&changed, message, bytes);
    for (int64_t d = 0; d < args->ring_size; d++)
        free(q[d]);
    return status;
}

/* The value of every key from the row after it. */
static int32_t next_value_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    struct mla_ring_args changed = *args;
    uint16_t *kv[MLA_RING_SIZE_MAX];
    for (int64_t d = 0; d < args->ring_size; d++) {
        kv[d] = copy_of(args->kv[d], args->kv_batch * args->kv_rows * args->head_dim);
        for (int64_t r = 0; r + 1 < args->kv_batch * args->kv_rows; r++)
            memcpy(kv[d] + r * args->head_dim, args->kv[d] + (r + 1) * args->head_dim,
                   (size_t)args->head_dim_v * sizeof(uint16_t));
    }
    changed.kv = (const uint16_t *const *)kv;
    int32_t status = honest()->ring(&changed, message, bytes);
    for (int64_t d = 0; d < args->ring_size; d++)
        free(kv[d]);
    return status;
}

static int32_t scale_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    struct mla_ring_args changed = *args;
    changed.has_scale = 1;
    changed.scale = 0.25f; /* where 0.125 is due */
    return honest()->ring(&changed, message, bytes);
}

/* What is done to the results of the honest kernel. */
enum spoil { SHIFT_COLUMNS, SHIFT_ROWS, COARSE_OUT, ENLARGE, STATISTICS, COUNT_CALLS, KEEP_OLD };
static enum spoil spoil;
static int *calls; /* over all children */

static int32_t spoil_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    uint16_t *out = args->out[0], old = out[0];
    int64_t width = args->head_dim_v, rows = args->q_rows;
    int32_t status = honest()->ring(args, message, bytes);
    if (status != MLA_OK)
        return status;
    for (int64_t r = 0; r < rows && spoil == SHIFT_COLUMNS; r++) {
        uint16_t first = out[r * width];
        memmove(out + r * width, out + r * width + 1, (size_t)(width - 1) * sizeof *out);
        out[r * width + width - 1] = first;
    }
    if (spoil == SHIFT_ROWS)
        memmove(out, out + width, (size_t)((rows - 1) * width) * sizeof *out);
    for (int64_t i = 0; i < rows * width; i++) {
        double value = (double)mla_number_from_bf16(out[i]);
        out[i] = spoil == COARSE_OUT                              ? out[i] & 0xfff8u
                 : spoil == ENLARGE && (value < 0 || value > 1.5) ? mla_number_to_bf16(1.5 * value)
                                                                  : out[i];
    }
    if (spoil == STATISTICS && args->stats != NULL)
        args->stats[0][rows + 5] *= 2;
    if (spoil == COUNT_CALLS)
        out[5 * width] ^= (uint16_t)(++*calls << 4);
    if (spoil == KEEP_OLD)
        out[0] = old;
    return status;
}

static int32_t crash_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    (void)args;
    (void)message;
    (void)bytes;
    abort();
}

static int32_t refuse_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    (void)args;
    snprintf(message, bytes, "heads = 2: not today");
    return MLA_ERR_SHAPE;
}

/* One rank, two heads, random numbers: every row and key differs from the others. */
static struct mla_case plain_case(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.family = mla_family_find("full");
    test.amount = 0;
    test.ring.heads = 2;
    test.stats = 1;
    test.seed = 5;
    test.poison = MLA_POISON_NOISE;
    return test;
}

static void check(const char *name, int32_t (*ring)(const struct mla_ring_args *, char *, size_t),
                  enum mla_cause cause, const char *says)
{
    struct mla_kernel kernel = *honest();
    struct mla_case test = plain_case();
    struct mla_blame blame;
    kernel.ring = ring;
    struct mla_verdict verdict = judge_once(&kernel, &test, UINT32_MAX, LIMIT);
    assert_true(mla_verdict_is_failure(verdict.kind));
    assert_true(is_right(name, &kernel, &test, &verdict, cause));
    mla_blame_find(&test, &kernel, &verdict, LIMIT, &blame);
    if (strstr(blame.text, says) == NULL)
        fail_msg("'%s' does not say '%s'", blame.text, says);
}

static void check_spoilt(const char *name, enum spoil how, enum mla_cause cause, const char *says)
{
    spoil = how;
    check(name, spoil_ring, cause, says);
}

static void test_one_thing_wrong(void **state)
{
    (void)state;
    check("head-0", head_ring, MLA_CAUSE_ROWS_MOVED, "head 0");
    check("next-value", next_value_ring, MLA_CAUSE_KEYS_ELSEWHERE, "sits on");
    check("scale", scale_ring, MLA_CAUSE_WEIGHTS_OFF, "2 times");
    check("crash", crash_ring, MLA_CAUSE_MEMORY, "signal");
    check("refuse", refuse_ring, MLA_CAUSE_STATUS, "not today");
    check_spoilt("shift-columns", SHIFT_COLUMNS, MLA_CAUSE_COLUMNS_MOVED, "shifted by 1");
    check_spoilt("shift-rows", SHIFT_ROWS, MLA_CAUSE_ROWS_MOVED, "all by the same distance");
    check_spoilt("coarse-out", COARSE_OUT, MLA_CAUSE_PRECISION, "rounded more coarsely");
    check_spoilt("enlarge", ENLARGE, MLA_CAUSE_VALUES_OFF, "columns do not give");
    check_spoilt("statistics", STATISTICS, MLA_CAUSE_STATS_OFF, "output is right");
    check_spoilt("count-calls", COUNT_CALLS, MLA_CAUSE_UNSTEADY, "same call");
    check_spoilt("keep-old", KEEP_OLD, MLA_CAUSE_NOT_WRITTEN, "old bytes");
}

/* An honest kernel under a made-up verdict: no experiment invents a fault of keys, rows or weights. */
static void test_innocent(void **state)
{
    struct mla_case test = plain_case();
    struct mla_blame blame;
    struct mla_verdict verdict = {.kind = MLA_VERDICT_FAIL_CERTAIN,
                                  .detected = MLA_DETECTOR_TIER1,
                                  .relation = "",
                                  .has_row = true,
                                  .row = {.head = 1, .row = 17}};
    (void)state;
    mla_blame_find(&test, honest(), &verdict, LIMIT, &blame);
    assert_int_equal(blame.cause, MLA_CAUSE_PRECISION); /* what is left when all is right */
    verdict.kind = MLA_VERDICT_PASS;
    mla_blame_find(&test, honest(), &verdict, LIMIT, &blame);
    assert_int_equal(blame.cause, MLA_CAUSE_UNKNOWN);
    assert_int_equal(blame.calls_n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_faults),
        cmocka_unit_test(test_one_thing_wrong),
        cmocka_unit_test(test_innocent),
    };
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (calls == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
