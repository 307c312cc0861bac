/* SPDX-License-Identifier: Apache-2.0
 *
 * example_kernels.h - the example plug-in's kernels, linked into a bad one under another name.
 *
 * Most bad kernels are right but for one sin, so that only a check for that sin can catch them.
 */
#ifndef MLA_BAD_EXAMPLE_KERNELS_H
#define MLA_BAD_EXAMPLE_KERNELS_H

#include "mla_kernel.h"

const struct mla_kernel *const *mla_example_kernels(size_t *kernels_n);

#endif
