/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16_reference.h - the arithmetic of the bf16 kernels, written plainly: the tests' expectation.
 *
 * One row, one key and one column at a time, by fmaf() and a flush made explicit, in the caller's
 * default floating-point environment. No intrinsics, no tiles, nothing of the kernels but the
 * polynomial of their exponential. attend_avx512bf16.c and attend_avx2.c must give these bits.
 *
 * Every operation is one fma: x + y is x*1 + y and x*y is x*y + -0, both exact but for the one
 * rounding, signed zeros included. Subnormal operands count as zeros, and a result is flushed when
 * it is tiny after rounding: when rounding it to 24 bits with an unbounded exponent leaves it below
 * 2^-126. fmaf() rounds such results to multiples of 2^-149 instead and so may reach 2^-126 from
 * further below; where its result is 2^-126 or less, the sum is done again 2^64 times as large. It
 * is a multiple of the last place of the product or of the addend, so one of these is at most
 * 2^-126, and both are below 2^-77 (a product has at most 48 significant bits). Hence the smaller
 * factor and the addend have room for 2^64, and nothing but the exponent changes.
 */
#ifndef MLA_IMPL_BF16_REFERENCE_H
#define MLA_IMPL_BF16_REFERENCE_H

#include "impl/attend.h"
#include "impl/exp2_bf16.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BF16_GROUP     64  /* columns of a score that are summed by themselves */
#define BF16_VALUE_MAX 544 /* widest row of values */

/* A query row and the state of it. */
struct bf16_row {
    const uint16_t *main;
    const uint16_t *rope;
    float max;
    float sum;
    float out[BF16_VALUE_MAX];
};

static inline float bf16_widen(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* To nearest, ties to even, 8 significant bits or the spacing of the subnormals; NaN stays. */
static inline float bf16_nearest(float x)
{
    int exponent;
    if (x == 0.0f || !isfinite(x)) {
        return x;
    }
    frexp((double)x, &exponent);
    exponent = exponent - 8 < -133 ? -133 : exponent - 8;
    return (float)ldexp(rint(ldexp((double)x, -exponent)), exponent);
}

static inline float bf16_daz(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static inline float bf16_fma(float x, float y, float z)
{
    const float a = bf16_daz(fabsf(x) < fabsf(y) ? x : y);
    const float b = bf16_daz(fabsf(x) < fabsf(y) ? y : x);
    const float c = bf16_daz(z);
    const float result = fmaf(a, b, c);
    if (result != 0.0f && fabsf(result) <= FLT_MIN &&
        fabsf(fmaf(a * 0x1p64f, b, c * 0x1p64f)) < 0x1p-62f) {
        return copysignf(0.0f, result);
    }
    return result;
}

static inline float bf16_add(float x, float y)
{
    return bf16_fma(x, 1.0f, y);
}

static inline float bf16_mul(float x, float y)
{
    return bf16_fma(x, y, -0.0f);
}

/* A quotient of at most 2^-126 has a dividend of at most 4: 2^64 times it is in range. */
static inline float bf16_div(float x, float y)
{
    const float a = bf16_daz(x);
    const float b = bf16_daz(y);
    const float result = a / b;
    if (result != 0.0f && fabsf(result) <= FLT_MIN && fabsf(a * 0x1p64f / b) < 0x1p-62f) {
        return copysignf(0.0f, result);
    }
    return result;
}

/* acc + pair of products, the high one first. */
static inline float bf16_pair(float low_a, float low_b, float high_a, float high_b, float acc)
{
    return bf16_fma(low_a, low_b, bf16_fma(high_a, high_b, acc));
}

/* Columns first .. end-1 of one part, at most BF16_GROUP: an odd last column pairs with zeros. */
static inline float bf16_group(const uint16_t *query, const uint16_t *key, int64_t first,
                               int64_t end)
{
    float acc = 0.0f;
    for (int64_t c = first; c < end; c += 2) {
        const bool is_pair = c + 1 < end;
        acc = bf16_pair(bf16_widen(query[c]), bf16_widen(key[c]),
                        is_pair ? bf16_widen(query[c + 1]) : 0.0f,
                        is_pair ? bf16_widen(key[c + 1]) : 0.0f, acc);
    }
    return acc;
}

static inline float bf16_score(const struct mla_attend_shape *shape, const struct bf16_row *row,
                               const uint16_t *main, const uint16_t *rope)
{
    float score =
        bf16_group(row->main, main, 0, shape->main_n < BF16_GROUP ? shape->main_n : BF16_GROUP);
    for (int64_t c = BF16_GROUP; c < shape->main_n; c += BF16_GROUP) {
        const int64_t end = c + BF16_GROUP < shape->main_n ? c + BF16_GROUP : shape->main_n;
        score = bf16_add(score, bf16_group(row->main, main, c, end));
    }
    for (int64_t c = 0; c < shape->rope_n; c += BF16_GROUP) {
        const int64_t end = c + BF16_GROUP < shape->rope_n ? c + BF16_GROUP : shape->rope_n;
        score = bf16_add(score, bf16_group(row->rope, rope, c, end));
    }
    return score;
}

/*
 * The exponential's argument is ((s - m) * a) * b, a a power of two: c = scale*log2(e) need not be
 * a normal float32, nor its product with a difference of huge or tiny scores one when a is 1.
 */
struct bf16_scale {
    float a, b;
};

static inline struct bf16_scale bf16_scale_of(float scale)
{
    const double c = (double)scale * 0x1.71547652b82fep+0; /* log2(e) */
    if (scale < 0x1p-64f) {
        return (struct bf16_scale){.a = 0x1p-64f, .b = (float)(c * 0x1p64)};
    }
    if (scale > 0x1p64f) {
        return (struct bf16_scale){.a = 0x1p64f, .b = (float)(c * 0x1p-64)};
    }
    return (struct bf16_scale){.a = 1.0f, .b = (float)c};
}

/* exp2_bf16.h: 2^(x - k) by Horner's scheme in fma, times 2^k. */
static inline float bf16_exp2(float x)
{
    static const float c[] = {MLA_EXP2_BF16_C4, MLA_EXP2_BF16_C3, MLA_EXP2_BF16_C2,
                              MLA_EXP2_BF16_C1, 1.0f};
    const float k = rintf(x);
    float p = MLA_EXP2_BF16_C5;
    if (x < MLA_EXP2_BF16_LOWEST || isnan(x)) {
        return isnan(x) ? x : 0.0f;
    }
    for (int i = 0; i < 5; i++) {
        p = bf16_fma(p, bf16_add(x, -k), c[i]);
    }
    return ldexpf(p, (int)k);
}

/* exp2 of a difference from the maximum; 1 exactly for none. */
static inline float bf16_weight(float score, float max, struct bf16_scale scale)
{
    return bf16_exp2(bf16_mul(bf16_mul(bf16_add(score, -max), scale.a), scale.b));
}

/*
 * Advance a row by the first `visible` keys of a block (at most MLA_ATTEND_KEYS). The pairs of the
 * values are those of the block: keys 2i and 2i+1.
 */
static inline void bf16_block(const struct mla_attend_shape *shape, struct bf16_row *row,
                              const struct mla_attend_keys *keys, int64_t visible, float scale)
{
    const struct bf16_scale split = bf16_scale_of(scale);
    const uint16_t *main[MLA_ATTEND_KEYS];
    float p[MLA_ATTEND_KEYS];
    float part[4] = {0};
    float max = row->max;

    if (visible == 0) {
        return;
    }
    for (int64_t j = 0; j < visible; j++) {
        const int64_t key = keys->index != NULL ? keys->index[j] : j;
        main[j] = keys->main + key * shape->main_n;
        p[j] = bf16_score(shape, row, main[j],
                          shape->rope_n > 0 ? keys->rope + key * shape->rope_n : NULL);
        max = p[j] > max ? p[j] : max;
    }
    max += 0.0f; /* a maximum of zero is +0 */
    const bool is_first = row->max == -INFINITY;
    const float alpha = row->max == max ? 1.0f : bf16_weight(row->max, max, split);
    for (int64_t j = 0; j < visible; j++) {
        p[j] = bf16_nearest(bf16_weight(p[j], max, split));
        part[j % 4] = bf16_add(part[j % 4], p[j]);
    }
    const float sum = bf16_add(bf16_add(part[0], part[1]), bf16_add(part[2], part[3]));
    row->sum = is_first ? sum : bf16_fma(alpha, row->sum, sum);
    row->max = max;
    for (int64_t c = 0; c < shape->value_n; c++) {
        float acc = 0.0f;
        for (int64_t j = 0; j < visible; j += 2) {
            const bool is_pair = j + 1 < visible;
            acc = bf16_pair(p[j], bf16_widen(main[j][c]), is_pair ? p[j + 1] : 0.0f,
                            is_pair ? bf16_widen(main[j + 1][c]) : 0.0f, acc);
        }
        row->out[c] = is_first ? acc : bf16_fma(alpha, row->out[c], acc);
    }
}

/* The finished row's bf16 in natural column order. */
static inline float bf16_output(const struct bf16_row *row, int64_t column)
{
    return bf16_nearest(bf16_div(row->out[column], row->sum));
}

#endif
