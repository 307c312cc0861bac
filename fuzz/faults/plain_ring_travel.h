/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_travel.h - the shards' way from rank to rank and the threads on it. Private to
 * plain_ring_transport.c, which moves, and plain_ring_travel.c, which computes.
 */
#ifndef MLA_FAULTS_PLAIN_RING_TRAVEL_H
#define MLA_FAULTS_PLAIN_RING_TRAVEL_H

#include "fuzz/faults/plain_ring.h"

#include <pthread.h>

#define PIECES  2
#define BUFFERS 2
enum { FROM_ABOVE, FROM_BELOW, SIDES }; /* rank+1 and rank-1 */

/* What comes to one rank from one side. Counts grow over all rounds; guarded by the lock. */
struct side {
    struct travel *travel;
    int64_t rank, side;
    int64_t hops_n; /* shards of one round */
    uint16_t *buffers[BUFFERS];
    int64_t arrived; /* pieces in place */
    int64_t used;    /* shards the rank has computed with */
    pthread_t thread;
};

struct worker {
    struct travel *travel;
    int64_t rank;
    struct mla_plain_key *keys;
    float *scores, *head_factors;
    struct mla_plain_row *rows; /* [heads, q_rows] */
    float *o;
    pthread_t thread;
};

struct travel {
    const struct mla_plain_ring *ring;
    struct side sides[MLA_RING_SIZE_MAX][SIDES];
    struct worker workers[MLA_RING_SIZE_MAX];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_started, has_failed; /* nobody begins before all threads are there */
    int64_t slow_side;            /* for the fault that takes what comes first */
};

/* Is the fault planted, where it makes a difference (sets the mark)? Whether or not it does: for the
 * delays beside it. */
bool mla_plain_travel_has(const struct travel *travel, enum mla_plain_fault fault);
bool mla_plain_travel_is(const struct travel *travel, enum mla_plain_fault fault);

/* Wait until a count is that far; is it; and take it further. false of wait_start: not all threads
 * could be had. */
void mla_plain_travel_wait(struct travel *travel, const int64_t *count, int64_t least);
bool mla_plain_travel_reached(struct travel *travel, const int64_t *count, int64_t least);
void mla_plain_travel_add(struct travel *travel, int64_t *count, int64_t n);
bool mla_plain_travel_wait_start(struct travel *travel);

/* The rank whose shard comes with a hop (1, 2, ...) to a side. */
int64_t mla_plain_travel_source(const struct side *side, int64_t hop);
/* One side of one rank; what its thread does with all rounds. */
bool mla_plain_travel_make_side(struct travel *travel, int64_t rank, int64_t which);
void mla_plain_travel_move(struct side *side);

#endif
