/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_writes_past.c - a plug-in that computes rightly and then writes one element past the end of
 * its (last) output.
 */
#include "example_kernels.h"

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    size_t n = 0;
    int32_t status = mla_example_kernels(&n)[0]->ring(args, message, message_bytes);
    if (status == MLA_OK) {
        int64_t out_n = args->batch * args->heads * args->q_rows * args->head_dim_v;
        args->out[args->ring_size - 1][out_n] = 0x3f80u;
    }
    return status;
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    size_t n = 0;
    int32_t status = mla_example_kernels(&n)[0]->sparse(args, message, message_bytes);
    if (status == MLA_OK) {
        args->out[args->queries * args->heads * args->latent] = 0x3f80u;
    }
    return status;
}

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static struct mla_kernel bad;
    static const struct mla_kernel *const kernels[] = {&bad};
    bad = *mla_example_kernels(kernels_n)[0];
    bad.name = "bad-writes-past";
    bad.ring = ring;
    bad.sparse = sparse;
    *kernels_n = 1;
    return kernels;
}
