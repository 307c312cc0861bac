/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_unusable.c - a plug-in of two kernels: one that says it cannot run on this CPU, and ends the
 * process if it is called nevertheless, and a right one.
 */
#include "example_kernels.h"

#include <stdlib.h>

static bool usable(void)
{
    return false;
}

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    (void)args;
    (void)message;
    (void)message_bytes;
    abort();
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    (void)args;
    (void)message;
    (void)message_bytes;
    abort();
}

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static struct mla_kernel bad;
    static struct mla_kernel right;
    static const struct mla_kernel *const kernels[] = {&bad, &right};
    right = *mla_example_kernels(kernels_n)[0];
    right.name = "right";
    bad = right;
    bad.name = "unusable";
    bad.usable = usable;
    bad.ring = ring;
    bad.sparse = sparse;
    *kernels_n = 2;
    return kernels;
}
