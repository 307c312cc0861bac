/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_max.c - the running maximum, which is the shift of the exponentials.
 */
#include "fuzz/faults/plain_arith.h"

#include <math.h>

float mla_plain_larger(float max, const float *scores, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        max = scores[j] > max ? scores[j] : max;
    }
    return max;
}

static float largest_magnitude(float max, const float *scores, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        max = fmaxf(max, fabsf(scores[j]));
    }
    return max;
}

/* What the maximum is begun with. */
static float begin(const struct mla_plain_row *row, enum mla_plain_fault fault)
{
    switch (fault) {
    case MLA_FAULT_MAX_FROM_ZERO:
        return 0.0f;
    case MLA_FAULT_MAX_FROM_1E4:
        return -1e4f;
    case MLA_FAULT_MAX_FROM_5E4:
        return -5e4f;
    case MLA_FAULT_MAX_OF_LAST_ROW:
        return row->run.last_shift;
    default:
        return -INFINITY;
    }
}

/* The maximum that a fault takes for `right`. */
static float faulty(const struct mla_plain_row *row, int64_t first, int64_t end, float right,
                    enum mla_plain_fault fault)
{
    const float *scores = row->scores + first;
    bool is_first = row->run.tiles_n == 0;
    switch (fault) {
    case MLA_FAULT_MAX_OF_FIRST_KEY:
        return is_first ? scores[0] : row->max;
    case MLA_FAULT_MAX_OF_TILE_ONLY:
        return mla_plain_larger(-INFINITY, scores, end - first);
    case MLA_FAULT_MAX_WITHOUT_LAST_KEY:
        return end - first == 1 && is_first ? right
                                            : mla_plain_larger(row->max, scores, end - first - 1);
    case MLA_FAULT_MAX_OF_MAGNITUDES:
        return largest_magnitude(row->max, scores, end - first);
    case MLA_FAULT_EMPTY_TILE_RESETS_MAX:
        return row->keys[first].hidden ? -INFINITY : right;
    default:
        return fmaxf(right, begin(row, fault));
    }
}

float mla_plain_tile_max(const struct mla_plain_row *row, int64_t first, int64_t end,
                         struct mla_plain_variant variant)
{
    float right = mla_plain_larger(row->max, row->scores + first, end - first);
    if (variant.fault == MLA_FAULT_NONE) {
        return right;
    }
    float wrong = faulty(row, first, end, right, variant.fault);
    return mla_plain_differs(wrong, right) && mla_plain_has(variant, variant.fault) ? wrong : right;
}
