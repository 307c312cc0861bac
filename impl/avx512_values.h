/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512_values.h - weighted sums of a block's values, with a panel or, for few rows, without. Part of
 * attend_avx512bf16.c.
 */
#ifndef MLA_IMPL_AVX512_VALUES_H
#define MLA_IMPL_AVX512_VALUES_H

#include "impl/avx512_tile.h"

#define ROWS_DIRECT      8  /* rows of a register tile without a panel */
#define ROWS_DIRECT_MOST 48 /* rows of a tile that makes none */

/* Words 2i and 2i+1 of the result: columns i of first and second, for 16 columns from `from` on. */
static __m512i interleave_index(int from)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i low = _mm512_add_epi32(lane, _mm512_set1_epi32(from));
    return _mm512_or_si512(low,
                           _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(32)), 16));
}

/*
 * Columns column .. column + 32*halves_n - 1 of keys 0 .. keys_n-1, in pairs of keys; after an odd
 * last key zeros.
 * Done anew for every tile of rows: 1 to 2 % of the time (ring 576/128 1.1, 576/512 1.7, sparse with
 * 128 heads 1.9, by profile), for which a ring call needs no second copy of its shards.
 */
static void lay_out_panel(const struct mla_attend_shape *shape, const struct mla_attend_keys *keys,
                          int64_t keys_n, int64_t column, int64_t halves_n, uint32_t *panel)
{
    const __m512i lower = interleave_index(0);
    const __m512i upper = interleave_index(16);
    for (int64_t key = 0; key < keys_n; key += 2) {
        const uint16_t *first = keys->main + key_row(keys, key) * shape->main_n + column;
        const uint16_t *second =
            key + 1 < keys_n ? keys->main + key_row(keys, key + 1) * shape->main_n + column : NULL;
        for (int64_t half = 0; half < halves_n; half++) {
            const __m512i a = _mm512_loadu_si512(first + 32 * half);
            const __m512i b =
                second != NULL ? _mm512_loadu_si512(second + 32 * half) : _mm512_setzero_si512();
            uint32_t *to = panel + (key / 2 * halves_n + half) * 32;
            _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, lower, b));
            _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(a, upper, b));
        }
    }
}

/* Bring a row's out up to date. */
INLINE void put_row(int vecs_n, const __m512 *sum, float alpha, float *out)
{
    const v_float factor = v_set(alpha);
    UNROLL
    for (int v = 0; v < vecs_n; v++) {
        float *to = out + v * V_LANES;
        v_store(to, alpha < 0.0f ? sum[v] : v_fma(factor, v_load(to), sum[v]));
    }
}

/*
 * Weighted values of a panel of vecs_n vectors for rows_n rows of one vector of rows. weights: of
 * the first of them, visible: keys each sees, out: of the first at the panel's first column.
 */
INLINE void value_tile(int rows_n, int vecs_n, const uint32_t *weights, const int32_t *visible,
                       const float *alpha, const uint32_t *panel, float *out, int64_t out_n)
{
    __m512 sum[4][4];
    int64_t fewest = visible[0];
    UNROLL
    for (int r = 0; r < rows_n; r++) {
        fewest = visible[r] < fewest ? visible[r] : fewest;
        UNROLL
        for (int v = 0; v < vecs_n; v++) {
            sum[r][v] = _mm512_setzero_ps();
        }
    }
    for (int64_t pair = 0; pair < fewest / 2; pair++) {
        const uint32_t *values = panel + pair * vecs_n * V_LANES;
        __m512bh both[4];
        UNROLL
        for (int v = 0; v < vecs_n; v++) {
            both[v] = (__m512bh)_mm512_loadu_si512(values + v * V_LANES);
        }
        UNROLL
        for (int r = 0; r < rows_n; r++) {
            const __m512bh p = (__m512bh)_mm512_set1_epi32((int32_t)weights[pair * V_LANES + r]);
            UNROLL
            for (int v = 0; v < vecs_n; v++) {
                sum[r][v] = _mm512_dpbf16_ps(sum[r][v], p, both[v]);
            }
        }
    }
    UNROLL
    for (int r = 0; r < rows_n; r++) {
        for (int64_t pair = fewest / 2; pair < (visible[r] + 1) / 2; pair++) {
            const uint32_t *values = panel + pair * vecs_n * V_LANES;
            /* The second key of the pair may be one this row does not see: neither its weight nor
             * its value, which may be NaN, takes part. */
            const __m512i seen =
                _mm512_set1_epi32(2 * pair + 1 < visible[r] ? -1 : INT32_C(0xffff));
            const __m512i p =
                _mm512_and_si512(seen, _mm512_set1_epi32((int32_t)weights[pair * V_LANES + r]));
            UNROLL
            for (int v = 0; v < vecs_n; v++) {
                const __m512i value =
                    _mm512_and_si512(seen, _mm512_loadu_si512(values + v * V_LANES));
                sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)p, (__m512bh)value);
            }
        }
    }
    UNROLL
    for (int r = 0; r < rows_n; r++) {
        if (visible[r] > 0) {
            put_row(vecs_n, sum[r], alpha[r], out + r * out_n);
        }
    }
}

/* All rows of the tile, by fours of a vector. */
INLINE void value_rows(int vecs_n, const struct mla_step *step, int64_t rows_n,
                       const uint32_t *panel, float *out, int64_t out_n)
{
    for (int64_t row = 0; row < rows_n; row += 4) {
        const int64_t vector = row / V_LANES * V_LANES;
        const uint32_t *weights = step->weights + vector * (step->keys_n / 2) + row - vector;
        const int32_t *visible = step->visible + row;
        const float *alpha = step->alpha + row;
        float *to = out + row * out_n;
        switch (rows_n - row) {
        case 1:
            value_tile(1, vecs_n, weights, visible, alpha, panel, to, out_n);
            break;
        case 2:
            value_tile(2, vecs_n, weights, visible, alpha, panel, to, out_n);
            break;
        case 3:
            value_tile(3, vecs_n, weights, visible, alpha, panel, to, out_n);
            break;
        default:
            value_tile(4, vecs_n, weights, visible, alpha, panel, to, out_n);
            break;
        }
    }
}

/*
 * The same of 32 columns from `column` on, for ROWS_DIRECT rows that all see the same, even number
 * of keys. rows: the keys', interleaved in registers. ahead, unless NULL: one row for each of the
 * pairs, whose same columns are fetched.
 */
static void value_direct(const uint32_t *weights, const float *alpha, const uint16_t *const *rows,
                         int64_t pairs_n, const uint16_t *const *ahead, int64_t column, float *out,
                         int64_t out_n)
{
    const __m512i lower = interleave_index(0);
    const __m512i upper = interleave_index(16);
    __m512 sum[ROWS_DIRECT][2];
    UNROLL
    for (int r = 0; r < ROWS_DIRECT; r++) {
        sum[r][0] = _mm512_setzero_ps();
        sum[r][1] = _mm512_setzero_ps();
    }
    for (int64_t pair = 0; pair < pairs_n; pair++) {
        const __m512i a = _mm512_loadu_si512(rows[2 * pair] + column);
        const __m512i b = _mm512_loadu_si512(rows[2 * pair + 1] + column);
        const __m512bh low = (__m512bh)_mm512_permutex2var_epi16(a, lower, b);
        const __m512bh high = (__m512bh)_mm512_permutex2var_epi16(a, upper, b);
        if (ahead != NULL) {
            _mm_prefetch((const char *)(ahead[pair] + column), _MM_HINT_T1);
        }
        UNROLL
        for (int r = 0; r < ROWS_DIRECT; r++) {
            const __m512bh p = (__m512bh)_mm512_set1_epi32((int32_t)weights[pair * V_LANES + r]);
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], p, low);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], p, high);
        }
    }
    UNROLL
    for (int r = 0; r < ROWS_DIRECT; r++) {
        put_row(2, sum[r], alpha[r], out + r * out_n);
    }
}

/*
 * Where the first keys_n keys of the next block lie, and the rope part of each fetched. What is left
 * over of `ahead` stays.
 */
static void find_ahead(const struct mla_attend_shape *shape, const struct mla_attend_keys *keys,
                       int64_t keys_n, const uint16_t **ahead)
{
    const int64_t n = keys->next != NULL ? min_of(keys_n, keys->next_n) : 0;
    for (int64_t key = 0; key < n; key++) {
        const int64_t row = key_row(keys->next, key);
        ahead[key] = keys->next->main + row * shape->main_n;
        for (int64_t column = 0; column < shape->rope_n; column += 32) {
            _mm_prefetch((const char *)(keys->next->rope + row * shape->rope_n + column),
                         _MM_HINT_T1);
        }
    }
}

static void add_direct(const struct mla_attend_shape *shape, const struct mla_step *step,
                       int64_t rows_n, const struct mla_attend_keys *keys, int64_t keys_n,
                       float *out)
{
    const uint16_t *rows[MLA_ATTEND_KEYS];
    const uint16_t *ahead[MLA_ATTEND_KEYS];
    const int64_t pairs_n = keys_n / 2;
    for (int64_t key = 0; key < keys_n; key++) {
        rows[key] = keys->main + key_row(keys, key) * shape->main_n;
        ahead[key] = rows[key];
    }
    find_ahead(shape, keys, keys_n, ahead);
    for (int64_t column = 0; column < shape->value_n; column += 32) {
        for (int64_t row = 0; row < rows_n; row += ROWS_DIRECT) {
            const int64_t vector = row / V_LANES * V_LANES;
            value_direct(step->weights + vector * (step->keys_n / 2) + row - vector,
                         step->alpha + row, rows, pairs_n,
                         row < 2 * ROWS_DIRECT ? ahead + row / ROWS_DIRECT * pairs_n : NULL, column,
                         out + row * shape->value_n + column, shape->value_n);
        }
    }
}

/*
 * Whether values are added without a panel: few rows, which all see the same whole pairs. Only where
 * all main columns are values: as many are fetched ahead.
 */
static bool is_direct(const struct mla_attend_shape *shape, const struct mla_step *step,
                      int64_t rows_n)
{
    int64_t fewest;
    int64_t most;
    mla_step_range(step, 0, rows_n, &fewest, &most);
    return shape->value_n == shape->main_n && rows_n <= ROWS_DIRECT_MOST &&
           rows_n % ROWS_DIRECT == 0 && fewest == most && most > 0 && most % 2 == 0;
}

static void add_values(const struct mla_attend_shape *shape, const struct mla_step *step,
                       const struct own *own, int64_t rows_n, const struct mla_attend_keys *keys,
                       int64_t keys_n, float *out)
{
    int64_t column = 0;
    for (; column + PANEL <= shape->value_n; column += PANEL) {
        lay_out_panel(shape, keys, keys_n, column, 2, own->panel);
        value_rows(4, step, rows_n, own->panel, out + column, shape->value_n);
    }
    if (column < shape->value_n) { /* a multiple of 32 */
        lay_out_panel(shape, keys, keys_n, column, 1, own->panel);
        value_rows(2, step, rows_n, own->panel, out + column, shape->value_n);
    }
}

#endif
