/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_rescale_forgotten.c - the accumulator is not rescaled when the maximum rises.
 *
 * The sum is rescaled, O is not. Right as long as the maximum sits in a row's first tile.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"

static const struct mla_plain_variant variant = {MLA_FAULT_RESCALE_FORGOTTEN, MLA_PLAIN_ONLINE};

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_plain_ring(args, variant, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_plain_sparse(args, variant, message, message_bytes);
}

const struct mla_kernel mla_fault_rescale_forgotten = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "rescale-forgotten",
    .promises = MLA_PLAIN_PROMISES,
    .ring_model = MLA_PLAIN_RING_MODEL,
    .sparse_model = MLA_PLAIN_SPARSE_MODEL,
    .ring = ring,
    .sparse = sparse,
};
