/* SPDX-License-Identifier: Apache-2.0
 *
 * tiny.c - small hand-made calls with their tensors, for tests.
 *
 * Values come from a hash of (stream, element), lie in +-2 and are cut to bf16; scores then spread
 * over a few units, so that maxima rise in later tiles and every key has a weight that shows.
 */
#include "fuzz/faults/tiny.h"

#include "fuzz/faults/naive.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash(uint64_t stream, uint64_t element)
{
    uint64_t z = (stream * 0x9e3779b97f4a7c15u) ^ (element + 1) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void *must_alloc(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory) {
        abort(); /* test support: a test without memory is no test */
    }
    return memory;
}

static uint16_t *poisoned(size_t n)
{
    uint16_t *tensor = must_alloc(n, sizeof *tensor);
    for (size_t i = 0; i < n; i++) {
        tensor[i] = MLA_TINY_POISON;
    }
    return tensor;
}

static void fill(uint16_t *tensor, size_t first, size_t n, uint64_t stream)
{
    for (size_t i = first; i < first + n; i++) {
        float value = (float)((double)(hash(stream, i) >> 11) * 0x1p-51 - 2.0);
        uint32_t bits = 0;
        memcpy(&bits, &value, sizeof bits);
        tensor[i] = (uint16_t)(bits >> 16);
    }
}

static void fill_ring_kv(struct mla_tiny_ring *tiny)
{
    const struct mla_ring_args *a = &tiny->args;
    for (int64_t g = 0; g < a->logical_n; g++) {
        int64_t rank = 0;
        int64_t row = 0;
        mla_naive_key_place(a, g, &rank, &row);
        for (int64_t b = 0; b < a->kv_batch; b++) {
            if (!a->has_slot || b == a->kv_cache_batch_idx) {
                fill(tiny->kv[rank], (size_t)((b * a->kv_rows + row) * a->head_dim),
                     (size_t)a->head_dim, 100 + (uint64_t)rank);
            }
        }
    }
}

static void fill_ring_q(struct mla_tiny_ring *tiny, int64_t rank)
{
    const struct mla_ring_args *a = &tiny->args;
    for (int64_t r = 0; r < a->q_rows; r++) {
        for (int64_t plane = 0; plane < a->batch * a->heads; plane++) {
            if (mla_naive_query_position(a, rank, r) >= 0) {
                fill(tiny->q[rank], (size_t)((plane * a->q_rows + r) * a->head_dim),
                     (size_t)a->head_dim, 200 + (uint64_t)rank);
            }
        }
    }
}

struct mla_tiny_ring *mla_tiny_ring_new(const struct mla_ring_args *shape)
{
    struct mla_tiny_ring *tiny = must_alloc(1, sizeof *tiny);
    const struct mla_ring_args *a = shape;
    tiny->args = *shape;
    tiny->q_n = (size_t)(a->batch * a->heads * a->q_rows * a->head_dim);
    tiny->kv_n = (size_t)(a->kv_batch * a->kv_rows * a->head_dim);
    tiny->gathered_n = (size_t)(a->gathered_batch * a->gathered_rows * a->head_dim);
    tiny->out_n = (size_t)(a->batch * a->heads * a->q_rows * a->head_dim_v);
    tiny->stats_n = (size_t)(a->batch * a->heads * 2 * a->q_rows);
    for (int64_t rank = 0; rank < a->ring_size; rank++) {
        tiny->q[rank] = poisoned(tiny->q_n);
        tiny->kv[rank] = poisoned(tiny->kv_n);
        tiny->gathered[rank] = poisoned(tiny->gathered_n);
        tiny->out[rank] = poisoned(tiny->out_n);
        tiny->stats[rank] = must_alloc(tiny->stats_n, sizeof(float));
        fill_ring_q(tiny, rank);
    }
    fill_ring_kv(tiny);
    mla_tiny_ring_clear(tiny);
    tiny->args.q = (const uint16_t *const *)tiny->q;
    tiny->args.kv = (const uint16_t *const *)tiny->kv;
    tiny->args.gathered = tiny->gathered;
    tiny->args.out = tiny->out;
    tiny->args.stats = tiny->stats;
    return tiny;
}

void mla_tiny_ring_free(struct mla_tiny_ring *tiny)
{
    for (int64_t rank = 0; rank < tiny->args.ring_size; rank++) {
        free(tiny->stats[rank]);
        free(tiny->out[rank]);
        free(tiny->gathered[rank]);
        free(tiny->kv[rank]);
        free(tiny->q[rank]);
    }
    free(tiny);
}

void mla_tiny_ring_clear(struct mla_tiny_ring *tiny)
{
    for (int64_t rank = 0; rank < tiny->args.ring_size; rank++) {
        memset(tiny->out[rank], 0xa5, tiny->out_n * sizeof(uint16_t));
        memset(tiny->stats[rank], 0xff, tiny->stats_n * sizeof(float));
    }
}

/* Indices over the even cache rows only, with repeats: the odd rows stay poison. */
static void fill_list(struct mla_tiny_sparse *tiny)
{
    const struct mla_sparse_args *a = &tiny->args;
    size_t blocks_n = (size_t)((a->queries + 127) / 128);
    size_t slots_n =
        a->topk_tiled ? blocks_n * 128 * (size_t)a->topk : (size_t)(a->queries * a->topk);
    tiny->topk = must_alloc(slots_n, sizeof *tiny->topk);
    memset(tiny->topk, 0x80, slots_n * sizeof *tiny->topk); /* a large negative index */
    for (int64_t q = 0; q < a->queries; q++) {
        for (int64_t j = 0; j < a->topk; j++) {
            int64_t at = q * a->topk + j;
            int64_t row = (int64_t)(hash(7, (uint64_t)at) % (uint64_t)((a->keys + 1) / 2)) * 2;
            if (a->topk_tiled) {
                at = (((q / 128) * 16 + (q % 128) / 8) * 128 + 16 * (q % 8) + j % 16) *
                         (a->topk / 16) +
                     j / 16;
            }
            tiny->topk[at] = (int32_t)row;
        }
    }
}

static void fill_cache(struct mla_tiny_sparse *tiny)
{
    const struct mla_sparse_args *a = &tiny->args;
    tiny->c_kv = poisoned((size_t)(a->keys * a->latent));
    tiny->k_pe = poisoned((size_t)(a->keys * a->rope));
    for (int64_t row = 0; row < a->keys; row += a->dense ? 1 : 2) {
        fill(tiny->c_kv, (size_t)(row * a->latent), (size_t)a->latent, 3);
        fill(tiny->k_pe, (size_t)(row * a->rope), (size_t)a->rope, 4);
    }
}

struct mla_tiny_sparse *mla_tiny_sparse_new(const struct mla_sparse_args *shape)
{
    struct mla_tiny_sparse *tiny = must_alloc(1, sizeof *tiny);
    tiny->args = *shape;
    size_t planes = (size_t)(shape->queries * shape->heads);
    tiny->out_n = planes * (size_t)shape->latent;
    tiny->stats_n = planes * 2;
    tiny->q_lift = poisoned(tiny->out_n);
    tiny->q_pe = poisoned(planes * (size_t)shape->rope);
    fill(tiny->q_lift, 0, tiny->out_n, 1);
    fill(tiny->q_pe, 0, planes * (size_t)shape->rope, 2);
    fill_cache(tiny);
    if (!shape->dense) {
        fill_list(tiny);
    }
    tiny->out = poisoned(tiny->out_n);
    tiny->stats = must_alloc(tiny->stats_n, sizeof(float));
    mla_tiny_sparse_clear(tiny);
    tiny->args.q_lift = tiny->q_lift;
    tiny->args.q_pe = tiny->q_pe;
    tiny->args.c_kv = tiny->c_kv;
    tiny->args.k_pe = tiny->k_pe;
    tiny->args.topk_indices = tiny->topk;
    tiny->args.out = tiny->out;
    tiny->args.stats = tiny->stats;
    return tiny;
}

void mla_tiny_sparse_free(struct mla_tiny_sparse *tiny)
{
    free(tiny->stats);
    free(tiny->out);
    free(tiny->topk);
    free(tiny->k_pe);
    free(tiny->c_kv);
    free(tiny->q_pe);
    free(tiny->q_lift);
    free(tiny);
}

void mla_tiny_sparse_clear(struct mla_tiny_sparse *tiny)
{
    memset(tiny->out, 0xa5, tiny->out_n * sizeof(uint16_t));
    memset(tiny->stats, 0xff, tiny->stats_n * sizeof(float));
}

/* Every exponent range, the smallest and largest fractions in each; sums stay far below FLT_MAX. */
struct mla_tiny_ring *mla_tiny_ring_one_key(void)
{
    static const uint16_t patterns[] = {0x0001, 0x8003, 0x0040, 0x007f, 0x0080, 0x80ff, 0x0100,
                                        0x1fff, 0x3f80, 0xbf81, 0x3fff, 0x4049, 0x7000, 0xf07f};
    size_t shapes_n = 0;
    const struct mla_tiny_ring_shape *shape = mla_tiny_ring_shapes(&shapes_n);
    while (strcmp(shape->name, "one-rank") != 0) {
        shape++;
    }
    struct mla_tiny_ring *tiny = mla_tiny_ring_new(&shape->args);
    memset(tiny->q[0], 0, tiny->q_n * sizeof(uint16_t)); /* no score may overflow */
    for (int64_t c = 0; c < shape->args.head_dim_v; c++) {
        tiny->kv[0][c] = patterns[(size_t)c % (sizeof patterns / sizeof patterns[0])];
    }
    return tiny;
}

bool mla_tiny_ring_is_copy(const struct mla_tiny_ring *tiny)
{
    size_t width = (size_t)tiny->args.head_dim_v;
    for (size_t i = 0; i < tiny->out_n; i++) {
        if (tiny->out[0][i] != tiny->kv[0][i % width]) {
            return false;
        }
    }
    return true;
}
