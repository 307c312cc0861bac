/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx512.c - float32 FMA on zmm registers.
 *
 * Compiled with flags of its own: it must define nothing that another file might share.
 */
#include <immintrin.h>

#include "fuzz/mlacheck/peak.h"

#define CHAINS 24 /* more than the instruction's latency times its ports, fewer than registers */

double mla_peak_loop_avx512(int64_t rounds, float *sink)
{
    volatile float value = 0x1p-5f; /* 2^-10 more a round: exact for long, and never large */
    __m512 a = _mm512_set1_ps(value), b = _mm512_set1_ps(value), x[CHAINS], sum;
    for (int i = 0; i < CHAINS; i++)
        x[i] = _mm512_set1_ps((float)i);
    for (int64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++)
            x[i] = _mm512_fmadd_ps(a, b, x[i]);
    }
    sum = x[0];
    for (int i = 1; i < CHAINS; i++)
        sum = _mm512_add_ps(sum, x[i]);
    *sink = _mm512_cvtss_f32(sum);
    return 2.0 * 16 * CHAINS * (double)rounds;
}
