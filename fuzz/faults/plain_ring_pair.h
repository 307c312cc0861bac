/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_pair.h - a tile that two threads share. Private to plain_ring_pair.c, in which they
 * meet, and plain_ring_stage.c, in which each does its half.
 */
#ifndef MLA_FAULTS_PLAIN_RING_PAIR_H
#define MLA_FAULTS_PLAIN_RING_PAIR_H

#include "fuzz/faults/plain_ring.h"

#include <stdatomic.h>

/* Where the two wait for one another. */
struct meeting {
    atomic_int here;
    atomic_int round;
};

struct pair {
    const struct mla_plain_ring *ring;
    struct meeting meeting;
    int64_t tile_rows;
    bool *seen;    /* [q_rows, tile_rows] */
    float *scores; /* [q_rows, tile_rows] */
    float *p;      /* [q_rows, tile_rows] */
    float *values; /* [2, values_n]: a tile's, in turn */
    int64_t values_n;
    float *alpha, *max, *sum; /* [q_rows] */
    float *o;                 /* [q_rows, head_dim_v] */
    float *early;             /* [2, q_rows]: what a faulty thread took before it was due */
};

/* One tile of one head, as one of the two sees it. */
struct stage {
    struct pair *pair;
    struct mla_plain_query query; /* rank and batch; r and pos per row */
    int64_t head, source, first, rows, turn;
    int64_t worker;
    const uint16_t *shard;
};

/* [*first, *end): this thread's half of n. */
void mla_plain_pair_half(int64_t n, int64_t worker, int64_t *first, int64_t *end);
bool mla_plain_pair_has(const struct stage *stage, enum mla_plain_fault fault);
/* The tile's values in float32. */
float *mla_plain_pair_values(const struct stage *stage);

/* Key j of the tile: its values, and its scores with all rows that see it. */
void mla_plain_pair_score(struct stage *stage, int64_t j);
/* A row's maximum with this tile; its probabilities, and what was summed before rescaled. */
float mla_plain_pair_max(const struct stage *stage, int64_t r);
void mla_plain_pair_store_early(const struct stage *stage, int64_t r);
void mla_plain_pair_weigh(const struct stage *stage, int64_t r, float max, float *p);
/* This thread's columns of a row's accumulator. */
void mla_plain_pair_multiply(const struct stage *stage, int64_t r, float alpha, const float *p);

#endif
