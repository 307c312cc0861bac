/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512_scores.h - queries laid out, and scores of a chunk of keys. Part of attend_avx512bf16.c.
 */
#ifndef MLA_IMPL_AVX512_SCORES_H
#define MLA_IMPL_AVX512_SCORES_H

#include "impl/avx512_tile.h"

#define KEYS_CHUNK 48 /* keys whose scores are formed together: whole register tiles of any kind */
#define KEYS_MOST  16 /* most keys of a register tile */

static inline uint32_t load_pair(const uint16_t *from)
{
    uint32_t pair;
    memcpy(&pair, from, sizeof pair);
    return pair;
}

/* 16 rows of 16 words, transposed in four rounds. */
static void transpose(__m512i row[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        row[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        row[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        row[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        row[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) { /* quarters of rows 0-3, 4-7, 8-11, 12-15 */
        const __m512i low = _mm512_shuffle_i32x4(row[i], row[i + 4], 0x88);
        const __m512i high = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0x88);
        const __m512i low_odd = _mm512_shuffle_i32x4(row[i], row[i + 4], 0xdd);
        const __m512i high_odd = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0xdd);
        t[i] = _mm512_shuffle_i32x4(low, high, 0x88);
        t[i + 8] = _mm512_shuffle_i32x4(low, high, 0xdd);
        t[i + 4] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
    for (int i = 0; i < 16; i++) {
        row[i] = t[i];
    }
}

/* The queries taken, transposed; zeros in the lanes that have no row. */
static void lay_out_queries(const struct mla_step *step, const struct own *own, int64_t rows_n)
{
    const int64_t vecs_all = mla_step_up(rows_n, V_LANES) / V_LANES;
    for (int64_t vec = 0; vec < vecs_all; vec++) {
        const int64_t first = vec / VECS_MOST * VECS_MOST;
        const int64_t vecs_n = min_of(VECS_MOST, vecs_all - first);
        uint32_t *to = own->queries + (first * step->pairs_n + vec - first) * V_LANES;
        for (int64_t pair = 0; pair < step->pairs_n; pair += 16) {
            const int64_t n = min_of(16, step->pairs_n - pair);
            const __mmask16 used = (__mmask16)((1U << n) - 1U);
            __m512i row[16];
            for (int64_t i = 0; i < 16; i++) {
                const int64_t r = vec * V_LANES + i;
                row[i] = r < rows_n ? _mm512_maskz_loadu_epi32(
                                          used, step->taken + 2 * (r * step->pairs_n + pair))
                                    : _mm512_setzero_si512();
            }
            transpose(row);
            for (int64_t i = 0; i < n; i++) {
                _mm512_storeu_si512(to + (pair + i) * vecs_n * V_LANES, row[i]);
            }
        }
    }
}

/* Columns of a key or query, by pairs: where they are and how many. */
struct span {
    int64_t column;  /* of the key's main or rope row */
    int64_t pair;    /* of the query */
    int64_t pairs_n; /* full ones */
    bool is_odd;     /* a single column follows */
    bool is_first;   /* of the key's groups */
    bool is_rope;    /* of the rope row, not of the main one */
};

/* Sums over the columns of one group, of keys_n keys and vecs_n vectors of rows. */
INLINE void sum_group(int keys_n, int vecs_n, const uint32_t *queries, const uint16_t *const *rows,
                      const struct span *span, __m512 sum[KEYS_MOST][VECS_MOST])
{
    const uint16_t *row[KEYS_MOST];
    const uint32_t *q = queries + span->pair * vecs_n * V_LANES;

    UNROLL
    for (int k = 0; k < keys_n; k++) {
        row[k] = rows[k] + span->column;
        UNROLL
        for (int v = 0; v < vecs_n; v++) {
            sum[k][v] = _mm512_setzero_ps();
        }
    }
    for (int64_t pair = 0; pair < span->pairs_n; pair++) {
        __m512bh columns[VECS_MOST];
        UNROLL
        for (int v = 0; v < vecs_n; v++) {
            columns[v] = (__m512bh)_mm512_loadu_si512(q + v * V_LANES);
        }
        q += vecs_n * V_LANES;
        UNROLL
        for (int k = 0; k < keys_n; k++) {
            const __m512bh both =
                (__m512bh)_mm512_set1_epi32((int32_t)load_pair(row[k] + 2 * pair));
            UNROLL
            for (int v = 0; v < vecs_n; v++) {
                sum[k][v] = _mm512_dpbf16_ps(sum[k][v], columns[v], both);
            }
        }
    }
    if (span->is_odd) { /* the last column alone: what follows it belongs to another key */
        UNROLL
        for (int k = 0; k < keys_n; k++) {
            const __m512bh low = (__m512bh)_mm512_set1_epi32(row[k][2 * span->pairs_n]);
            UNROLL
            for (int v = 0; v < vecs_n; v++) {
                sum[k][v] =
                    _mm512_dpbf16_ps(sum[k][v], (__m512bh)_mm512_loadu_si512(q + v * V_LANES), low);
            }
        }
    }
}

/*
 * Scores of keys_n keys and vecs_n vectors of rows over the columns of one group, added to what
 * the groups before gave. scores: [vecs_n] at a distance of `stride` floats, [key][16].
 */
INLINE void score_tile(int keys_n, int vecs_n, const uint32_t *queries, const uint16_t *const *rows,
                       const struct span *span, float *scores, int64_t stride)
{
    __m512 sum[KEYS_MOST][VECS_MOST];
    sum_group(keys_n, vecs_n, queries, rows, span, sum);
    UNROLL
    for (int v = 0; v < vecs_n; v++) {
        float *to = scores + v * stride;
        UNROLL
        for (int k = 0; k < keys_n; k++) {
            const __m512 before = span->is_first ? _mm512_setzero_ps() : v_load(to + k * V_LANES);
            v_store(to + k * V_LANES, span->is_first ? sum[k][v] : v_add(before, sum[k][v]));
        }
    }
}

/* Rows that will be needed later, columns `column` .. `column` + columns_n - 1 of them. */
struct ahead {
    const uint16_t *rows[KEYS_CHUNK];
    int64_t n;
};

INLINE void fetch(const struct ahead *ahead, int64_t from, int64_t to, const struct span *span)
{
    to = to < ahead->n ? to : ahead->n;
    for (int64_t i = from; i < to; i++) {
        const uint16_t *at = ahead->rows[i] + span->column;
        for (int64_t pair = 0; pair < span->pairs_n; pair += 16) {
            _mm_prefetch((const char *)(at + 2 * pair), _MM_HINT_T1);
        }
    }
}

/*
 * Any number of keys, in full register tiles and then in smaller ones. A few of the rows ahead are
 * asked for before each tile: all at once they would hold up the loads that are due.
 */
INLINE void score_keys(int keys_most, int vecs_n, const uint32_t *queries,
                       const uint16_t *const *rows, int64_t n, const struct span *span,
                       const struct ahead *ahead, float *scores, int64_t stride)
{
    const int64_t share = (ahead->n * keys_most + n - 1) / n;
    int64_t fetched = 0;
    int64_t key = 0;
    /* 8 or 9 keys are left as 4 + 4, which is better than 6 and single ones. */
    for (; key + keys_most <= n && (keys_most != 6 || n - key < 8 || n - key > 9);
         key += keys_most) {
        fetch(ahead, fetched, fetched + share, span);
        fetched += share;
        score_tile(keys_most, vecs_n, queries, rows + key, span, scores + key * V_LANES, stride);
    }
    fetch(ahead, fetched, ahead->n, span);
    for (; key + 4 <= n; key += 4) {
        score_tile(4, vecs_n, queries, rows + key, span, scores + key * V_LANES, stride);
    }
    for (; key < n; key++) {
        score_tile(1, vecs_n, queries, rows + key, span, scores + key * V_LANES, stride);
    }
}

static void score_span(int64_t vecs_n, const uint32_t *queries, const uint16_t *const *rows,
                       int64_t n, const struct span *span, const struct ahead *ahead, float *scores,
                       int64_t stride)
{
    switch (vecs_n) {
    case 2:
        score_keys(8, 2, queries, rows, n, span, ahead, scores, stride);
        break;
    case 3:
        score_keys(8, 3, queries, rows, n, span, ahead, scores, stride);
        break;
    default:
        score_keys(6, 4, queries, rows, n, span, ahead, scores, stride);
        break;
    }
}

/* Where the main and the rope row of keys first .. first + n - 1 lie. */
static void find_rows(const struct mla_attend_shape *shape, const struct mla_attend_keys *keys,
                      int64_t first, int64_t n, const uint16_t **main, const uint16_t **rope)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = key_row(keys, first + i);
        main[i] = keys->main + row * shape->main_n;
        rope[i] = shape->rope_n > 0 ? keys->rope + row * shape->rope_n : NULL;
    }
}

static int64_t spans_of(int64_t columns_n)
{
    return (columns_n + MLA_STEP_GROUP - 1) / MLA_STEP_GROUP;
}

/* Group `number` of a key's columns, main ones first. */
static struct span span_at(const struct mla_attend_shape *shape, int64_t number)
{
    const int64_t before = spans_of(shape->main_n);
    const bool is_rope = number >= before;
    const int64_t column = (is_rope ? number - before : number) * MLA_STEP_GROUP;
    const int64_t left = (is_rope ? shape->rope_n : shape->main_n) - column;
    const int64_t columns_n = min_of(MLA_STEP_GROUP, left);
    return (struct span){.column = column,
                         .pair = (is_rope ? shape->main_n + column : column) / 2,
                         .pairs_n = columns_n / 2,
                         .is_odd = columns_n % 2 != 0,
                         .is_first = number == 0,
                         .is_rope = is_rope};
}

/* Scores of keys_n keys and one vector of rows, all groups of columns. */
INLINE void score_whole(int keys_n, const struct mla_attend_shape *shape, const uint32_t *queries,
                        const uint16_t *const *main, const uint16_t *const *rope, float *scores)
{
    const int64_t spans_n = spans_of(shape->main_n) + spans_of(shape->rope_n);
    __m512 score[KEYS_MOST];
    UNROLL
    for (int k = 0; k < keys_n; k++) {
        score[k] = _mm512_setzero_ps();
    }
    for (int64_t number = 0; number < spans_n; number++) {
        const struct span span = span_at(shape, number);
        __m512 sum[KEYS_MOST][VECS_MOST];
        sum_group(keys_n, 1, queries, span.is_rope ? rope : main, &span, sum);
        UNROLL
        for (int k = 0; k < keys_n; k++) {
            score[k] = span.is_first ? sum[k][0] : v_add(score[k], sum[k][0]);
        }
    }
    UNROLL
    for (int k = 0; k < keys_n; k++) {
        v_store(scores + k * V_LANES, score[k]);
    }
}

/*
 * One vector of rows: all of its queries stay in the first-level cache, so a key is finished before
 * the next ones are begun.
 */
static void score_vector(const struct mla_attend_shape *shape, const uint32_t *queries,
                         const uint16_t *const *main, const uint16_t *const *rope, int64_t n,
                         float *scores)
{
    int64_t key = 0;
    for (; key + 16 <= n; key += 16) {
        score_whole(16, shape, queries, main + key, rope + key, scores + key * V_LANES);
    }
    for (; key + 4 <= n; key += 4) {
        score_whole(4, shape, queries, main + key, rope + key, scores + key * V_LANES);
    }
    for (; key < n; key++) {
        score_whole(1, shape, queries, main + key, rope + key, scores + key * V_LANES);
    }
}

/*
 * Scores of a group of vectors for a chunk of keys, group of columns by group of columns. With
 * span_at() in these loops many rows take 0.6 % longer (clang 14).
 */
static void score_chunk(const struct mla_attend_shape *shape, const struct mla_step *step,
                        const uint32_t *queries, int64_t vecs_n, const struct mla_attend_keys *keys,
                        int64_t first, int64_t n, const struct ahead *ahead_main,
                        const struct ahead *ahead_rope, float *scores)
{
    const uint16_t *main[KEYS_CHUNK];
    const uint16_t *rope[KEYS_CHUNK];
    const int64_t stride = step->keys_n * V_LANES;

    find_rows(shape, keys, first, n, main, rope);
    if (vecs_n == 1) { /* mostly there is nothing to fetch here: add_direct does */
        for (int64_t number = 0; ahead_main->n > 0 && number < spans_of(shape->main_n); number++) {
            const struct span span = span_at(shape, number);
            fetch(ahead_main, 0, ahead_main->n, &span);
        }
        score_vector(shape, queries, main, rope, n, scores);
        return;
    }
    for (int64_t column = 0; column < shape->main_n; column += MLA_STEP_GROUP) {
        const struct span span = {.column = column,
                                  .pair = column / 2,
                                  .pairs_n = min_of(MLA_STEP_GROUP, shape->main_n - column) / 2,
                                  .is_first = column == 0};
        score_span(vecs_n, queries, main, n, &span, ahead_main, scores, stride);
    }
    for (int64_t column = 0; column < shape->rope_n; column += MLA_STEP_GROUP) {
        const int64_t columns_n = min_of(MLA_STEP_GROUP, shape->rope_n - column);
        const struct span span = {.column = column,
                                  .pair = (shape->main_n + column) / 2,
                                  .pairs_n = columns_n / 2,
                                  .is_odd = columns_n % 2 != 0,
                                  .is_rope = true};
        score_span(vecs_n, queries, rope, n, &span, ahead_rope, scores, stride);
    }
}

#endif
