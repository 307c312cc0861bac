/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_test.c - every relation is true, is kept by honest kernels, and catches what only it can.
 *
 * True: matching rows of the two calls have the same truth. Kept: no honest kernel is accused, nor
 * one that promises no bits and makes use of that. Needed: for each relation there is a kernel that
 * depends on just the thing it varies, and a case on which no other relation notices.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fuzz/call.h"
#include "fuzz/case_fields.h"
#include "fuzz/family.h"
#include "fuzz/faults/faults.h"
#include "fuzz/guard.h"
#include "fuzz/judge_internal.h"
#include "fuzz/kernels.h"
#include "fuzz/relations.h"
#include "impl/registry.h"

#define SCAN_MAX 2000 /* drawn cases until one shows what is looked for */
#define SHARE    5    /* honest kernels that share a case and its truths */

static int cases_n(void)
{
    const char *text = getenv("MLA_TEST_CASES");
    int n = text == NULL ? 300 : atoi(text);
    return n > 0 ? n : 300;
}

/* No large one, and none of a cache that is mostly not there: to copy it takes many seconds. */
static struct mla_case draw(enum mla_op op, uint64_t i)
{
    struct mla_case test;
    struct mla_rng rng = {mla_number_mix(i + 77), 0};
    do {
        mla_case_draw(&test, op, &rng);
        test.rows = test.rows == 0 ? 0 : -1;
        test.seed |= 1;
        mla_case_fix(&test);
    } while (mla_case_is_thin(&test));
    return test;
}

static uint32_t bit_of(const char *name)
{
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(relations[i].name, name) == 0)
            return 1u << i;
    fail_msg("no relation %s", name);
    return 0;
}

static struct mla_subject *make(const struct mla_case *test)
{
    struct mla_subject *subject;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        fail_msg("%s", error);
    return subject;
}

static struct mla_verdict judge_subject(struct mla_subject *subject,
                                        const struct mla_kernel *kernel, uint32_t relations,
                                        double seconds_limit)
{
    struct mla_verdict verdict;
    struct mla_judge_options options = {.seconds_limit = seconds_limit,
                                        .oracle_threads = 1,
                                        .relations = relations,
                                        .relation_rows = 3};
    mla_subject_judge(subject, kernel, &options, &verdict);
    return verdict;
}

static struct mla_verdict judge(const struct mla_kernel *kernel, const struct mla_case *test,
                                uint32_t relations, double seconds_limit)
{
    struct mla_subject *subject = make(test);
    struct mla_verdict verdict = judge_subject(subject, kernel, relations, seconds_limit);
    mla_subject_free(subject);
    return verdict;
}

static void accuse(const char *kernel, const struct mla_case *test,
                   const struct mla_verdict *verdict)
{
    char line[MLA_CASE_LINE_MAX];
    mla_case_format(test, line);
    fail_msg("%s accused: %s %s\n%s", kernel, verdict->reason, verdict->element, line);
}

/* ---- the table ---- */

static void test_the_table(void **state)
{
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        assert_non_null(relations[i].what);
        assert_true(relations[i].operations != 0);
        assert_true(bit_of(relations[i].name) == 1u << i); /* names are different */
    }
    for (int op = 0; op < MLA_OP_N; op++)
        assert_true((mla_relations_cheap((enum mla_op)op) & mla_relations_dear((enum mla_op)op)) ==
                    0);
}

/* ---- true ---- */

/* The definition's outputs of one row, to a double's last place. false: it has none. */
static bool truth_of(const struct mla_tensors *t, struct mla_row row, struct mla_bound *bounds)
{
    const struct mla_kernel *scalar = mla_registry_find("scalar");
    struct mla_truth *truth;
    assert_int_equal(mla_rows_truth(t, row, false, &truth), MLA_OK);
    int32_t state = mla_bound_row(
        truth, t->test.op == MLA_OP_RING ? &scalar->ring_model : &scalar->sparse_model, bounds);
    mla_truth_free(truth);
    return state == MLA_BOUND_OK;
}

/* The truths of matching rows; returns how many rows were compared. */
static int compare_truths(const struct mla_relation *relation, const struct mla_case *test,
                          const struct mla_tensors *a, const struct mla_tensors *b)
{
    struct mla_bound x[MLA_LATENT + 64], y[MLA_LATENT + 64];
    int64_t rows_n;
    int compared = 0;
    struct mla_row *rows = mla_rows_draw(test, &rows_n);
    assert_non_null(rows);
    for (int64_t i = 0; i < rows_n && compared < 2; i++) {
        struct mla_row other = rows[i];
        if ((relation->match != NULL && !relation->match(a, b, rows[i], &other)) ||
            !truth_of(a, rows[i], x) || !truth_of(b, other, y))
            continue;
        double largest = 0;
        for (int64_t c = 0; c < mla_case_value_width(test); c++)
            largest = fmax(largest, fabs(x[c].o));
        for (int64_t c = 0; c < mla_case_value_width(test); c++) {
            double due = ldexp(x[c].o, relation->exponent);
            double room = ldexp(largest, relation->exponent - 45) + 0x1p-133;
            if (!(fabs(y[c].o - due) <= room)) {
                char line[MLA_CASE_LINE_MAX];
                mla_case_format(test, line);
                fail_msg("%s: %a where %a is due, column %" PRId64 "\n%s", relation->name, y[c].o,
                         due, c, line);
            }
        }
        compared++;
    }
    free(rows);
    return compared;
}

/* Powers of two are not exact among subnormals and near the largest number. */
static bool is_exact(const struct mla_relation *relation, const struct mla_case *test)
{
    return relation->exponent == 0 || strcmp(mla_family_name(test->family), "extreme") != 0;
}

static int hold_truths(const struct mla_relation *relation, const struct mla_case *test)
{
    struct mla_tensors *a, *b;
    struct mla_case varied = *test;
    char error[MLA_CASE_ERROR_MAX];
    int compared = 0;
    if (relation->arrange != NULL && mla_case_is_thin(test)) /* nor does the judge make all of it */
        return 0;
    assert_int_equal(mla_tensors_make(test, 0, &a, error), MLA_OK);
    if (is_exact(relation, test) && relation->vary(a, &varied) != MLA_TIE_NONE) {
        if (mla_case_problem(&varied, INT64_MAX, error) != NULL)
            fail_msg("%s: %s", relation->name, error);
        int32_t status = relation->remake ? mla_tensors_make(&varied, 0, &b, error)
                         : relation->arrange == NULL
                             ? mla_tensors_copy(a, &varied, 0, &b, error)
                             : mla_tensors_arrange(a, &varied, relation->arrange, &b, error);
        assert_int_equal(status, MLA_OK);
        compared = compare_truths(relation, test, a, b);
        mla_tensors_free(b);
    }
    mla_tensors_free(a);
    return compared;
}

static void test_truths_agree(void **state)
{
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    (void)state;
    for (size_t i = 0; i < n; i++)
        for (int op = 0; op < MLA_OP_N && relations[i].vary != NULL; op++) {
            int compared = 0;
            if ((relations[i].operations >> op & 1u) == 0)
                continue;
            for (uint64_t k = 0; k < SCAN_MAX && compared < cases_n() / 12; k++) {
                struct mla_case test = draw((enum mla_op)op, 100000 * i + k);
                compared += hold_truths(&relations[i], &test);
            }
            if (compared == 0)
                fail_msg("%s never applies on %s", relations[i].name, mla_case_op_name(op));
        }
}

/* ---- kept ---- */

static void test_honest_kernels_keep_them(void **state)
{
    size_t kernels_n, controls_n;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&kernels_n);
    const struct mla_fault *controls = mla_fault_controls(&controls_n);
    int judged = 0;
    (void)state;
    for (int k = 0; k < cases_n() * 4 / 5; k += SHARE) {
        struct mla_case test = draw((enum mla_op)(k / SHARE % MLA_OP_N), 5000000 + (uint64_t)k);
        struct mla_subject *subject = make(&test);
        for (size_t j = (size_t)k; j < (size_t)k + SHARE; j++) {
            size_t i = j / (MLA_OP_N * SHARE) * SHARE + j % SHARE; /* of this operation */
            size_t which = i % (kernels_n + controls_n), round = i / (kernels_n + controls_n);
            const struct mla_kernel *kernel =
                which < kernels_n ? kernels[which] : controls[which - kernels_n].kernel;
            /* A fifth of the relations each: all of them take their time. */
            struct mla_verdict verdict =
                judge_subject(subject, kernel, 0x42108421u << round % 5, 0);
            judged += verdict.kind == MLA_VERDICT_PASS;
            if (mla_verdict_is_failure(verdict.kind))
                accuse(kernel->name, &test, &verdict);
        }
        mla_subject_free(subject);
    }
    assert_true(judged > cases_n() * 2 / 5);
}

/* Entry 98 is replaced by a row that nothing else lists: it has poison, and is not hidden. */
static void test_replaced_entry_is_not_hidden(void **state)
{
    static const char line[] =
        "sparse v=1 S=1 S_kv=528 H=16 Rr=128 K=128 tiled=0 dense=0 offset=- order=mx4 cores=1 "
        "threads=1 scale=0x1.14f5b8p-3 family=profile region=lofty amount=3 indices=ends "
        "poison=noise stats=0 seed=3188801975 rows=0 row_seed=29598 slow=0 set=- "
        "put=topk_indices.0@98:1e3";
    const struct mla_fault *controls = mla_fault_controls(&(size_t){0});
    struct mla_case test;
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    assert_int_equal(mla_case_parse(line, strlen(line), &test, error), MLA_OK);
    struct mla_verdict verdict = judge(controls[0].kernel, &test, bit_of("hidden"), 0);
    assert_int_equal(verdict.kind, MLA_VERDICT_PASS);
}

/* An honest kernel that works in another order when asked for another number of threads, as it may:
 * it promises no bits. With the promise it is accused. */
static const struct mla_kernel *forwards, *backwards;

static int32_t fickle_ring(const struct mla_ring_args *a, char *message, size_t bytes)
{
    return (a->threads == 1 ? forwards : backwards)->ring(a, message, bytes);
}

static int32_t fickle_sparse(const struct mla_sparse_args *a, char *message, size_t bytes)
{
    return (a->threads == 1 ? forwards : backwards)->sparse(a, message, bytes);
}

static int accusations(const struct mla_kernel *kernel, int n)
{
    int accused = 0;
    for (int op = 0; op < MLA_OP_N; op++)
        for (int k = 0; k < n; k++) {
            struct mla_case test = draw((enum mla_op)op, 7000000 + (uint64_t)k);
            struct mla_verdict verdict = judge(kernel, &test, bit_of("threads"), 0);
            accused += mla_verdict_is_failure(verdict.kind);
        }
    return accused;
}

static const struct mla_kernel *control(const char *name)
{
    size_t n;
    const struct mla_fault *controls = mla_fault_controls(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(controls[i].name, name) == 0)
            return controls[i].kernel;
    fail_msg("no control %s", name);
    return NULL;
}

static void test_no_bits_without_a_promise(void **state)
{
    forwards = control("plain");
    backwards = control("plain-reversed");
    struct mla_kernel kernel = *forwards;
    (void)state;
    kernel.ring = fickle_ring;
    kernel.sparse = fickle_sparse;
    assert_true(accusations(&kernel, 30) > 0);
    kernel.promises &=
        ~(uint64_t)(MLA_PROMISE_BIT_REPEAT | MLA_PROMISE_BIT_THREADS | MLA_PROMISE_BIT_LAYOUT |
                    MLA_PROMISE_BIT_SPELLING | MLA_PROMISE_BIT_SCALE);
    assert_int_equal(accusations(&kernel, 30), 0);
}

/* A kernel that only says when called what it does not do. */
static int32_t picky_ring(const struct mla_ring_args *a, char *message, size_t bytes)
{
    return a->num_links == 1 ? forwards->ring(a, message, bytes) : MLA_ERR_UNSUPPORTED;
}

static void test_unsupported_calls_are_not_looked_at(void **state)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    forwards = control("plain");
    struct mla_kernel kernel = *forwards;
    (void)state;
    assert_int_equal(judge(&kernel, &test, bit_of("threads"), 0).relations, bit_of("threads"));
    kernel.ring = picky_ring;
    struct mla_verdict verdict = judge(&kernel, &test, bit_of("threads"), 0);
    assert_int_equal(verdict.kind, MLA_VERDICT_PASS);
    assert_int_equal(verdict.relations, 0);
}

/* Values are not made infinite by the relation that scales them: earlier rows need not stand that. */
static void test_no_relation_makes_values_infinite(void **state)
{
    static const uint16_t largest_kept = 0x757f, least_lost = 0x7580;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    forwards = control("plain");
    (void)state;
    assert_true(mla_number_from_bf16(largest_kept) * 0x1p20f < INFINITY);
    assert_true(mla_number_from_bf16(least_lost) * 0x1p20f == INFINITY);
    test.put_n = 1;
    test.put[0] = (struct mla_override){"kv", 0, 0, largest_kept};
    assert_int_equal(judge(forwards, &test, bit_of("values"), 0).relations, bit_of("values"));
    test.put[0].bits = least_lost;
    assert_int_equal(judge(forwards, &test, bit_of("values"), 0).relations, 0);
}

/* ---- needed ---- */

/* What a result must not depend on. */
enum dependence {
    ON_CALLS,
    ON_THREADS,
    ON_LINKS,
    ON_CORES,
    ON_OLD_SCRATCH,
    ON_OLD_OUT,
    ON_TILED,
    ON_HIDDEN_KEY,
    ON_LAST_KEY,
    ON_QUERY,
    ON_PRIOR,
    ON_BALANCED,
    ON_OFFSET,
    ON_VALUE,
    ON_FIRST_INDEX,
    ON_TOPK,
    ON_WIDTH,
    ON_CHUNK,
    ON_TOPOLOGY,
    ON_RANKS,
    ON_OPERATION,
    /* on what an earlier call of the process was */
    ON_FEWER_KEYS,
    ON_OTHER_SLOT,
    ON_OTHER_PRIOR,
    ON_OTHER_MEMORY,
    ON_OTHER_CONTENTS,
    ON_OTHER_SCALE,
    ON_OTHER_OPTION,
    ON_OTHER_OPERATION,
    ON_REFUSAL,
    ON_COMPANY, /* on a call made at the same time */
    DEPENDENCES_N
};

/* What the test kernel looks at, of either operation. */
struct sight {
    enum mla_op op;
    int64_t now[DEPENDENCES_N];
    int64_t keys, slot, prior, contents, option;
    const void *memory;
    float scale;
};

static const struct mla_kernel *honest;
static enum dependence depends;
static bool gross; /* spoil by more than any interval allows; else by one last place */
static int calls_n;
static struct sight first_call, last_call;
static bool last_refused;

static int64_t bits_at(const uint16_t *data, int64_t i)
{
    return data[i];
}

static struct sight sight_of_ring(const struct mla_ring_args *a)
{
    int64_t last = a->logical_n - 1;
    struct sight s = {.op = MLA_OP_RING, .keys = a->logical_n, .memory = a->kv[0]};
    s.slot = a->has_slot ? a->kv_cache_batch_idx : 0;
    s.prior = a->has_prior ? a->kv_actual_isl : 0;
    s.scale = a->has_scale ? a->scale : 0;
    s.contents = bits_at(a->kv[0], s.slot * a->kv_rows * a->head_dim + 1) << 16 |
                 bits_at(a->kv[0], s.slot * a->kv_rows * a->head_dim + a->head_dim - 1);
    s.option = a->topology + 2 * a->is_balanced;
    s.now[ON_THREADS] = a->threads;
    s.now[ON_LINKS] = a->num_links;
    s.now[ON_OLD_SCRATCH] = bits_at(a->gathered[0], 0);
    s.now[ON_OLD_OUT] = bits_at(a->out[0], 0);
    s.now[ON_HIDDEN_KEY] = bits_at(a->kv[a->ring_size - 1], (a->kv_rows - 1) * a->head_dim);
    s.now[ON_LAST_KEY] =
        bits_at(a->kv[last / a->kv_rows], last % a->kv_rows * a->head_dim + a->head_dim - 1);
    s.now[ON_QUERY] = bits_at(a->q[0], a->head_dim - 1);
    s.now[ON_PRIOR] = a->has_prior;
    s.now[ON_BALANCED] = a->is_balanced;
    s.now[ON_VALUE] = bits_at(a->kv[0], s.slot * a->kv_rows * a->head_dim) & 0x7f80;
    s.now[ON_WIDTH] = a->head_dim;
    s.now[ON_CHUNK] = a->k_chunk_size;
    s.now[ON_TOPOLOGY] = a->topology;
    s.now[ON_RANKS] = a->ring_size;
    return s;
}

static struct sight sight_of_sparse(const struct mla_sparse_args *a)
{
    struct sight s = {.op = MLA_OP_SPARSE, .keys = a->keys, .memory = a->c_kv};
    s.scale = a->softmax_scale;
    s.contents = bits_at(a->q_pe, 0) << 16 | bits_at(a->q_lift, 5);
    s.option = a->out_order;
    s.now[ON_THREADS] = a->threads;
    s.now[ON_CORES] = a->cores;
    s.now[ON_OLD_OUT] = bits_at(a->out, 0);
    s.now[ON_TILED] = a->topk_tiled;
    s.now[ON_HIDDEN_KEY] = bits_at(a->c_kv, 0);
    s.now[ON_LAST_KEY] = bits_at(a->c_kv, (a->keys - 1) * a->latent);
    s.now[ON_QUERY] = bits_at(a->q_lift, 5);
    s.now[ON_OFFSET] = a->has_q_pos_offset;
    s.now[ON_VALUE] = bits_at(a->c_kv, (a->keys - 1) * a->latent) & 0x7f80;
    s.now[ON_FIRST_INDEX] = a->dense ? 0 : a->topk_indices[0];
    s.now[ON_TOPK] = a->topk;
    s.now[ON_WIDTH] = a->rope;
    return s;
}

/* Is it one of the calls that come out wrong? */
static bool is_spoiled(const struct sight *s)
{
    const struct sight *last = &last_call;
    bool follows = calls_n > 1, same_op = last->op == s->op, here = last->memory == s->memory;
    bool as_before = last->keys == s->keys && last->slot == s->slot && last->prior == s->prior &&
                     last->scale == s->scale;
    switch (depends) {
    case ON_CALLS:
        return follows;
    case ON_OPERATION:
        return s->op != first_call.op;
    case ON_FEWER_KEYS:
        return follows && same_op && here && last->keys < s->keys && last->prior == s->prior;
    case ON_OTHER_SLOT:
        return follows && same_op && here && last->slot != s->slot;
    case ON_OTHER_PRIOR:
        return follows && same_op && here && last->prior != s->prior;
    case ON_OTHER_MEMORY:
        return follows && same_op && !here && as_before;
    case ON_OTHER_CONTENTS:
        return follows && same_op && here && as_before && last->contents != s->contents;
    case ON_OTHER_SCALE:
        return follows && same_op && here && last->scale != s->scale;
    case ON_OTHER_OPTION:
        return follows && same_op && here && last->keys == s->keys && last->option != s->option;
    case ON_OTHER_OPERATION:
        return follows && !same_op;
    case ON_REFUSAL:
        return follows && last_refused;
    default:
        return s->op == first_call.op && s->now[depends] != first_call.now[depends];
    }
}

static void spoil(uint16_t *out, int64_t n)
{
    if (!gross)
        out[1] ^= 1;
    for (int64_t i = 0; gross && i < n; i++)
        out[i] = out[i] == 0 ? 0x3f80 : out[i] ^ 0x40;
}

static bool begin_call(const struct sight *s)
{
    calls_n++;
    if (calls_n == 1)
        first_call = *s;
    return is_spoiled(s);
}

static int32_t end_call(const struct sight *s, int32_t status)
{
    last_refused = status != MLA_OK;
    if (s != NULL)
        last_call = *s;
    return status;
}

/*
 * Scratch for one call at a time: whose number stands in it. A call that finds another's, or in which its
 * own is gone after a while, comes out wrong. Atomic, so that only a result can tell.
 */
#define COMPANY_MILLISECONDS 10 /* long enough for another call to begin, if there is one */
static atomic_uint scratch_owner, tickets;

static bool share_scratch(unsigned *ticket)
{
    *ticket = 1 + atomic_fetch_add(&tickets, 1);
    bool found_other = atomic_exchange(&scratch_owner, *ticket) != 0;
    for (int i = 0; i < COMPANY_MILLISECONDS && !found_other; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        found_other = atomic_load(&scratch_owner) != *ticket;
    }
    return found_other;
}

static void free_scratch(unsigned ticket)
{
    (void)atomic_compare_exchange_strong(&scratch_owner, &ticket, 0);
}

static int32_t shared_ring(const struct mla_ring_args *a, char *message, size_t bytes)
{
    unsigned ticket;
    if (mla_refuse_ring(a).status != MLA_OK)
        return honest->ring(a, message, bytes);
    bool spoiled = share_scratch(&ticket);
    int32_t status = honest->ring(a, message, bytes);
    if (spoiled)
        spoil(a->out[0], a->batch * a->heads * a->q_rows * a->head_dim_v);
    free_scratch(ticket);
    return status;
}

static int32_t shared_sparse(const struct mla_sparse_args *a, char *message, size_t bytes)
{
    unsigned ticket;
    if (mla_refuse_sparse(a).status != MLA_OK)
        return honest->sparse(a, message, bytes);
    bool spoiled = share_scratch(&ticket);
    int32_t status = honest->sparse(a, message, bytes);
    if (spoiled)
        spoil(a->out, a->queries * a->heads * a->latent);
    free_scratch(ticket);
    return status;
}

static int32_t spoiled_ring(const struct mla_ring_args *a, char *message, size_t bytes)
{
    if (mla_refuse_ring(a).status != MLA_OK)
        return ++calls_n, end_call(NULL, honest->ring(a, message, bytes));
    struct sight s = sight_of_ring(a);
    bool spoiled = begin_call(&s);
    int32_t status = honest->ring(a, message, bytes);
    for (int64_t d = 0; spoiled && d < (gross ? a->ring_size : 1); d++)
        spoil(a->out[d], a->batch * a->heads * a->q_rows * a->head_dim_v);
    return end_call(&s, status);
}

static int32_t spoiled_sparse(const struct mla_sparse_args *a, char *message, size_t bytes)
{
    if (mla_refuse_sparse(a).status != MLA_OK)
        return ++calls_n, end_call(NULL, honest->sparse(a, message, bytes));
    struct sight s = sight_of_sparse(a);
    bool spoiled = begin_call(&s);
    int32_t status = honest->sparse(a, message, bytes);
    if (spoiled)
        spoil(a->out, a->queries * a->heads * a->latent);
    return end_call(&s, status);
}

static const struct plant {
    enum mla_op op;
    enum dependence depends;
    const char *relation;
} plants[] = {
    {MLA_OP_RING, ON_CALLS, "repeat"},
    {MLA_OP_SPARSE, ON_CALLS, "repeat"},
    {MLA_OP_RING, ON_THREADS, "threads"},
    {MLA_OP_RING, ON_LINKS, "threads"},
    {MLA_OP_SPARSE, ON_THREADS, "threads"},
    {MLA_OP_SPARSE, ON_CORES, "cores"},
    {MLA_OP_RING, ON_OLD_SCRATCH, "dirt"},
    {MLA_OP_RING, ON_OLD_OUT, "dirt"},
    {MLA_OP_SPARSE, ON_OLD_OUT, "dirt"},
    {MLA_OP_SPARSE, ON_TILED, "layout"},
    {MLA_OP_RING, ON_HIDDEN_KEY, "hidden"},
    {MLA_OP_SPARSE, ON_HIDDEN_KEY, "hidden"},
    {MLA_OP_RING, ON_LAST_KEY, "later"},
    {MLA_OP_SPARSE, ON_LAST_KEY, "later"},
    {MLA_OP_RING, ON_QUERY, "heads"},
    {MLA_OP_SPARSE, ON_QUERY, "heads"},
    {MLA_OP_RING, ON_QUERY, "batch"},
    {MLA_OP_RING, ON_PRIOR, "prior"},
    {MLA_OP_RING, ON_BALANCED, "one-rank"},
    {MLA_OP_SPARSE, ON_OFFSET, "offset"},
    {MLA_OP_RING, ON_VALUE, "values"},
    {MLA_OP_SPARSE, ON_VALUE, "values"},
    {MLA_OP_SPARSE, ON_FIRST_INDEX, "order"},
    {MLA_OP_SPARSE, ON_TOPK, "copies"},
    {MLA_OP_RING, ON_WIDTH, "shift"},
    {MLA_OP_SPARSE, ON_WIDTH, "shift"},
    {MLA_OP_RING, ON_CHUNK, "chunks"},
    {MLA_OP_RING, ON_TOPOLOGY, "topology"},
    {MLA_OP_RING, ON_RANKS, "shards"},
    {MLA_OP_RING, ON_OPERATION, "as-sparse"},
    {MLA_OP_SPARSE, ON_OPERATION, "as-ring"},
    {MLA_OP_RING, ON_FEWER_KEYS, "after-growth"},
    {MLA_OP_SPARSE, ON_FEWER_KEYS, "after-growth"},
    {MLA_OP_RING, ON_OTHER_SLOT, "after-slot"},
    {MLA_OP_RING, ON_OTHER_PRIOR, "after-prior"},
    {MLA_OP_RING, ON_OTHER_MEMORY, "after-pointers"},
    {MLA_OP_SPARSE, ON_OTHER_MEMORY, "after-pointers"},
    {MLA_OP_RING, ON_OTHER_CONTENTS, "after-contents"},
    {MLA_OP_SPARSE, ON_OTHER_CONTENTS, "after-contents"},
    {MLA_OP_RING, ON_OTHER_SCALE, "after-scale"},
    {MLA_OP_SPARSE, ON_OTHER_SCALE, "after-scale"},
    {MLA_OP_RING, ON_OTHER_OPERATION, "after-others"},
    {MLA_OP_SPARSE, ON_OTHER_OPERATION, "after-others"},
    {MLA_OP_RING, ON_REFUSAL, "after-refusal"},
    {MLA_OP_SPARSE, ON_REFUSAL, "after-refusal"},
    {MLA_OP_RING, ON_OTHER_OPTION, "after-options"},
    {MLA_OP_SPARSE, ON_OTHER_OPTION, "after-options"},
    {MLA_OP_RING, ON_COMPANY, "together"},
    {MLA_OP_SPARSE, ON_COMPANY, "together"},
};

/* Sequences need a process to themselves: what this test called before must not count. */
static struct mla_verdict judge_plant(const struct mla_kernel *kernel, const struct mla_case *test,
                                      uint32_t relations)
{
    calls_n = 0;
    scratch_owner = 0;
    last_refused = false;
    return judge(kernel, test, relations, depends < ON_FEWER_KEYS ? 0 : 20);
}

/* Caught by its relation, and by no other one that costs as much or less. */
static bool is_caught(const struct mla_kernel *kernel, const struct plant *plant,
                      const struct mla_case *test)
{
    uint32_t bit = bit_of(plant->relation);
    struct mla_verdict verdict = judge_plant(kernel, test, bit);
    if (!mla_verdict_is_failure(verdict.kind))
        return false;
    if (strcmp(verdict.relation, plant->relation) != 0 ||
        strstr(verdict.reason, plant->relation) == NULL ||
        (verdict.detected & MLA_DETECTOR_RELATION) == 0)
        fail_msg("%s: %s", plant->relation, verdict.reason);
    if (plant->depends == ON_CALLS)
        return true;
    uint32_t others = depends < ON_FEWER_KEYS
                          ? ~bit
                          : mla_relations_cheap(plant->op) | bit_of("shards") | bit_of("chunks");
    return judge_plant(kernel, test, others).kind == MLA_VERDICT_PASS;
}

/* Asked before anything is judged: some apply to one case in a hundred. */
static bool applies(const struct mla_relation *relation, const struct mla_case *test)
{
    struct mla_tensors *tensors;
    struct mla_case varied = *test;
    struct mla_earlier earlier;
    char error[MLA_CASE_ERROR_MAX];
    varied.put_n = 0;
    if (relation->earlier != NULL)
        return relation->earlier(test, 0, &earlier);
    if (relation->vary == NULL)
        return true;
    assert_int_equal(mla_tensors_make(test, 0, &tensors, error), MLA_OK);
    enum mla_tie tie = relation->vary(tensors, &varied);
    mla_tensors_free(tensors);
    return tie != MLA_TIE_NONE;
}

static bool is_fatal(const struct plant *plant, const struct mla_relation *relation)
{
    struct mla_kernel kernel = *honest;
    kernel.ring = plant->depends == ON_COMPANY ? shared_ring : spoiled_ring;
    kernel.sparse = plant->depends == ON_COMPANY ? shared_sparse : spoiled_sparse;
    depends = plant->depends;
    gross = relation->promise == 0;
    for (uint64_t k = 0; k < SCAN_MAX; k++) {
        struct mla_case test = draw(plant->op, 9000000 + k);
        if (!applies(relation, &test))
            continue;
        if (is_caught(&kernel, plant, &test)) {
            printf("  %-6s %-15s needed on case %" PRIu64 "\n",
                   mla_case_op_name((int32_t)plant->op), plant->relation, k + 1);
            return true;
        }
    }
    return false;
}

static void test_each_catches_what_only_it_can(void **state)
{
    size_t n;
    const struct mla_relation *relations = mla_relations(&n);
    uint32_t tried = 0;
    (void)state;
    honest = mla_registry_find("scalar");
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        uint32_t bit = bit_of(plants[i].relation);
        bool watched = relations[__builtin_ctz(bit)].is_beside && MLA_THREADS_ARE_WATCHED;
        if (!watched && !is_fatal(&plants[i], &relations[__builtin_ctz(bit)]))
            fail_msg("plant %zu lives: %s on %s", i, plants[i].relation,
                     mla_case_op_name((int32_t)plants[i].op));
        tried |= bit;
    }
    assert_true(tried == (n == 32 ? UINT32_MAX : (1u << n) - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table),
        cmocka_unit_test(test_truths_agree),
        cmocka_unit_test(test_honest_kernels_keep_them),
        cmocka_unit_test(test_replaced_entry_is_not_hidden),
        cmocka_unit_test(test_no_bits_without_a_promise),
        cmocka_unit_test(test_unsupported_calls_are_not_looked_at),
        cmocka_unit_test(test_no_relation_makes_values_infinite),
        cmocka_unit_test(test_each_catches_what_only_it_can),
    };
    mla_guard_keep_heap();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
