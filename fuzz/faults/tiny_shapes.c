/* SPDX-License-Identifier: Apache-2.0
 *
 * tiny_shapes.c - the shapes of the small hand-made calls: every layout and option at least once.
 */
#include "fuzz/faults/tiny.h"

#include <string.h>

#define RING_BASE                                                                                  \
    .struct_size = sizeof(struct mla_ring_args), .batch = 1, .heads = 2, .kv_batch = 1,            \
    .kv_heads = 1, .kv_head_dim = 64, .gathered_batch = 1, .head_dim = 64, .head_dim_v = 32,       \
    .num_links = 1, .q_chunk_size = 32, .dim = 2

static const struct mla_tiny_ring_shape ring_shapes[] = {
    {"contiguous",
     {RING_BASE, .ring_size = 2, .q_rows = 64, .kv_rows = 64, .gathered_rows = 128,
      .logical_n = 128, .k_chunk_size = 32}},
    {"padded",
     {RING_BASE, .ring_size = 3, .q_rows = 64, .kv_rows = 64, .gathered_rows = 200, .logical_n = 77,
      .k_chunk_size = 64}},
    {"balanced",
     {RING_BASE, .ring_size = 4, .q_rows = 64, .kv_rows = 64, .gathered_rows = 256,
      .logical_n = 256, .is_balanced = 1, .k_chunk_size = 32, .topology = MLA_TOPOLOGY_LINEAR}},
    {"chunked",
     {RING_BASE, .ring_size = 2, .q_rows = 64, .kv_rows = 192, .gathered_rows = 384,
      .logical_n = 250, .k_chunk_size = 96}},
    {"rotation",
     {RING_BASE, .ring_size = 4, .q_rows = 64, .kv_rows = 192, .gathered_rows = 768,
      .logical_n = 352, .has_prior = 1, .kv_actual_isl = 160, .k_chunk_size = 32}},
    {"rotation-zero",
     {RING_BASE, .ring_size = 4, .q_rows = 64, .kv_rows = 128, .gathered_rows = 512,
      .logical_n = 96, .has_prior = 1, .kv_actual_isl = 0, .k_chunk_size = 512}},
    {"one-rank",
     {RING_BASE, .ring_size = 1, .q_rows = 32, .kv_rows = 32, .gathered_rows = 32, .logical_n = 1,
      .k_chunk_size = 32}},
};

/* The same with the fields that RING_BASE fixes at another value. */
static const struct mla_tiny_ring_shape slot_shape = {"slot",
                                                      {.struct_size = sizeof(struct mla_ring_args),
                                                       .ring_size = 2,
                                                       .batch = 1,
                                                       .heads = 3,
                                                       .q_rows = 32,
                                                       .kv_rows = 96,
                                                       .kv_batch = 3,
                                                       .kv_heads = 1,
                                                       .kv_head_dim = 96,
                                                       .gathered_rows = 192,
                                                       .gathered_batch = 3,
                                                       .head_dim = 96,
                                                       .head_dim_v = 64,
                                                       .logical_n = 128,
                                                       .has_scale = 1,
                                                       .scale = 0.25f,
                                                       .has_slot = 1,
                                                       .kv_cache_batch_idx = 1,
                                                       .num_links = 2,
                                                       .q_chunk_size = 64,
                                                       .k_chunk_size = 64,
                                                       .dim = 2}};
static const struct mla_tiny_ring_shape batch_shape = {"batch",
                                                       {.struct_size = sizeof(struct mla_ring_args),
                                                        .ring_size = 3,
                                                        .batch = 2,
                                                        .heads = 1,
                                                        .q_rows = 32,
                                                        .kv_rows = 32,
                                                        .kv_batch = 2,
                                                        .kv_heads = 1,
                                                        .kv_head_dim = 64,
                                                        .gathered_rows = 96,
                                                        .gathered_batch = 2,
                                                        .head_dim = 64,
                                                        .head_dim_v = 32,
                                                        .logical_n = 90,
                                                        .num_links = 1,
                                                        .q_chunk_size = 32,
                                                        .k_chunk_size = 32,
                                                        .dim = 2,
                                                        .topology = MLA_TOPOLOGY_LINEAR}};

#define SPARSE_BASE                                                                                \
    .struct_size = sizeof(struct mla_sparse_args), .batch = 1, .heads = 16, .latent = 512,         \
    .cores = 1, .softmax_scale = 0.04f

static const struct mla_tiny_sparse_shape sparse_shapes[] = {
    {"flat", {SPARSE_BASE, .queries = 3, .keys = 300, .rope = 64, .topk = 256}},
    {"tiled", {SPARSE_BASE, .queries = 130, .keys = 50, .rope = 1, .topk = 128, .topk_tiled = 1}},
    {"offset",
     {SPARSE_BASE, .queries = 4, .keys = 200, .rope = 64, .topk = 256, .has_q_pos_offset = 1,
      .q_pos_offset = 90}},
    {"offset-zero",
     {SPARSE_BASE, .queries = 3, .keys = 40, .rope = 16, .topk = 128, .has_q_pos_offset = 1}},
    {"offset-huge",
     {SPARSE_BASE, .queries = 2, .keys = 40, .rope = 128, .topk = 128, .has_q_pos_offset = 1,
      .q_pos_offset = INT64_MAX}},
    {"dense", {SPARSE_BASE, .queries = 5, .keys = 3, .rope = 64, .dense = 1}},
    {"dense-offset",
     {SPARSE_BASE, .queries = 4, .keys = 150, .rope = 64, .dense = 1, .has_q_pos_offset = 1,
      .q_pos_offset = 130}},
    {"natural",
     {SPARSE_BASE, .queries = 2, .keys = 100, .rope = 64, .topk = 128,
      .out_order = MLA_OUT_NATURAL}},
};

#define RING_SHAPES_N (sizeof ring_shapes / sizeof ring_shapes[0] + 2)

const struct mla_tiny_ring_shape *mla_tiny_ring_shapes(size_t *shapes_n)
{
    static struct mla_tiny_ring_shape all[RING_SHAPES_N];
    memcpy(all, ring_shapes, sizeof ring_shapes);
    all[RING_SHAPES_N - 2] = slot_shape;
    all[RING_SHAPES_N - 1] = batch_shape;
    *shapes_n = RING_SHAPES_N;
    return all;
}

const struct mla_tiny_sparse_shape *mla_tiny_sparse_shapes(size_t *shapes_n)
{
    *shapes_n = sizeof sparse_shapes / sizeof sparse_shapes[0];
    return sparse_shapes;
}
