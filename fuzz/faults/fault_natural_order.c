/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_natural_order.c - the 4-pack column order is not applied.
 *
 * Every value is right and nearly every one is in the wrong column, unless natural order was asked
 * for.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"

static const struct mla_plain_variant variant = {MLA_FAULT_NATURAL_ORDER, MLA_PLAIN_ONLINE};

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_plain_sparse(args, variant, message, message_bytes);
}

const struct mla_kernel mla_fault_natural_order = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "natural-order",
    .promises = MLA_PLAIN_PROMISES,
    .sparse_model = MLA_PLAIN_SPARSE_MODEL,
    .sparse = sparse,
};
