/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_call_crash.c - a plug-in that dies of a wild write as soon as a kernel is called.
 */
#include "example_kernels.h"

static volatile uintptr_t nowhere = 64; /* volatile: the compiler must not see through it */

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    (void)args;
    (void)message;
    (void)message_bytes;
    *(volatile int *)nowhere = 1;
    return MLA_OK;
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    (void)args;
    (void)message;
    (void)message_bytes;
    *(volatile int *)nowhere = 1;
    return MLA_OK;
}

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static struct mla_kernel bad;
    static const struct mla_kernel *const kernels[] = {&bad};
    bad = *mla_example_kernels(kernels_n)[0];
    bad.name = "bad-call-crash";
    bad.ring = ring;
    bad.sparse = sparse;
    *kernels_n = 1;
    return kernels;
}
