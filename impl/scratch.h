/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.h - memory for the kernels' own use: aligned, of a size that never wraps round.
 *
 * Dimensions of an accepted call may still be far larger than memory. Every size is formed here
 * with overflow checks, and a size that cannot be formed, or that no object can have (PTRDIFF_MAX),
 * is treated like memory that cannot be had. The checked products take the count as it is: it is
 * never cut down to a size_t first, which may have 32 bits.
 */
#ifndef MLA_IMPL_SCRATCH_H
#define MLA_IMPL_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define MLA_SCRATCH_ALIGN 64 /* a cache line, and the widest vector */

/*
 * n elements of `bytes` bytes (bytes >= 1), aligned to MLA_SCRATCH_ALIGN, contents undefined. NULL
 * when n is negative, the size overflows, or there is no such memory. Released by free().
 */
static inline void *mla_scratch_alloc(int64_t n, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(n, bytes, &total) ||
        __builtin_add_overflow(total, (size_t)MLA_SCRATCH_ALIGN, &total) || total > PTRDIFF_MAX) {
        return NULL;
    }
    return aligned_alloc(MLA_SCRATCH_ALIGN, total / MLA_SCRATCH_ALIGN * MLA_SCRATCH_ALIGN);
}

#endif
