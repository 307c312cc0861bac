/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512_tile.h - what the parts of attend_avx512bf16.c have in common.
 */
#ifndef MLA_IMPL_AVX512_TILE_H
#define MLA_IMPL_AVX512_TILE_H

#include "impl/simd_avx512.h"

#include "impl/bf16_step.h"

#include <stdbool.h>

#define VECS_MOST 4  /* vectors of rows that are scored together */
#define PANEL     64 /* columns of a panel of values */

/* Loops over registers must be unrolled entirely; but with a sanitizer's checks at every access that
 * takes a compiler minutes. */
#if defined(MLA_NO_UNROLL)
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define INLINE static inline __attribute__((always_inline))

/* Behind the shared scratch. */
struct own {
    uint32_t *queries; /* [group of vectors][pair of columns][vector of the group][16] */
    uint32_t *panel;   /* [pair of keys][64] */
};

static size_t panel_words(int64_t keys_n)
{
    return (size_t)keys_n / 2 * PANEL;
}

static struct own own_of(const struct mla_step *step)
{
    struct own own = {.panel = step->own};
    own.queries = own.panel + panel_words(step->keys_n);
    return own;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t key_row(const struct mla_attend_keys *keys, int64_t key)
{
    return keys->index != NULL ? keys->index[key] : key;
}

#endif
