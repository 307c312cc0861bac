/* SPDX-License-Identifier: Apache-2.0
 *
 * tile.h - what the kernels' steps have in common: scratch, widening to float32, weighted values.
 *
 * A step works on a tile of up to MLA_TILE_ROWS query rows and one block of keys. Its scratch
 * holds the tile's queries, a few keys at a time and the scores of the whole block, which become
 * weights in place. Static inline, hence compiled with the options of the kernel that includes it.
 */
#ifndef MLA_IMPL_TILE_H
#define MLA_IMPL_TILE_H

#include "impl/attend.h"
#include "impl/bf16.h"

#include <string.h>

#define MLA_TILE_ROWS   32 /* mla_attend.rows_n of the kernels that use this file */
#define MLA_TILE_LANES  16 /* rows are padded with zeros to a multiple of this many floats */
#define MLA_TILE_KEYS   16 /* keys that fit into the scratch at a time */
#define MLA_TILE_VALUES 8  /* values widened at a time: they stay in the first-level cache */

struct mla_tile {
    float *queries; /* [MLA_TILE_ROWS][width] */
    float *keys;    /* [MLA_TILE_KEYS][width] */
    float *scores;  /* [MLA_TILE_ROWS][block] scores, then weights */
    float *end;     /* behind the tile */
    int64_t width;
    int64_t block;
};

static inline int64_t mla_tile_pad(int64_t n)
{
    return (n + MLA_TILE_LANES - 1) / MLA_TILE_LANES * MLA_TILE_LANES;
}

/* Bytes of a tile; 0 when they overflow. */
static inline size_t mla_tile_bytes(const struct mla_attend_shape *shape)
{
    size_t widths;
    size_t scores;
    size_t total;
    if (__builtin_mul_overflow(mla_tile_pad(shape->main_n + shape->rope_n),
                               sizeof(float) * (MLA_TILE_ROWS + MLA_TILE_KEYS), &widths) ||
        __builtin_mul_overflow(mla_tile_pad(shape->keys_n), sizeof(float) * MLA_TILE_ROWS,
                               &scores) ||
        __builtin_add_overflow(widths, scores, &total)) {
        return 0;
    }
    return total;
}

static inline struct mla_tile mla_tile_of(const struct mla_attend_shape *shape, void *scratch)
{
    struct mla_tile tile = {.width = mla_tile_pad(shape->main_n + shape->rope_n),
                            .block = mla_tile_pad(shape->keys_n)};
    tile.queries = scratch;
    tile.keys = tile.queries + MLA_TILE_ROWS * tile.width;
    tile.scores = tile.keys + MLA_TILE_KEYS * tile.width;
    tile.end = tile.scores + MLA_TILE_ROWS * tile.block;
    return tile;
}

static inline void mla_tile_widen(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = mla_bf16_to_float(from[i]);
    }
}

/* One row of main and rope columns, and zeros up to the padded width. */
static inline void mla_tile_widen_row(const struct mla_attend_shape *shape, float *to,
                                      const uint16_t *main, const uint16_t *rope, int64_t width)
{
    const int64_t used = shape->main_n + shape->rope_n;
    mla_tile_widen(to, main, shape->main_n);
    if (shape->rope_n > 0) {
        mla_tile_widen(to + shape->main_n, rope, shape->rope_n);
    }
    memset(to + used, 0, (size_t)(width - used) * sizeof *to);
}

/* mla_attend.query */
static inline void mla_tile_query(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                                  const uint16_t *main, const uint16_t *rope)
{
    const struct mla_tile tile = mla_tile_of(shape, scratch);
    mla_tile_widen_row(shape, tile.queries + row * tile.width, main, rope, tile.width);
}

static inline int64_t mla_tile_key_row(const struct mla_attend_keys *keys, int64_t key)
{
    return keys->index != NULL ? keys->index[key] : key;
}

/* Key `key` of the block, padded like a query. */
static inline void mla_tile_widen_key(const struct mla_attend_shape *shape,
                                      const struct mla_tile *tile, float *to,
                                      const struct mla_attend_keys *keys, int64_t key)
{
    const int64_t from = mla_tile_key_row(keys, key);
    mla_tile_widen_row(shape, to, keys->main + from * shape->main_n,
                       shape->rope_n > 0 ? keys->rope + from * shape->rope_n : NULL, tile->width);
}

/* The most keys any row of the tile sees. */
static inline int64_t mla_tile_most(int64_t rows_n, const int64_t *visible)
{
    int64_t most = 0;
    for (int64_t row = 0; row < rows_n; row++) {
        most = visible[row] > most ? visible[row] : most;
    }
    return most;
}

/* How many keys of a group of `group` that starts at `first` a row sees. */
static inline int64_t mla_tile_seen(int64_t visible, int64_t first, int64_t group)
{
    const int64_t left = visible - first;
    if (left <= 0) {
        return 0;
    }
    return left < group ? left : group;
}

/* Largest of n >= 1 scores; a NaN is passed over here and reaches the row through its weight. */
static inline float mla_tile_largest(const float *scores, int64_t n)
{
    float lane[MLA_TILE_LANES];
    int64_t i = 0;
    for (int j = 0; j < MLA_TILE_LANES; j++) {
        lane[j] = -INFINITY;
    }
    for (; i + MLA_TILE_LANES <= n; i += MLA_TILE_LANES) {
        for (int j = 0; j < MLA_TILE_LANES; j++) {
            lane[j] = scores[i + j] > lane[j] ? scores[i + j] : lane[j];
        }
    }
    for (int j = 0; i < n; i++, j++) {
        lane[j] = scores[i] > lane[j] ? scores[i] : lane[j];
    }
    for (int j = 1; j < MLA_TILE_LANES; j++) {
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
    }
    return lane[0];
}

/* out += p[0..n) times n values, key by key. Four keys a pass only save loads and stores of out. */
static inline void mla_tile_add_group(float *restrict out, const float *restrict p,
                                      const float *restrict values, int64_t stride, int64_t n,
                                      int64_t columns_n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float *restrict v = values + i * stride;
        const float p0 = p[i];
        const float p1 = p[i + 1];
        const float p2 = p[i + 2];
        const float p3 = p[i + 3];
        for (int64_t c = 0; c < columns_n; c++) {
            out[c] = (((out[c] + p0 * v[c]) + p1 * v[c + stride]) + p2 * v[c + 2 * stride]) +
                     p3 * v[c + 3 * stride];
        }
    }
    for (; i < n; i++) {
        const float *restrict v = values + i * stride;
        const float p0 = p[i];
        for (int64_t c = 0; c < columns_n; c++) {
            out[c] += p0 * v[c];
        }
    }
}

/* out[row][value_n] += the block's weights (in the place of scores) times its values. */
static inline void mla_tile_add_values(const struct mla_attend_shape *shape,
                                       const struct mla_tile *tile, int64_t rows_n,
                                       const int64_t *visible, const struct mla_attend_keys *keys,
                                       float *out)
{
    const int64_t keys_n = mla_tile_most(rows_n, visible);
    for (int64_t first = 0; first < keys_n; first += MLA_TILE_VALUES) {
        for (int64_t i = 0; i < mla_tile_seen(keys_n, first, MLA_TILE_VALUES); i++) {
            mla_tile_widen(tile->keys + i * tile->width,
                           keys->main + mla_tile_key_row(keys, first + i) * shape->main_n,
                           shape->value_n);
        }
        for (int64_t row = 0; row < rows_n; row++) {
            mla_tile_add_group(out + row * shape->value_n, tile->scores + row * tile->block + first,
                               tile->keys, tile->width,
                               mla_tile_seen(visible[row], first, MLA_TILE_VALUES), shape->value_n);
        }
    }
}

#endif
