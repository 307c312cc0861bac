/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_models.h - the arithmetic of the other honest methods, each as far as it differs from
 * MLA_PLAIN_ONLINE (plain.h, which includes this). u = 2^-24.
 */
#ifndef MLA_FAULTS_PLAIN_MODELS_H
#define MLA_FAULTS_PLAIN_MODELS_H

/* Rows are independent: in which order they are made changes nothing. */
#define MLA_PLAIN_ROWS_REVERSED_RING_MODEL   MLA_PLAIN_ONLINE_RING_MODEL
#define MLA_PLAIN_ROWS_REVERSED_SPARSE_MODEL MLA_PLAIN_ONLINE_SPARSE_MODEL

/* 32 keys of the row's list a tile, across the edges of shards: ceil(keys / 32) tiles. */
#define MLA_PLAIN_TILES_32_RING_MODEL   MLA_PLAIN_ONLINE_MODEL(32)
#define MLA_PLAIN_TILES_32_SPARSE_MODEL MLA_PLAIN_ONLINE_MODEL(32)

/* What all that follows share with ONLINE. */
#define MLA_PLAIN_SHARED                                                                           \
    .add_u = 0x1p-24, .arg_form = MLA_ARG_DIFFERENCE, .p_frame = MLA_P_FRAME_UNKNOWN,              \
    .sum_rounded = 1, .div_roundings = 1, .out_round = MLA_OUT_NEAREST, .weights_ignore_v = 1
#define MLA_PLAIN_SEQUENTIAL_SCORE .score_depth = {.per_width = 1.0}
#define MLA_PLAIN_SHARED_EXP                                                                       \
    .arg_roundings = 2, .exp_error = 0x1p-22, .exp_floor = 0x1p-149, .stats_max = MLA_STATS_ROUNDED

/*
 * MLA_PLAIN_ONE_TILE, MLA_PLAIN_TWO_PASS_FLOAT
 *
 *   rescale    none: the one factor there is (ONE_TILE) multiplies sums that are 0.
 *   O and l    the product 1 rounding, one addition a key; l has no product.
 */
#define MLA_PLAIN_SINGLE_MODEL                                                                     \
    {                                                                                              \
        MLA_PLAIN_SHARED, MLA_PLAIN_SHARED_EXP, MLA_PLAIN_SEQUENTIAL_SCORE, .acc_depth = {         \
            .constant = 1.0,                                                                       \
            .per_key = 1.0                                                                         \
        }                                                                                          \
    }
#define MLA_PLAIN_ONE_TILE_RING_MODEL         MLA_PLAIN_SINGLE_MODEL
#define MLA_PLAIN_ONE_TILE_SPARSE_MODEL       MLA_PLAIN_SINGLE_MODEL
#define MLA_PLAIN_TWO_PASS_FLOAT_RING_MODEL   MLA_PLAIN_SINGLE_MODEL
#define MLA_PLAIN_TWO_PASS_FLOAT_SPARSE_MODEL MLA_PLAIN_SINGLE_MODEL

/*
 * MLA_PLAIN_BF16_SUMS
 *
 *   O and l    as ONLINE within a tile; when its keys are added each is rounded once to nearest
 *              bf16: acc_u 2^-8, once a tile that holds a key of the row.
 */
#define MLA_PLAIN_BF16_SUMS_MODEL(tile_keys)                                                       \
    {                                                                                              \
        MLA_PLAIN_SHARED, MLA_PLAIN_SHARED_EXP, MLA_PLAIN_SEQUENTIAL_SCORE,                        \
            .acc_u = 0x1p-8, .acc_extra = {.per_block = 1.0, .block_keys = (tile_keys)},           \
            .rescales = {.per_block = 1.0, .block_keys = (tile_keys)}, .acc_depth = {              \
                .constant = 1.0,                                                                   \
                .per_key = 1.0,                                                                    \
                .per_block = 1.0,                                                                  \
                .block_keys = (tile_keys)                                                          \
            }                                                                                      \
    }
#define MLA_PLAIN_BF16_SUMS_RING_MODEL   MLA_PLAIN_BF16_SUMS_MODEL(0)
#define MLA_PLAIN_BF16_SUMS_SPARSE_MODEL MLA_PLAIN_BF16_SUMS_MODEL(MLA_PLAIN_SPARSE_TILE)

/*
 * MLA_PLAIN_TWO_PASS_ROUNDED
 *
 *   p          expf((s - max) * scale), rounded to nearest bf16; O and l both use that. Subnormal p
 *              as in TWO_PASS: exp_floor 2^-126.
 *   rescale    none.
 *   O and l    bf16 x bf16 is exact: one addition a key, nothing else.
 */
#define MLA_PLAIN_TWO_PASS_ROUNDED_MODEL                                                           \
    {                                                                                              \
        MLA_PLAIN_SEQUENTIAL_SCORE,                                                                \
            .add_u = 0x1p-24, .arg_form = MLA_ARG_DIFFERENCE, .arg_roundings = 2,                  \
            .exp_error = 0x1p-22, .exp_floor = 0x1p-126, .p_u = 0x1p-8,                            \
            .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1, .acc_depth = {.per_key = 1.0},           \
            .div_roundings = 1, .out_round = MLA_OUT_NEAREST, .stats_max = MLA_STATS_ROUNDED,      \
            .weights_ignore_v = 1                                                                  \
    }
#define MLA_PLAIN_TWO_PASS_ROUNDED_RING_MODEL   MLA_PLAIN_TWO_PASS_ROUNDED_MODEL
#define MLA_PLAIN_TWO_PASS_ROUNDED_SPARSE_MODEL MLA_PLAIN_TWO_PASS_ROUNDED_MODEL

/*
 * MLA_PLAIN_LOWER_SHIFT: p = expf((s - m)*scale + 0.5), as TWO_PASS_FLOAT else
 *
 *   argument   d = (s - m)*scale has 2 roundings, d + 0.5 a third of at most u (|d| + 0.5). Three
 *              roundings of |d| are declared; u/2 = 2^-25 is left over.
 *   expf       2^-22 relative, and the 2^-25 above: (1 + 2^-22) e^(2^-25) - 1 < 2^-21. Declared
 *              2^-20.
 *   p          at most e^0.5: sums stay in range where sum |v| <= FLT_MAX/2, since e^0.5 / 2 < 0.83.
 *              Losses by underflow are absolute, and weigh less in a larger frame.
 *   stats      max*scale - 0.5, two roundings, with an error of 2u |max*scale| + u/2 at most: below
 *              the maximum, so only max + log(sum) is judged; u/2 is far less than what exp_error
 *              leaves to it.
 */
#define MLA_PLAIN_LOWER_SHIFT_MODEL                                                                \
    {                                                                                              \
        MLA_PLAIN_SHARED, MLA_PLAIN_SEQUENTIAL_SCORE, .arg_roundings = 3, .exp_error = 0x1p-20,    \
                                                      .exp_floor = 0x1p-149,                       \
                                                      .stats_max = MLA_STATS_OTHER, .acc_depth = { \
                                                          .constant = 1.0,                         \
                                                          .per_key = 1.0                           \
                                                      }                                            \
    }
#define MLA_PLAIN_LOWER_SHIFT_RING_MODEL   MLA_PLAIN_LOWER_SHIFT_MODEL
#define MLA_PLAIN_LOWER_SHIFT_SPARSE_MODEL MLA_PLAIN_LOWER_SHIFT_MODEL

/*
 * MLA_PLAIN_BLOCKED
 *
 *   score      8 lanes of at most width/8 + 1 products, the first added to 0: width/8 roundings;
 *              then 3 levels of pairs. Declared one more.
 *   O and l    a part of 16 keys starts from 0: a product, and an addition a key; each part is then
 *              added to what is held, ceil(keys/16) times. No rescale.
 */
#define MLA_PLAIN_BLOCKED_PART 16
#define MLA_PLAIN_BLOCKED_MODEL                                                                    \
    {                                                                                              \
        MLA_PLAIN_SHARED, MLA_PLAIN_SHARED_EXP,                                                    \
            .score_depth = {.constant = 4.0, .per_width = 0.125}, .acc_depth = {                   \
                .constant = 1.0,                                                                   \
                .per_key = 1.0,                                                                    \
                .per_block = 1.0,                                                                  \
                .block_keys = MLA_PLAIN_BLOCKED_PART,                                              \
                .most_keys = MLA_PLAIN_BLOCKED_PART                                                \
            }                                                                                      \
    }
#define MLA_PLAIN_BLOCKED_RING_MODEL   MLA_PLAIN_BLOCKED_MODEL
#define MLA_PLAIN_BLOCKED_SPARSE_MODEL MLA_PLAIN_BLOCKED_MODEL

#endif
