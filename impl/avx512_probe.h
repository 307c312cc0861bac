/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512_probe.h - single operations of the AVX-512 step, for tests. Only where
 * mla_cpu_has_avx512bf16().
 */
#ifndef MLA_IMPL_AVX512_PROBE_H
#define MLA_IMPL_AVX512_PROBE_H

#include <stdint.h>

#define MLA_PROBE_LANES 16

/* out[i] = acc[i] + both products of the pairs a[i] and b[i], vdpbf16ps, with this MXCSR. */
void mla_probe_dot(unsigned mxcsr, const float *acc, const uint32_t *a, const uint32_t *b,
                   float *out);

/* The step's 2^x, subnormals flushed as in the step. */
void mla_probe_exp2(const float *x, float *out);

#endif
