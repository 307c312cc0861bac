/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16_step.h - what the steps with bf16 products have in common: softmax, finish, store, scratch.
 *
 * Included by attend_avx512bf16.c and attend_avx2.c after the file of vector operations each is
 * written with (simd_avx512.h, simd_avx2.h). Both kernels compute the same bits; they differ in how
 * scores and weighted sums are formed, and these are their own. A vector's lanes are query rows,
 * V_LANES consecutive ones of the tile, so the softmax of all of them advances key by key without
 * ever looking across lanes.
 *
 * The arithmetic, float32 to nearest with subnormals flushed, in and out (mla_step_flush):
 *   score    groups of MLA_STEP_GROUP columns, each an fma chain from +0 over pairs of columns, in a
 *            pair the second column first; the group sums are then added in order. A group begins
 *            at the first rope column; an odd last column is paired with zero
 *   maximum  m of the scores so far, a NaN passed over; +0 if it is zero
 *   weight   p = 2^(((s - m)*a)*b), exp2_bf16.h, a*b = scale*log2(e), see mla_step_scale; P is p
 *            to the nearest bf16; +0 for a key the row does not see
 *   sum      of P, in four parts by the key's number in the block mod 4, each from +0 in order;
 *            (0 + 1) + (2 + 3). Then l = fma(alpha, l, sum), alpha = 2^(((m_old - m)*a)*b), exactly
 *            1 while the maximum stays; a row first in this block takes the sum as it is
 *   out      an fma chain from +0 over pairs of keys, in a pair the second first, keys the row sees
 *            only; then out = fma(alpha, out, chain), or the chain for a row first in this block
 *   finish   out / l
 *
 * A row is first in a block while its maximum is -inf.
 */
#ifndef MLA_IMPL_BF16_STEP_H
#define MLA_IMPL_BF16_STEP_H

#include "impl/attend.h"
#include "impl/bf16_kernel.h"
#include "impl/exp2_bf16.h"
#include "impl/mla.h"

#include <emmintrin.h>
#include <string.h>

#define MLA_STEP_ROWS  128 /* query rows of a tile: mla_attend.rows_n */
#define MLA_STEP_GROUP 64  /* columns of a score that are summed by themselves */

#define MLA_STEP_VECS (MLA_STEP_ROWS / V_LANES)

/* The shared part of a scratch. Widths in 32-bit words. */
struct mla_step {
    int64_t *fresh;    /* not 0: queries were taken that the kernel has not laid out yet */
    uint16_t *taken;   /* [MLA_STEP_ROWS][2*pairs_n] queries as they came, rope padded to pairs */
    float *scores;     /* [MLA_STEP_VECS][keys_n][V_LANES] */
    uint32_t *weights; /* [MLA_STEP_VECS][keys_n/2][V_PAIR_WORDS][V_LANES] pairs of P, v_put_pair */
    float *alpha;      /* [MLA_STEP_ROWS] factor of the earlier out; < 0: first, there is none */
    int32_t *visible; /* [MLA_STEP_ROWS] keys each row sees; lanes without a row: as the last row */
    void *own;        /* behind it, aligned to 64: the kernel's */
    int64_t pairs_n;  /* pairs of columns of a key, main and rope */
    int64_t keys_n;   /* keys of a block, a multiple of 4 */
};

/* scale*log2(e) as a product of two floats: a power of two and what remains. */
struct mla_step_scale {
    float a;
    float b;
};

static inline int64_t mla_step_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static inline int64_t mla_step_pairs(const struct mla_attend_shape *shape)
{
    return shape->main_n / 2 + (shape->rope_n + 1) / 2;
}

/* Bytes of each part, in the order of the structure, all multiples of 64. */
#define MLA_STEP_SCORES(keys_n) ((size_t)(keys_n)*MLA_STEP_ROWS * sizeof(float))
#define MLA_STEP_WEIGHTS(keys_n)                                                                   \
    ((size_t)(keys_n) / 2 * MLA_STEP_ROWS * V_PAIR_WORDS * sizeof(float))

/*
 * Bytes of the shared part plus the kernel's own: pair_bytes for each pair of columns, and
 * own_bytes. 0 when they overflow: a width may be anything a call can say.
 */
static inline size_t mla_step_bytes(const struct mla_attend_shape *shape, size_t pair_bytes,
                                    size_t own_bytes)
{
    const int64_t keys_n = mla_step_up(shape->keys_n, 4);
    const size_t fixed = 64 + MLA_STEP_SCORES(keys_n) + MLA_STEP_WEIGHTS(keys_n) +
                         2 * MLA_STEP_ROWS * sizeof(float) + own_bytes;
    size_t widths;
    size_t total;
    if (__builtin_mul_overflow(mla_step_pairs(shape),
                               MLA_STEP_ROWS * 2 * sizeof(uint16_t) + pair_bytes, &widths) ||
        __builtin_add_overflow(widths, fixed + 64, &total)) {
        return 0;
    }
    return total;
}

static inline struct mla_step mla_step_of(const struct mla_attend_shape *shape, void *scratch)
{
    struct mla_step step = {.pairs_n = mla_step_pairs(shape),
                            .keys_n = mla_step_up(shape->keys_n, 4)};
    char *at = scratch;
    step.fresh = (void *)at;
    at += 64;
    step.scores = (void *)at;
    at += MLA_STEP_SCORES(step.keys_n);
    step.weights = (void *)at;
    at += MLA_STEP_WEIGHTS(step.keys_n);
    step.alpha = (void *)at;
    at += MLA_STEP_ROWS * sizeof *step.alpha;
    step.visible = (void *)at;
    at += MLA_STEP_ROWS * sizeof *step.visible;
    step.taken = (void *)at;
    at += (size_t)step.pairs_n * MLA_STEP_ROWS * 2 * sizeof *step.taken; /* 128 rows: aligned */
    step.own = at;
    return step;
}

/* mla_attend.query: the row is only copied; the kernel lays all rows out at its next block. */
static inline void mla_step_query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                                  const uint16_t *main, const uint16_t *rope)
{
    const struct mla_step step = mla_step_of(shape, scratch);
    uint16_t *to = step.taken + row * 2 * step.pairs_n;
    memcpy(to, main, (size_t)shape->main_n * sizeof *to);
    if (shape->rope_n > 0) {
        to[2 * step.pairs_n - 1] = 0;
        memcpy(to + shape->main_n, rope, (size_t)shape->rope_n * sizeof *to);
    }
    *step.fresh = 1;
}

/*
 * Subnormals are zero from here on, in and out, up to mla_step_restore. A compiler knows nothing of
 * MXCSR and may compute before or after; what it loads in between and stores in between it may not.
 */
static inline unsigned mla_step_flush(void)
{
    const unsigned callers = _mm_getcsr();
    _mm_setcsr(callers | 0x8040U);
    __asm__ volatile("" ::: "memory");
    return callers;
}

static inline void mla_step_restore(unsigned callers)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(callers);
}

/*
 * a*b = scale*log2(e) with neither b nor (s - m)*a lost at the ends of the range: b is rounded
 * once, from a double product, and is normal. Called before subnormals become zero, as the scale
 * may be one; a compiler would move it to where it is first used, hence the empty instruction.
 *   scale < 2^-64   a = 2^-64, 2^-85 < b < 1.45: where (s - m)*a underflows, x is off by 2^-126 b
 *   scale > 2^64    a = 2^64; where (s - m)*a overflows, |s - m| >= 2^64 and the weight is 0
 */
static inline struct mla_step_scale mla_step_scale(float scale)
{
    const double log2_e = 0x1.71547652b82fep+0;
    const double c = (double)scale * log2_e;
    struct mla_step_scale split = {.a = 1.0f, .b = (float)c};
    if (scale < 0x1p-64f) {
        split = (struct mla_step_scale){.a = 0x1p-64f, .b = (float)(c * 0x1p64)};
    } else if (scale > 0x1p64f) {
        split = (struct mla_step_scale){.a = 0x1p64f, .b = (float)(c * 0x1p-64)};
    }
    __asm__ volatile("" : "+x"(split.a), "+x"(split.b));
    return split;
}

/* exp2_bf16.h. Far below -126 k may be anything, and a NaN comes back through r. */
static inline v_float mla_step_exp2(v_float x)
{
    const v_float k = v_round(x);
    const v_float r = v_sub(x, k);
    v_float p = v_set(MLA_EXP2_BF16_C5);
    p = v_fma(p, r, v_set(MLA_EXP2_BF16_C4));
    p = v_fma(p, r, v_set(MLA_EXP2_BF16_C3));
    p = v_fma(p, r, v_set(MLA_EXP2_BF16_C2));
    p = v_fma(p, r, v_set(MLA_EXP2_BF16_C1));
    p = v_fma(p, r, v_set(1.0f));
    return v_select(v_less(x, v_set(MLA_EXP2_BF16_LOWEST)), v_set(0.0f), v_scale2(p, k));
}

static inline v_float mla_step_weight(v_float score, v_float max, v_float a, v_float b)
{
    return mla_step_exp2(v_mul(v_mul(v_sub(score, max), a), b));
}

/* Keys the rows of the tile see, as the steps want them; returns the most any row sees. */
static inline int64_t mla_step_see(const struct mla_step *step, int64_t rows_n,
                                   const int64_t *visible)
{
    int64_t most = 0;
    for (int64_t row = 0; row < rows_n; row++) {
        step->visible[row] = (int32_t)visible[row];
        most = visible[row] > most ? visible[row] : most;
    }
    for (int64_t row = rows_n; row < mla_step_up(rows_n, V_LANES); row++) {
        step->visible[row] = step->visible[rows_n - 1];
    }
    return most;
}

/* Most and fewest keys that rows `row` .. `row` + n - 1 see. */
static inline void mla_step_range(const struct mla_step *step, int64_t row, int64_t n,
                                  int64_t *fewest, int64_t *most)
{
    *fewest = step->visible[row];
    *most = step->visible[row];
    for (int64_t r = row + 1; r < row + n; r++) {
        *fewest = step->visible[r] < *fewest ? step->visible[r] : *fewest;
        *most = step->visible[r] > *most ? step->visible[r] : *most;
    }
}

/* Largest of `before` and the visible scores of each lane. */
static inline v_float mla_step_largest(const float *scores, const int32_t *visible, int64_t fewest,
                                       int64_t most, v_float before)
{
    v_float max[4] = {before, before, before, before};
    int64_t key = 0;
    for (; key + 4 <= fewest; key += 4) {
        for (int i = 0; i < 4; i++) {
            max[i] = v_max(v_load(scores + (key + i) * V_LANES), max[i]);
        }
    }
    for (; key < most; key++) {
        const v_float score = v_load(scores + key * V_LANES);
        max[0] = v_select(v_above(visible, (int32_t)key), v_max(score, max[0]), max[0]);
    }
    /* No maximum is NaN; + 0 makes a negative zero positive. */
    return v_add(v_max(v_max(max[0], max[1]), v_max(max[2], max[3])), v_set(0.0f));
}

/* Weights of four keys from `key` on: written, and added to the partial sums. */
static inline void mla_step_weigh4(uint32_t *weights, v_float p[4], v_float sum[4])
{
    v_put_pair(weights, &p[0], &p[1]);
    v_put_pair(weights + V_PAIR_WORDS * V_LANES, &p[2], &p[3]);
    for (int i = 0; i < 4; i++) {
        sum[i] = v_add(sum[i], p[i]);
    }
}

/*
 * The softmax step of V_LANES rows, the first of them `row`: their state, alpha, and the weights of
 * every pair that holds a key one of them sees. Rows that see nothing keep their state.
 */
static inline void mla_step_soften(const struct mla_step *step, int64_t row, int64_t rows_n,
                                   struct mla_step_scale scale,
                                   const struct mla_attend_state *state)
{
    const int64_t n = rows_n - row < V_LANES ? rows_n - row : V_LANES;
    const int32_t *visible = step->visible + row;
    const float *scores = step->scores + row * step->keys_n;
    uint32_t *weights = step->weights + row * (step->keys_n / 2) * V_PAIR_WORDS;
    const v_float a = v_set(scale.a);
    const v_float b = v_set(scale.b);
    const v_float zero = v_set(0.0f);
    float maxima[V_LANES];
    float sums[V_LANES];
    int64_t fewest;
    int64_t most;

    mla_step_range(step, row, V_LANES, &fewest, &most);
    for (int64_t i = 0; i < V_LANES; i++) {
        maxima[i] = i < n ? state->max[row + i] : -INFINITY;
        sums[i] = i < n ? state->sum[row + i] : 0.0f;
    }
    const v_float before = v_load(maxima);
    const v_float max = mla_step_largest(scores, visible, fewest, most, before);

    v_float sum[4] = {zero, zero, zero, zero};
    int64_t key = 0;
    for (; key + 4 <= fewest; key += 4) {
        v_float p[4];
        for (int i = 0; i < 4; i++) {
            p[i] = mla_step_weight(v_load(scores + (key + i) * V_LANES), max, a, b);
        }
        mla_step_weigh4(weights + key / 2 * V_PAIR_WORDS * V_LANES, p, sum);
    }
    for (; key < most; key += 4) {
        v_float p[4];
        for (int i = 0; i < 4; i++) {
            const v_float score = v_load(scores + (key + i) * V_LANES);
            p[i] = v_select(v_above(visible, (int32_t)(key + i)), mla_step_weight(score, max, a, b),
                            zero);
        }
        mla_step_weigh4(weights + key / 2 * V_PAIR_WORDS * V_LANES, p, sum);
    }

    const v_mask sees = v_above(visible, 0);
    const v_mask is_first = v_equal(before, v_set(-INFINITY));
    const v_float factor =
        v_select(v_equal(before, max), v_set(1.0f), mla_step_weight(before, max, a, b));
    const v_float added = v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
    const v_float earlier = v_load(sums);
    const v_float total = v_select(is_first, added, v_fma(factor, earlier, added));
    v_store(maxima, max);
    v_store(sums, v_select(sees, total, earlier));
    v_store(step->alpha + row, v_select(is_first, v_set(-1.0f), factor));
    for (int64_t i = 0; i < n; i++) {
        state->max[row + i] = maxima[i];
        state->sum[row + i] = sums[i];
    }
}

/* mla_attend.finish */
static inline float mla_step_finish(const struct mla_attend_shape *shape,
                                    const struct mla_attend_state *state, int64_t row)
{
    float *out = state->out + row * shape->value_n;
    const float sum = state->sum[row];
    if (sum != 0.0f) { /* with a key it is at least 1 or NaN */
        const unsigned callers = mla_step_flush();
        const v_float divisor = v_set(sum);
        for (int64_t c = 0; c < shape->value_n; c += V_LANES) {
            v_store(out + c, v_div(v_load(out + c), divisor));
        }
        mla_step_restore(callers);
    }
    return sum;
}

/* Eight groups of four go to four rows of eight. */
static inline void mla_step_deal(const uint16_t groups[32], uint16_t *to, int64_t stride)
{
    const __m128i *from = (const void *)groups;
    const __m128i ab = _mm_loadu_si128(from); /* groups a and b, .. */
    const __m128i cd = _mm_loadu_si128(from + 1);
    const __m128i ef = _mm_loadu_si128(from + 2);
    const __m128i gh = _mm_loadu_si128(from + 3);
    const __m128i ac = _mm_unpacklo_epi16(ab, cd);
    const __m128i bd = _mm_unpackhi_epi16(ab, cd);
    const __m128i eg = _mm_unpacklo_epi16(ef, gh);
    const __m128i fh = _mm_unpackhi_epi16(ef, gh);
    const __m128i a_d01 = _mm_unpacklo_epi16(ac, bd); /* elements 0 of a to d, then 1 */
    const __m128i a_d23 = _mm_unpackhi_epi16(ac, bd);
    const __m128i e_h01 = _mm_unpacklo_epi16(eg, fh);
    const __m128i e_h23 = _mm_unpackhi_epi16(eg, fh);
    _mm_storeu_si128((void *)to, _mm_unpacklo_epi64(a_d01, e_h01));
    _mm_storeu_si128((void *)(to + stride), _mm_unpackhi_epi64(a_d01, e_h01));
    _mm_storeu_si128((void *)(to + 2 * stride), _mm_unpacklo_epi64(a_d23, e_h23));
    _mm_storeu_si128((void *)(to + 3 * stride), _mm_unpackhi_epi64(a_d23, e_h23));
}

/* mla_attend.store: column by column, or the sparse operation's order, latent l to place l div 4 of
 * quarter l mod 4. */
static inline void mla_step_store(const struct mla_attend_shape *shape, const float *row,
                                  int32_t out_order, uint16_t *out)
{
    const int64_t n = shape->value_n;
    for (int64_t c = 0; c < n; c += 32) {
        uint16_t near[32];
        uint16_t *to = out_order == MLA_OUT_NATURAL ? out + c : near;
        for (int64_t i = 0; i < 32; i += V_LANES) {
            v_put_bf16(to + i, v_load(row + c + i));
        }
        if (out_order != MLA_OUT_NATURAL) {
            mla_step_deal(near, out + c / 4, n / 4);
        }
    }
}

#endif
