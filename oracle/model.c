/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - is a declared arithmetic model well formed?
 *
 * The bound is only a theorem for numbers in these ranges; a kernel whose descriptor breaks one is
 * not judged at all. NaN fails every comparison as written.
 */
#include "oracle/oracle.h"

#include <math.h>

/* Every count of roundings stays far below 2^50, so that it is exact in a double. */
static bool is_count(double x)
{
    return x >= 0.0 && x <= 1e9;
}

static bool is_unit(double x)
{
    return x >= 0.0 && x < 1.0;
}

static bool is_flag(int32_t x)
{
    return x == 0 || x == 1;
}

static bool is_depth(const struct mla_depth *depth)
{
    /* A negative constant corrects the other terms, as in blocks - 1; the total never is. */
    return is_count(fabs(depth->constant)) && is_count(depth->per_width) &&
           is_count(depth->per_key) && is_count(depth->per_block) && depth->block_keys >= 0 &&
           depth->most_keys >= 0;
}

static bool counts_shards(const struct mla_depth *depth)
{
    return depth->per_block != 0.0 && depth->block_keys == 0;
}

static const char *unit_error(const struct mla_model *m)
{
    const struct {
        double value;
        const char *error;
    } units[] = {
        {m->add_u, "add_u must lie in [0, 1)"},
        {m->product_u, "product_u must lie in [0, 1)"},
        {m->score_u, "score_u must lie in [0, 1)"},
        {m->exp_error, "exp_error must lie in [0, 1)"},
        {m->exp_floor, "exp_floor must lie in [0, 1)"},
        {m->p_u, "p_u must lie in [0, 1)"},
        {m->alpha_u, "alpha_u must lie in [0, 1)"},
        {m->rescale_scale_u, "rescale_scale_u must lie in [0, 1)"},
        {m->acc_u, "acc_u must lie in [0, 1)"},
        {m->pv_product_u, "pv_product_u must lie in [0, 1)"},
    };

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!is_unit(units[i].value)) {
            return units[i].error;
        }
    }
    /* NaN, Inf and numbers whose products with an argument would overflow are none. */
    return m->exp_slope >= 0.0 && m->exp_slope <= 1e9 ? NULL : "exp_slope must lie in [0, 1e9]";
}

static const char *depth_error(const struct mla_model *m, bool is_ring)
{
    const struct {
        const struct mla_depth *depth;
        const char *range;
        const char *shards;
    } depths[] = {
        {&m->score_depth,
         "score_depth must have terms in [0, 1e9] (constant: -1e9 .. 1e9), block_keys and "
         "most_keys >= 0",
         "score_depth: block_keys 0 counts shards, which only the ring has"},
        {&m->rescales,
         "rescales must have terms in [0, 1e9] (constant: -1e9 .. 1e9), block_keys and most_keys "
         ">= 0",
         "rescales: block_keys 0 counts shards, which only the ring has"},
        {&m->acc_depth,
         "acc_depth must have terms in [0, 1e9] (constant: -1e9 .. 1e9), block_keys and most_keys "
         ">= 0",
         "acc_depth: block_keys 0 counts shards, which only the ring has"},
        {&m->acc_extra,
         "acc_extra must have terms in [0, 1e9] (constant: -1e9 .. 1e9), block_keys and most_keys "
         ">= 0",
         "acc_extra: block_keys 0 counts shards, which only the ring has"},
    };

    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        if (!is_depth(depths[i].depth)) {
            return depths[i].range;
        }
        if (!is_ring && counts_shards(depths[i].depth)) {
            return depths[i].shards;
        }
    }
    return NULL;
}

/* The promise of mla_acc_stores: stores are counted in the blocks of the frame and nowhere else. */
static const char *stores_error(const struct mla_model *m)
{
    const struct mla_depth *extra = &m->acc_extra;

    if (m->acc_stores < MLA_ACC_STORES_UNKNOWN || m->acc_stores > MLA_ACC_STORES_BLOCKS) {
        return "acc_stores is no enum mla_acc_stores";
    }
    if (m->acc_stores == MLA_ACC_STORES_UNKNOWN) {
        return NULL;
    }
    if (m->p_frame != MLA_P_FRAME_BLOCKS) {
        return "acc_stores BLOCKS needs p_frame BLOCKS";
    }
    if (!(extra->per_block >= 1.0 && extra->per_block == floor(extra->per_block)) ||
        extra->constant != 0.0 || extra->per_width != 0.0 || extra->per_key != 0.0) {
        return "acc_stores BLOCKS needs acc_extra to be a whole number of blocks";
    }
    if (extra->block_keys != m->p_block_keys) {
        return "acc_stores BLOCKS needs acc_extra's block_keys to be p_block_keys";
    }
    return NULL;
}

static const char *choice_error(const struct mla_model *m, bool is_ring)
{
    if (m->arg_form < MLA_ARG_DIFFERENCE || m->arg_form > MLA_ARG_MIXED) {
        return "arg_form is no enum mla_arg_form";
    }
    if (m->arg_roundings < 0) {
        return "arg_roundings must not be negative";
    }
    if (m->p_frame < MLA_P_FRAME_UNKNOWN || m->p_frame > MLA_P_FRAME_BLOCKS) {
        return "p_frame is no enum mla_p_frame";
    }
    if (m->p_block_keys < 0) {
        return "p_block_keys must not be negative";
    }
    if (!is_ring && m->p_frame == MLA_P_FRAME_BLOCKS && m->p_block_keys == 0) {
        return "p_block_keys 0 counts shards, which only the ring has";
    }
    if (m->shard_block_keys < 0) {
        return "shard_block_keys must not be negative";
    }
    if (!is_ring && m->shard_block_keys != 0) {
        return "shard_block_keys cuts shards, which only the ring has: must be 0";
    }
    if (m->div_roundings < 0) {
        return "div_roundings must not be negative";
    }
    if (m->out_round != MLA_OUT_NEAREST && m->out_round != MLA_OUT_TRUNCATE) {
        return "out_round is no enum mla_out_round";
    }
    if (m->stats_max < MLA_STATS_SHIFT || m->stats_max > MLA_STATS_OTHER) {
        return "stats_max is no enum mla_stats_max";
    }
    if (!is_flag(m->sum_rounded) || !is_flag(m->flush) || !is_flag(m->weights_ignore_v)) {
        return "sum_rounded, flush and weights_ignore_v must be 0 or 1";
    }
    return NULL;
}

const char *mla_bound_model_error(const struct mla_model *model, bool is_ring)
{
    const char *error = unit_error(model);

    if (error == NULL) {
        error = depth_error(model, is_ring);
    }
    if (error == NULL) {
        error = choice_error(model, is_ring);
    }
    if (error == NULL) {
        error = stores_error(model);
    }
    return error;
}
