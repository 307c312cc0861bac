/* SPDX-License-Identifier: Apache-2.0
 *
 * canary_nan.c - must always be caught: every output is a NaN.
 *
 * A comparison written the wrong way round lets NaN pass. This kernel finds such a comparison.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"
#include "fuzz/faults/spoil.h"

static uint16_t spoil(uint16_t y)
{
    (void)y;
    return 0x7fc0u;
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

const struct mla_kernel mla_canary_nan = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "canary-nan",
    .promises = MLA_PLAIN_PROMISES,
    .ring_model = MLA_PLAIN_ONLINE_RING_MODEL,
    .sparse_model = MLA_PLAIN_ONLINE_SPARSE_MODEL,
    .ring = ring,
    .sparse = sparse,
};
