/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_writes_input.c - a plug-in that computes rightly and then changes the sign of its first query
 * element.
 */
#include "example_kernels.h"

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    size_t n = 0;
    int32_t status = mla_example_kernels(&n)[0]->ring(args, message, message_bytes);
    if (status == MLA_OK) {
        ((uint16_t *)(uintptr_t)args->q[0])[0] ^= 0x8000u;
    }
    return status;
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    size_t n = 0;
    int32_t status = mla_example_kernels(&n)[0]->sparse(args, message, message_bytes);
    if (status == MLA_OK) {
        ((uint16_t *)(uintptr_t)args->q_lift)[0] ^= 0x8000u;
    }
    return status;
}

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static struct mla_kernel bad;
    static const struct mla_kernel *const kernels[] = {&bad};
    bad = *mla_example_kernels(kernels_n)[0];
    bad.name = "bad-writes-input";
    bad.ring = ring;
    bad.sparse = sparse;
    *kernels_n = 1;
    return kernels;
}
