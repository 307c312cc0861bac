/* SPDX-License-Identifier: Apache-2.0
 *
 * draw_violation.c - breaking one rule of a valid call, or two: values that no call may have.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/draw.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Values that break a rule of a valid call. */
struct breakage {
    const char *field;
    const char *values; /* separated by spaces */
};

static const struct breakage ring_breakages[] = {
    {"struct_size", "0 8 4096"},
    {"q", "null"},
    {"kv", "null"},
    {"gathered", "null"},
    {"out", "null"},
    {"q[0]", "null"},
    {"kv[0]", "null"},
    {"gathered[0]", "null"},
    {"out[0]", "null"},
    {"stats[0]", "null"},
    {"ring_size", "0 -1 33 1000000000000 9223372036854775807 -9223372036854775808"},
    {"batch", "0 -1 -9223372036854775808 4611686018427387904"},
    {"heads", "0 -7 -9223372036854775808 9223372036854775807 288230376151711744"},
    {"q_rows", "0 -32 1 31 33 9223372036854775776"},
    {"kv_rows", "0 -32 1 31 33 9223372036854775776"},
    {"kv_batch", "0 -1 77 4611686018427387904"},
    {"kv_heads", "0 2 -1 128"},
    {"kv_head_dim", "0 32 2147483647 -64"},
    {"gathered_rows", "0 -1 1 31"},
    {"gathered_batch", "0 -1 77 9223372036854775807"},
    {"head_dim", "0 -64 63 33 9223372036854775776 4611686018427387904"},
    {"head_dim_v", "0 -32 1 31 33 1024000 9223372036854775776"},
    {"logical_n", "0 -1 -9223372036854775808 9223372036854775807 10000001"},
    {"scale", "nan inf -inf 0 -0.0 -1.5"},
    {"has_scale", "2 -1"},
    {"is_balanced", "2 -1 256"},
    {"has_slot", "2 -2147483648"},
    {"kv_cache_batch_idx", "-1 77 4294967295 -9223372036854775808"},
    {"has_prior", "2 -1"},
    {"kv_actual_isl", "-32 -1 1 33 9223372036854775776 -9223372036854775808"},
    {"topology", "2 -1 258"},
    {"num_links", "0 -1 -9223372036854775808"},
    {"q_chunk_size", "0 -32 1 31 33 -9223372036854775808"},
    {"k_chunk_size", "0 -32 1 31 33 -9223372036854775808"},
    {"dim", "0 1 3 -1 -2"},
    {"threads", "-1 -9223372036854775808"},
};

static const struct breakage sparse_breakages[] = {
    {"struct_size", "0 8 4096"},
    {"q_lift", "null"},
    {"q_pe", "null"},
    {"c_kv", "null"},
    {"k_pe", "null"},
    {"out", "null"},
    {"topk_indices", "null"},
    {"batch", "0 2 -1"},
    {"queries", "0 -1 -9223372036854775808 9223372036854775807"},
    {"keys", "0 -1 -9223372036854775808 9223372036854775807"},
    {"heads", "0 -16 8 17 144 9223372036854775807"},
    {"latent", "0 256 511 1024 -512"},
    {"rope", "0 -1 129 9223372036854775807"},
    {"topk", "0 -128 1 64 127 129 200 9223372036854775680"},
    {"topk_tiled", "2 -1"},
    {"dense", "2 -1"},
    {"has_q_pos_offset", "2 -1"},
    {"q_pos_offset", "-1 -9223372036854775808"},
    {"out_order", "2 -1"},
    {"cores", "0 -1 1000003"},
    {"threads", "-1 -9223372036854775808"},
    {"softmax_scale", "nan inf -inf 0 -0.0 -1.5"},
};

static const char *const bad_indices = "-2147483648 -123456 -1 2143289344 2147480000 2147483647";

/* Copy the i-th of the space-separated words; returns how many there are. */
static int64_t word(const char *words, int64_t i, char *text, size_t bytes)
{
    int64_t n = 0;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (n == i)
            snprintf(text, bytes, "%.*s", (int)length, words);
        n++;
        words += length + (words[length] == ' ');
    }
    return n;
}

/* Fields that mean something, or are tied to others, only in some calls. */
static bool applies(const struct mla_case *test, const char *field)
{
    const struct {
        const char *field;
        bool counts;
    } conditions[] = {{"scale", test->ring.has_scale},
                      {"kv_cache_batch_idx", test->ring.has_slot},
                      {"kv_batch", !test->ring.has_slot},
                      {"kv_actual_isl", test->ring.has_prior},
                      {"q_pos_offset", test->sparse.has_q_pos_offset},
                      {"stats[0]", test->stats},
                      {"topk", !test->sparse.dense},
                      {"topk_indices", !test->sparse.dense}};
    for (size_t i = 0; i < COUNT(conditions); i++)
        if (strcmp(field, conditions[i].field) == 0)
            return conditions[i].counts;
    return true;
}

static void break_value(struct mla_violation *v, const char *words, struct mla_rng *rng)
{
    int64_t n = word(words, -1, v->value, sizeof v->value);
    word(words, mla_rng_below(rng, n), v->value, sizeof v->value);
}

/* A bad index at the first, an interior or the last place of the list. */
static int64_t choose_place(const struct mla_case *test, struct mla_rng *rng)
{
    int64_t all = test->sparse.queries * test->sparse.topk, any = mla_rng_below(rng, all);
    const int64_t places[] = {0, all - 1, test->sparse.topk - 1, any};
    return places[mla_rng_below(rng, COUNT(places))];
}

static void break_index(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    snprintf(v->field, sizeof v->field, "topk_indices");
    v->at = choose_place(test, rng);
    if (mla_rng_chance(rng, 1, 3))
        snprintf(v->value, sizeof v->value, "%" PRId64,
                 test->sparse.keys + (int64_t)mla_rng_chance(rng, 1, 2));
    else
        break_value(v, bad_indices, rng);
}

/* A field and a value that may break a rule of this call. */
struct suspect {
    const char *field;
    int64_t value;
};

static void break_by(const struct suspect *suspects, size_t n, struct mla_violation *v,
                     struct mla_rng *rng)
{
    size_t i = (size_t)mla_rng_below(rng, (int64_t)n);
    snprintf(v->field, sizeof v->field, "%s", suspects[i].field);
    snprintf(v->value, sizeof v->value, "%" PRId64, suspects[i].value);
}

/* The ends of ranges that depend on the call, one beyond the last legal value, and options that do
 * not go together. Some break nothing in some calls: see break_one. */
static void break_relative(const struct mla_case *test, struct mla_violation *v,
                           struct mla_rng *rng)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    int64_t capacity = r->ring_size * r->kv_rows, slab = r->ring_size * r->q_rows;
    const struct suspect ring[] = {
        {"logical_n", capacity + 1},
        {"logical_n", capacity - 32},
        {"logical_n", slab - 32},
        {"logical_n", r->kv_actual_isl},
        {"logical_n", r->kv_actual_isl + slab + 32},
        {"logical_n", r->logical_n - 1},
        {"kv_actual_isl", r->logical_n},
        {"kv_actual_isl", r->logical_n - slab - 32},
        {"kv_actual_isl", r->kv_actual_isl + 16},
        {"gathered_rows", capacity - 1},
        {"head_dim_v", r->head_dim},
        {"kv_head_dim", r->head_dim + 32},
        {"kv_batch", r->batch + 1},
        {"batch", r->batch + 1},
        {"gathered_batch", r->gathered_batch + 5},
        {"kv_cache_batch_idx", r->kv_batch},
        {"q_rows", r->kv_rows + 32},
        {"kv_rows", r->kv_rows + 32},
        {"q_chunk_size", r->q_rows / 2 + 32},
        {"has_prior", 1},
        {"has_slot", 1},
        {"has_slot", 0},
        {"is_balanced", 1},
        {"ring_size", MLA_RING_SIZE_MAX + 1},
    };
    const struct suspect sparse[] = {
        {"cores", s->queries + 1}, {"queries", s->queries * s->cores + 1},
        {"dense", !s->dense},      {"topk", s->topk + 64},
        {"heads", s->heads + 8},   {"rope", MLA_ROPE_MAX + 1},
    };
    if (test->op == MLA_OP_RING)
        break_by(ring, COUNT(ring), v, rng);
    else
        break_by(sparse, COUNT(sparse), v, rng);
}

/* "kv[0]" of the table stands for any rank. */
static void choose_rank(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    char *bracket = strchr(v->field, '[');
    if (bracket == NULL)
        return;
    int64_t rank = mla_rng_below(rng, test->ring.ring_size);
    snprintf(bracket, sizeof v->field - (size_t)(bracket - v->field), "[%" PRId64 "]", rank);
}

static void suspect_one(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    bool is_ring = test->op == MLA_OP_RING;
    memset(v, 0, sizeof *v);
    if (mla_rng_chance(rng, is_ring ? 4 : 1, is_ring ? 12 : 8)) {
        break_relative(test, v, rng);
        return;
    }
    if (!is_ring && !test->sparse.dense && mla_rng_chance(rng, 1, 3)) {
        break_index(test, v, rng);
        return;
    }
    const struct breakage *table = is_ring ? ring_breakages : sparse_breakages;
    size_t table_n = is_ring ? COUNT(ring_breakages) : COUNT(sparse_breakages);
    const struct breakage *row;
    do
        row = &table[mla_rng_below(rng, (int64_t)table_n)];
    while (!applies(test, row->field));
    snprintf(v->field, sizeof v->field, "%s", row->field);
    break_value(v, row->values, rng);
    choose_rank(test, v, rng);
}

bool mla_draw_breaks_a_rule(const struct mla_case *test, const struct mla_violation *v)
{
    struct mla_case alone = *test;
    char error[MLA_CASE_ERROR_MAX];
    alone.put_n = 0;
    alone.set_n = 1;
    alone.set[0] = *v;
    return mla_case_problem(&alone, INT64_MAX, error) == NULL;
}

void mla_draw_broken_rule(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    do
        suspect_one(test, v, rng);
    while (!mla_draw_breaks_a_rule(test, v));
}

bool mla_draw_other_value(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    const struct breakage *table = test->op == MLA_OP_RING ? ring_breakages : sparse_breakages;
    size_t table_n = test->op == MLA_OP_RING ? COUNT(ring_breakages) : COUNT(sparse_breakages);
    struct mla_violation other = *v;
    if (strcmp(v->field, "topk_indices") == 0 && strcmp(v->value, "null") != 0)
        break_value(&other, bad_indices, rng);
    for (size_t i = 0; i < table_n; i++)
        if (strcmp(table[i].field, v->field) == 0)
            break_value(&other, table[i].values, rng);
    if (!mla_draw_breaks_a_rule(test, &other))
        return false;
    *v = other;
    return true;
}

bool mla_draw_other_place(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    struct mla_violation other = *v;
    if (test->op == MLA_OP_RING)
        choose_rank(test, &other, rng);
    else if (strcmp(v->field, "topk_indices") == 0 && strcmp(v->value, "null") != 0)
        other.at = choose_place(test, rng);
    if (!mla_draw_breaks_a_rule(test, &other))
        return false;
    *v = other;
    return true;
}

void mla_case_draw_violation(struct mla_case *test, struct mla_rng *rng)
{
    char error[MLA_CASE_ERROR_MAX];
    test->put_n = 0;
    do {
        memset(test->set, 0, sizeof test->set);
        mla_draw_broken_rule(test, &test->set[0], rng);
        test->set_n = mla_draw_chance(rng, mla_draw_chances.second_rule) ? 2 : 1;
        if (test->set_n == 2)
            mla_draw_broken_rule(test, &test->set[1], rng);
        if (test->set_n == 2 && strcmp(test->set[0].field, test->set[1].field) == 0)
            memset(&test->set[--test->set_n], 0, sizeof test->set[0]);
    } while (mla_case_problem(test, INT64_MAX, error) != NULL); /* two may undo each other */
}
