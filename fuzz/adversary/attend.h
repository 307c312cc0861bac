/* SPDX-License-Identifier: Apache-2.0
 *
 * attend.h - one (head, query row) by an adversary, over the list of its keys. Private to this
 * folder and its tests.
 */
#ifndef MLA_ADVERSARY_ATTEND_H
#define MLA_ADVERSARY_ATTEND_H

#include "fuzz/adversary/adversary.h"
#include "fuzz/adversary/choice.h"

/* A key and what it is sorted by. */
struct mla_adversary_item {
    double value;
    int64_t key;
};

/* Room for one row at a time. */
struct mla_adversary_work {
    double *query;    /* the columns that are not zero, */
    int64_t *place;   /* and where they stand */
    double *products; /* of one key, in summing order */
    double *exact;    /* scores without error */
    double *score;    /* computed scores */
    double *dir;      /* where each key's weight is pushed */
    struct mla_adversary_item *items;
    int64_t *order;                      /* keys in the order in which they are absorbed */
    int64_t *ends;                       /* ends of the blocks, as positions in that order */
    double *sum[MLA_ADVERSARY_PARTS];    /* accumulators, a column each */
    double *level[MLA_ADVERSARY_LEVELS]; /* partial sums of a pairwise sum */
};

int32_t mla_adversary_work_make(struct mla_adversary_work *work, int64_t width, int64_t keys_most,
                                int64_t columns_n);
void mla_adversary_work_free(struct mla_adversary_work *work);

struct mla_adversary_row {
    const struct mla_adversary_plan *plan;
    const struct mla_model *model;
    const uint16_t *query[2]; /* two parts, as the key's */
    const uint16_t **keys[2]; /* the value is the first columns_n columns of part 0 */
    int64_t part_n[2];
    int64_t keys_n;
    int64_t columns_n;
    int64_t shard_n[MLA_RING_SIZE_MAX]; /* keys by shard, in listed order */
    int64_t shards_n;
    int64_t chunk; /* keys in a block of a shard, for MLA_ADVERSARY_CHUNKS */
    double scale;
    uint64_t seed; /* of every choice; the tactic follows from it */

    double *real; /* results: the outputs before they are rounded to bf16, */
    double max;   /* the statistics: numbers that a binary32 holds; -inf and 0 without keys */
    double sum;
    int64_t column; /* and what was aimed at; -1: nothing */
    double direction;
};

/* Cannot fail. Non-finite inputs give non-finite results. */
void mla_adversary_attend(struct mla_adversary_row *row, struct mla_adversary_work *work);

/*
 * calls.c, for tests: one row of a call, and its outputs before they are rounded to bf16; result->real
 * has a number for each column. MLA_OK or MLA_ERR_NOMEM.
 */
struct mla_adversary_place {
    int64_t rank, batch, head, row;
};

struct mla_adversary_result {
    double *real;
    double max, sum;
    int64_t column; /* the one aimed at, -1 without keys, */
    double direction;
};

int32_t mla_adversary_ring_one(const struct mla_adversary *adversary,
                               const struct mla_ring_args *args, struct mla_adversary_place place,
                               struct mla_adversary_result *result);
int32_t mla_adversary_sparse_one(const struct mla_adversary *adversary,
                                 const struct mla_sparse_args *args,
                                 struct mla_adversary_place place,
                                 struct mla_adversary_result *result);

/* score.c: the scores of all keys into work->exact, and from there (with row's choices) the
 * computed ones into work->score. */
struct mla_adversary_scores {
    const struct mla_adversary_row *row;
    struct mla_adversary_work *work;
    int64_t nonzero_n;
};
void mla_adversary_scores_exact(struct mla_adversary_scores *scores);
/* The computed score of key j, pushed towards dir. */
double mla_adversary_score(const struct mla_adversary_scores *scores, struct mla_choice *choice,
                           int64_t j, double dir);

/* order.c: order and blocks into work->order and work->ends; returns how many blocks. aim: a greedy
 * one may look at the values of this column, -1: at none. */
int64_t mla_adversary_order(const struct mla_adversary_row *row, struct mla_adversary_work *work,
                            struct mla_choice *choice, int64_t aim);

#endif
