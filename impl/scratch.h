/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.h - memory for the kernels' own use: aligned, overflow-checked, never a size wrapped
 * round.
 *
 * Dimensions of an accepted call may still be far larger than memory. Every size is formed here
 * with overflow checks, and a size that cannot be formed is treated like memory that cannot be had.
 */
#ifndef MLA_IMPL_SCRATCH_H
#define MLA_IMPL_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define MLA_SCRATCH_ALIGN 64 /* a cache line, and the widest vector */

/*
 * n elements of `bytes` bytes, aligned to MLA_SCRATCH_ALIGN, contents undefined; n >= 0, bytes
 * >= 1. NULL when there is no such memory or the size overflows. Released by free().
 */
static inline void *mla_scratch_alloc(int64_t n, size_t bytes)
{
    size_t total;
    if (n < 0 || __builtin_mul_overflow((size_t)n, bytes, &total) ||
        __builtin_add_overflow(total, (size_t)MLA_SCRATCH_ALIGN, &total)) {
        return NULL;
    }
    return aligned_alloc(MLA_SCRATCH_ALIGN, total / MLA_SCRATCH_ALIGN * MLA_SCRATCH_ALIGN);
}

#endif
