/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16_kernel.h - the arithmetic model of the kernels that share bf16_step.h, derived.
 */
#ifndef MLA_IMPL_BF16_KERNEL_H
#define MLA_IMPL_BF16_KERNEL_H

#define MLA_STEP_BLOCK 256 /* keys of a block: mla_attend.block_keys */

#endif
