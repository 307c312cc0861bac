/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_call_status.c - a plug-in whose kernels fail every call, with a message.
 */
#include <stdio.h>

#include "example_kernels.h"

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    (void)args;
    snprintf(message, message_bytes, "out of luck");
    return MLA_ERR_INTERNAL;
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    (void)args;
    snprintf(message, message_bytes, "out of luck");
    return MLA_ERR_INTERNAL;
}

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static struct mla_kernel bad;
    static const struct mla_kernel *const kernels[] = {&bad};
    bad = *mla_example_kernels(kernels_n)[0];
    bad.name = "bad-call-status";
    bad.ring = ring;
    bad.sparse = sparse;
    *kernels_n = 1;
    return kernels;
}
