/* SPDX-License-Identifier: Apache-2.0
 *
 * float32.c - adversaries with float32 arithmetic and unrounded probabilities.
 */
#include "fuzz/adversary/models.h"
#include "fuzz/adversary/table.h"

static int32_t two_pass_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_two_pass, args, message, bytes);
}

static int32_t two_pass_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_two_pass, args, message, bytes);
}

const struct mla_adversary mla_adversary_two_pass = {
    .what = "two passes, sums one after the other",
    .plan = {.has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "two-pass",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS},
               .ring = two_pass_ring,
               .sparse = two_pass_sparse}};

static int32_t online_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_online, args, message, bytes);
}

static int32_t online_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_online, args, message, bytes);
}

const struct mla_adversary mla_adversary_online = {
    .what = "online softmax over blocks of 8",
    .plan = {.block_keys = 8, .score = MLA_SCORE_LANES, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "online",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(8, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(8, 0)},
               .ring = online_ring,
               .sparse = online_sparse}};

static int32_t pairwise_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_pairwise, args, message, bytes);
}

static int32_t pairwise_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_pairwise, args, message, bytes);
}

const struct mla_adversary mla_adversary_pairwise = {
    .what = "all sums pairwise within blocks of 32",
    .plan = {.block_keys = 32, .score = MLA_SCORE_TREE, .is_tree = true, .has_free_order = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "pairwise",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, MLA_MODEL_PAIRWISE_BLOCKS_OF_32},
        .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, MLA_MODEL_PAIRWISE_BLOCKS_OF_32},
        .ring = pairwise_ring,
        .sparse = pairwise_sparse}};

/* One rounding more for the sum of a single key, which is no binary32 yet. */
static int32_t restarting_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_restarting, args, message, bytes);
}

static int32_t restarting_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_restarting, args, message, bytes);
}

const struct mla_adversary mla_adversary_restarting = {
    .what = "float32, blocks of 16 each summed anew by fused multiply-adds",
    .plan = {.block_keys = 16, .score = MLA_SCORE_LANES, .has_free_order = true, .restarts = true},
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "restarting",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_RESTARTS(16, 16, 1)},
        .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_RESTARTS(16, 16, 1)},
        .ring = restarting_ring,
        .sparse = restarting_sparse}};

static int32_t mixed_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_mixed, args, message, bytes);
}

static int32_t mixed_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_mixed, args, message, bytes);
}

const struct mla_adversary mla_adversary_mixed = {
    .what = "one key a step, the maximum scaled anew at each use",
    .plan = {.block_keys = 1, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "mixed",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, .arg_form = MLA_ARG_MIXED,
                              MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_BLOCKS(1, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32, .arg_form = MLA_ARG_MIXED,
                                MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_BLOCKS(1, 0)},
               .ring = mixed_ring,
               .sparse = mixed_sparse}};

static int32_t scaled_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_scaled, args, message, bytes);
}

static int32_t scaled_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_scaled, args, message, bytes);
}

const struct mla_adversary mla_adversary_scaled = {
    .what = "scaled scores kept, blocks of 16, the shift itself reported",
    .plan = {.block_keys = 16, .score = MLA_SCORE_LANES, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "scaled",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                              MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(16, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32_KEPT_SHIFT, .arg_form = MLA_ARG_SCALED,
                                MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(16, 0)},
               .ring = scaled_ring,
               .sparse = scaled_sparse}};

static int32_t merged_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_merged, args, message, bytes);
}

static int32_t merged_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_merged, args, message, bytes);
}

const struct mla_adversary mla_adversary_merged = {
    .what = "four states with blocks of 8, merged",
    .plan = {.block_keys = 8, .parts = 4, .score = MLA_SCORE_TREE, .has_free_order = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "merged",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, MLA_MODEL_BLOCKS(8, 3)},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_TREE_SCORE, MLA_MODEL_BLOCKS(8, 3)},
               .ring = merged_ring,
               .sparse = merged_sparse}};

static int32_t scalar_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_scalar, args, message, bytes);
}

static int32_t scalar_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_scalar, args, message, bytes);
}

const struct mla_adversary mla_adversary_scalar = {
    .what = "the model of the scalar kernel",
    .plan = {MLA_ADVERSARY_CHUNKED, .score = MLA_SCORE_LANES},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "as-scalar",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE,
                              .p_frame = MLA_P_FRAME_BLOCKS, MLA_MODEL_BLOCKS(0, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE,
                                .p_frame = MLA_P_FRAME_BLOCKS, .p_block_keys = 128,
                                MLA_MODEL_BLOCKS(128, 0)},
               .ring = scalar_ring,
               .sparse = scalar_sparse}};
