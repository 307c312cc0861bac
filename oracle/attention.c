/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c - the fast certified value of one output row.
 *
 * The same quantities as definition.c, in double arithmetic that is either exact or has a bound:
 *
 * SCORES are exact. Over one key, products q_i k_i are multiples of 2^low and below 2^high / width
 * in magnitude (low, high from the exponents that occur). The window high - low decides:
 *   up to 53 bits   every partial sum is a double, whatever the order;
 *   up to 106 - ceil(log2 width)
 *                   each product is split at 2^cut, cut = high - 52: (p + sigma) - sigma with sigma
 *                   = 1.5 * 2^(cut+52) is p to the nearest multiple of 2^cut, exactly, and so is the
 *                   rest p minus that. The upper parts sum to less than 2^high + width 2^(cut-1) <
 *                   2^(cut+53); the rests, at most 2^(cut-1) each and multiples of 2^low, to at most
 *                   width 2^(cut-1). Both sums fit 53 bits: exact again (Rump, Ogita, Oishi 2008
 *                   call the split an extraction);
 *   anything else   integers in one bin for each exponent.
 * They meet as integers of 576 bits (fixed.h), where the maximum and the differences are exact too.
 *
 * EXPONENTIALS of the exact differences come from exponential.c, as head_j + tail_j, off by at
 * most 2^-96 p_j; below 2^-600 they count as 0.
 *
 * SUMS Z = sum p_j and N_l = sum p_j v_jl, one key after the other, u = 2^-53: head_j v_jl is exact
 * (45 + 8 bits). s takes it in by Knuth's TwoSum, whose error e is exact; L takes in e + tail_j v_jl
 * with three roundings. With A_l = sum head_j |v_jl|: |e| <= u |s| <= u A (1 + n u), |tail_j| <=
 * 2^-43 head_j, |L| <= (n u + 2^-43) A (1 + n u), so that what L misses is at most
 *     (n + 3) u (n u + 2^-43) A (1 + n u)                                              (sums)
 * (Ogita, Rump, Oishi 2005 have the same for dot products). A itself is summed in double and
 * raised. The quotient o = N/Z: q = s/z, the remainder s - q z is exact by fma, and
 *     o = q + (s - q z + L - q z_low) / (z + z_low)
 * exactly, of which the second part is at most 4 u |q| and formed with four roundings and without
 * z_low in its denominator: off by at most 16 u^2 |q| < 2^-101 |q|.                 (quotient)
 * Hence |out + out_low - o| <= (E_N + S E_Z) / Z + 2^-101 |q|, S = sum w_j |v_jl|, with
 *     E_N = A ((sums) + 2^-96) + 2^-600 sum |v_jl|,  E_Z the same with v = 1.
 *
 * HOW FINE THAT IS. A kernel that accumulates in binary32 is granted 2^-24 S or more by any bound
 * (nu >= 2^-24 in errors.c). The row is taken only if every column's radius is at most 2^-64 S,
 * 2^-40 of that, or at most 2^-190, 2^-40 of the smallest absolute term a bound has (f >= 2^-149).
 * For (sums) that means fewer than some 2^20 keys; otherwise the caller evaluates the definition,
 * at 192 bits.
 */
#include "oracle/bf16.h"
#include "oracle/exponential.h"
#include "oracle/fixed.h"
#include "oracle/scale.h"
#include "oracle/truth.h"
#include "oracle/wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* TwoSum and the extraction are theorems about binary64 operations as written. */
#if defined __FAST_MATH__ || FLT_EVAL_METHOD != 0
#error "the oracle needs plain binary64 arithmetic"
#endif

#define LANES 8

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef float lanes32 __attribute__((vector_size(LANES * sizeof(float))));
typedef uint32_t bits32 __attribute__((vector_size(LANES * sizeof(uint32_t))));
typedef uint64_t bits64 __attribute__((vector_size(LANES * sizeof(uint64_t))));
typedef uint16_t bits16 __attribute__((vector_size(LANES * sizeof(uint16_t))));
typedef int16_t magnitudes16 __attribute__((vector_size(LANES * sizeof(uint16_t))));

/* Eight bf16 as doubles. */
MLA_ORACLE_INNER void widen(const uint16_t *from, lanes *to)
{
    bits16 raw;
    lanes32 single;

    memcpy(&raw, from, sizeof raw);
    const bits32 shifted = __builtin_convertvector(raw, bits32) << 16;

    memcpy(&single, &shifted, sizeof single);
    *to = __builtin_convertvector(single, lanes);
}

MLA_ORACLE_INNER void absolute(const lanes *x, lanes *to)
{
    bits64 pattern;

    memcpy(&pattern, x, sizeof pattern);
    pattern &= UINT64_MAX >> 1;
    memcpy(to, &pattern, sizeof *to);
}

MLA_ORACLE_INNER double total(const lanes *x)
{
    double sum = 0.0;

    for (int i = 0; i < LANES; i++) {
        sum += (*x)[i];
    }
    return sum;
}

/* ---- one row of numbers: a query or a key -----------------------------------------------------*/

/* Which magnitudes occur. */
struct extent {
    bool is_finite;
    bool is_zero;
    bool has_subnormal;
    int low;  /* all are multiples of 2^low */
    int high; /* and below 2^high */
};

/* n a multiple of LANES. */
MLA_ORACLE_INNER struct extent extent_of_inner(const uint16_t *numbers, int64_t n)
{
    magnitudes16 most = {0};
    magnitudes16 least = most + INT16_MAX;
    int16_t top = 0;
    int16_t bottom = INT16_MAX;

    for (int64_t i = 0; i < n; i += LANES) {
        magnitudes16 x;

        memcpy(&x, numbers + i, sizeof x);
        x &= INT16_MAX;
        const magnitudes16 rises = x > most;

        most = (x & rises) | (most & ~rises);
        x |= (x == 0) & INT16_MAX; /* a zero says nothing about the last place */
        const magnitudes16 falls = x < least;

        least = (x & falls) | (least & ~falls);
    }
    for (int i = 0; i < LANES; i++) {
        top = most[i] > top ? most[i] : top;
        bottom = least[i] < bottom ? least[i] : bottom;
    }
    return (struct extent){.is_finite = top < 0x7f80,
                           .is_zero = top == 0,
                           .has_subnormal = bottom < 0x80,
                           .low = mla_oracle_bf16_exponent((uint16_t)bottom),
                           .high = mla_oracle_bf16_exponent((uint16_t)top) + 8};
}

MLA_ORACLE_WIDE static struct extent extent_of_wide(const uint16_t *numbers, int64_t n)
{
    return extent_of_inner(numbers, n);
}

static struct extent extent_of(const uint16_t *numbers, int64_t n)
{
    return mla_oracle_is_wide() ? extent_of_wide(numbers, n) : extent_of_inner(numbers, n);
}

/* What one evaluation works with. */
struct desk {
    int64_t width;                  /* of a row, rounded up to LANES */
    int width_log2;                 /* rounded up */
    uint16_t *query;                /* [width], zeros at the end */
    uint16_t *key;                  /* [width], likewise */
    double *wide;                   /* [width]: the query */
    struct extent extent;           /* of the query */
    struct mla_oracle_fixed *score; /* [keys_n] */
    struct mla_oracle_exp *p;       /* [keys_n] */
    double *sum, *low, *size;       /* [columns, rounded up to LANES]: s, L, A */
    double *all;                    /* sum of |v| */
};

/* Both parts of a row, one after the other. */
static void join(const struct mla_oracle_input *input, const uint16_t *first,
                 const uint16_t *second, uint16_t *row)
{
    memcpy(row, first, (size_t)input->part_n[0] * sizeof *row);
    if (input->part_n[1] > 0) {
        memcpy(row + input->part_n[0], second, (size_t)input->part_n[1] * sizeof *row);
    }
}

/* ---- scores -----------------------------------------------------------------------------------*/

/* The exact sum of products where the window has 53 bits; *size is sum |q_i k_i|, exact too. */
MLA_ORACLE_INNER double dot_narrow_inner(const struct desk *desk, double *size)
{
    lanes sum = {0};
    lanes sizes = {0};

    for (int64_t i = 0; i < desk->width; i += LANES) {
        lanes q;
        lanes k;
        lanes positive;

        memcpy(&q, desk->wide + i, sizeof q);
        widen(desk->key + i, &k);
        k *= q;
        absolute(&k, &positive);
        sum += k;
        sizes += positive;
    }
    *size = total(&sizes);
    return total(&sum);
}

MLA_ORACLE_WIDE static double dot_narrow_wide(const struct desk *desk, double *size)
{
    return dot_narrow_inner(desk, size);
}

static double dot_narrow(const struct desk *desk, double *size)
{
    return mla_oracle_is_wide() ? dot_narrow_wide(desk, size) : dot_narrow_inner(desk, size);
}

/* The same in two parts, split at sigma; *size is rounded. */
MLA_ORACLE_INNER double dot_split_inner(const struct desk *desk, double sigma, double *rest,
                                        double *size)
{
    lanes sum = {0};
    lanes rests = {0};
    lanes sizes = {0};

    for (int64_t i = 0; i < desk->width; i += LANES) {
        lanes q;
        lanes k;
        lanes positive;

        memcpy(&q, desk->wide + i, sizeof q);
        widen(desk->key + i, &k);
        k *= q;
        absolute(&k, &positive);
        const lanes upper = (k + sigma) - sigma;

        sum += upper;
        rests += k - upper;
        sizes += positive;
    }
    *rest = total(&rests);
    *size = total(&sizes);
    return total(&sum);
}

MLA_ORACLE_WIDE static double dot_split_wide(const struct desk *desk, double sigma, double *rest,
                                             double *size)
{
    return dot_split_inner(desk, sigma, rest, size);
}

static double dot_split(const struct desk *desk, double sigma, double *rest, double *size)
{
    return mla_oracle_is_wide() ? dot_split_wide(desk, sigma, rest, size)
                                : dot_split_inner(desk, sigma, rest, size);
}

/* A product is m 2^e with |m| < 2^16 and e - unit in 0 .. 506. */
static void dot_bins(const struct desk *desk, struct mla_oracle_fixed *score, double *size)
{
    int64_t bins[512] = {0};

    *size = 0.0;
    for (int64_t i = 0; i < desk->width; i++) {
        const uint16_t q = desk->query[i];
        const uint16_t k = desk->key[i];
        const int bin =
            mla_oracle_bf16_exponent(q) + mla_oracle_bf16_exponent(k) - MLA_ORACLE_FIXED_UNIT;

        bins[bin] += mla_oracle_bf16_mantissa(q) * mla_oracle_bf16_mantissa(k);
        *size += fabs(mla_oracle_bf16_value(q) * mla_oracle_bf16_value(k));
    }
    mla_oracle_fixed_from_bins(score, bins, 512);
}

/* The score of the key on the desk, and its sum of magnitudes (rounded at most width times). */
static double score_key(const struct desk *desk, const struct extent *key,
                        struct mla_oracle_fixed *score)
{
    const int high = desk->extent.high + key->high + desk->width_log2;
    const int window = high - desk->extent.low - key->low;
    double size = 0.0;

    memset(score, 0, sizeof *score);
    if (desk->extent.is_zero || key->is_zero) {
        return 0.0;
    }
    if (window <= 53) {
        mla_oracle_fixed_add(score, dot_narrow(desk, &size));
    } else if (window <= 106 - desk->width_log2 && desk->width_log2 > 0) {
        double rest;

        mla_oracle_fixed_add(score, dot_split(desk, mla_oracle_scale(1.5, high), &rest, &size));
        mla_oracle_fixed_add(score, rest);
    } else {
        dot_bins(desk, score, &size);
    }
    return size;
}

/* sum |q_i k_i| over the products with a subnormal factor. */
static double lost_size(const struct desk *desk, const struct extent *key)
{
    double lost = 0.0;

    if (!desk->extent.has_subnormal && !key->has_subnormal) {
        return 0.0;
    }
    for (int64_t i = 0; i < desk->width; i++) {
        const uint16_t q = desk->query[i];
        const uint16_t k = desk->key[i];

        if (mla_oracle_bf16_is_subnormal(q) || mla_oracle_bf16_is_subnormal(k)) {
            lost += fabs(mla_oracle_bf16_value(q) * mla_oracle_bf16_value(k));
        }
    }
    return lost;
}

/* sum |q_i k_i| in the order of the columns, as definition.c has it. */
static double size_in_order(const struct desk *desk)
{
    double size = 0.0;

    for (int64_t i = 0; i < desk->width; i++) {
        size += fabs(desk->wide[i] * mla_oracle_bf16_value(desk->key[i]));
    }
    return size;
}

/* Scores, magnitudes and lost of all keys. Sets the state: OK, NONFINITE or RANGE. */
static void score_all(const struct mla_oracle_input *input, struct desk *desk,
                      struct mla_truth *truth)
{
    const double limit = (double)FLT_MAX / 2.0;

    truth->state = MLA_ROW_OK;
    for (int64_t j = 0; j < truth->keys_n; j++) {
        join(input, input->keys[0][j], input->keys[1][j], desk->key);
        const struct extent key = extent_of(desk->key, desk->width);

        if (!key.is_finite) {
            truth->state = MLA_ROW_NONFINITE;
            return;
        }
        double size = score_key(desk, &key, &desk->score[j]);

        if (fmax(size, size * truth->scale) > limit * (1.0 - 0x1p-20)) {
            size = size_in_order(desk); /* so that both evaluations draw the same line */
        }
        size = mla_oracle_up(size, truth->width);
        truth->magnitude[j] = mla_oracle_up(size * truth->scale, 1);
        truth->lost[j] = mla_oracle_up(lost_size(desk, &key) * truth->scale, truth->width + 1);
        truth->has_subnormal_value |= key.has_subnormal;
        if (!(size <= limit && truth->magnitude[j] <= limit)) {
            truth->state = MLA_ROW_RANGE; /* unless a later key is not finite */
        }
    }
}

/* ---- softmax ----------------------------------------------------------------------------------*/

/* s + e = a + b exactly (Knuth). */
static inline double two_sum(double a, double b, double *e)
{
    const double s = a + b;
    const double t = s - a;

    *e = (a - (s - t)) + (b - t);
    return s;
}

/* Z as z + z_low, and its relative error. */
struct denominator {
    double z;
    double low;
    double error;
};

/* (sums) + 2^-96 of the file head. */
static double sum_error(int64_t keys_n)
{
    const double n = (double)keys_n;

    return mla_oracle_up(
        ((n + 3.0) * 0x1p-53 * (n * 0x1p-53 + 0x1p-43)) * (1.0 + n * 0x1p-53) + 0x1p-96, 10);
}

/* The largest score; then score, gap and p of every key, and Z. */
static struct denominator exponentials(struct desk *desk, struct mla_truth *truth,
                                       struct mla_oracle_fixed *max)
{
    struct denominator d = {0};

    *max = desk->score[0];
    for (int64_t j = 1; j < truth->keys_n; j++) {
        if (mla_oracle_fixed_greater(&desk->score[j], max)) {
            *max = desk->score[j];
        }
    }
    for (int64_t j = 0; j < truth->keys_n; j++) {
        const struct mla_oracle_fixed gap = mla_oracle_fixed_minus(max, &desk->score[j]);
        double rest;

        truth->score[j] = mla_oracle_fixed_abs_up(&desk->score[j], truth->scale);
        truth->gap[j] = mla_oracle_fixed_abs_up(&gap, truth->scale);
        desk->p[j] =
            mla_oracle_exp(mla_oracle_fixed_scaled(&gap, truth->scale, MLA_ORACLE_EXP_SHIFT));
        d.z = two_sum(d.z, desk->p[j].head, &rest);
        d.low += rest + desk->p[j].tail;
    }
    d.z = two_sum(d.z, d.low, &d.low);
    d.error = mla_oracle_up(sum_error(truth->keys_n) + (double)truth->keys_n * 0x1p-600, 2);
    return d;
}

/* w_j, upper: three roundings (p, z and the quotient) and Z's error, far below 2^-53. */
static void weigh(const struct desk *desk, const struct denominator *d, struct mla_truth *truth)
{
    for (int64_t j = 0; j < truth->keys_n; j++) {
        const double p = desk->p[j].head + desk->p[j].tail;

        truth->weight[j] = fmax(mla_oracle_up(p / d->z, 1), MLA_ORACLE_WEIGHT_MIN);
    }
}

static void log_sums(const struct mla_oracle_fixed *max, const struct denominator *d,
                     struct mla_truth *truth)
{
    const struct mla_oracle_mpfr_state state = mla_oracle_mpfr_enter();
    mpfr_t t;

    mpfr_init2(t, 192);
    mpfr_init2(truth->exact_max, 64 * MLA_ORACLE_FIXED_LIMBS + 24);
    mpfr_init2(truth->exact_lse, 192);
    truth->has_exact = true;
    mla_oracle_fixed_get(truth->exact_max, max);
    (void)mpfr_prec_round(truth->exact_max, 64 * MLA_ORACLE_FIXED_LIMBS + 24, MPFR_RNDN);
    (void)mpfr_mul_d(truth->exact_max, truth->exact_max, truth->scale, MPFR_RNDN); /* exact */
    (void)mpfr_set_d(t, d->z, MPFR_RNDN);
    (void)mpfr_add_d(t, t, d->low, MPFR_RNDN);
    (void)mpfr_log(t, t, MPFR_RNDN);
    (void)mpfr_add(truth->exact_lse, truth->exact_max, t, MPFR_RNDN);
    truth->log_sum = mpfr_get_d(t, MPFR_RNDN);
    truth->log_sum_exp = mpfr_get_d(truth->exact_lse, MPFR_RNDN);
    truth->max = mpfr_get_d(truth->exact_max, MPFR_RNDN);
    mpfr_clear(t);
    mla_oracle_mpfr_leave(&state);
}

/* ---- values -----------------------------------------------------------------------------------*/

/* A few keys at a time, so that the sums pass through memory once for all of them; each column still
 * takes one key after the other. */
#define KEYS_GROUP 8

/* p times value of keys_n keys into s, L and A of columns 0 .. n-1, and |v| into all. */
MLA_ORACLE_INNER void add_values_inner(const struct desk *desk, const struct mla_oracle_exp *p,
                                       const uint16_t *const *values, int64_t keys_n, int64_t n)
{
    double *restrict sums = desk->sum;
    double *restrict lows = desk->low;
    double *restrict sizes = desk->size;
    double *restrict alls = desk->all;

    for (int64_t l = 0; l < n; l += LANES) {
        lanes s;
        lanes low;
        lanes size;
        lanes all;

        memcpy(&s, sums + l, sizeof s);
        memcpy(&low, lows + l, sizeof low);
        memcpy(&size, sizes + l, sizeof size);
        memcpy(&all, alls + l, sizeof all);
        for (int64_t j = 0; j < keys_n; j++) {
            lanes v;
            lanes positive;

            widen(values[j] + l, &v);
            const lanes product = v * p[j].head;
            const lanes next = s + product;
            const lanes t = next - s;
            const lanes e = (s - (next - t)) + (product - t);

            low += e + v * p[j].tail;
            absolute(&product, &positive);
            size += positive;
            absolute(&v, &positive);
            all += positive;
            s = next;
        }
        memcpy(sums + l, &s, sizeof s);
        memcpy(lows + l, &low, sizeof low);
        memcpy(sizes + l, &size, sizeof size);
        memcpy(alls + l, &all, sizeof all);
    }
}

MLA_ORACLE_WIDE static void add_values_wide(const struct desk *desk, const struct mla_oracle_exp *p,
                                            const uint16_t *const *values, int64_t keys_n,
                                            int64_t n)
{
    add_values_inner(desk, p, values, keys_n, n);
}

static void add_values(const struct desk *desk, const struct mla_oracle_exp *p,
                       const uint16_t *const *values, int64_t keys_n, int64_t n)
{
    if (mla_oracle_is_wide()) {
        add_values_wide(desk, p, values, keys_n, n);
    } else {
        add_values_inner(desk, p, values, keys_n, n);
    }
}

/* The columns beyond the last LANES whole ones; never more than a key's own columns are read. */
static void add_end(const struct desk *desk, const struct mla_oracle_exp *p, const uint16_t *value,
                    int64_t whole, int64_t n)
{
    uint16_t end[LANES] = {0};
    const uint16_t *const padded = end;
    struct desk shifted = *desk;

    shifted.sum += whole;
    shifted.low += whole;
    shifted.size += whole;
    shifted.all += whole;
    memcpy(end, value + whole, (size_t)(n - whole) * sizeof *end);
    add_values(&shifted, p, &padded, 1, LANES);
}

/* o_l, its radii and abs_value from the sums. false: the radius is too wide. */
static bool output(const struct desk *desk, const struct denominator *d, int64_t l,
                   struct mla_truth *truth)
{
    double low;
    double rest;
    const double s = two_sum(desk->sum[l], desk->low[l], &low);
    const double q = s / d->z;
    const double remainder = fma(-q, d->z, s) + (low - q * d->low);
    const double size = mla_oracle_up(desk->size[l], truth->keys_n);       /* A */
    const double all = mla_oracle_up(desk->all[l], truth->keys_n);         /* sum |v| */
    const double spread = mla_oracle_up(size / d->z * (1.0 + 0x1p-40), 2); /* S */
    const double radius = mla_oracle_up(
        (size * sum_error(truth->keys_n) + all * 0x1p-600 + spread * d->error * d->z) / d->z *
                (1.0 + 0x1p-40) +
            0x1p-101 * fabs(q),
        10);

    truth->out[l] = two_sum(q, remainder / d->z, &rest);
    truth->out_low[l] = rest;
    truth->out_low_radius[l] = radius;
    truth->out_radius[l] = mla_oracle_up(fabs(rest) + radius, 1);
    truth->abs_value[l] = all;
    return radius <= 0x1p-64 * spread || radius <= 0x1p-190;
}

/* All columns. false: a radius is too wide, or the state is now RANGE. */
static bool outputs(const struct mla_oracle_input *input, struct desk *desk,
                    const struct denominator *d, struct mla_truth *truth)
{
    const int64_t whole = truth->columns_n / LANES * LANES;
    bool is_fine = true;

    for (int64_t j = 0; j < truth->keys_n; j += KEYS_GROUP) {
        const int64_t left = truth->keys_n - j;

        add_values(desk, &desk->p[j], &input->keys[0][j], left < KEYS_GROUP ? left : KEYS_GROUP,
                   whole);
    }
    for (int64_t j = 0; whole < truth->columns_n && j < truth->keys_n; j++) {
        add_end(desk, &desk->p[j], input->keys[0][j], whole, truth->columns_n);
    }
    for (int64_t l = 0; l < truth->columns_n; l++) {
        is_fine = output(desk, d, l, truth) && is_fine;
        if (!(truth->abs_value[l] <= (double)FLT_MAX / 2.0)) {
            truth->state = MLA_ROW_RANGE;
        }
    }
    return is_fine;
}

/* ---- the row ----------------------------------------------------------------------------------*/

static bool desk_make(const struct mla_oracle_input *input, struct desk *desk)
{
    const int64_t width = input->part_n[0] + input->part_n[1];
    const size_t columns = (size_t)(input->columns_n + LANES - 1) / LANES * LANES;

    desk->width = (width + LANES - 1) / LANES * LANES;
    for (int64_t reach = 1; reach < width; reach *= 2) {
        desk->width_log2++;
    }
    desk->query = calloc((size_t)desk->width * 2, sizeof *desk->query);
    desk->wide = calloc((size_t)desk->width, sizeof *desk->wide);
    desk->score = malloc((size_t)input->keys_n * sizeof *desk->score);
    desk->p = malloc((size_t)input->keys_n * sizeof *desk->p);
    desk->sum = calloc(4 * columns, sizeof *desk->sum);
    if (desk->query == NULL || desk->wide == NULL || desk->score == NULL || desk->p == NULL ||
        desk->sum == NULL) {
        return false;
    }
    desk->key = desk->query + desk->width;
    desk->low = desk->sum + columns;
    desk->size = desk->low + columns;
    desk->all = desk->size + columns;
    join(input, input->query[0], input->query[1], desk->query);
    desk->extent = extent_of(desk->query, desk->width);
    for (int64_t i = 0; i < desk->width; i++) {
        desk->wide[i] = mla_oracle_bf16_value(desk->query[i]);
    }
    return true;
}

static void desk_free(struct desk *desk)
{
    free(desk->sum);
    free(desk->p);
    free(desk->score);
    free(desk->wide);
    free(desk->query);
}

/* From the scores on; the state is OK so far. false: not fine enough. */
static bool attend(const struct mla_oracle_input *input, struct desk *desk, struct mla_truth *truth)
{
    struct mla_oracle_fixed max;

    mla_oracle_exp_prepare();
    const struct denominator d = exponentials(desk, truth, &max);

    weigh(desk, &d, truth);
    log_sums(&max, &d, truth);
    /* The log-sum-exp is off by d.error, and promised to 2^-62; the columns alone would not ask for
     * it where all values are tiny or zero. */
    return outputs(input, desk, &d, truth) && d.error <= 0x1p-63;
}

int32_t mla_oracle_attend(const struct mla_oracle_input *input, struct mla_truth *truth,
                          bool *is_fine)
{
    struct desk desk = {0};
    int32_t status = MLA_ERR_NOMEM;

    *is_fine = true;
    mla_oracle_truth_begin(input, truth);
    if (input->is_pad) {
        truth->state = MLA_ROW_EMPTY;
        return MLA_OK;
    }
    if (!desk_make(input, &desk) || !mla_oracle_truth_allocate(truth)) {
        goto done;
    }
    status = MLA_OK;
    if (!desk.extent.is_finite) {
        truth->state = MLA_ROW_NONFINITE;
        goto done;
    }
    if (input->keys_n == 0) {
        truth->state = MLA_ROW_EMPTY;
        goto done;
    }
    score_all(input, &desk, truth);
    if (truth->state == MLA_ROW_OK) {
        *is_fine = attend(input, &desk, truth);
    }
done:
    desk_free(&desk);
    return status;
}
