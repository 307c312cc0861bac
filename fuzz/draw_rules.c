/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_rules.c - every way to break a rule of a valid call that drawing knows: a field, values that no
 * call or no such call may have, and a weight.
 *
 * A rule that only some calls have (those with a slot, balanced ones, ..) is weighed by how few they
 * are, so that over many draws each rule is broken about equally often. Weight 0: not of this call.
 * Whether a value really breaks a rule of the call at hand is asked of the definition afterwards.
 *
 * Dimensions of 2^56, 2^58, 2^61 and 2^62 make products that are 0 modulo 2^64, and one more than
 * that makes small ones: who multiplies in 64 bits finds nothing wrong with them.
 */
#include "fuzz/draw.h"

#define SIZE_MIN_TEXT "-9223372036854775808"
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define PARTS         3 /* of the ways of an operation, at most, each a table */

/* Append to a list that has n. */
static size_t append(const struct mla_breakage *from, size_t from_n, size_t n,
                     struct mla_breakage list[MLA_BREAKAGES_MAX])
{
    for (size_t i = 0; i < from_n; i++)
        list[n++] = from[i];
    return n;
}

/* Pointers, and what may be of a parameter alone. */
static size_t ring_ranges(const struct mla_case *test, struct mla_breakage list[MLA_BREAKAGES_MAX])
{
    int32_t stats = test->stats ? 4 : 0, scaled = test->ring.has_scale ? 3 : 0;
    const struct mla_breakage all[] = {
        {2, "struct_size", "0 8 4096", 0},
        {2, "q", "null", 0},
        {2, "kv", "null", 0},
        {2, "gathered", "null", 0},
        {2, "out", "null", 0},
        {1, "q[0]", "null", 0},
        {1, "kv[0]", "null", 0},
        {1, "gathered[0]", "null", 0},
        {1, "out[0]", "null", 0},
        {stats, "stats[0]", "null", 0},
        /* ranges */
        {2, "ring_size", "0 -1 33 1000000000000 9223372036854775807 " SIZE_MIN_TEXT, 0},
        {2, "batch", "0 -1 " SIZE_MIN_TEXT, 0},
        {2, "heads", "0 -7 " SIZE_MIN_TEXT, 0},
        {2, "q_rows", "0 -32 1 31 33 9223372036854775776", 0},
        {2, "kv_rows", "0 -32 1 31 33 9223372036854775776", 0},
        {1, "kv_batch", "0 -1", 0},
        {1, "gathered_batch", "0 -1", 0},
        {2, "num_links", "0 -1 " SIZE_MIN_TEXT, 0},
        {2, "threads", "-1 " SIZE_MIN_TEXT, 0},
        {2, "topology", "2 -1 258", 0},
        {2, "has_scale", "2 -1", 0},
        {2, "is_balanced", "2 -1 256", 0},
        {2, "has_slot", "2 -1 -2147483648", 0},
        {2, "has_prior", "2 -1", 0},
        {2, "dim", "0 1 3 -1 -2", 0},
        {scaled, "scale", "nan", 0},
        {scaled, "scale", "inf -inf", 0},
        {scaled, "scale", "0 -0.0", 0},
        {scaled, "scale", "-1.5", 0},
    };
    _Static_assert(COUNT(all) <= MLA_BREAKAGES_MAX / PARTS, "room for every way");
    return append(all, COUNT(all), 0, list);
}

static size_t ring_shapes(const struct mla_ring_args *r, size_t n,
                          struct mla_breakage list[MLA_BREAKAGES_MAX])
{
    int32_t slot = r->has_slot ? 8 : 0, no_slot = r->has_slot ? 0 : 2;
    const struct mla_breakage all[] = {
        {4, "kv_heads", "0 2 -1 8 128", 0},
        {1, "kv_head_dim", "0 32 2147483647 -64", 0},
        {1, "kv_head_dim", NULL, r->head_dim + 32},
        {2, "head_dim", "0 -64 63 33 9223372036854775776 4611686018427387904", 0},
        {1, "head_dim_v", "0 -32 1 31 33 1024000 9223372036854775776", 0},
        {1, "head_dim_v", NULL, r->head_dim},
        {1, "q_chunk_size", "0 -32 1 31 33 " SIZE_MIN_TEXT, 0},
        {2, "k_chunk_size", "0 -32 1 31 33 " SIZE_MIN_TEXT, 0},
        {1, "q_rows", NULL, r->kv_rows + 32},
        {no_slot, "kv_batch", "77 4611686018427387904", 0},
        {no_slot, "kv_batch", NULL, r->batch + 1},
        {no_slot, "batch", NULL, r->batch + 1},
        {no_slot, "gathered_batch", NULL, r->gathered_batch + 1},
        {1, "gathered_rows", "0 -1 1 31", 0},
        {1, "gathered_rows", NULL, r->ring_size * r->kv_rows - 1},
        /* sizes */
        {2, "heads", "72057594037927936 72057594037927937 288230376151711744 9223372036854775807",
         0},
        {1, "gathered_rows", "144115188075855872 4611686018427387904 9223372036854775807", 0},
        {slot / 4, "kv_batch", "288230376151711744 4611686018427387904 9223372036854775807", 0},
        {slot / 4, "gathered_batch", "288230376151711744 9223372036854775807", 0},
        {slot / 4, "batch", "4611686018427387904", 0},
    };
    _Static_assert(COUNT(all) <= MLA_BREAKAGES_MAX / PARTS, "room for every way");
    return append(all, COUNT(all), n, list);
}

/* Lengths, and the shapes and flags that go with them. */
static size_t ring_lengths(const struct mla_ring_args *r, size_t n,
                           struct mla_breakage list[MLA_BREAKAGES_MAX])
{
    int64_t capacity = r->ring_size * r->kv_rows, slab = r->ring_size * r->q_rows;
    int64_t P = r->kv_actual_isl;
    int32_t slot = r->has_slot ? 8 : 0, balanced = r->is_balanced ? 10 : 0;
    int32_t prior = r->has_prior ? 6 : 0;
    int32_t chunked = !r->has_prior && r->kv_rows > r->q_rows ? 10 : 0;
    const struct mla_breakage all[] = {
        {2, "logical_n", "0 -1 9223372036854775807 10000001 " SIZE_MIN_TEXT, 0},
        {2, "logical_n", NULL, capacity + 1},
        {balanced / 2, "logical_n", NULL, capacity - 32},
        {balanced / 2, "logical_n", NULL, capacity - 1},
        {balanced, "q_chunk_size", NULL, r->q_rows / 2 + 32},
        {balanced / 2, "kv_rows", NULL, r->kv_rows + 32},
        {balanced / 4, "has_prior", NULL, 1},
        {1, "is_balanced", NULL, 1},
        {slot, "kv_cache_batch_idx", "-1 77 4294967295 " SIZE_MIN_TEXT, 0},
        {slot, "kv_cache_batch_idx", NULL, r->kv_batch},
        {slot, "batch", NULL, r->batch + 1},
        {slot / 2, "gathered_batch", "77", 0},
        {slot / 2, "gathered_batch", NULL, r->kv_batch + 1},
        {slot / 4, "has_slot", NULL, 0},
        {1, "has_slot", NULL, 1},
        {prior, "kv_actual_isl", "-32 -1 1 33 9223372036854775776 " SIZE_MIN_TEXT, 0},
        {prior, "kv_actual_isl", NULL, P + 16},
        {prior / 2, "kv_actual_isl", NULL, r->logical_n},
        {prior / 2, "kv_actual_isl", NULL, r->logical_n - slab - 32},
        {prior / 2, "logical_n", NULL, P},
        {prior / 2, "logical_n", NULL, P + slab + 32},
        {prior / 2, "logical_n", NULL, r->logical_n - 1},
        {prior / 2, "q_rows", NULL, r->kv_rows},
        {(prior + chunked) / 2, "kv_rows", NULL, r->kv_rows + 32},
        {chunked, "logical_n", NULL, slab - 32},
        {1, "has_prior", NULL, 1},
    };
    _Static_assert(COUNT(all) <= MLA_BREAKAGES_MAX / PARTS, "room for every way");
    return append(all, COUNT(all), n, list);
}

static size_t ring(const struct mla_case *test, struct mla_breakage list[MLA_BREAKAGES_MAX])
{
    size_t n = ring_ranges(test, list);
    n = ring_shapes(&test->ring, n, list);
    return ring_lengths(&test->ring, n, list);
}

static size_t sparse(const struct mla_case *test, struct mla_breakage list[MLA_BREAKAGES_MAX])
{
    const struct mla_sparse_args *s = &test->sparse;
    int32_t listed = s->dense ? 0 : 2, offset = s->has_q_pos_offset ? 4 : 0;
    int32_t cores = s->cores > 1 ? 6 : 0;
    const struct mla_breakage all[] = {
        {2, "struct_size", "0 8 4096", 0},
        {1, "q_lift", "null", 0},
        {1, "q_pe", "null", 0},
        {1, "c_kv", "null", 0},
        {1, "k_pe", "null", 0},
        {1, "out", "null", 0},
        {listed, "topk_indices", "null", 0},
        {2, "dense", NULL, !s->dense},
        /* ranges */
        {2, "queries", "0 -1 " SIZE_MIN_TEXT, 0},
        {2, "keys", "0 -1 " SIZE_MIN_TEXT, 0},
        {2, "cores", "0 -1", 0},
        {2, "threads", "-1 " SIZE_MIN_TEXT, 0},
        {2, "topk_tiled", "2 -1", 0},
        {2, "dense", "2 -1", 0},
        {2, "has_q_pos_offset", "2 -1", 0},
        {2, "out_order", "2 -1", 0},
        {2, "softmax_scale", "nan", 0},
        {2, "softmax_scale", "inf -inf", 0},
        {2, "softmax_scale", "0 -0.0", 0},
        {2, "softmax_scale", "-1.5", 0},
        {offset, "q_pos_offset", "-1 " SIZE_MIN_TEXT, 0},
        /* shapes */
        {2, "batch", "0 2 -1", 0},
        {2, "latent", "0 256 511 1024 -512", 0},
        {1, "heads", "0 -16 9223372036854775807", 0},
        {1, "heads", "144", 0},
        {1, "heads", "8 17", 0},
        {1, "heads", NULL, s->heads + 8},
        {1, "rope", "0 -1 9223372036854775807", 0},
        {1, "rope", NULL, MLA_ROPE_MAX + 1},
        {listed / 2, "topk", "0 -128", 0},
        {listed / 2, "topk", "1 64 127 129 200", 0},
        {listed / 2, "topk", NULL, s->topk + 64},
        {1, "cores", "1000003", 0},
        {1, "cores", NULL, s->queries + 1},
        {cores, "queries", NULL, s->queries * s->cores + 1},
        /* sizes */
        {2, "queries", "4611686018427387904 2305843009213693952 9223372036854775807", 0},
        {2, "keys", "4611686018427387904 2305843009213693952 9223372036854775807", 0},
        {1, "keys", NULL, ((int64_t)1 << 62) + s->keys},
        {listed / 2, "topk", "4611686018427387904 9223372036854775680", 0},
        /* one entry of the list: which and by what is chosen in draw_violation.c */
        {9 * listed, "topk_indices", MLA_BREAKAGE_INDEX, 0},
    };
    _Static_assert(COUNT(all) <= MLA_BREAKAGES_MAX, "room for every way");
    return append(all, COUNT(all), 0, list);
}

size_t mla_draw_breakages(const struct mla_case *test, struct mla_breakage list[MLA_BREAKAGES_MAX])
{
    return test->op == MLA_OP_RING ? ring(test, list) : sparse(test, list);
}
