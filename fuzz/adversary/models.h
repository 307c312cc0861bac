/* SPDX-License-Identifier: Apache-2.0
 *
 * models.h - parts of arithmetic models: fragments of an initialiser of struct mla_model.
 *
 * Counts as attend.c makes them: n keys, b blocks, one product and n - 1 additions, b - 1 rescales,
 * P - 1 merges.
 */
#ifndef MLA_ADVERSARY_MODELS_H
#define MLA_ADVERSARY_MODELS_H

#include "fuzz/adversary/adversary.h"

/* Everything but refusals, which adversaries do not know. */
#define MLA_ADVERSARY_PROMISES                                                                     \
    (MLA_PROMISE_PAD_ZERO | MLA_PROMISE_STATS | MLA_PROMISE_NO_FUTURE_LEAK |                       \
     MLA_PROMISE_SCRATCH_UNTOUCHED | MLA_PROMISE_BIT_REPEAT | MLA_PROMISE_BIT_THREADS)

#define MLA_ADVERSARY_CHUNKED .block_keys = MLA_ADVERSARY_CHUNKS

#define MLA_MODEL_BF16 0x1p-8 /* to nearest */
#define MLA_MODEL_CUT  0x1p-7 /* toward zero */

/* Binary32 to nearest; the exponential within a last place. */
#define MLA_MODEL_UNIT(u, roundings, stats, floor)                                                 \
    .add_u = (u), .arg_roundings = (roundings), .exp_floor = (floor), .div_roundings = 1,          \
    .stats_max = (stats)
#define MLA_MODEL_FLOAT32                                                                          \
    MLA_MODEL_UNIT(0x1p-24, 2, MLA_STATS_ROUNDED, 0x1p-126), .exp_error = 0x1p-23
/* One rounding more: scale*log2(e) is a rounded constant. */
#define MLA_MODEL_FLOAT32_LOG2                                                                     \
    MLA_MODEL_UNIT(0x1p-24, 3, MLA_STATS_ROUNDED, 0x1p-126), .exp_error = 0x1p-23
#define MLA_MODEL_FLOAT32_KEPT_SHIFT                                                               \
    MLA_MODEL_UNIT(0x1p-24, 2, MLA_STATS_SHIFT, 0x1p-126), .exp_error = 0x1p-23
#define MLA_MODEL_FLOAT32_OTHER_MAX                                                                \
    MLA_MODEL_UNIT(0x1p-24, 2, MLA_STATS_OTHER, 0x1p-126), .exp_error = 0x1p-23
#define MLA_MODEL_CUTTING_UNIT                                                                     \
    MLA_MODEL_UNIT(0x1p-23, 2, MLA_STATS_ROUNDED, 0x1p-126), .exp_error = 0x1p-22
/* So many bits, and zero from 2^-20 down. */
#define MLA_MODEL_ROUGH_EXP(error)                                                                 \
    MLA_MODEL_UNIT(0x1p-24, 2, MLA_STATS_ROUNDED, 0x1p-20), .exp_error = (error)

/* Scores of w columns. The first addition is to zero. Sixteen lanes: ceil(w/16) - 1 additions and
 * 4 levels; pairwise: up to 1024 columns. */
#define MLA_MODEL_SEQUENTIAL_SCORE .score_depth = {.constant = -1, .per_width = 1}
#define MLA_MODEL_LANES_SCORE      .score_depth = {.constant = 3.9375, .per_width = 0.0625}
#define MLA_MODEL_TREE_SCORE       .score_depth = {.constant = 10}

/* One pass over all keys, the shift known. */
#define MLA_MODEL_TWO_PASS .acc_depth = {.per_key = 1}
/* Blocks of so many keys (0: the call's chunks), and so many merges. */
#define MLA_MODEL_BLOCKS(keys, merges)                                                             \
    .rescales = {.constant = (merges)-1, .per_block = 1, .block_keys = (keys)},                    \
    .acc_depth = {.constant = (merges)-1, .per_key = 1, .per_block = 1, .block_keys = (keys)}
/* A product, 5 levels within a block, an addition for each further block and its rescale. */
#define MLA_MODEL_PAIRWISE_BLOCKS_OF_32                                                            \
    .rescales = {.constant = -1, .per_block = 1, .block_keys = 32},                                \
    .acc_depth = {.constant = 4, .per_block = 2, .block_keys = 32}
/*
 * Blocks of at most `most` keys, each summed from nothing by fused multiply-adds: n_b keys round
 * n_b - 1 times, and adding a block to what is held rounds once, rescale and all, but not for the
 * first. With b blocks n_b - 1 + b - 1 at most, and `more` for what is said there.
 */
#define MLA_MODEL_RESTARTS(keys, most, more)                                                       \
    .rescales = {.constant = -1, .per_block = 1, .block_keys = (keys)},                            \
    .acc_depth = {.constant = (more)-2,                                                            \
                  .per_key = 1,                                                                    \
                  .per_block = 1,                                                                  \
                  .block_keys = (keys),                                                            \
                  .most_keys = (most)}
/* As a fast block kernel: bf16 P in the frames of blocks of 48 (keys 0: of 48 rows of a shard, with
 * shard_block_keys), each block summed anew. Sums of bf16 numbers need no rounding more for l. */
#define MLA_MODEL_OWN_BLOCKS(keys)                                                                 \
    MLA_MODEL_FLOAT32_LOG2, MLA_MODEL_SEQUENTIAL_SCORE,                                            \
        .p_u = MLA_MODEL_BF16, .p_frame = MLA_P_FRAME_BLOCKS, .p_block_keys = (keys),              \
        .sum_rounded = 1, .flush = 1, MLA_MODEL_RESTARTS(keys, 48, 0)
/* Accumulators stored after each block, and after each rescale. */
#define MLA_MODEL_STORES(keys) .acc_extra = {.constant = -1, .per_block = 2, .block_keys = (keys)}

/* The blocks of 8 of `online`, four times as coarse. */
#define MLA_MODEL_COARSE_SUMS                                                                      \
    MLA_MODEL_UNIT(0x1p-22, 2, MLA_STATS_ROUNDED, 0x1p-126),                                       \
        .exp_error = 0x1p-23, MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(8, 0)

/* bf16 wherever something is stored, a rough exponential, a cut scale in the rescale. */
#define MLA_MODEL_BF16_ALL                                                                         \
    .add_u = 0x1p-24, .arg_roundings = 2, .exp_error = 0x1p-7, .exp_floor = 0x1p-126,              \
    .div_roundings = 2, .stats_max = MLA_STATS_ROUNDED, MLA_MODEL_SEQUENTIAL_SCORE,                \
    .score_u = MLA_MODEL_BF16, .p_u = MLA_MODEL_BF16, .sum_rounded = 1, .alpha_u = MLA_MODEL_BF16, \
    .rescale_scale_u = MLA_MODEL_CUT, .acc_u = MLA_MODEL_BF16

#endif
