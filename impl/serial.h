/* SPDX-License-Identifier: Apache-2.0
 *
 * serial.h - scores as the textbook forms them: one float32 sum, column after column.
 *
 * Main columns first, then RoPE. The product of two bf16 is exact in float32; the first addition is
 * to zero, so a score of w columns meets w - 1 roundings. Sixteen keys go side by side, each in a
 * lane of its own: vector units are used although no sum is split.
 */
#ifndef MLA_IMPL_SERIAL_H
#define MLA_IMPL_SERIAL_H

#include "impl/tile.h"

/* Four lanes; see attend_scalar.c for why it is not an array. */
typedef float mla_serial_quad __attribute__((vector_size(16)));

#define MLA_SERIAL_QUADS (MLA_TILE_KEYS / 4)

/* n columns of one key into its lane, one column to a line of MLA_TILE_KEYS. */
static inline void mla_serial_spread(float *lane, const uint16_t *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        lane[c * MLA_TILE_KEYS] = mla_bf16_to_float(from[c]);
    }
}

/* The n keys from `first` on into tile->keys, transposed; zeros in lanes without a key. */
static inline void mla_serial_load(const struct mla_attend_shape *shape,
                                   const struct mla_tile *tile, const struct mla_attend_keys *keys,
                                   int64_t first, int64_t n)
{
    const int64_t columns_n = shape->main_n + shape->rope_n;
    if (n < MLA_TILE_KEYS) {
        memset(tile->keys, 0, (size_t)(columns_n * MLA_TILE_KEYS) * sizeof *tile->keys);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = mla_tile_key_row(keys, first + i);
        mla_serial_spread(tile->keys + i, keys->main + from * shape->main_n, shape->main_n);
        if (shape->rope_n > 0) {
            mla_serial_spread(tile->keys + shape->main_n * MLA_TILE_KEYS + i,
                              keys->rope + from * shape->rope_n, shape->rope_n);
        }
    }
}

/* One query against the MLA_TILE_KEYS keys loaded. */
static inline void mla_serial_dot(const float *restrict query, const float *restrict keys,
                                  int64_t columns_n, float *restrict scores)
{
    mla_serial_quad sum[MLA_SERIAL_QUADS] = {{0}};
    for (int64_t c = 0; c < columns_n; c++) {
        for (int i = 0; i < MLA_SERIAL_QUADS; i++) {
            mla_serial_quad key;
            memcpy(&key, keys + c * MLA_TILE_KEYS + 4 * i, sizeof key);
            sum[i] += query[c] * key;
        }
    }
    memcpy(scores, sum, sizeof sum);
}

/* tile->scores of all rows against the block; behind a row's visible keys is anything. */
static inline void mla_serial_score(const struct mla_attend_shape *shape,
                                    const struct mla_tile *tile, int64_t rows_n,
                                    const int64_t *visible, const struct mla_attend_keys *keys)
{
    const int64_t keys_n = mla_tile_most(rows_n, visible);
    for (int64_t first = 0; first < keys_n; first += MLA_TILE_KEYS) {
        mla_serial_load(shape, tile, keys, first, mla_tile_seen(keys_n, first, MLA_TILE_KEYS));
        for (int64_t row = 0; row < rows_n; row++) {
            if (visible[row] > first) {
                mla_serial_dot(tile->queries + row * tile->width, tile->keys,
                               shape->main_n + shape->rope_n,
                               tile->scores + row * tile->block + first);
            }
        }
    }
}

/* First of two passes: the rows' maxima, nothing else. A mla_attend_block. */
static inline void mla_serial_scan(const struct mla_attend_shape *shape, void *scratch,
                                   int64_t rows_n, const int64_t *visible,
                                   const struct mla_attend_keys *keys, float scale,
                                   const struct mla_attend_state *state)
{
    const struct mla_tile tile = mla_tile_of(shape, scratch);
    (void)scale;
    mla_serial_score(shape, &tile, rows_n, visible, keys);
    for (int64_t row = 0; row < rows_n; row++) {
        if (visible[row] > 0) {
            const float max = mla_tile_largest(tile.scores + row * tile.block, visible[row]);
            state->max[row] = max > state->max[row] ? max : state->max[row];
        }
    }
}

/* Before a row's first weights in the second pass: its sum is still 0 and its out unset. Weights
 * that are all 0 leave the sum at 0; the next block then clears an out of zeros again. */
static inline void mla_serial_clear(const struct mla_attend_shape *shape,
                                    const struct mla_attend_state *state, int64_t row)
{
    if (state->sum[row] == 0.0f) {
        memset(state->out + row * shape->value_n, 0, (size_t)shape->value_n * sizeof *state->out);
    }
}

#endif
