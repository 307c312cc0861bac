/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_test.c - the judge against kernels that are right but for one thing done on purpose.
 *
 * Each spoiler takes the honest control's output and spoils it the way a harness is known to
 * overlook: a NaN, an Inf, one last place, a row off by one, an element never written, scratch
 * scribbled on, a refusal with the wrong words. None may pass; the control itself must.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/judge.h"
#include "fuzz/kernels.h"
#include "fuzz/number.h"

enum spoil {
    SPOIL_NOTHING,
    SPOIL_NAN,
    SPOIL_INF,
    SPOIL_LAST_PLACE,
    SPOIL_SIGN,
    SPOIL_ROW_SHIFT,
    SPOIL_UNWRITTEN,
    SPOIL_SCRATCH,
    SPOIL_STATUS,
    SPOIL_STATS_NAN,
    SPOIL_STATS_SUM,
    SPOIL_STATS_MAX,
    SPOIL_SECOND_CALL,
    SPOIL_READS_HIDDEN
};

static enum spoil spoil;
static int calls;
static const struct mla_kernel *honest;

/* Everything that can be spoiled of a call, whatever the operation. */
struct result {
    uint16_t *out;
    int64_t out_n, columns;
    float *max, *sum;
    uint16_t *scratch;
    uint16_t hidden; /* an element that nothing may depend on */
};

static void spoil_stats(const struct result *r)
{
    if (r->max == NULL)
        return;
    if (spoil == SPOIL_STATS_NAN)
        *r->sum = NAN;
    if (spoil == SPOIL_STATS_SUM)
        *r->sum *= 1.001f;
    if (spoil == SPOIL_STATS_MAX)
        *r->max += 1.0f;
}

static void spoil_result(const struct result *r, const uint16_t *before)
{
    switch (spoil) {
    case SPOIL_NAN:
        r->out[r->columns / 2] = MLA_BF16_NAN;
        break;
    case SPOIL_INF:
        r->out[3] = MLA_BF16_INF;
        break;
    case SPOIL_LAST_PLACE:
        for (int64_t i = 0; i < r->out_n; i++)
            r->out[i] =
                (uint16_t)(r->out[i] + 2); /* one place may be the true rounding's other side */
        break;
    case SPOIL_SIGN:
        r->out[0] ^= 0x8000;
        break;
    case SPOIL_ROW_SHIFT:
        memmove(r->out + r->columns, r->out, (size_t)(r->out_n - r->columns) * sizeof *r->out);
        break;
    case SPOIL_UNWRITTEN:
        r->out[r->out_n - 1] = *before;
        break;
    case SPOIL_SCRATCH:
        if (r->scratch != NULL)
            r->scratch[0] ^= 1;
        break;
    case SPOIL_SECOND_CALL:
        if (calls > 1)
            r->out[1] ^= 1;
        break;
    case SPOIL_READS_HIDDEN:
        r->out[1] ^= (uint16_t)(r->hidden == MLA_BF16_NAN);
        break;
    default:
        spoil_stats(r);
        break;
    }
}

static int32_t ring(const struct mla_ring_args *a, char *message, size_t message_bytes)
{
    calls++;
    struct result r = {.out = a->out[0],
                       .out_n = a->batch * a->heads * a->q_rows * a->head_dim_v,
                       .columns = a->head_dim_v,
                       .max = a->stats == NULL ? NULL : a->stats[0],
                       .sum = a->stats == NULL ? NULL : a->stats[0] + a->q_rows,
                       .scratch =
                           a->gathered[0] + a->gathered_batch * a->gathered_rows * a->head_dim - 1,
                       .hidden = a->kv[0][(a->kv_rows - 1) * a->head_dim]};
    uint16_t before = r.out[r.out_n - 1];
    int32_t status = honest->ring(a, message, message_bytes);
    spoil_result(&r, &before);
    return spoil == SPOIL_STATUS ? 7 : status;
}

static int32_t sparse(const struct mla_sparse_args *a, char *message, size_t message_bytes)
{
    calls++;
    struct result r = {.out = a->out,
                       .out_n = a->queries * a->heads * a->latent,
                       .columns = a->latent,
                       .max = a->stats,
                       .sum = a->stats == NULL ? NULL : a->stats + 1,
                       .hidden = a->c_kv[(a->keys - 1) * a->latent]};
    uint16_t before = r.out[r.out_n - 1];
    int32_t status = honest->sparse(a, message, message_bytes);
    spoil_result(&r, &before);
    return spoil == SPOIL_STATUS ? -7 : status;
}

static struct mla_verdict judge_with(enum mla_op op, enum spoil what, uint32_t relations)
{
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_kernel kernel = *honest;
    struct mla_judge_options options = {
        .seconds_limit = 0, .oracle_threads = 1, .relations = relations};
    char error[MLA_CASE_ERROR_MAX];
    kernel.ring = ring;
    kernel.sparse = sparse;
    mla_case_init(&test, op);
    test.stats = 1;
    test.ring.logical_n = 20;
    test.ring.gathered_rows = 40;
    test.sparse.keys = 200;
    test.sparse.queries = 2;
    test.indices = MLA_INDICES_ONE_ROW;
    if (op == MLA_OP_SPARSE && what == SPOIL_ROW_SHIFT)
        test.indices = MLA_INDICES_DISTINCT;
    if (mla_subject_make(&test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    spoil = what;
    calls = 0;
    mla_subject_judge(subject, &kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static void expect(enum spoil what, uint32_t relations, const char *word)
{
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_verdict verdict = judge_with((enum mla_op)op, what, relations);
        if (op == MLA_OP_SPARSE && what == SPOIL_SCRATCH)
            continue; /* it has no scratch */
        if (verdict.kind != MLA_VERDICT_FAIL_CERTAIN)
            fail_msg("op %d: %s %s", op, mla_verdict_name(verdict.kind), verdict.reason);
        if (strstr(verdict.reason, word) == NULL)
            fail_msg("op %d: '%s' does not say '%s'", op, verdict.reason, word);
    }
}

static void test_the_honest_kernel_passes(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_verdict verdict = judge_with((enum mla_op)op, SPOIL_NOTHING, UINT32_MAX);
        if (verdict.kind != MLA_VERDICT_PASS)
            fail_msg("%s: %s", mla_verdict_name(verdict.kind), verdict.reason);
        assert_true(verdict.rows_n > 0 && verdict.elements_n > 0);
        assert_true(verdict.correctly_rounded > 0.9);
    }
}

static void test_values(void **state)
{
    (void)state;
    expect(SPOIL_NAN, 0, "interval");
    expect(SPOIL_INF, 0, "interval");
    expect(SPOIL_LAST_PLACE, 0, "interval");
    expect(SPOIL_SIGN, 0, "interval");
    expect(SPOIL_ROW_SHIFT, 0, "interval");
}

static void test_memory(void **state)
{
    (void)state;
    expect(SPOIL_UNWRITTEN, 0, "never written");
    expect(SPOIL_SCRATCH, 0, "gathered");
}

static void test_status(void **state)
{
    (void)state;
    expect(SPOIL_STATUS, 0, "status");
}

static void test_stats(void **state)
{
    (void)state;
    expect(SPOIL_STATS_NAN, 0, "stats");
    expect(SPOIL_STATS_SUM, 0, "stats");
    expect(SPOIL_STATS_MAX, 0, "stats");
}

static void test_relations(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) /* repeat, threads, dirt: in both operations */
        expect(SPOIL_SECOND_CALL, 1u << i, "relation");
    expect(SPOIL_SECOND_CALL, UINT32_MAX, "relation");
    expect(SPOIL_READS_HIDDEN, UINT32_MAX, "");
}

/* ---- refusals ---- */

static const char *words;
static int32_t answer;
static bool scribble;

static int32_t refuse(const struct mla_ring_args *a, char *message, size_t message_bytes)
{
    snprintf(message, message_bytes, "%s", words);
    if (scribble)
        a->out[0][0] = 0;
    return answer;
}

static struct mla_verdict judge_refusal(int32_t status, const char *message, bool writes)
{
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_kernel kernel = *honest;
    struct mla_judge_options options = {.seconds_limit = 0, .oracle_threads = 1};
    char error[MLA_CASE_ERROR_MAX];
    kernel.ring = refuse;
    kernel.promises = MLA_PROMISE_ALL;
    answer = status;
    words = message;
    scribble = writes;
    mla_case_init(&test, MLA_OP_RING);
    test.set_n = 1;
    test.set[0] = (struct mla_violation){"num_links", 0, "-3"};
    if (mla_subject_make(&test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    mla_subject_judge(subject, &kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static void test_refusals(void **state)
{
    (void)state;
    assert_int_equal(judge_refusal(MLA_ERR_PARAM, "num_links = -3: must be >= 1", false).kind,
                     MLA_VERDICT_REFUSED);
    const struct {
        int32_t status;
        const char *message;
        bool writes;
    } wrong[] = {
        {MLA_OK, "num_links = -3: must be >= 1", false},
        {MLA_ERR_SHAPE, "num_links = -3: must be >= 1", false},
        {MLA_ERR_PARAM, "links = -3: must be >= 1", false},
        {MLA_ERR_PARAM, "num_links2 = -3: must be >= 1", false},
        {MLA_ERR_PARAM, "num_links = -31: must be >= 1", false},
        {MLA_ERR_PARAM, "", false},
        {MLA_ERR_PARAM, "num_links = -3: must be >= 1", true},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (judge_refusal(wrong[i].status, wrong[i].message, wrong[i].writes).kind !=
            MLA_VERDICT_FAIL_CERTAIN)
            fail_msg("wrong refusal %zu passed", i);
}

int main(void)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_honest_kernel_passes),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_relations),
        cmocka_unit_test(test_refusals),
    };
    if (mla_kernels_add(&kernels, "fault:plain", error, sizeof error) != MLA_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    honest = kernels.list[0].kernel;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
