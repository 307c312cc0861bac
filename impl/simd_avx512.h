/* SPDX-License-Identifier: Apache-2.0
 *
 * simd_avx512.h - the vector operations bf16_step.h is written with: 16 lanes, AVX-512.
 *
 * A file that includes this is compiled for AVX-512 (F, BW, VL, DQ, BF16) and includes no header
 * with functions of its own that other files might share: the linker could keep this file's copy.
 */
#ifndef MLA_IMPL_SIMD_AVX512_H
#define MLA_IMPL_SIMD_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define V_LANES      16
#define V_PAIR_WORDS 1 /* 32-bit words a pair of weights takes per row */

typedef __m512 v_float;
typedef __mmask16 v_mask;

static inline v_float v_set(float value)
{
    return _mm512_set1_ps(value);
}

static inline v_float v_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

static inline void v_store(float *to, v_float value)
{
    _mm512_storeu_ps(to, value);
}

static inline v_float v_add(v_float a, v_float b)
{
    return _mm512_add_ps(a, b);
}

static inline v_float v_sub(v_float a, v_float b)
{
    return _mm512_sub_ps(a, b);
}

static inline v_float v_mul(v_float a, v_float b)
{
    return _mm512_mul_ps(a, b);
}

static inline v_float v_div(v_float a, v_float b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c, rounded once */
static inline v_float v_fma(v_float a, v_float b, v_float c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* a > b ? a : b, hence b when one of them is NaN */
static inline v_float v_max(v_float a, v_float b)
{
    return _mm512_max_ps(a, b);
}

/* To an integer, ties to even, of a number between -2^31 and 2^31; of any other some number. */
static inline v_float v_round(v_float x)
{
    return _mm512_cvtepi32_ps(_mm512_cvtps_epi32(x));
}

/* p * 2^k for an integer k and a normal result; NaN stays NaN. */
static inline v_float v_scale2(v_float p, v_float k)
{
    return _mm512_scalef_ps(p, k);
}

/* Ordered: false with NaN. */
static inline v_mask v_less(v_float a, v_float b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline v_mask v_equal(v_float a, v_float b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

/* Lanes whose count is above n. */
static inline v_mask v_above(const int32_t counts[V_LANES], int32_t n)
{
    return _mm512_cmpgt_epi32_mask(_mm512_loadu_si512(counts), _mm512_set1_epi32(n));
}

static inline v_float v_select(v_mask mask, v_float yes, v_float no)
{
    return _mm512_mask_blend_ps(mask, no, yes);
}

/*
 * Round the weights of two consecutive keys to bf16, to nearest even (no subnormal is among them),
 * write them to `to` as the kernel's weighted sum wants them, V_PAIR_WORDS * V_LANES words, and
 * give them back as floats.
 */
static inline void v_put_pair(uint32_t *to, v_float *first, v_float *second)
{
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(*first));
    const __m512i high =
        _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(*second)), 16);
    _mm512_storeu_si512(to, _mm512_or_si512(low, high));
    *first = _mm512_castsi512_ps(_mm512_slli_epi32(low, 16));
    *second = _mm512_castsi512_ps(high);
}

/* Round to bf16 on the bits, to nearest even, nothing flushed, NaN kept. */
static inline void v_put_bf16(uint16_t *to, v_float value)
{
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i round = _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd);
    const __m512i near = _mm512_srli_epi32(_mm512_add_epi32(bits, round), 16);
    const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(is_nan, near, quiet)));
}

#endif
