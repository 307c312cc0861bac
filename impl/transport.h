/* SPDX-License-Identifier: Apache-2.0
 *
 * transport.h - how KV shards travel the ring: hop by hop, neighbour to neighbour, in pieces.
 *
 * Every rank has a `gathered` buffer with a place for every source's shard. A rank's own shard is
 * first copied there; any other shard comes from the buffer of the neighbour it arrives from. No
 * rank ever reads another rank's kv.
 *
 * A shard moves in num_links pieces (row ranges). Nobody is in charge of a rank: a thread that needs
 * rows of a shard makes the hops that are missing itself, piece by piece from where the piece
 * already is, and so does a thread that has nothing more urgent to do. The state of a piece at a
 * rank is all that is shared:
 *
 *     missing -> claimed    compare and swap: this thread copies it, at once
 *     claimed -> wanted     compare and swap: some thread sleeps until it is there
 *     claimed or wanted -> present    exchanged with release after the copy; who finds wanted
 *                           wakes the sleepers. Read with acquire before the rows are used
 */
#ifndef MLA_IMPL_TRANSPORT_H
#define MLA_IMPL_TRANSPORT_H

#include "impl/layout.h"
#include "impl/mla.h"
#include "impl/team.h"

#include <stdatomic.h>

enum mla_piece {
    MLA_PIECE_MISSING = 0,
    MLA_PIECE_CLAIMED = 1,
    MLA_PIECE_WANTED = 2,
    MLA_PIECE_PRESENT = 3
};

struct mla_transport {
    const struct mla_ring_args *args;
    struct mla_team *team;
    int64_t ring_size;
    int64_t rows_n;         /* rows of a shard that travel */
    int64_t pieces_n;       /* pieces a shard travels in */
    atomic_uchar *pieces;   /* enum mla_piece [rank][source][piece] */
    atomic_llong next_trip; /* (piece, source) pairs not yet given out for carrying */
    int64_t trips_n;
    struct mla_ring_step steps[MLA_RING_SIZE_MAX][MLA_RING_SIZE_MAX]; /* visiting order of a rank */
    int64_t upstream[MLA_RING_SIZE_MAX][MLA_RING_SIZE_MAX]; /* [rank][source] where it comes from */
};

/*
 * MLA_OK, or MLA_ERR_NOMEM; free is due in either case. args and team must outlive the transport;
 * sleepers wait for the team's events.
 */
int32_t mla_transport_init(struct mla_transport *transport, const struct mla_ring_args *args,
                           const struct mla_layout *layout, struct mla_team *team);
void mla_transport_free(struct mla_transport *transport);

/*
 * Rows first .. first+n-1 (n >= 1) of source's shard, all among those that travel: has() says
 * whether rank may read them now, need() returns when it may. A rank's own shard it always may.
 */
bool mla_transport_has(const struct mla_transport *transport, int64_t rank, int64_t source,
                       int64_t first, int64_t n);
void mla_transport_need(struct mla_transport *transport, int64_t rank, int64_t source,
                        int64_t first, int64_t n);

/*
 * Bring one more piece of one shard to all ranks; false when all have been given out. When every
 * thread has been told so and has returned, everything is everywhere.
 */
bool mla_transport_carry(struct mla_transport *transport);

/* First row of source's shard for batch entry `batch`, as `rank` sees it: own kv, else gathered. */
const uint16_t *mla_transport_shard(const struct mla_transport *transport, int64_t rank,
                                    int64_t source, int64_t batch);

#endif
