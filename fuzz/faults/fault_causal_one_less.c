/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_causal_one_less.c - the causal frontier lies one key too short.
 *
 * Ring: pos_k < pos_q. Sparse: index < q_pos_offset + q, where that limit applies.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"

static const struct mla_plain_variant variant = {MLA_FAULT_CAUSAL_ONE_LESS, MLA_PLAIN_ONLINE};

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_plain_ring(args, variant, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_plain_sparse(args, variant, message, message_bytes);
}

const struct mla_kernel mla_fault_causal_one_less = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "causal-one-less",
    .promises = MLA_PLAIN_PROMISES,
    .ring_model = MLA_PLAIN_RING_MODEL,
    .sparse_model = MLA_PLAIN_SPARSE_MODEL,
    .ring = ring,
    .sparse = sparse,
};
