/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_refuse_index.c - which entries of the index list a check finds to be no rows of the cache.
 */
#include "fuzz/faults/plain_list.h"

/* index*latent as a 32-bit number, compared with the cache's end. */
static bool product_is_below(const struct mla_sparse_args *args, int64_t index)
{
    uint32_t product = (uint32_t)((uint64_t)index * (uint64_t)args->latent);
    return (int64_t)(int32_t)product < args->keys * args->latent;
}

/* Does the planted check let this bad entry by? */
static bool is_overlooked(const struct mla_sparse_args *args, int64_t q, int64_t j, int64_t index,
                          enum mla_plain_fault fault)
{
    bool is_end = j == 0 || j == args->topk - 1;
    switch (fault) {
    case MLA_FAULT_NEGATIVE_TO_ZERO:
        return index < 0;
    case MLA_FAULT_MINUS_ONE_IS_PADDING:
        return index == -1;
    case MLA_FAULT_NEGATIVE_INSIDE:
        return index < 0 && j < args->topk - 1;
    case MLA_FAULT_UPPER_UNCHECKED:
    case MLA_FAULT_UPPER_TO_ZERO:
        return index >= args->keys;
    case MLA_FAULT_UPPER_ONE_MORE:
        return index == args->keys;
    case MLA_FAULT_UPPER_OF_PRODUCT:
        return index >= 0 && product_is_below(args, index);
    case MLA_FAULT_INDEX_CHECK_ENDS:
        return !is_end;
    case MLA_FAULT_INDEX_CHECK_FIRST_ROW:
        return q > 0;
    case MLA_FAULT_INDEX_CHECK_KEPT:
        return args->has_q_pos_offset && index > mla_plain_last_allowed(args, q);
    default:
        return false;
    }
}

int64_t mla_plain_bad_entry(const struct mla_sparse_args *args, struct mla_plain_variant variant)
{
    for (int64_t i = 0; i < args->queries * args->topk; i++) {
        int64_t q = i / args->topk;
        int64_t j = i % args->topk;
        int64_t index = args->topk_indices[mla_plain_entry_place(args, q, j)];
        if (index >= 0 && index < args->keys) {
            continue;
        }
        if (!is_overlooked(args, q, j, index, variant.fault) ||
            !mla_plain_has(variant, variant.fault)) {
            return i;
        }
    }
    return -1;
}
