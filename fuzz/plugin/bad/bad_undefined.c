/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_undefined.c - a plug-in that needs a function that nobody provides.
 */
#include "mla_kernel.h"

const struct mla_kernel *const *mla_bad_nobody_defines_this(size_t *kernels_n);

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    return mla_bad_nobody_defines_this(kernels_n);
}
