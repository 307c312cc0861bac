/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_scalar.c - the descriptor of the portable kernel: promises and arithmetic model.
 *
 * The model follows attend_scalar.c and finish.h line by line. u = 2^-24, n the keys a row sees,
 * w the width of a key, b the blocks that hold a visible key.
 *
 *   add_u          u: float32, round to nearest, no contraction.
 *   score_depth    ceil(w/16) - 1 additions in a lane (its first is to zero, exact), and 4 to add
 *                  the 16 lanes. Ring: w is a multiple of 32, so w/16 + 3 exactly. Sparse: w =
 *                  512 + rope and ceil(w/16) <= w/16 + 15/16, so at most w/16 + 3 + 15/16. The
 *                  zeros a row is padded with round nothing.
 *   product_u      0: 8 x 8 significant bits fit into 24.
 *   score_u        0: the score stays float32.
 *   arg_form       s - m, then times the scale: difference, 2 roundings. Where that product
 *                  underflows, its absolute error of 2^-150 disappears in the exponential, which
 *                  is then exactly 1.
 *   exp_error      exp_scalar.h, with the proof. exp(0) = 1 exactly, and no rescale is made while
 *                  the maximum stays.
 *   exp_floor      2^-126: exp_scalar.h returns 0 for no larger true value.
 *   p_u            0, and sum_rounded 0: weights stay float32, in the sum and before V alike.
 *   rescales       b - 1: at most one for each block after the row's first, which only sets the
 *                  state. O and l are multiplied by the same float32 factor, formed with the
 *                  same scale: alpha_u = rescale_scale_u = 0.
 *   acc_depth      of O: 1 for the product p*v, n - 1 additions (the first is to zero, exact) and
 *                  b - 1 rescales, n + b - 1 in all. Of l: no product, one less.
 *   acc_u          0: stored in float32. pv_product_u 0: that rounding is counted above.
 *   div_roundings  1: one division; then the output is rounded to bf16.
 *   flush          0: subnormals are kept. Every thread of a call computes in the default
 *                  floating-point environment; the caller's is given back (fpenv.h).
 *   stats_max      scale*m, rounded once: the shift scaled anew.
 *   weights_ignore_v  1: V is read only as a factor of finished weights. Where V's columns are part
 *                  of the key, a zero query makes their products zeros, which add nothing.
 *
 * Blocks: ring, the call's K chunks, counted per shard (block_keys 0); sparse, MLA_SPARSE_BLOCK of
 * the keys that are left when q_pos_offset has dropped its own.
 */
#include "impl/attend.h"
#include "impl/exp_scalar.h"
#include "impl/kernels.h"
#include "impl/ring.h"
#include "impl/sparse.h"

#define U 0x1p-24

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_ring_run(args, &mla_attend_scalar, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_sparse_run(args, &mla_attend_scalar, message, message_bytes);
}

const struct mla_kernel mla_kernel_scalar = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "scalar",
    .promises = MLA_PROMISE_ALL,
    .ring_model =
        {
            .add_u = U,
            .score_depth = {.constant = 3, .per_width = 1.0 / 16},
            .arg_form = MLA_ARG_DIFFERENCE,
            .arg_roundings = 2,
            .exp_error = MLA_EXP_SCALAR_ERROR,
            .exp_floor = MLA_EXP_SCALAR_FLOOR,
            .p_frame = MLA_P_FRAME_BLOCKS,
            .rescales = {.constant = -1, .per_block = 1},
            .acc_depth = {.constant = -1, .per_key = 1, .per_block = 1},
            .div_roundings = 1,
            .out_round = MLA_OUT_NEAREST,
            .stats_max = MLA_STATS_ROUNDED,
            .weights_ignore_v = 1,
        },
    .sparse_model =
        {
            .add_u = U,
            .score_depth = {.constant = 3 + 15.0 / 16, .per_width = 1.0 / 16},
            .arg_form = MLA_ARG_DIFFERENCE,
            .arg_roundings = 2,
            .exp_error = MLA_EXP_SCALAR_ERROR,
            .exp_floor = MLA_EXP_SCALAR_FLOOR,
            .p_frame = MLA_P_FRAME_BLOCKS,
            .p_block_keys = MLA_SPARSE_BLOCK,
            .rescales = {.constant = -1, .per_block = 1, .block_keys = MLA_SPARSE_BLOCK},
            .acc_depth =
                {.constant = -1, .per_key = 1, .per_block = 1, .block_keys = MLA_SPARSE_BLOCK},
            .div_roundings = 1,
            .out_round = MLA_OUT_NEAREST,
            .stats_max = MLA_STATS_ROUNDED,
            .weights_ignore_v = 1,
        },
    .ring = ring,
    .sparse = sparse,
};
