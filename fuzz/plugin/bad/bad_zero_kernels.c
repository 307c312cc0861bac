/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_zero_kernels.c - a plug-in that offers no kernel.
 */
#include "mla_kernel.h"

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static const struct mla_kernel *const kernels[1] = {NULL};
    *kernels_n = 0;
    return kernels;
}
