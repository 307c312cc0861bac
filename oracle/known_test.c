/* SPDX-License-Identifier: Apache-2.0
 *
 * known_test.c - what knowing the frame of p buys, and that it is the right frame.
 *
 * Closed forms for rows of two keys; the order in which a ring's schedule visits keys, against
 * tables written out by hand; honest and choosing kernels over several shards; faults that only the
 * narrower set shows; and how much narrower it is. That conforming kernels stay inside on rows of
 * every other kind is bound_toy_test.c.
 */
#include "oracle/known.h"
#include "oracle/test_toy.h"
#include "oracle/visible.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD_DIM 64
#define COLUMNS  MLA_ORACLE_TOY_COLUMNS
#define RANKS    4

/* ---- kernels: float sums key by key -----------------------------------------------------------*/

#define COMMON                                                                                     \
    .add_u = 0x1p-24, .score_depth = {.per_width = 1}, .arg_roundings = 2, .exp_error = 0x1p-23,   \
    .exp_floor = 0x1p-126, .p_u = 0x1p-8, .div_roundings = 1, .stats_max = MLA_STATS_ROUNDED

static const struct mla_model row_frame = {COMMON, .p_frame = MLA_P_FRAME_ROW,
                                           .acc_depth = {.constant = 1, .per_key = 1}};

/* Blocks of 64 keys. */
static const struct mla_model block_frames = {
    COMMON, .p_frame = MLA_P_FRAME_BLOCKS, .p_block_keys = 64,
    .rescales = {.constant = -1, .per_block = 1, .block_keys = 64},
    .acc_depth = {.per_key = 1, .per_block = 1, .block_keys = 64}};

/* The ring's K chunks. */
static const struct mla_model chunk_frames = {COMMON, .p_frame = MLA_P_FRAME_BLOCKS,
                                              .rescales = {.constant = -1, .per_block = 1},
                                              .acc_depth = {.per_key = 1, .per_block = 1}};

static struct mla_model rounded_sum(struct mla_model model)
{
    model.sum_rounded = 1;
    return model;
}

static struct mla_model without_frame(struct mla_model model)
{
    model.p_frame = MLA_P_FRAME_UNKNOWN;
    return model;
}

/* ---- rows -------------------------------------------------------------------------------------*/

static uint16_t bf16(double x)
{
    return mla_oracle_test_bf16((float)x);
}

/* n keys N(0,1), the query N(0,1) times `heat`. */
static struct mla_oracle_test_row *row_make(double heat, int64_t n,
                                            struct mla_oracle_test_random *random)
{
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(n, HEAD_DIM, COLUMNS, 0.125f);

    for (int64_t i = 0; i < HEAD_DIM; i++) {
        row->q[i] = bf16(heat * mla_oracle_test_normal(random));
    }
    for (int64_t i = 0; i < n * HEAD_DIM; i++) {
        row->kv[i] = bf16(mla_oracle_test_normal(random));
    }
    return row;
}

static struct mla_truth *truth_of(const struct mla_oracle_test_row *row)
{
    struct mla_truth *truth = NULL;

    assert_int_equal(mla_truth_ring(&row->args, row->row, &truth), MLA_OK);
    return truth;
}

static void bounds_of(const struct mla_truth *truth, const struct mla_model *model,
                      struct mla_bound *bounds)
{
    assert_null(mla_bound_model_error(model, true));
    assert_int_equal(mla_bound_row(truth, model, bounds), MLA_BOUND_OK);
}

/* Share of the columns whose output lies outside. */
static double outside(const struct mla_bound *bounds, const uint16_t *out)
{
    int n = 0;

    for (int l = 0; l < COLUMNS; l++) {
        const float y = mla_oracle_test_value(out[l]);

        n += !(bounds[l].lo <= y && y <= bounds[l].hi);
    }
    return (double)n / COLUMNS;
}

/* The greatest |result - middle| over half the width, before output rounding. */
static double depth(const struct mla_bound *bounds, const double *real)
{
    double deepest = 0.0;

    for (int l = 0; l < COLUMNS; l++) {
        const double middle = bounds[l].low / 2.0 + bounds[l].high / 2.0;
        const double half = fmin(bounds[l].high - middle, middle - bounds[l].low);
        const double ratio = fabs(real[l] - middle) / half;

        deepest = ratio <= deepest ? deepest : ratio;
    }
    return deepest;
}

/* ---- closed forms -----------------------------------------------------------------------------*/

/*
 * Two keys with this gap between their scores, values 1 and -1 in column 0 and 1 and 1 in column
 * 1, larger score first or last. An arithmetic without errors but p's rounding.
 */
static struct mla_oracle_test_row *pair(double gap, bool larger_first)
{
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(2, HEAD_DIM, COLUMNS, 1.0f);
    const int larger = larger_first ? 0 : 1;

    row->q[COLUMNS] = bf16(1.0);
    row->kv[larger * HEAD_DIM + COLUMNS] = bf16(gap); /* scores gap and 0 */
    row->kv[larger * HEAD_DIM] = bf16(1.0);
    row->kv[(1 - larger) * HEAD_DIM] = bf16(-1.0);
    row->kv[1] = bf16(1.0);
    row->kv[HEAD_DIM + 1] = bf16(1.0);
    return row;
}

static void assert_interval(const struct mla_bound *bound, double low, double high)
{
    if (!(bound->low <= low && bound->low >= low - 1e-12 && bound->high >= high &&
          bound->high <= high + 1e-12)) {
        print_error("[%.17g, %.17g], not [%.17g, %.17g]\n", bound->low, bound->high, low, high);
        fail();
    }
}

static void rounded_p_is_a_number(void **state)
{
    static const double gaps[] = {0.75, 1.0, 3.5, 9.0, 30.0};
    struct mla_bound bounds[COLUMNS];

    (void)state;
    for (int i = 0; i < 5 * 8; i++) {
        const double gap = gaps[i / 8];
        const bool larger_first = i % 2 != 0;
        const bool rounds_sum = i / 2 % 2 != 0;
        const bool truncates = i / 4 % 2 != 0;
        const struct mla_model model = {.p_u = truncates ? 0x1p-7 : 0x1p-8,
                                        .p_frame = MLA_P_FRAME_ROW,
                                        .sum_rounded = rounds_sum};
        struct mla_oracle_test_row *row = pair(gap, larger_first);
        struct mla_truth *truth = truth_of(row);
        const double p = exp(-gap);
        const double cut =
            truncates ? floor(ldexp(p, 8 - ilogb(p) - 1)) : rint(ldexp(p, 8 - ilogb(p) - 1));
        const double stored = ldexp(cut, ilogb(p) + 1 - 8);
        /* The row's maximum is 1 -+ 2^-49; cut toward zero that may be 1 - 2^-8. */
        const double least = truncates ? 1.0 - 0x1p-8 : 1.0;
        const double sum = 1.0 + (rounds_sum ? stored : p);

        bounds_of(truth, &model, bounds);
        if (!truncates) {
            assert_interval(&bounds[0], (1.0 - stored) / sum, (1.0 - stored) / sum);
            assert_interval(&bounds[1], (1.0 + stored) / sum, (1.0 + stored) / sum);
        } else if (rounds_sum) {
            /* The formula is linear: it exceeds the two ends by less than the square of their
             * distance. */
            assert_true(bounds[0].low <= (least - stored) / (least + stored));
            assert_true(bounds[0].high >= (1.0 - stored) / sum);
            assert_true(bounds[0].high - bounds[0].low <=
                        (1.0 - stored) / sum - (least - stored) / (least + stored) + 0x1p-14);
        } else {
            assert_interval(&bounds[0], (least - stored) / sum, (1.0 - stored) / sum);
            assert_interval(&bounds[1], (least + stored) / sum, (1.0 + stored) / sum);
        }
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
}

/* Is the pair of statistics accepted? */
static bool accepts(const struct mla_truth *truth, const struct mla_model *model, double max,
                    double sum)
{
    double ratio;
    const bool is_accepted = mla_bound_stats_accepts(truth, model, (float)max, (float)sum, &ratio);

    assert_true(is_accepted == (ratio <= 1.0 + 1e-12));
    return is_accepted;
}

/* A sum of rounded p is a known number too; without the frame 2^-8 of it would be granted. */
static void rounded_sum_is_a_number(void **state)
{
    const struct mla_model model = {
        .exp_error = 0x1p-23, .p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1};
    const struct mla_model general = without_frame(model);
    struct mla_model other = model;
    struct mla_bound_stats stats;
    struct mla_oracle_test_row *row = pair(0.75, true);
    struct mla_truth *truth = truth_of(row);
    const double sum = 1.0 + rint(exp(-0.75) * 512.0) / 512.0;

    (void)state;
    assert_int_equal(mla_bound_stats(truth, &model, &stats), MLA_BOUND_OK);
    assert_true(stats.sum_lo <= sum && sum <= stats.sum_hi);
    assert_true(stats.sum_hi - stats.sum_lo < 1e-12);
    assert_true(accepts(truth, &model, 0.75, sum));
    assert_false(accepts(truth, &model, 0.75, sum * (1.0 + 0x1p-12)));
    assert_false(accepts(truth, &model, 0.75, sum * (1.0 - 0x1p-12)));
    assert_true(accepts(truth, &general, 0.75, sum * (1.0 + 0x1p-12)));
    assert_true(accepts(truth, &general, 0.75, sum * (1.0 - 0x1p-12)));
    other.stats_max = MLA_STATS_OTHER; /* the sum may be in another frame: nothing is known of it */
    assert_int_equal(mla_bound_stats(truth, &other, &stats), MLA_BOUND_OK);
    assert_true(stats.sum_lo == 0.0 && isinf(stats.sum_hi));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Arithmetic finer than binary32 rounds once more when it stores a statistic: the nearest binary32 to the
 * true ones are right, the next but one are not. */
static void stored_statistics_are_rounded(void **state)
{
    struct mla_model model = {.add_u = 0x1p-53, .p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW};
    struct mla_oracle_test_row *row = pair(0.75, true);

    (void)state;
    row->args.scale = 0.1f;
    struct mla_truth *truth = truth_of(row);
    const struct mla_truth_info info = mla_truth_info(truth);
    const double sum = exp(info.log_sum_exp - info.max);
    const float max = (float)info.max;

    assert_true((double)max != info.max && (double)(float)sum != sum);
    assert_true(accepts(truth, &model, (double)max, sum));
    assert_false(accepts(truth, &model, (double)max, sum * (1.0 + 0x1p-20)));
    assert_false(accepts(truth, &model, (double)max * (1.0 + 0x1p-20), sum));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* One key a block: each is 1 in its own frame, and nothing is rounded on the way to the row's. */
static void block_frame_of_one_key(void **state)
{
    struct mla_model model = {.p_u = 0x1p-8,
                              .p_frame = MLA_P_FRAME_BLOCKS,
                              .p_block_keys = 1,
                              .rescales = {.constant = 1}};
    struct mla_oracle_test_row *row = pair(0.75, false); /* the larger score comes last */
    struct mla_truth *truth = truth_of(row);
    struct mla_bound bounds[COLUMNS];
    const double p = exp(-0.75);

    (void)state;
    for (int i = 0; i < 2; i++) {
        model.sum_rounded = i;
        bounds_of(truth, &model, bounds);
        assert_interval(&bounds[0], (1.0 - p) / (1.0 + p), (1.0 - p) / (1.0 + p));
    }
    /* An error of the rescale factor alone moves the first weight; 1 for the last stays. */
    model.sum_rounded = 1;
    model.alpha_u = 0x1p-10;
    bounds_of(truth, &model, bounds);
    const double most = p / (1.0 - 0x1p-10);
    const double least = p * (1.0 - 0x1p-10);

    assert_true(bounds[0].low <= (1.0 - most) / (1.0 + most));
    assert_true(bounds[0].high >= (1.0 - least) / (1.0 + least));
    assert_true(bounds[0].high - bounds[0].low <=
                1.01 * 4.0 * p * 0x1p-10 / ((1.0 + p) * (1.0 + p)));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);

    /* The larger score first: it is the row's maximum, and the second key is rounded in its frame. */
    model.alpha_u = 0.0;
    row = pair(0.75, true);
    truth = truth_of(row);
    bounds_of(truth, &model, bounds);
    const double stored = rint(p * 512.0) / 512.0; /* p in [1/4, 1/2) */

    assert_interval(&bounds[0], (1.0 - stored) / (1.0 + stored), (1.0 - stored) / (1.0 + stored));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* want <= got, and got not much more. */
static void just_above(double got, double want, double relative)
{
    if (!(got >= want * (1.0 - 1e-9) && got <= want * (1.0 + relative))) {
        print_error("%.10g is not just above %.10g\n", got, want);
        fail();
    }
}

static double half_width(const struct mla_bound *bound)
{
    return bound->high / 2.0 - bound->low / 2.0;
}

#define SMALL 0x1p-20

/*
 * Each error of p on its own, seen in the sum that adds p before its rounding. Scores gap and 0
 * under a scale of 1; two roundings of the argument.
 */
static void errors_of_p(void **state)
{
    static const struct {
        struct mla_model model;
        double first;  /* relative error of the larger p, in SMALL, for a gap of 1 */
        double second; /* of the smaller */
    } lines[] = {
        {{.exp_error = SMALL}, 1, 1},
        {{.add_u = SMALL, .arg_roundings = 2}, 0, 2}, /* g gap */
        /* Scores are off by g gap and 0: so is the maximum, and for the first key both. */
        {{.add_u = SMALL, .arg_roundings = 2, .arg_form = MLA_ARG_SCALED}, 4, 4},
        {{.add_u = SMALL, .arg_roundings = 2, .arg_form = MLA_ARG_MIXED}, 4, 2},
        /* The first key's own score, and the maximum's; no p exceeds 1. */
        {{.score_u = SMALL}, 1, 1},
    };
    static const double gap = 0.75;
    const double p = exp(-gap);
    const double stored = rint(p * 512.0) / 512.0;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct mla_model model = lines[i].model;
        struct mla_oracle_test_row *row = pair(gap, i % 2 != 0);
        struct mla_truth *truth = truth_of(row);
        struct mla_bound bounds[COLUMNS];
        const double size = model.exp_error > 0.0 ? 1.0 : gap;
        const double off = SMALL * size * (lines[i].first + p * lines[i].second);

        model.p_u = 0x1p-8;
        model.p_frame = MLA_P_FRAME_ROW;
        bounds_of(truth, &model, bounds);
        just_above(half_width(&bounds[1]), (1.0 + stored) / (1.0 + p) * off / (1.0 + p), 1e-4);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
}

/* Each error of the way to the row's frame on its own: the smaller score in a block before the
 * larger's, so that both p are 1, and the sum adds them rounded. */
static void errors_of_the_carry(void **state)
{
    static const struct {
        struct mla_model model;
        double first; /* relative error of the weight, in SMALL, for a gap of 1 */
    } lines[] = {
        {{.exp_error = SMALL}, 1},
        {{.alpha_u = SMALL}, 1},
        {{.rescale_scale_u = SMALL}, 1},
        {{.add_u = SMALL, .arg_roundings = 2}, 2},
        {{.add_u = SMALL, .arg_roundings = 2, .arg_form = MLA_ARG_SCALED}, 4},
        {{.add_u = SMALL, .arg_roundings = 2, .arg_form = MLA_ARG_MIXED}, 4},
        {{.score_u = SMALL}, 1},
    };
    static const double gap = 0.75;
    const double p = exp(-gap);

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct mla_model model = lines[i].model;
        struct mla_oracle_test_row *row = pair(gap, false);
        struct mla_truth *truth = truth_of(row);
        struct mla_bound bounds[COLUMNS];
        const double size = model.exp_error + model.alpha_u > 0.0 ? 1.0 : gap;
        const double off = SMALL * size * p * lines[i].first;

        model.p_u = 0x1p-8;
        model.p_frame = MLA_P_FRAME_BLOCKS;
        model.p_block_keys = 1;
        model.sum_rounded = 1;
        model.rescales.constant = 1;
        bounds_of(truth, &model, bounds);
        just_above(half_width(&bounds[0]), 2.0 * off / ((1.0 + p) * (1.0 + p)), 1e-4);
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
}

/* A kernel that scales the maximum, and fuses the scaling of the scores, may find one above it: of
 * two equal scores the second may carry the first by a factor above 1. */
static void scaled_shift_below_a_score(void **state)
{
    const struct mla_model model = {.add_u = SMALL,
                                    .arg_form = MLA_ARG_SCALED,
                                    .arg_roundings = 2,
                                    .p_u = 0x1p-8,
                                    .p_frame = MLA_P_FRAME_BLOCKS,
                                    .p_block_keys = 1,
                                    .sum_rounded = 1,
                                    .rescales = {.constant = 1}};
    struct mla_oracle_test_row *row = pair(64.0, false);
    struct mla_bound bounds[COLUMNS];

    (void)state;
    row->kv[COLUMNS] = row->kv[HEAD_DIM + COLUMNS]; /* scores 64 and 64, each off by 2 SMALL */
    struct mla_truth *truth = truth_of(row);

    bounds_of(truth, &model, bounds);
    just_above(half_width(&bounds[0]), 2.0 * (4.0 * SMALL * 64.0) / 4.0, 1e-3);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Where the scale is huge the last bit of an argument is not: two keys of score 0. */
static void underflow_of_arguments(void **state)
{
    struct mla_model model = {.arg_roundings = 2, .p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW};
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(2, HEAD_DIM, COLUMNS, 0x1p120f);
    struct mla_bound bounds[COLUMNS];
    const double last = 0x1p-149 * 0x1p120;

    (void)state;
    row->q[COLUMNS] = bf16(0x1p-120);
    for (int64_t j = 0; j < 2; j++) {
        row->kv[j * HEAD_DIM + COLUMNS] = bf16(0x1p-60); /* sums of zeros do not underflow */
        row->kv[j * HEAD_DIM] = bf16(j == 0 ? 1.0 : -1.0);
        row->kv[j * HEAD_DIM + 1] = bf16(1.0);
    }
    struct mla_truth *truth = truth_of(row);

    /* Scores: 2 * 64 + 1 places; two operations of one argument. */
    bounds_of(truth, &model, bounds);
    just_above(half_width(&bounds[1]), (129.0 + 2.0) * last, 1e-4);
    model.p_frame = MLA_P_FRAME_BLOCKS;
    model.p_block_keys = 1;
    model.rescales.constant = 1;
    model.sum_rounded = 1;
    bounds_of(truth, &model, bounds); /* of two arguments */
    just_above(half_width(&bounds[0]), 2.0 * (129.0 + 4.0) * last / 4.0, 1e-4);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

static void normalisation(void **state)
{
    const struct mla_model model = {.add_u = SMALL,
                                    .p_u = 0x1p-8,
                                    .p_frame = MLA_P_FRAME_ROW,
                                    .sum_rounded = 1,
                                    .div_roundings = 1};
    struct mla_oracle_test_row *row = pair(0.75, true);
    struct mla_truth *truth = truth_of(row);
    struct mla_bound bounds[COLUMNS];

    (void)state;
    bounds_of(truth, &model, bounds);
    assert_true(bounds[1].low <= 1.0 - SMALL && bounds[1].high >= 1.0 + SMALL);
    just_above(half_width(&bounds[1]), SMALL, 1e-4);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/*
 * A block whose p is not what its sum adds, carried by an uncertain factor R: all values 1, so that
 * only N's and D's different weights of R tell. Scores -0.75 and 0, then 2.
 */
static void carry_of_unequal_sums(void **state)
{
    const struct mla_model model = {.p_u = 0x1p-8,
                                    .p_frame = MLA_P_FRAME_BLOCKS,
                                    .p_block_keys = 2,
                                    .rescales = {.constant = 1},
                                    .alpha_u = 0x1p-6};
    static const double scores[] = {-0.75, 0.0, 2.0};
    struct mla_oracle_test_row *row = mla_oracle_test_row_new(3, HEAD_DIM, COLUMNS, 1.0f);
    struct mla_bound bounds[COLUMNS];
    const double p = exp(-0.75);
    const double stored = rint(p * 512.0) / 512.0;

    (void)state;
    row->q[COLUMNS] = bf16(1.0);
    for (int64_t j = 0; j < 3; j++) {
        row->kv[j * HEAD_DIM + COLUMNS] = bf16(scores[j]);
        row->kv[j * HEAD_DIM] = bf16(1.0);
    }
    struct mla_truth *truth = truth_of(row);

    bounds_of(truth, &model, bounds);
    double least = INFINITY;
    double most = -INFINITY;

    for (int i = -1; i <= 1; i++) {
        const double factor = exp(-2.0) * pow(1.0 - model.alpha_u, i);
        const double y = (factor * (stored + 1.0) + 1.0) / (factor * (p + 1.0) + 1.0);

        assert_true(bounds[0].low <= y && y <= bounds[0].high);
        least = fmin(least, y);
        most = fmax(most, y);
    }
    assert_true(half_width(&bounds[0]) <= most - least); /* twice what happens */
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* The weights by themselves, as other tests of a row need them. */
static void weights_and_sums(void **state)
{
    struct mla_model model = {.exp_error = SMALL, .p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW};
    struct mla_oracle_test_row *row = pair(0.75, false);
    struct mla_truth *truth = truth_of(row);
    struct mla_oracle_errors errors;
    struct mla_oracle_known known;
    const double p = exp(-0.75);
    const double stored = rint(p * 512.0) / 512.0;

    (void)state;
    assert_int_equal(mla_oracle_errors_make(truth, &model, &errors), MLA_OK);
    assert_int_equal(mla_oracle_known_make(truth, &model, &errors, &known), MLA_OK);
    assert_true(known.is_usable);
    assert_true(known.centre[0] == stored && known.half[0] == 0.0);
    assert_true(known.centre[1] == 1.0 && known.half[1] == 0.0);
    assert_true(known.most[0] == stored && known.most[1] == 1.0);
    assert_true(fabs(known.sum - (1.0 + p)) < 1e-11);
    just_above(known.sum_half, SMALL * (1.0 + p), 1e-4);
    just_above(known.sum_most, (1.0 + p) * (1.0 + SMALL), 1e-9);
    mla_oracle_known_free(&known);
    mla_oracle_errors_free(&errors);

    model.p_frame = MLA_P_FRAME_BLOCKS; /* both are 1; the first is carried */
    model.p_block_keys = 1;
    model.rescales.constant = 1;
    assert_int_equal(mla_oracle_errors_make(truth, &model, &errors), MLA_OK);
    assert_int_equal(mla_oracle_known_make(truth, &model, &errors, &known), MLA_OK);
    assert_true(fabs(known.centre[0] - p) < 1e-11 && known.centre[1] == 1.0);
    just_above(known.half[0], SMALL * p, 1e-4);
    assert_true(known.half[1] == 0.0);
    just_above(known.sum_half, SMALL * (1.0 + 2.0 * p), 1e-4);
    mla_oracle_known_free(&known);
    mla_oracle_errors_free(&errors);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* A boundary of bf16 inside the exponential's error leaves both neighbours open, and only those. */
static void boundary_leaves_two(void **state)
{
    struct mla_model model = {.p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1};
    const double gap = 0.75;
    struct mla_oracle_test_row *row = pair(gap, true);
    struct mla_truth *truth = truth_of(row);
    struct mla_bound bounds[COLUMNS];
    const double p = exp(-gap);
    const double below = floor(p * 512.0) / 512.0;
    const double above = below + 1.0 / 512.0;
    const double tie = (below + above) / 2.0;

    (void)state;
    model.exp_error = 1.1 * fabs(tie - p) / p;
    bounds_of(truth, &model, bounds);
    assert_true(bounds[0].low <= (1.0 - above) / (1.0 + above));
    assert_true(bounds[0].high >= (1.0 - below) / (1.0 + below));
    assert_true(bounds[0].high - bounds[0].low <= 1.02 * 2.0 / 512.0 / ((1.0 + p) * (1.0 + p)));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* A p that may be returned as 0, or flushed, is not known to be there at all. */
static void lost_p(void **state)
{
    struct mla_model model = {.p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1};
    struct mla_oracle_test_row *row = pair(4.0, true);
    struct mla_truth *truth = truth_of(row);
    struct mla_bound bounds[COLUMNS];
    const double p = exp(-4.0);

    (void)state;
    model.exp_floor = 0.99 * p;
    bounds_of(truth, &model, bounds);
    assert_true(bounds[0].high < 1.0 - p);
    model.exp_floor = 1.01 * p;
    bounds_of(truth, &model, bounds);
    assert_true(bounds[0].high >= 1.0 && bounds[0].high <= 1.0 + 3.0 * p);
    assert_true(bounds[0].low <= (1.0 - p) / (1.0 + p));
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* A rescale factor that may be returned as 0 takes all of its block, from O and from l. */
static void lost_rescale(void **state)
{
    const double floor_e = 0x1p-20;
    const struct mla_model model = {.p_u = 0x1p-8,
                                    .p_frame = MLA_P_FRAME_BLOCKS,
                                    .p_block_keys = 1,
                                    .rescales = {.constant = 1},
                                    .exp_floor = floor_e};
    struct mla_oracle_test_row *row = pair(15.0, false); /* e^-15 is below 2^-20 */
    struct mla_truth *truth = truth_of(row);
    struct mla_bound bounds[COLUMNS];

    (void)state;
    bounds_of(truth, &model, bounds);
    assert_true(bounds[0].low <= 1.0 - 2.0 * exp(-15.0) && bounds[0].high >= 1.0);
    /* Each of two keys loses up to 3 floors (1 + p_u), in O and in l. */
    just_above(half_width(&bounds[0]), 12.0 * floor_e * (1.0 + 0x1p-8), 1e-4);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Flushed values are lost whole, whatever is known of the weights. */
static void flushed_values(void **state)
{
    const struct mla_model model = {
        .p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1, .flush = 1};
    struct mla_oracle_test_row *row = pair(0.75, true);
    struct mla_bound bounds[COLUMNS];
    const double z = 1.0 + rint(exp(-0.75) * 512.0) / 512.0;

    (void)state;
    row->kv[0] = 0x007f; /* 127 * 2^-133 */
    row->kv[HEAD_DIM] = 0x007f;
    struct mla_truth *truth = truth_of(row);

    bounds_of(truth, &model, bounds);
    assert_true(bounds[0].low <= 0.0);
    /* Four operations for each of two keys, and the result, lose 2^-126 besides. */
    just_above(half_width(&bounds[0]),
               (8.0 * (1.0 + 0x1p-8) / z + 1.0) * 0x1p-126 + 127.0 * 0x1p-133, 1e-4);
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* Models that say too little get the general set, bit for bit. */
static void too_little_said(void **state)
{
    struct mla_oracle_test_random random = {5};
    struct mla_oracle_test_row *row = row_make(1.0, 70, &random);
    struct mla_truth *truth = truth_of(row);
    struct mla_bound bounds[COLUMNS];
    struct mla_bound general[COLUMNS];
    static const double units[] = {0.0, 0x1p-8, 0x1p-7, 0x1p-9, 0x1.1p-8, 0x1p-6};

    (void)state;
    for (int i = 0; i < 6; i++) {
        for (int frame = 0; frame < 3; frame++) {
            struct mla_model model = block_frames;
            const bool is_said = frame != MLA_P_FRAME_UNKNOWN && (i == 1 || i == 2);

            model.p_u = units[i];
            model.p_frame = frame;
            bounds_of(truth, &model, bounds);
            model.p_frame = MLA_P_FRAME_UNKNOWN;
            bounds_of(truth, &model, general);
            int different = 0;

            for (int l = 0; l < COLUMNS; l++) { /* an intersection, whatever is said */
                assert_true(bounds[l].low >= general[l].low && bounds[l].high <= general[l].high);
                assert_true(bounds[l].lo >= general[l].lo && bounds[l].hi <= general[l].hi);
                different += bounds[l].low != general[l].low || bounds[l].high != general[l].high;
            }
            assert_int_equal(different, is_said ? COLUMNS : 0);
        }
    }
    mla_truth_free(truth);
    mla_oracle_test_row_free(row);
}

/* ---- several shards ---------------------------------------------------------------------------*/

struct ring {
    struct mla_ring_args args;
    uint16_t *q;
    uint16_t *kv[RANKS];
    const uint16_t *q_pointers[RANKS];
    const uint16_t *kv_pointers[RANKS];
};

struct ring_line {
    const char *name;
    int64_t q_rows;
    int64_t kv_rows;
    int64_t logical_n;
    int32_t is_balanced;
    int64_t k_chunk_size;
};

static const struct ring_line ring_lines[] = {
    {"contiguous", 128, 128, 500, 0, 96},
    {"balanced", 128, 128, 512, 1, 32},
    {"chunked", 32, 160, 600, 0, 64},
    {"chunked, large chunks", 64, 192, 768, 0, 256},
};

/* Spec: step 0 is the own shard, then alternately on and back. */
static const int64_t orders[2][RANKS][RANKS] = {
    {{0, 1, 3, 2}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 0, 2, 1}},
    {{0, 1, 2, 3}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 2, 1, 0}},
};

static struct ring *ring_new(const struct ring_line *line, int32_t topology,
                             struct mla_oracle_test_random *random)
{
    struct ring *ring = calloc(1, sizeof *ring);

    assert_non_null(ring);
    ring->q = calloc((size_t)(line->q_rows * HEAD_DIM), sizeof *ring->q);
    assert_non_null(ring->q);
    for (int64_t i = 0; i < line->q_rows * HEAD_DIM; i++) {
        ring->q[i] = bf16(1.5 * mla_oracle_test_normal(random));
    }
    for (int d = 0; d < RANKS; d++) {
        ring->kv[d] = calloc((size_t)(line->kv_rows * HEAD_DIM), sizeof *ring->kv[d]);
        assert_non_null(ring->kv[d]);
        for (int64_t i = 0; i < line->kv_rows * HEAD_DIM; i++) {
            ring->kv[d][i] = bf16(mla_oracle_test_normal(random));
        }
        ring->q_pointers[d] = ring->q;
        ring->kv_pointers[d] = ring->kv[d];
    }
    ring->args = (struct mla_ring_args){.struct_size = sizeof ring->args,
                                        .ring_size = RANKS,
                                        .batch = 1,
                                        .heads = 1,
                                        .q_rows = line->q_rows,
                                        .kv_rows = line->kv_rows,
                                        .kv_batch = 1,
                                        .kv_heads = 1,
                                        .kv_head_dim = HEAD_DIM,
                                        .gathered_rows = RANKS * line->kv_rows,
                                        .gathered_batch = 1,
                                        .head_dim = HEAD_DIM,
                                        .head_dim_v = COLUMNS,
                                        .logical_n = line->logical_n,
                                        .has_scale = 1,
                                        .scale = 0.125f,
                                        .is_balanced = line->is_balanced,
                                        .topology = topology,
                                        .num_links = 1,
                                        .q_chunk_size = 32,
                                        .k_chunk_size = line->k_chunk_size,
                                        .dim = 2,
                                        .q = ring->q_pointers,
                                        .kv = ring->kv_pointers};
    return ring;
}

static void ring_free(struct ring *ring)
{
    for (int d = 0; d < RANKS; d++) {
        free(ring->kv[d]);
    }
    free(ring->q);
    free(ring);
}

/*
 * The keys of a row of the ring, laid out in visiting order for a kernel that knows no shards, and
 * where its blocks end: chunk by chunk of so many local rows, as far as the row sees them.
 */
static struct mla_oracle_test_row *unrolled(const struct ring *ring, struct mla_row at,
                                            int64_t chunk_keys, int64_t *ends)
{
    const struct mla_ring_args *a = &ring->args;
    struct mla_oracle_visible visible;

    assert_int_equal(mla_oracle_visible_ring(a, at.rank, at.row, &visible), MLA_OK);
    struct mla_oracle_test_row *row =
        mla_oracle_test_row_new(visible.keys_n, HEAD_DIM, COLUMNS, 0.125f);
    int64_t n = 0;
    int64_t blocks_n = 0;

    memcpy(row->q, ring->q + at.row * HEAD_DIM, HEAD_DIM * sizeof *row->q);
    for (int i = 0; i < RANKS; i++) {
        const int64_t source = orders[a->topology][at.rank][i];

        for (int64_t t = 0; t < visible.shard_n[source]; t++) {
            memcpy(row->kv + n * HEAD_DIM, ring->kv[source] + t * HEAD_DIM,
                   HEAD_DIM * sizeof *row->kv);
            n++;
            if ((t + 1) % chunk_keys == 0 || t + 1 == visible.shard_n[source]) {
                ends[blocks_n++] = n;
            }
        }
    }
    assert_int_equal(n, visible.keys_n);
    mla_oracle_visible_free(&visible);
    return row;
}

#define BLOCKS_MAX 160
#define KEYS_MAX   1024 /* more than a row of ring_lines can see */

/* What a model cuts shards into: the call's chunks, none of the calls', fewer, whole shards. */
static const int32_t cuts[] = {0, 48, 7, 1000};

/* The truth's visiting order and chunks against the unrolled row, by one truth for all models. */
static int64_t chunks_of(const struct mla_truth *truth, const struct mla_model *model,
                         int64_t *chunk)
{
    const int64_t chunks_n = mla_oracle_chunks(truth, model, chunk);

    assert_true(truth->keys_n <= KEYS_MAX);
    assert_int_equal(mla_oracle_chunks(truth, model, NULL), chunks_n);
    return chunks_n;
}

static void schedule_is_the_rings(void **state)
{
    static int64_t chunk[KEYS_MAX];
    struct mla_oracle_test_random random = {31};

    (void)state;
    for (int i = 0; i < 4 * 2 * RANKS; i++) {
        struct ring *ring = ring_new(&ring_lines[i / 8], i / RANKS % 2, &random);
        const struct mla_row at = {.rank = i % RANKS, .row = ring->args.q_rows - 5};
        struct mla_truth *truth;

        assert_int_equal(mla_truth_ring(&ring->args, at, &truth), MLA_OK);
        for (size_t cut = 0; cut < sizeof cuts / sizeof cuts[0]; cut++) {
            const struct mla_model model = {.shard_block_keys = cuts[cut]};
            int64_t ends[BLOCKS_MAX] = {0};
            struct mla_oracle_test_row *row =
                unrolled(ring, at, cuts[cut] > 0 ? cuts[cut] : ring->args.k_chunk_size, ends);

            assert_int_equal(truth->keys_n, row->n);
            const int64_t chunks_n = chunks_of(truth, &model, chunk);
            for (int64_t k = 0; k < row->n; k++) {
                assert_memory_equal(truth->value[truth->visit[k]], row->kv + k * HEAD_DIM,
                                    COLUMNS * sizeof *row->kv);
                assert_true(k < ends[chunk[k]]);
                assert_true(chunk[k] == 0 || k >= ends[chunk[k] - 1]);
            }
            assert_int_equal(chunk[row->n - 1] + 1, chunks_n);
            assert_int_equal(ends[chunks_n - 1], row->n);
            mla_oracle_test_row_free(row);
        }
        mla_truth_free(truth);
        ring_free(ring);
    }
}

/* A row of two shards by hand: rank 1 of a line sees shards 1 and 0, the second first chunk by
 * chunk. */
static void schedule_by_hand(void **state)
{
    static const struct ring_line line = {"", 64, 64, 256, 0, 32};
    static int64_t chunk[KEYS_MAX];
    struct mla_oracle_test_random random = {32};
    struct ring *ring = ring_new(&line, MLA_TOPOLOGY_LINEAR, &random);
    struct mla_truth *truth;

    (void)state;
    /* Position 64 + 33: keys 64 .. 97 of shard 1, then 0 .. 63 of shard 0. */
    assert_int_equal(mla_truth_ring(&ring->args, (struct mla_row){.rank = 1, .row = 33}, &truth),
                     MLA_OK);
    assert_int_equal(truth->keys_n, 98);
    assert_int_equal(chunks_of(truth, &(struct mla_model){0}, chunk), 4);
    for (int64_t i = 0; i < 98; i++) {
        assert_int_equal(truth->visit[i], i < 34 ? 64 + i : i - 34);
        assert_int_equal(chunk[i], i < 32 ? 0 : i < 34 ? 1 : i < 66 ? 2 : 3);
    }
    /* Blocks of 48 rows whatever the call says: 34 are one, 64 are 48 and 16. */
    assert_int_equal(chunks_of(truth, &(struct mla_model){.shard_block_keys = 48}, chunk), 3);
    for (int64_t i = 0; i < 98; i++) {
        assert_int_equal(chunk[i], i < 34 ? 0 : i < 34 + 48 ? 1 : 2);
    }
    /* And of 20: 20 and 14, then 20, 20, 20 and 4. */
    assert_int_equal(chunks_of(truth, &(struct mla_model){.shard_block_keys = 20}, chunk), 6);
    for (int64_t i = 0; i < 98; i++) {
        assert_int_equal(chunk[i], i < 34 ? i / 20 : 2 + (i - 34) / 20);
    }
    mla_truth_free(truth);
    ring_free(ring);
}

static void run(struct mla_oracle_toy *toy, const struct mla_oracle_test_row *row, int32_t choice,
                struct mla_oracle_toy_result *result)
{
    toy->choice = choice;
    toy->direction = 1.0;
    mla_oracle_toy_run(toy, row, result);
}

/* Kernels whose p is rounded in the frames of the ring's K chunks, the call's or their own, are never
 * accused; the same kernels judged by the other topology's order, by the row's frame, or by chunks
 * cut in another way, are. */
static void ring_kernels(void **state)
{
    struct mla_oracle_test_random random = {33};
    struct mla_bound bounds[COLUMNS];
    struct mla_oracle_toy_result result;
    double deepest = 0.0;
    int wrong_order = 0;
    int wrong_frame = 0;
    int wrong_chunks = 0;
    int asked = 0;
    int cut_asked = 0;

    (void)state;
    for (int trial = 0; trial < 192; trial++) {
        const int32_t cut = cuts[trial / 64];
        struct mla_model model = trial % 2 != 0 ? rounded_sum(chunk_frames) : chunk_frames;
        struct ring *ring = ring_new(&ring_lines[trial % 4], trial / 4 % 2, &random);
        const struct mla_row at = {
            .rank = trial / 8 % RANKS,
            .row = (int64_t)(mla_oracle_test_uniform(&random) * (double)ring->args.q_rows)};
        int64_t ends[BLOCKS_MAX];
        struct mla_oracle_test_row *row =
            unrolled(ring, at, cut > 0 ? cut : ring->args.k_chunk_size, ends);
        struct mla_oracle_toy toy = {.model = &model, .block_ends = ends, .random = &random};
        struct mla_bound_stats stats;
        struct mla_truth *truth;

        model.shard_block_keys = cut;
        assert_int_equal(mla_truth_ring(&ring->args, at, &truth), MLA_OK);
        bounds_of(truth, &model, bounds);
        for (int32_t choice = MLA_ORACLE_TOY_HONEST; choice <= MLA_ORACLE_TOY_GREEDY; choice++) {
            toy.column = trial % COLUMNS;
            toy.target = bounds[toy.column].o;
            run(&toy, row, choice, &result);
            assert_true(outside(bounds, result.out) == 0.0);
            assert_true(depth(bounds, result.real) <= 1.0);
            assert_true(mla_bound_stats(truth, &model, &stats) == MLA_BOUND_OK &&
                        stats.sum_lo <= result.sum && result.sum <= stats.sum_hi);
            deepest = fmax(deepest, depth(bounds, result.real));
        }
        run(&toy, row, MLA_ORACLE_TOY_HONEST, &result);
        if (cut > 0) { /* as if the chunks were the call's */
            struct mla_model declared = model;

            declared.shard_block_keys = 0;
            bounds_of(truth, &declared, bounds);
            wrong_chunks += outside(bounds, result.out) > 0.0;
            cut_asked++;
        }
        mla_truth_free(truth);
        if (cut == 0 && at.rank % 3 == 0 &&
            ring_lines[trial % 4].q_rows != ring_lines[trial % 4].kv_rows) {
            asked++;
            ring->args.topology ^= 1; /* ranks 0 and 3 visit in another order */
            assert_int_equal(mla_truth_ring(&ring->args, at, &truth), MLA_OK);
            bounds_of(truth, &model, bounds);
            wrong_order += outside(bounds, result.out) > 0.0;
            model.p_frame = MLA_P_FRAME_ROW;
            bounds_of(truth, &model, bounds);
            wrong_frame += outside(bounds, result.out) > 0.0;
            mla_truth_free(truth);
        }
        mla_oracle_test_row_free(row);
        ring_free(ring);
    }
    print_message(
        "  deepest %.3f; wrong order accused %d, wrong frame %d of %d, wrong chunks %d of "
        "%d\n",
        deepest, wrong_order, wrong_frame, asked, wrong_chunks, cut_asked);
    assert_true(deepest >= 0.5);
    assert_true(asked == 16 && wrong_order >= 4 && wrong_frame >= 8);
    assert_true(cut_asked == 128 && wrong_chunks >= 32);
}

/* ---- what it buys -----------------------------------------------------------------------------*/

struct share {
    double least;   /* of the accused columns, over rows */
    double average; /* */
    int rows;       /* with any */
};

/* The honest kernel's accused columns on `trials` rows of n keys. */
static struct share accused(const struct mla_model *model, const struct mla_model *declared,
                            int64_t block_keys, int32_t fault, double heat, int64_t n, int trials)
{
    struct mla_oracle_test_random random = {11};
    struct mla_oracle_toy toy = {
        .model = model, .block_keys = block_keys, .fault = fault, .random = &random};
    struct mla_bound bounds[COLUMNS];
    struct mla_oracle_toy_result result;
    struct share share = {.least = 1.0};

    for (int trial = 0; trial < trials; trial++) {
        struct mla_oracle_test_row *row = row_make(heat, n, &random);
        struct mla_truth *truth = truth_of(row);

        bounds_of(truth, declared, bounds);
        run(&toy, row, MLA_ORACLE_TOY_HONEST, &result);
        const double columns = outside(bounds, result.out);

        share.least = fmin(share.least, columns);
        share.average += columns / trials;
        share.rows += columns > 0.0;
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    return share;
}

/* One key of 2048 that is not added. */
static void dropped_key(void **state)
{
    const struct mla_model models[] = {row_frame, rounded_sum(row_frame), block_frames,
                                       rounded_sum(block_frames)};
    static const double heats[] = {0.0, 0.02};

    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct mla_model *model = &models[i / 2];
        const int64_t block_keys = i < 4 ? 0 : 64;
        const struct mla_model general = without_frame(*model);
        const struct share sound = accused(model, model, block_keys, 0, heats[i % 2], 2048, 8);
        const struct share known =
            accused(model, model, block_keys, MLA_ORACLE_TOY_DROPS_A_KEY, heats[i % 2], 2048, 8);
        const struct share blind =
            accused(model, &general, block_keys, MLA_ORACLE_TOY_DROPS_A_KEY, heats[i % 2], 2048, 8);

        print_message("  %s, %s sum, %s keys: %.1f %% of the columns accused (least row %.1f %%), "
                      "%.1f %% without the frame\n",
                      i < 4 ? "row frame" : "block frames",
                      i / 2 % 2 != 0 ? "rounded" : "unrounded", i % 2 != 0 ? "near-equal" : "equal",
                      100.0 * known.average, 100.0 * known.least, 100.0 * blind.average);
        assert_true(sound.rows == 0);
        assert_true(known.rows == 8 && known.average >= 0.7);
        assert_true(blind.average <= 0.02);
    }
}

static void first_rescale_forgotten(void **state)
{
    const struct mla_model general = without_frame(block_frames);
    const struct share sound = accused(&block_frames, &block_frames, 64, 0, 1.0, 256, 40);
    const struct share known =
        accused(&block_frames, &block_frames, 64, MLA_ORACLE_TOY_OMITS_FIRST_RESCALE, 1.0, 256, 40);
    const struct share blind =
        accused(&block_frames, &general, 64, MLA_ORACLE_TOY_OMITS_FIRST_RESCALE, 1.0, 256, 40);

    (void)state;
    print_message("  first rescale forgotten: %d of 40 rows, %.1f %% of columns; without the frame "
                  "%d, %.1f %%\n",
                  known.rows, 100.0 * known.average, blind.rows, 100.0 * blind.average);
    assert_true(sound.rows == 0);
    assert_true(known.rows >= 28); /* in about one row of four the first 64 keys hold the maximum */
    assert_true(known.average > blind.average);
}

/* The frame is a promise: rounding elsewhere than declared shows. */
static void another_frame_is_accused(void **state)
{
    struct mla_model declared = block_frames;
    struct share share;

    (void)state;
    declared.p_frame = MLA_P_FRAME_ROW;
    share = accused(&block_frames, &declared, 64, 0, 1.0, 512, 20);
    print_message("  blocks of 64, declared row: %d of 20 rows\n", share.rows);
    assert_true(share.rows >= 12);
    declared = block_frames;
    declared.p_block_keys = 128;
    share = accused(&block_frames, &declared, 64, 0, 1.0, 512, 20);
    print_message("  blocks of 64, declared 128: %d of 20 rows\n", share.rows);
    assert_true(share.rows >= 3);
    declared = block_frames;
    share = accused(&row_frame, &declared, 0, 0, 1.0, 512, 20);
    print_message("  row, declared blocks of 64: %d of 20 rows\n", share.rows);
    assert_true(share.rows >= 12);
    declared = row_frame;
    declared.p_u = 0x1p-7; /* cuts, it says */
    share = accused(&row_frame, &declared, 0, 0, 1.0, 512, 20);
    assert_true(share.rows >= 18);
}

/* Mean over columns of the general interval's width over the known one's. */
static double gain_of(const struct mla_model *model, double heat, int64_t n)
{
    struct mla_oracle_test_random random = {13};
    const struct mla_model general = without_frame(*model);
    struct mla_bound known[COLUMNS];
    struct mla_bound wide[COLUMNS];
    double gain = 0.0;

    for (int trial = 0; trial < 4; trial++) {
        struct mla_oracle_test_row *row = row_make(heat, n, &random);
        struct mla_truth *truth = truth_of(row);

        bounds_of(truth, model, known);
        bounds_of(truth, &general, wide);
        for (int l = 0; l < COLUMNS; l++) {
            gain += (wide[l].high - wide[l].low) / (known[l].high - known[l].low) / (4 * COLUMNS);
        }
        mla_truth_free(truth);
        mla_oracle_test_row_free(row);
    }
    return gain;
}

static void gains(void **state)
{
    static const struct {
        const char *name;
        double heat;
        double least;
    } rows[] = {{"flat", 0.0, 20.0}, {"N(0,1)", 1.0, 5.0}, {"peaked", 6.0, 2.0}};
    struct mla_model models[] = {row_frame, rounded_sum(row_frame), block_frames,
                                 rounded_sum(block_frames)};

    (void)state;
    for (int i = 0; i < 4; i++) { /* sums in 16 lanes, as vector units do */
        models[i].score_depth = (struct mla_depth){.constant = 4, .per_width = 1.0 / 16};
        models[i].acc_depth = (struct mla_depth){.constant = 4, .per_key = 1.0 / 16};
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            const double few = gain_of(&models[k], rows[i].heat, 128);
            const double many = gain_of(&models[k], rows[i].heat, 2048);

            print_message("  %-7s %s, %s sum: %.1f times narrower with 128 keys, %.1f with 2048\n",
                          rows[i].name, k < 2 ? "row frame" : "block frames",
                          k % 2 != 0 ? "rounded" : "unrounded", few, many);
            assert_true(few >= rows[i].least && many >= rows[i].least);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounded_p_is_a_number),
        cmocka_unit_test(rounded_sum_is_a_number),
        cmocka_unit_test(stored_statistics_are_rounded),
        cmocka_unit_test(block_frame_of_one_key),
        cmocka_unit_test(errors_of_p),
        cmocka_unit_test(errors_of_the_carry),
        cmocka_unit_test(scaled_shift_below_a_score),
        cmocka_unit_test(underflow_of_arguments),
        cmocka_unit_test(normalisation),
        cmocka_unit_test(carry_of_unequal_sums),
        cmocka_unit_test(weights_and_sums),
        cmocka_unit_test(boundary_leaves_two),
        cmocka_unit_test(lost_p),
        cmocka_unit_test(lost_rescale),
        cmocka_unit_test(flushed_values),
        cmocka_unit_test(too_little_said),
        cmocka_unit_test(schedule_is_the_rings),
        cmocka_unit_test(schedule_by_hand),
        cmocka_unit_test(ring_kernels),
        cmocka_unit_test(dropped_key),
        cmocka_unit_test(first_rescale_forgotten),
        cmocka_unit_test(another_frame_is_accused),
        cmocka_unit_test(gains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
