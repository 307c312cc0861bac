/* SPDX-License-Identifier: Apache-2.0
 *
 * case_draw.c - random cases, weighted toward the geometry in which such kernels have failed.
 *
 * Lengths come from short lists of boundaries (tile, chunk, shard, ring) and their neighbours,
 * because faults live there and a uniform draw rarely meets them. A draw fills fields freely;
 * mla_case_fix then makes the result legal and small, so the two share no rules.
 */
#include "fuzz/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/family.h"
#include "fuzz/judge_internal.h"
#include "oracle/visible.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One of a list of values; repeating a value weights it. */
static int64_t pick(struct mla_rng *rng, const int64_t *values, size_t values_n)
{
    return values[mla_rng_below(rng, (int64_t)values_n)];
}
/* Values that are draws themselves are drawn before: C leaves the order in an initialiser open. */
#define PICK(rng, ...)                                                                             \
    pick(rng, (const int64_t[]){__VA_ARGS__}, COUNT(((const int64_t[]){__VA_ARGS__})))

/* ---- data ---- */

static void draw_recipe(struct mla_case *test, struct mla_rng *rng)
{
    /* Weights of the families, in the order of mla_families(). */
    static const int64_t families[] = {0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4};
    size_t families_n;
    test->family = (int32_t)pick(rng, families, COUNT(families));
    const struct mla_family *family = mla_families(&families_n)[test->family];
    test->region = (int32_t)family->regions[mla_rng_below(rng, (int64_t)family->regions_n)];
    test->amount =
        family->amount_min + mla_rng_below(rng, family->amount_max - family->amount_min + 1);
    test->poison = (int32_t)mla_rng_below(rng, MLA_POISON_N);
    test->indices = (int32_t)mla_rng_below(rng, MLA_INDICES_N);
    test->stats = mla_rng_chance(rng, 1, 2);
    test->seed = mla_rng_next(rng) >> 32;
    test->row_seed = mla_rng_next(rng) >> 48;
    /* Whole query rows: heads are not sampled. mla_case_fix takes back what is too much. */
    test->rows = PICK(rng, 0, 0, -1, -2, -2, -4, -8, -16);
}

static float draw_scale(struct mla_rng *rng)
{
    static const float scales[] = {0x1.555556p-5f, /* 576^-0.5 */
                                   0x1.279a74p-4f, /* 192^-0.5 */
                                   0x1.14f5b8p-3f, /* with YaRN: 0.135234 */
                                   1.0f,           0x1p-6f, 0x1p-2f, 0x1p4f, 0x1.fp-10f};
    return scales[mla_rng_below(rng, (int64_t)COUNT(scales))];
}

/* ---- ring ---- */

enum ring_mode { MODE_CONTIGUOUS, MODE_BALANCED, MODE_CHUNKED, MODE_ROTATED };

/* logical_n at and around every boundary of the contiguous layout. */
static int64_t draw_length(const struct mla_ring_args *r, struct mla_rng *rng)
{
    int64_t all = r->ring_size * r->kv_rows, any = 1 + mla_rng_below(rng, all);
    int64_t edge = PICK(rng, 1, 32, 64, r->k_chunk_size, r->ring_size * 32, 2 * r->ring_size * 32,
                        r->kv_rows, 2 * r->kv_rows, all - r->kv_rows, all, all, all, any);
    return edge + PICK(rng, 0, 0, 0, -1, 1, -31);
}

/* kv_actual_isl and logical_n of a rotated chunk, in tiles, at the places rotation is known to
 * break. */
static void draw_rotation(struct mla_ring_args *r, struct mla_rng *rng)
{
    int64_t all = r->ring_size * r->kv_rows / MLA_TILE, slab = r->ring_size * r->q_rows / MLA_TILE;
    int64_t tiles = r->q_rows / MLA_TILE;
    int64_t any = mla_rng_below(rng, all);
    int64_t prior = PICK(rng, 0, 1, r->k_chunk_size / MLA_TILE - 1, tiles, tiles - 1, slab,
                         slab - 1, slab + 1, slab + tiles, all - 1, any, any);
    if (prior > all - 1)
        prior = all - 1;
    int64_t most = all - prior < slab ? all - prior : slab;
    any = 1 + mla_rng_below(rng, most);
    int64_t fresh = PICK(rng, 1, most, most, most, any, any);
    r->has_prior = 1;
    r->kv_actual_isl = prior * MLA_TILE;
    r->logical_n = (prior + fresh) * MLA_TILE;
}

static void draw_mode(struct mla_ring_args *r, struct mla_rng *rng)
{
    enum ring_mode mode = (enum ring_mode)PICK(
        rng, MODE_CONTIGUOUS, MODE_CONTIGUOUS, MODE_CONTIGUOUS, MODE_BALANCED, MODE_BALANCED,
        MODE_CHUNKED, MODE_CHUNKED, MODE_ROTATED, MODE_ROTATED, MODE_ROTATED);
    int64_t all, any;
    switch (mode) {
    case MODE_CONTIGUOUS:
        r->kv_rows = r->q_rows;
        r->logical_n = draw_length(r, rng);
        break;
    case MODE_BALANCED:
        r->is_balanced = 1;
        break;
    case MODE_CHUNKED:
        r->kv_rows = r->q_rows * PICK(rng, 2, 2, 3, 4);
        all = r->ring_size * (r->kv_rows - r->q_rows);
        any = mla_rng_below(rng, all + 1);
        r->logical_n = r->ring_size * r->q_rows + PICK(rng, 0, all, any);
        r->logical_n -= PICK(rng, 0, 0, 1, 16, 31);
        break;
    case MODE_ROTATED:
        r->kv_rows = r->q_rows * PICK(rng, 2, 2, 3, 4, 5);
        draw_rotation(r, rng);
        break;
    }
}

static void draw_slot(struct mla_ring_args *r, struct mla_rng *rng)
{
    if (mla_rng_chance(rng, 3, 4)) {
        r->batch = r->kv_batch = r->gathered_batch = PICK(rng, 1, 1, 1, 2);
        return;
    }
    r->batch = 1;
    r->has_slot = 1;
    r->kv_batch = PICK(rng, 1, 2, 2, 3);
    r->kv_cache_batch_idx = PICK(rng, 0, r->kv_batch - 1, r->kv_batch - 1);
    r->gathered_batch = PICK(rng, 1, r->kv_batch);
}

static void draw_ring(struct mla_case *test, struct mla_rng *rng)
{
    static const int64_t widths[][2] = {{64, 32},  {64, 32},  {64, 32},   {96, 64},
                                        {128, 32}, {160, 96}, {576, 128}, {576, 512}};
    struct mla_ring_args *r = &test->ring;
    const int64_t *width = widths[mla_rng_below(rng, (int64_t)COUNT(widths))];
    r->head_dim = width[0];
    r->head_dim_v = width[1];
    r->ring_size = PICK(rng, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 7, 8);
    r->heads = PICK(rng, 1, 1, 1, 2, 3, 4);
    r->q_rows = MLA_TILE * PICK(rng, 1, 1, 1, 1, 2, 2, 2, 3, 4, 6);
    r->q_chunk_size = MLA_TILE * PICK(rng, 1, 1, 1, 2, 3, 4, 5);
    r->k_chunk_size = MLA_TILE * PICK(rng, 1, 1, 1, 2, 2, 3, 4, 5, 8);
    r->topology = (int32_t)PICK(rng, MLA_TOPOLOGY_RING, MLA_TOPOLOGY_RING, MLA_TOPOLOGY_LINEAR);
    r->num_links = PICK(rng, 1, 1, 2, 2, 3, 4, 7, 33);
    /* A thread costs more than the work of most cases, but without them nothing can race. */
    r->threads =
        PICK(rng, 0, 1, 1, 1, 1, 2, 2, 3, r->ring_size, r->ring_size + 1, 2 * r->ring_size);
    r->has_scale = !mla_rng_chance(rng, 1, 3);
    r->scale = r->has_scale ? draw_scale(rng) : 0;
    draw_slot(r, rng);
    draw_mode(r, rng);
    r->gathered_rows = r->ring_size * r->kv_rows + PICK(rng, 0, 0, 1, 32, 45);
    test->has_future = mla_rng_chance(rng, 1, 16);
    /* In the later half of the queries: the rows before it are the ones to be judged. */
    int64_t first = r->has_prior             ? r->kv_actual_isl
                    : r->q_rows < r->kv_rows ? r->logical_n - r->ring_size * r->q_rows
                                             : 0;
    int64_t half = r->ring_size * r->q_rows / 2;
    test->future = test->has_future ? first + half + 1 + mla_rng_below(rng, half) : 0;
}

/* ---- sparse ---- */

/* Rows across an edge of the tiled index layout. With an offset of 0 most of a list is dropped, and
 * so much height is cheap. */
static void draw_tall(struct mla_sparse_args *s, struct mla_rng *rng)
{
    s->queries = PICK(rng, 127, 128, 129, 130);
    s->topk = 128;
    s->heads = 16;
    s->keys = PICK(rng, 100, 1000, 1000, 1000);
    s->has_q_pos_offset = s->keys == 1000;
    s->q_pos_offset = 0;
    s->dense = 0;
}

/* What is too much for every case, one thing at a time. */
static void draw_large(struct mla_sparse_args *s, struct mla_rng *rng)
{
    enum { LONG, MANY_HEADS, TALL, HUGE_CACHE };
    int64_t any = 2 + mla_rng_below(rng, 15);
    switch (PICK(rng, LONG, LONG, LONG, LONG, LONG, LONG, MANY_HEADS, MANY_HEADS, MANY_HEADS,
                 MANY_HEADS, MANY_HEADS, MANY_HEADS, TALL, TALL, TALL, HUGE_CACHE)) {
    case LONG:
        s->queries = 1;
        s->heads = 16;
        s->topk = 128 * PICK(rng, any, any, any, 16);
        s->keys = PICK(rng, 100, s->topk - 1, s->topk, s->topk + 1, 2048);
        break;
    case MANY_HEADS:
        s->heads = 16 * PICK(rng, 3, 4, 5, 7, 8, 8, 8);
        s->topk = 128;
        break;
    case TALL:
        draw_tall(s, rng);
        break;
    default:
        s->keys = 65536 + PICK(rng, 0, 1, 2);
        s->dense = 0;
        break;
    }
}

static void draw_sparse(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_sparse_args *s = &test->sparse;
    s->queries = PICK(rng, 1, 1, 1, 2, 2, 3, 4, 8, 9);
    s->topk = 128 * PICK(rng, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2);
    s->heads = 16 * PICK(rng, 1, 1, 1, 1, 1, 1, 1, 2);
    s->rope = PICK(rng, 1, 2, 63, 64, 64, 64, 65, 127, 128);
    int64_t any = 1 + mla_rng_below(rng, 700);
    s->keys = PICK(rng, 1, 2, 100, s->topk - 1, s->topk, s->topk, s->topk + 1, 257, 300, 512, any);
    s->topk_tiled = mla_rng_chance(rng, 1, 2);
    s->dense = mla_rng_chance(rng, 1, 6);
    if (mla_case_may_be_large(test))
        draw_large(s, rng);
    else if (!s->dense || s->keys > 64) /* few keys leave room for many rows */
        s->queries = PICK(rng, 1, 1, 2, s->queries);
    if (s->topk > 128 && mla_rng_chance(rng, 1, 2)) { /* a second block, hardly begun, costs less */
        s->has_q_pos_offset = 1;
        s->q_pos_offset = s->keys * 5 / 8;
    }
    if (!s->has_q_pos_offset) { /* otherwise the choice is made above */
        s->has_q_pos_offset = mla_rng_chance(rng, 2, 5);
        any = mla_rng_below(rng, s->keys + 1);
        s->q_pos_offset =
            PICK(rng, 0, 1, s->keys - 1, s->keys > 1 ? s->keys - 2 : 0, s->keys, INT64_MAX, any);
    }
    s->out_order = (int32_t)PICK(rng, MLA_OUT_MX4, MLA_OUT_MX4, MLA_OUT_MX4, MLA_OUT_NATURAL);
    s->cores = PICK(rng, 1, 1, 2, 3, 4, s->queries);
    s->threads = PICK(rng, 0, 1, 1, 1, 2, 3, 5);
    s->softmax_scale = draw_scale(rng);
}

/* A row that sees a future key has no value: let the future begin behind one of the rows that are
 * judged at least, or the case would judge nothing. */
static void leave_a_row(struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    int64_t rows_n, least = r->logical_n - 1;
    struct mla_row *rows = test->has_future ? mla_rows_draw(test, &rows_n) : NULL;
    if (rows == NULL)
        return;
    for (int64_t i = 0; i < rows_n; i++) {
        int64_t last = mla_oracle_query_position(r, rows[i].rank, rows[i].row); /* key it sees */
        least = last < least ? last : least;                                    /* -1: pad row */
    }
    test->future = least < test->future ? test->future : least + 1;
    free(rows);
}

void mla_case_draw(struct mla_case *test, enum mla_op op, struct mla_rng *rng)
{
    mla_case_init(test, op);
    draw_recipe(test, rng);
    if (op == MLA_OP_RING)
        draw_ring(test, rng);
    else
        draw_sparse(test, rng);
    mla_case_fix(test);
    leave_a_row(test);
}

/* ---- violations ---- */

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
static void break_index(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    int64_t all = test->sparse.queries * test->sparse.topk;
    snprintf(v->field, sizeof v->field, "topk_indices");
    v->at = PICK(rng, 0, all - 1, test->sparse.topk - 1, mla_rng_below(rng, all));
    if (mla_rng_chance(rng, 1, 3))
        snprintf(v->value, sizeof v->value, "%" PRId64,
                 test->sparse.keys + (int64_t)mla_rng_chance(rng, 1, 2));
    else
        break_value(v, bad_indices, rng);
}

/* The ends of ranges that depend on the call: one beyond the last legal value. */
static void break_relative(const struct mla_case *test, struct mla_violation *v,
                           struct mla_rng *rng)
{
    const struct mla_ring_args *r = &test->ring;
    struct {
        const char *field;
        int64_t value;
    } near[] = {
        {"logical_n", r->ring_size * r->kv_rows + 1},
        {"gathered_rows", r->ring_size * r->kv_rows - 1},
        {"head_dim_v", r->head_dim},
        {"kv_batch", r->kv_batch + 1},
        {"gathered_batch", r->gathered_batch + 5},
        {"kv_cache_batch_idx", r->kv_batch},
        {"kv_actual_isl", r->logical_n},
        {"q_rows", r->kv_rows + 32},
        {"kv_head_dim", r->head_dim + 32},
    };
    size_t i;
    do
        i = (size_t)mla_rng_below(rng, (int64_t)COUNT(near));
    while (!applies(test, near[i].field));
    snprintf(v->field, sizeof v->field, "%s", near[i].field);
    snprintf(v->value, sizeof v->value, "%" PRId64, near[i].value);
}

static void break_one(const struct mla_case *test, struct mla_violation *v, struct mla_rng *rng)
{
    bool is_ring = test->op == MLA_OP_RING;
    memset(v, 0, sizeof *v);
    if (is_ring && mla_rng_chance(rng, 1, 4)) {
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
}

void mla_case_draw_violation(struct mla_case *test, struct mla_rng *rng)
{
    test->set_n = mla_rng_chance(rng, 1, 3) ? 2 : 1;
    test->put_n = 0;
    for (size_t i = 0; i < test->set_n; i++)
        break_one(test, &test->set[i], rng);
    if (test->set_n == 2 && strcmp(test->set[0].field, test->set[1].field) == 0)
        test->set_n = 1;
    memset(test->set + test->set_n, 0, (MLA_CASE_SET_MAX - test->set_n) * sizeof test->set[0]);
}
