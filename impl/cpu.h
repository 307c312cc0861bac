/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.h - what this processor, and the system it runs, can execute. False on other architectures.
 */
#ifndef MLA_IMPL_CPU_H
#define MLA_IMPL_CPU_H

#include <stdbool.h>

/* AVX2 and FMA. */
bool mla_cpu_has_avx2(void);

/* AVX-512 F, BW, DQ, VL and BF16. */
bool mla_cpu_has_avx512bf16(void);

#endif
