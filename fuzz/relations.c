/* SPDX-License-Identifier: Apache-2.0
 *
 * relations.c - the bit-equal relations.
 */
#include "fuzz/relations.h"

static bool vary_nothing(struct mla_case *test)
{
    (void)test;
    return true;
}

/* Threads, cores and links: the work is cut differently, the arithmetic is not. */
static bool vary_threads(struct mla_case *test)
{
    if (test->op == MLA_OP_RING) {
        test->ring.threads = test->ring.threads == 1 ? test->ring.ring_size + 1 : 1;
        test->ring.num_links = test->ring.num_links == 1 ? 3 : 1;
        return true;
    }
    test->sparse.threads = test->sparse.threads == 1 ? 3 : 1;
    test->sparse.cores = test->sparse.cores == 1 ? test->sparse.queries : 1;
    return true;
}

/* Overrides name places of the old layout. */
static bool vary_layout(struct mla_case *test)
{
    test->sparse.topk_tiled = !test->sparse.topk_tiled;
    return test->op == MLA_OP_SPARSE && !test->sparse.dense && test->put_n == 0;
}

/* Other garbage where nothing may be read. A poisoned future stays NaN: it is read by some rows. */
static bool vary_poison(struct mla_case *test)
{
    test->poison = test->poison == MLA_POISON_NOISE ? MLA_POISON_NAN : MLA_POISON_NOISE;
    return true;
}

static const struct mla_relation relations[] = {
    {"repeat", "the same call again has the same bits", MLA_PROMISE_BIT_REPEAT, true, false,
     vary_nothing},
    {"threads", "other thread, core and link counts", MLA_PROMISE_BIT_THREADS, true, false,
     vary_threads},
    {"dirt", "other bytes in scratch and outputs before the call", MLA_PROMISE_BIT_REPEAT, true,
     true, vary_nothing},
    {"layout", "flat = tiled index list", MLA_PROMISE_BIT_LAYOUT, false, false, vary_layout},
    {"hidden", "other contents of keys no row sees, other slots, pad rows", MLA_PROMISE_BIT_REPEAT,
     false, false, vary_poison},
};

const struct mla_relation *mla_relations(size_t *relations_n)
{
    *relations_n = sizeof relations / sizeof relations[0];
    return relations;
}

uint32_t mla_relations_choose(const struct mla_case *test)
{
    size_t relations_n;
    mla_relations(&relations_n);
    return 1u << (mla_number_mix(test->seed ^ test->row_seed) % relations_n);
}
