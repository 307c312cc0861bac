/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_last_key_dropped.c - the last valid key takes no part.
 *
 * Ring: the key at position logical_n - 1, as when a shard's length is floored. Sparse: the last
 * entry of every row's multiset. Nearly invisible on plain data: one weight of many is missing.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"

static const struct mla_plain_variant variant = {MLA_FAULT_LAST_KEY_DROPPED, MLA_PLAIN_ONLINE};

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_plain_ring(args, variant, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_plain_sparse(args, variant, message, message_bytes);
}

const struct mla_kernel mla_fault_last_key_dropped = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "last-key-dropped",
    .promises = MLA_PLAIN_PROMISES,
    .ring_model = MLA_PLAIN_RING_MODEL,
    .sparse_model = MLA_PLAIN_SPARSE_MODEL,
    .ring = ring,
    .sparse = sparse,
};
