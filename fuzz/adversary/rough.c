/* SPDX-License-Identifier: Apache-2.0
 *
 * rough.c - adversaries with coarse arithmetic: bf16 everywhere, cutting and flushing units, a
 * rough exponential, inexact products. Errors are so large here that the denominator matters, and
 * aiming a second time pays.
 */
#include "fuzz/adversary/models.h"
#include "fuzz/adversary/table.h"

static int32_t bf16_all_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_bf16_all, args, message, bytes);
}

static int32_t bf16_all_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_bf16_all, args, message, bytes);
}

const struct mla_adversary mla_adversary_bf16_all = {
    .what = "bf16 scores, P, rescale factors and sums, rough exponential",
    .plan = {MLA_ADVERSARY_CHUNKED, .stores_twice = true, .refines = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "bf16-all",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_BF16_ALL, MLA_MODEL_BLOCKS(0, 0), MLA_MODEL_STORES(0)},
        .sparse_model = {MLA_MODEL_BF16_ALL, MLA_MODEL_BLOCKS(128, 0), MLA_MODEL_STORES(128)},
        .ring = bf16_all_ring,
        .sparse = bf16_all_sparse}};

static int32_t bf16_sums_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_bf16_sums, args, message, bytes);
}

static int32_t bf16_sums_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_bf16_sums, args, message, bytes);
}

const struct mla_adversary mla_adversary_bf16_sums = {
    .what = "bf16 accumulators, one key a step",
    .plan = {.block_keys = 1, .has_free_order = true, .refines = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "bf16-sums",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                              MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_BLOCKS(1, 0),
                              .acc_u = MLA_MODEL_BF16, .acc_extra = {.per_key = 1}},
               .sparse_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                                MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_BLOCKS(1, 0),
                                .acc_u = MLA_MODEL_BF16, .acc_extra = {.per_key = 1}},
               .ring = bf16_sums_ring,
               .sparse = bf16_sums_sparse}};

static int32_t flushing_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_flushing, args, message, bytes);
}

static int32_t flushing_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_flushing, args, message, bytes);
}

const struct mla_adversary mla_adversary_flushing = {
    .what = "cutting units that flush, P and outputs cut, blocks of 32",
    .plan = {.block_keys = 32, .has_free_order = true, .refines = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "flushing",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_CUTTING_UNIT, .flush = 1, MLA_MODEL_SEQUENTIAL_SCORE,
                              .p_u = MLA_MODEL_CUT, .out_round = MLA_OUT_TRUNCATE,
                              MLA_MODEL_BLOCKS(32, 0)},
               .sparse_model = {MLA_MODEL_CUTTING_UNIT, .flush = 1, MLA_MODEL_SEQUENTIAL_SCORE,
                                .p_u = MLA_MODEL_CUT, .out_round = MLA_OUT_TRUNCATE,
                                MLA_MODEL_BLOCKS(32, 0)},
               .ring = flushing_ring,
               .sparse = flushing_sparse}};

static int32_t flushing_row_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_flushing_row, args, message, bytes);
}

static int32_t flushing_row_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_flushing_row, args, message, bytes);
}

const struct mla_adversary mla_adversary_flushing_row = {
    .what = "cutting units that flush, P cut in the row's frame",
    .plan = {.score = MLA_SCORE_LANES, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "flushing-row",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_CUTTING_UNIT, .flush = 1, MLA_MODEL_LANES_SCORE,
                              .p_u = MLA_MODEL_CUT, .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1,
                              MLA_MODEL_TWO_PASS},
               .sparse_model = {MLA_MODEL_CUTTING_UNIT, .flush = 1, MLA_MODEL_LANES_SCORE,
                                .p_u = MLA_MODEL_CUT, .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1,
                                MLA_MODEL_TWO_PASS},
               .ring = flushing_row_ring,
               .sparse = flushing_row_sparse}};

static int32_t products_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_products, args, message, bytes);
}

static int32_t products_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_products, args, message, bytes);
}

const struct mla_adversary mla_adversary_products = {
    .what = "bf16 products, in scores and before V",
    .plan = {.has_free_order = true, .refines = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "products",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, .product_u = MLA_MODEL_BF16,
                       .pv_product_u = MLA_MODEL_BF16, MLA_MODEL_TWO_PASS},
        .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, .product_u = MLA_MODEL_BF16,
                         .pv_product_u = MLA_MODEL_BF16, MLA_MODEL_TWO_PASS},
        .ring = products_ring,
        .sparse = products_sparse}};

static int32_t rough_exp_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_rough_exp, args, message, bytes);
}

static int32_t rough_exp_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_rough_exp, args, message, bytes);
}

const struct mla_adversary mla_adversary_rough_exp = {
    .what = "an exponential good to six bits that vanishes early, two passes",
    .plan = {.has_free_order = true, .refines = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "rough-exp",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_ROUGH_EXP(0x1p-6), MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS},
        .sparse_model = {MLA_MODEL_ROUGH_EXP(0x1p-6), MLA_MODEL_SEQUENTIAL_SCORE,
                         MLA_MODEL_TWO_PASS},
        .ring = rough_exp_ring,
        .sparse = rough_exp_sparse}};

static int32_t rough_blocks_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_rough_blocks, args, message, bytes);
}

static int32_t rough_blocks_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_rough_blocks, args, message, bytes);
}

const struct mla_adversary mla_adversary_rough_blocks = {
    .what = "a rough exponential and rounded rescales, blocks of 16",
    .plan = {.block_keys = 16, .score = MLA_SCORE_TREE, .has_free_order = true, .refines = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "rough-blocks",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_ROUGH_EXP(0x1p-6), .arg_form = MLA_ARG_MIXED,
                              MLA_MODEL_TREE_SCORE, .alpha_u = MLA_MODEL_BF16,
                              .rescale_scale_u = MLA_MODEL_CUT, MLA_MODEL_BLOCKS(16, 0)},
               .sparse_model = {MLA_MODEL_ROUGH_EXP(0x1p-6), .arg_form = MLA_ARG_MIXED,
                                MLA_MODEL_TREE_SCORE, .alpha_u = MLA_MODEL_BF16,
                                .rescale_scale_u = MLA_MODEL_CUT, MLA_MODEL_BLOCKS(16, 0)},
               .ring = rough_blocks_ring,
               .sparse = rough_blocks_sparse}};
