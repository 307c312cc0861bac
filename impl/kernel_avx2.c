/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_avx2.c - the descriptor of the kernel for AVX2 and FMA; its model: bf16_kernel.h.
 */
#include "impl/attend.h"
#include "impl/bf16_kernel.h"
#include "impl/cpu.h"
#include "impl/exp2_bf16.h"
#include "impl/kernels.h"
#include "impl/ring.h"
#include "impl/sparse.h"

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_ring_run(args, &mla_attend_avx2, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_sparse_run(args, &mla_attend_avx2, message, message_bytes);
}

const struct mla_kernel mla_kernel_avx2 = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "avx2",
    .promises = MLA_PROMISE_ALL,
    .ring_model = MLA_BF16_RING_MODEL,
    .sparse_model = MLA_BF16_SPARSE_MODEL,
    .usable = mla_cpu_has_avx2,
    .ring = ring,
    .sparse = sparse,
};
