/* SPDX-License-Identifier: Apache-2.0
 *
 * case_mutate.c - changing cases: the custom mutator's core.
 *
 * Mutation works on fields, never on bytes: it redraws a part, moves one number by a unit or to an
 * edge, goes to neighbouring data, or replaces elements. Crossing takes whole groups of fields from
 * either parent. mla_case_fix restores every rule afterwards, so the value targets never see an
 * invalid case; a case that is to be refused stays one (mutate_set.c).
 */
#include "fuzz/case.h"

#include <string.h>

#include "fuzz/case_fields.h"
#include "fuzz/draw.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* ---- groups of fields ---- */

static void take_family(struct mla_case *test, const struct mla_case *from)
{
    test->family = from->family;
    test->region = from->region;
    test->amount = from->amount;
    test->ring.has_scale = from->ring.has_scale;
    test->ring.scale = from->ring.scale;
    test->sparse.softmax_scale = from->sparse.softmax_scale;
}

static void take_seed(struct mla_case *test, const struct mla_case *from)
{
    test->seed = from->seed;
}

static void take_lists(struct mla_case *test, const struct mla_case *from)
{
    test->indices = from->indices;
    test->sparse.topk_tiled = from->sparse.topk_tiled;
    test->sparse.dense = from->sparse.dense;
    test->sparse.topk = from->sparse.topk;
}

static void take_hidden(struct mla_case *test, const struct mla_case *from)
{
    test->poison = from->poison;
    test->has_future = from->has_future;
    test->future = from->future;
}

static void take_sample(struct mla_case *test, const struct mla_case *from)
{
    test->rows = from->rows;
    test->row_seed = from->row_seed;
    test->stats = from->stats;
}

/* What is cut how, and by whom: no part of the result's meaning. */
static void take_schedule(struct mla_case *test, const struct mla_case *from)
{
    test->ring.topology = from->ring.topology;
    test->ring.num_links = from->ring.num_links;
    test->ring.threads = from->ring.threads;
    test->ring.q_chunk_size = from->ring.q_chunk_size;
    test->ring.k_chunk_size = from->ring.k_chunk_size;
    test->sparse.cores = from->sparse.cores;
    test->sparse.threads = from->sparse.threads;
    test->sparse.out_order = from->sparse.out_order;
}

static void take_lengths(struct mla_case *test, const struct mla_case *from)
{
    test->ring.logical_n = from->ring.logical_n;
    test->ring.has_prior = from->ring.has_prior;
    test->ring.kv_actual_isl = from->ring.kv_actual_isl;
    test->sparse.keys = from->sparse.keys;
    test->sparse.has_q_pos_offset = from->sparse.has_q_pos_offset;
    test->sparse.q_pos_offset = from->sparse.q_pos_offset;
}

static void take_slots(struct mla_case *test, const struct mla_case *from)
{
    test->ring.has_slot = from->ring.has_slot;
    test->ring.kv_batch = from->ring.kv_batch;
    test->ring.kv_cache_batch_idx = from->ring.kv_cache_batch_idx;
    test->ring.gathered_batch = from->ring.gathered_batch;
    test->ring.batch = from->ring.batch;
}

static void take_shape(struct mla_case *test, const struct mla_case *from)
{
    test->ring.ring_size = from->ring.ring_size;
    test->ring.is_balanced = from->ring.is_balanced;
    test->ring.heads = from->ring.heads;
    test->ring.q_rows = from->ring.q_rows;
    test->ring.kv_rows = from->ring.kv_rows;
    test->ring.gathered_rows = from->ring.gathered_rows;
    test->ring.head_dim = from->ring.head_dim;
    test->ring.head_dim_v = from->ring.head_dim_v;
    test->sparse.queries = from->sparse.queries;
    test->sparse.heads = from->sparse.heads;
    test->sparse.rope = from->sparse.rope;
}

static void (*const groups[])(struct mla_case *test, const struct mla_case *from) = {
    take_family, take_seed,  take_lists,   take_hidden,  take_sample,
    take_shape,  take_slots, take_lengths, take_schedule};
#define GROUPS_N (sizeof(groups) / sizeof(groups[0]))

/* ---- steps ---- */

static void take_data(struct mla_case *test, const struct mla_case *from)
{
    take_family(test, from);
    take_seed(test, from);
    take_hidden(test, from);
    test->indices = from->indices;
    test->stats = from->stats;
}

static void take_geometry(struct mla_case *test, const struct mla_case *from)
{
    test->ring = from->ring;
    test->sparse = from->sparse;
    test->indices = from->indices; /* some shapes are there for what their lists drop or reach */
    test->has_future = from->has_future;
    test->future = from->future;
    take_sample(test, from);          /* which is aimed at the seams of its shape */
    if (mla_case_may_be_medium(from)) /* whoever is large is so by its seed */
        test->seed = from->seed;
}

/* Any field but the version, and but what is changed by rules and elements of its own. */
static const struct mla_field *choose_field(const struct mla_case *test, struct mla_rng *rng)
{
    size_t fields_n;
    const struct mla_field *fields = mla_case_fields((enum mla_op)test->op, &fields_n);
    return &fields[1 + mla_rng_below(rng, (int64_t)fields_n - 1)];
}

/* One field as a fresh draw has it. */
static void take_field(struct mla_case *test, const struct mla_case *from, struct mla_rng *rng)
{
    static const size_t bytes[] = {
        [MLA_FIELD_INT] = 8,           [MLA_FIELD_FLAG] = 4,  [MLA_FIELD_NAME] = 4,
        [MLA_FIELD_SEED] = 8,          [MLA_FIELD_FLOAT] = 4, [MLA_FIELD_OPTIONAL_INT] = 8,
        [MLA_FIELD_OPTIONAL_FLOAT] = 4};
    const struct mla_field *field = choose_field(test, rng);
    if (field->kind == MLA_FIELD_SET || field->kind == MLA_FIELD_PUT)
        return;
    memcpy((char *)test + field->offset, (const char *)from + field->offset, bytes[field->kind]);
    if (field->kind == MLA_FIELD_OPTIONAL_INT || field->kind == MLA_FIELD_OPTIONAL_FLOAT)
        memcpy((char *)test + field->has_offset, (const char *)from + field->has_offset,
               sizeof(int32_t));
}

/* Move one integer field by a unit, a tile, or a factor of two; fix clamps what is out of range. */
static void nudge(struct mla_case *test, struct mla_rng *rng)
{
    static const int64_t steps[] = {1, -1, 1, -1, 32, -32, 32, -32, 128, -128};
    const struct mla_field *field = choose_field(test, rng);
    char *at = (char *)test + field->offset;
    if (field->kind == MLA_FIELD_INT || field->kind == MLA_FIELD_OPTIONAL_INT) {
        int64_t value;
        memcpy(&value, at, sizeof value);
        value = clamp(value, INT64_MIN / 4, INT64_MAX / 4);
        value = mla_rng_chance(rng, 1, 8) ? value * 2 : value + steps[mla_rng_below(rng, 10)];
        memcpy(at, &value, sizeof value);
    }
    if (field->kind == MLA_FIELD_FLAG)
        memcpy(at, &(int32_t){mla_rng_chance(rng, 1, 2)}, sizeof(int32_t));
    if (field->kind == MLA_FIELD_OPTIONAL_INT && mla_rng_chance(rng, 1, 2)) {
        int32_t has = mla_rng_chance(rng, 1, 2);
        memcpy((char *)test + field->has_offset, &has, sizeof has);
    }
}

/* A length to one of the edges of the geometry as it is, or beside it. */
static void go_to_edge_ring(struct mla_ring_args *r, struct mla_rng *rng)
{
    enum mla_edge edge = (enum mla_edge)mla_rng_below(rng, MLA_EDGE_ANY + 1);
    int64_t value = mla_edge_ring(r, edge, rng) + mla_draw_choice(rng, MLA_CHOICE_NEAR);
    switch (mla_rng_below(rng, 6)) {
    case 0:
        r->k_chunk_size = value;
        break;
    case 1:
        r->q_chunk_size = value;
        break;
    case 2:
        if (r->has_prior)
            mla_draw_rotation(r, rng);
        break;
    case 3:
        r->kv_actual_isl = value;
        break;
    default:
        r->logical_n = value;
        break;
    }
}

static void go_to_edge_sparse(struct mla_sparse_args *s, struct mla_rng *rng)
{
    bool is_keys = mla_rng_chance(rng, 1, 2);
    enum mla_edge edge = (enum mla_edge)mla_draw_choice(rng, is_keys ? MLA_CHOICE_SPARSE_KEYS
                                                                     : MLA_CHOICE_SPARSE_OFFSET);
    int64_t value = mla_edge_sparse(s, edge, rng), beside = mla_rng_below(rng, 3) - 1;
    value = value == INT64_MAX ? value : value + beside;
    if (is_keys) {
        s->keys = value;
        return;
    }
    s->has_q_pos_offset = 1;
    s->q_pos_offset = value;
}

/* The same region at another strength, or another region of the family, or (seldom) the same region
 * in another family that knows it. */
static void go_to_neighbour(struct mla_case *test, struct mla_rng *rng)
{
    size_t families_n;
    const struct mla_family *const *families = mla_families(&families_n);
    const struct mla_family *family = families[test->family];
    int64_t kind = mla_rng_below(rng, 8);
    if (kind < 4)
        test->amount += kind < 2 ? 1 - 2 * (kind & 1) : 2 * (kind & 1) * mla_rng_below(rng, 4);
    else if (kind < 7)
        test->region = (int32_t)family->regions[mla_rng_below(rng, (int64_t)family->regions_n)];
    else
        test->family = (int32_t)mla_rng_below(rng, (int64_t)families_n);
}

enum step { DATA, GEOMETRY, SEED, SAMPLE, GROUP, NUDGE, EDGE, NEIGHBOUR, FIELD, PUT };

/* PUT comes last, on the shape that results: see mla_case_mutate. */
static void change(struct mla_case *test, enum step step, struct mla_rng *rng)
{
    struct mla_case fresh;
    mla_case_draw(&fresh, (enum mla_op)test->op, rng);
    switch (step) {
    case DATA:
        take_data(test, &fresh);
        break;
    case GEOMETRY:
        take_geometry(test, &fresh);
        break;
    case SEED:
        take_seed(test, &fresh);
        break;
    case SAMPLE:
        take_sample(test, &fresh);
        break;
    case GROUP:
        groups[mla_rng_below(rng, GROUPS_N)](test, &fresh);
        break;
    case NUDGE:
        nudge(test, rng);
        break;
    case EDGE:
        if (test->op == MLA_OP_RING)
            go_to_edge_ring(&test->ring, rng);
        else
            go_to_edge_sparse(&test->sparse, rng);
        break;
    case NEIGHBOUR:
        go_to_neighbour(test, rng);
        break;
    case FIELD:
        take_field(test, &fresh, rng);
        break;
    case PUT:
        break;
    }
}

/* Rules restored, and the elements replaced in the parents carried over. */
static void settle(struct mla_case *test, const struct mla_case *parent,
                   const struct mla_case *other, bool reject)
{
    test->put_n = 0;
    memset(test->put, 0, sizeof test->put);
    mla_case_fix(test);
    mla_draw_leave_a_row(test);
    if (reject)
        return;
    mla_carry_put(test, parent);
    if (other != NULL && other->op == test->op)
        mla_carry_put(test, other);
}

void mla_case_mutate(struct mla_case *test, struct mla_rng *rng)
{
    const struct mla_case before = *test;
    bool reject = test->set_n > 0, put = false, shape = false;
    for (int64_t n = 1 + mla_rng_below(rng, 3); n > 0; n--) {
        enum step step = (enum step)mla_draw_choice(rng, MLA_CHOICE_MUTATION);
        if (reject && mla_rng_chance(rng, 1, 2)) /* the rule at least as often as the call */
            continue;
        put = put || step == PUT;
        shape = true;
        change(test, step, rng);
        mla_case_fix(test); /* the next step finds a legal case again */
    }
    if (shape)
        settle(test, &before, NULL, reject);
    if (reject)
        mla_mutate_set(test, rng);
    else if (put)
        mla_mutate_put(test, rng);
}

void mla_case_cross(struct mla_case *test, const struct mla_case *other, struct mla_rng *rng)
{
    const struct mla_case before = *test;
    bool reject = test->set_n > 0;
    if (other->op == test->op) {
        uint64_t from_other = 1 + (uint64_t)mla_rng_below(rng, (1 << GROUPS_N) - 2);
        for (size_t i = 0; i < GROUPS_N; i++)
            if (from_other >> i & 1)
                groups[i](test, other);
    } else {
        take_data(test, other);
    }
    if (reject && other->op == test->op && other->set_n > 0 && mla_rng_chance(rng, 1, 2)) {
        memcpy(test->set, other->set, sizeof test->set);
        test->set_n = other->set_n;
    }
    settle(test, &before, other, reject);
    if (reject)
        mla_mutate_set(test, rng);
}
