/* SPDX-License-Identifier: Apache-2.0
 *
 * blind.c - adversaries that choose weights without looking at V, as their models promise.
 *
 * At random, by key number, by the score's sign: anything that knows nothing of the coins of V. The
 * sums over V are theirs to choose.
 */
#include "fuzz/adversary/models.h"
#include "fuzz/adversary/table.h"

static int32_t blind_online_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_online, args, message, bytes);
}

static int32_t blind_online_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_online, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_online = {
    .what = "float32, blocks of 8",
    .plan = {.block_keys = 8, .score = MLA_SCORE_LANES, .has_free_order = true, .is_blind = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "blind-online",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(8, 0),
                              .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(8, 0),
                                .weights_ignore_v = 1},
               .ring = blind_online_ring,
               .sparse = blind_online_sparse}};

static int32_t blind_p_row_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_p_row, args, message, bytes);
}

static int32_t blind_p_row_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_p_row, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_p_row = {
    .what = "bf16 P in the row's frame",
    .plan = {.score = MLA_SCORE_TREE, .has_free_order = true, .is_blind = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "blind-p-row",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16,
                       .p_frame = MLA_P_FRAME_ROW, MLA_MODEL_TWO_PASS, .weights_ignore_v = 1},
        .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16,
                         .p_frame = MLA_P_FRAME_ROW, MLA_MODEL_TWO_PASS, .weights_ignore_v = 1},
        .ring = blind_p_row_ring,
        .sparse = blind_p_row_sparse}};

static int32_t blind_own_blocks_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_own_blocks, args, message, bytes);
}

static int32_t blind_own_blocks_sparse(const struct mla_sparse_args *args, char *message,
                                       size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_own_blocks, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_own_blocks = {
    .what = "bf16 P in the frames of blocks of 48 rows of a shard, each summed anew, rounded sum, "
            "flushing",
    .plan = {MLA_ADVERSARY_CHUNKED, .restarts = true, .is_log2 = true, .is_blind = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "blind-own-blocks",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_OWN_BLOCKS(0), .shard_block_keys = 48, .weights_ignore_v = 1},
        .sparse_model = {MLA_MODEL_OWN_BLOCKS(48), .weights_ignore_v = 1},
        .ring = blind_own_blocks_ring,
        .sparse = blind_own_blocks_sparse}};

static int32_t blind_p_free_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_p_free, args, message, bytes);
}

static int32_t blind_p_free_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_p_free, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_p_free = {
    .what = "bf16 P in any frame, unrounded sum, log2 domain, blocks of 32",
    .plan = {.block_keys = 32, .is_log2 = true, .has_free_order = true, .is_blind = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "blind-p-free",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_FLOAT32_LOG2, MLA_MODEL_SEQUENTIAL_SCORE, .p_u = MLA_MODEL_BF16,
                       MLA_MODEL_BLOCKS(32, 0), .weights_ignore_v = 1},
        .sparse_model = {MLA_MODEL_FLOAT32_LOG2, MLA_MODEL_SEQUENTIAL_SCORE, .p_u = MLA_MODEL_BF16,
                         MLA_MODEL_BLOCKS(32, 0), .weights_ignore_v = 1},
        .ring = blind_p_free_ring,
        .sparse = blind_p_free_sparse}};

static int32_t blind_p_free_rounded_ring(const struct mla_ring_args *args, char *message,
                                         size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_p_free_rounded, args, message, bytes);
}

static int32_t blind_p_free_rounded_sparse(const struct mla_sparse_args *args, char *message,
                                           size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_p_free_rounded, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_p_free_rounded = {
    .what = "bf16 P in any frame, rounded sum, scaled scores, blocks of 8",
    .plan = {.block_keys = 8, .score = MLA_SCORE_TREE, .has_free_order = true, .is_blind = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "blind-p-free-rounded",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                              MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16, .sum_rounded = 1,
                              MLA_MODEL_BLOCKS(8, 0), .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                                MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16, .sum_rounded = 1,
                                MLA_MODEL_BLOCKS(8, 0), .weights_ignore_v = 1},
               .ring = blind_p_free_rounded_ring,
               .sparse = blind_p_free_rounded_sparse}};

static int32_t blind_merged_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_merged, args, message, bytes);
}

static int32_t blind_merged_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_merged, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_merged = {
    .what = "three states with bf16 P in any frame, merged",
    .plan = {.block_keys = 8,
             .parts = 3,
             .score = MLA_SCORE_LANES,
             .has_free_order = true,
             .is_blind = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "blind-merged",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_OTHER_MAX, MLA_MODEL_LANES_SCORE,
                              .p_u = MLA_MODEL_BF16, MLA_MODEL_BLOCKS(8, 2), .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_FLOAT32_OTHER_MAX, MLA_MODEL_LANES_SCORE,
                                .p_u = MLA_MODEL_BF16, MLA_MODEL_BLOCKS(8, 2),
                                .weights_ignore_v = 1},
               .ring = blind_merged_ring,
               .sparse = blind_merged_sparse}};

static int32_t blind_bf16_all_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_bf16_all, args, message, bytes);
}

static int32_t blind_bf16_all_sparse(const struct mla_sparse_args *args, char *message,
                                     size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_bf16_all, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_bf16_all = {
    .what = "bf16 scores, P, rescale factors and sums, rough exponential",
    .plan = {MLA_ADVERSARY_CHUNKED, .stores_twice = true, .is_blind = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "blind-bf16-all",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_BF16_ALL, MLA_MODEL_BLOCKS(0, 0), MLA_MODEL_STORES(0),
                              .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_BF16_ALL, MLA_MODEL_BLOCKS(128, 0), MLA_MODEL_STORES(128),
                                .weights_ignore_v = 1},
               .ring = blind_bf16_all_ring,
               .sparse = blind_bf16_all_sparse}};

static int32_t blind_bf16_sums_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_bf16_sums, args, message, bytes);
}

static int32_t blind_bf16_sums_sparse(const struct mla_sparse_args *args, char *message,
                                      size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_bf16_sums, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_bf16_sums = {
    .what = "bf16 accumulators, one key a step",
    .plan = {.block_keys = 1, .has_free_order = true, .is_blind = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "blind-bf16-sums",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                              MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_BLOCKS(1, 0),
                              .acc_u = MLA_MODEL_BF16, .acc_extra = {.per_key = 1},
                              .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                                MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_BLOCKS(1, 0),
                                .acc_u = MLA_MODEL_BF16, .acc_extra = {.per_key = 1},
                                .weights_ignore_v = 1},
               .ring = blind_bf16_sums_ring,
               .sparse = blind_bf16_sums_sparse}};

static int32_t blind_rough_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_rough, args, message, bytes);
}

static int32_t blind_rough_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_rough, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_rough = {
    .what = "a rough exponential and rounded rescales, blocks of 16",
    .plan = {.block_keys = 16, .score = MLA_SCORE_TREE, .has_free_order = true, .is_blind = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "blind-rough",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_ROUGH_EXP(0x1p-6), .arg_form = MLA_ARG_MIXED,
                              MLA_MODEL_TREE_SCORE, .alpha_u = MLA_MODEL_BF16,
                              .rescale_scale_u = MLA_MODEL_CUT, MLA_MODEL_BLOCKS(16, 0),
                              .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_ROUGH_EXP(0x1p-6), .arg_form = MLA_ARG_MIXED,
                                MLA_MODEL_TREE_SCORE, .alpha_u = MLA_MODEL_BF16,
                                .rescale_scale_u = MLA_MODEL_CUT, MLA_MODEL_BLOCKS(16, 0),
                                .weights_ignore_v = 1},
               .ring = blind_rough_ring,
               .sparse = blind_rough_sparse}};

static int32_t blind_flushing_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_blind_flushing, args, message, bytes);
}

static int32_t blind_flushing_sparse(const struct mla_sparse_args *args, char *message,
                                     size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_blind_flushing, args, message, bytes);
}

const struct mla_adversary mla_adversary_blind_flushing = {
    .what = "cutting units that flush, P and outputs cut",
    .plan = {.block_keys = 32, .has_free_order = true, .is_blind = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "blind-flushing",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_CUTTING_UNIT, .flush = 1, MLA_MODEL_SEQUENTIAL_SCORE,
                              .p_u = MLA_MODEL_CUT, .out_round = MLA_OUT_TRUNCATE,
                              MLA_MODEL_BLOCKS(32, 0), .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_CUTTING_UNIT, .flush = 1, MLA_MODEL_SEQUENTIAL_SCORE,
                                .p_u = MLA_MODEL_CUT, .out_round = MLA_OUT_TRUNCATE,
                                MLA_MODEL_BLOCKS(32, 0), .weights_ignore_v = 1},
               .ring = blind_flushing_ring,
               .sparse = blind_flushing_sparse}};
