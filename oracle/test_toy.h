/* SPDX-License-Identifier: Apache-2.0
 *
 * test_toy.h - small attention kernels that follow a declared arithmetic model to the letter.
 *
 * One online softmax with every rounding made by a chooser: honestly (real binary32 and bf16
 * roundings), at random within the model, or greedily so as to push one output element as far as
 * the model allows. The bound must hold all of them. A blind one pushes weights as it is told,
 * without looking at V, and every column's sums as it is told. Faults can be planted in the honest
 * one.
 * Where the model says in which frame p becomes bf16 nobody chooses that rounding: whatever p a
 * chooser has made is rounded to nearest or cut.
 */
#ifndef MLA_ORACLE_TEST_TOY_H
#define MLA_ORACLE_TEST_TOY_H

#include "oracle/test_row.h"

#define MLA_ORACLE_TOY_COLUMNS 32

enum mla_oracle_toy_choice {
    MLA_ORACLE_TOY_HONEST,
    MLA_ORACLE_TOY_RANDOM,
    MLA_ORACLE_TOY_GREEDY,
    MLA_ORACLE_TOY_BLIND
};

enum mla_oracle_toy_fault {
    MLA_ORACLE_TOY_SOUND,
    MLA_ORACLE_TOY_DROPS_A_KEY,
    MLA_ORACLE_TOY_SEES_THE_FUTURE,
    MLA_ORACLE_TOY_OMITS_RESCALE,
    MLA_ORACLE_TOY_OMITS_FIRST_RESCALE,
    MLA_ORACLE_TOY_RESCALES_SUM_ONLY,
    MLA_ORACLE_TOY_FORGETS_SCALE,
    MLA_ORACLE_TOY_STORES_TWICE /* rounds the accumulators before a block's keys too */
};

struct mla_oracle_toy {
    const struct mla_model *model;
    int64_t block_keys;        /* keys per step of the online softmax; 0: two-pass */
    const int64_t *block_ends; /* or, if not NULL, where each step ends, without merges */
    bool merges;               /* two halves, each with a state of its own, merged at the end */
    bool log2_domain;          /* the scale is folded with log2 e into one rounded constant */
    bool fuses;     /* MLA_ARG_SCALED, no merges: only the shift is rounded when scaled, the scores'
                   products are part of a fused difference */
    int32_t choice; /* enum mla_oracle_toy_choice */
    int32_t fault;  /* enum mla_oracle_toy_fault */
    int64_t column; /* greedy: the element that is pushed, */
    double direction;    /* up (+1) or down (-1), */
    double target;       /* from its true value */
    const double *blind; /* blind: +1 or -1 for each key, where its weight is pushed; */
    const double *push;  /* and for each column, where its sums are */
    struct mla_oracle_test_random *random;
};

struct mla_oracle_toy_result {
    double real[MLA_ORACLE_TOY_COLUMNS]; /* before output rounding */
    uint16_t out[MLA_ORACLE_TOY_COLUMNS];
    double max; /* reported: a binary32 if honest */
    double sum;
};

/* Run on a row of MLA_ORACLE_TOY_COLUMNS value columns. */
void mla_oracle_toy_run(const struct mla_oracle_toy *toy, const struct mla_oracle_test_row *row,
                        struct mla_oracle_toy_result *result);

#endif
