/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_transport.c - shards move from rank to rank: buffers, counts, waits.
 *
 * The races are planted here and in plain_ring_travel.c: one wait too few, and a nap where the one
 * who should have been waited for is late.
 */
#include "fuzz/faults/plain_ring_travel.h"

#include <stdlib.h>
#include <string.h>

bool mla_plain_travel_has(const struct travel *travel, enum mla_plain_fault fault)
{
    return mla_plain_has(travel->ring->variant, fault);
}

bool mla_plain_travel_is(const struct travel *travel, enum mla_plain_fault fault)
{
    return travel->ring->variant.fault == fault;
}

/* ---- waiting ---- */

void mla_plain_travel_wait(struct travel *travel, const int64_t *count, int64_t least)
{
    pthread_mutex_lock(&travel->lock);
    while (*count < least) {
        pthread_cond_wait(&travel->changed, &travel->lock);
    }
    pthread_mutex_unlock(&travel->lock);
}

bool mla_plain_travel_reached(struct travel *travel, const int64_t *count, int64_t least)
{
    pthread_mutex_lock(&travel->lock);
    bool is = *count >= least;
    pthread_mutex_unlock(&travel->lock);
    return is;
}

void mla_plain_travel_add(struct travel *travel, int64_t *count, int64_t n)
{
    pthread_mutex_lock(&travel->lock);
    *count += n;
    pthread_cond_broadcast(&travel->changed);
    pthread_mutex_unlock(&travel->lock);
}

bool mla_plain_travel_wait_start(struct travel *travel)
{
    pthread_mutex_lock(&travel->lock);
    while (!travel->has_started && !travel->has_failed) {
        pthread_cond_wait(&travel->changed, &travel->lock);
    }
    bool ok = !travel->has_failed;
    pthread_mutex_unlock(&travel->lock);
    return ok;
}

/* ---- moving ---- */

/* The rank the shards of a side come from (+1) or go to (-1), -1: none. */
static int64_t neighbour(const struct side *side, int64_t direction)
{
    const struct mla_ring_args *args = side->travel->ring->args;
    int64_t rank = side->rank + (side->side == FROM_ABOVE ? direction : -direction);
    if (args->topology == MLA_TOPOLOGY_LINEAR) {
        return rank < args->ring_size ? rank : -1;
    }
    return (rank + args->ring_size) % args->ring_size;
}

int64_t mla_plain_travel_source(const struct side *side, int64_t hop)
{
    int64_t ring_size = side->travel->ring->args->ring_size;
    return (side->rank + (side->side == FROM_ABOVE ? hop : ring_size - hop)) % ring_size;
}

/* Until the buffer of shard n (counted over all rounds) is free. */
static void wait_buffer(struct side *side, int64_t n)
{
    struct travel *travel = side->travel;
    int64_t before = n - BUFFERS; /* the shard that is still in it */
    if (before < 0) {
        return;
    }
    int64_t round = before / side->hops_n, next_hop = before % side->hops_n + 2;
    bool is_other_round = n / side->hops_n != round;
    bool hurries =
        mla_plain_travel_has(travel, MLA_FAULT_NO_CONSUMED_ACK) ||
        (is_other_round && mla_plain_travel_has(travel, MLA_FAULT_NEXT_ROUND_OVERWRITES));
    if (!hurries) {
        mla_plain_travel_wait(travel, &side->used, before + 1);
    }
    int64_t next = neighbour(side, -1);
    struct side *to = next >= 0 ? &travel->sides[next][side->side] : NULL;
    if (to && next_hop <= to->hops_n &&
        !mla_plain_travel_has(travel, MLA_FAULT_RELEASED_BEFORE_FORWARDED)) {
        mla_plain_travel_wait(travel, &to->arrived, PIECES * (round * to->hops_n + next_hop));
    }
}

/* Delays of the faulty, before a piece of a shard is copied. */
static void nap_before(const struct side *side, int64_t hop, int64_t piece)
{
    const struct travel *travel = side->travel;
    bool is_first = piece == 0, is_slow_side = side->side == travel->slow_side;
    if (is_first && (mla_plain_travel_is(travel, MLA_FAULT_READY_BEFORE_COPY) ||
                     mla_plain_travel_is(travel, MLA_FAULT_SECOND_HALF_UNJOINED) ||
                     (is_slow_side && mla_plain_travel_is(travel, MLA_FAULT_MERGE_AS_COMPLETED)))) {
        mla_plain_nap(8);
    }
    if (is_first && side->rank == 0 && hop == 2 &&
        mla_plain_travel_is(travel, MLA_FAULT_RELEASED_BEFORE_FORWARDED)) {
        mla_plain_nap(30); /* one slow rank, so that the others are ahead of it */
    }
    if (!is_first &&
        ((hop == side->hops_n && mla_plain_travel_is(travel, MLA_FAULT_ONE_ARRIVAL_FEWER)) ||
         (hop == 1 && mla_plain_travel_is(travel, MLA_FAULT_FORWARDED_BEFORE_COPIED)))) {
        mla_plain_nap(8);
    }
}

static void copy_shard(struct side *side, int64_t n, int64_t hop, const uint16_t *from)
{
    struct travel *travel = side->travel;
    const struct mla_ring_args *args = travel->ring->args;
    int64_t elements = args->kv_rows * args->head_dim, half = elements / PIECES;
    uint16_t *to = side->buffers[n % BUFFERS];
    bool is_early = mla_plain_travel_has(travel, MLA_FAULT_READY_BEFORE_COPY);
    if (is_early) {
        mla_plain_travel_add(travel, &side->arrived, PIECES);
    }
    for (int64_t piece = 0; piece < PIECES; piece++) {
        int64_t rest = piece == PIECES - 1 ? elements - half : half;
        nap_before(side, hop, piece);
        memcpy(to + piece * half, from + piece * half, (size_t)rest * sizeof *to);
        if (!is_early) {
            mla_plain_travel_add(travel, &side->arrived, 1);
        }
    }
}

void mla_plain_travel_move(struct side *side)
{
    struct travel *travel = side->travel;
    const struct mla_ring_args *args = travel->ring->args;
    int64_t from_rank = neighbour(side, 1);
    for (int64_t n = 0; n < args->batch * side->hops_n; n++) {
        int64_t round = n / side->hops_n, hop = n % side->hops_n + 1;
        struct side *up = &travel->sides[from_rank][side->side];
        int64_t up_n = round * up->hops_n + hop - 2; /* the shard that is there before it is here */
        const uint16_t *from = hop == 1 ? mla_plain_shard(travel->ring, side->rank,
                                                          mla_plain_travel_source(side, hop), round)
                                        : up->buffers[up_n % BUFFERS];
        if (hop > 1) {
            int64_t pieces = PIECES * (up_n + 1);
            pieces -= mla_plain_travel_has(travel, MLA_FAULT_FORWARDED_BEFORE_COPIED);
            mla_plain_travel_wait(travel, &up->arrived, pieces);
        }
        wait_buffer(side, n);
        copy_shard(side, n, hop, from);
    }
}

bool mla_plain_travel_make_side(struct travel *travel, int64_t rank, int64_t which)
{
    const struct mla_ring_args *args = travel->ring->args;
    struct side *side = &travel->sides[rank][which];
    int64_t below = args->topology == MLA_TOPOLOGY_LINEAR ? rank : args->ring_size / 2;
    side->travel = travel;
    side->rank = rank;
    side->side = which;
    side->hops_n = which == FROM_BELOW ? below : args->ring_size - 1 - below;
    for (int i = 0; i < BUFFERS; i++) {
        side->buffers[i] = calloc((size_t)(args->kv_rows * args->head_dim), sizeof(uint16_t));
        if (!side->buffers[i]) {
            return false;
        }
    }
    return true;
}
