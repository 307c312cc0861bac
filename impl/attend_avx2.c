/* SPDX-License-Identifier: Apache-2.0
 *
 * attend_avx2.c - the step for AVX2 and FMA: the arithmetic of bf16_step.h in float32.
 *
 * A product of bf16 numbers is exact in float32, so an fma on widened numbers rounds what the
 * instruction for bf16 pairs rounds, and with the second of a pair first also in its order.
 *
 * Scores: lanes are rows. The queries are widened and transposed once, a panel of 16 rows at a
 * time; a group of 64 columns of some keys is widened into memory that stays in the first-level
 * cache while all panels pass over it. A tile of 6 keys by 16 rows keeps its 12 sums in registers,
 * as many as two fma units of latency 4 need and a half more. Group sums are added up in
 * step.scores. (Broadcasting pairs of bf16 and splitting them in registers spares the widening, but
 * was a quarter slower even where only one panel uses it.)
 *
 * Weighted sums: lanes are columns. 32 columns of the block's values are widened at a time, and 6
 * rows by 16 columns are summed over all keys in registers. Rows of a tile that see different
 * keys go together as far as all of them see, then each on its own: no value that a row does not
 * see is even multiplied by zero.
 */
#include "impl/simd_avx2.h"

#include "impl/bf16_step.h"

#include <stdbool.h>

#define GROUP      MLA_STEP_GROUP
#define PANEL      16 /* rows whose queries lie together */
#define KEYS       66 /* keys widened at a time, with 16 rows' queries: 21 KiB */
#define TILE_KEYS  6
#define TILE_ROWS  6
#define COLUMNS    16 /* of a tile of weighted sums */
#define PANELS     2  /* of so many columns that are widened at a time */
#define QUERY_PAIR (2 * MLA_STEP_ROWS * sizeof(float))

/* The kernel's own scratch. */
struct own {
    float *queries; /* [MLA_STEP_ROWS / PANEL][2*pairs_n][PANEL] */
    float *keys;    /* [KEYS][GROUP] columns of keys */
    float *values;  /* [PANELS][keys_n][COLUMNS] columns of values */
};

#define KEYS_BYTES (KEYS * GROUP * sizeof(float))

static size_t values_bytes(int64_t keys_n)
{
    return (size_t)mla_step_up(keys_n, 4) * PANELS * COLUMNS * sizeof(float);
}

static size_t scratch_bytes(const struct mla_attend_shape *shape)
{
    return mla_step_bytes(shape, QUERY_PAIR, KEYS_BYTES + values_bytes(shape->keys_n));
}

static struct own own_of(const struct mla_step *step)
{
    struct own own = {.queries = step->own};
    own.keys = own.queries + 2 * step->pairs_n * MLA_STEP_ROWS;
    own.values = own.keys + KEYS * GROUP;
    return own;
}

static inline __m256 widen8(const uint16_t *from)
{
    const __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

static inline float widen(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Eight vectors as the rows of a square: row i becomes column i. */
static inline void transpose8(__m256 v[V_LANES])
{
    __m256 pair[V_LANES];
    __m256 four[V_LANES];
#pragma GCC unroll 4
    for (int i = 0; i < V_LANES;
         i += 2) { /* columns 0 1 and 2 3 of both halves, of rows i and i+1 */
        pair[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < V_LANES; i += 4) { /* column 0 .. 3 of both halves, of rows i .. i+3 */
        four[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
        four[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
        four[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
        four[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
    }
}

/* Eight rows of a panel, `to` at the first one's place; rows from rows_n on become zeros. */
static void lay_out_rows(const uint16_t *from, int64_t width, int64_t rows_n, float *to)
{
    int64_t c = 0;
    for (; c + V_LANES <= width; c += V_LANES) {
        __m256 square[V_LANES];
#pragma GCC unroll 8
        for (int64_t i = 0; i < V_LANES; i++) {
            square[i] = i < rows_n ? widen8(from + i * width + c) : _mm256_setzero_ps();
        }
        transpose8(square);
#pragma GCC unroll 8
        for (int64_t i = 0; i < V_LANES; i++) {
            _mm256_store_ps(to + (c + i) * PANEL, square[i]);
        }
    }
    for (; c < width; c++) {
        for (int64_t i = 0; i < V_LANES; i++) {
            to[c * PANEL + i] = i < rows_n ? widen(from[i * width + c]) : 0.0f;
        }
    }
}

/* Widen the tile's queries into panels. */
static void lay_out_queries(const struct mla_step *step, const struct own *own, int64_t rows_n)
{
    const int64_t width = 2 * step->pairs_n;
    for (int64_t row = 0; row < mla_step_up(rows_n, PANEL); row += V_LANES) {
        lay_out_rows(step->taken + row * width, width, rows_n - row,
                     own->queries + row / PANEL * PANEL * width + row % PANEL);
    }
    *step->fresh = 0;
}

/* ---- scores -----------------------------------------------------------------------------------*/

/* Up to GROUP columns of a block's keys, all of the main or all of the rope part. */
struct group {
    const struct mla_attend_keys *keys;
    const uint16_t *part; /* the group's first column of row 0 */
    int64_t stride;       /* of the part */
    int64_t columns;      /* an odd last one is followed by a zero */
    int64_t first;        /* its place among the columns of the queries */
};

/* Keys whose columns of the next group are fetched while those of this one are multiplied. */
struct fetch {
    const struct group *group;
    int64_t key, end; /* still to be fetched */
    int64_t step;     /* keys for every tile of scores */
};

static int64_t main_groups(const struct mla_attend_shape *shape)
{
    return (shape->main_n + GROUP - 1) / GROUP;
}

static int64_t groups(const struct mla_attend_shape *shape)
{
    return main_groups(shape) + (shape->rope_n + GROUP - 1) / GROUP;
}

static struct group group_at(const struct mla_attend_shape *shape,
                             const struct mla_attend_keys *keys, int64_t number)
{
    const bool is_main = number < main_groups(shape);
    const int64_t column = (is_main ? number : number - main_groups(shape)) * GROUP;
    const int64_t width = is_main ? shape->main_n : shape->rope_n;
    return (struct group){.keys = keys,
                          .part = (is_main ? keys->main : keys->rope) + column,
                          .stride = width,
                          .columns = width - column < GROUP ? width - column : GROUP,
                          .first = is_main ? column : shape->main_n + column};
}

static inline const uint16_t *key_at(const struct group *group, int64_t key)
{
    const int32_t *index = group->keys->index;
    return group->part + (index != NULL ? index[key] : key) * group->stride;
}

/* Few columns, and an odd last one is followed by a zero. */
static inline void widen_part(const uint16_t *from, int64_t columns, float *to)
{
    int64_t c = 0;
    for (; c + V_LANES <= columns; c += V_LANES) {
        _mm256_store_ps(to + c, widen8(from + c));
    }
    for (; c < columns; c++) {
        to[c] = widen(from[c]);
    }
    if (c % 2 != 0) {
        to[c] = 0.0f;
    }
}

static void widen_keys(const struct group *group, int64_t first, int64_t keys_n, float *to)
{
    for (int64_t i = 0; i < keys_n; i++, to += GROUP) {
        const uint16_t *from = key_at(group, first + i);
        if (group->columns < GROUP) {
            widen_part(from, group->columns, to);
            continue;
        }
#pragma GCC unroll 8
        for (int64_t c = 0; c < GROUP; c += V_LANES) {
            _mm256_store_ps(to + c, widen8(from + c));
        }
    }
}

static inline void fetch_some(struct fetch *fetch)
{
    const int64_t end = fetch->key + fetch->step;
    for (; fetch->key < end && fetch->key < fetch->end; fetch->key++) {
        const uint16_t *from = key_at(fetch->group, fetch->key);
        _mm_prefetch((const char *)from, _MM_HINT_T1);
        _mm_prefetch((const char *)(from + fetch->group->columns - 1), _MM_HINT_T1);
    }
}

/*
 * Scores of n keys and PANEL rows over one group; n is a constant at every call. Scores of the
 * panel's two vectors of rows lie apart; is_first: there is nothing yet to add to. The loops have
 * constant bounds so that every compiler unrolls them early and keeps the sums in registers.
 */
__attribute__((always_inline)) static inline void score_tile(const int n, const float *queries,
                                                             const float *keys, int64_t columns,
                                                             bool is_first, float *low, float *high)
{
    __m256 sum[TILE_KEYS][2];
#pragma GCC unroll 6
    for (int i = 0; i < TILE_KEYS; i++) {
        sum[i][0] = _mm256_setzero_ps();
        sum[i][1] = _mm256_setzero_ps();
    }
    for (int64_t c = 0; c < columns; c += 2) {
#pragma GCC unroll 2
        for (int64_t second = 1; second >= 0; second--) {
            const __m256 a = _mm256_load_ps(queries + (c + second) * PANEL);
            const __m256 b = _mm256_load_ps(queries + (c + second) * PANEL + V_LANES);
#pragma GCC unroll 6
            for (int i = 0; i < TILE_KEYS; i++) {
                if (i < n) {
                    const __m256 key = _mm256_broadcast_ss(keys + i * GROUP + c + second);
                    sum[i][0] = _mm256_fmadd_ps(a, key, sum[i][0]);
                    sum[i][1] = _mm256_fmadd_ps(b, key, sum[i][1]);
                }
            }
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < TILE_KEYS; i++) {
        if (i < n && !is_first) {
            sum[i][0] = _mm256_add_ps(_mm256_load_ps(low + i * V_LANES), sum[i][0]);
            sum[i][1] = _mm256_add_ps(_mm256_load_ps(high + i * V_LANES), sum[i][1]);
        }
        if (i < n) {
            _mm256_store_ps(low + i * V_LANES, sum[i][0]);
            _mm256_store_ps(high + i * V_LANES, sum[i][1]);
        }
    }
}

/* n keys (any number), `low` and `high` at the scores of the first of them. */
static void score_keys(const float *queries, const float *keys, int64_t columns, int64_t n,
                       bool is_first, float *low, float *high, struct fetch *fetch)
{
    int64_t tile;
    for (int64_t key = 0; key < n; key += tile) {
        const int64_t left = n - key;
        const float *from = keys + key * GROUP;
        float *to_low = low + key * V_LANES;
        float *to_high = high + key * V_LANES;
        fetch_some(fetch);
        tile = left >= 6 && left != 8 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (tile == 6) {
            score_tile(6, queries, from, columns, is_first, to_low, to_high);
        } else if (tile == 4) {
            score_tile(4, queries, from, columns, is_first, to_low, to_high);
        } else if (tile == 2) {
            score_tile(2, queries, from, columns, is_first, to_low, to_high);
        } else {
            score_tile(1, queries, from, columns, is_first, to_low, to_high);
        }
    }
}

/* Add a group to the scores of the keys some row sees; meanwhile fetch ahead_n keys of another. */
static void score_group(const struct mla_step *step, const struct own *own,
                        const struct group *group, int64_t rows_n, int64_t most,
                        const struct group *ahead, int64_t ahead_n)
{
    const int64_t panels_n = mla_step_up(rows_n, PANEL) / PANEL;
    struct fetch fetch = {
        .group = ahead, .end = ahead_n, .step = mla_step_up(TILE_KEYS, panels_n) / panels_n};
    for (int64_t first = 0; first < most; first += KEYS) {
        const int64_t keys_n = most - first < KEYS ? most - first : KEYS;
        widen_keys(group, first, keys_n, own->keys);
        for (int64_t row = 0; row < rows_n; row += PANEL) {
            const int64_t lanes = rows_n - row <= V_LANES ? V_LANES : PANEL;
            const float *queries = own->queries + row * 2 * step->pairs_n + group->first * PANEL;
            float *low = step->scores + row * step->keys_n + first * V_LANES;
            int64_t fewest_seen;
            int64_t most_seen;
            mla_step_range(step, row, lanes, &fewest_seen, &most_seen);
            const int64_t left = most_seen - first;
            score_keys(queries, own->keys, mla_step_up(group->columns, 2),
                       left < keys_n ? left : keys_n, group->first == 0, low,
                       low + V_LANES * step->keys_n, &fetch);
        }
    }
}

/* A group of the same keys is fetched ahead of its turn, and the first of the next block's. */
static void score(const struct mla_attend_shape *shape, const struct mla_step *step,
                  const struct own *own, const struct mla_attend_keys *keys, int64_t rows_n,
                  int64_t most)
{
    const int64_t groups_n = groups(shape);
    for (int64_t number = 0; number < groups_n; number++) {
        const struct group group = group_at(shape, keys, number);
        struct group ahead = {0};
        int64_t ahead_n = 0;
        if (number + 1 < groups_n) {
            ahead = group_at(shape, keys, number + 1);
            ahead_n = most;
        } else if (keys->next != NULL) {
            ahead = group_at(shape, keys->next, 0);
            ahead_n = keys->next_n;
        }
        score_group(step, own, &group, rows_n, most, &ahead, ahead_n);
    }
}

/* ---- weighted sums ----------------------------------------------------------------------------*/

/* Where the weighted sums of some rows and COLUMNS columns are made. */
struct place {
    const int32_t *visible;
    const float *weights[TILE_ROWS]; /* of each row, those of the next key V_LANES further on */
    const float *alpha;              /* < 0: the row has no out yet */
    const float *values;             /* [keys][COLUMNS] */
    float *out;
    int64_t out_stride;
};

/*
 * Add keys first .. end-1 to the sums of rows row .. row+n-1 of the place, n a constant at every
 * call and first even. An odd last key is paired with a weight and a value of zero.
 */
__attribute__((always_inline)) static inline void add_keys(const int n, const struct place *place,
                                                           int64_t row, int64_t first, int64_t end,
                                                           __m256 (*sum)[2])
{
    const float *const *weights = place->weights + row;
    int64_t key = first;
    for (; key + 2 <= end; key += 2) {
#pragma GCC unroll 2
        for (int64_t second = 1; second >= 0; second--) {
            const float *value = place->values + (key + second) * COLUMNS;
            const __m256 a = _mm256_load_ps(value);
            const __m256 b = _mm256_load_ps(value + V_LANES);
#pragma GCC unroll 6
            for (int i = 0; i < TILE_ROWS; i++) {
                if (i < n) {
                    const __m256 p = _mm256_broadcast_ss(weights[i] + (key + second) * V_LANES);
                    sum[i][0] = _mm256_fmadd_ps(p, a, sum[i][0]);
                    sum[i][1] = _mm256_fmadd_ps(p, b, sum[i][1]);
                }
            }
        }
    }
    if (key < end) {
        const __m256 zero = _mm256_setzero_ps();
        const __m256 a = _mm256_load_ps(place->values + key * COLUMNS);
        const __m256 b = _mm256_load_ps(place->values + key * COLUMNS + V_LANES);
#pragma GCC unroll 6
        for (int i = 0; i < TILE_ROWS; i++) {
            if (i < n) {
                const __m256 p = _mm256_broadcast_ss(weights[i] + key * V_LANES);
                sum[i][0] = _mm256_fmadd_ps(p, a, _mm256_add_ps(sum[i][0], zero));
                sum[i][1] = _mm256_fmadd_ps(p, b, _mm256_add_ps(sum[i][1], zero));
            }
        }
    }
}

__attribute__((always_inline)) static inline void clear(__m256 (*sum)[2])
{
#pragma GCC unroll 6
    for (int i = 0; i < TILE_ROWS; i++) {
        sum[i][0] = _mm256_setzero_ps();
        sum[i][1] = _mm256_setzero_ps();
    }
}

/* Bring a row's out up to date. */
__attribute__((always_inline)) static inline void put_row(const __m256 sum[2], float alpha,
                                                          float *out)
{
    __m256 a = sum[0];
    __m256 b = sum[1];
    if (alpha >= 0.0f) {
        const __m256 factor = _mm256_set1_ps(alpha);
        a = _mm256_fmadd_ps(factor, _mm256_loadu_ps(out), a);
        b = _mm256_fmadd_ps(factor, _mm256_loadu_ps(out + V_LANES), b);
    }
    _mm256_storeu_ps(out, a);
    _mm256_storeu_ps(out + V_LANES, b);
}

/* n rows that see different keys: together what all of them see, then each on its own. */
__attribute__((always_inline)) static inline void weigh_apart(const int n,
                                                              const struct place *place)
{
    __m256 sum[TILE_ROWS][2];
    float kept[TILE_ROWS][COLUMNS];
    int64_t shared = place->visible[0];
    for (int i = 1; i < n; i++) {
        shared = place->visible[i] < shared ? place->visible[i] : shared;
    }
    shared = shared / 2 * 2;
    clear(sum);
    add_keys(n, place, 0, 0, shared, sum);
#pragma GCC unroll 6
    for (int i = 0; i < TILE_ROWS; i++) {
        _mm256_storeu_ps(kept[i], sum[i][0]);
        _mm256_storeu_ps(kept[i] + V_LANES, sum[i][1]);
    }
    for (int i = 0; i < n; i++) {
        if (place->visible[i] > 0) {
            __m256 row[1][2] = {{_mm256_loadu_ps(kept[i]), _mm256_loadu_ps(kept[i] + V_LANES)}};
            add_keys(1, place, i, shared, place->visible[i], row);
            put_row(row[0], place->alpha[i], place->out + i * place->out_stride);
        }
    }
}

__attribute__((always_inline)) static inline void weigh_tile(const int n, const struct place *place)
{
    bool is_even = true;
    for (int i = 1; i < n; i++) {
        is_even = is_even && place->visible[i] == place->visible[0];
    }
    if (!is_even) {
        weigh_apart(n, place);
    } else if (place->visible[0] > 0) {
        __m256 sum[TILE_ROWS][2];
        clear(sum);
        add_keys(n, place, 0, 0, place->visible[0], sum);
#pragma GCC unroll 6
        for (int i = 0; i < TILE_ROWS; i++) {
            if (i < n) {
                put_row(sum[i], place->alpha[i], place->out + i * place->out_stride);
            }
        }
    }
}

static void weigh6(const struct place *place)
{
    weigh_tile(6, place);
}

static void weigh4(const struct place *place)
{
    weigh_tile(4, place);
}

static void weigh1(const struct place *place)
{
    weigh_tile(1, place);
}

static void weigh_rows(int64_t n, const struct place *place)
{
    if (n == 6) {
        weigh6(place);
    } else if (n == 4) {
        weigh4(place);
    } else {
        weigh1(place);
    }
}

/* PANELS panels of columns, all rows, `out` at the first row's: six rows at a time, at last four. */
static void weigh_panels(const struct mla_attend_shape *shape, const struct mla_step *step,
                         const struct own *own, int64_t rows_n, float *out)
{
    const float *weights = (const float *)(const void *)step->weights;
    int64_t n;
    for (int64_t row = 0; row < rows_n; row += n) {
        const int64_t left = rows_n - row;
        struct place place = {.visible = step->visible + row,
                              .alpha = step->alpha + row,
                              .values = own->values,
                              .out = out + row * shape->value_n,
                              .out_stride = shape->value_n};
        n = left >= 6 && left != 8 ? 6 : left >= 4 ? 4 : 1;
        for (int64_t i = 0; i < n; i++) {
            const int64_t vector = (row + i) / V_LANES;
            place.weights[i] = weights + vector * V_LANES * step->keys_n + (row + i) % V_LANES;
        }
        for (int panel = 0; panel < PANELS; panel++) {
            weigh_rows(n, &place);
            place.values += step->keys_n * COLUMNS;
            place.out += COLUMNS;
        }
    }
}

/* value_n is a multiple of 32: a cache line of each key is widened at a time. */
static void weigh(const struct mla_attend_shape *shape, const struct mla_step *step,
                  const struct own *own, const struct mla_attend_keys *keys, int64_t rows_n,
                  int64_t most, float *out)
{
    for (int64_t column = 0; column < shape->value_n; column += PANELS * COLUMNS) {
        for (int64_t key = 0; key < most; key++) {
            const int64_t row = keys->index != NULL ? keys->index[key] : key;
            const uint16_t *from = keys->main + row * shape->main_n + column;
            float *to = own->values + key * COLUMNS;
#pragma GCC unroll 2
            for (int panel = 0; panel < PANELS; panel++) {
                _mm256_store_ps(to, widen8(from));
                _mm256_store_ps(to + V_LANES, widen8(from + V_LANES));
                from += COLUMNS;
                to += step->keys_n * COLUMNS;
            }
        }
        weigh_panels(shape, step, own, rows_n, out + column);
    }
}

/* ---- the step ---------------------------------------------------------------------------------*/

static void block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                  const int64_t *visible, const struct mla_attend_keys *keys, float scale,
                  const struct mla_attend_state *state)
{
    const struct mla_step step = mla_step_of(shape, scratch);
    const struct own own = own_of(&step);
    const struct mla_step_scale split = mla_step_scale(scale);
    const int64_t most = mla_step_see(&step, rows_n, visible);
    const unsigned callers = mla_step_flush();
    if (most > 0) {
        if (*step.fresh != 0) {
            lay_out_queries(&step, &own, rows_n);
        }
        score(shape, &step, &own, keys, rows_n, most);
        for (int64_t row = 0; row < rows_n; row += V_LANES) {
            mla_step_soften(&step, row, rows_n, split, state);
        }
        weigh(shape, &step, &own, keys, rows_n, most, state->out);
    }
    mla_step_restore(callers);
}

const struct mla_attend mla_attend_avx2 = {
    .sums_n = 1,
    .rows_n = MLA_STEP_ROWS,
    .block_keys = MLA_STEP_BLOCK,
    .scratch_bytes = scratch_bytes,
    .query = mla_step_query,
    .block = {block},
    .finish = mla_step_finish,
    .store = mla_step_store,
};
