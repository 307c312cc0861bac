/* SPDX-License-Identifier: Apache-2.0
 *
 * transport.h - how KV shards travel the ring: hop by hop, neighbour to neighbour, in pieces.
 *
 * Every rank has a `gathered` buffer with a place for every source's shard. A rank first copies its
 * own shard there; any other shard it copies from the buffer of the neighbour it arrives from, as
 * soon as a piece of it is there. No rank ever reads another rank's kv, and nobody pushes: the
 * reader claims a piece, copies it, and publishes it for the next rank down the line.
 *
 * A shard moves in num_links pieces (row ranges) that may be pulled by different threads. The state
 * of a piece goes missing -> claimed (compare and swap: one thread copies it) -> present (stored
 * with release after the copy; read with acquire before the copy is used). Nothing here blocks:
 * pull() moves what can be moved and returns.
 */
#ifndef MLA_IMPL_TRANSPORT_H
#define MLA_IMPL_TRANSPORT_H

#include "impl/layout.h"
#include "impl/mla.h"

#include <stdatomic.h>

enum mla_piece { MLA_PIECE_MISSING = 0, MLA_PIECE_CLAIMED = 1, MLA_PIECE_PRESENT = 2 };

struct mla_transport {
    const struct mla_ring_args *args;
    int64_t ring_size;
    int64_t rows_n;       /* rows of a shard that travel */
    int64_t pieces_n;     /* pieces a shard travels in */
    atomic_uchar *pieces; /* enum mla_piece [rank][source][piece] */
    atomic_llong present_n[MLA_RING_SIZE_MAX][MLA_RING_SIZE_MAX];     /* pieces of source at rank */
    struct mla_ring_step steps[MLA_RING_SIZE_MAX][MLA_RING_SIZE_MAX]; /* visiting order of a rank */
};

/* MLA_OK, or MLA_ERR_NOMEM; free is due in either case. args must outlive the transport. */
int32_t mla_transport_init(struct mla_transport *transport, const struct mla_ring_args *args,
                           const struct mla_layout *layout);
void mla_transport_free(struct mla_transport *transport);

/* Pull every piece `rank` lacks and its neighbour has; how many were pulled. For any thread. */
int64_t mla_transport_pull(struct mla_transport *transport, int64_t rank);

/* May rank read the shard of `source` now? Its own always, another when all pieces are there. */
bool mla_transport_present(const struct mla_transport *transport, int64_t rank, int64_t source);

/* Has everything reached `rank` that is to pass through it? */
bool mla_transport_complete(const struct mla_transport *transport, int64_t rank);

/* First row of source's shard for batch entry `batch`, as `rank` sees it: own kv, else gathered. */
const uint16_t *mla_transport_shard(const struct mla_transport *transport, int64_t rank,
                                    int64_t source, int64_t batch);

#endif
