/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_keys_past_end.c - the tail tile is not cut at logical_n.
 *
 * A tile whose first key is valid is taken whole, up to the causal frontier. Shows only in rows at
 * or beyond logical_n; what they read there is whatever the buffer held.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"

static const struct mla_plain_variant variant = {MLA_FAULT_KEYS_PAST_END, MLA_PLAIN_ONLINE};

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_plain_ring(args, variant, message, message_bytes);
}

const struct mla_kernel mla_fault_keys_past_end = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "keys-past-end",
    .promises = MLA_PLAIN_PROMISES,
    .ring_model = MLA_PLAIN_RING_MODEL,
    .ring = ring,
};
