/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_offset.c - the causal limit of the sparse operation: q_pos_offset, and dense rows.
 */
#include "fuzz/faults/plain_list.h"

/* q_pos_offset may be as large as INT64_MAX: saturate, and leave room for one more. */
static int64_t added(int64_t offset, int64_t q)
{
    return offset > INT64_MAX - 1 - q ? INT64_MAX - 1 : offset + q;
}

static bool is_limited(const struct mla_sparse_args *args)
{
    return args->dense || args->has_q_pos_offset;
}

static int64_t offset_of(const struct mla_sparse_args *args)
{
    return args->has_q_pos_offset ? args->q_pos_offset : 0;
}

int64_t mla_plain_last_allowed(const struct mla_sparse_args *args, int64_t q)
{
    return is_limited(args) ? added(offset_of(args), q) : INT64_MAX;
}

int64_t mla_plain_last_faulty(const struct mla_sparse_args *args, int64_t q,
                              struct mla_plain_variant variant)
{
    int64_t last = mla_plain_last_allowed(args, q);
    int64_t offset = offset_of(args);
    int64_t rows = args->queries / args->cores;
    if (!is_limited(args)) {
        return last;
    }
    switch (variant.fault) {
    case MLA_FAULT_CAUSAL_ONE_MORE:
        return last + 1;
    case MLA_FAULT_CAUSAL_ONE_LESS:
        return last - 1;
    case MLA_FAULT_DROP_IGNORED:
        return args->dense ? last : INT64_MAX;
    case MLA_FAULT_DENSE_NOT_CAUSAL:
        return args->dense ? INT64_MAX : last;
    case MLA_FAULT_OFFSET_IGNORED:
        return q;
    case MLA_FAULT_OFFSET_WITHOUT_ROW:
        return offset;
    case MLA_FAULT_OFFSET_ROW_OF_CORE:
        return added(offset, q % rows);
    case MLA_FAULT_OFFSET_INT32:
        return (int64_t)(int32_t)(uint32_t)((uint64_t)offset & 0xffffffffu) + q;
    case MLA_FAULT_OFFSET_WRAPS:
        return offset > INT64_MAX - q ? INT64_MIN : last;
    case MLA_FAULT_LIMIT_BY_BLOCK:
        return last >= INT64_MAX - 32 ? last : last / 32 * 32 + 31;
    default:
        return last;
    }
}
