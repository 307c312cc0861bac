/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_nki.c - the descriptor of emulate-nki: promises and arithmetic model.
 *
 * The model follows attend_nki.c and serial.h line by line. u = 2^-24, n the keys a row sees, w the
 * width of a key.
 *
 *   add_u          u: float32, round to nearest, no contraction.
 *   score_depth    w - 1: one sum of w products, latent columns before RoPE; the first addition is
 *                  to zero and exact.
 *   product_u      0: 8 x 8 significant bits fit into 24.
 *   score_u        0: the score stays float32.
 *   arg_form       scale*s - shift, shift = scale*m rounded once and kept: scaled. Two products and
 *                  a difference, of which an argument meets 2: its own product and the difference
 *                  (the shift's own error is common to the row, and cancels). Rounding is
 *                  monotone, so the largest score's argument is exactly 0 and no other is positive.
 *   exp_error      exp_scalar.h, with the proof; exp_floor 2^-126, what it returns as 0.
 *   p_u            2^-8: to nearest bf16, 8 significant bits. A p that is not 0 is at least 2^-126,
 *                  so its rounding is never that of a subnormal.
 *   p_frame        the row's maximum: known before the first p.
 *   sum_rounded    0: the sum adds p as it was before its rounding.
 *   rescales       none: two passes.
 *   acc_depth      n - 1 additions, the first is to zero. The product of two bf16 is exact in
 *                  float32 (underflow aside), and the sum has none.
 *   acc_u          0: stored in float32. pv_product_u 0.
 *   div_roundings  2: the reciprocal of the sum, correctly rounded, and a product; then bf16.
 *   flush          0: subnormals are kept (fpenv.h).
 *   stats_max      scale*m rounded once: exactly the shift the sum was formed with.
 *   weights_ignore_v  1: V is read only as a factor of finished weights.
 *
 * Both passes form the scores by the same code. No depth is counted in blocks, so the ring's model
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
        .arg_form = MLA_ARG_SCALED, .arg_roundings = 2, .exp_error = MLA_EXP_SCALAR_ERROR,         \
        .exp_floor = MLA_EXP_SCALAR_FLOOR, .p_u = 0x1p-8, .p_frame = MLA_P_FRAME_ROW,              \
        .acc_depth = {.constant = -1, .per_key = 1}, .div_roundings = 2,                           \
        .out_round = MLA_OUT_NEAREST, .stats_max = MLA_STATS_SHIFT, .weights_ignore_v = 1          \
    }

static int32_t ring(const struct mla_ring_args *args, char *message, size_t message_bytes)
{
    return mla_ring_run(args, &mla_attend_nki, message, message_bytes);
}

static int32_t sparse(const struct mla_sparse_args *args, char *message, size_t message_bytes)
{
    return mla_sparse_run(args, &mla_attend_nki, message, message_bytes);
}

const struct mla_kernel mla_kernel_nki = {
    .abi = MLA_KERNEL_ABI,
    .struct_size = sizeof(struct mla_kernel),
    .name = "emulate-nki",
    .promises = MLA_PROMISE_ALL,
    .ring_model = MODEL,
    .sparse_model = MODEL,
    .ring = ring,
    .sparse = sparse,
};
