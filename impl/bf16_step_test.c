/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16_step_test.c - the steps of the bf16 kernels, bit for bit, against their arithmetic written
 * plainly (bf16_reference.h), on drawn tiles; and whole operations against it and each other.
 *
 * A tile: up to 128 rows, each with its own part of the same blocks of keys, in widths and data
 * that reach every tail and every branch: subnormal numbers, every scale there can be, weights
 * that underflow, equal maxima, sums that overflow, NaN in keys that a row does not see and in rows
 * beside good ones. Not a number is compared as such, since its bits mean nothing; everything else
 * exactly, but for the sign of a maximum of 0, which nothing depends on.
 */
#include "impl/bf16_reference.h"
#include "impl/cpu.h"
#include "impl/ring.h"
#include "impl/scratch.h"
#include "impl/sparse.h"
#include "impl/test_data.h"

#include <inttypes.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BLOCKS_MAX   4
#define WIDTH_MAX    640

/* The kernels this build has; not every machine can run them. The last entry ends the table. */
static const struct {
    const char *name;
    const struct mla_attend *attend;
    bool (*usable)(void);
} kernels[] = {
#if defined(MLA_HAS_AVX2)
    {"avx2", &mla_attend_avx2, mla_cpu_has_avx2},
#endif
#if defined(MLA_HAS_AVX512BF16)
    {"avx512bf16", &mla_attend_avx512bf16, mla_cpu_has_avx512bf16},
#endif
    {NULL, NULL, NULL},
};

enum { Q, MAIN, Q_ROPE, ROPE, PARTS };

/* A drawn tile and its keys. */
struct tile {
    uint64_t seed;
    struct mla_attend_shape shape;
    int64_t rows_n;
    int64_t blocks_n;
    int64_t keys_n[BLOCKS_MAX];
    int64_t visible[BLOCKS_MAX][MLA_ATTEND_ROWS];
    bool is_taken[MLA_ATTEND_ROWS]; /* by `query`; a row without keys need not be */
    bool is_indexed;
    int64_t cache_n; /* rows of keys there are */
    int32_t index[BLOCKS_MAX][MLA_ATTEND_KEYS];
    uint16_t *part[PARTS]; /* q, main, q's rope, rope */
    float scale;
};

struct draw {
    uint64_t seed, at;
};

static int64_t draw(struct draw *from, int64_t low, int64_t high)
{
    return low + (int64_t)(test_mix(from->seed, from->at++) % (uint64_t)(high - low + 1));
}

/* A bf16 of random sign and significand with an exponent (biased) of low .. high. */
static uint16_t draw_bf16(struct draw *from, int64_t low, int64_t high)
{
    const uint64_t bits = test_mix(from->seed, from->at++);
    const uint64_t exponent = (uint64_t)low + (bits >> 20) % (uint64_t)(high - low + 1);
    return (uint16_t)((bits & 0x807fU) | (exponent << 7));
}

/* ---- data -------------------------------------------------------------------------------------*/

static uint16_t ordinary(struct draw *from)
{
    return draw_bf16(from, 123, 128);
}

/* Small integers: many equal scores, among them the largest. */
static uint16_t whole(struct draw *from)
{
    static const uint16_t values[] = {0x0000, 0x3f80, 0xbf80, 0x8000, 0x4000, 0x0000};
    return values[draw(from, 0, COUNT(values) - 1)];
}

/* Zeros, subnormals and the smallest normals. */
static uint16_t tiny(struct draw *from)
{
    return draw_bf16(from, 0, 3);
}

/* Products that end on both sides of 2^-126, and sums that fall below it by cancelling. */
static uint16_t sinking(struct draw *from)
{
    return draw_bf16(from, 56, 68);
}

/* Now and then a subnormal among ordinary numbers. */
static uint16_t mixed(struct draw *from)
{
    return draw(from, 0, 3) == 0 ? tiny(from) : ordinary(from);
}

/* Any finite number: sums overflow to infinity and not a number. */
static uint16_t any(struct draw *from)
{
    return draw_bf16(from, 0, 254);
}

static uint16_t huge(struct draw *from)
{
    return draw_bf16(from, 180, 188);
}

static uint16_t not_finite(struct draw *from)
{
    static const uint16_t values[] = {0x7fc0, 0xffff, 0x7f80, 0xff80, 0x7f81};
    return values[draw(from, 0, COUNT(values) - 1)];
}

static uint16_t (*const data[])(struct draw *) = {ordinary, whole, tiny, sinking,
                                                  mixed,    any,   huge, ordinary};

static uint16_t *fill(struct draw *from, int64_t n, uint16_t (*value)(struct draw *))
{
    uint16_t *tensor = test_alloc((size_t)n * sizeof *tensor);
    for (int64_t i = 0; i < n; i++) {
        tensor[i] = value(from);
    }
    return tensor;
}

/* The largest |score| of the first row over a few keys, in double: what a fitting scale is to. */
static double score_size(const struct tile *tile)
{
    double size = 0;
    for (int64_t j = 0; j < tile->cache_n && j < 16; j++) {
        double score = 0;
        for (int64_t c = 0; c < tile->shape.main_n; c++) {
            score += test_value(tile->part[Q][c]) *
                     test_value(tile->part[MAIN][j * tile->shape.main_n + c]);
        }
        size = fabs(score) > size ? fabs(score) : size;
    }
    return size;
}

/* Mostly such that weights spread over many binades, and the ends of what a scale can be. */
static float draw_scale(struct draw *from, const struct tile *tile)
{
    static const float ends[] = {0x1p-149f, 0x1.8p-140f, 0x1p-126f,  0x1.2p-64f,      0x1p-64f,
                                 0x1.6p-3f, 0x1p64f,     0x1.3p+64f, 0x1.234568p100f, 0x1.8p127f};
    const double size = score_size(tile);
    const double significand = 1.0 + (double)draw(from, 0, 999) / 1000;
    const double fitted = ldexp(significand, (int)draw(from, -3, 8));
    if (draw(from, 0, 3) == 0 || !(fitted / size < 0x1p120 && fitted / size > 0x1p-140)) {
        return ends[draw(from, 0, COUNT(ends) - 1)];
    }
    return (float)(fitted / size);
}

/* ---- drawing a tile ---------------------------------------------------------------------------*/

/*
 * How many keys each row sees: all the same, a step more for each row or group of rows as on the
 * causal diagonal, or at random with 0 and all among them.
 */
static void draw_visible(struct draw *from, struct tile *tile, int64_t block)
{
    const int64_t all = tile->keys_n[block];
    const int64_t kind = draw(from, 0, 3);
    const int64_t start = draw(from, 0, all);
    const int64_t heads = draw(from, 1, 20);
    for (int64_t r = 0; r < tile->rows_n; r++) {
        const int64_t step = start + r / heads;
        const int64_t any_n = draw(from, 0, 5) == 0 ? 0 : draw(from, 0, all);
        tile->visible[block][r] = kind == 0 ? all : kind == 1 ? any_n : step < all ? step : all;
    }
}

/* Some keys are not finite, most of them late in the block: only rows that see them may suffer. */
static void poison_keys(struct draw *from, struct tile *tile)
{
    for (int64_t n = draw(from, 1, 6); n > 0; n--) {
        const int64_t block = draw(from, 0, tile->blocks_n - 1);
        const int64_t place = tile->keys_n[block] - 1 - draw(from, 0, tile->keys_n[block] / 3);
        const int64_t key = tile->is_indexed ? tile->index[block][place] : place;
        const int64_t width = draw(from, 0, 1) == 0 ? 1 : tile->shape.main_n;
        for (int64_t c = 0; c < width; c++) {
            tile->part[MAIN][(key + 1) * tile->shape.main_n - 1 - c] = not_finite(from);
        }
        if (tile->shape.rope_n > 0 && draw(from, 0, 1) == 0) {
            tile->part[ROPE][(key + 1) * tile->shape.rope_n - 1] = not_finite(from);
        }
    }
}

static void draw_shape(struct draw *from, struct tile *tile, int64_t block_keys)
{
    static const int64_t widths[] = {64, 576, 512, 96, 32, 160};
    static const int64_t rows[] = {1, 4, 16, 17, 32, 48, 127, 128};
    struct mla_attend_shape *shape = &tile->shape;
    shape->main_n = widths[draw(from, 0, COUNT(widths) - 1)];
    shape->rope_n = draw(from, 0, 1) == 0 ? 0 : draw(from, 1, 128);
    shape->value_n = shape->main_n < 512 ? shape->main_n : 512;
    if (draw(from, 0, 1) == 0) {
        shape->value_n = 32 * draw(from, 1, shape->value_n / 32);
    }
    shape->keys_n = block_keys;
    tile->rows_n =
        draw(from, 0, 2) == 0 ? draw(from, 1, 128) : rows[draw(from, 0, COUNT(rows) - 1)];
    tile->blocks_n = draw(from, 1, BLOCKS_MAX);
    for (int64_t b = 0; b < tile->blocks_n; b++) {
        tile->keys_n[b] = draw(from, 0, 2) == 0 ? block_keys : draw(from, 1, block_keys);
    }
}

/* Large tiles are rare: the reference takes its time. */
static void shrink(struct draw *from, struct tile *tile)
{
    while (tile->rows_n * tile->shape.main_n * tile->shape.keys_n * tile->blocks_n > 4000000 &&
           draw(from, 0, 15) != 0) {
        if (tile->blocks_n > 1 && draw(from, 0, 1) == 0) {
            tile->blocks_n--;
        } else {
            tile->rows_n = (tile->rows_n + 1) / 2;
        }
    }
}

static void draw_tile(struct tile *tile, uint64_t seed, int64_t block_keys)
{
    struct draw from = {.seed = seed};
    uint16_t (*value)(struct draw *) = data[draw(&from, 0, COUNT(data) - 1)];
    *tile = (struct tile){.seed = seed};
    draw_shape(&from, tile, block_keys);
    shrink(&from, tile);
    tile->is_indexed = draw(&from, 0, 1) == 0;
    tile->cache_n = tile->is_indexed ? draw(&from, 1, 300) : block_keys;
    for (int64_t b = 0; b < tile->blocks_n; b++) {
        draw_visible(&from, tile, b);
        for (int64_t j = 0; j < tile->keys_n[b]; j++) {
            tile->index[b][j] = (int32_t)draw(&from, 0, tile->cache_n - 1);
        }
    }
    tile->part[Q] = fill(&from, tile->rows_n * tile->shape.main_n, value);
    tile->part[Q_ROPE] = fill(&from, tile->rows_n * tile->shape.rope_n, value);
    tile->part[MAIN] = fill(&from, tile->cache_n * tile->shape.main_n, value);
    tile->part[ROPE] = fill(&from, tile->cache_n * tile->shape.rope_n, value);
    tile->scale = draw_scale(&from, tile);
    if (draw(&from, 0, 1) == 0) {
        poison_keys(&from, tile);
    }
    if (draw(&from, 0, 3) == 0) {
        const int64_t place = draw(&from, 0, tile->rows_n * tile->shape.main_n - 1);
        tile->part[Q][place] = not_finite(&from);
    }
    for (int64_t r = 0; r < tile->rows_n; r++) {
        for (int64_t b = 0; b < tile->blocks_n; b++) {
            tile->is_taken[r] = tile->is_taken[r] || tile->visible[b][r] > 0;
        }
    }
}

static void free_tile(struct tile *tile)
{
    for (int i = 0; i < PARTS; i++) {
        free(tile->part[i]);
    }
}

static struct mla_attend_keys keys_of(const struct tile *tile, int64_t block)
{
    return (struct mla_attend_keys){.main = tile->part[MAIN],
                                    .rope = tile->shape.rope_n > 0 ? tile->part[ROPE] : NULL,
                                    .index = tile->is_indexed ? tile->index[block] : NULL};
}

/* ---- comparing --------------------------------------------------------------------------------*/

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* What the whole test has seen, by which it shows that it has seen enough. */
struct census {
    int64_t rows, values, not_numbers, beside_poison, rescaled, zeros, unspecified;
};

/* A step that flushes subnormals to zero puts the environment right again. */
static void expect_environment(void)
{
    volatile float least = FLT_MIN;
    assert_true(least / 2 > 0.0f && least / 2 * 2 == FLT_MIN);
}

static void run_kernel(const struct tile *tile, const struct mla_attend *attend,
                       const struct mla_attend_state *state)
{
    struct mla_attend_shape shape = tile->shape;
    shape.sums_n = attend->sums_n;
    shape.rows_n = attend->rows_n;
    const size_t bytes = attend->scratch_bytes(&shape);
    unsigned char *scratch = mla_scratch_alloc(1, bytes);
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes); /* what is used unset is not a number */
    for (int64_t r = 0; r < tile->rows_n; r++) {
        mla_attend_begin(&shape, state, r);
        if (tile->is_taken[r]) {
            attend->query(&shape, scratch, r, tile->part[Q] + r * shape.main_n,
                          shape.rope_n > 0 ? tile->part[Q_ROPE] + r * shape.rope_n : NULL);
        }
    }
    for (int64_t b = 0; b < tile->blocks_n; b++) {
        const struct mla_attend_keys next = keys_of(tile, b + 1 < tile->blocks_n ? b + 1 : b);
        struct mla_attend_keys keys = keys_of(tile, b);
        if (b + 1 < tile->blocks_n) {
            keys.next = &next;
            keys.next_n = tile->keys_n[b + 1];
        }
        attend->block[0](&shape, scratch, tile->rows_n, tile->visible[b], &keys, tile->scale,
                         state);
        expect_environment();
    }
    free(scratch);
}

static void differ(const struct tile *tile, const char *name, int64_t r, const char *what,
                   int64_t column, float got, float want)
{
    fail_msg("%s, seed %" PRIu64 ": %d rows of %d + %d, %d values, %d blocks, scale %a: row %d, "
             "%s[%d] is %a, not %a",
             name, tile->seed, (int)tile->rows_n, (int)tile->shape.main_n, (int)tile->shape.rope_n,
             (int)tile->shape.value_n, (int)tile->blocks_n, (double)tile->scale, (int)r, what,
             (int)column, (double)got, (double)want);
}

/* Normalised and stored in both column orders. */
static void expect_output(const struct tile *tile, const char *name,
                          const struct mla_attend *attend, const struct mla_attend_state *state,
                          int64_t r, const struct bf16_row *want)
{
    const int64_t n = tile->shape.value_n;
    uint16_t stored[2][BF16_VALUE_MAX];
    struct mla_attend_shape shape = tile->shape;
    shape.sums_n = attend->sums_n;
    const float sum = attend->finish(&shape, state, r);
    expect_environment();
    if (!same_bits(sum, want->sum)) {
        differ(tile, name, r, "finished sum", 0, sum, want->sum);
    }
    attend->store(&shape, state->out + r * n, MLA_OUT_NATURAL, stored[0]);
    attend->store(&shape, state->out + r * n, MLA_OUT_MX4, stored[1]);
    for (int64_t c = 0; c < n; c++) {
        const float value = bf16_output(want, c);
        const float natural = bf16_widen(stored[0][c]);
        const float packed = bf16_widen(stored[1][c % 4 * (n / 4) + c / 4]);
        if (!same_bits(natural, value)) {
            differ(tile, name, r, "stored", c, natural, value);
        }
        if (!same_bits(packed, value)) {
            differ(tile, name, r, "stored 4-pack", c, packed, value);
        }
    }
}

static void count_row(const struct tile *tile, int64_t r, const struct bf16_row *want,
                      struct census *census)
{
    const int64_t n = tile->shape.value_n;
    bool is_number = true;
    census->rows++;
    census->values += n;
    for (int64_t c = 0; c < n; c++) {
        census->zeros += want->out[c] == 0.0f ? 1 : 0;
        is_number = is_number && !isnan(want->out[c]);
    }
    census->not_numbers += is_number ? 0 : 1;
    for (int64_t b = 0; is_number && b < tile->blocks_n; b++) {
        const struct mla_attend_keys keys = keys_of(tile, b);
        for (int64_t j = tile->visible[b][r]; j < tile->keys_n[b]; j++) {
            const int64_t key = keys.index != NULL ? keys.index[j] : j;
            const uint16_t last = keys.main[(key + 1) * tile->shape.main_n - 1];
            if (!isfinite(bf16_widen(last))) {
                census->beside_poison++;
                return;
            }
        }
    }
}

/* One row through the reference. False when its value is nobody's promise: its scores overflowed,
 * and the maximum of a block and of all before it is -inf. */
static bool refer(const struct tile *tile, int64_t r, struct bf16_row *row, struct census *census)
{
    *row = (struct bf16_row){.main = tile->part[Q] + r * tile->shape.main_n,
                             .rope = tile->part[Q_ROPE] + r * tile->shape.rope_n,
                             .max = -INFINITY};
    for (int64_t b = 0; b < tile->blocks_n; b++) {
        const struct mla_attend_keys keys = keys_of(tile, b);
        const float before = row->max;
        bf16_block(&tile->shape, row, &keys, tile->visible[b][r], tile->scale);
        if (tile->visible[b][r] > 0 && row->max == -INFINITY) {
            return false;
        }
        census->rescaled += isfinite(before) && row->max > before ? 1 : 0;
    }
    return true;
}

static void try_tile(const struct tile *tile, size_t kernel, struct census *census)
{
    const struct mla_attend *attend = kernels[kernel].attend;
    const char *name = kernels[kernel].name;
    const int64_t n = tile->shape.value_n;
    struct bf16_row *want = test_alloc(sizeof *want);
    struct mla_attend_state state = {
        .max = mla_scratch_alloc(MLA_ATTEND_ROWS, sizeof(float)),
        .sum = mla_scratch_alloc(MLA_ATTEND_ROWS * attend->sums_n, sizeof(float)),
        .out = mla_scratch_alloc(MLA_ATTEND_ROWS * n, sizeof(float)),
    };
    memset(state.out, 0xff, (size_t)(MLA_ATTEND_ROWS * n) * sizeof(float));
    run_kernel(tile, attend, &state);
    for (int64_t r = 0; r < tile->rows_n; r++) {
        if (!refer(tile, r, want, census)) {
            census->unspecified++;
            continue;
        }
        if (!(state.max[r] == want->max)) {
            differ(tile, name, r, "max", 0, state.max[r], want->max);
        }
        if (!tile->is_taken[r]) {
            assert_true(state.sum[r] == 0.0f && isnan(state.out[r * n])); /* left alone */
            continue;
        }
        for (int64_t c = 0; c < n; c++) {
            if (!same_bits(state.out[r * n + c], want->out[c])) {
                differ(tile, name, r, "out", c, state.out[r * n + c], want->out[c]);
            }
        }
        expect_output(tile, name, attend, &state, r, want);
        count_row(tile, r, want, census);
    }
    free(state.out);
    free(state.sum);
    free(state.max);
    free(want);
}

static void test_tiles(void **state)
{
    const char *cases = getenv("MLA_TEST_CASES");
    const int64_t tiles_n = cases != NULL ? 10 * atoi(cases) : 400;
    struct tile *tile = test_alloc(sizeof *tile);
    int kernels_n = 0;
    (void)state;
    for (size_t k = 0; kernels[k].name != NULL; k++) {
        struct census census = {0};
        if (!kernels[k].usable()) {
            print_message("%s: not on this machine, skipped\n", kernels[k].name);
            continue;
        }
        assert_int_equal(kernels[k].attend->sums_n, 1);
        assert_null(kernels[k].attend->block[1]);
        for (int64_t i = 0; i < tiles_n; i++) {
            draw_tile(tile, 1000 + (uint64_t)i, kernels[k].attend->block_keys);
            try_tile(tile, k, &census);
            free_tile(tile);
        }
        print_message("%s: %" PRId64 " rows, %" PRId64 " values; rows not a number %" PRId64
                      ", numbers beside poison %" PRId64 ", unspecified %" PRId64
                      ", rescales %" PRId64 ", values 0 %" PRId64 "\n",
                      kernels[k].name, census.rows, census.values, census.not_numbers,
                      census.beside_poison, census.unspecified, census.rescaled, census.zeros);
        assert_true(census.rows > tiles_n && census.not_numbers > census.rows / 100 &&
                    census.beside_poison > census.rows / 100 && census.rescaled > tiles_n &&
                    census.unspecified < census.rows / 4 && census.zeros < census.values / 2);
        kernels_n++;
    }
    free(tile);
    if (kernels_n == 0) {
        skip();
    }
}

/* ---- whole operations -------------------------------------------------------------------------*/

/* A row of an operation: its keys in the order of its blocks. */
struct walk {
    struct mla_attend_shape shape;
    struct bf16_row *row;
    float scale;
    int32_t list[MLA_ATTEND_KEYS];
    int64_t list_n;
};

/* Close the block that is being listed. */
static void walk_block(struct walk *walk, const uint16_t *main, const uint16_t *rope)
{
    const struct mla_attend_keys keys = {.main = main, .rope = rope, .index = walk->list};
    bf16_block(&walk->shape, walk->row, &keys, walk->list_n, walk->scale);
    walk->list_n = 0;
}

static void expect_walked(const struct walk *walk, const char *what, const uint16_t *out,
                          int32_t out_order, float max, float sum)
{
    const int64_t n = walk->shape.value_n;
    for (int64_t c = 0; c < n; c++) {
        const int64_t at = out_order == MLA_OUT_MX4 ? c % 4 * (n / 4) + c / 4 : c;
        const float want = bf16_output(walk->row, c);
        if (!same_bits(bf16_widen(out[at]), want)) {
            fail_msg("%s: column %d is %a, not %a", what, (int)c, test_value(out[at]),
                     (double)want);
        }
    }
    assert_true(max == walk->scale * walk->row->max);
    assert_true(same_bits(sum, walk->row->sum));
}

#define QUERIES 3
#define CACHE   700
#define LATENT  512
#define ROPE_N  63

/* Heads 0, 5, 10, .. of every query of the call that the kernel has just done. */
static void expect_sparse(const struct mla_sparse_args *args, const char *name, int64_t block_keys)
{
    struct walk *walk = test_alloc(sizeof *walk);
    struct bf16_row *row = test_alloc(sizeof *row);
    for (int64_t line = 0; line < args->queries * args->heads; line += 5) {
        const int64_t query = line / args->heads;
        const int64_t keys_n = args->dense != 0 ? args->keys : args->topk;
        *row = (struct bf16_row){.main = args->q_lift + line * LATENT,
                                 .rope = args->q_pe + line * args->rope,
                                 .max = -INFINITY};
        *walk = (struct walk){.shape = {.main_n = LATENT, .rope_n = args->rope, .value_n = LATENT},
                              .row = row,
                              .scale = args->softmax_scale};
        for (int64_t j = 0; j < keys_n; j++) {
            const int64_t key = args->dense != 0 ? j : args->topk_indices[query * keys_n + j];
            if (key <= args->q_pos_offset + query) {
                walk->list[walk->list_n++] = (int32_t)key;
            }
            if (walk->list_n == block_keys || (j == keys_n - 1 && walk->list_n > 0)) {
                walk_block(walk, args->c_kv, args->k_pe);
            }
        }
        expect_walked(walk, name, args->out + line * LATENT, args->out_order, args->stats[2 * line],
                      args->stats[2 * line + 1]);
    }
    free(row);
    free(walk);
}

static void try_sparse(struct mla_sparse_args *args)
{
    const size_t values_n = (size_t)(args->queries * args->heads * LATENT);
    uint16_t *out[COUNT(kernels)];
    float *stats[COUNT(kernels)];
    int done = -1;
    for (size_t k = 0; kernels[k].name != NULL; k++) {
        out[k] = args->out = test_alloc(values_n * sizeof **out);
        stats[k] = args->stats = test_alloc(values_n / LATENT * 2 * sizeof **stats);
        if (!kernels[k].usable()) {
            continue;
        }
        assert_int_equal(mla_sparse_run(args, kernels[k].attend, NULL, 0), MLA_OK);
        expect_sparse(args, kernels[k].name, kernels[k].attend->block_keys);
        if (done >= 0) {
            assert_memory_equal(out[done], out[k], values_n * sizeof **out);
            assert_memory_equal(stats[done], stats[k], values_n / LATENT * 2 * sizeof **stats);
        }
        done = (int)k;
    }
    for (size_t k = 0; kernels[k].name != NULL; k++) {
        free(out[k]);
        free(stats[k]);
    }
    if (done < 0) {
        skip();
    }
}

static void test_sparse(void **state)
{
    static const struct {
        int64_t heads, topk, dense, offset;
        int32_t out_order;
        float scale;
    } calls[] = {{16, 640, 0, 650, MLA_OUT_MX4, 0x1.555556p-5f},
                 {48, 384, 0, 300, MLA_OUT_NATURAL, 0.135234f},
                 {16, 0, 1, 699, MLA_OUT_NATURAL, 3.0f},
                 {32, 128, 0, 699, MLA_OUT_MX4, 0x1p-130f}};
    uint16_t *q_lift = test_tensor(QUERIES * 48 * LATENT, 1);
    uint16_t *q_pe = test_tensor(QUERIES * 48 * ROPE_N, 2);
    uint16_t *c_kv = test_tensor(CACHE * LATENT, 3);
    uint16_t *k_pe = test_tensor(CACHE * ROPE_N, 4);
    int32_t topk[QUERIES * 640];
    (void)state;
    for (size_t i = 0; i < COUNT(topk); i++) {
        topk[i] = (int32_t)(test_mix(5, i) % CACHE);
    }
    for (size_t i = 0; i < COUNT(calls); i++) {
        struct mla_sparse_args args = {.struct_size = sizeof args,
                                       .batch = 1,
                                       .queries = QUERIES,
                                       .keys = CACHE,
                                       .heads = calls[i].heads,
                                       .latent = LATENT,
                                       .rope = ROPE_N,
                                       .topk = calls[i].topk,
                                       .dense = (int32_t)calls[i].dense,
                                       .has_q_pos_offset = 1,
                                       .q_pos_offset = calls[i].offset,
                                       .out_order = calls[i].out_order,
                                       .cores = 1,
                                       .threads = 2,
                                       .softmax_scale = calls[i].scale,
                                       .q_lift = q_lift,
                                       .q_pe = q_pe,
                                       .c_kv = c_kv,
                                       .k_pe = k_pe,
                                       .topk_indices = calls[i].dense != 0 ? NULL : topk};
        try_sparse(&args);
    }
    free(k_pe);
    free(c_kv);
    free(q_pe);
    free(q_lift);
}

#define RANKS 3
#define ROWS  320 /* of each shard: a whole block and a part */
#define HEADS 2
#define WIDTH 96
#define VALUE 64
#define VALID 900 /* of 960 keys */

/* Every seventh row of a rank; the shards in the order own, next, the one before. */
static void expect_ring(const struct mla_ring_args *args, const char *name, int64_t rank,
                        int64_t block_keys)
{
    static const int64_t turns[RANKS] = {0, 1, RANKS - 1};
    struct walk *walk = test_alloc(sizeof *walk);
    struct bf16_row *row = test_alloc(sizeof *row);
    for (int64_t line = 0; line < HEADS * ROWS; line += 7) {
        const int64_t r = line % ROWS;
        const float *stats = args->stats[rank] + line / ROWS * 2 * ROWS;
        *row = (struct bf16_row){.main = args->q[rank] + line * WIDTH, .max = -INFINITY};
        *walk = (struct walk){
            .shape = {.main_n = WIDTH, .value_n = VALUE}, .row = row, .scale = args->scale};
        for (int turn = 0; turn < RANKS; turn++) {
            const int64_t source = (rank + turns[turn]) % RANKS;
            for (int64_t t = 0; t < ROWS; t++) {
                const int64_t position = source * ROWS + t;
                if (position <= rank * ROWS + r && position < VALID) {
                    walk->list[walk->list_n++] = (int32_t)t;
                }
                if (t % block_keys == block_keys - 1 || t == ROWS - 1) {
                    walk_block(walk, args->kv[source], NULL);
                }
            }
        }
        expect_walked(walk, name, args->out[rank] + line * VALUE, MLA_OUT_NATURAL, stats[r],
                      stats[ROWS + r]);
    }
    free(row);
    free(walk);
}

static void test_ring(void **state)
{
    const size_t values_n = HEADS * ROWS * VALUE;
    const uint16_t *q[RANKS], *kv[RANKS];
    uint16_t *gathered[RANKS], *out[RANKS], *other_out[RANKS];
    float *stats[RANKS], *other_stats[RANKS];
    struct mla_ring_args args = {.struct_size = sizeof args,
                                 .ring_size = RANKS,
                                 .batch = 1,
                                 .heads = HEADS,
                                 .q_rows = ROWS,
                                 .kv_rows = ROWS,
                                 .kv_batch = 1,
                                 .kv_heads = 1,
                                 .kv_head_dim = WIDTH,
                                 .gathered_rows = RANKS * ROWS,
                                 .gathered_batch = 1,
                                 .head_dim = WIDTH,
                                 .head_dim_v = VALUE,
                                 .logical_n = VALID,
                                 .has_scale = 1,
                                 .scale = 0.135234f,
                                 .num_links = 2,
                                 .q_chunk_size = 96,
                                 .k_chunk_size = 32, /* without a say in the bf16 kernels */
                                 .dim = 2,
                                 .threads = 2,
                                 .q = q,
                                 .kv = kv,
                                 .gathered = gathered,
                                 .out = out,
                                 .stats = stats};
    int done = 0;
    (void)state;
    for (uint64_t i = 0; i < RANKS; i++) {
        q[i] = test_tensor(HEADS * ROWS * WIDTH, 10 + i);
        kv[i] = test_tensor(ROWS * WIDTH, 20 + i);
        gathered[i] = test_alloc(RANKS * ROWS * WIDTH * sizeof **gathered);
        out[i] = test_alloc(values_n * sizeof **out);
        stats[i] = test_alloc(2 * HEADS * ROWS * sizeof **stats);
        other_out[i] = test_alloc(values_n * sizeof **out);
        other_stats[i] = test_alloc(2 * HEADS * ROWS * sizeof **stats);
    }
    for (size_t k = 0; kernels[k].name != NULL; k++) {
        if (!kernels[k].usable()) {
            continue;
        }
        assert_int_equal(mla_ring_run(&args, kernels[k].attend, NULL, 0), MLA_OK);
        for (int64_t rank = 0; rank < RANKS; rank++) {
            expect_ring(&args, kernels[k].name, rank, kernels[k].attend->block_keys);
            if (done > 0) {
                assert_memory_equal(out[rank], other_out[rank], values_n * sizeof **out);
                assert_memory_equal(stats[rank], other_stats[rank],
                                    2 * HEADS * ROWS * sizeof **stats);
            }
            memcpy(other_out[rank], out[rank], values_n * sizeof **out);
            memcpy(other_stats[rank], stats[rank], 2 * HEADS * ROWS * sizeof **stats);
        }
        done++;
    }
    for (size_t i = 0; i < RANKS; i++) {
        free((void *)(uintptr_t)q[i]);
        free((void *)(uintptr_t)kv[i]);
        free(gathered[i]);
        free(out[i]);
        free(stats[i]);
        free(other_out[i]);
        free(other_stats[i]);
    }
    if (done == 0) {
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_ring),
    };
    return cmocka_run_group_tests_name("bf16_step", tests, NULL, NULL);
}
