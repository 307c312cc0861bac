/* SPDX-License-Identifier: Apache-2.0
 *
 * simd_avx2.h - the vector operations bf16_step.h is written with: 8 lanes, AVX2 and FMA.
 *
 * The same names and the same results as simd_avx512.h. A file that includes this is compiled for
 * AVX2 and FMA and includes no header with functions of its own that other files might share: the
 * linker could keep this file's copy.
 */
#ifndef MLA_IMPL_SIMD_AVX2_H
#define MLA_IMPL_SIMD_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define V_LANES      8
#define V_PAIR_WORDS 2 /* 32-bit words a pair of weights takes per row: two floats */

typedef __m256 v_float;
typedef __m256 v_mask;

static inline v_float v_set(float value)
{
    return _mm256_set1_ps(value);
}

static inline v_float v_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

static inline void v_store(float *to, v_float value)
{
    _mm256_storeu_ps(to, value);
}

static inline v_float v_add(v_float a, v_float b)
{
    return _mm256_add_ps(a, b);
}

static inline v_float v_sub(v_float a, v_float b)
{
    return _mm256_sub_ps(a, b);
}

static inline v_float v_mul(v_float a, v_float b)
{
    return _mm256_mul_ps(a, b);
}

static inline v_float v_div(v_float a, v_float b)
{
    return _mm256_div_ps(a, b);
}

/* a * b + c, rounded once */
static inline v_float v_fma(v_float a, v_float b, v_float c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* a > b ? a : b, hence b when one of them is NaN */
static inline v_float v_max(v_float a, v_float b)
{
    return _mm256_max_ps(a, b);
}

/* To an integer, ties to even; NaN stays NaN. */
static inline v_float v_round(v_float x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/*
 * p * 2^k for an integer k and a normal result, by adding to the exponent. NaN stays NaN: as an
 * integer its k is 2^31, which leaves nothing to add.
 */
static inline v_float v_scale2(v_float p, v_float k)
{
    const __m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(k), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), power));
}

/* Ordered: false with NaN. */
static inline v_mask v_less(v_float a, v_float b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline v_mask v_equal(v_float a, v_float b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

/* Lanes whose count is above n. */
static inline v_mask v_above(const int32_t counts[V_LANES], int32_t n)
{
    const __m256i count = _mm256_loadu_si256((const __m256i *)(const void *)counts);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_set1_epi32(n)));
}

static inline v_float v_select(v_mask mask, v_float yes, v_float no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

/* The bits of values rounded to bf16, to nearest even, in the upper half; NaN made quiet. */
static inline __m256i v_nearest_bf16(v_float value)
{
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i round = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd);
    const __m256i near = _mm256_add_epi32(bits, round);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_and_si256(_mm256_blendv_epi8(near, quiet, is_nan),
                            _mm256_set1_epi32((int)0xffff0000U));
}

/*
 * Round the weights of two consecutive keys to bf16, to nearest even, write them to `to` as the
 * kernel's weighted sum wants them, V_PAIR_WORDS * V_LANES words, and give them back as floats.
 * Here they are written as floats: first all lanes' of the first key, then of the second.
 */
static inline void v_put_pair(uint32_t *to, v_float *first, v_float *second)
{
    const __m256i low = v_nearest_bf16(*first);
    const __m256i high = v_nearest_bf16(*second);
    _mm256_storeu_si256((__m256i *)(void *)to, low);
    _mm256_storeu_si256((__m256i *)(void *)(to + V_LANES), high);
    *first = _mm256_castsi256_ps(low);
    *second = _mm256_castsi256_ps(high);
}

/* Round to bf16 on the bits, to nearest even, nothing flushed, NaN kept. */
static inline void v_put_bf16(uint16_t *to, v_float value)
{
    const __m256i near = _mm256_srli_epi32(v_nearest_bf16(value), 16);
    const __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(near), _mm256_extracti128_si256(near, 1));
    _mm_storeu_si128((__m128i *)(void *)to, packed);
}

#endif
