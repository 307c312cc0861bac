/* SPDX-License-Identifier: Apache-2.0
 *
 * relations.c - the table of relations.
 *
 * Which bits are promised. Heads, batch entries and index layouts: BIT_LAYOUT. Another spelling of
 * the same call: BIT_SPELLING. A power of two times V: BIT_SCALE, and only where the case keeps all
 * numbers normal. A key later than a row: NO_FUTURE_LEAK with BIT_REPEAT; a kernel without it may
 * take the maximum over hidden keys too, so its rows are held to their intervals. Whatever changes
 * the order or grouping of sums promises no bits to anybody.
 *
 * Delays at the places where threads meet are no relation: they need the kernel's own hooks
 * (impl/pause.h, held by impl/pause_test.c); "threads", "repeat" and "dirt" are what is left of
 * them for kernels from elsewhere.
 */
#include "fuzz/relations.h"

#include <string.h>

#include "fuzz/relations_internal.h"
#include "oracle/visible.h"

#define DEAR_ONE_IN 12 /* cases of a hunt with a dear relation */

#define BOTH    (MLA_ON_RING | MLA_ON_SPARSE)
#define REPEAT  MLA_PROMISE_BIT_REPEAT
#define THREADS MLA_PROMISE_BIT_THREADS
#define LAYOUT  MLA_PROMISE_BIT_LAYOUT
#define SPELL   MLA_PROMISE_BIT_SPELLING
#define REFUSE  (MLA_PROMISE_REFUSES | MLA_PROMISE_INDEX_CHECKED)

static const struct mla_relation relations[] = {
    /* One more call. */
    {.name = "repeat", .what = "the same call again", .operations = BOTH, .promise = REPEAT},
    {.name = "threads",
     .what = "other thread and link counts",
     .operations = BOTH,
     .promise = THREADS,
     .vary = mla_vary_threads},
    {.name = "dirt",
     .what = "other bytes in scratch and outputs before the call",
     .operations = BOTH,
     .promise = REPEAT,
     .dirt = 1},
    {.name = "layout",
     .what = "flat = tiled index list",
     .operations = MLA_ON_SPARSE,
     .promise = LAYOUT,
     .vary = mla_vary_layout,
     .arrange = mla_arrange_layout},
    {.name = "hidden",
     .what = "other contents of keys no row sees, other slots, pad rows",
     .operations = BOTH,
     .promise = REPEAT,
     .vary = mla_vary_poison,
     .remake = true},
    {.name = "cores",
     .what = "other core counts",
     .operations = MLA_ON_SPARSE,
     .promise = THREADS,
     .vary = mla_vary_cores},
    {.name = "later",
     .what = "other finite keys from a position on: the rows before it",
     .operations = BOTH,
     .promise = MLA_PROMISE_NO_FUTURE_LEAK | REPEAT,
     .vary = mla_vary_later,
     .arrange = mla_arrange_later,
     .match = mla_match_later},
    {.name = "heads",
     .what = "heads permuted",
     .operations = BOTH,
     .promise = LAYOUT,
     .vary = mla_vary_heads,
     .arrange = mla_arrange_heads,
     .match = mla_match_heads},
    {.name = "batch",
     .what = "batch entries permuted",
     .operations = MLA_ON_RING,
     .promise = LAYOUT,
     .vary = mla_vary_batch,
     .arrange = mla_arrange_batch,
     .match = mla_match_batch},
    {.name = "prior",
     .what = "P = L - R*Nq at a slab's edge = P absent",
     .operations = MLA_ON_RING,
     .promise = SPELL,
     .vary = mla_vary_prior},
    {.name = "one-rank",
     .what = "balanced = contiguous on one rank",
     .operations = MLA_ON_RING,
     .promise = SPELL,
     .vary = mla_vary_one_rank},
    {.name = "offset",
     .what = "q_pos_offset beyond all keys = absent",
     .operations = MLA_ON_SPARSE,
     .promise = SPELL,
     .vary = mla_vary_offset},

    /* Truths of a second call, or several calls. */
    {.name = "values",
     .what = "V times 2^20, the query's columns that meet it times 2^-20",
     .operations = BOTH,
     .dear = true,
     .promise = MLA_PROMISE_BIT_SCALE,
     .vary = mla_vary_values,
     .arrange = mla_arrange_values,
     .exponent = MLA_SCALE_EXPONENT},
    {.name = "order",
     .what = "index lists permuted",
     .operations = MLA_ON_SPARSE,
     .dear = true,
     .vary = mla_vary_order,
     .arrange = mla_arrange_order},
    {.name = "copies",
     .what = "every key listed twice",
     .operations = MLA_ON_SPARSE,
     .dear = true,
     .vary = mla_vary_copies,
     .arrange = mla_arrange_copies},
    {.name = "shift",
     .what = "a constant added to all scores, by a column more",
     .operations = BOTH,
     .dear = true,
     .vary = mla_vary_shift,
     .arrange = mla_arrange_shift},
    {.name = "chunks",
     .what = "other chunk sizes",
     .operations = MLA_ON_RING,
     .dear = true,
     .vary = mla_vary_chunks},
    {.name = "topology",
     .what = "ring = line",
     .operations = MLA_ON_RING,
     .dear = true,
     .vary = mla_vary_topology},
    {.name = "shards",
     .what = "the same tokens on another number of ranks, or in another layout",
     .operations = MLA_ON_RING,
     .dear = true,
     .vary = mla_vary_shards,
     .arrange = mla_arrange_shards,
     .match = mla_match_shards},
    {.name = "as-sparse",
     .what = "sparse over all keys a ring row sees = that row",
     .operations = MLA_ON_RING,
     .dear = true,
     .vary = mla_vary_as_sparse,
     .arrange = mla_arrange_as_sparse,
     .match = mla_match_as_sparse},
    {.name = "as-ring",
     .what = "a ring over the keys a sparse row lists = that row",
     .operations = MLA_ON_SPARSE,
     .dear = true,
     .vary = mla_vary_as_ring,
     .arrange = mla_arrange_as_ring,
     .match = mla_match_as_ring},
    {.name = "after-growth",
     .what = "after calls with fewer keys, on the same memory",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_growth},
    {.name = "after-slot",
     .what = "after a call on another cache slot",
     .operations = MLA_ON_RING,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_slot},
    {.name = "after-prior",
     .what = "after calls with another P",
     .operations = MLA_ON_RING,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_prior},
    {.name = "after-pointers",
     .what = "after the same call with other numbers elsewhere in memory",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_pointers},
    {.name = "after-contents",
     .what = "after the same call with other numbers in the same memory",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_contents},
    {.name = "after-scale",
     .what = "after a call with another scale",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_scale},
    {.name = "after-others",
     .what = "after calls of other shapes and of the other operation",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_others},
    {.name = "after-refusal",
     .what = "after calls that must be refused",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .needs = REFUSE,
     .earlier = mla_earlier_refusal},
    {.name = "together",
     .what = "while another thread makes the same call with other numbers",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_pointers,
     .is_beside = true},
    {.name = "after-options",
     .what = "after the same call with one option changed: order, offset, balance, topology, scale",
     .operations = BOTH,
     .dear = true,
     .promise = REPEAT,
     .earlier = mla_earlier_options},
};

#define RELATIONS_N (sizeof relations / sizeof relations[0])
_Static_assert(RELATIONS_N <= 32, "sets of relations are 32 bits");

const struct mla_relation *mla_relations(size_t *relations_n)
{
    *relations_n = RELATIONS_N;
    return relations;
}

static uint32_t collect(enum mla_op op, bool dear)
{
    uint32_t set = 0;
    for (size_t i = 0; i < RELATIONS_N; i++)
        if ((relations[i].operations >> op & 1u) != 0 && relations[i].dear == dear)
            set |= 1u << i;
    return set;
}

uint32_t mla_relations_cheap(enum mla_op op)
{
    return collect(op, false);
}

uint32_t mla_relations_dear(enum mla_op op)
{
    return collect(op, true);
}

/* One of a set. */
static uint32_t pick(uint32_t set, uint64_t bits)
{
    int64_t skip = (int64_t)(bits % (uint64_t)__builtin_popcount(set));
    for (; skip > 0; skip--)
        set &= set - 1;
    return set & ~(set - 1);
}

uint32_t mla_relations_choose(const struct mla_case *test)
{
    uint64_t bits = mla_number_mix(test->seed ^ test->row_seed);
    uint64_t more = mla_number_mix(bits);
    uint32_t set = pick(mla_relations_cheap((enum mla_op)test->op), bits);
    if (more % DEAR_ONE_IN == 0)
        set |= pick(mla_relations_dear((enum mla_op)test->op), more / DEAR_ONE_IN);
    return set;
}

struct mla_rng mla_relation_rng(const struct mla_case *test, uint64_t which)
{
    return (struct mla_rng){mla_number_at(test->seed, test->row_seed, which, 0), 0};
}

/* In every layout a rank's queries rise in position from row to row; pad rows come last. */
bool mla_relation_query_at(const struct mla_ring_args *args, int64_t position, int64_t *rank,
                           int64_t *row)
{
    for (*rank = 0; position >= 0 && *rank < args->ring_size; ++*rank) {
        int64_t low = 0, high = args->q_rows;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            int64_t at = mla_oracle_query_position(args, *rank, middle);
            if (at >= 0 && at < position)
                low = middle + 1;
            else
                high = middle;
        }
        *row = low;
        if (low < args->q_rows && mla_oracle_query_position(args, *rank, low) == position)
            return true;
    }
    return false;
}

void mla_relation_copy(const struct mla_tensors *first, struct mla_tensors *second)
{
    for (size_t i = 0; i < first->n; i++)
        if (first->list[i].role == MLA_TENSOR_INPUT)
            memcpy(second->list[i].guard.data, first->list[i].guard.data,
                   first->list[i].guard.bytes);
}
