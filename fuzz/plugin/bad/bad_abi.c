/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_abi.c - a plug-in that was built for another kernel ABI.
 */
#include "mla_kernel.h"

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    (void)args;
    (void)message;
    (void)message_bytes;
    return MLA_ERR_UNSUPPORTED;
}

static const struct mla_kernel bad = {.abi = MLA_KERNEL_ABI + 98,
                                      .struct_size = sizeof(struct mla_kernel),
                                      .name = "bad-abi",
                                      .ring = ring};

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static const struct mla_kernel *const kernels[] = {&bad};
    *kernels_n = 1;
    return kernels;
}
