/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx512bf16.c - vdpbf16ps on zmm registers: 32 products of bf16 into 16 sums.
 *
 * Compiled with flags of its own: it must define nothing that another file might share.
 */
#include <immintrin.h>

#include "fuzz/mlacheck/peak.h"

#define CHAINS 24 /* more than the instruction's latency times its ports, fewer than registers */

double mla_peak_loop_avx512bf16(int64_t rounds, float *sink)
{
    volatile float value = 0x1p-5f; /* 2^-9 more a round: exact for long, and never large */
    __m512 one = _mm512_set1_ps(value), x[CHAINS], sum;
    __m512bh a = _mm512_cvtne2ps_pbh(one, one), b = a;
    for (int i = 0; i < CHAINS; i++)
        x[i] = _mm512_set1_ps((float)i);
    for (int64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++)
            x[i] = _mm512_dpbf16_ps(x[i], a, b);
    }
    sum = x[0];
    for (int i = 1; i < CHAINS; i++)
        sum = _mm512_add_ps(sum, x[i]);
    *sink = _mm512_cvtss_f32(sum);
    return 2.0 * 32 * CHAINS * (double)rounds;
}
