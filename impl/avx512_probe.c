/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512_probe.c - the instructions themselves, in a file with their flags, so that the tests can
 * be compiled without.
 */
#include "impl/avx512_probe.h"

#include "impl/simd_avx512.h"

#include "impl/bf16_step.h"

void mla_probe_dot(unsigned mxcsr, const float *acc, const uint32_t *a, const uint32_t *b,
                   float *out)
{
    const unsigned callers = _mm_getcsr();
    _mm_setcsr(mxcsr);
    __m512 sum = v_load(acc);
    __asm__ volatile("vdpbf16ps %2, %1, %0" /* not to be moved out of the two MXCSR */
                     : "+v"(sum)
                     : "v"(_mm512_loadu_si512(a)), "v"(_mm512_loadu_si512(b)));
    _mm_setcsr(callers);
    v_store(out, sum);
}

void mla_probe_exp2(const float *x, float *out)
{
    const unsigned callers = mla_step_flush();
    v_store(out, mla_step_exp2(v_load(x)));
    mla_step_restore(callers);
}
