/* SPDX-License-Identifier: Apache-2.0
 *
 * definition_test.c - the truth against closed forms worked out by hand.
 *
 * One key, equal scores, one dominant key, constant columns, duplicates, integers, the ends of the
 * exponent range, cancellation; then the row states, and that MPFR's thread state is left alone.
 */
#include "oracle/bf16.h"
#include "oracle/test_row.h"
#include "oracle/truth.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_DIM   64
#define HEAD_DIM_V 32

static uint16_t bf16(double x)
{
    return mla_oracle_test_bf16((float)x);
}

static struct mla_oracle_test_row *row_new(int64_t n, float scale)
{
    return mla_oracle_test_row_new(n, HEAD_DIM, HEAD_DIM_V, scale);
}

static void set_key(struct mla_oracle_test_row *row, int64_t j, int64_t column, double x)
{
    row->kv[j * HEAD_DIM + column] = bf16(x);
}

static struct mla_truth *truth_of(const struct mla_oracle_test_row *row)
{
    struct mla_truth *truth = NULL;

    assert_int_equal(mla_refuse_ring(&row->args).status, MLA_ERR_PARAM); /* no gathered, no out */
    assert_int_equal(mla_definition_ring(&row->args, row->row, &truth), MLA_OK);
    assert_non_null(truth);
    return truth;
}

/* |got - want| <= error; NaN fails. */
static void near(double got, double want, double error)
{
    if (!(fabs(got - want) <= error)) {
        print_error("got %a want %a\n", got, want);
        fail();
    }
}

static void one_key_is_copied(void **state)
{
    struct mla_oracle_test_row *row = row_new(1, 0.25f);
    struct mla_oracle_test_random random = {1};

    (void)state;
    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = bf16(mla_oracle_test_normal(&random));
        row->kv[i] = bf16(mla_oracle_test_normal(&random));
    }
    struct mla_truth *truth = truth_of(row);

    assert_int_equal(truth->state, MLA_ROW_OK);
    for (int64_t l = 0; l < HEAD_DIM_V; l++) {
        assert_true(truth->out[l] == (double)mla_oracle_test_value(row->kv[l]));
    }
    assert_true(truth->log_sum_exp == truth->max);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* q = 0: weights 1/5. Columns: 1 2 3 4 5 -> 3; 1 0 0 0 0 -> 0.2. LSE = ln 5. */
static void equal_scores_give_the_mean(void **state)
{
    struct mla_oracle_test_row *row = row_new(5, 1.0f);

    (void)state;
    for (int64_t j = 0; j < 5; j++) {
        set_key(row, j, 0, (double)(j + 1));
        set_key(row, j, 1, j == 0 ? 1.0 : 0.0);
    }
    struct mla_truth *truth = truth_of(row);
    const struct mla_truth_info info = mla_truth_info(truth);

    assert_int_equal(info.keys_n, 5);
    assert_int_equal(info.width, HEAD_DIM);
    assert_int_equal(info.columns_n, HEAD_DIM_V);
    near(truth->out[0], 3.0, 0.0);
    near(truth->out[1], 0.2, 0.0);
    near(truth->out[2], 0.0, 0.0);
    near(info.max, 0.0, 0.0);
    near(info.log_sum_exp, 0x1.9c041f7ed8d33p+0, 0.0); /* ln 5 */
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Score 3 for all, scale 0.5: M = 1.5, LSE = 1.5 + ln 4 = 2.886294361119890618834464... */
static void log_sum_exp_of_equal_scores(void **state)
{
    struct mla_oracle_test_row *row = row_new(4, 0.5f);

    (void)state;
    row->q[0] = bf16(2.0);
    for (int64_t j = 0; j < 4; j++) {
        set_key(row, j, 0, 1.5);
    }
    struct mla_truth *truth = truth_of(row);

    near(truth->max, 1.5, 0.0);
    near(truth->log_sum_exp, 2.8862943611198906, 0.0);
    near(truth->out[0], 1.5, 0.0);
    near(truth->weight[3], 0.25, 0x1p-50);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/*
 * Two keys, scores 0 and -ln-ish: scale 1, gap 2: w = 1/(1+e^-2) = 0.8807970779778824..., columns
 * 1, 0 and 0, 1 and 1, -1 (tanh 1 = 0.7615941559557649).
 */
static void two_keys(void **state)
{
    struct mla_oracle_test_row *row = row_new(2, 1.0f);

    (void)state;
    row->q[40] = bf16(1.0);
    set_key(row, 0, 40, 7.0);
    set_key(row, 1, 40, 5.0);
    set_key(row, 0, 0, 1.0);
    set_key(row, 1, 1, 1.0);
    set_key(row, 0, 2, 1.0);
    set_key(row, 1, 2, -1.0);
    struct mla_truth *truth = truth_of(row);

    near(truth->out[0], 0.88079707797788244406, 0x1p-53);
    near(truth->out[1], 0.11920292202211755594, 0x1p-56);
    near(truth->out[2], 0.76159415595576488812, 0x1p-53);
    near(truth->max, 7.0, 0.0);
    near(truth->log_sum_exp, 7.1269280110429725, 0x1p-50); /* 7 + ln(1 + e^-2) */
    near(truth->gap[1], 2.0, 0x1p-50);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* One key 128 above all others: their weight is e^-128 < 2^-184, so o rounds to its value. */
static void dominant_key_is_copied(void **state)
{
    struct mla_oracle_test_row *row = row_new(40, 1.0f);
    struct mla_oracle_test_random random = {3};

    (void)state;
    row->q[63] = bf16(1.0);
    for (int64_t i = 0; i < 40 * HEAD_DIM; i++) {
        row->kv[i] = bf16(mla_oracle_test_normal(&random));
    }
    for (int64_t j = 0; j < 40; j++) {
        set_key(row, j, 63, j == 17 ? 64.0 : -64.0);
    }
    struct mla_truth *truth = truth_of(row);

    for (int64_t l = 0; l < HEAD_DIM_V; l++) {
        assert_true(truth->out[l] == (double)mla_oracle_test_value(row->kv[17 * HEAD_DIM + l]));
    }
    near(truth->weight[0], 0x1p-184, 0x1p-184);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

static void constant_column_stays(void **state)
{
    struct mla_oracle_test_row *row = row_new(33, 0.0f);
    struct mla_oracle_test_random random = {4};

    (void)state;
    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = bf16(mla_oracle_test_normal(&random));
    }
    for (int64_t i = 0; i < 33 * HEAD_DIM; i++) {
        row->kv[i] = bf16(i % HEAD_DIM == 9 ? 1.7 : mla_oracle_test_normal(&random));
    }
    struct mla_truth *truth = truth_of(row);

    assert_true(truth->out[9] == (double)mla_oracle_test_value(bf16(1.7)));
    near(truth->out_radius[9], 0x1p-52, 0x1p-52);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Absent scale: (float)(1/sqrt(64)) = 0.125 exactly. */
static void absent_scale(void **state)
{
    struct mla_oracle_test_row *row = row_new(1, 0.0f);

    (void)state;
    row->q[0] = bf16(3.0);
    set_key(row, 0, 0, 5.0);
    struct mla_truth *truth = truth_of(row);

    near(truth->max, 1.875, 0.0);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/*
 * A score that only exact sums get right: 2^120 * 2^5 + 2^-100 * 2^-100 - 2^120 * 2^5 = 2^-200, and
 * 2^-133 * 2^-133 = 2^-266 beside it, over two keys. Then gap = 2^-200 - 2^-266 and M = 2^-200.
 */
static void cancelling_scores_are_exact(void **state)
{
    struct mla_oracle_test_row *row = row_new(2, 1.0f);

    (void)state;
    row->q[1] = bf16(0x1p120);
    row->q[2] = bf16(0x1p-100);
    row->q[3] = bf16(-0x1p120);
    row->q[4] = 1; /* 2^-133 */
    set_key(row, 0, 1, 32.0);
    set_key(row, 0, 2, 0x1p-100);
    set_key(row, 0, 3, 32.0);
    row->kv[HEAD_DIM + 4] = 1;
    struct mla_truth *truth = truth_of(row);

    assert_int_equal(truth->state, MLA_ROW_OK);
    near(truth->max, 0x1p-200, 0.0);
    near(truth->score[1], 0x1p-266, 0.0);
    near(truth->gap[1], 0x1p-200, 0x1p-252);
    assert_true(mpfr_cmp_ui_2exp(truth->exact_max, 1, -200) == 0);
    near(truth->magnitude[0], 0x1p126, 0x1p82);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Values cancel: w = 1/2 each of 1 and -1 + 2^-8 leave 2^-9; 2^-133 alone leaves 2^-134. */
static void values_at_the_ends(void **state)
{
    struct mla_oracle_test_row *row = row_new(2, 1.0f);

    (void)state;
    set_key(row, 0, 0, 1.0);
    set_key(row, 1, 0, -1.0 + 0x1p-8);
    row->kv[1] = 1;
    set_key(row, 0, 2, 0x1.fep125);
    set_key(row, 1, 2, 0x1.fep125);
    struct mla_truth *truth = truth_of(row);

    near(truth->out[0], 0x1p-9, 0.0);
    near(truth->out[1], 0x1p-134, 0.0);
    near(truth->out[2], 0x1.fep125, 0.0);
    assert_true(truth->has_subnormal_value);
    assert_true(truth->lost[0] == 0.0);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* A subnormal operand's product is counted as lost. */
static void lost_products(void **state)
{
    struct mla_oracle_test_row *row = row_new(1, 0.5f);

    (void)state;
    row->q[40] = bf16(0x1p-130);
    row->q[41] = bf16(8.0);
    set_key(row, 0, 40, 16.0);
    row->kv[41] = 0x8003; /* -3 * 2^-133 */
    row->q[42] = bf16(1.0);
    set_key(row, 0, 42, 1.0);
    struct mla_truth *truth = truth_of(row);

    near(truth->lost[0], 0.5 * (0x1p-126 + 24 * 0x1p-133), 0x1p-160);
    near(truth->magnitude[0], 0.5, 0x1p-40);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* A sparse row: duplicates weigh twice, k_pe scores only, columns in natural order. */
static void sparse_multiset(void **state)
{
    struct mla_oracle_test_random random = {8};
    uint16_t *q_lift = calloc(2 * 16 * 512, sizeof *q_lift);
    uint16_t *c_kv = calloc(4 * 512, sizeof *c_kv);
    uint16_t q_pe[2 * 16] = {0};
    uint16_t k_pe[4] = {0};
    int32_t indices[2 * 128];
    const struct mla_sparse_args args = {.struct_size = sizeof args,
                                         .batch = 1,
                                         .queries = 2,
                                         .keys = 4,
                                         .heads = 16,
                                         .latent = 512,
                                         .rope = 1,
                                         .topk = 128,
                                         .cores = 1,
                                         .softmax_scale = 1.0f,
                                         .q_lift = q_lift,
                                         .q_pe = q_pe,
                                         .c_kv = c_kv,
                                         .k_pe = k_pe,
                                         .topk_indices = indices};
    struct mla_truth *truth;

    (void)state;
    assert_non_null(q_lift);
    assert_non_null(c_kv);
    for (int j = 0; j < 128; j++) { /* row 1: 96 copies of key 2, 32 of key 3 */
        indices[j] = 0;
        indices[128 + j] = j % 4 == 0 ? 3 : 2;
    }
    for (int i = 0; i < 4 * 512; i++) {
        c_kv[i] = bf16(mla_oracle_test_normal(&random));
    }
    c_kv[2 * 512 + 100] = bf16(4.0);
    c_kv[3 * 512 + 100] = bf16(8.0);
    c_kv[0] = 0x7fc0; /* no index of row 1 names key 0 */
    assert_int_equal(mla_definition_sparse(&args, (struct mla_row){.head = 5, .row = 1}, &truth),
                     MLA_OK);
    assert_int_equal(mla_truth_info(truth).state, MLA_ROW_OK);
    assert_int_equal(mla_truth_info(truth).width, 513);
    near(truth->out[100], 5.0, 0.0);                      /* (96*4 + 32*8) / 128 */
    near(truth->log_sum_exp, 4.852030263919617, 0x1p-50); /* ln 128 */
    mla_truth_free(truth);

    q_pe[16 + 5] = bf16(1.0); /* key 3 scores 128 more: it alone is left */
    k_pe[3] = bf16(128.0);
    assert_int_equal(mla_definition_sparse(&args, (struct mla_row){.head = 5, .row = 1}, &truth),
                     MLA_OK);
    near(truth->out[100], 8.0, 0.0);
    near(truth->max, 128.0, 0.0);
    mla_truth_free(truth);

    k_pe[2] = 0x7f80; /* Inf in a visible key's rope part */
    assert_int_equal(mla_definition_sparse(&args, (struct mla_row){.head = 5, .row = 1}, &truth),
                     MLA_OK);
    assert_int_equal(mla_truth_info(truth).state, MLA_ROW_NONFINITE);
    mla_truth_free(truth);

    assert_int_equal(mla_definition_sparse(&args, (struct mla_row){.head = 16}, &truth),
                     MLA_ERR_PARAM);
    assert_null(truth);
    assert_int_equal(mla_definition_sparse(&args, (struct mla_row){.row = 2}, &truth),
                     MLA_ERR_PARAM);
    assert_int_equal(mla_definition_sparse(&args, (struct mla_row){.rank = 1}, &truth),
                     MLA_ERR_PARAM);
    free(c_kv);
    free(q_lift);
}

static int32_t state_of(const struct mla_oracle_test_row *row)
{
    struct mla_truth *truth = truth_of(row);
    const int32_t state = mla_truth_info(truth).state;

    mla_truth_free(truth);
    return state;
}

static void non_finite_rows(void **state)
{
    struct mla_oracle_test_row *row = row_new(3, 1.0f);

    (void)state;
    row->kv[3 * HEAD_DIM] = 0x7fc0; /* a key the row does not see */
    row->q_all[0] = 0x7f80;         /* another query row */
    assert_int_equal(state_of(row), MLA_ROW_OK);
    row->kv[HEAD_DIM + 63] = 0xff80; /* beyond the value columns, but of a visible key */
    assert_int_equal(state_of(row), MLA_ROW_NONFINITE);
    row->kv[HEAD_DIM + 63] = 0;
    row->q[0] = 0x7f81;
    assert_int_equal(state_of(row), MLA_ROW_NONFINITE);
    mla_oracle_test_row_free(row);
}

/* FLT_MAX / 2 is 2^127 (1 - 2^-24). */
static void rows_out_of_range(void **state)
{
    struct mla_oracle_test_row *row = row_new(2, 1.0f);

    (void)state;
    set_key(row, 0, 0, 0x1.fep126);
    assert_int_equal(state_of(row), MLA_ROW_OK);
    set_key(row, 1, 0, -0x1.0p122); /* sum of |v| now 0x1.0ep127 > FLT_MAX/2 */
    assert_int_equal(state_of(row), MLA_ROW_RANGE);
    set_key(row, 1, 0, 0.0);
    set_key(row, 0, 0, 0.0);
    row->q[40] = bf16(0x1p64);
    set_key(row, 0, 40, 0x1p62);
    assert_int_equal(state_of(row), MLA_ROW_OK);
    set_key(row, 0, 40, -0x1p63);
    assert_int_equal(state_of(row), MLA_ROW_RANGE);
    set_key(row, 0, 40, 0x1p62);
    row->args.scale = 2.0f;
    assert_int_equal(state_of(row), MLA_ROW_RANGE);
    mla_oracle_test_row_free(row);
}

/* A ring with a prior length: a pad row is empty, its garbage query unread. */
static void pad_row_is_empty(void **state)
{
    struct mla_oracle_test_row *row = row_new(64, 1.0f);
    struct mla_truth *truth;

    (void)state;
    row->args.q_rows = 32;
    row->args.has_prior = 1;
    row->args.kv_actual_isl = 0;
    row->args.logical_n = 32;
    row->args.ring_size = 1;
    assert_int_equal(mla_definition_ring(&row->args, (struct mla_row){.row = 31}, &truth), MLA_OK);
    assert_int_equal(truth->state, MLA_ROW_OK);
    assert_int_equal(truth->keys_n, 32);
    mla_truth_free(truth);

    /* Two ranks: rank 1 owns no token. */
    const uint16_t *q[2] = {row->q_all, row->q_all};
    const uint16_t *kv[2] = {row->kv, row->kv};

    row->args.ring_size = 2;
    row->args.q = q;
    row->args.kv = kv;
    row->q_all[0] = 0x7fc0;
    assert_int_equal(mla_definition_ring(&row->args, (struct mla_row){.rank = 1}, &truth), MLA_OK);
    assert_int_equal(mla_truth_info(truth).state, MLA_ROW_EMPTY);
    assert_int_equal(mla_truth_info(truth).keys_n, 0);
    assert_true(isinf(mla_truth_info(truth).max));
    mla_truth_free(truth);
    assert_int_equal(mla_definition_ring(&row->args, (struct mla_row){.rank = 2}, &truth),
                     MLA_ERR_PARAM);
    mla_oracle_test_row_free(row);
}

/*
 * Two ranks, batches, heads and 32 rows each. Keys of rank s, batch b hold 1 + s + 2b in column 0
 * and 1 in column 40; the query of (rank, batch, head, row 3) holds 1 + rank + 2 batch + 4 head
 * there. Row 3 of rank 1 sees 32 keys of rank 0 and 4 of its own.
 */
static void rows_are_found(void **state)
{
    const size_t kv_n = 2 * 32 * HEAD_DIM;
    uint16_t *kv = calloc(2 * kv_n, sizeof *kv);
    uint16_t *q = calloc(4 * kv_n, sizeof *q);
    const uint16_t *kv_pointers[2] = {kv, kv + kv_n};
    const uint16_t *q_pointers[2] = {q, q + 2 * kv_n};
    struct mla_oracle_test_row *row = row_new(32, 1.0f);
    struct mla_truth *truth;

    (void)state;
    assert_non_null(kv);
    assert_non_null(q);
    for (size_t key = 0; key < 128; key++) { /* [rank][batch][row] */
        kv[key * HEAD_DIM] = bf16(1.0 + (double)(key / 64) + 2.0 * (double)(key / 32 % 2));
        kv[key * HEAD_DIM + 40] = bf16(1.0);
    }
    for (size_t i = 0; i < 8; i++) { /* [rank][batch][head] */
        q[(i * 32 + 3) * HEAD_DIM + 40] =
            bf16(1.0 + (double)(i / 4) + 2.0 * (double)(i / 2 % 2) + 4.0 * (double)(i % 2));
    }
    row->args.ring_size = 2;
    row->args.batch = 2;
    row->args.heads = 2;
    row->args.kv_batch = 2;
    row->args.logical_n = 64;
    row->args.q = q_pointers;
    row->args.kv = kv_pointers;
    for (int64_t i = 0; i < 4; i++) {
        const int64_t batch = i / 2;
        const int64_t head = i % 2;

        assert_int_equal(
            mla_definition_ring(&row->args, (struct mla_row){1, batch, head, 3}, &truth), MLA_OK);
        assert_int_equal(truth->keys_n, 36);
        assert_int_equal(mla_oracle_chunks(truth, &(struct mla_model){0}, NULL), 2);
        near(truth->max, 2.0 + 2.0 * (double)batch + 4.0 * (double)head, 0.0);
        near(truth->out[0], 1.0 + 2.0 * (double)batch + 4.0 / 36.0, 0x1p-50);
        mla_truth_free(truth);
    }
    row->args.batch =
        1; /* slot 1 of the cache; the queries of rank 1 are then heads 0, 1 of batch 0 */
    row->args.has_slot = 1;
    row->args.kv_cache_batch_idx = 1;
    assert_int_equal(mla_definition_ring(&row->args, (struct mla_row){1, 0, 1, 3}, &truth), MLA_OK);
    near(truth->max, 6.0, 0.0);
    near(truth->out[0], 3.0 + 4.0 / 36.0, 0x1p-50);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
    free(q);
    free(kv);
}

/* Random rows against long double: another arithmetic, another order, coarser but independent. */
static void agrees_with_long_double(void **state)
{
    struct mla_oracle_test_random random = {77};

    (void)state;
    for (int trial = 0; trial < 40; trial++) {
        const int64_t n = 1 + trial * 3;
        struct mla_oracle_test_row *row = row_new(n, 0.7f);
        long double *x = calloc((size_t)n, sizeof *x);
        long double max = -INFINITY;
        long double z = 0.0L;

        assert_non_null(x);
        for (int64_t i = 0; i < HEAD_DIM; i++) {
            row->q[i] = bf16(mla_oracle_test_normal(&random));
        }
        for (int64_t i = 0; i < n * HEAD_DIM; i++) {
            row->kv[i] = bf16(mla_oracle_test_normal(&random));
        }
        for (int64_t j = n - 1; j >= 0; j--) {
            for (int64_t i = HEAD_DIM - 1; i >= 0; i--) {
                x[j] += (long double)mla_oracle_test_value(row->q[i]) *
                        (long double)mla_oracle_test_value(row->kv[j * HEAD_DIM + i]);
            }
            x[j] *= 0.7f;
            max = x[j] > max ? x[j] : max;
        }
        for (int64_t j = 0; j < n; j++) {
            z += expl(x[j] - max);
        }
        struct mla_truth *truth = truth_of(row);

        near(truth->log_sum_exp, (double)(max + logl(z)), 0x1p-48);
        for (int64_t l = 0; l < HEAD_DIM_V; l++) {
            long double o = 0.0L;

            for (int64_t j = 0; j < n; j++) {
                o += expl(x[j] - max) / z * mla_oracle_test_value(row->kv[j * HEAD_DIM + l]);
            }
            near(truth->out[l], (double)o, 0x1p-49);
        }
        mla_truth_free(truth);
        free(x);
        mla_oracle_test_row_free(row);
    }
}

struct job {
    const struct mla_oracle_test_row *row;
    double out[HEAD_DIM_V];
    bool ok;
};

static void *run_job(void *argument)
{
    struct job *job = argument;

    job->ok = true;
    for (int i = 0; i < 20; i++) {
        struct mla_truth *truth = NULL;

        job->ok = mla_definition_ring(&job->row->args, job->row->row, &truth) == MLA_OK && job->ok;
        if (truth != NULL) {
            memcpy(job->out, truth->out, sizeof job->out);
        }
        mla_truth_free(truth);
    }
    mla_oracle_thread_done();
    return NULL;
}

/* Three threads on the same row give what one gives. */
static void threads_do_not_disturb(void **state)
{
    struct mla_oracle_test_row *row = row_new(60, 0.5f);
    struct mla_oracle_test_random random = {9};
    struct job jobs[3];
    pthread_t threads[3];

    (void)state;
    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = bf16(mla_oracle_test_normal(&random));
    }
    for (int64_t i = 0; i < 60 * HEAD_DIM; i++) {
        row->kv[i] = bf16(mla_oracle_test_normal(&random));
    }
    struct mla_truth *truth = truth_of(row);

    for (int i = 0; i < 3; i++) {
        jobs[i].row = row;
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].ok);
        assert_memory_equal(jobs[i].out, truth->out, sizeof jobs[i].out);
    }
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* The thread's MPFR settings are as they were, and do not disturb. */
static void mpfr_state_is_kept(void **state)
{
    struct mla_oracle_test_row *row = row_new(2, 1.0f);

    (void)state;
    row->q[0] = bf16(1.0);
    set_key(row, 0, 0, 100.0);
    assert_int_equal(mpfr_set_emin(-10), 0);
    assert_int_equal(mpfr_set_emax(10), 0);
    mpfr_set_default_prec(77);
    mpfr_clear_flags();
    struct mla_truth *truth = truth_of(row);

    near(truth->log_sum_exp, 100.0, 0.0);
    assert_int_equal(mpfr_get_emin(), -10);
    assert_int_equal(mpfr_get_emax(), 10);
    assert_int_equal(mpfr_get_default_prec(), 77);
    assert_int_equal(mpfr_flags_save(), 0);
    (void)mpfr_set_emin(mpfr_get_emin_min());
    (void)mpfr_set_emax(mpfr_get_emax_max());
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Every bf16 survives the round trip; midpoints, neighbours and the ends go where they must. */
static void bf16_rounding(void **state)
{
    static const struct {
        double x;
        uint16_t nearest;
        uint16_t truncated;
    } lines[] = {
        {1.0 + 0x1p-8, 0x3f80, 0x3f80},        /* tie to even: down */
        {1.0 + 3 * 0x1p-8, 0x3f82, 0x3f81},    /* tie to even: up */
        {1.0 + 0x1.001p-8, 0x3f81, 0x3f80},    /* just above the tie */
        {-1.0 - 0x1.fffp-8, 0xbf81, 0xbf80},   /* */
        {2.0 - 0x1p-9, 0x4000, 0x3fff},        /* into the next binade */
        {0x1p-134, 0x0000, 0x0000},            /* half the smallest: tie to zero */
        {0x1.000001p-134, 0x0001, 0x0000},     /* */
        {-0x1.8p-133, 0x8002, 0x8001},         /* tie to even among subnormals */
        {0x1p-126 - 0x1p-135, 0x0080, 0x007f}, /* into the normal range */
        {0x1.fep127, 0x7f7f, 0x7f7f},          /* largest */
        {0x1.fefffp127, 0x7f7f, 0x7f7f},       /* below the overflow tie */
        {0x1.ffp127, 0x7f80, 0x7f7f},          /* on it */
        {0x1.ffffffp127, 0x7f80, 0x7f80},      /* binary32 overflows */
        {-INFINITY, 0xff80, 0xff80},           /* */
        {0x1p-1074, 0x0000, 0x0000},           /* */
    };

    (void)state;
    for (uint32_t b = 0; b < 0x10000u; b++) {
        const double x = mla_oracle_bf16_value((uint16_t)b);

        if (isnan(x)) {
            assert_int_equal(mla_oracle_bf16_nearest(x), 0x7fc0);
            assert_int_equal(mla_oracle_bf16_truncate(x), 0x7fc0);
            continue;
        }
        assert_int_equal(mla_oracle_bf16_nearest(x), b);
        assert_int_equal(mla_oracle_bf16_truncate(x), b);
        if (isfinite(x)) {
            assert_true(ldexp(mla_oracle_bf16_mantissa((uint16_t)b),
                              mla_oracle_bf16_exponent((uint16_t)b)) == x);
        }
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(mla_oracle_bf16_nearest(lines[i].x), lines[i].nearest);
        assert_int_equal(mla_oracle_bf16_truncate(lines[i].x), lines[i].truncated);
    }
}

static void versions(void **state)
{
    char text[128];
    char shorter[5];

    (void)state;
    assert_true(mla_oracle_versions(text, sizeof text));
    assert_non_null(strstr(text, "MPFR "));
    assert_non_null(strstr(text, "GMP "));
    assert_true(mla_oracle_versions(shorter, sizeof shorter));
    assert_string_equal(shorter, "MPFR");
    assert_true(mla_oracle_versions(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_key_is_copied),
        cmocka_unit_test(equal_scores_give_the_mean),
        cmocka_unit_test(log_sum_exp_of_equal_scores),
        cmocka_unit_test(two_keys),
        cmocka_unit_test(dominant_key_is_copied),
        cmocka_unit_test(constant_column_stays),
        cmocka_unit_test(absent_scale),
        cmocka_unit_test(cancelling_scores_are_exact),
        cmocka_unit_test(values_at_the_ends),
        cmocka_unit_test(lost_products),
        cmocka_unit_test(sparse_multiset),
        cmocka_unit_test(non_finite_rows),
        cmocka_unit_test(rows_out_of_range),
        cmocka_unit_test(pad_row_is_empty),
        cmocka_unit_test(rows_are_found),
        cmocka_unit_test(agrees_with_long_double),
        cmocka_unit_test(threads_do_not_disturb),
        cmocka_unit_test(mpfr_state_is_kept),
        cmocka_unit_test(bf16_rounding),
        cmocka_unit_test(versions),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    mla_oracle_thread_done();
    return failed;
}
