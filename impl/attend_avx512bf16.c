/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_avx512bf16.c - the step for CPUs with AVX512-BF16: products of bf16 pairs, 16 rows a vector.
 *
 * The arithmetic is that of bf16_step.h. vdpbf16ps adds two products to a float32 accumulator as
 * fma(low, low, fma(high, high, acc)), rounds each to nearest and flushes subnormals whatever MXCSR
 * says (dot_bf16_test.c), which is the chain over pairs meant there.
 *
 *   scores   lanes are rows: queries are transposed once per tile, a key's pair of columns is
 *            broadcast from where it lies, so keys are never copied, gathered ones neither. Register
 *            tile: 6 keys x 4 vectors, or more keys for fewer rows. For KEYS_CHUNK keys at a time the
 *            columns are gone through group by group, so that a group's part of the queries (8 KiB)
 *            and the scores stay in the first-level cache. Meanwhile the rows of the next block
 *            are fetched: nobody else knows them.
 *   values   lanes are columns: a panel of 64 columns of the block's values is interleaved in pairs
 *            of keys into contiguous memory (a stride of the cache's row would hit an eighth of the
 *            sets), pairs of weights are broadcast. Register tile: 4 rows x 4 vectors. Rows that see
 *            more than the others of their four go on alone.
 *   few rows (ROWS_DIRECT_MOST) are not worth a panel: pairs are interleaved in registers again for
 *            every 8 rows. These loops have loads to spare, the scores of few rows have none, so the
 *            next block is fetched here.
 *
 * Lanes beyond the tile's rows hold zero queries and see what the last row sees; their results are
 * not stored.
 */
#if defined(__AVX512BF16__)

#include "impl/simd_avx512.h"

#include "impl/bf16_step.h"

#include <stdbool.h>

#define VECS_MOST  4  /* vectors of rows that are scored together */
#define KEYS_CHUNK 48 /* keys whose scores are formed together: whole register tiles of any kind */
#define KEYS_MOST  16 /* most keys of a register tile */
#define PANEL      64 /* columns of a panel of values */

#define ROWS_DIRECT      8  /* rows of a register tile without a panel */
#define ROWS_DIRECT_MOST 48 /* rows of a tile that makes none */

/* Loops over registers must be unrolled entirely. */
#if defined(__clang__)
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

static size_t scratch_bytes(const struct mla_attend_shape *shape)
{
    const size_t panel = panel_words(mla_step_up(shape->keys_n, 4)) * sizeof(uint32_t);
    return mla_step_bytes(shape, MLA_STEP_ROWS * sizeof(uint32_t), panel);
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

static inline int64_t key_row(const struct mla_attend_keys *keys, int64_t key)
{
    return keys->index != NULL ? keys->index[key] : key;
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

/* Scores and softmax of vectors vec .. vec + vecs_n - 1 of vecs_all. */
static void weigh_vectors(const struct mla_attend_shape *shape, const struct mla_step *step,
                          const struct own *own, int64_t vec, int64_t vecs_n, int64_t vecs_all,
                          int64_t rows_n, const struct mla_attend_keys *keys,
                          const struct mla_attend_keys *next, struct mla_step_scale scale,
                          const struct mla_attend_state *state)
{
    const uint32_t *queries = own->queries + vec * step->pairs_n * V_LANES;
    const int64_t next_all = next != NULL ? keys->next_n : 0;
    int64_t fewest;
    int64_t most;
    mla_step_range(step, vec * V_LANES, vecs_n * V_LANES, &fewest, &most);
    for (int64_t key = 0; key < most; key += KEYS_CHUNK) {
        struct ahead main = {.n = 0};
        struct ahead rope = {.n = 0};
        const int64_t n = min_of(KEYS_CHUNK, most - key);
        /* of as many next keys each group of vectors fetches its share */
        const int64_t next_n = key < next_all ? min_of(n, next_all - key) : 0;
        const int64_t from = next_n * vec / vecs_all;
        const int64_t to = next_n * (vec + vecs_n) / vecs_all;
        if (to > from) {
            find_rows(shape, next, key + from, to - from, main.rows, rope.rows);
            main.n = to - from;
            rope.n = to - from;
        }
        score_chunk(shape, step, queries, vecs_n, keys, key, n, &main, &rope,
                    step->scores + (vec * step->keys_n + key) * V_LANES);
    }
    for (int64_t v = vec; v < vec + vecs_n; v++) {
        mla_step_soften(step, v * V_LANES, rows_n, scale, state);
    }
}

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

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct mla_step step = mla_step_of(shape, scratch);
    const struct own own = own_of(&step);
    const struct mla_step_scale split = mla_step_scale(scale);
    const int64_t most = mla_step_see(&step, rows_n, visible);
    const int64_t vecs_all = mla_step_up(rows_n, V_LANES) / V_LANES;
    const bool direct = is_direct(shape, &step, rows_n);
    const unsigned callers = mla_step_flush();

    if (*step.fresh != 0) {
        lay_out_queries(&step, &own, rows_n);
        *step.fresh = 0;
    }
    for (int64_t vec = 0; vec < vecs_all; vec += VECS_MOST) {
        weigh_vectors(shape, &step, &own, vec, min_of(VECS_MOST, vecs_all - vec), vecs_all, rows_n,
                      keys, direct ? NULL : keys->next, split, state);
    }
    if (direct) {
        add_direct(shape, &step, rows_n, keys, most, state->out);
    } else {
        add_values(shape, &step, &own, rows_n, keys, most, state->out);
    }
    mla_step_restore(callers);
}

const struct mla_attend mla_attend_avx512bf16 = {
    .sums_n = 1,
    .rows_n = MLA_STEP_ROWS,
    .block_keys = MLA_STEP_BLOCK,
    .scratch_bytes = scratch_bytes,
    .query = mla_step_query,
    .block = {block},
    .finish = mla_step_finish,
    .store = mla_step_store,
};

#else
typedef int mla_no_avx512bf16; /* a file that declares nothing is not C */
#endif
