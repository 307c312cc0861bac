/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_struct_size.c - a plug-in that has the right ABI number and a descriptor of another size.
 */
#include "mla_kernel.h"

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    (void)args;
    (void)message;
    (void)message_bytes;
    return MLA_ERR_UNSUPPORTED;
}

static const struct mla_kernel bad = {.abi = MLA_KERNEL_ABI,
                                      .struct_size = sizeof(struct mla_kernel) - 8,
                                      .name = "bad-struct-size",
                                      .ring = ring};

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static const struct mla_kernel *const kernels[] = {&bad};
    *kernels_n = 1;
    return kernels;
}
