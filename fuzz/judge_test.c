/* SPDX-License-Identifier: Apache-2.0
 *
 * judge_test.c - the judge against kernels that are right but for one thing done on purpose.
 *
 * Each spoiler takes the honest control's output and spoils it the way a harness is known to
 * overlook: a NaN, an Inf, one last place, a row off by one, an element never written, scratch
 * scribbled on, a refusal with the wrong words. None may pass; the control itself must. Relations
 * have a test of their own.
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

#include "fuzz/criteria.h"
#include "fuzz/judge_internal.h"
#include "fuzz/kernels.h"
#include "fuzz/number.h"
#include "oracle/visible.h"

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
    SPOIL_NEGATIVE_ZERO,
    SPOIL_BEFORE
};

static enum spoil spoil;
static const struct mla_kernel *honest;

/* Everything that can be spoiled of a call, whatever the operation. */
struct result {
    uint16_t *out;
    int64_t out_n, columns;
    float *max, *sum;
    uint16_t *scratch;
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
    case SPOIL_NEGATIVE_ZERO: /* in the last row, a pad row */
        r->out[r->out_n - 1] = 0x8000;
        break;
    case SPOIL_BEFORE:
        *(volatile uint16_t *)(r->out - 1) = 0;
        break;
    default:
        spoil_stats(r);
        break;
    }
}

static int32_t ring(const struct mla_ring_args *a, char *message, size_t message_bytes)
{
    if (mla_refuse_ring(a).status != MLA_OK) /* its pointers may be null */
        return honest->ring(a, message, message_bytes);
    struct result r = {.out = a->out[0],
                       .out_n = a->batch * a->heads * a->q_rows * a->head_dim_v,
                       .columns = a->head_dim_v,
                       .max = a->stats == NULL ? NULL : a->stats[0],
                       .sum = a->stats == NULL ? NULL : a->stats[0] + a->q_rows,
                       .scratch =
                           a->gathered[0] + a->gathered_batch * a->gathered_rows * a->head_dim - 1};
    uint16_t before = r.out[r.out_n - 1];
    int32_t status = honest->ring(a, message, message_bytes);
    spoil_result(&r, &before);
    return spoil == SPOIL_STATUS ? 7 : status;
}

static int32_t sparse(const struct mla_sparse_args *a, char *message, size_t message_bytes)
{
    if (mla_refuse_sparse(a).status != MLA_OK)
        return honest->sparse(a, message, message_bytes);
    struct result r = {.out = a->out,
                       .out_n = a->queries * a->heads * a->latent,
                       .columns = a->latent,
                       .max = a->stats,
                       .sum = a->stats == NULL ? NULL : a->stats + 1};
    uint16_t before = r.out[r.out_n - 1];
    int32_t status = honest->sparse(a, message, message_bytes);
    spoil_result(&r, &before);
    return spoil == SPOIL_STATUS ? -7 : status;
}

static struct mla_verdict judge_case(const struct mla_case *test, enum spoil what,
                                     uint32_t relations, double seconds_limit)
{
    struct mla_subject *subject = NULL;
    struct mla_verdict verdict;
    struct mla_kernel kernel = *honest;
    struct mla_judge_options options = {
        .seconds_limit = seconds_limit, .oracle_threads = 1, .relations = relations};
    char error[MLA_CASE_ERROR_MAX];
    kernel.ring = ring;
    kernel.sparse = sparse;
    kernel.promises = MLA_PROMISE_ALL;
    if (mla_case_problem(test, INT64_MAX, error) != NULL ||
        mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    spoil = what;
    mla_subject_judge(subject, &kernel, &options, &verdict);
    mla_subject_free(subject);
    return verdict;
}

static struct mla_verdict judge_with(enum mla_op op, enum spoil what, uint32_t relations)
{
    struct mla_case test;
    mla_case_init(&test, op);
    test.stats = 1;
    test.rows = 0;
    test.ring.logical_n = 20;
    test.ring.gathered_rows = 40;
    test.sparse.keys = 200;
    test.sparse.queries = 2;
    test.indices = MLA_INDICES_ONE_ROW;
    if (op == MLA_OP_SPARSE && what == SPOIL_ROW_SHIFT)
        test.indices = MLA_INDICES_DISTINCT;
    return judge_case(&test, what, relations, 0);
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
        assert_true(verdict.metrics.correctly_rounded_percent > 90);
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
    for (int op = 0; op < MLA_OP_N; op++) { /* which of the two, what it is and what it may be */
        struct mla_verdict sum = judge_with((enum mla_op)op, SPOIL_STATS_SUM, 0);
        struct mla_verdict max = judge_with((enum mla_op)op, SPOIL_STATS_MAX, 0);
        assert_memory_equal(sum.element, "sum[", 4);
        assert_memory_equal(max.element, "max[", 4);
        assert_true(sum.lo <= sum.hi && sum.got > sum.hi && sum.got < 1.01 * sum.hi);
        assert_true(max.lo <= max.hi && max.got > max.hi && max.got < max.hi + 1.01);
    }
}

static bool would_pass(const struct mla_verdict *verdict, const char *rule)
{
    size_t n;
    const struct mla_criterion *criteria = mla_criteria(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(criteria[i].name, rule) == 0)
            return (verdict->metrics.would_pass >> i & 1) != 0;
    fail_msg("no rule '%s'", rule);
    return false;
}

/* A row that was drawn and whose output is not finite is judged once; one that was not, too. */
static void test_no_row_is_counted_twice(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test;
        bool was_drawn[2] = {false};
        struct mla_verdict fine = judge_with((enum mla_op)op, SPOIL_NOTHING, 0),
                           nan = judge_with((enum mla_op)op, SPOIL_NAN, 0);
        assert_int_equal(nan.rows_n, fine.rows_n);
        assert_int_equal(nan.elements_n, fine.elements_n);
        mla_case_init(&test, (enum mla_op)op);
        test.sparse.queries = 3;
        test.rows = -1; /* the first row is the spoiled one */
        for (test.row_seed = 0; test.row_seed < 40; test.row_seed++) {
            int64_t n;
            struct mla_row *rows = mla_rows_draw(&test, &n);
            assert_non_null(rows);
            bool is_drawn = rows[0].row == 0;
            free(rows);
            nan = judge_case(&test, SPOIL_NAN, 0, 0);
            assert_int_equal(nan.kind, MLA_VERDICT_FAIL_CERTAIN);
            assert_int_equal(nan.rows_n, n + (is_drawn ? 0 : 1));
            was_drawn[is_drawn] = true;
        }
        assert_true(was_drawn[0] && was_drawn[1]);
    }
}

/* Statistics come with every verdict on values, failed ones too, and say what was done to them. */
static void test_metrics(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_verdict fine = judge_with((enum mla_op)op, SPOIL_NOTHING, 0);
        assert_int_equal(fine.metrics.elements_n, fine.elements_n);
        assert_true(fine.metrics.max_err_over_bound == fine.max_ratio);
        assert_true(fine.metrics.max_ulp < 1 && (op == MLA_OP_SPARSE || fine.metrics.max_ulp > 0));
        assert_true(would_pass(&fine, "ring_full") && would_pass(&fine, "flashmla"));
        /* Two places off everywhere: half of the published rules see nothing. */
        struct mla_verdict off = judge_with((enum mla_op)op, SPOIL_LAST_PLACE, 0);
        assert_int_equal(off.kind, MLA_VERDICT_FAIL_CERTAIN);
        assert_int_equal(off.metrics.elements_n, fine.metrics.elements_n);
        assert_true(off.metrics.p50_ulp > 1 && off.metrics.p99_ulp < 5);
        assert_true(off.metrics.correctly_rounded_percent < 1);
        assert_true(off.metrics.bias_outward_se > 30); /* of at most sqrt(1024) or more */
        assert_true(would_pass(&off, "ring_chunked") && would_pass(&off, "calc_diff_1e3"));
        assert_true(would_pass(&off, "allclose_2e2") && would_pass(&off, "global_max_5e2"));
        assert_false(would_pass(&off, "calc_diff_1e5"));
        struct mla_verdict nan = judge_with((enum mla_op)op, SPOIL_NAN, 0);
        assert_int_equal(nan.metrics.would_pass, 0);
        assert_true(isinf(nan.metrics.max_ulp) && isnan(nan.metrics.bias_se));
        assert_true(nan.metrics.p50_ulp < 1);
        /* What fails before values are looked at has none. */
        struct mla_verdict status = judge_with((enum mla_op)op, SPOIL_STATUS, 0);
        assert_int_equal(status.metrics.elements_n, 0);
    }
}

/* Two ranks, tokens 32 .. 127: rank 1 has 64, rank 0 has 32 and then 32 pad rows. */
static struct mla_case padded_case(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 2;
    test.ring.q_rows = 64;
    test.ring.kv_rows = 128;
    test.ring.gathered_rows = 256;
    test.ring.has_prior = 1;
    test.ring.kv_actual_isl = 32;
    test.ring.logical_n = 128;
    test.stats = 1;
    return test;
}

static void test_pad_rows_hold_positive_zero(void **state)
{
    struct mla_case test = padded_case();
    (void)state;
    struct mla_verdict verdict = judge_case(&test, SPOIL_NOTHING, UINT32_MAX, 0);
    if (verdict.kind != MLA_VERDICT_PASS)
        fail_msg("%s: %s", mla_verdict_name(verdict.kind), verdict.reason);
    assert_int_equal(verdict.rows_n, 128);
    assert_int_equal(verdict.metrics.elements_n, verdict.elements_n / 4 * 3); /* pad rows: none */
    assert_true(verdict.metrics.correctly_rounded_percent > 90);
    verdict = judge_case(&test, SPOIL_NEGATIVE_ZERO, 0, 0);
    assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
    assert_non_null(strstr(verdict.reason, "+0"));
    assert_non_null(strstr(verdict.element, "out[d=0,b=0,h=0,r=63,"));
    assert_true(verdict.lo == 0 && verdict.hi == 0);
}

/* Without the promise they are left out, counted for what they are. */
static void test_pad_rows_without_promise(void **state)
{
    struct mla_case test = padded_case();
    struct mla_kernel kernel = *honest;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    const struct mla_judge_options options = {.oracle_threads = 1};
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    kernel.promises &= ~(uint64_t)MLA_PROMISE_PAD_ZERO;
    assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
    mla_subject_judge(subject, &kernel, &options, &verdict);
    assert_int_equal(verdict.kind, MLA_VERDICT_PASS);
    assert_int_equal(verdict.rows_n, 96);
    assert_int_equal(verdict.unspecified_n, 32);
    assert_int_equal(verdict.no_keys_n, 32);
    assert_int_equal(verdict.no_bound_n, 0);
    mla_subject_free(subject);
}

static void test_both_column_orders(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_SPARSE);
    for (int order = 0; order < 2; order++) {
        test.sparse.out_order = order;
        struct mla_verdict verdict = judge_case(&test, SPOIL_NOTHING, 0, 0);
        if (verdict.kind != MLA_VERDICT_PASS)
            fail_msg("order %d: %s %s", order, mla_verdict_name(verdict.kind), verdict.reason);
    }
}

/* No row left to judge is no pass. */
static void test_nothing_judged_is_no_pass(void **state)
{
    struct mla_case test;
    (void)state;
    for (int inf = 0; inf < 2; inf++) {
        mla_case_init(&test, MLA_OP_RING);
        test.put_n = 1; /* key 0, which every row sees */
        test.put[0] = (struct mla_override){"kv", 0, 0, inf ? MLA_BF16_INF : MLA_BF16_NAN};
        struct mla_verdict verdict = judge_case(&test, SPOIL_NOTHING, UINT32_MAX, 0);
        assert_int_equal(verdict.kind, MLA_VERDICT_UNJUDGED);
        assert_int_equal(verdict.rows_n, 0);
        assert_int_equal(verdict.nonfinite_n, 32);
        assert_non_null(strstr(verdict.reason, "none of 32 drawn rows"));
    }
}

/* One element before `out`: into the page without access, or into the slack of its own page. */
static void test_write_before_a_tensor(void **state)
{
    struct mla_case test;
    int trapped = 0, noticed = 0;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    for (test.seed = 0; test.seed < 12; test.seed++) {
        struct mla_verdict verdict = judge_case(&test, SPOIL_BEFORE, 0, 20);
        trapped += verdict.kind == MLA_VERDICT_CRASH;
        noticed += verdict.kind == MLA_VERDICT_FAIL_CERTAIN &&
                   strstr(verdict.reason, "out[0]: byte -2 outside its 2048 bytes") != NULL;
    }
    assert_int_equal(trapped + noticed, 12);
    assert_true(trapped > 0 && noticed > 0);
}

/* ---- scratch ---- */

/* May gathered[0] hold, at (batch, row), row kv_row of kv[source], all others untouched? */
static bool may_hold(struct mla_tensors *t, int64_t batch, int64_t row, int64_t source,
                     int64_t kv_row)
{
    const struct mla_ring_args *a = &t->ring;
    struct mla_verdict verdict = {.kind = MLA_VERDICT_PASS};
    mla_tensors_reset(t);
    memcpy(t->gathered[0] + (batch * a->gathered_rows + row) * a->head_dim,
           t->kv[source] + kv_row * a->head_dim, (size_t)a->head_dim * sizeof(uint16_t));
    bool ok = mla_judge_scratch(t, &verdict);
    assert_true(ok == (verdict.kind == MLA_VERDICT_PASS));
    return ok;
}

static struct mla_tensors *make_tensors(const struct mla_case *test)
{
    struct mla_tensors *t = NULL;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_problem(test, INT64_MAX, error) != NULL ||
        mla_tensors_make(test, 0, &t, error) != MLA_OK)
        fail_msg("%s", error);
    return t;
}

/* Two slots of 32 rows in each of two ranks; the call is about slot 1. */
static void test_scratch_with_a_slot(void **state)
{
    struct mla_case test;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 2;
    test.ring.kv_batch = 2;
    test.ring.gathered_batch = 2; /* the slot has its own batch */
    test.ring.gathered_rows = 96;
    test.ring.logical_n = 64;
    test.ring.has_slot = 1;
    test.ring.kv_cache_batch_idx = 1;
    struct mla_tensors *t = make_tensors(&test);
    assert_true(may_hold(t, 1, 5, 0, 32 + 5));
    assert_true(may_hold(t, 1, 32 + 31, 1, 32 + 31));
    assert_false(may_hold(t, 1, 5, 0, 32 + 6)); /* another row */
    assert_false(may_hold(t, 1, 5, 1, 32 + 5)); /* another rank's */
    assert_false(may_hold(t, 1, 5, 0, 5));      /* another slot's */
    assert_false(may_hold(t, 0, 5, 0, 32 + 5)); /* another batch of gathered */
    assert_false(may_hold(t, 0, 5, 0, 5));      /* and slot */
    assert_false(may_hold(t, 1, 64, 0, 32));    /* behind the last rank's */
    assert_false(may_hold(t, 1, 95, 1, 32 + 31));
    t->gathered[0][96 * 64 + 5 * 64] ^= 1; /* half of a row moved */
    assert_false(mla_judge_scratch(t, &(struct mla_verdict){.kind = MLA_VERDICT_PASS}));
    mla_tensors_free(t);
    test.ring.gathered_batch = 1; /* the slot is at batch 0 */
    t = make_tensors(&test);
    assert_true(may_hold(t, 0, 5, 0, 32 + 5));
    assert_false(may_hold(t, 0, 5, 0, 5));
    mla_tensors_free(t);
}

/* Slabs of 2 * 64 positions. 128 keys lie in the first, so 64 of 128 rows of a rank move. */
static void test_scratch_with_a_prior(void **state)
{
    struct mla_case test = padded_case();
    (void)state;
    struct mla_tensors *t = make_tensors(&test);
    assert_true(may_hold(t, 0, 0, 0, 0));
    assert_true(may_hold(t, 0, 63, 0, 63));
    assert_true(may_hold(t, 0, 128 + 63, 1, 63));
    assert_false(may_hold(t, 0, 64, 0, 64));
    assert_false(may_hold(t, 0, 127, 0, 127));
    assert_false(may_hold(t, 0, 128 + 64, 1, 64));
    assert_false(may_hold(t, 0, 64, 1, 0)); /* shards packed without gaps */
    mla_tensors_free(t);
    test.ring.has_prior = 0; /* everything moves */
    test.ring.kv_actual_isl = 0;
    t = make_tensors(&test);
    assert_true(may_hold(t, 0, 64, 0, 64));
    assert_true(may_hold(t, 0, 255, 1, 127));
    mla_tensors_free(t);
}

/* ---- which rows are judged ---- */

/* How often each (rank, batch, head, row) of a case is drawn, added up over seeds. */
static void count_draws(struct mla_case *test, int seeds, int64_t rows_due, int *counts)
{
    bool is_ring = test->op == MLA_OP_RING;
    int64_t ranks = is_ring ? test->ring.ring_size : 1, batch = is_ring ? test->ring.batch : 1;
    int64_t heads = is_ring ? test->ring.heads : test->sparse.heads;
    int64_t rows = is_ring ? test->ring.q_rows : test->sparse.queries;
    for (int seed = 0; seed < seeds; seed++) {
        int64_t n;
        test->row_seed = (uint64_t)seed;
        struct mla_row *list = mla_rows_draw(test, &n);
        assert_non_null(list);
        assert_int_equal(n, rows_due);
        for (int64_t i = 0; i < n; i++) {
            assert_true(list[i].rank >= 0 && list[i].rank < ranks);
            assert_true(list[i].batch >= 0 && list[i].batch < batch);
            assert_true(list[i].head >= 0 && list[i].head < heads);
            assert_true(list[i].row >= 0 && list[i].row < rows);
            counts[((list[i].rank * batch + list[i].batch) * heads + list[i].head) * rows +
                   list[i].row]++;
        }
        free(list);
    }
}

/* A stored case names its rows by row_seed alone, so one draw is written down: rank, batch and head
 * come from the stream in this order, whatever the compiler. */
static void test_a_draw_is_the_same_everywhere(void **state)
{
    static const struct mla_row expected[] = {
        {1, 0, 3, 0}, {1, 1, 2, 0}, {1, 1, 1, 29}, {1, 0, 0, 1}};
    struct mla_case test;
    int64_t n;
    (void)state;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 3;
    test.ring.batch = 2;
    test.ring.heads = 5;
    test.rows = 4;
    test.row_seed = 7;
    struct mla_row *list = mla_rows_draw(&test, &n);
    assert_non_null(list);
    assert_int_equal(n, 4);
    assert_memory_equal(list, expected, sizeof expected);
    free(list);
}

/* Of drawn ring cases with NaN keys in the future, each judges a row that sees none of them. */
static void test_futures_leave_rows(void **state)
{
    int futures_n = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct mla_case test;
        struct mla_rng rng = {seed * 0x9e3779b97f4a7c15u + 1, 0};
        mla_case_draw(&test, MLA_OP_RING, &rng);
        if (!test.has_future)
            continue;
        int64_t n, before_n = 0;
        struct mla_row *list = mla_rows_draw(&test, &n);
        assert_non_null(list);
        for (int64_t i = 0; i < n; i++) {
            struct mla_oracle_visible seen;
            bool sees = false;
            assert_int_equal(mla_oracle_visible_ring(&test.ring, list[i].rank, list[i].row, &seen),
                             MLA_OK);
            for (int64_t k = 0; k < seen.keys_n; k++)
                sees = sees || mla_oracle_key_position(&test.ring, seen.keys[k].source,
                                                       seen.keys[k].row) >= test.future;
            mla_oracle_visible_free(&seen);
            before_n += !sees;
        }
        free(list);
        if (before_n == 0)
            fail_msg("seed %" PRIu64 ": all %" PRId64 " rows see the future", seed, n);
        futures_n++;
    }
    assert_true(futures_n > 1000);
}

/* Over seeds every row of every head is reached, the ends of a rank far more often. */
static void test_drawn_rows(void **state)
{
    struct mla_case test;
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        static int counts[3 * 2 * 16 * 32];
        int64_t groups = op == MLA_OP_RING ? 3 * 2 * 3 : 16, inner = 0, first = 0, last = 0;
        mla_case_init(&test, (enum mla_op)op);
        test.ring.ring_size = 3;
        test.ring.batch = 2;
        test.ring.heads = 3;
        test.sparse.queries = 32;
        test.rows = 8;
        memset(counts, 0, sizeof counts);
        count_draws(&test, 2000, 8, counts); /* 16000 draws: an inner row is due 13 times or more */
        for (int64_t i = 0; i < groups * 32; i++) {
            if (counts[i] == 0)
                fail_msg("op %d: row %d of group %d is never drawn", op, (int)(i % 32),
                         (int)(i / 32));
            *(i % 32 == 0 ? &first : i % 32 == 31 ? &last : &inner) += counts[i];
        }
        /* A quarter each and a 64th, give or take ten standard deviations of 16000 draws. */
        assert_in_range(first, 4250 - 570, 4250 + 570);
        assert_in_range(last, 4250 - 570, 4250 + 570);
        assert_in_range(inner, 7500 - 640, 7500 + 640);
        for (int more = 0; more < 3; more++) { /* rows = 0, all and more: each exactly once */
            const int64_t asked[] = {0, groups * 32, groups * 32 + 1};
            test.rows = asked[more];
            memset(counts, 0, sizeof counts);
            count_draws(&test, 1, groups * 32, counts);
            for (int64_t i = 0; i < groups * 32; i++)
                assert_int_equal(counts[i], 1);
        }
    }
}

/* rows < 0: query rows, no two alike, each with all its heads in order, and still most of them at
 * the ends of a rank. */
static void test_whole_rows(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test;
        int64_t ends = 0, heads = op == MLA_OP_RING ? 3 : 16, ranks = op == MLA_OP_RING ? 3 : 1;
        mla_case_init(&test, (enum mla_op)op);
        test.ring.ring_size = 3;
        test.ring.batch = 2;
        test.ring.heads = 3;
        test.sparse.queries = 32;
        static int counts[3 * 2 * 32];
        memset(counts, 0, sizeof counts);
        test.rows = -5;
        for (uint64_t seed = 0; seed < 2000; seed++) {
            int64_t n;
            bool seen[3 * 2 * 32] = {false};
            test.row_seed = seed;
            struct mla_row *list = mla_rows_draw(&test, &n);
            assert_non_null(list);
            assert_int_equal(n, 5 * heads);
            for (int64_t i = 0; i < n; i++) {
                struct mla_row first = list[i / heads * heads];
                assert_int_equal(list[i].head, i % heads);
                assert_true(list[i].rank == first.rank && list[i].batch == first.batch &&
                            list[i].row == first.row);
                assert_in_range(list[i].rank, 0, ranks - 1);
                assert_in_range(list[i].batch, 0, op == MLA_OP_RING ? 1 : 0);
                assert_in_range(list[i].row, 0, 31);
                if (i % heads != 0)
                    continue;
                int64_t at = (first.rank * 2 + first.batch) * 32 + first.row;
                assert_false(seen[at]);
                seen[at] = true;
                counts[at]++;
                ends += first.row == 0 || first.row == 31;
            }
            free(list);
        }
        for (int64_t at = 0; at < (op == MLA_OP_RING ? 3 * 2 * 32 : 32); at++)
            assert_true(counts[at] > 0);
        /* More than a third of 10000, where an even draw gives a sixteenth; sparse has two ends for
           five draws, so no more than 4000. */
        assert_true(ends > 3334);
        test.rows = -(op == MLA_OP_RING ? 3 * 2 * 32 : 32); /* all, and more than all */
        for (int more = 0; more < 2; more++) {
            int64_t n;
            free(mla_rows_draw(&test, &n));
            assert_int_equal(n, (op == MLA_OP_RING ? 3 * 2 * 32 : 32) * heads);
            test.rows = INT64_MIN;
        }
    }
}

/* ---- refusals ---- */

static const char *words;
static int32_t answer;
static bool scribble;
static void (*put)(char *message, size_t message_bytes); /* the words where they belong */

static void put_what_fits(char *message, size_t message_bytes)
{
    snprintf(message, message_bytes, "%s", words);
}

static void put_unterminated(char *message, size_t message_bytes)
{
    for (size_t i = 0; i < message_bytes; i++) /* as strncpy does */
        message[i] = i < strlen(words) ? words[i] : '\0';
}

static void put_all(char *message, size_t message_bytes)
{
    if (message != NULL && message_bytes > 0)
        memcpy(message, words, strlen(words) + 1);
}

static void put_terminator_behind(char *message, size_t message_bytes)
{
    put_what_fits(message, message_bytes);
    if (message_bytes > 0)
        message[message_bytes < strlen(words) ? message_bytes : strlen(words)] = '\0';
}

static void put_nothing_into_one(char *message, size_t message_bytes)
{
    if (message_bytes != 1)
        put_what_fits(message, message_bytes);
}

static void put_without_looking(char *message, size_t message_bytes)
{
    message[0] = '\0';
    put_what_fits(message, message_bytes);
}

static int32_t refuse(const struct mla_ring_args *a, char *message, size_t message_bytes)
{
    put(message, message_bytes);
    if (scribble)
        a->out[0][0] = 0;
    return answer;
}

static struct mla_verdict judge_refusal(int32_t status, const char *message, bool writes,
                                        double seconds_limit)
{
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_kernel kernel = *honest;
    struct mla_judge_options options = {.seconds_limit = seconds_limit, .oracle_threads = 1};
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
    put = put_what_fits;
    assert_int_equal(judge_refusal(MLA_ERR_PARAM, "num_links = -3: must be >= 1", false, 0).kind,
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
        if (judge_refusal(wrong[i].status, wrong[i].message, wrong[i].writes, 0).kind !=
            MLA_VERDICT_FAIL_CERTAIN)
            fail_msg("wrong refusal %zu passed", i);
}

/* Right words in wrong places, where there is little room for them. */
static void test_refusals_with_little_room(void **state)
{
    static const struct {
        void (*put)(char *message, size_t message_bytes);
        enum mla_verdict_kind kind;
        const char *reason;
    } ways[] = {
        {put_what_fits, MLA_VERDICT_REFUSED, ""},
        {put_unterminated, MLA_VERDICT_FAIL_CERTAIN, "with 8 bytes for the message: it is not"},
        {put_all, MLA_VERDICT_FAIL_CERTAIN, "with 8 bytes for the message: more were"},
        {put_terminator_behind, MLA_VERDICT_FAIL_CERTAIN, "with 8 bytes for the message: more"},
        {put_nothing_into_one, MLA_VERDICT_FAIL_CERTAIN, "with 1 bytes for the message: it is not"},
        /* of a signal, or of a sanitizer that came before it */
        {put_without_looking, MLA_VERDICT_CRASH, "with 0 bytes for the message: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        double limit = ways[i].kind == MLA_VERDICT_CRASH ? 20 : 0;
        for (; limit <= 20; limit += 20) {
            put = ways[i].put;
            struct mla_verdict verdict =
                judge_refusal(MLA_ERR_PARAM, "num_links = -3: must be >= 1", false, limit);
            if (verdict.kind != ways[i].kind || strstr(verdict.reason, ways[i].reason) == NULL)
                fail_msg("way %zu: %s: %s", i, mla_verdict_name(verdict.kind), verdict.reason);
        }
    }
}

/* The first failure stays, except that what could not be decided gives way to a fault. */
static void test_a_fault_displaces_unjudged(void **state)
{
    struct mla_verdict verdict = {.kind = MLA_VERDICT_PASS};
    (void)state;
    assert_false(mla_verdict_fail(&verdict, MLA_VERDICT_UNJUDGED, "undecided"));
    assert_false(mla_verdict_fail(&verdict, MLA_VERDICT_UNJUDGED, "undecided again"));
    assert_string_equal(verdict.reason, "undecided");
    assert_false(mla_verdict_fail(&verdict, MLA_VERDICT_FAIL_CERTAIN, "outside"));
    assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
    assert_string_equal(verdict.reason, "outside");
    assert_false(mla_verdict_fail(&verdict, MLA_VERDICT_UNJUDGED, "too late"));
    assert_false(mla_verdict_fail(&verdict, MLA_VERDICT_FAIL_IMPROBABLE, "too late"));
    assert_int_equal(verdict.kind, MLA_VERDICT_FAIL_CERTAIN);
}

int main(void)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fault_displaces_unjudged),
        cmocka_unit_test(test_the_honest_kernel_passes),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_no_row_is_counted_twice),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_pad_rows_hold_positive_zero),
        cmocka_unit_test(test_pad_rows_without_promise),
        cmocka_unit_test(test_both_column_orders),
        cmocka_unit_test(test_nothing_judged_is_no_pass),
        cmocka_unit_test(test_write_before_a_tensor),
        cmocka_unit_test(test_scratch_with_a_slot),
        cmocka_unit_test(test_scratch_with_a_prior),
        cmocka_unit_test(test_a_draw_is_the_same_everywhere),
        cmocka_unit_test(test_futures_leave_rows),
        cmocka_unit_test(test_drawn_rows),
        cmocka_unit_test(test_whole_rows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_refusals_with_little_room),
    };
    if (mla_kernels_add(&kernels, "fault:plain", error, sizeof error) != MLA_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    honest = kernels.list[0].kernel;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
