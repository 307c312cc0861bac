/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_test.c - the accepted set against closed forms, and its small duties.
 *
 * With one source of error and a row simple enough, the set's half width is known: it is written
 * out here. Whether the set holds for every conforming kernel and rejects broken ones is
 * bound_toy_test.c.
 */
#include "oracle/test_row.h"
#include "oracle/wide.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_DIM   64
#define HEAD_DIM_V 32

/* An arithmetic without errors; tests add one. */
static const struct mla_model exact_model = {0};

static uint16_t bf16(double x)
{
    return mla_oracle_test_bf16((float)x);
}

static struct mla_oracle_test_row *row_new(int64_t n)
{
    return mla_oracle_test_row_new(n, HEAD_DIM, HEAD_DIM_V, 1.0f);
}

static void set_key(struct mla_oracle_test_row *row, int64_t j, int64_t column, double x)
{
    row->kv[j * HEAD_DIM + column] = bf16(x);
}

static struct mla_truth *truth_of(const struct mla_oracle_test_row *row)
{
    struct mla_truth *truth = NULL;

    assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
    return truth;
}

/* The same bits without wider vector units. */
static void same_without_width(const struct mla_truth *truth, const struct mla_model *model,
                               const struct mla_bound *wide)
{
    struct mla_bound narrow[HEAD_DIM_V];

    mla_oracle_allow_wide(false);
    assert_int_equal(mla_bound_row(truth, model, narrow), MLA_BOUND_OK);
    mla_oracle_allow_wide(true);
    for (int64_t l = 0; l < HEAD_DIM_V; l++) {
        assert_memory_equal(&narrow[l].low, &wide[l].low, sizeof(double));
        assert_memory_equal(&narrow[l].high, &wide[l].high, sizeof(double));
    }
}

/* The bounds of a row under a model, which must be judged. */
static void bounds_of(const struct mla_oracle_test_row *row, const struct mla_model *model,
                      struct mla_bound *bounds)
{
    struct mla_truth *truth = truth_of(row);

    assert_null(mla_bound_model_error(model, true));
    assert_int_equal(mla_bound_row(truth, model, bounds), MLA_BOUND_OK);
    same_without_width(truth, model, bounds);
    mla_truth_free(truth);
}

static struct mla_bound_stats stats_of(const struct mla_oracle_test_row *row,
                                       const struct mla_model *model)
{
    struct mla_truth *truth = truth_of(row);
    struct mla_bound_stats stats;

    assert_int_equal(mla_bound_stats(truth, model, &stats), MLA_BOUND_OK);
    mla_truth_free(truth);
    return stats;
}

/* A product that is not 0: sums with it may underflow, which a sum of zeros does not. */
static void set_product(struct mla_oracle_test_row *row, int64_t key)
{
    row->q[41] = bf16(0x1p-120);
    set_key(row, key, 41, 0x1p-60);
}

/* want <= got <= want * (1 + slack); NaN fails. */
static void just_above(double got, double want, double slack)
{
    if (!(got >= want && got <= want * (1.0 + slack))) {
        print_error("got %a want %a\n", got, want);
        fail();
    }
}

/* Two keys of equal score; column 0 holds 1 and -1, column 1 holds 1 and 1. */
static struct mla_oracle_test_row *pair(void)
{
    struct mla_oracle_test_row *row = row_new(2);

    set_key(row, 0, 0, 1.0);
    set_key(row, 1, 0, -1.0);
    set_key(row, 0, 1, 1.0);
    set_key(row, 1, 1, 1.0);
    return row;
}

/* No error declared: the set is the correctly rounded result alone. */
static void exact_arithmetic_has_one_result(void **state)
{
    struct mla_oracle_test_row *row = row_new(40);
    struct mla_oracle_test_random random = {5};
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    for (int64_t i = 0; i < 40 * HEAD_DIM; i++) {
        row->kv[i] = bf16(mla_oracle_test_normal(&random));
    }
    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = bf16(0.2 * mla_oracle_test_normal(&random));
    }
    bounds_of(row, &exact_model, bounds);
    for (int64_t l = 0; l < HEAD_DIM_V; l++) {
        assert_true(bounds[l].lo == bounds[l].hi);
        assert_true(bounds[l].lo == mla_oracle_test_value(bounds[l].nearest));
        assert_true(fabs((double)bounds[l].lo - bounds[l].o) <= 0x1p-8 * fabs(bounds[l].o));
        assert_true(bounds[l].radius > 0.0 && bounds[l].radius < 1e-12);
    }
    mla_oracle_test_row_free(row);
}

/*
 * Exponential off by e: weights 1/2 (1 +- d), so column 0 may reach d, and column 1, where the
 * values agree, stays. d = e/(1-e)^2: the logarithm of the factor is known to -ln(1-e) only, and
 * the denominator may be 1-e. The sum may be off by e: the log-sum-exp by -ln(1-e).
 */
static void exponential_error(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    model.exp_error = 0x1p-8;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, 0x1p-8 / ((1 - 0x1p-8) * (1 - 0x1p-8)), 1e-12);
    assert_true(bounds[1].radius < 1e-12);
    assert_true(bounds[1].lo == 1.0f && bounds[1].hi == 1.0f);
    just_above(stats_of(row, &model).lse_radius, -log1p(-0x1p-8), 1e-9);
    mla_oracle_test_row_free(row);
}

/*
 * p rounded by u. A sum of unrounded p: both columns may be off by u. A sum of rounded p: an error
 * of both weights cancels in column 1; column 0 as with the exponential, 1-Gl = 1-u.
 */
static void rounding_of_p(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    model.p_u = 0x1p-8;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, 0x1p-8, 1e-12);
    just_above(bounds[1].radius, 0x1p-8, 1e-12);
    assert_true(stats_of(row, &model).lse_radius < 1e-12);
    model.sum_rounded = 1;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, 0x1p-8 / (1 - 0x1p-8), 1e-12);
    assert_true(bounds[1].radius < 1e-12);
    just_above(stats_of(row, &model).lse_radius, -log1p(-0x1p-8), 1e-9);
    mla_oracle_test_row_free(row);
}

/* Two keys, acc_depth 3 + 2*keys = 7: mu = nu = (1+u)^7 - 1; column 1 is off by 2 mu / (1-u)^7. */
static void accumulator_roundings(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];
    const double mu = pow(1 + 0x1p-20, 7) - 1;

    (void)state;
    model.add_u = 0x1p-20;
    model.acc_depth = (struct mla_depth){.constant = 3, .per_key = 2};
    bounds_of(row, &model, bounds);
    just_above(bounds[1].radius, 2 * mu / pow(1 - 0x1p-20, 7), 1e-8);
    just_above(bounds[0].radius, mu / pow(1 - 0x1p-20, 7), 1e-8);
    model.div_roundings = 2; /* adds (1+u)^2 - 1 times what column 1 can be */
    bounds_of(row, &model, bounds);
    just_above(bounds[1].radius, 2 * mu + 0x1p-19, 1e-4);
    mla_oracle_test_row_free(row);
}

/* Every depth term counts as it says: constant + width + keys + blocks, 33 keys in blocks of 16; the
 * call's k_chunk_size is 32, and all keys are in one shard. */
static void depth_terms(void **state)
{
    static const struct {
        struct mla_depth depth;
        double want;
        int32_t shard_block_keys;
    } lines[] = {
        {{.constant = 5}, 5, 0},
        {{.per_width = 2}, 128, 0},
        {{.per_key = 1}, 33, 0},
        {{.per_block = 1, .block_keys = 16}, 3, 0},
        {{.per_block = 2, .block_keys = 0}, 4, 0},
        {{.constant = 1, .per_width = 1, .per_key = 1, .per_block = 1, .block_keys = 11}, 101, 0},
        {{.per_key = 1, .most_keys = 32}, 32, 0},
        {{.per_key = 3, .most_keys = 7}, 21, 0},
        {{.per_key = 1, .most_keys = 33}, 33, 0},
        {{.per_key = 1, .most_keys = INT32_MAX}, 33, 0},
        {{.constant = -3, .per_key = 1, .per_block = 2, .block_keys = 8, .most_keys = 8}, 15, 0},
        {{.per_block = 2, .block_keys = 0}, 6, 12}, /* 12, 12 and 9 rows */
        {{.per_block = 1, .block_keys = 0}, 1, 33},
        {{.per_block = 1, .block_keys = 16}, 3, 5}, /* blocks of a length of their own */
        {{.constant = -2, .per_key = 1, .per_block = 1, .most_keys = 10}, 12, 10},
    };
    struct mla_oracle_test_row *row = row_new(33);
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    for (int64_t j = 0; j < 33; j++) {
        set_key(row, j, 0, 1.0);
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct mla_model model = exact_model;

        model.add_u = 0x1p-30;
        model.acc_depth = lines[i].depth;
        model.shard_block_keys = lines[i].shard_block_keys;
        bounds_of(row, &model, bounds);
        just_above(bounds[0].radius, 2 * lines[i].want * 0x1p-30, 1e-6);
    }
    mla_oracle_test_row_free(row);
}

/*
 * Two keys of score 6*8 and -6*8 apart: q = 6 in one column, keys +8 and -8; the smaller weight is
 * e^-96. Flat twin: keys +8, +8, so A_j = 48 and scores agree. A score error of c additions of u
 * gives eps = P A; column 0 moves by tanh-like expm1(eps) / e^-eps.
 */
static void score_roundings(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    row->q[40] = bf16(6.0);
    set_key(row, 0, 40, 8.0);
    set_key(row, 1, 40, 8.0);
    model.add_u = 0x1p-24;
    model.score_depth.per_width = 1;
    double eps = 48 * (pow(1 + 0x1p-24, 64) - 1);

    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, expm1(eps) / exp(-eps), 1e-8);
    model.score_depth.per_width = 0;
    model.product_u = 0x1p-12;
    eps = 48 * 0x1p-12;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, expm1(eps) / exp(-eps), 1e-8);
    model.product_u = 0;
    model.score_u = 0x1p-12;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, expm1(eps) / exp(-eps), 1e-8);
    just_above(stats_of(row, &model).max_hi, 48 + eps, 1e-12);
    just_above(-stats_of(row, &model).max_lo, -48 + eps, -1e-12);
    mla_oracle_test_row_free(row);
}

/*
 * One argument rounding g = u on scores 48 and 47 (gap 1): difference g*gap, scaled g (48 + gap),
 * mixed g (48 + 48). The test reads the error back from the log-sum-exp: with w1 = 1/(1+e), key 1
 * alone off by d and key 0 by d0 the sum is off by w0 d0 + w1 d.
 */
static void argument_forms(void **state)
{
    struct mla_oracle_test_row *row = row_new(2);
    struct mla_model model = exact_model;
    const double u = 0x1p-20;
    const double w1 = 1 / (1 + exp(1.0));
    const double w0 = 1 - w1;

    (void)state;
    row->q[40] = bf16(1.0);
    set_key(row, 0, 40, 48.0);
    set_key(row, 1, 40, 47.0);
    model.add_u = u;
    model.arg_roundings = 1;
    just_above(stats_of(row, &model).lse_radius, u * w1, 1e-4);
    model.arg_form = MLA_ARG_SCALED;
    just_above(stats_of(row, &model).lse_radius, u * (48 * w0 + 48 * w1), 1e-3);
    model.arg_form =
        MLA_ARG_MIXED; /* and the frame's own 48 u: the reported shift is another one */
    just_above(stats_of(row, &model).lse_radius, u * (96 * w0 + 95 * w1 + 48), 1e-3);
    model.rescales.constant = 1;
    just_above(stats_of(row, &model).lse_radius, u * (96 * 2 * w0 + (95 + 96) * w1 + 48), 1e-3);
    model.arg_form = MLA_ARG_DIFFERENCE;
    model.rescale_scale_u = 0x1p-10;
    just_above(stats_of(row, &model).lse_radius, (u + 0x1p-10) * w1, 2e-3);
    model.rescale_scale_u = 0;
    model.alpha_u = 0x1p-12; /* one rescale factor more or less for both keys */
    just_above(stats_of(row, &model).lse_radius, 0x1p-12 + u * w1, 1e-3);
    model.alpha_u = 0;
    model.stats_max = MLA_STATS_ROUNDED;
    just_above(stats_of(row, &model).lse_radius, u * (w1 + 48), 1e-3);
    just_above(stats_of(row, &model).max_hi - 48, 48 * u, 1e-3);
    model.stats_max = MLA_STATS_OTHER;
    assert_true(isinf(stats_of(row, &model).max_lo));
    mla_oracle_test_row_free(row);
}

/*
 * The exact end. One key of value 1, 32 stored roundings of 2^-8: the quotient of two products of
 * factors 1 +- 2^-8 lies in [(255/257)^32, (257/255)^32] = [0.778801.., 1.284027..].
 */
static void exact_end(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];
    const double top = pow(257.0 / 255.0, 32);

    (void)state;
    set_key(row, 0, 0, 1.0);
    set_key(row, 0, 1, -1.0);
    model.acc_u = 0x1p-8;
    model.acc_extra.constant = 32;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, top - 1, 1e-10);
    just_above(bounds[1].radius, top - 1, 1e-10);
    assert_true(bounds[0].hi == mla_oracle_test_value(bf16(1.284027)));
    assert_true(bounds[0].lo == mla_oracle_test_value(bf16(0.778801)));
    assert_true(bounds[1].lo == mla_oracle_test_value(bf16(-1.284027)));
    assert_true(bounds[1].hi == mla_oracle_test_value(bf16(-0.778801)));
    mla_oracle_test_row_free(row);
}

/*
 * Scores so uncertain (2^-4 of 1e4) that the weights are free: the result is still a weighted mean
 * of values 1 and 3, and nothing outside [1, 3] is accepted.
 */
static void uncertain_weights_still_average(void **state)
{
    struct mla_oracle_test_row *row = row_new(2);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    row->q[40] = bf16(1.0);
    set_key(row, 0, 40, 9984.0);
    set_key(row, 1, 40, 9984.0);
    set_key(row, 0, 0, 1.0);
    set_key(row, 1, 0, 3.0);
    model.score_u = 0x1p-9; /* 19.5 either way */
    bounds_of(row, &model, bounds);
    just_above(bounds[0].o, 2.0, 0.0);
    assert_true(bounds[0].lo == 1.0f && bounds[0].hi == 3.0f);
    just_above(bounds[0].radius, 0.999, 0.002);
    mla_oracle_test_row_free(row);
}

/*
 * A key of no weight with an unbounded argument error is no obstacle: gap 2^100, one argument
 * rounding of 2^-24 of it is 2^76, yet the weight stays 0.
 */
static void hopeless_key_is_harmless(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    row->q[40] = bf16(0x1p50);
    set_key(row, 1, 40, -0x1p50);
    model.add_u = 0x1p-24;
    model.arg_roundings = 2;
    model.div_roundings = 1;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, 0x1p-24, 1e-6);
    assert_true(bounds[0].lo == 1.0f && bounds[0].hi == 1.0f);
    mla_oracle_test_row_free(row);
}

/* Flushed values: 2^-130 may become 0, and is not lost without flush. */
static void flushing(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    set_key(row, 0, 0, 0x1p-130);
    set_key(row, 0, 1, 0x1p-120);
    bounds_of(row, &model, bounds);
    assert_true(bounds[0].lo == 0x1p-130f && bounds[0].hi == 0x1p-130f);
    model.flush = 1;
    bounds_of(row, &model, bounds);
    assert_true(bounds[0].lo <= 0.0f && bounds[0].hi >= 0x1p-130f);
    assert_true(bounds[0].lo > -0x1p-120f);
    assert_true(bounds[1].lo > 0x1p-121f);
    mla_oracle_test_row_free(row);
}

/*
 * Underflow, without flush f = 2^-149. Nine divisions and a store: 10 f; the accumulators of one
 * key without rescales: 4 f. A score of 64 products and as many additions, scaled by 2^120: 129 f
 * 2^120.
 */
static void underflow(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    set_key(row, 0, 0, 0x1p-133);
    model.div_roundings = 9;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, 14 * 0x1p-149, 1e-6);
    row->args.scale = 0x1p120f;
    assert_true(stats_of(row, &exact_model).lse_radius < 0x1p-40); /* 0 times 0 loses nothing */
    set_product(row, 0);
    just_above(stats_of(row, &exact_model).lse_radius, 129 * 0x1p-29, 1e-6);

    /* A subnormal part of the query flushed: 2^-130 * 2^100 * 2^31 = 2 is missing from the score.
     */
    row->args.scale = 0x1p31f;
    row->q[40] = bf16(0x1p-130);
    set_key(row, 0, 40, 0x1p100);
    model = exact_model;
    just_above(1.0 + stats_of(row, &model).lse_radius, 1.0, 1e-6);
    model.flush = 1;
    just_above(stats_of(row, &model).lse_radius, 2.0, 1e-6);
    mla_oracle_test_row_free(row);
}

/* An exponential that may return 0 below 2^-20: 2^-20 of each of two keys may be missing, thrice.
 */
static void exponential_floor(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    model.exp_floor = 0x1p-20;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, 3 * 0x1p-20, 1e-4); /* each key: 3 * 2^-20 / Z, two keys, Z = 2 */
    mla_oracle_test_row_free(row);
}

/*
 * Accumulators of 8 bits, rounded in one direction (add_u = 2^-7), have the spacing 2^-133 below
 * 2^-126: each of 1 + 4 roundings of one key loses up to that, where binary32 loses 2^-149. The
 * value and the relative errors (2^-7 of 2^-133) are far smaller. Scores likewise: 129 times
 * 2^-133, scaled by 2^110.
 */
static void floors_of_a_coarse_format(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    set_key(row, 0, 0, 0x1p-133);
    model.add_u = 0x1p-7;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, 5 * 0x1p-133, 1e-6);
    row->args.scale = 0x1p110f;
    set_product(row, 0);
    just_above(stats_of(row, &model).lse_radius, 129 * 0x1p-23, 1e-6);
    mla_oracle_test_row_free(row);
}

/* The largest subnormal, 127/128 of 2^-126, flushed on its way in: besides the 4 + 1 roundings. */
static void flushed_value_is_lost(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    row->kv[0] = 0x007f;
    model.flush = 1;
    bounds_of(row, &model, bounds);
    just_above(bounds[0].radius, (5 + 127.0 / 128.0) * 0x1p-126, 1e-6);
    just_above(bounds[1].radius, 5 * 0x1p-126, 1e-6); /* 0 has nothing to lose */
    mla_oracle_test_row_free(row);
}

/* 100 argument roundings in each of 2 rescales and the key's own, scaled by 2^120: 300 f 2^120
 * besides the score's 129. */
static void underflow_of_arguments(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;

    (void)state;
    row->args.scale = 0x1p120f;
    set_product(row, 0);
    model.arg_roundings = 100;
    model.rescales.constant = 2;
    just_above(stats_of(row, &model).lse_radius, (129 + 300) * 0x1p-29, 1e-6);
    mla_oracle_test_row_free(row);
}

/*
 * A scale of 2^-130, times log2(e) say, keeps 20 bits: 2^-19 of the argument's 2^-5 may be wrong.
 * Of 2^-149 nothing is left, and the row is out of range, as it is below 2^-126 if flushed.
 */
static void subnormal_scale(void **state)
{
    struct mla_oracle_test_row *row = row_new(2);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];
    const double w1 = 1 / (1 + exp(0x1p-5));
    struct mla_truth *truth;

    (void)state;
    row->q[40] = bf16(1.0);
    set_key(row, 0, 40, 0x1p126);
    set_key(row, 1, 40, 0x1p125);
    row->args.scale = 0x1p-130f;
    just_above(stats_of(row, &model).lse_radius, w1 * 0x1p-24, 1e-4);
    row->args.scale = 0x1p-125f; /* gap 1: a normal scale is exact */
    just_above(1.0 + stats_of(row, &model).lse_radius, 1.0, 1e-12);
    row->args.scale = 0x1p-149f;
    truth = truth_of(row);
    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_RANGE);
    mla_truth_free(truth);
    model.flush = 1;
    row->args.scale = 0x1p-127f;
    truth = truth_of(row);
    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_RANGE);
    model.add_u = 0.5; /* too large an error by itself: that is said first */
    model.arg_roundings = 2;
    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_MODEL);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* The state of two scores +-(2^127 - 2^111) under a model. */
static int32_t state_of_far_scores(float scale, const struct mla_model *model)
{
    struct mla_oracle_test_row *row = row_new(2);
    struct mla_bound bounds[HEAD_DIM_V];

    row->args.scale = scale;
    row->q[40] = bf16(0x1p64);
    row->q[41] = bf16(0x1p60);
    for (int sign = 0; sign < 2; sign++) {
        set_key(row, sign, 40, (1 - 2 * sign) * 255 * 0x1p55);
        set_key(row, sign, 41, (1 - 2 * sign) * 255 * 0x1p51);
    }
    set_key(row, 1, 0, 1.0);
    struct mla_truth *truth = truth_of(row);
    assert_int_equal(mla_truth_info(truth).state, MLA_ROW_OK);
    int32_t state = mla_bound_row(truth, model, bounds);

    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
    return state;
}

/*
 * Their exact difference 2^128 - 2^112 is a float32, but not once both are rounded to bf16 2^127.
 * With a scale of 2^-126 the difference means e^-4, which Inf does not. From 2^-120 on it means
 * less than e^-255 = 2^-367, which may be 0 anyway; with 2^-121 e^-127 = 2^-184 too; 2^-122, e^-64,
 * only where the exponential may return 0 for it.
 */
static void differences_of_scores_beyond_float32(void **state)
{
    struct mla_model model = exact_model;

    (void)state;
    assert_int_equal(state_of_far_scores(0x1p-126f, &model), MLA_BOUND_OK);
    model.add_u = 0x1p-24;
    model.arg_roundings = 2;
    assert_int_equal(state_of_far_scores(0x1p-126f, &model), MLA_BOUND_OK);
    model.score_u = 0x1p-8;
    assert_int_equal(state_of_far_scores(0x1p-126f, &model), MLA_BOUND_RANGE);
    assert_int_equal(state_of_far_scores(0x1p-122f, &model), MLA_BOUND_RANGE);
    assert_int_equal(state_of_far_scores(0x1p-121f, &model), MLA_BOUND_OK);
    assert_int_equal(state_of_far_scores(0x1p-120f, &model), MLA_BOUND_OK);
    model.exp_floor = 0x1p-80; /* > e^-63.9 = 2^-92 */
    assert_int_equal(state_of_far_scores(0x1p-122f, &model), MLA_BOUND_OK);
    model.exp_floor = 0;
    model.arg_form = MLA_ARG_SCALED;
    assert_int_equal(state_of_far_scores(0x1p-126f, &model), MLA_BOUND_OK);
    model.arg_form = MLA_ARG_MIXED;
    assert_int_equal(state_of_far_scores(0x1p-126f, &model), MLA_BOUND_OK);
}

/* Truncated outputs: 1 - 2^-30 may be 1 - 2^-8, the bf16 below 1; so the set around 1 holds it. */
static void truncated_output(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    set_key(row, 0, 0, 1.0);
    set_key(row, 0, 1, -1.0);
    model.add_u = 0x1p-23;
    model.div_roundings = 1;
    model.out_round = MLA_OUT_TRUNCATE;
    bounds_of(row, &model, bounds);
    assert_true(bounds[0].lo == 1.0f - 0x1p-8f && bounds[0].hi == 1.0f);
    assert_true(bounds[1].lo == -1.0f && bounds[1].hi == -1.0f + 0x1p-8f);
    model.out_round = MLA_OUT_NEAREST;
    bounds_of(row, &model, bounds);
    assert_true(bounds[0].lo == 1.0f && bounds[0].hi == 1.0f);
    mla_oracle_test_row_free(row);
}

/* At the end of the range the upper end is Inf if rounding can reach it. */
static void largest_values(void **state)
{
    struct mla_oracle_test_row *row = row_new(1);
    struct mla_model model = exact_model;
    struct mla_bound bounds[HEAD_DIM_V];

    (void)state;
    set_key(row, 0, 0, 0x1.fcp126);
    model.add_u = 0x1p-2;
    model.div_roundings = 2;
    bounds_of(row, &model, bounds); /* 9/16 more: 0x1.8cp127 */
    assert_true(bounds[0].hi >= 0x1.8cp127f && isfinite(bounds[0].hi));
    model.div_roundings = 4; /* (5/4)^4 = 2.44 times */
    struct mla_truth *truth = truth_of(row);

    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_MODEL);
    mla_truth_free(truth);
    model.div_roundings = 3; /* (5/4)^3 - 1 = 0.95 more: 0x1.efp127 */
    bounds_of(row, &model, bounds);
    assert_true(bounds[0].hi >= 0x1.eep127f);
    mla_oracle_test_row_free(row);
}

static void distance_and_ratio(void **state)
{
    const struct mla_bound bound = {
        .lo = 0.5f, .hi = 1.5f, .o = 1.0, .low = 0.5, .high = 1.5, .radius = 0.5};
    struct mla_model model = exact_model;
    struct mla_bound open = bound;

    (void)state;
    assert_true(mla_bound_error(&bound, &model, bf16(1.0)).distance == 0.0);
    /* 1.5 stands for [1.5 - 2^-8, 1.5 + 2^-8], 2 for [2 - 2^-8, 2 + 2^-7]. */
    assert_true(mla_bound_error(&bound, &model, bf16(1.5)).distance == 0.5 - 0x1p-8);
    assert_true(mla_bound_error(&bound, &model, bf16(1.5)).ratio == 1.0 - 0x1p-7);
    assert_true(mla_bound_error(&bound, &model, bf16(2.0)).distance == 1.0 - 0x1p-8);
    assert_true(mla_bound_error(&bound, &model, bf16(-1.0)).distance == 2.0 - 0x1p-9);
    assert_true(mla_bound_error(&bound, &model, bf16(0.0)).distance == 1.0 - 0x1p-134);
    assert_true(mla_bound_error(&bound, &model, 0x8000).distance == 1.0);
    model.out_round = MLA_OUT_TRUNCATE; /* 0.5 stands for [0.5, 0.5 + 2^-8), -0.5 for (.., -0.5] */
    assert_true(mla_bound_error(&bound, &model, bf16(0.5)).distance == 0.5 - 0x1p-8);
    assert_true(mla_bound_error(&bound, &model, bf16(1.5)).distance == 0.5);
    assert_true(mla_bound_error(&bound, &model, bf16(-0.5)).distance == 1.5);
    assert_true(isinf(mla_bound_error(&bound, &model, 0x7fc0).distance));
    assert_true(isinf(mla_bound_error(&bound, &model, 0xff81).ratio));
    assert_true(isinf(mla_bound_error(&bound, &model, 0x7f80).distance));
    assert_true(isinf(mla_bound_error(&bound, &model, 0xff80).ratio));
    model.out_round = MLA_OUT_NEAREST;
    /* An interval beside o: [2, 3] of middle 2.5, half 1/2. Distance is from o, ratio not. */
    const struct mla_bound beside = {
        .lo = 2.0f, .hi = 3.0f, .o = 1.0, .low = 2.0, .high = 3.0, .radius = 2.0};

    assert_true(mla_bound_error(&beside, &model, bf16(2.5)).ratio == 0.0);
    assert_true(mla_bound_error(&beside, &model, bf16(2.5)).distance == 1.5 - 0x1p-7);
    assert_true(mla_bound_error(&beside, &model, bf16(3.0)).ratio == 1.0 - 0x1p-6);
    assert_true(mla_bound_error(&beside, &model, bf16(2.0)).ratio == 1.0 - 0x1p-6);
    assert_true(mla_bound_error(&beside, &model, bf16(1.0)).ratio == 3.0 - 0x1p-7);
    assert_true(mla_bound_error(&beside, &model, bf16(1.0)).distance == 0.0);
    assert_true(mla_bound_error(&beside, &model, bf16(-2.5)).ratio > 9.0);
    const struct mla_bound mirrored = {
        .lo = -3.0f, .hi = -2.0f, .o = -1.0, .low = -3.0, .high = -2.0, .radius = 2.0};

    for (int i = -4; i <= 4; i++) {
        assert_true(mla_bound_error(&beside, &model, bf16(i)).ratio ==
                    mla_bound_error(&mirrored, &model, bf16(-i)).ratio);
    }
    open.hi = INFINITY;
    assert_true(mla_bound_error(&open, &model, 0x7f80).distance == 0x1.ffp127);
    assert_true(isinf(mla_bound_error(&open, &model, 0xff80).distance));
}

/* NaN and Inf never lie in a set; comparisons as the judge writes them. */
static void not_a_number_is_rejected(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_bound bounds[HEAD_DIM_V];
    struct mla_truth *truth = truth_of(row);
    struct mla_model model = exact_model;
    double ratio;

    (void)state;
    model.exp_error = 0.1;
    bounds_of(row, &model, bounds);
    for (int64_t l = 0; l < HEAD_DIM_V; l++) {
        assert_false(bounds[l].lo <= NAN && NAN <= bounds[l].hi);
        assert_false(INFINITY <= bounds[l].hi);
        assert_true(bounds[l].lo <= bounds[l].hi);
    }
    assert_true(mla_bound_stats_accepts(truth, &model, 0.0f, 2.0f, &ratio));
    assert_true(ratio >= 0.0 && ratio < 1e-3);
    assert_true(mla_bound_stats_accepts(truth, &model, 0.0f, 2.2f, &ratio));
    assert_true(ratio > 0.9 && ratio < 1.0); /* ln 1.1 over -ln 0.9 */
    assert_false(mla_bound_stats_accepts(truth, &model, 0.0f, 2.3f, &ratio));
    assert_true(ratio > 1.3 && ratio < 1.4);
    assert_false(mla_bound_stats_accepts(truth, &model, 0.5f, 2.0f * 0.60653f, &ratio));
    assert_true(ratio > 1.0); /* the sum fits, the maximum is above */
    assert_false(mla_bound_stats_accepts(truth, &model, NAN, 2.0f, &ratio));
    assert_true(isinf(ratio));
    assert_false(mla_bound_stats_accepts(truth, &model, 0.0f, NAN, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &model, 0.0f, -2.0f, &ratio));
    assert_true(isinf(ratio));
    assert_false(mla_bound_stats_accepts(truth, &model, 0.0f, 0.0f, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &model, 0.0f, INFINITY, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &model, -INFINITY, 2.0f, &ratio));
    assert_true(isinf(ratio));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* A lower reference point is held to the sum alone, a higher one is refused. */
static void other_reference_point(void **state)
{
    struct mla_oracle_test_row *row = pair();
    struct mla_truth *truth = truth_of(row);
    struct mla_model model = exact_model;
    double ratio;

    (void)state;
    model.exp_error = 0x1p-10;
    model.stats_max = MLA_STATS_OTHER;
    assert_true(mla_bound_stats_accepts(truth, &model, -0.6931472f, 4.0f, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &model, 0.6931472f, 1.0f, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &model, -0.6931472f, 4.02f, &ratio));
    model.stats_max = MLA_STATS_SHIFT;
    assert_false(mla_bound_stats_accepts(truth, &model, -0.6931472f, 4.0f, &ratio));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Rows without a judgement say why, and touch nothing; an empty row has its own statistics. */
static void states(void **state)
{
    struct mla_oracle_test_row *row = row_new(2);
    struct mla_bound bounds[HEAD_DIM_V];
    struct mla_bound untouched[HEAD_DIM_V];
    struct mla_bound_stats stats;
    struct mla_model model = exact_model;
    struct mla_truth *truth;
    double ratio;

    (void)state;
    memset(bounds, 0x5a, sizeof bounds);
    memset(untouched, 0x5a, sizeof untouched);
    set_key(row, 0, 0, 1.0);
    truth = truth_of(row);
    model.acc_u = 0x1p-1;
    model.acc_extra.constant = 2; /* 1.5^2 - 1 >= 1 */
    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_MODEL);
    assert_int_equal(mla_bound_stats(truth, &model, &stats), MLA_BOUND_MODEL);
    assert_false(mla_bound_stats_accepts(truth, &model, 0.0f, 2.0f, &ratio));
    model = exact_model;
    model.add_u = NAN;
    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_MODEL);
    mla_truth_free(truth);

    model = exact_model;
    set_key(row, 0, 0, 0x1.fep126);
    model.alpha_u = 0.9; /* factors up to 10: partial sums may leave binary32 */
    model.rescales.constant = 1;
    truth = truth_of(row);
    assert_int_equal(mla_bound_row(truth, &model, bounds), MLA_BOUND_RANGE);
    mla_truth_free(truth);

    row->q[3] = 0x7f80;
    truth = truth_of(row);
    assert_int_equal(mla_bound_row(truth, &exact_model, bounds), MLA_BOUND_NONFINITE);
    assert_int_equal(mla_bound_stats(truth, &exact_model, &stats), MLA_BOUND_NONFINITE);
    mla_truth_free(truth);
    row->q[3] = 0;
    set_key(row, 1, 0, 0x1.fep126);
    truth = truth_of(row);
    assert_int_equal(mla_bound_row(truth, &exact_model, bounds), MLA_BOUND_RANGE);
    mla_truth_free(truth);
    assert_memory_equal(bounds, untouched, sizeof bounds);
    mla_oracle_test_row_free(row);
}

/* Rank 1 of two owns no token: -inf and +0, sign included, and nothing else. */
static void empty_row(void **state)
{
    struct mla_oracle_test_row *row = row_new(64);
    const uint16_t *q[2] = {row->q_all, row->q_all};
    const uint16_t *kv[2] = {row->kv, row->kv};
    struct mla_bound bounds[HEAD_DIM_V];
    struct mla_truth *truth;
    double ratio;

    (void)state;
    row->args.q_rows = 32;
    row->args.has_prior = 1;
    row->args.logical_n = 32;
    row->args.ring_size = 2;
    row->args.q = q;
    row->args.kv = kv;
    assert_int_equal(mla_truth_ring(&row->args, (struct mla_row){.rank = 1}, &truth), MLA_OK);
    assert_int_equal(mla_bound_row(truth, &exact_model, bounds), MLA_BOUND_EMPTY);
    assert_true(mla_bound_stats_accepts(truth, &exact_model, -INFINITY, 0.0f, &ratio));
    assert_true(ratio == 0.0);
    assert_false(mla_bound_stats_accepts(truth, &exact_model, -INFINITY, -0.0f, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &exact_model, INFINITY, 0.0f, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &exact_model, 0.0f, 0.0f, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &exact_model, NAN, 0.0f, &ratio));
    assert_false(mla_bound_stats_accepts(truth, &exact_model, -INFINITY, NAN, &ratio));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

static void model_errors(void **state)
{
    struct mla_model model;
    double *const units[] = {&model.add_u,       &model.product_u,       &model.score_u,
                             &model.exp_error,   &model.exp_floor,       &model.p_u,
                             &model.alpha_u,     &model.rescale_scale_u, &model.acc_u,
                             &model.pv_product_u};
    int32_t *const choices[] = {&model.arg_form,        &model.p_frame,     &model.out_round,
                                &model.stats_max,       &model.sum_rounded, &model.flush,
                                &model.weights_ignore_v};
    int32_t *const counts[] = {&model.arg_roundings, &model.p_block_keys, &model.div_roundings,
                               &model.shard_block_keys};
    struct mla_depth *const depths[] = {&model.score_depth, &model.rescales, &model.acc_depth,
                                        &model.acc_extra};
    static const char *const ranges[] = {
#define RANGE(depth)                                                                               \
    depth " must have terms in [0, 1e9] (constant: -1e9 .. 1e9), block_keys and most_keys >= 0"
        RANGE("score_depth"), RANGE("rescales"), RANGE("acc_depth"), RANGE("acc_extra")};

    (void)state;
    model = exact_model;
    assert_null(mla_bound_model_error(&model, true));
    assert_null(mla_bound_model_error(&model, false));
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        static const double bad[] = {-0x1p-1074, 1.0, NAN, INFINITY};

        for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
            model = exact_model;
            *units[i] = bad[j];
            assert_non_null(mla_bound_model_error(&model, true));
        }
        *units[i] = 0.5;
        assert_null(mla_bound_model_error(&model, true));
    }
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        model = exact_model;
        *choices[i] = -1;
        assert_non_null(mla_bound_model_error(&model, true));
        *choices[i] = 3;
        assert_non_null(mla_bound_model_error(&model, true));
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        model = exact_model;
        *counts[i] = -1;
        assert_non_null(mla_bound_model_error(&model, true));
    }
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        model = exact_model;
        depths[i]->per_key = NAN;
        assert_non_null(mla_bound_model_error(&model, true));
        depths[i]->per_key = -1;
        assert_non_null(mla_bound_model_error(&model, true));
        depths[i]->per_key = 0;
        depths[i]->block_keys = -1;
        assert_non_null(mla_bound_model_error(&model, true));
        depths[i]->block_keys = 0;
        depths[i]->most_keys = -1;
        assert_string_equal(mla_bound_model_error(&model, true), ranges[i]);
        depths[i]->most_keys = INT32_MAX;
        assert_null(mla_bound_model_error(&model, true));
        assert_null(mla_bound_model_error(&model, false));
        depths[i]->per_block = 1;
        assert_null(mla_bound_model_error(&model, true));
        assert_non_null(mla_bound_model_error(&model, false));
    }
    model = exact_model;
    model.p_frame = MLA_P_FRAME_BLOCKS;
    assert_null(mla_bound_model_error(&model, true));
    assert_non_null(mla_bound_model_error(&model, false));
    model = exact_model;
    model.shard_block_keys = 48;
    assert_null(mla_bound_model_error(&model, true));
    assert_string_equal(mla_bound_model_error(&model, false),
                        "shard_block_keys cuts shards, which only the ring has: must be 0");
    model.shard_block_keys = -1;
    assert_string_equal(mla_bound_model_error(&model, true),
                        "shard_block_keys must not be negative");
}

/*
 * Declaring more error never narrows a set. All start where the common formula applies, and again
 * deep in the range of the exact end, so that each pair is formed in the same way.
 */
static void more_error_is_wider(void **state)
{
    struct mla_oracle_test_row *row = row_new(50);
    struct mla_oracle_test_random random = {15};
    struct mla_model base = {.add_u = 0x1p-24,
                             .score_depth = {.per_width = 1},
                             .product_u = 0x1p-20,
                             .score_u = 0x1p-20,
                             .arg_roundings = 2,
                             .exp_error = 0x1p-20,
                             .exp_floor = 0x1p-60,
                             .p_u = 0x1p-8,
                             .rescales = {.constant = 3},
                             .alpha_u = 0x1p-20,
                             .rescale_scale_u = 0x1p-20,
                             .acc_depth = {.per_key = 1},
                             .acc_u = 0x1p-12,
                             .acc_extra = {.constant = 2},
                             .pv_product_u = 0x1p-12,
                             .div_roundings = 1};
    struct mla_model model;
    double *const fields[] = {&model.add_u,
                              &model.score_depth.per_width,
                              &model.product_u,
                              &model.score_u,
                              &model.exp_error,
                              &model.exp_floor,
                              &model.p_u,
                              &model.rescales.constant,
                              &model.alpha_u,
                              &model.rescale_scale_u,
                              &model.acc_depth.per_key,
                              &model.acc_u,
                              &model.acc_extra.constant,
                              &model.pv_product_u};
    struct mla_bound narrow[HEAD_DIM_V];
    struct mla_bound wide[HEAD_DIM_V];

    (void)state;
    for (int64_t i = 0; i < 50 * HEAD_DIM; i++) {
        row->kv[i] = bf16(mla_oracle_test_normal(&random));
    }
    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = bf16(0.2 * mla_oracle_test_normal(&random));
    }
    for (int regime = 0; regime < 6; regime++) {
        base.arg_form = regime % 3;
        base.sum_rounded = regime % 2;
        base.acc_u = regime < 3 ? 0x1p-12 : 0x1p-4; /* 3: exact end */
        bounds_of(row, &base, narrow);
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
            model = base;
            *fields[i] *= 2.0;
            bounds_of(row, &model, wide);
            for (int64_t l = 0; l < HEAD_DIM_V; l++) {
                assert_true(wide[l].radius >= narrow[l].radius);
                assert_true(wide[l].lo <= narrow[l].lo && wide[l].hi >= narrow[l].hi);
            }
        }
        model = base;
        model.flush = 1;
        model.div_roundings = 2;
        model.arg_roundings = 3;
        bounds_of(row, &model, wide);
        for (int64_t l = 0; l < HEAD_DIM_V; l++) {
            assert_true(wide[l].radius > narrow[l].radius);
        }
    }
    mla_oracle_test_row_free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_arithmetic_has_one_result),
        cmocka_unit_test(exponential_error),
        cmocka_unit_test(rounding_of_p),
        cmocka_unit_test(accumulator_roundings),
        cmocka_unit_test(depth_terms),
        cmocka_unit_test(score_roundings),
        cmocka_unit_test(argument_forms),
        cmocka_unit_test(exact_end),
        cmocka_unit_test(uncertain_weights_still_average),
        cmocka_unit_test(hopeless_key_is_harmless),
        cmocka_unit_test(flushing),
        cmocka_unit_test(underflow),
        cmocka_unit_test(exponential_floor),
        cmocka_unit_test(floors_of_a_coarse_format),
        cmocka_unit_test(flushed_value_is_lost),
        cmocka_unit_test(underflow_of_arguments),
        cmocka_unit_test(subnormal_scale),
        cmocka_unit_test(differences_of_scores_beyond_float32),
        cmocka_unit_test(truncated_output),
        cmocka_unit_test(largest_values),
        cmocka_unit_test(distance_and_ratio),
        cmocka_unit_test(not_a_number_is_rejected),
        cmocka_unit_test(other_reference_point),
        cmocka_unit_test(states),
        cmocka_unit_test(empty_row),
        cmocka_unit_test(model_errors),
        cmocka_unit_test(more_error_is_wider),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
