/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_remembers.c - a plug-in that keeps the scale of its process's first call for ever: right in
 * every process that sees one scale only.
 */
#include "example_kernels.h"

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    static float kept;
    struct mla_sparse_args stale = *args;
    size_t n = 0;
    if (kept == 0) {
        kept = args->softmax_scale;
    }
    stale.softmax_scale = kept;
    return mla_example_kernels(&n)[0]->sparse(&stale, message, message_bytes);
}

const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n)
{
    static struct mla_kernel bad;
    static const struct mla_kernel *const kernels[] = {&bad};
    bad = *mla_example_kernels(kernels_n)[0];
    bad.name = "bad-remembers";
    bad.ring = NULL;
    bad.sparse = sparse;
    *kernels_n = 1;
    return kernels;
}
