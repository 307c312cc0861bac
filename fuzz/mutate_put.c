/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate_put.c - replaced elements: added, changed, moved, dropped, and carried to another shape.
 *
 * An element is named by its place in the flat tensor, which means another one as soon as an extent
 * changes. So places are taken apart into coordinates by the old shape and put together by the new;
 * what has no place there is dropped. A number in an index list is always one of the numbers that its
 * list holds anyway: any other might name a row without data.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/draw.h"
#include "fuzz/indices.h"

#define COORDINATES 4

/* The extents of an input tensor, outermost first; 1 where there are fewer. For topk_indices those of
 * the flat list, whatever the layout. */
struct tensor_shape {
    const char *name;
    int64_t extents[COORDINATES];
};

#define TENSORS_MAX 5

static size_t tensor_shapes(const struct mla_case *test, struct tensor_shape list[TENSORS_MAX])
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    if (test->op == MLA_OP_RING) {
        list[0] = (struct tensor_shape){"q", {r->batch, r->heads, r->q_rows, r->head_dim}};
        list[1] = (struct tensor_shape){"kv", {r->kv_batch, 1, r->kv_rows, r->head_dim}};
        return 2;
    }
    list[0] = (struct tensor_shape){"q_lift", {1, s->queries, s->heads, MLA_LATENT}};
    list[1] = (struct tensor_shape){"q_pe", {1, s->queries, s->heads, s->rope}};
    list[2] = (struct tensor_shape){"c_kv", {1, 1, s->keys, MLA_LATENT}};
    list[3] = (struct tensor_shape){"k_pe", {1, 1, s->keys, s->rope}};
    list[4] = (struct tensor_shape){"topk_indices", {1, 1, s->queries, s->topk}};
    return s->dense ? 4 : 5;
}

static bool is_index(const char *tensor)
{
    return strcmp(tensor, "topk_indices") == 0;
}

/* The coordinates of an element; false where the shape has none such (or a slot of the tiled layout
 * that belongs to no row). */
static bool take_apart(const struct mla_case *test, const struct mla_override *o,
                       int64_t at[COORDINATES])
{
    struct tensor_shape list[TENSORS_MAX];
    size_t n = tensor_shapes(test, list), i = 0;
    while (i < n && strcmp(list[i].name, o->tensor) != 0)
        i++;
    if (i == n)
        return false;
    int64_t rest = o->at, topk = test->sparse.topk;
    if (is_index(o->tensor) && test->sparse.topk_tiled) { /* the inverse of mla_indices_place */
        int64_t column = rest % (topk / 16), line = rest / (topk / 16);
        int64_t q = line / 128 * 8 + line % 128 / 16;
        rest = q * topk + column * 16 + line % 16;
    }
    for (int c = COORDINATES - 1; c >= 0; c--) {
        at[c] = rest % list[i].extents[c];
        rest /= list[i].extents[c];
    }
    return rest == 0;
}

/* The opposite: false where the shape has no such element. */
static bool put_together(const struct mla_case *test, const int64_t at[COORDINATES],
                         struct mla_override *o)
{
    struct tensor_shape list[TENSORS_MAX];
    size_t n = tensor_shapes(test, list), i = 0;
    int64_t place = 0;
    while (i < n && strcmp(list[i].name, o->tensor) != 0)
        i++;
    if (i == n || (test->op == MLA_OP_RING && o->rank >= test->ring.ring_size))
        return false;
    for (int c = 0; c < COORDINATES; c++) {
        if (at[c] >= list[i].extents[c])
            return false;
        place = place * list[i].extents[c] + at[c];
    }
    o->at = is_index(o->tensor) ? mla_indices_place(&test->sparse, at[2], at[3]) : place;
    return true;
}

/* An index list may only hold what it holds already, in another order or with repeats. */
static void choose_listed(const struct mla_case *test, int64_t q, uint64_t choice,
                          struct mla_override *o)
{
    int32_t list[16 * 128];
    int64_t topk = test->sparse.topk;
    if (topk > (int64_t)(sizeof list / sizeof list[0]))
        return;
    mla_indices_fill(test, q, list);
    for (int64_t j = 0; j < topk; j++)
        if (o->bits == (uint32_t)list[j])
            return; /* it does */
    o->bits = (uint32_t)list[choice % (uint64_t)topk];
}

static bool is_same_place(const struct mla_override *a, const struct mla_override *b)
{
    return a->rank == b->rank && a->at == b->at && strcmp(a->tensor, b->tensor) == 0;
}

static bool has_place(const struct mla_case *test, const struct mla_override *o)
{
    for (size_t i = 0; i < test->put_n; i++)
        if (is_same_place(&test->put[i], o))
            return true;
    return false;
}

void mla_carry_put(struct mla_case *test, const struct mla_case *from)
{
    struct mla_override kept[MLA_CASE_PUT_MAX];
    size_t kept_n = from->put_n;
    memcpy(kept, from->put, sizeof kept);
    if (test == from) {
        test->put_n = 0;
        memset(test->put, 0, sizeof test->put);
    }
    for (size_t i = 0; i < kept_n && test->put_n < MLA_CASE_PUT_MAX; i++) {
        struct mla_override o = kept[i];
        int64_t at[COORDINATES];
        if (!take_apart(from, &kept[i], at) || !put_together(test, at, &o) || has_place(test, &o))
            continue;
        if (is_index(o.tensor))
            choose_listed(test, at[2], o.bits, &o);
        test->put[test->put_n++] = o;
    }
}

/* ---- changing one ---- */

/* Any place, mostly at an end of each extent: that is where limits bite. */
static bool choose_element(const struct mla_case *test, struct mla_override *o, struct mla_rng *rng)
{
    struct tensor_shape list[TENSORS_MAX];
    size_t n = tensor_shapes(test, list), i = (size_t)mla_rng_below(rng, (int64_t)n);
    int64_t at[COORDINATES];
    memset(o->tensor, 0, sizeof o->tensor);
    memcpy(o->tensor, list[i].name, strlen(list[i].name));
    o->rank = test->op == MLA_OP_RING ? mla_rng_below(rng, test->ring.ring_size) : 0;
    for (int c = 0; c < COORDINATES; c++) {
        int64_t kind = mla_rng_below(rng, 4), any = mla_rng_below(rng, list[i].extents[c]);
        at[c] = kind == 0 ? 0 : kind == 1 ? list[i].extents[c] - 1 : any;
    }
    if (test->op == MLA_OP_RING && test->ring.has_slot && i == 1)
        at[0] = test->ring.kv_cache_batch_idx;
    return put_together(test, at, o);
}

/* A number worth having: a corner of the format, or near the old one. Never NaN or Inf: a row that
 * holds them has no value. */
static void choose_bits(const struct mla_case *test, struct mla_override *o, struct mla_rng *rng)
{
    static const uint16_t corners[] = {
        0x0000, 0x8000,                 /* zeros */
        0x0001, 0x8001, 0x007f, 0x0080, /* subnormals, the least normal */
        0x3f80, 0xbf80, 0x3f81, 0x3f7f, /* 1 and its neighbours */
        0x4300, 0x4700, 0x477f, 0x4780, /* 128, 2^15, 65280, 65536 */
        0xc61c, 0xc742, 0xc7c3,         /* -1e4, -5e4, -1e5 */
        0x5a00, 0x7e00, 0x7f7f          /* 2^53, 2^125, the largest */
    };
    int64_t at[COORDINATES];
    uint64_t any = mla_rng_next(rng);
    if (is_index(o->tensor)) {
        o->bits = UINT32_MAX; /* no index: one is chosen */
        if (take_apart(test, o, at))
            choose_listed(test, at[2], any >> 8, o);
        return;
    }
    uint16_t corner = corners[(any >> 8) % (sizeof corners / sizeof corners[0])];
    uint16_t ordinary = (uint16_t)((any >> 16 & 0x80ff) + 0x3f00); /* sign, 2^-1 .. 2^1 */
    o->bits = any % 4 == 0 ? ordinary : any % 4 == 1 ? o->bits ^ (1u << (any >> 40) % 7) : corner;
    if ((o->bits & 0x7f80) == 0x7f80 || o->bits > 0xffff)
        o->bits = corner;
}

static void drop(struct mla_case *test, size_t i)
{
    test->put[i] = test->put[test->put_n - 1];
    memset(&test->put[--test->put_n], 0, sizeof test->put[0]);
}

void mla_mutate_put(struct mla_case *test, struct mla_rng *rng)
{
    struct mla_override o = {.bits = 0x3f80};
    int64_t kind = mla_rng_below(rng, 4);
    if (test->put_n == 0 || (kind == 0 && test->put_n < MLA_CASE_PUT_MAX)) {
        if (choose_element(test, &o, rng) && !has_place(test, &o)) {
            choose_bits(test, &o, rng);
            test->put[test->put_n++] = o;
        }
        return;
    }
    size_t i = (size_t)mla_rng_below(rng, (int64_t)test->put_n);
    o = test->put[i];
    if (kind == 1) {
        choose_bits(test, &test->put[i], rng);
    } else if (kind == 2 && choose_element(test, &o, rng) && !has_place(test, &o)) {
        bool changes_type = is_index(o.tensor) || is_index(test->put[i].tensor);
        test->put[i] = o;
        if (changes_type)
            choose_bits(test, &test->put[i], rng);
    } else {
        drop(test, i);
    }
}
