/* SPDX-License-Identifier: Apache-2.0
 *
 * desk.h - the memory of one worker: the states of one tile, and the kernel's scratch.
 *
 * All a call needs beyond its tensors, whatever their size, is one of these for each thread.
 */
#ifndef MLA_IMPL_DESK_H
#define MLA_IMPL_DESK_H

#include "impl/attend.h"
#include "impl/scratch.h"

#include <stdbool.h>

struct mla_desk {
    void *scratch;
    struct mla_attend_state state; /* of shape.rows_n rows */
    float max[MLA_ATTEND_ROWS];
};

/* False when memory cannot be had; clearing is due in either case. */
static inline bool mla_desk_make(struct mla_desk *desk, const struct mla_attend *attend,
                                 const struct mla_attend_shape *shape)
{
    const size_t bytes = attend->scratch_bytes(shape);
    desk->scratch = bytes == 0 ? NULL : mla_scratch_alloc(1, bytes);
    desk->state.max = desk->max;
    desk->state.sum = mla_scratch_alloc(shape->rows_n * shape->sums_n, sizeof(float));
    desk->state.out = mla_scratch_alloc(shape->rows_n * shape->value_n, sizeof(float));
    return desk->scratch != NULL && desk->state.sum != NULL && desk->state.out != NULL;
}

static inline void mla_desk_clear(struct mla_desk *desk)
{
    free(desk->state.out);
    free(desk->state.sum);
    free(desk->scratch);
}

#endif
