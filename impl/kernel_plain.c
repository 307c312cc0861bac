/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_plain.c - the descriptor of plain-f32: promises and arithmetic model.
 *
 * The model follows attend_plain.c, serial.h and finish.h line by line. u = 2^-24, n the keys a row
 * sees, w the width of a key.
 *
 *   add_u          u: float32, round to nearest, no contraction.
 *   score_depth    w - 1: one sum of w products, its first addition to zero and exact. Of the first
 *                  product, the longest path. Latent before RoPE is one of the orders it allows.
 *   product_u      0: 8 x 8 significant bits fit into 24.
 *   score_u        0: the score stays float32.
 *   arg_form       s - m, then times the scale: difference, 2 roundings. m is the maximum of the
 *                  computed scores, unscaled and exact. Where the product underflows, its absolute
 *                  error of 2^-150 disappears in the exponential, which is then exactly 1.
 *   exp_error      exp_scalar.h, with the proof; exp_floor 2^-126, what it returns as 0.
 *   p_u            0: weights stay float32, in the sum and before V alike. p_frame is the row's
 *                  maximum, known before the first weight.
 *   rescales       none: two passes.
 *   acc_depth      of O: 1 for the product p*v and n - 1 additions (the first is to zero, exact),
 *                  n in all. Of l: no product, one less.
 *   acc_u          0: stored in float32. pv_product_u 0: that rounding is counted above.
 *   div_roundings  1: one division; then the output is rounded to bf16.
 *   flush          0: subnormals are kept (fpenv.h).
 *   stats_max      scale*m, rounded once: the shift scaled anew.
 *   weights_ignore_v  1: V is read only as a factor of finished weights.
 *
 * Both passes form the scores by the same code, so a score is the same number in both and none
 * exceeds the maximum: no argument is positive. No depth is counted in blocks, so the ring's model
 * and the sparse one are the same.
 */
#include "impl/attend.h"
#include "impl/exp_scalar.h"
#include "impl/kernels.h"
#include "impl/ring.h"
#include "impl/sparse.h"

#define MODEL                                                                                      \
    {                                                                                              \
        .add_u = 0x1p-24, .score_depth = {.constant = -1, .per_width = 1},                         \
        .arg_form = MLA_ARG_DIFFERENCE, .arg_roundings = 2, .exp_error = MLA_EXP_SCALAR_ERROR,     \
        .exp_floor = MLA_EXP_SCALAR_FLOOR, .p_frame = MLA_P_FRAME_ROW,                             \
        .acc_depth = {.per_key = 1}, .div_roundings = 1, .out_round = MLA_OUT_NEAREST,             \
        .stats_max = MLA_STATS_ROUNDED, .weights_ignore_v = 1                                      \
    }

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_ring_run(args, &mla_attend_plain, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_sparse_run(args, &mla_attend_plain, message, message_bytes);
}

const struct mla_kernel mla_kernel_plain = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "plain-f32",
    .promises = MLA_PROMISE_ALL,
    .ring_model = MODEL,
    .sparse_model = MODEL,
    .ring = ring,
    .sparse = sparse,
};
