/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.h - the built-in kernels, each defined in kernel_<name>.c.
 */
#ifndef MLA_IMPL_KERNELS_H
#define MLA_IMPL_KERNELS_H

#include "impl/mla_kernel.h"

extern const struct mla_kernel mla_kernel_plain;
extern const struct mla_kernel mla_kernel_nki;
extern const struct mla_kernel mla_kernel_ttnn;
extern const struct mla_kernel mla_kernel_scalar;
extern const struct mla_kernel mla_kernel_avx2;       /* MLA_HAS_AVX2 */
extern const struct mla_kernel mla_kernel_avx512bf16; /* MLA_HAS_AVX512BF16 */

#endif
