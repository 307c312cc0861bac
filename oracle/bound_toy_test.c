/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_toy_test.c - the accepted set against kernels that keep to their model, and that do not.
 *
 * Sound: honest kernels and kernels that choose every rounding within the model, at random or
 * against one element, never leave the set, over many rows of many kinds. Sharp: the greedy ones
 * come far into it, model by model. Blind nowhere: planted faults and models that declare too
 * little are accused.
 */
#include "oracle/test_toy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_DIM 64
#define COLUMNS  MLA_ORACLE_TOY_COLUMNS

/* ---- kernels ----------------------------------------------------------------------------------*/

struct kernel {
    const char *name;
    struct mla_model model;
    int64_t block_keys;
    bool merges;
    bool log2_domain;
    double sharp; /* the greedy kernel must come this far into the set somewhere */
    bool fuses;
};

#define F32 0x1p-24
#define BF  0x1p-8

/* Sequential float sums: a score of `width` terms, n additions of one rounded product each. */
static const struct kernel kernels[] = {
    {"two-pass float",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     0,
     false,
     false,
     0.3,
     false},
    {"bf16 p, unrounded sum, blocks of 32, log2 domain",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 3,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .rescales = {.per_block = 1, .block_keys = 32},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 32},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     32,
     false,
     true,
     0.8,
     false},
    {"bf16 p, rounded sum, scaled, blocks of 8",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_SCALED,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .sum_rounded = 1,
      .rescales = {.per_block = 1, .block_keys = 8},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 8},
      .div_roundings = 1},
     8,
     false,
     false,
     0.8,
     false},
    {"bf16 accumulators, scores and rescales, rough exponential, blocks of 16",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .score_u = BF,
      .arg_roundings = 2,
      .exp_error = 0x1p-7,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .sum_rounded = 1,
      .rescales = {.per_block = 1, .block_keys = 16},
      .alpha_u = BF,
      .rescale_scale_u = 0x1p-7,
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 16},
      .acc_u = BF,
      .acc_extra = {.per_block = 1, .block_keys = 16},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     16,
     false,
     false,
     0.5,
     false},
    {"mixed arguments, one key a step",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_MIXED,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .rescales = {.per_key = 1},
      .acc_depth = {.constant = 1, .per_key = 2},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     1,
     false,
     false,
     0.15,
     false},
    {"truncating, flushing unit",
     {.add_u = 0x1p-23,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = 0x1p-7,
      .rescales = {.per_block = 1, .block_keys = 32},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 32},
      .div_roundings = 1,
      .flush = 1,
      .out_round = MLA_OUT_TRUNCATE,
      .stats_max = MLA_STATS_ROUNDED},
     32,
     false,
     false,
     0.8,
     false},
    {"rough exponential, two-pass",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-6,
      .exp_floor = 0x1p-20,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     0,
     false,
     false,
     0.8,
     false},
    {"rough products",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .product_u = 0x1p-8,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .acc_depth = {.constant = 1, .per_key = 1},
      .pv_product_u = 0x1p-8,
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     0,
     false,
     false,
     0.8,
     false},
    {"two halves merged, bf16 p, blocks of 8",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .rescales = {.constant = 1, .per_block = 1, .block_keys = 8},
      .acc_depth = {.constant = 3, .per_key = 1, .per_block = 1, .block_keys = 8},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     8,
     true,
     false,
     0.8,
     false},
    {"bf16 accumulators, one key a step",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_SCALED,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .rescales = {.per_key = 1},
      .acc_depth = {.constant = 1, .per_key = 2},
      .acc_u = BF,
      .acc_extra = {.per_key = 1},
      .div_roundings = 1},
     1,
     false,
     false,
     0.5,
     false},
    {"row frame, unrounded sum, log2 domain",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 3,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_ROW,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     0,
     false,
     true,
     0.5,
     false},
    {"row frame, rounded sum, scaled",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_SCALED,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_ROW,
      .sum_rounded = 1,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1},
     0,
     false,
     false,
     0.5,
     false},
    {"row frame, truncating, flushing unit, rough exponential",
     {.add_u = 0x1p-23,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-12,
      .exp_floor = 0x1p-30,
      .p_u = 0x1p-7,
      .p_frame = MLA_P_FRAME_ROW,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .flush = 1,
      .out_round = MLA_OUT_TRUNCATE,
      .stats_max = MLA_STATS_ROUNDED},
     0,
     false,
     false,
     0.5,
     false},
    {"block frames of 8, unrounded sum, log2 domain",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 3,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_BLOCKS,
      .p_block_keys = 8,
      .rescales = {.constant = -1, .per_block = 1, .block_keys = 8},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 8},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     8,
     false,
     true,
     0.5,
     false},
    {"block frames of 16, rounded sum, scaled, rough exponential",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_SCALED,
      .arg_roundings = 2,
      .exp_error = 0x1p-16,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_BLOCKS,
      .p_block_keys = 16,
      .sum_rounded = 1,
      .rescales = {.constant = -1, .per_block = 1, .block_keys = 16},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 16},
      .div_roundings = 1},
     16,
     false,
     false,
     0.5,
     false},
    {"block frames of 8, bf16 rescales",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_BLOCKS,
      .p_block_keys = 8,
      .rescales = {.constant = -1, .per_block = 1, .block_keys = 8},
      .alpha_u = BF,
      .rescale_scale_u = 0x1p-7,
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 8},
      .div_roundings = 1,
      .stats_max = MLA_STATS_ROUNDED},
     8,
     false,
     false,
     0.5,
     false},
    {"row frame, fused scaling, unrounded sum",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_SCALED,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_ROW,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1},
     0,
     false,
     false,
     0.5,
     true},
    {"block frames of 8, fused scaling, truncated p, rounded sum",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_SCALED,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = 0x1p-7,
      .p_frame = MLA_P_FRAME_BLOCKS,
      .p_block_keys = 8,
      .sum_rounded = 1,
      .rescales = {.constant = -1, .per_block = 1, .block_keys = 8},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 8},
      .div_roundings = 1},
     8,
     false,
     false,
     0.5,
     true},
    {"block frames of one K chunk, mixed arguments, bf16 accumulators, truncated p",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_form = MLA_ARG_MIXED,
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-60,
      .p_u = 0x1p-7,
      .p_frame = MLA_P_FRAME_BLOCKS,
      .rescales = {.constant = -1, .per_block = 1},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1},
      .acc_u = BF,
      .acc_extra = {.per_block = 1},
      .div_roundings = 1,
      .flush = 1,
      .stats_max = MLA_STATS_ROUNDED},
     32,
     false,
     false,
     0.5,
     false},
};
#define KERNELS_N (sizeof kernels / sizeof kernels[0])

/* ---- rows -------------------------------------------------------------------------------------*/

enum family {
    FLAT,       /* equal scores */
    NORMAL,     /* N(0,1) */
    PEAKED,     /* a few keys take all */
    HUGE_SCORE, /* scores to 1e5 */
    TINY_VALUE, /* values near 2^-119, weights that underflow against them */
    SUBNORMAL,  /* subnormal values and query parts */
    DUPLICATES, /* one key, many copies */
    ONE_SIGN,   /* positive values */
    SPREAD,     /* exponents all over */
    FAMILIES_N
};

static double heavy(struct mla_oracle_test_random *random, int span)
{
    const int exponent = (int)(mla_oracle_test_uniform(random) * span) - span / 2;

    return ldexp(mla_oracle_test_normal(random), exponent);
}

static double query_number(int family, struct mla_oracle_test_random *random)
{
    const double x = mla_oracle_test_normal(random);

    switch (family) {
    case FLAT:
        return 0.0;
    case PEAKED:
    case TINY_VALUE:
        return 6.0 * x;
    case HUGE_SCORE:
        return 3e3 * x;
    case SUBNORMAL:
        return mla_oracle_test_uniform(random) < 0.2 ? 0x1p-127 * x : x;
    case SPREAD:
        return heavy(random, 12);
    default:
        return x;
    }
}

static double value_number(int family, struct mla_oracle_test_random *random)
{
    const double x = mla_oracle_test_normal(random);

    switch (family) {
    case TINY_VALUE:
        return 0x1p-119 * x;
    case SUBNORMAL:
        return 0x1p-127 * x;
    case ONE_SIGN:
        return fabs(x) + 0.1;
    case SPREAD:
        return heavy(random, 30);
    default:
        return x;
    }
}

/* Scores come from all columns; values are the first half. One more key than the row sees is set.
 */
static struct mla_oracle_test_row *row_make(int family, int64_t n,
                                            struct mla_oracle_test_random *random)
{
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(n + 1, HEAD_DIM, COLUMNS, 0.125f);

    row->n = n;
    row->q -= HEAD_DIM; /* the row before the last */
    row->row.row = n - 1;
    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = mla_oracle_test_bf16((float)query_number(family, random));
    }
    for (int64_t j = 0; j <= n; j++) {
        for (int64_t i = 0; i < HEAD_DIM; i++) {
            const double x =
                i < COLUMNS ? value_number(family, random) : mla_oracle_test_normal(random);
            const bool copied = family == DUPLICATES && j > 0 && j < n;

            row->kv[j * HEAD_DIM + i] = copied ? row->kv[i] : mla_oracle_test_bf16((float)x);
        }
    }
    return row;
}

/* ---- one run against one set ------------------------------------------------------------------*/

struct tally {
    long runs;
    long accused;     /* runs with an element or a statistic outside */
    double worst;     /* largest distance before output rounding, over the half width */
    double worst_lse; /* the same for the log-sum-exp */
};

static struct mla_oracle_toy toy_of(const struct kernel *kernel, const struct mla_model *model,
                                    struct mla_oracle_test_random *random)
{
    return (struct mla_oracle_toy){.model = model,
                                   .block_keys = kernel->block_keys,
                                   .merges = kernel->merges,
                                   .log2_domain = kernel->log2_domain,
                                   .fuses = kernel->fuses,
                                   .direction = 1.0,
                                   .random = random};
}

/* The choosing kernels' figures are real numbers; an honest kernel's are binary32, judged as such.
 */
static bool stats_accused(const struct mla_truth *truth, const struct mla_model *model,
                          const struct mla_oracle_toy *toy,
                          const struct mla_oracle_toy_result *result, struct tally *tally)
{
    struct mla_bound_stats stats;
    double ratio;

    if (toy->choice == MLA_ORACLE_TOY_HONEST) {
        return !mla_bound_stats_accepts(truth, model, (float)result->max, (float)result->sum,
                                        &ratio) ||
               !(ratio <= 1.0);
    }
    assert_int_equal(mla_bound_stats(truth, model, &stats), MLA_BOUND_OK);
    const double lse = result->max + log(result->sum);
    const double noise = 0x1p-48 * (1.0 + fabs(result->max)); /* of the line above */
    const double distance = fmax(0.0, fabs(lse - stats.lse) - noise);

    tally->worst_lse = fmax(tally->worst_lse, distance / stats.lse_radius);
    return !(distance <= stats.lse_radius && result->max >= stats.max_lo - noise &&
             result->max <= stats.max_hi + noise && result->sum >= stats.sum_lo &&
             result->sum <= stats.sum_hi);
}

static void judge(const struct mla_truth *truth, const struct mla_model *model,
                  const struct mla_bound *bounds, const struct mla_oracle_toy *toy,
                  const struct mla_oracle_test_row *row, struct tally *tally)
{
    struct mla_oracle_toy_result result;
    bool accused = false;

    mla_oracle_toy_run(toy, row, &result);
    for (int64_t l = 0; l < COLUMNS; l++) {
        const float y = mla_oracle_test_value(result.out[l]);
        const double middle = bounds[l].low / 2.0 + bounds[l].high / 2.0;
        const double off = result.real[l] - middle;
        const double ratio =
            fabs(off) / (off > 0.0 ? bounds[l].high - middle : middle - bounds[l].low);
        const struct mla_bound_error error = mla_bound_error(&bounds[l], model, result.out[l]);
        const bool inside = bounds[l].lo <= y && y <= bounds[l].hi;

        if (inside != (error.ratio <= 1.0 + 1e-12)) { /* the two ways to ask agree */
            print_error("lo %a y %a hi %a ratio %a\n", (double)bounds[l].lo, (double)y,
                        (double)bounds[l].hi, error.ratio);
            fail();
        }
        tally->worst = ratio > tally->worst ? ratio : tally->worst;
        accused = accused || !inside || (toy->fault == 0 && !(ratio <= 1.0));
    }
    accused = stats_accused(truth, model, toy, &result, tally) || accused;
    tally->runs++;
    tally->accused += accused;
}

/* One kernel on one row: honest, random, and greedy both ways against one column. False if the row
 * is not judged. */
static bool judge_all(const struct kernel *kernel, const struct mla_oracle_test_row *row,
                      const struct mla_truth *truth, struct mla_oracle_test_random *random,
                      struct tally *honest, struct tally *choosing)
{
    struct mla_oracle_toy toy = toy_of(kernel, &kernel->model, random);
    struct mla_bound bounds[COLUMNS];

    if (mla_bound_row(truth, &kernel->model, bounds) != MLA_BOUND_OK) {
        return false;
    }
    judge(truth, &kernel->model, bounds, &toy, row, honest);
    toy.choice = MLA_ORACLE_TOY_RANDOM;
    judge(truth, &kernel->model, bounds, &toy, row, choosing);
    toy.choice = MLA_ORACLE_TOY_GREEDY;
    toy.column = (int64_t)(mla_oracle_test_uniform(random) * COLUMNS);
    toy.target = bounds[toy.column].o;
    judge(truth, &kernel->model, bounds, &toy, row, choosing);
    toy.direction = -1.0;
    judge(truth, &kernel->model, bounds, &toy, row, choosing);
    return true;
}

/* Sound and sharp. */
static void conforming_kernels_are_never_accused(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 9, 16, 31, 40, 63, 100};
    struct mla_oracle_test_random random = {2024};
    struct tally honest[KERNELS_N] = {{0}};
    struct tally choosing[KERNELS_N] = {{0}};
    long runs = 0;
    long unjudged = 0;

    (void)state;
    for (int trial = 0; trial < 4000; trial++) {
        const int family = trial % FAMILIES_N;
        const int64_t n = sizes[(trial / FAMILIES_N) % 10];
        struct mla_oracle_test_row *row = row_make(family, n, &random);
        struct mla_truth *truth;

        assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
        for (int k = 0; k < 3; k++) { /* three of the kernels for each row, in turn */
            const size_t i = (size_t)(trial * 3 + k + trial / (int)KERNELS_N) % KERNELS_N;

            if (!judge_all(&kernels[i], row, truth, &random, &honest[i], &choosing[i])) {
                /* Scores beyond 1e4 known to 2^-8: weights uncertain by more than e^700. */
                assert_true(fabs(mla_truth_info(truth).max) > 1e4);
                assert_true(kernels[i].model.score_u + kernels[i].model.product_u > 0.0);
                unjudged++;
            }
            if (honest[i].accused + choosing[i].accused > 0) {
                print_error("%s accused: trial %d family %d n %d\n", kernels[i].name, trial, family,
                            (int)n);
                fail();
            }
        }
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    for (size_t i = 0; i < KERNELS_N; i++) {
        print_message("  %-72s honest %.4f, choosing %.4f (lse %.4f) of B in %ld runs\n",
                      kernels[i].name, honest[i].worst, choosing[i].worst, choosing[i].worst_lse,
                      honest[i].runs + choosing[i].runs);
        assert_true(choosing[i].worst >= kernels[i].sharp);
        assert_true(choosing[i].worst <= 1.0);
        runs += honest[i].runs + choosing[i].runs;
    }
    print_message("  %ld runs, %ld rows unjudged\n", runs, unjudged);
    assert_true(runs + 4 * unjudged == 48000);
    assert_true(unjudged < 300);
}

/* ---- faults -----------------------------------------------------------------------------------*/

/* On how many of `trials` rows of a family is the honest kernel, judged by `model`, accused? */
static long accused_of(const struct kernel *kernel, const struct mla_model *model, int32_t fault,
                       int family, int64_t n, int trials)
{
    struct mla_oracle_test_random random = {7 + (uint64_t)fault};
    struct mla_oracle_toy toy = toy_of(kernel, &kernel->model, &random);
    struct mla_bound bounds[COLUMNS];
    struct tally tally = {0};

    toy.fault = fault;
    for (int trial = 0; trial < trials; trial++) {
        struct mla_oracle_test_row *row = row_make(family, n, &random);
        struct mla_truth *truth;

        assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
        assert_int_equal(mla_bound_row(truth, model, bounds), MLA_BOUND_OK);
        judge(truth, model, bounds, &toy, row, &tally);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    return tally.accused;
}

static void planted_faults_are_accused(void **state)
{
    /* A missing rescale shows unless the first block of 8 of 45 keys holds the maximum. */
    static const struct {
        int32_t fault;
        int family;
        size_t kernel;
        long least; /* of 40 */
    } lines[] = {
        {MLA_ORACLE_TOY_DROPS_A_KEY, FLAT, 0, 36},
        {MLA_ORACLE_TOY_DROPS_A_KEY, FLAT, 1, 36},
        {MLA_ORACLE_TOY_DROPS_A_KEY, NORMAL, 0, 36},
        {MLA_ORACLE_TOY_DROPS_A_KEY, FLAT, 2, 36},
        {MLA_ORACLE_TOY_SEES_THE_FUTURE, FLAT, 0, 36},
        {MLA_ORACLE_TOY_SEES_THE_FUTURE, FLAT, 1, 36},
        {MLA_ORACLE_TOY_SEES_THE_FUTURE, NORMAL, 0, 36},
        {MLA_ORACLE_TOY_OMITS_RESCALE, NORMAL, 2, 26},
        {MLA_ORACLE_TOY_OMITS_RESCALE, NORMAL, 4, 36},
        {MLA_ORACLE_TOY_RESCALES_SUM_ONLY, NORMAL, 2, 26},
        {MLA_ORACLE_TOY_FORGETS_SCALE, NORMAL, 1, 36},
        {MLA_ORACLE_TOY_FORGETS_SCALE, NORMAL, 3, 36},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const struct kernel *kernel = &kernels[lines[i].kernel];
        const long accused =
            accused_of(kernel, &kernel->model, lines[i].fault, lines[i].family, 45, 40);

        if (accused < lines[i].least) {
            print_error("fault %d family %d %s: accused %ld of 40\n", (int)lines[i].fault,
                        lines[i].family, kernel->name, accused);
            fail();
        }
        assert_int_equal(accused_of(kernel, &kernel->model, 0, lines[i].family, 45, 40), 0);
    }
}

/* The same honest kernels under a model that leaves one of their errors out. */
static void too_little_declared_is_accused(void **state)
{
    struct mla_model model;

    (void)state;
    model = kernels[1].model;
    model.p_u = 0.0;
    assert_true(accused_of(&kernels[1], &model, 0, NORMAL, 45, 40) >= 36);
    model = kernels[2].model;
    model.p_u = 0.0;
    assert_true(accused_of(&kernels[2], &model, 0, NORMAL, 45, 40) >= 36);
    model = kernels[3].model;
    model.acc_u = 0.0;
    model.score_u = 0.0;
    model.exp_error = 0x1p-23;
    model.alpha_u = 0.0;
    model.rescale_scale_u = 0.0;
    model.p_u = 0.0;
    assert_true(accused_of(&kernels[3], &model, 0, NORMAL, 45, 40) >= 36);
    model = kernels[6].model;
    model.exp_error = 0x1p-23;
    assert_true(accused_of(&kernels[6], &model, 0, NORMAL, 45, 40) >= 36);
    model = kernels[7].model;
    model.product_u = 0.0;
    model.pv_product_u = 0.0;
    assert_true(accused_of(&kernels[7], &model, 0, NORMAL, 45, 40) >= 36);
    model = kernels[9].model;
    model.acc_u = 0.0;
    assert_true(accused_of(&kernels[9], &model, 0, NORMAL, 45, 40) >= 36);
    model = kernels[5].model;
    model.flush = 0;
    assert_true(accused_of(&kernels[5], &model, 0, SUBNORMAL, 9, 40) >= 20);
    model = kernels[5].model;
    model.out_round = MLA_OUT_NEAREST;
    assert_true(accused_of(&kernels[5], &model, 0, ONE_SIGN, 1, 40) == 0); /* a copy: no rounding */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conforming_kernels_are_never_accused),
        cmocka_unit_test(planted_faults_are_accused),
        cmocka_unit_test(too_little_declared_is_accused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
