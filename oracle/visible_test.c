/* SPDX-License-Identifier: Apache-2.0
 *
 * visible_test.c - position maps and visible keys against tables written out by hand.
 *
 * Tables are in tiles of 32 rows: entry p stands for the positions 32 p .. 32 p + 31, -1 for a pad
 * tile.
 */
#include "oracle/visible.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TILES_MAX 8

/* Everything but the row counts: the position maps read no tensor. All figures in tiles. */
static struct mla_ring_args tiles(int64_t ring_size, int64_t q_tiles, int64_t kv_tiles,
                                  int64_t logical_tiles)
{
    return (struct mla_ring_args){.ring_size = ring_size,
                                  .q_rows = 32 * q_tiles,
                                  .kv_rows = 32 * kv_tiles,
                                  .logical_n = 32 * logical_tiles};
}

static void check_queries(const struct mla_ring_args *args, int64_t rank, const int64_t *want)
{
    for (int64_t r = 0; r < args->q_rows; r++) {
        const int64_t tile = want[r / 32];
        const int64_t position = tile < 0 ? -1 : 32 * tile + r % 32;

        assert_int_equal(mla_oracle_query_position(args, rank, r), position);
    }
}

static void check_keys(const struct mla_ring_args *args, int64_t rank, const int64_t *want)
{
    for (int64_t r = 0; r < args->kv_rows; r++) {
        assert_int_equal(mla_oracle_key_position(args, rank, r), 32 * want[r / 32] + r % 32);
    }
}

struct packed {
    int64_t ring_size;
    int64_t q_tiles;
    int64_t prior;
    int64_t logical;
    int64_t want[4][TILES_MAX];
};

static const struct packed packed_lines[] = {
    {2, 4, 6, 13, {{8, 9, 10, 11}, {6, 7, 12, -1}}},
    {2, 4, 6, 14, {{8, 9, 10, 11}, {6, 7, 12, 13}}},
    {2, 4, 0, 8, {{0, 1, 2, 3}, {4, 5, 6, 7}}},
    {4, 2, 5, 11, {{8, 9}, {10, -1}, {5, -1}, {6, 7}}},
    {4, 2, 5, 13, {{8, 9}, {10, 11}, {5, 12}, {6, 7}}},
    {4, 2, 0, 3, {{0, 1}, {2, -1}, {-1, -1}, {-1, -1}}},
    {4, 2, 3, 5, {{-1, -1}, {3, -1}, {4, -1}, {-1, -1}}},
    {4, 2, 8, 10, {{8, 9}, {-1, -1}, {-1, -1}, {-1, -1}}},
    {4, 2, 15, 17, {{16, -1}, {-1, -1}, {-1, -1}, {15, -1}}},
};

static void prior_queries(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof packed_lines / sizeof packed_lines[0]; i++) {
        const struct packed *line = &packed_lines[i];
        struct mla_ring_args args =
            tiles(line->ring_size, line->q_tiles, 6 * line->q_tiles, line->logical);

        args.has_prior = 1;
        args.kv_actual_isl = 32 * line->prior;
        for (int64_t d = 0; d < line->ring_size; d++) {
            check_queries(&args, d, line->want[d]);
        }
    }
}

static void block_cyclic_keys(void **state)
{
    static const int64_t want[4][6] = {{0, 1, 8, 9, 16, 17},
                                       {2, 3, 10, 11, 18, 19},
                                       {4, 5, 12, 13, 20, 21},
                                       {6, 7, 14, 15, 22, 23}};
    const struct mla_ring_args args = tiles(4, 2, 6, 24);

    (void)state;
    for (int64_t d = 0; d < 4; d++) {
        check_keys(&args, d, want[d]);
    }
}

static void balanced_rows(void **state)
{
    static const int64_t four[4][4] = {
        {0, 1, 14, 15}, {2, 3, 12, 13}, {4, 5, 10, 11}, {6, 7, 8, 9}};
    static const int64_t two[2][2] = {{0, 3}, {1, 2}};
    struct mla_ring_args args = tiles(4, 4, 4, 16);

    (void)state;
    args.is_balanced = 1;
    for (int64_t d = 0; d < 4; d++) {
        check_queries(&args, d, four[d]);
        check_keys(&args, d, four[d]);
    }
    args = tiles(2, 2, 2, 4);
    args.is_balanced = 1;
    for (int64_t d = 0; d < 2; d++) {
        check_queries(&args, d, two[d]);
        check_keys(&args, d, two[d]);
    }
}

static void contiguous_and_last_chunk(void **state)
{
    static const int64_t full[3][2] = {{0, 1}, {2, 3}, {4, 5}};
    static const int64_t last[2][2] = {{3, 4}, {5, 6}};
    struct mla_ring_args args = tiles(3, 2, 2, 6);

    (void)state;
    for (int64_t d = 0; d < 3; d++) {
        check_queries(&args, d, full[d]);
        check_keys(&args, d, full[d]);
    }
    args = tiles(2, 2, 6, 7);
    args.logical_n -= 5; /* rounded up to 7 tiles again */
    for (int64_t d = 0; d < 2; d++) {
        check_queries(&args, d, last[d]);
    }
}

/* Row 40 of rank 1 of a contiguous ring of 3 x 64 is position 104; keys end at logical_n. */
static void contiguous_visible(void **state)
{
    struct mla_ring_args args = tiles(3, 2, 2, 6);
    struct mla_oracle_visible visible;

    (void)state;
    assert_int_equal(mla_oracle_visible_ring(&args, 1, 40, &visible), MLA_OK);
    assert_false(visible.is_pad);
    assert_int_equal(visible.position, 104);
    assert_int_equal(visible.keys_n, 105);
    assert_int_equal(visible.shard_n[0], 64);
    assert_int_equal(visible.shard_n[1], 41);
    assert_int_equal(visible.shard_n[2], 0);
    assert_int_equal(visible.keys[63].source, 0);
    assert_int_equal(visible.keys[63].row, 63);
    assert_int_equal(visible.keys[104].source, 1);
    assert_int_equal(visible.keys[104].row, 40);
    mla_oracle_visible_free(&visible);

    args.logical_n = 70; /* a query beyond the end sees all valid keys */
    assert_int_equal(mla_oracle_visible_ring(&args, 2, 63, &visible), MLA_OK);
    assert_int_equal(visible.keys_n, 70);
    assert_int_equal(visible.shard_n[1], 6);
    mla_oracle_visible_free(&visible);
}

/*
 * Ring of 2, slabs of 1 tile, prior 1 tile, 3 tiles in all: rank 0 holds token tile 2, rank 1
 * tile 1. Row 3 of rank 0 is position 67: it sees rank 0's tile 0 and 4 rows of its second slab,
 * rank 1's tile 1 whole; rank 1's second slab (tile 3) lies beyond the end.
 */
static void prior_visible(void **state)
{
    struct mla_ring_args args = tiles(2, 1, 2, 3);
    struct mla_oracle_visible visible;

    (void)state;
    args.has_prior = 1;
    args.kv_actual_isl = 32;
    assert_int_equal(mla_oracle_visible_ring(&args, 0, 3, &visible), MLA_OK);
    assert_int_equal(visible.position, 67);
    assert_int_equal(visible.shard_n[0], 36);
    assert_int_equal(visible.shard_n[1], 32);
    assert_int_equal(visible.keys[35].row, 35);
    assert_int_equal(visible.keys[36].source, 1);
    mla_oracle_visible_free(&visible);

    args.logical_n = 64; /* only tile 1 is new: rank 0 has nothing to do */
    assert_int_equal(mla_oracle_visible_ring(&args, 0, 0, &visible), MLA_OK);
    assert_true(visible.is_pad);
    assert_int_equal(visible.keys_n, 0);
    mla_oracle_visible_free(&visible);
}

/* In the zig-zag of 2 x 2 tiles, rank 0's row 33 is position 97, rank 1's row 32 position 64. */
static void balanced_visible(void **state)
{
    struct mla_ring_args args = tiles(2, 2, 2, 4);
    struct mla_oracle_visible visible;

    (void)state;
    args.is_balanced = 1;
    assert_int_equal(mla_oracle_visible_ring(&args, 0, 33, &visible), MLA_OK);
    assert_int_equal(visible.position, 97);
    assert_int_equal(visible.shard_n[0], 34);
    assert_int_equal(visible.shard_n[1], 64);
    mla_oracle_visible_free(&visible);
    assert_int_equal(mla_oracle_visible_ring(&args, 1, 32, &visible), MLA_OK);
    assert_int_equal(visible.position, 64);
    assert_int_equal(visible.shard_n[0], 32);
    assert_int_equal(visible.shard_n[1], 33);
    mla_oracle_visible_free(&visible);
}

static void expect_sparse(const struct mla_sparse_args *args, int64_t row, const int64_t *want,
                          int64_t want_n)
{
    struct mla_oracle_visible visible;

    assert_int_equal(mla_oracle_visible_sparse(args, row, &visible), MLA_OK);
    assert_int_equal(visible.keys_n, want_n);
    for (int64_t j = 0; j < want_n; j++) {
        assert_int_equal(visible.keys[j].row, want[j]);
    }
    mla_oracle_visible_free(&visible);
}

static void sparse_lists(void **state)
{
    static int32_t flat[2 * 128];
    int64_t want[128];
    struct mla_sparse_args args = {.queries = 2, .keys = 1000, .topk = 128, .topk_indices = flat};

    (void)state;
    for (int j = 0; j < 128; j++) {
        flat[128 + j] = j < 100 ? 7 * j : 3; /* 28 copies more of row 3 */
        want[j] = flat[128 + j];
    }
    expect_sparse(&args, 1, want, 128);
    args.has_q_pos_offset = 1;
    args.q_pos_offset = 13; /* row 1: indices above 14 are dropped; 0, 7, 14 and the copies stay */
    for (int j = 3; j < 31; j++) {
        want[j] = 3;
    }
    expect_sparse(&args, 1, want, 31);
    args.q_pos_offset = INT64_MAX; /* offset + row would wrap */
    for (int j = 0; j < 128; j++) {
        want[j] = flat[128 + j];
    }
    expect_sparse(&args, 1, want, 128);
    flat[0] = 1;
    for (int j = 1; j < 128; j++) {
        flat[j] = 900;
    }
    args.q_pos_offset = 0; /* row 0: nothing is left */
    expect_sparse(&args, 0, want, 0);
}

/*
 * Query 130, topk 256: tile 1, in-tile row 2, block 1*16 + 0, sub-rows 32 .. 47. Entry 35 is
 * sub-row 32 + 3, column 2: element ((16)*128 + 35)*16 + 2.
 */
static void sparse_tiled(void **state)
{
    const size_t entries_n = 2u * 16 * 128 * 16;
    int32_t *tiled = calloc(entries_n, sizeof *tiled);
    int64_t want[256] = {0};
    const struct mla_sparse_args args = {
        .queries = 131, .keys = 1000, .topk = 256, .topk_tiled = 1, .topk_indices = tiled};

    (void)state;
    assert_non_null(tiled);
    tiled[(16 * 128 + 35) * 16 + 2] = 777;
    tiled[(16 * 128 + 32) * 16] = 11;
    tiled[(16 * 128 + 47) * 16 + 15] = 22;
    want[35] = 777;
    want[0] = 11;
    want[255] = 22;
    expect_sparse(&args, 130, want, 256);
    free(tiled);
}

static void sparse_dense(void **state)
{
    static const int64_t want[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct mla_sparse_args args = {.queries = 20, .keys = 10, .dense = 1};

    (void)state;
    expect_sparse(&args, 0, want, 1);
    expect_sparse(&args, 4, want, 5);
    expect_sparse(&args, 19, want, 10);
    args.has_q_pos_offset = 1;
    args.q_pos_offset = 3;
    expect_sparse(&args, 0, want, 4);
    args.has_q_pos_offset = 0; /* absent: offset 0 whatever the field holds */
    expect_sparse(&args, 0, want, 1);
}

/* Shards in the order the schedule brings them, by the document's examples and by hand. */
static void visiting_orders(void **state)
{
    static const struct {
        int64_t ring_size;
        int64_t rank;
        int32_t topology;
        int64_t want[8];
    } lines[] = {
        {1, 0, MLA_TOPOLOGY_RING, {0}},
        {1, 0, MLA_TOPOLOGY_LINEAR, {0}},
        {2, 0, MLA_TOPOLOGY_RING, {0, 1}},
        {2, 1, MLA_TOPOLOGY_LINEAR, {1, 0}},
        {3, 1, MLA_TOPOLOGY_RING, {1, 2, 0}},
        {4, 0, MLA_TOPOLOGY_RING, {0, 1, 3, 2}},
        {4, 1, MLA_TOPOLOGY_RING, {1, 2, 0, 3}},
        {4, 2, MLA_TOPOLOGY_RING, {2, 3, 1, 0}},
        {4, 3, MLA_TOPOLOGY_RING, {3, 0, 2, 1}},
        {8, 0, MLA_TOPOLOGY_RING, {0, 1, 7, 2, 6, 3, 5, 4}},
        {8, 5, MLA_TOPOLOGY_RING, {5, 6, 4, 7, 3, 0, 2, 1}},
        {4, 0, MLA_TOPOLOGY_LINEAR, {0, 1, 2, 3}},
        {4, 1, MLA_TOPOLOGY_LINEAR, {1, 2, 0, 3}},
        {4, 2, MLA_TOPOLOGY_LINEAR, {2, 3, 1, 0}},
        {4, 3, MLA_TOPOLOGY_LINEAR, {3, 2, 1, 0}},
        {6, 1, MLA_TOPOLOGY_LINEAR, {1, 2, 0, 3, 4, 5}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const struct mla_ring_args args = {.ring_size = lines[i].ring_size,
                                           .topology = lines[i].topology};
        int64_t order[MLA_RING_SIZE_MAX];

        mla_oracle_visiting_order(&args, lines[i].rank, order);
        for (int64_t k = 0; k < lines[i].ring_size; k++) {
            assert_int_equal(order[k], lines[i].want[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(visiting_orders),
        cmocka_unit_test(prior_queries),
        cmocka_unit_test(block_cyclic_keys),
        cmocka_unit_test(balanced_rows),
        cmocka_unit_test(contiguous_and_last_chunk),
        cmocka_unit_test(contiguous_visible),
        cmocka_unit_test(prior_visible),
        cmocka_unit_test(balanced_visible),
        cmocka_unit_test(sparse_lists),
        cmocka_unit_test(sparse_tiled),
        cmocka_unit_test(sparse_dense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
