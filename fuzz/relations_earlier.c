/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_earlier.c - calls that a kernel has to forget: what is made before the case's own call.
 *
 * A plan kept by shape, a slot or a length taken from the first call, numbers packed once for a
 * pointer: none of it shows while every call has a process to itself. Earlier calls work on the
 * call's own memory where a caller would do the same, a cache that grows above all.
 */
#include "fuzz/relations_internal.h"

/* The case with nothing in it that only fits its own shape. */
static void begin(const struct mla_case *test, struct mla_earlier *earlier)
{
    *earlier = (struct mla_earlier){.test = *test, .in_place = true};
    earlier->test.put_n = 0;
    earlier->test.has_future = 0;
}

/* One and two thirds of the keys. */
bool mla_earlier_growth(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    const struct mla_ring_args *r = &test->ring;
    bool is_ring = test->op == MLA_OP_RING;
    int64_t keys = is_ring ? r->logical_n : test->sparse.keys, fewer = keys * (i + 1) / 3;
    int64_t least = is_ring && r->q_rows < r->kv_rows ? r->ring_size * r->q_rows : 1;
    begin(test, earlier);
    fewer = fewer < least ? least : fewer;
    *(is_ring ? &earlier->test.ring.logical_n : &earlier->test.sparse.keys) = fewer;
    return i < 2 && fewer < keys && !(is_ring && (r->is_balanced || r->has_prior));
}

bool mla_earlier_slot(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    struct mla_ring_args *r = &earlier->test.ring;
    begin(test, earlier);
    r->kv_cache_batch_idx = (r->kv_cache_batch_idx + 1) % r->kv_batch;
    return i == 0 && r->has_slot && r->kv_batch > 1;
}

/* As many new tokens behind other ones: none before them or as many as can be, then half as many. */
bool mla_earlier_prior(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    const struct mla_ring_args *r = &test->ring;
    int64_t fresh = r->logical_n - r->kv_actual_isl;
    int64_t half = r->kv_actual_isl / 2 / MLA_TILE * MLA_TILE;
    int64_t most = (r->ring_size * r->kv_rows - fresh) / MLA_TILE * MLA_TILE;
    int64_t prior = i > 0 ? half : r->kv_actual_isl > 0 ? 0 : most;
    begin(test, earlier);
    earlier->test.ring.kv_actual_isl = prior;
    earlier->test.ring.logical_n = prior + fresh;
    return i < 2 && r->has_prior && prior != r->kv_actual_isl;
}

bool mla_earlier_pointers(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    begin(test, earlier);
    earlier->test.seed++;
    earlier->in_place = false;
    return i == 0;
}

bool mla_earlier_contents(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    begin(test, earlier);
    earlier->test.seed++;
    return i == 0;
}

bool mla_earlier_scale(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    float scale = mla_case_scale(test);
    begin(test, earlier);
    scale = scale > 1.0f ? scale / 2 : scale * 2;
    earlier->test.ring.has_scale = 1;
    earlier->test.ring.scale = scale;
    earlier->test.sparse.softmax_scale = scale;
    return i == 0;
}

/* One option of a ring's call put in another way; false where that would make another call of it. */
static bool change_ring(struct mla_ring_args *r, int option)
{
    int64_t all = r->ring_size * r->kv_rows;
    bool is_whole = !r->has_prior && r->q_rows == r->kv_rows && r->logical_n == all;
    switch (option) {
    case 0:
        r->topology = r->topology == MLA_TOPOLOGY_RING ? MLA_TOPOLOGY_LINEAR : MLA_TOPOLOGY_RING;
        return r->ring_size > 2;
    case 1:
        r->is_balanced = !r->is_balanced;
        return is_whole && r->q_rows % 64 == 0 && r->q_rows / 2 % r->q_chunk_size == 0;
    default:
        r->has_scale = !r->has_scale;
        r->scale = r->has_scale ? 0x1p-3f : 0;
        return true;
    }
}

static bool change_sparse(struct mla_sparse_args *s, int option)
{
    int64_t half = s->keys / 2 < s->queries ? 0 : s->keys / 2 - s->queries;
    switch (option) {
    case 0:
        s->out_order = s->out_order == MLA_OUT_MX4 ? MLA_OUT_NATURAL : MLA_OUT_MX4;
        return true;
    case 1:
        s->has_q_pos_offset = !s->has_q_pos_offset;
        s->q_pos_offset = s->has_q_pos_offset ? half : 0;
        return true;
    default:
        s->q_pos_offset = s->q_pos_offset == half ? half + 1 : half;
        return s->has_q_pos_offset;
    }
}

/* A kernel may keep any one option of the first call it sees: which one is changed in that call follows
 * from the case, so that over many cases each is. */
bool mla_earlier_options(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    int option = (int)(test->seed % 3);
    for (int tries = 0; i == 0 && tries < 3; tries++) {
        begin(test, earlier);
        if (test->op == MLA_OP_RING ? change_ring(&earlier->test.ring, (option + tries) % 3)
                                    : change_sparse(&earlier->test.sparse, (option + tries) % 3))
            return true;
    }
    return false;
}

bool mla_earlier_others(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    struct mla_rng rng = mla_relation_rng(test, 100 + (uint64_t)i);
    *earlier = (struct mla_earlier){.in_place = false};
    mla_case_draw(&earlier->test, i == 0 ? (enum mla_op)test->op : (enum mla_op) !test->op, &rng);
    return i < 2;
}

bool mla_earlier_refusal(const struct mla_case *test, int i, struct mla_earlier *earlier)
{
    struct mla_rng rng = mla_relation_rng(test, 200 + (uint64_t)i);
    char error[MLA_CASE_ERROR_MAX];
    begin(test, earlier);
    earlier->in_place = false;
    for (int tries = 0; tries < 8; tries++) { /* a draw may break nothing in this call */
        mla_case_draw_violation(&earlier->test, &rng);
        if (mla_case_problem(&earlier->test, INT64_MAX, error) == NULL)
            return i < 2;
    }
    return false;
}
