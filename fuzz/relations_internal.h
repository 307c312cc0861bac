/* SPDX-License-Identifier: Apache-2.0
 *
 * relations_internal.h - the functions behind the table of relations.
 */
#ifndef MLA_FUZZ_RELATIONS_INTERNAL_H
#define MLA_FUZZ_RELATIONS_INTERNAL_H

#include "fuzz/relations.h"

#define MLA_VARY(name)                                                                             \
    enum mla_tie mla_vary_##name(const struct mla_tensors *first, struct mla_case *test)
#define MLA_ARRANGE(name)                                                                          \
    bool mla_arrange_##name(const struct mla_tensors *first, struct mla_tensors *second)
#define MLA_MATCH(name)                                                                            \
    bool mla_match_##name(const struct mla_tensors *first, const struct mla_tensors *second,       \
                          struct mla_row row, struct mla_row *other)
#define MLA_EARLIER(name)                                                                          \
    bool mla_earlier_##name(const struct mla_case *test, int i, struct mla_earlier *earlier)

/* relations_fields.c: other fields, the same numbers */
MLA_VARY(threads);
MLA_VARY(cores);
MLA_VARY(poison);
MLA_VARY(chunks);
MLA_VARY(topology);
MLA_VARY(prior);
MLA_VARY(one_rank);
MLA_VARY(offset);

/* relations_move.c: heads, batch entries, lists and numbers moved or changed in place */
MLA_VARY(layout);
MLA_ARRANGE(layout);
MLA_VARY(heads);
MLA_ARRANGE(heads);
MLA_MATCH(heads);
MLA_VARY(batch);
MLA_ARRANGE(batch);
MLA_MATCH(batch);
MLA_VARY(order);
MLA_ARRANGE(order);
MLA_VARY(copies);
MLA_ARRANGE(copies);

/* relations_change.c: numbers changed where that does nothing, or one known thing, to the output */
#define MLA_SCALE_EXPONENT 20
MLA_VARY(later);
MLA_ARRANGE(later);
MLA_MATCH(later);
MLA_VARY(values);
MLA_ARRANGE(values);
MLA_VARY(shift);
MLA_ARRANGE(shift);

/* relations_shards.c: the same tokens on another ring */
MLA_VARY(shards);
MLA_ARRANGE(shards);
MLA_MATCH(shards);

/* relations_across.c: the same rows by the other operation */
MLA_VARY(as_sparse);
MLA_ARRANGE(as_sparse);
MLA_MATCH(as_sparse);
MLA_VARY(as_ring);
MLA_ARRANGE(as_ring);
MLA_MATCH(as_ring);

/* relations_earlier.c: other calls before it */
MLA_EARLIER(growth);
MLA_EARLIER(slot);
MLA_EARLIER(prior);
MLA_EARLIER(pointers);
MLA_EARLIER(contents);
MLA_EARLIER(scale);
MLA_EARLIER(options);
MLA_EARLIER(others);
MLA_EARLIER(refusal);

#undef MLA_VARY
#undef MLA_ARRANGE
#undef MLA_MATCH
#undef MLA_EARLIER

/* Draws for what a relation leaves open: a function of the case and the relation's own number. */
struct mla_rng mla_relation_rng(const struct mla_case *test, uint64_t which);

/* The place of the query at a position >= 0; false: the call has none there. */
bool mla_relation_query_at(const struct mla_ring_args *args, int64_t position, int64_t *rank,
                           int64_t *row);

/* Copy all inputs of one call to another of the same shapes. */
void mla_relation_copy(const struct mla_tensors *first, struct mla_tensors *second);

#endif
