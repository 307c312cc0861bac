/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_change.c - numbers changed where that does nothing, or one known thing, to the output.
 */
#include <math.h>
#include <string.h>

#include "fuzz/family.h"
#include "fuzz/relations_internal.h"
#include "oracle/visible.h"

/* ---- keys later than a row ---- */

/* The least position of a query; positions rise by 1 from row to row somewhere after it. */
static int64_t least_position(const struct mla_ring_args *a)
{
    if (a->has_prior)
        return a->kv_actual_isl;
    int64_t least = mla_oracle_query_position(a, 0, 0);
    return least < 0 ? 0 : least;
}

/* Keys at positions from here on change; -1 where no row would be before them. */
static int64_t cut_of(const struct mla_tensors *t)
{
    const struct mla_sparse_args *s = &t->sparse;
    struct mla_rng rng = mla_relation_rng(&t->test, 5);
    bool is_ring = t->test.op == MLA_OP_RING;
    int64_t keys = is_ring ? t->ring.logical_n : s->keys, first, last;
    if (!is_ring && !s->dense && !s->has_q_pos_offset)
        return -1;
    first = is_ring ? least_position(&t->ring) : s->has_q_pos_offset ? s->q_pos_offset : 0;
    if (first >= keys - 1)
        return -1;
    last = is_ring ? keys - 1 : first + s->queries;
    last = last < keys - 1 ? last : keys - 1;
    return first + 1 + mla_rng_below(&rng, last - first);
}

enum mla_tie mla_vary_later(const struct mla_tensors *first, struct mla_case *test)
{
    (void)test;
    return cut_of(first) < 0 ? MLA_TIE_NONE : MLA_TIE_BITS;
}

/* Another sign and other digits; a finite number stays one, and about as large. */
static void change(uint16_t *row, int64_t width)
{
    for (int64_t c = 0; c < width; c++)
        row[c] ^= 0x8055;
}

bool mla_arrange_later(const struct mla_tensors *first, struct mla_tensors *second)
{
    const struct mla_ring_args *r = &first->ring;
    const struct mla_sparse_args *s = &first->sparse;
    int64_t cut = cut_of(first);
    mla_relation_copy(first, second);
    for (int64_t d = 0; first->test.op == MLA_OP_RING && d < r->ring_size; d++)
        for (int64_t t = 0; t < r->kv_rows; t++)
            for (int64_t b = 0; b < r->kv_batch && mla_oracle_key_position(r, d, t) >= cut; b++)
                change(mla_tensors_bf16(second, "kv", d) + (b * r->kv_rows + t) * r->head_dim,
                       r->head_dim);
    for (int64_t j = cut; first->test.op == MLA_OP_SPARSE && j < s->keys; j++) {
        change(mla_tensors_bf16(second, "c_kv", 0) + j * s->latent, s->latent);
        change(mla_tensors_bf16(second, "k_pe", 0) + j * s->rope, s->rope);
    }
    return true;
}

/* Rows before the cut, and pad rows. */
bool mla_match_later(const struct mla_tensors *first, const struct mla_tensors *second,
                     struct mla_row row, struct mla_row *other)
{
    int64_t cut = cut_of(first);
    (void)second;
    *other = row;
    if (first->test.op == MLA_OP_RING)
        return mla_oracle_query_position(&first->ring, row.rank, row.row) < cut;
    return (first->sparse.has_q_pos_offset ? first->sparse.q_pos_offset : 0) + row.row < cut;
}

/* ---- a power of two times V ---- */

/*
 * Bits can only be asked for where nothing on the way is subnormal or overflows. In these regions of
 * the family the query is 0 wherever V is, so scores do not change at all; they spread by less than
 * 26, so weights are above 2^-38; values are in [0.5, 1.5), so all sums are multiples of 2^-70 below
 * 2^40 and so are their multiples by 2^20, up to that factor.
 */
static bool stays_normal(const struct mla_case *test)
{
    static const enum mla_region regions[] = {
        MLA_REGION_FLAT,     MLA_REGION_FIRST, MLA_REGION_LAST,        MLA_REGION_EDGE,
        MLA_REGION_CLUSTERS, MLA_REGION_UNDER, MLA_REGION_EQUAL_MAXIMA};
    if (strcmp(mla_family_name(test->family), "profile") != 0 || test->put_n > 0)
        return false;
    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++)
        if (test->region == (int32_t)regions[i])
            return true;
    return false;
}

/*
 * An element put into a key that overflows: an Inf which rows before that key must not notice, and not
 * every kernel promises that (NO_FUTURE_LEAK). No recipe has values of which only some overflow.
 */
static bool overflows(const struct mla_override *o)
{
    uint32_t magnitude = o->bits & 0x7fffu, finite = 0x7f80u;
    bool is_key = strcmp(o->tensor, "kv") == 0 || strcmp(o->tensor, "c_kv") == 0;
    return is_key && magnitude < finite && magnitude >= finite - (MLA_SCALE_EXPONENT << 7);
}

enum mla_tie mla_vary_values(const struct mla_tensors *first, struct mla_case *test)
{
    (void)test;
    for (size_t i = 0; i < first->test.put_n; i++)
        if (overflows(&first->test.put[i]))
            return MLA_TIE_NONE;
    return stays_normal(&first->test) ? MLA_TIE_BITS : MLA_TIE_VALUE;
}

static void scale(struct mla_tensors *t, const char *name, int64_t rank, int64_t width,
                  int64_t columns, int exponent)
{
    struct mla_tensor *tensor = mla_tensors_find(t, name, rank);
    uint16_t *data = (uint16_t *)(void *)tensor->guard.data;
    double factor = ldexp(1.0, exponent);
    for (int64_t i = 0; i < tensor->elements_n; i++)
        if (i % width < columns && (data[i] & 0x7f80u) != 0x7f80u && (data[i] & 0x7fffu) != 0)
            data[i] = mla_number_to_bf16((double)mla_number_from_bf16(data[i]) * factor);
}

/* The key's columns that are V grow, the query's that meet them shrink: every product stays. */
bool mla_arrange_values(const struct mla_tensors *first, struct mla_tensors *second)
{
    const struct mla_ring_args *r = &first->ring;
    mla_relation_copy(first, second);
    for (int64_t d = 0; first->test.op == MLA_OP_RING && d < r->ring_size; d++) {
        scale(second, "q", d, r->head_dim, r->head_dim_v, -MLA_SCALE_EXPONENT);
        scale(second, "kv", d, r->head_dim, r->head_dim_v, MLA_SCALE_EXPONENT);
    }
    if (first->test.op == MLA_OP_SPARSE) {
        scale(second, "q_lift", 0, 1, 1, -MLA_SCALE_EXPONENT);
        scale(second, "c_kv", 0, 1, 1, MLA_SCALE_EXPONENT);
    }
    return true;
}

/* ---- a constant added to all scores ---- */

/* A power of two that changes scaled scores by 8 to 16, up or down. */
static double constant_of(const struct mla_case *test)
{
    struct mla_rng rng = mla_relation_rng(test, 6);
    int exponent;
    (void)frexp((double)mla_case_scale(test), &exponent);
    double constant = ldexp(1.0, 4 - exponent);
    return mla_rng_chance(&rng, 1, 2) ? constant : -constant;
}

/* More columns: 1 in the query, the constant in the key. The sum stays exact for every family. */
enum mla_tie mla_vary_shift(const struct mla_tensors *first, struct mla_case *test)
{
    double constant = fabs(constant_of(&first->test));
    if (!(constant >= 0x1p-60 && constant <= 0x1p60))
        return MLA_TIE_NONE;
    if (test->op == MLA_OP_SPARSE) {
        test->sparse.rope++;
        return test->sparse.rope <= MLA_ROPE_MAX ? MLA_TIE_VALUE : MLA_TIE_NONE;
    }
    test->ring.scale = mla_case_scale(&first->test); /* absent, it follows the width */
    test->ring.has_scale = 1;
    test->ring.head_dim += MLA_TILE;
    return MLA_TIE_VALUE;
}

/* Rows of `width` elements become wider by `more`: `extra` and zeros. */
static void widen(const struct mla_tensor *from, const struct mla_tensor *to, int64_t width,
                  int64_t more, double extra)
{
    const uint16_t *source = (const uint16_t *)(const void *)from->guard.data;
    uint16_t *target = (uint16_t *)(void *)to->guard.data;
    for (int64_t i = 0; i < from->elements_n / width; i++) {
        uint16_t *row = target + i * (width + more);
        memcpy(row, source + i * width, (size_t)width * sizeof *row);
        memset(row + width, 0, (size_t)more * sizeof *row);
        row[width] = mla_number_to_bf16(extra);
    }
}

bool mla_arrange_shift(const struct mla_tensors *first, struct mla_tensors *second)
{
    double constant = constant_of(&first->test);
    bool is_ring = first->test.op == MLA_OP_RING;
    for (size_t i = 0; i < first->n; i++) {
        const struct mla_tensor *from = &first->list[i], *to = &second->list[i];
        bool wider = is_ring || strcmp(from->name, "q_pe") == 0 || strcmp(from->name, "k_pe") == 0;
        if (from->role != MLA_TENSOR_INPUT)
            continue;
        if (wider)
            widen(from, to, is_ring ? first->ring.head_dim : first->sparse.rope,
                  is_ring ? MLA_TILE : 1, from->name[0] == 'q' ? 1.0 : constant);
        else
            memcpy(to->guard.data, from->guard.data, from->guard.bytes);
    }
    return true;
}
