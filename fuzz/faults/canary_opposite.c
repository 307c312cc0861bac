/* SPDX-License-Identifier: Apache-2.0
 *
 * canary_opposite.c - must always be caught: the wrong sign and the largest magnitude.
 *
 * Plain negation would survive where the answer is 0 or its interval contains both signs; the
 * largest finite bf16 of the other sign lies outside every interval a judged row can have, pad rows
 * included.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"
#include "fuzz/faults/spoil.h"

static uint16_t spoil(uint16_t y)
{
    return y & 0x8000u ? 0x7f7fu : 0xff7fu;
}

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    struct mla_plain_variant honest = {MLA_FAULT_NONE, MLA_PLAIN_ONLINE};
    int32_t status = mla_plain_ring(args, honest, message, message_bytes);
    if (status == MLA_OK) {
        mla_spoil_ring(args, spoil);
    }
    return status;
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    struct mla_plain_variant honest = {MLA_FAULT_NONE, MLA_PLAIN_ONLINE};
    int32_t status = mla_plain_sparse(args, honest, message, message_bytes);
    if (status == MLA_OK) {
        mla_spoil_sparse(args, spoil);
    }
    return status;
}

const struct mla_kernel mla_canary_opposite = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "canary-opposite",
    .promises = MLA_PLAIN_PROMISES,
    .ring_model = MLA_PLAIN_ONLINE_RING_MODEL,
    .sparse_model = MLA_PLAIN_ONLINE_SPARSE_MODEL,
    .ring = ring,
    .sparse = sparse,
};
