/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_ttnn.c - the descriptor of emulate-ttnn: promises and arithmetic model.
 *
 * The model follows attend_ttnn.c and serial.h line by line. u = 2^-24, n the keys a row sees, w
 * the width of a key, b the blocks that hold a visible key.
 *
 *   add_u          u: what is not rounded to bf16 is float32, to nearest, no contraction.
 *   score_depth    w - 1: one sum of w products, the first addition is to zero and exact.
 *   product_u      0: 8 x 8 significant bits fit into 24.
 *   score_u        2^-8: the finished score is rounded to nearest bf16, 8 significant bits.
 *   arg_form       s - m, then times the scale: difference, 2 roundings. m is the largest rounded
 *                  score so far, unscaled; a selection rounds nothing. Differences of computed
 *                  scores are never positive.
 *   exp_error      exp_rough.h, with the derivation; of weights and factors. exp_floor 2^-126,
 *                  what it returns as 0. exp(0) = 1 exactly, and 1 is a bf16: no rescale while the
 *                  maximum stays. exp_slope: the same file.
 *   p_u            2^-8: to nearest bf16. p_frame: the running maximum over the blocks, the
 *                  block's own keys included. sum_rounded 1: the sum adds the rounded p.
 *   rescales       b - 1: at most one for each block after the row's first, which only sets the
 *                  state. alpha_u 2^-8: the factor is rounded to bf16; sums and out share it.
 *   rescale_scale_u  2^-7: the scale in a factor is cut to 8 significant bits, by less than the
 *                  last of them; a subnormal scale is not cut.
 *   acc_depth      Float32 operations between p*v, which is exact, and the finished out: the first
 *                  block's additions, then for each later block a product with the factor and an
 *                  addition. The first of a block's additions is to zero, the first block's addition
 *                  to what was before too, and every further one adds a key to a sum that holds
 *                  others: n - 1 additions at most, whichever way the keys fall into blocks,
 *                  and b - 1 products: n + b - 2. A partial sum meets the same, and then the additions
 *                  of the 32 classes: those of two that are not 0 join sums of different keys, so
 *                  the n - 1 hold for all of them. This is the ring's. Sparse: blocks have 128 keys
 *                  at most, so a path has 127 additions in its own block and a product and an
 *                  addition in each later one: 127 + 2 (b - 1), less than n + b - 2 for all but
 *                  short rows. For a partial sum it is 3 additions, 2 (b - 1), and 5 for the classes.
 *   acc_u          2^-8, acc_extra b: out and every partial sum are rounded to nearest bf16 once in
 *                  each block with a visible key, the first included. The added-up sum is not.
 *   acc_stores     BLOCKS: that store is alpha*out + the block's p*v, rounded whole; the same of every
 *                  partial sum.
 *   pv_product_u   0: bf16 times bf16.
 *   div_roundings  2: the reciprocal of the sum, correctly rounded, and a product; then bf16.
 *   flush          0: subnormals are kept (fpenv.h).
 *   stats_max      scale*m, rounded once: the shift scaled anew.
 *   weights_ignore_v  1: V is read only as a factor of finished weights.
 *
 * So a row of more than 177 blocks cannot be judged: (1 + 2^-8)^178 > 2, the bound on what storing
 * in bf16 may do to the sums exceeds the sums.
 *
 * Blocks: ring, the call's K chunks, counted per shard (block_keys 0); sparse, MLA_SPARSE_BLOCK of
 * the keys that are left when q_pos_offset has dropped its own.
 */
#include "impl/attend.h"
#include "impl/exp_rough.h"
#include "impl/kernels.h"
#include "impl/ring.h"
#include "impl/sparse.h"

#define U      0x1p-24
#define BF16_U 0x1p-8

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_ring_run(args, &mla_attend_ttnn, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_sparse_run(args, &mla_attend_ttnn, message, message_bytes);
}

const struct mla_kernel mla_kernel_ttnn = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "emulate-ttnn",
    .promises = MLA_PROMISE_ALL,
    .ring_model =
        {
            .add_u = U,
            .score_depth = {.constant = -1, .per_width = 1},
            .score_u = BF16_U,
            .arg_form = MLA_ARG_DIFFERENCE,
            .arg_roundings = 2,
            .exp_error = MLA_EXP_ROUGH_ERROR,
            .exp_floor = MLA_EXP_ROUGH_FLOOR,
            .exp_slope = MLA_EXP_ROUGH_SLOPE,
            .p_u = BF16_U,
            .p_frame = MLA_P_FRAME_BLOCKS,
            .sum_rounded = 1,
            .rescales = {.constant = -1, .per_block = 1},
            .alpha_u = BF16_U,
            .rescale_scale_u = 0x1p-7,
            .acc_depth = {.constant = -2, .per_key = 1, .per_block = 1},
            .acc_u = BF16_U,
            .acc_extra = {.per_block = 1},
            .div_roundings = 2,
            .out_round = MLA_OUT_NEAREST,
            .stats_max = MLA_STATS_ROUNDED,
            .weights_ignore_v = 1,
            .acc_stores = MLA_ACC_STORES_BLOCKS,
        },
    .sparse_model =
        {
            .add_u = U,
            .score_depth = {.constant = -1, .per_width = 1},
            .score_u = BF16_U,
            .arg_form = MLA_ARG_DIFFERENCE,
            .arg_roundings = 2,
            .exp_error = MLA_EXP_ROUGH_ERROR,
            .exp_floor = MLA_EXP_ROUGH_FLOOR,
            .exp_slope = MLA_EXP_ROUGH_SLOPE,
            .p_u = BF16_U,
            .p_frame = MLA_P_FRAME_BLOCKS,
            .p_block_keys = MLA_SPARSE_BLOCK,
            .sum_rounded = 1,
            .rescales = {.constant = -1, .per_block = 1, .block_keys = MLA_SPARSE_BLOCK},
            .alpha_u = BF16_U,
            .rescale_scale_u = 0x1p-7,
            .acc_depth = {.constant = MLA_SPARSE_BLOCK - 3,
                          .per_block = 2,
                          .block_keys = MLA_SPARSE_BLOCK},
            .acc_u = BF16_U,
            .acc_extra = {.per_block = 1, .block_keys = MLA_SPARSE_BLOCK},
            .div_roundings = 2,
            .out_round = MLA_OUT_NEAREST,
            .stats_max = MLA_STATS_ROUNDED,
            .weights_ignore_v = 1,
            .acc_stores = MLA_ACC_STORES_BLOCKS,
        },
    .ring = ring,
    .sparse = sparse,
};
