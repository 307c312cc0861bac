/* SPDX-License-Identifier: Apache-2.0
 *
 * layout_test.c - position maps, visible prefixes, visiting orders and column maps.
 *
 * The tables are written out by hand, in tiles of 32 rows as the definition of the ring states them
 * ("-" is a pad tile, written PAD). The closed form of the visible prefix is compared with
 * counting.
 */
#include "impl/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define T   MLA_TILE
#define PAD (-1)

static struct mla_ring_args base(int64_t ring_size, int64_t q_rows, int64_t kv_rows,
                                 int64_t logical_n)
{
    return (struct mla_ring_args){.struct_size = sizeof(struct mla_ring_args),
                                  .ring_size = ring_size,
                                  .batch = 1,
                                  .heads = 1,
                                  .q_rows = q_rows,
                                  .kv_rows = kv_rows,
                                  .kv_batch = 1,
                                  .kv_heads = 1,
                                  .kv_head_dim = 64,
                                  .gathered_rows = ring_size * kv_rows,
                                  .gathered_batch = 1,
                                  .head_dim = 64,
                                  .head_dim_v = 32,
                                  .logical_n = logical_n,
                                  .num_links = 1,
                                  .q_chunk_size = T,
                                  .k_chunk_size = T,
                                  .dim = 2};
}

/* All 32 rows of every tile of a rank must lie where the table says. */
static void expect_tiles(const struct mla_layout *layout, int64_t rank, bool is_key,
                         const int64_t *tiles, int64_t tiles_n)
{
    for (int64_t row = 0; row < tiles_n * T; row++) {
        const int64_t tile = tiles[row / T];
        const int64_t want = tile == PAD ? -1 : tile * T + row % T;
        const int64_t got = is_key ? mla_layout_key_position(layout, rank, row)
                                   : mla_layout_query_position(layout, rank, row);
        assert_int_equal(got, want);
    }
}

struct rotation {
    int64_t ring_size, q_tiles, prior, length;
    int64_t tiles[4][4];
};

static void test_rotation_examples(void **state)
{
    static const struct rotation table[] = {
        {2, 4, 6, 13, {{8, 9, 10, 11}, {6, 7, 12, PAD}}},
        {2, 4, 6, 14, {{8, 9, 10, 11}, {6, 7, 12, 13}}},
        {2, 4, 0, 8, {{0, 1, 2, 3}, {4, 5, 6, 7}}},
        {4, 2, 5, 11, {{8, 9}, {10, PAD}, {5, PAD}, {6, 7}}},
        {4, 2, 5, 13, {{8, 9}, {10, 11}, {5, 12}, {6, 7}}},
        {4, 2, 0, 3, {{0, 1}, {2, PAD}, {PAD, PAD}, {PAD, PAD}}},
        {4, 2, 3, 5, {{PAD, PAD}, {3, PAD}, {4, PAD}, {PAD, PAD}}},
        {4, 2, 8, 10, {{8, 9}, {PAD, PAD}, {PAD, PAD}, {PAD, PAD}}},
        {4, 2, 15, 17, {{16, PAD}, {PAD, PAD}, {PAD, PAD}, {15, PAD}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct rotation *row = &table[i];
        struct mla_ring_args args =
            base(row->ring_size, row->q_tiles * T, 8 * row->q_tiles * T, row->length * T);
        args.has_prior = 1;
        args.kv_actual_isl = row->prior * T;
        const struct mla_layout layout = mla_layout_of(&args);
        assert_int_equal(layout.mode, MLA_LAYOUT_ROTATED);
        for (int64_t rank = 0; rank < row->ring_size; rank++) {
            expect_tiles(&layout, rank, false, row->tiles[rank], row->q_tiles);
        }
    }
}

/* A full chunk: whoever is below the boundary rank is in the next slab, whoever is above is not. */
static void test_rotation_boundary_rank(void **state)
{
    struct mla_ring_args args = base(4, 2 * T, 8 * T, 21 * T);
    (void)state;
    args.has_prior = 1;
    args.kv_actual_isl = 13 * T; /* slab 1, rank 2, offset 1 tile */
    const struct mla_layout layout = mla_layout_of(&args);
    static const int64_t tiles[4][2] = {{16, 17}, {18, 19}, {13, 20}, {14, 15}};
    for (int64_t rank = 0; rank < 4; rank++) {
        expect_tiles(&layout, rank, false, tiles[rank], 2);
    }
}

static void test_key_map(void **state)
{
    static const int64_t tiles[4][6] = {{0, 1, 8, 9, 16, 17},
                                        {2, 3, 10, 11, 18, 19},
                                        {4, 5, 12, 13, 20, 21},
                                        {6, 7, 14, 15, 22, 23}};
    struct mla_ring_args args = base(4, 2 * T, 6 * T, 24 * T);
    (void)state;
    for (int has_prior = 0; has_prior <= 1; has_prior++) {
        args.has_prior = has_prior;
        args.kv_actual_isl = 16 * T;
        const struct mla_layout layout = mla_layout_of(&args);
        for (int64_t rank = 0; rank < 4; rank++) {
            expect_tiles(&layout, rank, true, tiles[rank], 6);
        }
    }
}

static void test_chunked_queries(void **state)
{
    /* logical_n 21.x tiles rounds up to 22; the 8 query tiles are 14 .. 21. */
    struct mla_ring_args args = base(4, 2 * T, 6 * T, 21 * T + 5);
    static const int64_t tiles[4][2] = {{14, 15}, {16, 17}, {18, 19}, {20, 21}};
    (void)state;
    const struct mla_layout layout = mla_layout_of(&args);
    assert_int_equal(layout.mode, MLA_LAYOUT_CHUNKED);
    for (int64_t rank = 0; rank < 4; rank++) {
        expect_tiles(&layout, rank, false, tiles[rank], 2);
    }
}

static void test_contiguous(void **state)
{
    struct mla_ring_args args = base(3, 2 * T, 2 * T, 5 * T);
    static const int64_t tiles[3][2] = {{0, 1}, {2, 3}, {4, 5}};
    (void)state;
    const struct mla_layout layout = mla_layout_of(&args);
    assert_int_equal(layout.mode, MLA_LAYOUT_CONTIGUOUS);
    for (int64_t rank = 0; rank < 3; rank++) {
        expect_tiles(&layout, rank, false, tiles[rank], 2);
        expect_tiles(&layout, rank, true, tiles[rank], 2);
    }
}

static void test_balanced_halves(void **state)
{
    static const int64_t two[2][2] = {{0, 3}, {1, 2}};
    static const int64_t four[4][2] = {{0, 7}, {1, 6}, {2, 5}, {3, 4}};
    static const int64_t sixteen[4][4] = {
        {0, 1, 14, 15}, {2, 3, 12, 13}, {4, 5, 10, 11}, {6, 7, 8, 9}};
    (void)state;
    struct mla_ring_args args = base(2, 2 * T, 2 * T, 4 * T);
    args.is_balanced = 1;
    struct mla_layout layout = mla_layout_of(&args);
    assert_int_equal(layout.mode, MLA_LAYOUT_BALANCED);
    for (int64_t rank = 0; rank < 2; rank++) {
        expect_tiles(&layout, rank, false, two[rank], 2);
        expect_tiles(&layout, rank, true, two[rank], 2);
    }
    args = base(4, 2 * T, 2 * T, 8 * T);
    args.is_balanced = 1;
    layout = mla_layout_of(&args);
    for (int64_t rank = 0; rank < 4; rank++) {
        expect_tiles(&layout, rank, false, four[rank], 2);
    }
    args = base(4, 4 * T, 4 * T, 16 * T);
    args.is_balanced = 1;
    layout = mla_layout_of(&args);
    for (int64_t rank = 0; rank < 4; rank++) {
        expect_tiles(&layout, rank, false, sixteen[rank], 4);
        expect_tiles(&layout, rank, true, sixteen[rank], 4);
    }
}

/* An odd number of tiles: a half is 1.5 tiles. */
static void test_balanced_half_tile(void **state)
{
    struct mla_ring_args args = base(2, 3 * T, 3 * T, 6 * T);
    (void)state;
    args.is_balanced = 1;
    const struct mla_layout layout = mla_layout_of(&args);
    assert_int_equal(mla_layout_query_position(&layout, 0, 47), 47);
    assert_int_equal(mla_layout_query_position(&layout, 0, 48), 144);
    assert_int_equal(mla_layout_query_position(&layout, 0, 95), 191);
    assert_int_equal(mla_layout_query_position(&layout, 1, 0), 48);
    assert_int_equal(mla_layout_query_position(&layout, 1, 48), 96);
    assert_int_equal(mla_layout_query_position(&layout, 1, 95), 143);
}

static void expect_order(int32_t topology, int64_t ring_size, int64_t rank, const int64_t *sources)
{
    struct mla_ring_step steps[MLA_RING_SIZE_MAX];
    struct mla_ring_args args = base(ring_size, T, T, ring_size * T);
    args.topology = topology;
    const struct mla_layout layout = mla_layout_of(&args);
    mla_layout_ring_order(&layout, rank, steps);
    for (int64_t i = 0; i < ring_size; i++) {
        assert_int_equal(steps[i].source, sources[i]);
    }
}

static void test_ring_orders(void **state)
{
    static const int64_t four[4][4] = {{0, 1, 3, 2}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 0, 2, 1}};
    static const int64_t eight_of_0[8] = {0, 1, 7, 2, 6, 3, 5, 4}; /* 0 +1 -1 +2 -2 +3 -3 -4 */
    static const int64_t eight_of_5[8] = {5, 6, 4, 7, 3, 0, 2, 1};
    static const int64_t linear[4][4] = {{0, 1, 2, 3}, {1, 2, 0, 3}, {2, 3, 1, 0}, {3, 2, 1, 0}};
    static const int64_t three[3] = {1, 2, 0};
    static const int64_t two[2] = {1, 0};
    static const int64_t one[1] = {0};
    (void)state;
    for (int64_t rank = 0; rank < 4; rank++) {
        expect_order(MLA_TOPOLOGY_RING, 4, rank, four[rank]);
        expect_order(MLA_TOPOLOGY_LINEAR, 4, rank, linear[rank]);
    }
    expect_order(MLA_TOPOLOGY_RING, 8, 0, eight_of_0);
    expect_order(MLA_TOPOLOGY_RING, 8, 5, eight_of_5);
    expect_order(MLA_TOPOLOGY_RING, 3, 1, three);
    expect_order(MLA_TOPOLOGY_RING, 2, 1, two);
    expect_order(MLA_TOPOLOGY_RING, 1, 0, one);
    expect_order(MLA_TOPOLOGY_LINEAR, 1, 0, one);
}

/* Hops as letters: o own, b backward from the rank after, f forward from the rank before. */
static void expect_hops(int32_t topology, int64_t ring_size, int64_t rank, const char *hops)
{
    struct mla_ring_step steps[MLA_RING_SIZE_MAX];
    struct mla_ring_args args = base(ring_size, T, T, ring_size * T);
    args.topology = topology;
    const struct mla_layout layout = mla_layout_of(&args);
    const int64_t after = rank + 1 == ring_size ? 0 : rank + 1;
    const int64_t before = rank == 0 ? ring_size - 1 : rank - 1;
    mla_layout_ring_order(&layout, rank, steps);
    for (int64_t i = 0; i < ring_size; i++) {
        switch (hops[i]) {
        case 'o':
            assert_int_equal(steps[i].hop, MLA_HOP_OWN);
            assert_int_equal(steps[i].upstream, rank);
            break;
        case 'b':
            assert_int_equal(steps[i].hop, MLA_HOP_BACKWARD);
            assert_int_equal(steps[i].upstream, after);
            break;
        default:
            assert_int_equal(steps[i].hop, MLA_HOP_FORWARD);
            assert_int_equal(steps[i].upstream, before);
        }
    }
}

/* An even ring's last step arrives forward, from the rank before: the odd hop is a forward one. */
static void test_ring_hops(void **state)
{
    static const char *const line_of_four[4] = {"obbb", "obfb", "obff", "offf"};
    (void)state;
    for (int64_t rank = 0; rank < 2; rank++) {
        expect_hops(MLA_TOPOLOGY_RING, 2, rank, "of");
    }
    for (int64_t rank = 0; rank < 4; rank++) {
        expect_hops(MLA_TOPOLOGY_RING, 4, rank, "obff");
        expect_hops(MLA_TOPOLOGY_LINEAR, 4, rank, line_of_four[rank]);
    }
    for (int64_t rank = 0; rank < 5; rank++) {
        expect_hops(MLA_TOPOLOGY_RING, 5, rank, "obfbf");
    }
    for (int64_t rank = 0; rank < 8; rank++) {
        expect_hops(MLA_TOPOLOGY_RING, 8, rank, "obfbfbff");
    }
}

/* Forward ceil((R-1)/2) hops, backward the rest, for every size. */
static void test_ring_hop_counts(void **state)
{
    struct mla_ring_step steps[MLA_RING_SIZE_MAX];
    (void)state;
    for (int64_t size = 1; size <= MLA_RING_SIZE_MAX; size++) {
        const struct mla_ring_args args = base(size, T, T, size * T);
        const struct mla_layout layout = mla_layout_of(&args);
        for (int64_t rank = 0; rank < size; rank++) {
            int64_t hops_n[3] = {0};
            mla_layout_ring_order(&layout, rank, steps);
            for (int64_t i = 0; i < size; i++) {
                hops_n[steps[i].hop]++;
            }
            assert_int_equal(hops_n[MLA_HOP_OWN], 1);
            assert_int_equal(hops_n[MLA_HOP_FORWARD], size % 2 != 0 ? (size - 1) / 2 : size / 2);
            assert_int_equal(hops_n[MLA_HOP_FORWARD] + hops_n[MLA_HOP_BACKWARD], size - 1);
        }
    }
}

/*
 * What the transport relies on: whatever a rank expects from a neighbour, the neighbour either owns
 * or expects itself from its own neighbour in the same direction. On a line nothing wraps round.
 */
static void test_ring_upstream_has_it(void **state)
{
    struct mla_ring_step steps[MLA_RING_SIZE_MAX];
    struct mla_ring_step theirs[MLA_RING_SIZE_MAX];
    (void)state;
    for (int64_t size = 1; size <= MLA_RING_SIZE_MAX; size++) {
        for (int32_t topology = 0; topology <= 1; topology++) {
            struct mla_ring_args args = base(size, T, T, size * T);
            args.topology = topology;
            const struct mla_layout layout = mla_layout_of(&args);
            for (int64_t rank = 0; rank < size; rank++) {
                bool seen[MLA_RING_SIZE_MAX] = {false};
                mla_layout_ring_order(&layout, rank, steps);
                for (int64_t i = 0; i < size; i++) {
                    bool found = i == 0;
                    assert_false(seen[steps[i].source]);
                    seen[steps[i].source] = true;
                    mla_layout_ring_order(&layout, steps[i].upstream, theirs);
                    for (int64_t j = 0; j < size; j++) {
                        found = found || (theirs[j].source == steps[i].source &&
                                          (j == 0 || theirs[j].hop == steps[i].hop));
                    }
                    assert_true(found);
                    if (topology == MLA_TOPOLOGY_LINEAR) {
                        assert_true(llabs(steps[i].upstream - rank) <= 1);
                    }
                }
            }
        }
    }
}

/* The closed form against counting the keys that satisfy the rule, one by one. */
static void expect_prefixes(const struct mla_ring_args *args)
{
    const struct mla_layout layout = mla_layout_of(args);
    for (int64_t rank = 0; rank < args->ring_size; rank++) {
        for (int64_t row = 0; row < args->q_rows; row += 5) {
            const int64_t position = mla_layout_query_position(&layout, rank, row);
            for (int64_t source = 0; source < args->ring_size; source++) {
                int64_t count = 0;
                bool is_prefix = true;
                for (int64_t t = 0; t < args->kv_rows; t++) {
                    const int64_t key = mla_layout_key_position(&layout, source, t);
                    const bool sees = key <= position && key < args->logical_n;
                    is_prefix = is_prefix && (!sees || count == t);
                    count += sees ? 1 : 0;
                }
                assert_true(is_prefix);
                assert_int_equal(mla_layout_visible_rows(&layout, source, position), count);
                if (!mla_layout_step_active(&layout, rank, source)) {
                    assert_int_equal(count, 0);
                }
            }
        }
    }
}

static void test_visible_prefix(void **state)
{
    (void)state;
    for (int64_t size = 1; size <= 5; size++) {
        struct mla_ring_args args = base(size, 3 * T, 3 * T, size * 3 * T);
        args.is_balanced = 1;
        expect_prefixes(&args);
        args.is_balanced = 0;
        for (int64_t n = 1; n <= size * 3 * T; n += 37) {
            args.logical_n = n;
            expect_prefixes(&args);
        }
        args = base(size, 2 * T, 6 * T, 0);
        for (int64_t n = size * 2 * T - 31; n <= size * 6 * T; n += 29) {
            args.logical_n = n;
            expect_prefixes(&args);
        }
        args.has_prior = 1;
        for (int64_t prior = 0; prior < size * 6; prior++) {
            for (int64_t n = 1; n <= size * 2 && prior + n <= size * 6; n += 2) {
                args.kv_actual_isl = prior * T;
                args.logical_n = (prior + n) * T;
                expect_prefixes(&args);
            }
        }
    }
}

static void test_active_steps(void **state)
{
    struct mla_ring_args args = base(4, T, T, 70);
    (void)state;
    struct mla_layout layout = mla_layout_of(&args); /* contiguous: s <= d and s*32 < 70 */
    assert_true(mla_layout_step_active(&layout, 3, 2));
    assert_false(mla_layout_step_active(&layout, 3, 3));
    assert_false(mla_layout_step_active(&layout, 1, 2));
    args = base(4, T, 2 * T, 97);
    layout = mla_layout_of(&args); /* chunked: s*32 < 97 */
    assert_true(mla_layout_step_active(&layout, 0, 3));
    args.logical_n = 96;
    layout = mla_layout_of(&args);
    assert_false(mla_layout_step_active(&layout, 0, 3));
    args = base(4, 2 * T, 2 * T, 8 * T);
    args.is_balanced = 1;
    layout = mla_layout_of(&args);
    assert_true(mla_layout_step_active(&layout, 0, 3));
}

/* With a prior only ceil(L / (R*Nq)) slabs travel; otherwise the whole shard does. */
static void test_moved_rows(void **state)
{
    struct mla_ring_args args = base(2, 2 * T, 8 * T, 6 * T);
    (void)state;
    assert_int_equal(mla_layout_of(&args).moved_rows, 8 * T);
    args.has_prior = 1;
    args.kv_actual_isl = 4 * T;
    assert_int_equal(mla_layout_of(&args).moved_rows, 4 * T);
    args.logical_n = 8 * T;
    assert_int_equal(mla_layout_of(&args).moved_rows, 4 * T);
    args.kv_actual_isl = 8 * T;
    args.logical_n = 9 * T;
    assert_int_equal(mla_layout_of(&args).moved_rows, 6 * T);
    args.kv_actual_isl = 13 * T;
    args.logical_n = 16 * T;
    assert_int_equal(mla_layout_of(&args).moved_rows, 8 * T);
}

static void test_out_columns(void **state)
{
    static const int64_t latents[] = {0, 1, 2, 3, 4, 5, 7, 127, 128, 508, 509, 510, 511};
    static const int64_t columns[] = {0, 128, 256, 384, 1, 129, 385, 415, 32, 127, 255, 383, 511};
    bool hit[512] = {false};
    (void)state;
    for (size_t i = 0; i < sizeof latents / sizeof latents[0]; i++) {
        assert_int_equal(mla_layout_out_column(MLA_OUT_MX4, 512, latents[i]), columns[i]);
        assert_int_equal(mla_layout_out_column(MLA_OUT_NATURAL, 512, latents[i]), latents[i]);
    }
    for (int64_t c = 0; c < 512;
         c++) { /* the inverse: column c holds l = 4*(c mod 128) + c div 128 */
        const int64_t l = 4 * (c % 128) + c / 128;
        assert_int_equal(mla_layout_out_column(MLA_OUT_MX4, 512, l), c);
        hit[l] = true;
    }
    for (int64_t l = 0; l < 512; l++) {
        assert_true(hit[l]);
    }
}

/* tiled[s_tile, t, 16g + j mod 16, j div 16] of an array [.., 16, 128, K/16]. */
static void test_tiled_index(void **state)
{
    static int32_t tiled[2][16][128][8]; /* K = 128, 2 tiles of queries */
    (void)state;
    for (int64_t q = 0; q < 256; q++) {
        for (int64_t j = 0; j < 128; j++) {
            const int32_t *want = &tiled[q / 128][q % 128 / 8][16 * (q % 128 % 8) + j % 16][j / 16];
            assert_int_equal(mla_layout_topk_index(true, 128, q, j), want - &tiled[0][0][0][0]);
            assert_int_equal(mla_layout_topk_index(false, 128, q, j), q * 128 + j);
        }
    }
    /* By hand, K = 256 (16 a line): query 130 = tile 1, block 0, g 2; j = 37 = line 5, column 2. */
    assert_int_equal(mla_layout_topk_index(true, 256, 130, 37), (16 * 128 + 37) * 16 + 2);
    /* Query 9 = block 1, g 1; j = 0: line 16. */
    assert_int_equal(mla_layout_topk_index(true, 256, 9, 0), (128 + 16) * 16);
}

static void test_dense_keys(void **state)
{
    (void)state;
    assert_int_equal(mla_layout_dense_keys(10, 0, 0), 1);
    assert_int_equal(mla_layout_dense_keys(10, 0, 8), 9);
    assert_int_equal(mla_layout_dense_keys(10, 0, 9), 10);
    assert_int_equal(mla_layout_dense_keys(10, 0, 10), 10);
    assert_int_equal(mla_layout_dense_keys(10, 5, 2), 8);
    assert_int_equal(mla_layout_dense_keys(10, INT64_MAX, 3), 10);
    assert_true(mla_layout_index_reached(7, 5, 2));
    assert_false(mla_layout_index_reached(8, 5, 2));
    assert_true(mla_layout_index_reached(INT32_MAX, INT64_MAX, INT32_MAX));
}

static void test_split(void **state)
{
    int64_t next = 0;
    int64_t first;
    int64_t n;
    static const int64_t sizes[4] = {3, 3, 2, 2};
    (void)state;
    for (int64_t part = 0; part < 4; part++) {
        mla_layout_split(10, 4, part, &first, &n);
        assert_int_equal(first, next);
        assert_int_equal(n, sizes[part]);
        next += n;
    }
    assert_int_equal(next, 10);
}

/* Every row is in the part it was given to. */
static void test_part(void **state)
{
    (void)state;
    for (int64_t rows_n = 1; rows_n <= 40; rows_n++) {
        for (int64_t parts_n = 1; parts_n <= rows_n; parts_n++) {
            for (int64_t part = 0; part < parts_n; part++) {
                int64_t first;
                int64_t n;
                mla_layout_split(rows_n, parts_n, part, &first, &n);
                for (int64_t row = first; row < first + n; row++) {
                    assert_int_equal(mla_layout_part(rows_n, parts_n, row), part);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotation_examples),
        cmocka_unit_test(test_rotation_boundary_rank),
        cmocka_unit_test(test_key_map),
        cmocka_unit_test(test_chunked_queries),
        cmocka_unit_test(test_contiguous),
        cmocka_unit_test(test_balanced_halves),
        cmocka_unit_test(test_balanced_half_tile),
        cmocka_unit_test(test_ring_orders),
        cmocka_unit_test(test_ring_hops),
        cmocka_unit_test(test_ring_hop_counts),
        cmocka_unit_test(test_ring_upstream_has_it),
        cmocka_unit_test(test_visible_prefix),
        cmocka_unit_test(test_active_steps),
        cmocka_unit_test(test_moved_rows),
        cmocka_unit_test(test_out_columns),
        cmocka_unit_test(test_tiled_index),
        cmocka_unit_test(test_dense_keys),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_part),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
