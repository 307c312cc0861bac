/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_mask.c - faults of kernels that mask hidden keys instead of leaving them out.
 *
 * The honest row lists only keys it sees. For these faults the lists (plain_ring.c, plain_list.c)
 * hold hidden keys too, in the tile that was being filled, and their scores are replaced here. As
 * long as such a key gets a weight of 0 it is skipped and every bit is the honest row's.
 */
#include "fuzz/faults/plain_mask.h"
#include "fuzz/faults/plain_arith.h"

#include <float.h>
#include <math.h>

bool mla_plain_masks(struct mla_plain_variant variant)
{
    switch (variant.fault) {
    case MLA_FAULT_MASK_1E4:
    case MLA_FAULT_MASK_1E5:
    case MLA_FAULT_MASK_BEFORE_SCALE:
    case MLA_FAULT_EMPTY_ROW_AVERAGE:
        return true;
    default:
        return false;
    }
}

float mla_plain_mask_score(const struct mla_plain_row *row, struct mla_plain_variant variant)
{
    switch (variant.fault) {
    case MLA_FAULT_MASK_1E4:
        return -1e4f / row->run.scale; /* -1e4 once it is scaled */
    case MLA_FAULT_MASK_1E5:
        return -1e5f / row->run.scale;
    case MLA_FAULT_MASK_BEFORE_SCALE:
        return -1e3f;
    case MLA_FAULT_EMPTY_ROW_AVERAGE:
        return -FLT_MAX;
    default:
        return -INFINITY;
    }
}

/* A NaN is not 0 either: that of a tile with nothing but -Inf. */
bool mla_plain_mask_adds(float p, struct mla_plain_variant variant)
{
    if (variant.fault == MLA_FAULT_ZERO_TIMES_DROPPED) {
        return true; /* only keys for which that matters are listed */
    }
    return p != 0.0f && mla_plain_has(variant, variant.fault);
}
