/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_fields.c - relations that change fields of the call and leave its numbers alone.
 */
#include <string.h>

#include "fuzz/relations_internal.h"

/* Threads and links: the work is cut differently, the arithmetic is not. */
enum mla_tie mla_vary_threads(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    if (test->op == MLA_OP_RING) {
        test->ring.threads = test->ring.threads == 1 ? test->ring.ring_size + 1 : 1;
        test->ring.num_links = test->ring.num_links == 1 ? 3 : 1;
    } else {
        test->sparse.threads = test->sparse.threads == 1 ? 3 : 1;
    }
    return MLA_TIE_BITS;
}

enum mla_tie mla_vary_cores(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    test->sparse.cores = test->sparse.cores == 1 ? test->sparse.queries : 1;
    return test->sparse.queries == 1 ? MLA_TIE_NONE : MLA_TIE_BITS;
}

/* Other garbage where nothing may be read. A poisoned future stays NaN: it is read by some rows. So may a
 * key be that a replaced entry of a list names: the recipe takes it for hidden. */
enum mla_tie mla_vary_poison(const struct mla_tensors *first, struct mla_case *test)
{
    for (size_t i = 0; i < first->test.put_n; i++)
        if (strcmp(first->test.put[i].tensor, "topk_indices") == 0)
            return MLA_TIE_NONE;
    test->poison = test->poison == MLA_POISON_NOISE ? MLA_POISON_NAN : MLA_POISON_NOISE;
    return MLA_TIE_BITS;
}

/* Blocks of another size. A balanced call's halves must be whole query chunks: those stay. */
enum mla_tie mla_vary_chunks(const struct mla_tensors *first, struct mla_case *test)
{
    struct mla_ring_args *r = &test->ring;
    struct mla_rng rng = mla_relation_rng(&first->test, 1);
    int64_t tiles = 1 + mla_rng_below(&rng, r->kv_rows / MLA_TILE + 1);
    r->k_chunk_size = tiles * MLA_TILE != r->k_chunk_size ? tiles * MLA_TILE : 2 * r->k_chunk_size;
    if (!r->is_balanced)
        r->q_chunk_size = r->q_chunk_size == MLA_TILE ? 2 * MLA_TILE : MLA_TILE;
    return MLA_TIE_VALUE;
}

enum mla_tie mla_vary_topology(const struct mla_tensors *first, struct mla_case *test)
{
    (void)first;
    test->ring.topology =
        test->ring.topology == MLA_TOPOLOGY_RING ? MLA_TOPOLOGY_LINEAR : MLA_TOPOLOGY_RING;
    return test->ring.ring_size == 1 ? MLA_TIE_NONE : MLA_TIE_VALUE;
}

/* A whole chunk that begins a slab: the queries are the last R*Nq positions either way. */
enum mla_tie mla_vary_prior(const struct mla_tensors *first, struct mla_case *test)
{
    struct mla_ring_args *r = &test->ring;
    int64_t slab = r->ring_size * r->q_rows, prior = r->logical_n - slab;
    (void)first;
    bool edge = r->q_rows < r->kv_rows && prior >= 0 && prior % slab == 0;
    if (!edge || (r->has_prior && r->kv_actual_isl != prior))
        return MLA_TIE_NONE;
    r->has_prior = !r->has_prior;
    r->kv_actual_isl = r->has_prior ? prior : 0;
    return MLA_TIE_BITS;
}

/* With one rank the zig-zag is the identity. Its halves must be whole query chunks. */
enum mla_tie mla_vary_one_rank(const struct mla_tensors *first, struct mla_case *test)
{
    struct mla_ring_args *r = &test->ring;
    (void)first;
    bool whole = r->q_rows == r->kv_rows && r->logical_n == r->kv_rows &&
                 r->q_rows / 2 % r->q_chunk_size == 0;
    if (r->ring_size != 1 || !whole)
        return MLA_TIE_NONE;
    r->is_balanced = !r->is_balanced;
    return MLA_TIE_BITS;
}

/* An offset that reaches the last key from the first row drops nothing. */
enum mla_tie mla_vary_offset(const struct mla_tensors *first, struct mla_case *test)
{
    struct mla_sparse_args *s = &test->sparse;
    struct mla_rng rng = mla_relation_rng(&first->test, 2);
    if (s->dense || (s->has_q_pos_offset && s->q_pos_offset < s->keys - 1))
        return MLA_TIE_NONE;
    s->has_q_pos_offset = !s->has_q_pos_offset;
    s->q_pos_offset = s->has_q_pos_offset ? s->keys - 1 + mla_rng_below(&rng, 3) : 0;
    return MLA_TIE_BITS;
}
