/* SPDX-License-Identifier: Apache-2.0
 *
 * relations.h - what two calls must have in common, without an oracle.
 *
 * A relation makes a second call out of a first one and says which of its rows give the same
 * output. Either their bits are equal, for kernels that promise it; or only their truths are, and
 * each must lie in its own certified interval. A kernel without the promise is held to the
 * intervals. Most relations change fields of the case or move the first call's numbers about, so
 * they hold for every family and every override; none draws numbers of its own.
 *
 * Adding one: a line at the end of the table of relations.c, as stored verdicts name relations by their place
 * (the statistic `relations`), and a function or two in the file for its kind.
 */
#ifndef MLA_FUZZ_RELATIONS_H
#define MLA_FUZZ_RELATIONS_H

#include "fuzz/tensors.h"
#include "impl/mla_kernel.h"
#include "oracle/oracle.h"

/* What the two calls have in common. */
enum mla_tie {
    MLA_TIE_NONE = 0, /* nothing: the relation does not apply */
    MLA_TIE_VALUE,    /* the truths of matching rows are equal */
    MLA_TIE_BITS      /* and their bits, if that is promised */
};

#define MLA_ON_RING   (1u << MLA_OP_RING)
#define MLA_ON_SPARSE (1u << MLA_OP_SPARSE)

/* Earlier calls of a sequence. */
#define MLA_RELATION_EARLIER_MAX 3
struct mla_earlier {
    struct mla_case test;
    bool in_place; /* on the memory of the call itself, which then gets its own contents back */
};

struct mla_relation {
    const char *name;
    const char *what;
    uint32_t operations; /* MLA_ON_* of the first call */
    bool dear;           /* costs more than one more call on numbers that are there */
    uint64_t promise;    /* bits are equal for kernels that promise all of this */
    uint64_t needs;      /* other kernels are left alone, where this is not promised */
    /*
     * Change *test, a copy of the first call's case, into the second's. NULL: the same call.
     * Whatever is chosen is a function of the case.
     */
    enum mla_tie (*vary)(const struct mla_tensors *first, struct mla_case *test);
    /*
     * Make the second call's inputs out of the first's; every element is written. false: no memory.
     * NULL: they are the same.
     */
    bool (*arrange)(const struct mla_tensors *first, struct mla_tensors *second);
    bool remake;  /* no: they are made anew, by the changed case's recipe */
    uint8_t dirt; /* 1: outputs and scratch start with another pattern */
    int exponent; /* the second output is 2^exponent times the first */
    /* The second call's row that matches one of the first's; false: there is none. NULL: the same. */
    bool (*match)(const struct mla_tensors *first, const struct mla_tensors *second,
                  struct mla_row row, struct mla_row *other);
    /* The i-th call made before the second one in its process; false: there are no more. */
    bool (*earlier)(const struct mla_case *test, int i, struct mla_earlier *earlier);
    bool
        is_beside; /* not before it but while it runs, by another thread: the first, again and again */
};

/* At most 32: sets of relations are bits of a uint32_t. */
const struct mla_relation *mla_relations(size_t *relations_n);

/* The relations that apply to an operation and cost no more than a call, and the others. */
uint32_t mla_relations_cheap(enum mla_op op);
uint32_t mla_relations_dear(enum mla_op op);
#define MLA_RELATION_ROWS 4 /* rows a hunt judges of a dear relation's second call */
/* Those a hunt tries on this case: a cheap one, all of them in turn, since each costs another call, and
 * now and then a dear one. */
uint32_t mla_relations_choose(const struct mla_case *test);

#endif
