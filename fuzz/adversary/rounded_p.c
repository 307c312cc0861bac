/* SPDX-License-Identifier: Apache-2.0
 *
 * rounded_p.c - adversaries that round the probabilities to bf16.
 *
 * In a declared frame the rounding itself is real, and only what is rounded can be chosen; in an
 * unknown frame every rounding within p_u is.
 */
#include "fuzz/adversary/models.h"
#include "fuzz/adversary/table.h"

static int32_t p_row_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_row, args, message, bytes);
}

static int32_t p_row_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_row, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_row = {
    .what = "bf16 P in the row's frame, unrounded sum",
    .plan = {.score = MLA_SCORE_TREE, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-row",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16,
                              .p_frame = MLA_P_FRAME_ROW, MLA_MODEL_TWO_PASS},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16,
                                .p_frame = MLA_P_FRAME_ROW, MLA_MODEL_TWO_PASS},
               .ring = p_row_ring,
               .sparse = p_row_sparse}};

static int32_t p_row_rounded_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_row_rounded, args, message, bytes);
}

static int32_t p_row_rounded_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_row_rounded, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_row_rounded = {
    .what = "bf16 P in the row's frame, rounded sum",
    .plan = {.has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-row-rounded",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, .p_u = MLA_MODEL_BF16,
                              .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1, MLA_MODEL_TWO_PASS},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE,
                                .p_u = MLA_MODEL_BF16, .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 1,
                                MLA_MODEL_TWO_PASS},
               .ring = p_row_rounded_ring,
               .sparse = p_row_rounded_sparse}};

static int32_t p_blocks_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_blocks, args, message, bytes);
}

static int32_t p_blocks_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_blocks, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_blocks = {
    .what = "bf16 P in the frames of blocks of 16, unrounded sum",
    .plan = {.block_keys = 16, .score = MLA_SCORE_LANES},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-blocks",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, .p_u = MLA_MODEL_BF16,
                              .p_frame = MLA_P_FRAME_BLOCKS, .p_block_keys = 16,
                              MLA_MODEL_BLOCKS(16, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, .p_u = MLA_MODEL_BF16,
                                .p_frame = MLA_P_FRAME_BLOCKS, .p_block_keys = 16,
                                MLA_MODEL_BLOCKS(16, 0)},
               .ring = p_blocks_ring,
               .sparse = p_blocks_sparse}};

static int32_t p_chunks_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_chunks, args, message, bytes);
}

static int32_t p_chunks_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_chunks, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_chunks = {
    .what = "bf16 P in the frames of the call's chunks, rounded sum",
    .plan = {MLA_ADVERSARY_CHUNKED},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-chunks",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, .p_u = MLA_MODEL_BF16,
                              .p_frame = MLA_P_FRAME_BLOCKS, .sum_rounded = 1,
                              MLA_MODEL_BLOCKS(0, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE,
                                .p_u = MLA_MODEL_BF16, .p_frame = MLA_P_FRAME_BLOCKS,
                                .sum_rounded = 1, .p_block_keys = 128, MLA_MODEL_BLOCKS(128, 0)},
               .ring = p_chunks_ring,
               .sparse = p_chunks_sparse}};

static int32_t p_own_blocks_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_own_blocks, args, message, bytes);
}

static int32_t p_own_blocks_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_own_blocks, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_own_blocks = {
    .what = "bf16 P in the frames of blocks of 48 rows of a shard, each summed anew, rounded sum, "
            "flushing",
    .plan = {MLA_ADVERSARY_CHUNKED, .restarts = true, .is_log2 = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-own-blocks",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_OWN_BLOCKS(0), .shard_block_keys = 48},
               .sparse_model = {MLA_MODEL_OWN_BLOCKS(48)},
               .ring = p_own_blocks_ring,
               .sparse = p_own_blocks_sparse}};

static int32_t p_free_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_free, args, message, bytes);
}

static int32_t p_free_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_free, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_free = {
    .what = "bf16 P in any frame, unrounded sum, log2 domain, blocks of 32",
    .plan = {.block_keys = 32, .is_log2 = true, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-free",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_LOG2, MLA_MODEL_SEQUENTIAL_SCORE,
                              .p_u = MLA_MODEL_BF16, MLA_MODEL_BLOCKS(32, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32_LOG2, MLA_MODEL_SEQUENTIAL_SCORE,
                                .p_u = MLA_MODEL_BF16, MLA_MODEL_BLOCKS(32, 0)},
               .ring = p_free_ring,
               .sparse = p_free_sparse}};

static int32_t p_free_rounded_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_free_rounded, args, message, bytes);
}

static int32_t p_free_rounded_sparse(const struct mla_sparse_args *args, char *message,
                                     size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_free_rounded, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_free_rounded = {
    .what = "bf16 P in any frame, rounded sum, scaled scores, blocks of 8",
    .plan = {.block_keys = 8, .score = MLA_SCORE_TREE, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-free-rounded",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                              MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16, .sum_rounded = 1,
                              MLA_MODEL_BLOCKS(8, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                                MLA_MODEL_TREE_SCORE, .p_u = MLA_MODEL_BF16, .sum_rounded = 1,
                                MLA_MODEL_BLOCKS(8, 0)},
               .ring = p_free_rounded_ring,
               .sparse = p_free_rounded_sparse}};

static int32_t p_cut_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_cut, args, message, bytes);
}

static int32_t p_cut_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_cut, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_cut = {
    .what = "P cut to bf16 in the row's frame, cut outputs",
    .plan = {.has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-cut",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, .p_u = MLA_MODEL_CUT,
                              .p_frame = MLA_P_FRAME_ROW, .out_round = MLA_OUT_TRUNCATE,
                              MLA_MODEL_TWO_PASS},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, .p_u = MLA_MODEL_CUT,
                                .p_frame = MLA_P_FRAME_ROW, .out_round = MLA_OUT_TRUNCATE,
                                MLA_MODEL_TWO_PASS},
               .ring = p_cut_ring,
               .sparse = p_cut_sparse}};

static int32_t p_cut_free_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_cut_free, args, message, bytes);
}

static int32_t p_cut_free_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_cut_free, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_cut_free = {
    .what = "P cut to bf16 in any frame, rounded sum, cut outputs",
    .plan = {.block_keys = 32, .score = MLA_SCORE_LANES, .has_free_order = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "p-cut-free",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, .p_u = MLA_MODEL_CUT,
                       .sum_rounded = 1, .out_round = MLA_OUT_TRUNCATE, MLA_MODEL_BLOCKS(32, 0)},
        .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, .p_u = MLA_MODEL_CUT,
                         .sum_rounded = 1, .out_round = MLA_OUT_TRUNCATE, MLA_MODEL_BLOCKS(32, 0)},
        .ring = p_cut_free_ring,
        .sparse = p_cut_free_sparse}};

static int32_t p_merged_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_p_merged, args, message, bytes);
}

static int32_t p_merged_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_p_merged, args, message, bytes);
}

const struct mla_adversary mla_adversary_p_merged = {
    .what = "three states with bf16 P in any frame, another maximum reported",
    .plan = {.block_keys = 8, .parts = 3, .score = MLA_SCORE_LANES, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "p-merged",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_OTHER_MAX, MLA_MODEL_LANES_SCORE,
                              .p_u = MLA_MODEL_BF16, MLA_MODEL_BLOCKS(8, 2)},
               .sparse_model = {MLA_MODEL_FLOAT32_OTHER_MAX, MLA_MODEL_LANES_SCORE,
                                .p_u = MLA_MODEL_BF16, MLA_MODEL_BLOCKS(8, 2)},
               .ring = p_merged_ring,
               .sparse = p_merged_sparse}};

static int32_t as_nki_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_as_nki, args, message, bytes);
}

static int32_t as_nki_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_as_nki, args, message, bytes);
}

#define AS_NKI                                                                                     \
    {                                                                                              \
        MLA_MODEL_UNIT(0x1p-24, 2, MLA_STATS_SHIFT, 0x1p-126),                                     \
            .exp_error = 0x1p-23, .arg_form = MLA_ARG_SCALED, MLA_MODEL_SEQUENTIAL_SCORE,          \
            .p_u = MLA_MODEL_BF16, .p_frame = MLA_P_FRAME_ROW, MLA_MODEL_TWO_PASS                  \
    }

const struct mla_adversary mla_adversary_as_nki = {
    .what = "the model of emulate-nki: scaled scores, bf16 P in the row's frame, unrounded sum",
    .plan = {.has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "as-nki",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = AS_NKI,
               .sparse_model = AS_NKI,
               .ring = as_nki_ring,
               .sparse = as_nki_sparse}};

static int32_t as_ttnn_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_as_ttnn, args, message, bytes);
}

static int32_t as_ttnn_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_as_ttnn, args, message, bytes);
}

#define AS_TTNN(keys)                                                                              \
    {                                                                                              \
        MLA_MODEL_BF16_ALL, .p_frame = MLA_P_FRAME_BLOCKS, .p_block_keys = (keys),                 \
                            .exp_slope = 0x1p-6, .acc_stores = MLA_ACC_STORES_BLOCKS,              \
                            MLA_MODEL_BLOCKS(keys, 0), .acc_extra = {                              \
                                .per_block = 1,                                                    \
                                .block_keys = (keys)                                               \
                            }                                                                      \
    }

const struct mla_adversary mla_adversary_as_ttnn = {
    .what = "the model of emulate-ttnn: bf16-all with P in its block's frame, stored once a block, "
            "exp(0) exact",
    .plan = {MLA_ADVERSARY_CHUNKED, .refines = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "as-ttnn",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = AS_TTNN(0),
               .sparse_model = AS_TTNN(128),
               .ring = as_ttnn_ring,
               .sparse = as_ttnn_sparse}};
