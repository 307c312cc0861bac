/* SPDX-License-Identifier: Apache-2.0
 *
 * control_plain_two_pass.c - honest: maximum first, probabilities rounded to bf16 for P*V.
 *
 * The arithmetic of many accelerators, and of the sparse operation's origin: a sum of unrounded
 * probabilities under rounded ones. Its error is far larger than the plain kernel's, declared, and
 * honest.
 */
#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"

static const struct mla_plain_variant variant = {MLA_FAULT_NONE, MLA_PLAIN_TWO_PASS};

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_plain_ring(args, variant, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_plain_sparse(args, variant, message, message_bytes);
}

const struct mla_kernel mla_control_plain_two_pass = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "plain-two-pass",
    .promises = MLA_PLAIN_PROMISES,
    .ring_model = MLA_PLAIN_TWO_PASS_MODEL,
    .sparse_model = MLA_PLAIN_TWO_PASS_MODEL,
    .ring = ring,
    .sparse = sparse,
};
