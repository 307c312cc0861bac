/* SPDX-License-Identifier: Apache-2.0
 *
 * energy_test.c - the row-energy test against kernels that keep to their model, and that do not.
 *
 * Sound: weights are pushed as far as the model allows in directions chosen without a look at V
 * (one sign a key, by many schemes), at random, or honestly rounded; every sum of O and the last
 * rounding may look and push their column away from the truth. None is accused, with the threshold
 * of all rows together. Blind nowhere: faults that the interval lets pass are accused. And each
 * premise is needed: a kernel that keeps its model is accused where copies are taken for strangers,
 * where columns share their coins, where weights look at V.
 */
#include "oracle/bf16.h"
#include "oracle/test_toy.h"
#include "oracle/truth.h"
#include "oracle/wide.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_DIM 64
#define COLUMNS  MLA_ORACLE_TOY_COLUMNS

#define F32  0x1p-24
#define BF   0x1p-8
#define FINE 0x1p-30 /* as good as exact here, and still coarse against the toy's doubles */

/* ---- kernels ----------------------------------------------------------------------------------*/

struct kernel {
    const char *name;
    struct mla_model model;
    int64_t block_keys;
    bool merges;
    bool log2_domain;
};

static const struct kernel kernels[] = {
    {"bf16 p, rounded sum, blocks of 128, frame unknown",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .sum_rounded = 1,
      .rescales = {.per_block = 1, .block_keys = 128},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 128},
      .div_roundings = 1,
      .weights_ignore_v = 1},
     128,
     false,
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
      .weights_ignore_v = 1},
     32,
     false,
     true},
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
      .weights_ignore_v = 1},
     16,
     false,
     false},
    {"two-pass float",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .weights_ignore_v = 1},
     0,
     false,
     false},
    {"truncating, flushing unit, blocks of 32",
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
      .weights_ignore_v = 1},
     32,
     false,
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
      .weights_ignore_v = 1},
     8,
     true,
     false},
    {"rough exponential, two-pass, exact sums",
     {.add_u = FINE,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-6,
      .exp_floor = 0x1p-126,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .weights_ignore_v = 1},
     0,
     false,
     false},
    {"rough products, all else fine",
     {.add_u = FINE,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = FINE,
      .exp_floor = 0x1p-126,
      .acc_depth = {.constant = 1, .per_key = 1},
      .pv_product_u = BF,
      .div_roundings = 1,
      .weights_ignore_v = 1},
     0,
     false,
     false},
    {"small exponentials lost, all else fine",
     {.add_u = FINE,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = FINE,
      .exp_floor = 0x1p-20,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .weights_ignore_v = 1},
     0,
     false,
     false},
    {"bf16 p, rounded sum, blocks of 128, frame known",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-23,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_BLOCKS,
      .p_block_keys = 128,
      .sum_rounded = 1,
      .rescales = {.per_block = 1, .block_keys = 128},
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 128},
      .div_roundings = 1,
      .weights_ignore_v = 1},
     128,
     false,
     false},
    {"bf16 p, unrounded sum, two-pass, frame known, rough exponential, all else fine",
     {.add_u = FINE,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-12,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_ROW,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .weights_ignore_v = 1},
     0,
     false,
     false},
    {"bf16 p, rounded sum, two-pass, frame known, rough exponential, all else fine",
     {.add_u = FINE,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-12,
      .exp_floor = 0x1p-126,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_ROW,
      .sum_rounded = 1,
      .acc_depth = {.constant = 1, .per_key = 1},
      .div_roundings = 1,
      .weights_ignore_v = 1},
     0,
     false,
     false},
    {"bf16 p and stores, block frames of 32, bf16 rescales, rough exponential",
     {.add_u = F32,
      .score_depth = {.per_width = 1},
      .arg_roundings = 2,
      .exp_error = 0x1p-9,
      .exp_floor = 0x1p-126,
      .exp_slope = 0x1p-6,
      .p_u = BF,
      .p_frame = MLA_P_FRAME_BLOCKS,
      .p_block_keys = 32,
      .sum_rounded = 1,
      .rescales = {.constant = -1, .per_block = 1, .block_keys = 32},
      .alpha_u = BF,
      .acc_depth = {.constant = 1, .per_key = 1, .per_block = 1, .block_keys = 32},
      .acc_u = BF,
      .acc_extra = {.per_block = 1, .block_keys = 32},
      .div_roundings = 1,
      .weights_ignore_v = 1,
      .acc_stores = MLA_ACC_STORES_BLOCKS},
     32,
     false,
     false},
};
#define KERNELS_N (sizeof kernels / sizeof kernels[0])
enum { BF16_P = 0, UNROUNDED_SUM = 1, BF16_SUMS = 2, ROUGH = 6, BF16_P_KNOWN = 9 };

/* ---- rows -------------------------------------------------------------------------------------*/

enum family {
    FLAT,        /* nearly equal scores */
    STEP,        /* nearly equal, the first 128 keys lower by a fifth */
    NORMAL,      /* N(0,1) scores, more or less */
    PEAKED,      /* a few keys take all */
    ONE_HEAVY,   /* one key above the others by 4 */
    SMALL,       /* one key above the others by 14 */
    LOUD,        /* nearly equal, one key's values 2^10 times the others' */
    TINY_WEIGHT, /* one key above the others by 80 to 110 */
    DUPLICATES,  /* one value row only */
    FEW_ROWS,    /* three value rows, many copies */
    SPREAD,      /* magnitudes of V all over */
    SUBNORMAL,   /* subnormal and tiny values */
    FAMILIES_N
};

static double score_scale(int family)
{
    switch (family) {
    case FLAT:
    case LOUD:
        return 0.01;
    case PEAKED:
        return 10.0;
    default:
        return 1.0;
    }
}

/* A magnitude of V, never 0. */
static double size_of(int family, bool is_first, struct mla_oracle_test_random *random)
{
    const double x = 0.5 + mla_oracle_test_uniform(random);
    const double exponent = mla_oracle_test_uniform(random);

    switch (family) {
    case SPREAD:
        return ldexp(x, (int)(30.0 * exponent) - 15);
    case LOUD:
        return is_first ? ldexp(x, 10) : x;
    case SUBNORMAL:
        return ldexp(x, -118 - (int)(14.0 * exponent));
    default:
        return x;
    }
}

static int64_t distinct_rows(int family, int64_t n)
{
    const int64_t most = family == DUPLICATES ? 1 : family == FEW_ROWS ? 3 : n;

    return n < most ? n : most;
}

/* The score column's number for key j: x_j = 0.125 times it. */
static double score_of(int family, int64_t j, int64_t n, struct mla_oracle_test_random *random)
{
    const double noise = mla_oracle_test_normal(random);
    const double depth = mla_oracle_test_uniform(random);

    switch (family) {
    case STEP:
        return 0.08 * noise + (j < 128 ? 0.0 : 1.6);
    case ONE_HEAVY:
        return j == n / 2 ? 32.0 : noise;
    case SMALL:
        return j == n / 2 ? 112.0 : 0.1 * noise;
    case TINY_WEIGHT:
        return j == n / 2 ? 0.0 : -8.0 * (80.0 + 30.0 * depth);
    default:
        return 8.0 * noise * score_scale(family);
    }
}

/*
 * Columns below COLUMNS are V: a coin times a magnitude. The query is 1 in column COLUMNS, where
 * the score stands; keys beyond the first distinct ones are copies.
 */
static struct mla_oracle_test_row *row_make(int family, int64_t n,
                                            struct mla_oracle_test_random *random)
{
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(n, HEAD_DIM, COLUMNS, 0.125f);
    const int64_t distinct = distinct_rows(family, n);

    row->q[COLUMNS] = mla_oracle_test_bf16(1.0f);
    for (int64_t j = 0; j < distinct; j++) {
        uint16_t *key = row->kv + j * HEAD_DIM;

        for (int64_t l = 0; l < COLUMNS; l++) {
            const double size = size_of(family, j == 0, random);
            const uint64_t coin = mla_oracle_test_bits(random);

            key[l] = mla_oracle_test_bf16((float)size);
            key[l] = (uint16_t)(key[l] | (coin >> 63 << 15));
        }
        key[COLUMNS] = mla_oracle_test_bf16((float)score_of(family, j, n, random));
    }
    for (int64_t j = distinct; j < n; j++) {
        memcpy(row->kv + j * HEAD_DIM, row->kv + j % distinct * HEAD_DIM,
               HEAD_DIM * sizeof *row->kv);
    }
    return row;
}

/* The truth of a row, with copies known as copies, as the sparse operation's lists make them. */
static struct mla_truth *truth_make(const struct mla_oracle_test_row *row, int64_t distinct)
{
    struct mla_truth *truth;

    assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
    for (int64_t j = distinct; j < row->n; j++) {
        truth->value[j] = truth->value[j % distinct];
    }
    return truth;
}

/* ---- kernels that keep to their model ---------------------------------------------------------*/

enum scheme {
    COINS,     /* a direction for each value row by its own coin */
    HALVES,    /* the first half of the keys up, the others down */
    HEAVY_UP,  /* keys of more than average weight up */
    ALL_UP,    /* all up: a common error, which cancels */
    FIRST_UP,  /* the first key up, the others down */
    AT_RANDOM, /* every rounding at random */
    HONEST,    /* real roundings */
    SCHEMES_N
};

/* Directions of the weights: V is not looked at. */
static void choose_blindly(int scheme, const struct mla_truth *truth, int64_t distinct,
                           struct mla_oracle_test_random *random, double *blind)
{
    const int64_t n = truth->keys_n;

    for (int64_t j = 0; j < n; j++) {
        const bool coin = (mla_oracle_test_bits(random) >> 63) != 0;

        switch (scheme) {
        case COINS:
            blind[j] = j >= distinct ? blind[j % distinct] : coin ? 1.0 : -1.0;
            break;
        case HALVES:
            blind[j] = j < n / 2 ? 1.0 : -1.0;
            break;
        case HEAVY_UP:
            blind[j] = truth->weight[j] * (double)n > 1.0 ? 1.0 : -1.0;
            break;
        case FIRST_UP:
            blind[j] = j == 0 ? 1.0 : -1.0;
            break;
        default:
            blind[j] = 1.0;
        }
    }
}

/* Run a kernel; what may look at V pushes each column away from the truth. */
static void run(const struct kernel *kernel, int scheme, const struct mla_oracle_test_row *row,
                const struct mla_truth *truth, const double *blind,
                struct mla_oracle_test_random *random, struct mla_oracle_toy_result *result)
{
    double push[COLUMNS];
    struct mla_oracle_toy toy = {.model = &kernel->model,
                                 .block_keys = kernel->block_keys,
                                 .merges = kernel->merges,
                                 .log2_domain = kernel->log2_domain,
                                 .choice = scheme == HONEST      ? MLA_ORACLE_TOY_HONEST
                                           : scheme == AT_RANDOM ? MLA_ORACLE_TOY_RANDOM
                                                                 : MLA_ORACLE_TOY_BLIND,
                                 .direction = 1.0,
                                 .blind = blind,
                                 .push = push,
                                 .random = random};

    for (int64_t l = 0; l < COLUMNS; l++) {
        push[l] = 1.0;
    }
    mla_oracle_toy_run(&toy, row, result);
    if (toy.choice == MLA_ORACLE_TOY_BLIND) { /* the same weights again, all else pushing along */
        for (int64_t l = 0; l < COLUMNS; l++) {
            push[l] = result->real[l] < truth->out[l] ? -1.0 : 1.0;
        }
        mla_oracle_toy_run(&toy, row, result);
    }
}

static struct mla_energy energy_of(const struct mla_truth *truth, const struct mla_model *model,
                                   const uint16_t *y, double log_tests)
{
    struct mla_energy energy;
    struct mla_energy narrow;

    assert_int_equal(mla_bound_energy(truth, model, y, log_tests, &energy), MLA_BOUND_OK);
    mla_oracle_allow_wide(false); /* the same bits without wider vector units */
    assert_int_equal(mla_bound_energy(truth, model, y, log_tests, &narrow), MLA_BOUND_OK);
    mla_oracle_allow_wide(true);
    assert_memory_equal(&narrow.energy, &energy.energy, sizeof energy.energy);
    return energy;
}

static bool is_accused(const struct mla_energy *energy)
{
    return !(energy->energy <= energy->threshold);
}

/* Is every element in the interval? */
static bool interval_holds(const struct mla_truth *truth, const struct mla_model *model,
                           const uint16_t *y)
{
    struct mla_bound bounds[COLUMNS];
    bool inside = true;

    assert_int_equal(mla_bound_row(truth, model, bounds), MLA_BOUND_OK);
    for (int64_t l = 0; l < COLUMNS; l++) {
        const float value = mla_oracle_test_value(y[l]);

        inside = inside && value >= bounds[l].lo && value <= bounds[l].hi;
    }
    return inside;
}

struct tally {
    double worst;  /* energy over threshold */
    double degree; /* energy over columns */
    long rows;
};

static void judge(const struct kernel *kernel, int family, int scheme,
                  const struct mla_oracle_test_row *row, const struct mla_truth *truth,
                  double log_tests, struct mla_oracle_test_random *random, struct tally *tally)
{
    double *blind = calloc((size_t)row->n, sizeof *blind);
    struct mla_oracle_toy_result result;

    assert_non_null(blind);
    choose_blindly(scheme, truth, distinct_rows(family, row->n), random, blind);
    run(kernel, scheme, row, truth, blind, random, &result);
    const struct mla_energy energy = energy_of(truth, &kernel->model, result.out, log_tests);

    if (is_accused(&energy) || !interval_holds(truth, &kernel->model, result.out)) {
        print_error("%s, family %d, scheme %d, n %d: energy %g, threshold %g\n", kernel->name,
                    family, scheme, (int)row->n, energy.energy, energy.threshold);
        fail();
    }
    assert_true(energy.columns_n == COLUMNS);
    tally->worst = fmax(tally->worst, energy.energy / energy.threshold);
    tally->degree = fmax(tally->degree, energy.energy / COLUMNS);
    tally->rows++;
    free(blind);
}

/* Rows of all families and sizes, each for three kernels and schemes drawn at random. */
static void conforming_kernels_are_never_accused(void **state)
{
    static const struct {
        int64_t n;
        int trials;
    } sizes[] = {{1, 180}, {2, 300}, {3, 300}, {17, 600}, {128, 720}, {2048, 36}};
    const double rows = 3.0 * (180 + 300 + 300 + 600 + 720 + 36);
    const double log_tests = log(1e12 * rows);
    struct mla_oracle_test_random random = {20};
    struct tally tallies[KERNELS_N] = {{0}};
    long judged = 0;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int trial = 0; trial < sizes[i].trials; trial++) {
            const int family = trial % FAMILIES_N;
            struct mla_oracle_test_row *row = row_make(family, sizes[i].n, &random);
            struct mla_truth *truth = truth_make(row, distinct_rows(family, row->n));

            for (int k = 0; k < 3; k++) {
                const size_t which = (size_t)(mla_oracle_test_bits(&random) % KERNELS_N);
                const int scheme = (int)(mla_oracle_test_bits(&random) % SCHEMES_N);

                judge(&kernels[which], family, scheme, row, truth, log_tests, &random,
                      &tallies[which]);
            }
            mla_truth_free(truth);
            mla_oracle_test_row_free(row);
        }
    }
    for (size_t i = 0; i < KERNELS_N; i++) {
        print_message("  %-72s worst %.4f of the threshold, energy/columns %.3f, %ld rows\n",
                      kernels[i].name, tallies[i].worst, tallies[i].degree, tallies[i].rows);
        judged += tallies[i].rows;
    }
    assert_true((double)judged == rows);
}

/*
 * Where one key is far louder than the others, a column's whole energy hangs on its coin, and the
 * denominator, which the others push, moves it just as far again: the centred length must say so.
 */
static void one_loud_key(void **state)
{
    struct mla_oracle_test_random random = {12};

    (void)state;
    for (int trial = 0; trial < 20; trial++) {
        struct mla_oracle_test_row *row = row_make(LOUD, 64, &random);
        struct mla_truth *truth = truth_make(row, 64);
        struct mla_oracle_toy_result result;
        double blind[64];

        choose_blindly(FIRST_UP, truth, 64, &random, blind);
        run(&kernels[ROUGH], FIRST_UP, row, truth, blind, &random, &result);
        const struct mla_energy energy = energy_of(truth, &kernels[ROUGH].model, result.out, 1.0);

        assert_false(is_accused(&energy));
        assert_true(energy.energy > 0.3 * COLUMNS);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
}

/* One key, normalised as badly as 64 roundings may: a copy that is off in every column alike. */
static void normalisation_may_look_at_v(void **state)
{
    struct mla_oracle_test_random random = {13};
    struct mla_model model = kernels[ROUGH].model;
    const double off[] = {1.0 + 0.99 * 0x1p-6, 1.0 - 0.99 * 0x1p-6, 1.0 + 2.0 * 0x1p-6};

    (void)state;
    model.add_u = 0x1p-12;
    model.div_roundings = 64;
    for (int i = 0; i < 3; i++) {
        struct mla_oracle_test_row *row = row_make(FLAT, 1, &random);
        struct mla_truth *truth = truth_make(row, 1);
        uint16_t y[COLUMNS];

        for (int64_t l = 0; l < COLUMNS; l++) {
            y[l] = mla_oracle_bf16_truncate(truth->out[l] * off[i]);
        }
        model.out_round = MLA_OUT_TRUNCATE;
        const struct mla_energy energy = energy_of(truth, &model, y, 5.0);

        assert_true(is_accused(&energy) == (i == 2));
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
}

/*
 * The test is not lax: where sums are as good as exact, a blind kernel's mean energy comes to a
 * good part of the columns (an energy of N is what the theorem pays for).
 */
static void blind_kernels_come_close(void **state)
{
    static const struct {
        int family, scheme;
        double least;
    } lines[] = {{FLAT, COINS, 0.5}, {ONE_HEAVY, HEAVY_UP, 0.3}, {FEW_ROWS, COINS, 0.1}};
    struct mla_oracle_test_random random = {5};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        double sum = 0.0;

        for (int trial = 0; trial < 100; trial++) {
            struct mla_oracle_test_row *row = row_make(lines[i].family, 64, &random);
            const int64_t distinct = distinct_rows(lines[i].family, 64);
            struct mla_truth *truth = truth_make(row, distinct);
            struct mla_oracle_toy_result result;
            double blind[64];

            choose_blindly(lines[i].scheme, truth, distinct, &random, blind);
            run(&kernels[ROUGH], lines[i].scheme, row, truth, blind, &random, &result);
            sum += energy_of(truth, &kernels[ROUGH].model, result.out, 1.0).energy;
            mla_truth_free(truth);
            mla_oracle_test_row_free(row);
        }
        print_message("  family %d: mean energy %.3f of the columns\n", lines[i].family,
                      sum / (100.0 * COLUMNS));
        assert_true(sum >= lines[i].least * 100.0 * COLUMNS);
        assert_true(sum <= 100.0 * COLUMNS);
    }
}

/* ---- faults -----------------------------------------------------------------------------------*/

/* On how many of `trials` rows does the interval hold, and how many of these does the energy
 * accuse? The honest kernel with a fault. */
static void count_accused(const struct kernel *kernel, int32_t fault, int family, int64_t n,
                          int trials, int *held, int *accused, double *least)
{
    struct mla_oracle_test_random random = {77};

    *held = 0;
    *accused = 0;
    *least = INFINITY;
    for (int trial = 0; trial < trials; trial++) {
        struct mla_oracle_test_row *row = row_make(family, n, &random);
        struct mla_truth *truth = truth_make(row, distinct_rows(family, n));
        struct mla_oracle_toy toy = {.model = &kernel->model,
                                     .block_keys = kernel->block_keys,
                                     .merges = kernel->merges,
                                     .log2_domain = kernel->log2_domain,
                                     .direction = 1.0,
                                     .fault = fault,
                                     .random = &random};
        struct mla_oracle_toy_result result;

        mla_oracle_toy_run(&toy, row, &result);
        const struct mla_energy energy = energy_of(truth, &kernel->model, result.out, log(1e12));

        *held += interval_holds(truth, &kernel->model, result.out);
        *accused += is_accused(&energy);
        *least = fmin(*least, energy.energy / energy.threshold);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
}

/* What the interval cannot see, the energy does; and nothing in the sound kernel. */
static void faults_within_the_interval_are_accused(void **state)
{
    static const struct {
        const char *what;
        size_t kernel;
        int32_t fault;
        int family;
        int64_t n;
    } lines[] = {
        {"one key of 2048 nearly equal ones dropped", BF16_P, MLA_ORACLE_TOY_DROPS_A_KEY, FLAT,
         2048},
        {"one key of 2048 dropped, p rounded for V only", UNROUNDED_SUM, MLA_ORACLE_TOY_DROPS_A_KEY,
         FLAT, 2048},
        {"first rescale forgotten, 128 of 2048 keys weigh a fifth too much", BF16_P,
         MLA_ORACLE_TOY_OMITS_FIRST_RESCALE, STEP, 2048},
        {"one key of 256 dropped, rough exponential", ROUGH, MLA_ORACLE_TOY_DROPS_A_KEY, FLAT, 256},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const struct kernel *kernel = &kernels[lines[i].kernel];
        int held;
        int accused;
        double least;

        count_accused(kernel, lines[i].fault, lines[i].family, lines[i].n, 6, &held, &accused,
                      &least);
        print_message("  %s: interval holds on %d of 6 rows, accused %d, at %.3g of the threshold "
                      "or more\n",
                      lines[i].what, held, accused, least);
        assert_int_equal(held, 6);
        assert_true(accused >= 5);
        count_accused(kernel, MLA_ORACLE_TOY_SOUND, lines[i].family, lines[i].n, 6, &held, &accused,
                      &least);
        assert_int_equal(held, 6);
        assert_int_equal(accused, 0);
    }
}

/* The same kernel, the same fault: knowing the frame of p shortens the deviation. */
static void a_known_frame_is_sharper(void **state)
{
    int held;
    int accused;
    double unknown;
    double known;

    (void)state;
    count_accused(&kernels[BF16_P], MLA_ORACLE_TOY_DROPS_A_KEY, FLAT, 2048, 4, &held, &accused,
                  &unknown);
    count_accused(&kernels[BF16_P_KNOWN], MLA_ORACLE_TOY_DROPS_A_KEY, FLAT, 2048, 4, &held,
                  &accused, &known);
    print_message("  one key of 2048 dropped: at %.3g of the threshold, frame known %.3g\n",
                  unknown, known);
    assert_int_equal(accused, 4);
    assert_true(known > 5.0 * unknown);
}

/* ---- every premise is needed ------------------------------------------------------------------*/

/* Two value rows, the copies of one pushed up and of the other down. */
static int accused_with_copies(bool known)
{
    struct mla_oracle_test_random random = {3};
    int accused = 0;

    for (int trial = 0; trial < 20; trial++) {
        struct mla_oracle_test_row *row = row_make(FEW_ROWS, 120, &random);
        struct mla_truth *truth = truth_make(row, known ? 3 : 120);
        struct mla_oracle_toy_result result;
        double blind[120];

        for (int j = 0; j < 120; j++) {
            blind[j] = j % 3 == 0 ? 1.0 : -1.0;
        }
        run(&kernels[ROUGH], COINS, row, truth, blind, &random, &result);
        const struct mla_energy energy =
            energy_of(truth, &kernels[ROUGH].model, result.out, log(1e12));

        accused += is_accused(&energy);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    return accused;
}

static void copies_share_coins(void **state)
{
    (void)state;
    assert_int_equal(accused_with_copies(true), 0);
    assert_true(accused_with_copies(false) >= 15);
}

/* One value row only, its p rounded for V only: every copy's error is the same. */
static int accused_with_one_row(bool known)
{
    struct mla_oracle_test_random random = {4};
    int accused = 0;

    for (int trial = 0; trial < 20; trial++) {
        struct mla_oracle_test_row *row = row_make(DUPLICATES, 512, &random);
        struct mla_truth *truth = truth_make(row, known ? 1 : 512);
        struct mla_oracle_toy_result result;
        double blind[512];

        choose_blindly(ALL_UP, truth, 1, &random, blind);
        run(&kernels[UNROUNDED_SUM], ALL_UP, row, truth, blind, &random, &result);
        const struct mla_energy energy =
            energy_of(truth, &kernels[UNROUNDED_SUM].model, result.out, log(1e12));

        accused += is_accused(&energy);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    return accused;
}

static void copies_of_one_row(void **state)
{
    (void)state;
    assert_int_equal(accused_with_one_row(true), 0);
    assert_true(accused_with_one_row(false) >= 15);
}

/*
 * All columns the same: their energies are one energy 32 times over, with a tail to match. At t = 5
 * a row of independent columns is accused with a chance of 0.7 % at most.
 */
static void columns_must_not_share_coins(void **state)
{
    struct mla_oracle_test_random random = {6};
    int accused[2] = {0, 0};

    (void)state;
    for (int trial = 0; trial < 800; trial++) {
        struct mla_oracle_test_row *row = row_make(FLAT, 32, &random);
        double blind[32];

        for (int64_t j = 0; trial % 2 == 0 && j < 32; j++) {
            for (int64_t l = 1; l < COLUMNS; l++) {
                row->kv[j * HEAD_DIM + l] = row->kv[j * HEAD_DIM];
            }
        }
        struct mla_truth *truth = truth_make(row, 32);
        struct mla_oracle_toy_result result;

        choose_blindly(COINS, truth, 32, &random, blind);
        run(&kernels[ROUGH], COINS, row, truth, blind, &random, &result);
        const struct mla_energy energy = energy_of(truth, &kernels[ROUGH].model, result.out, 5.0);

        accused[trial % 2] += is_accused(&energy);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    print_message("  accused of 400: %d with one column's coins for all, %d without\n", accused[0],
                  accused[1]);
    assert_true(accused[0] >= 12);
    assert_true(accused[1] <= 3);
}

/* Weights that look at V push a single column n times a step instead of sqrt(n). */
static void weights_that_look_are_accused(void **state)
{
    struct mla_oracle_test_random random = {8};
    int accused = 0;

    (void)state;
    for (int trial = 0; trial < 10; trial++) {
        struct mla_oracle_test_row *row = row_make(FLAT, 512, &random);
        struct mla_truth *truth = truth_make(row, 512);
        struct mla_oracle_toy toy = {.model = &kernels[ROUGH].model,
                                     .choice = MLA_ORACLE_TOY_GREEDY,
                                     .direction = 1.0,
                                     .target = truth->out[0],
                                     .random = &random};
        struct mla_oracle_toy_result result;

        mla_oracle_toy_run(&toy, row, &result);
        const struct mla_energy energy =
            energy_of(truth, &kernels[ROUGH].model, result.out, log(1e12));

        assert_true(interval_holds(truth, &kernels[ROUGH].model, result.out));
        accused += is_accused(&energy);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    assert_int_equal(accused, 10);
}

/* ---- outputs and rows out of the ordinary -----------------------------------------------------*/

static void outputs_out_of_the_ordinary(void **state)
{
    struct mla_oracle_test_random random = {9};
    struct mla_oracle_test_row *row = row_make(NORMAL, 16, &random);
    struct mla_oracle_toy_result result;
    double blind[16];

    (void)state;
    for (int64_t j = 0; j < 16; j++) {
        row->kv[j * HEAD_DIM + 5] = j % 2 == 0 ? 0 : 0x8000; /* a column of zeros */
    }
    struct mla_truth *truth = truth_make(row, 16);

    choose_blindly(COINS, truth, 16, &random, blind);
    run(&kernels[BF16_P], COINS, row, truth, blind, &random, &result);
    struct mla_energy energy = energy_of(truth, &kernels[BF16_P].model, result.out, 50.0);

    assert_false(is_accused(&energy));
    assert_int_equal(energy.columns_n, COLUMNS - 1);
    assert_true(fabs(energy.threshold - (31.0 + 2.0 * sqrt(31.0 * 50.0) + 100.0)) < 1e-9);
    result.out[5] = 0x8000; /* -0 is as good as +0 */
    energy = energy_of(truth, &kernels[BF16_P].model, result.out, 50.0);
    assert_false(is_accused(&energy));
    result.out[5] = 0x0080; /* no choice of signs makes 2^-126 of zeros */
    energy = energy_of(truth, &kernels[BF16_P].model, result.out, 50.0);
    assert_true(isinf(energy.energy) && is_accused(&energy));
    result.out[5] = 0;
    const uint16_t good = result.out[7];
    static const uint16_t bad[] = {0x7fc0, 0xff81, 0x7f80, 0xff80, 0x7f7f};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        result.out[7] = bad[i];
        energy = energy_of(truth, &kernels[BF16_P].model, result.out, 50.0);
        assert_true(is_accused(&energy));
    }
    result.out[7] = good;
    energy = energy_of(truth, &kernels[BF16_P].model, result.out, 50.0);
    assert_false(is_accused(&energy));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Where the rounded output may be Inf, Inf is no fault. */
static void overflow_of_the_last_rounding(void **state)
{
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(1, HEAD_DIM, COLUMNS, 0.125f);
    uint16_t y[COLUMNS];

    (void)state;
    for (int64_t l = 0; l < COLUMNS; l++) {
        y[l] = row->kv[l] = l % 2 == 0 ? 0x7e7f : 0xfe7f; /* near a quarter of 2^128 */
    }
    struct mla_truth *truth = truth_make(row, 1);
    struct mla_energy energy = energy_of(truth, &kernels[BF16_SUMS].model, y, 50.0);

    assert_false(is_accused(&energy));
    y[0] = 0x7f80;
    energy = energy_of(truth, &kernels[BF16_SUMS].model, y, 50.0);
    assert_true(is_accused(&energy));
    truth->out[0] = 0x1.ffp127; /* as if the value itself stood at the edge */
    energy = energy_of(truth, &kernels[BF16_SUMS].model, y, 50.0);
    assert_false(is_accused(&energy));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

static void rows_without_a_test(void **state)
{
    struct mla_oracle_test_random random = {10};
    struct mla_oracle_test_row *row = row_make(NORMAL, 4, &random);
    struct mla_energy energy = {-1, -1.0, -1.0};
    struct mla_model model = kernels[BF16_P].model;
    const uint16_t y[COLUMNS] = {0};
    struct mla_truth *truth = truth_make(row, 4);

    (void)state;
    model.weights_ignore_v = 0;
    assert_int_equal(mla_bound_energy(truth, &model, y, 50.0, &energy), MLA_BOUND_MODEL);
    model = kernels[BF16_P].model;
    model.p_u = 1.5;
    assert_int_equal(mla_bound_energy(truth, &model, y, 50.0, &energy), MLA_BOUND_MODEL);
    model = kernels[BF16_P].model;
    model.acc_u = 0.5;
    model.acc_extra.constant = 4.0;
    assert_int_equal(mla_bound_energy(truth, &model, y, 50.0, &energy), MLA_BOUND_MODEL);
    mla_truth_free(truth);
    row->kv[3] = 0x7fc0;
    truth = truth_make(row, 4);
    assert_int_equal(mla_bound_energy(truth, &kernels[0].model, y, 50.0, &energy),
                     MLA_BOUND_NONFINITE);
    mla_truth_free(truth);
    row->kv[3] = 0x7f7f;
    truth = truth_make(row, 4);
    assert_int_equal(mla_bound_energy(truth, &kernels[0].model, y, 50.0, &energy), MLA_BOUND_RANGE);
    mla_truth_free(truth);
    assert_true(energy.columns_n == -1 && energy.energy == -1.0 && energy.threshold == -1.0);
    mla_oracle_test_row_free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conforming_kernels_are_never_accused),
        cmocka_unit_test(one_loud_key),
        cmocka_unit_test(normalisation_may_look_at_v),
        cmocka_unit_test(blind_kernels_come_close),
        cmocka_unit_test(faults_within_the_interval_are_accused),
        cmocka_unit_test(a_known_frame_is_sharper),
        cmocka_unit_test(copies_share_coins),
        cmocka_unit_test(copies_of_one_row),
        cmocka_unit_test(columns_must_not_share_coins),
        cmocka_unit_test(weights_that_look_are_accused),
        cmocka_unit_test(outputs_out_of_the_ordinary),
        cmocka_unit_test(overflow_of_the_last_rounding),
        cmocka_unit_test(rows_without_a_test),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
