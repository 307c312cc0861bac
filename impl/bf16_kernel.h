/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16_kernel.h - the arithmetic model of the kernels that share bf16_step.h.
 *
 * avx512bf16 and avx2 give the same bits, so they declare the same model. It follows bf16_step.h
 * line by line. u = 2^-24, n the keys a row sees, w the width of a key, b the blocks that hold a
 * visible key, B = MLA_STEP_BLOCK.
 *
 *   add_u          u: float32, to nearest; an fma rounds once.
 *   score_depth    A group is a chain of at most 64 fma from zero, the first of them exact: 63
 *                  roundings. The sums of G groups take G - 1 additions, which the first group's
 *                  terms all meet: 62 + G in all. The zero an odd column is paired with rounds
 *                  nothing. Ring: w is a multiple of 32, G = ceil(w/64) <= w/64 + 1/2. Sparse: w =
 *                  512 + rope, G = 8 + ceil(rope/64) <= w/64 + 63/64.
 *   product_u      0: 8 x 8 significant bits fit into 24, and an fma takes the product unrounded.
 *   score_u        0: the score stays float32.
 *   arg_form       ((s - m)*a)*b: difference. Roundings: the subtraction, b (scale*log2(e) in double,
 *                  then float32: less than u, as rounding to nearest errs by u/(1+u) at most),
 *                  the product with b; a is a power of two. 3. Of the underflows there are no
 *                  more than these 3 either: b is normal, and where a is not 1, (s - m)*a may lose
 *                  2^-126, times b < 1.45 (a = 2^-64; in the natural argument times b ln 2 <= 1),
 *                  or cannot underflow (a = 2^64).
 *   exp_error      exp2_bf16.h, with the proof; also exp_slope: exp(0) = 1 exactly, and the factor
 *                  while the maximum stays. exp_floor 2^-126: no larger true value becomes 0.
 *   p_u            2^-8: to nearest bf16. p_frame: the running maximum over the blocks, the block's
 *                  own keys included. sum_rounded 1: the sum adds the rounded p.
 *   rescales       b - 1: one factor for each block after the row's first, which only sets the
 *                  state; the same for O and l, alpha_u = rescale_scale_u = 0.
 *   acc_depth      of O: a block's chain of n' <= min(n, B) fma starts at zero, the first is exact:
 *                  n' - 1 roundings. The first block's keys then meet one fma, alpha*out + chain,
 *                  for each later block: n' - 1 + b - 1. Those of block j > 1 meet their own and b - j
 *                  more: n' - 1 + 1 + b - j, no more than that. min(n, B) + b - 2 in all. Of l: the
 *                  four parts take ceil(n'/4) - 1 additions, then two joining them, of which those
 *                  with an empty part are exact: no more than n' - 1.
 *   acc_u          0: float32. pv_product_u 0: bf16 times bf16.
 *   div_roundings  1: one division; then the output is rounded to bf16.
 *   flush          1: subnormal operands and results are zero. Not the scale itself, which is
 *                  multiplied before, nor the stored output.
 *   stats_max      scale*m, rounded once: the shift scaled anew.
 *   weights_ignore_v  1: V is read only as a factor of finished weights.
 *
 * Blocks: MLA_STEP_BLOCK keys; ring: of each shard, whatever the call's K chunk (shard_block_keys);
 * sparse: of the keys that are left when q_pos_offset has dropped its own.
 */
#ifndef MLA_IMPL_BF16_KERNEL_H
#define MLA_IMPL_BF16_KERNEL_H

/*
 * Keys of a block, mla_attend.block_keys. A block of 256 with the next one on its way and the state of
 * 128 rows is more than a second-level cache of 1 MiB holds; fewer than 128 update out too often.
 */
#define MLA_STEP_BLOCK 128

/* What both operations' models have in common; score_depth and the blocks are theirs. */
#define MLA_BF16_MODEL(score_rest, own_block, shard_block)                                         \
    {                                                                                              \
        .add_u = 0x1p-24, .score_depth = {.constant = 62 + (score_rest), .per_width = 1.0 / 64},   \
        .arg_form = MLA_ARG_DIFFERENCE, .arg_roundings = 3, .exp_error = MLA_EXP2_BF16_ERROR,      \
        .exp_floor = MLA_EXP2_BF16_FLOOR, .exp_slope = MLA_EXP2_BF16_SLOPE, .p_u = 0x1p-8,         \
        .p_frame = MLA_P_FRAME_BLOCKS, .p_block_keys = (own_block), .sum_rounded = 1,              \
        .rescales = {.constant = -1, .per_block = 1, .block_keys = (own_block)},                   \
        .acc_depth = {.constant = -2,                                                              \
                      .per_key = 1,                                                                \
                      .per_block = 1,                                                              \
                      .block_keys = (own_block),                                                   \
                      .most_keys = MLA_STEP_BLOCK},                                                \
        .div_roundings = 1, .flush = 1, .out_round = MLA_OUT_NEAREST,                              \
        .stats_max = MLA_STATS_ROUNDED, .weights_ignore_v = 1, .shard_block_keys = (shard_block),  \
    }

#define MLA_BF16_RING_MODEL   MLA_BF16_MODEL(1.0 / 2, 0, MLA_STEP_BLOCK)
#define MLA_BF16_SPARSE_MODEL MLA_BF16_MODEL(63.0 / 64, MLA_STEP_BLOCK, 0)

#endif
