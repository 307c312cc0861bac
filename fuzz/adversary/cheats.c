/* SPDX-License-Identifier: Apache-2.0
 *
 * cheats.c - adversaries that exceed what they declare: whoever does not accuse these is blind.
 */
#include "fuzz/adversary/models.h"
#include "fuzz/adversary/table.h"

/* What they do; the descriptors say what they claim. */
static const struct mla_model coarse_sums = {MLA_MODEL_COARSE_SUMS};
static const struct mla_model rounded_p = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE,
                                           .p_u = MLA_MODEL_BF16, MLA_MODEL_TWO_PASS};
static const struct mla_model frames_of_blocks = {
    MLA_MODEL_FLOAT32,     MLA_MODEL_LANES_SCORE,
    .p_u = MLA_MODEL_BF16, .p_frame = MLA_P_FRAME_BLOCKS,
    .p_block_keys = 16,    MLA_MODEL_BLOCKS(16, 0)};
static const struct mla_model rough_exponential = {MLA_MODEL_ROUGH_EXP(0x1p-6),
                                                   MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS};

static const struct mla_model one_long_sum = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE,
                                              MLA_MODEL_TWO_PASS};
static const struct mla_model blocks_of_the_call = {
    MLA_MODEL_FLOAT32_LOG2,        MLA_MODEL_SEQUENTIAL_SCORE, .p_u = MLA_MODEL_BF16,
    .p_frame = MLA_P_FRAME_BLOCKS, .sum_rounded = 1,           .flush = 1,
    MLA_MODEL_RESTARTS(0, 0, 0)};

static int32_t cheat_add_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_cheat_add, args, message, bytes);
}

static int32_t cheat_add_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_cheat_add, args, message, bytes);
}

const struct mla_adversary mla_adversary_cheat_add = {
    .what = "float32 sums claimed, four times its error made",
    .plan = {.block_keys = 8, .score = MLA_SCORE_LANES, .has_free_order = true},
    .uses = &coarse_sums,
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "cheat-add",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(8, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_BLOCKS(8, 0)},
               .ring = cheat_add_ring,
               .sparse = cheat_add_sparse}};

static int32_t cheat_p_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_cheat_p, args, message, bytes);
}

static int32_t cheat_p_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_cheat_p, args, message, bytes);
}

const struct mla_adversary mla_adversary_cheat_p = {
    .what = "unrounded P claimed, bf16 used",
    .plan = {.has_free_order = true},
    .uses = &rounded_p,
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "cheat-p",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS},
               .ring = cheat_p_ring,
               .sparse = cheat_p_sparse}};

static int32_t cheat_frame_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_cheat_frame, args, message, bytes);
}

static int32_t cheat_frame_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_cheat_frame, args, message, bytes);
}

const struct mla_adversary mla_adversary_cheat_frame = {
    .what = "P in the row's frame claimed, blocks of 16 used",
    .plan = {.block_keys = 16, .score = MLA_SCORE_LANES},
    .uses = &frames_of_blocks,
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "cheat-frame",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, .p_u = MLA_MODEL_BF16,
                              .p_frame = MLA_P_FRAME_ROW, MLA_MODEL_BLOCKS(16, 0)},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, .p_u = MLA_MODEL_BF16,
                                .p_frame = MLA_P_FRAME_ROW, MLA_MODEL_BLOCKS(16, 0)},
               .ring = cheat_frame_ring,
               .sparse = cheat_frame_sparse}};

static int32_t cheat_exp_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_cheat_exp, args, message, bytes);
}

static int32_t cheat_exp_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_cheat_exp, args, message, bytes);
}

const struct mla_adversary mla_adversary_cheat_exp = {
    .what = "a good exponential claimed, a rough one used",
    .plan = {.has_free_order = true},
    .uses = &rough_exponential,
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "cheat-exp",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS},
               .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_SEQUENTIAL_SCORE, MLA_MODEL_TWO_PASS},
               .ring = cheat_exp_ring,
               .sparse = cheat_exp_sparse}};

static int32_t cheat_blocks_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_cheat_blocks, args, message, bytes);
}

static int32_t cheat_blocks_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_cheat_blocks, args, message, bytes);
}

const struct mla_adversary mla_adversary_cheat_blocks = {
    .what = "blocks of 48 rows of a shard claimed, the call's chunks used",
    .plan = {MLA_ADVERSARY_CHUNKED, .restarts = true, .is_log2 = true},
    .uses = &blocks_of_the_call,
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "cheat-blocks",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_OWN_BLOCKS(0), .shard_block_keys = 48},
               .sparse_model = {MLA_MODEL_OWN_BLOCKS(48)},
               .ring = cheat_blocks_ring,
               .sparse = cheat_blocks_sparse}};

static int32_t cheat_most_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_cheat_most, args, message, bytes);
}

static int32_t cheat_most_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_cheat_most, args, message, bytes);
}

const struct mla_adversary mla_adversary_cheat_most = {
    .what = "sums of at most 16 keys claimed, one long sum made",
    .plan = {.score = MLA_SCORE_LANES, .has_free_order = true},
    .uses = &one_long_sum,
    .kernel = {
        .abi = MLA_KERNEL_ABI,
        .struct_size = sizeof(struct mla_kernel),
        .name = "cheat-most",
        .promises = MLA_ADVERSARY_PROMISES,
        .ring_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_RESTARTS(16, 16, 1)},
        .sparse_model = {MLA_MODEL_FLOAT32, MLA_MODEL_LANES_SCORE, MLA_MODEL_RESTARTS(16, 16, 1)},
        .ring = cheat_most_ring,
        .sparse = cheat_most_sparse}};

static int32_t cheat_sight_ring(const struct mla_ring_args *args, char *message, size_t bytes)
{
    return mla_adversary_ring(&mla_adversary_cheat_sight, args, message, bytes);
}

static int32_t cheat_sight_sparse(const struct mla_sparse_args *args, char *message, size_t bytes)
{
    return mla_adversary_sparse(&mla_adversary_cheat_sight, args, message, bytes);
}

/* Within its interval everywhere: only the row-energy test can tell. */
const struct mla_adversary mla_adversary_cheat_sight = {
    .what = "weights that ignore V claimed, and pushed to where V is longest",
    .plan = {.is_blind = true, .peeks = true},
    .kernel = {.abi = MLA_KERNEL_ABI,
               .struct_size = sizeof(struct mla_kernel),
               .name = "cheat-sight",
               .promises = MLA_ADVERSARY_PROMISES,
               .ring_model = {MLA_MODEL_ROUGH_EXP(0x1p-4), MLA_MODEL_SEQUENTIAL_SCORE,
                              MLA_MODEL_TWO_PASS, .weights_ignore_v = 1},
               .sparse_model = {MLA_MODEL_ROUGH_EXP(0x1p-4), MLA_MODEL_SEQUENTIAL_SCORE,
                                MLA_MODEL_TWO_PASS, .weights_ignore_v = 1},
               .ring = cheat_sight_ring,
               .sparse = cheat_sight_sparse}};
