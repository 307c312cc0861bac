/* SPDX-License-Identifier: Apache-2.0
 *
 * transport.c - hop-by-hop movement of KV shards through the gathered buffers.
 *
 * Why it cannot deadlock: a thread sleeps only for a piece that another has claimed. Who claims a
 * piece already has it one hop upstream, so all it does before it publishes is copy; and while a
 * thread sleeps it holds no claim.
 *
 * Why no wakeup is lost: a sleeper reads the event counter first and then marks the piece as wanted,
 * or finds that mark. If the exchange that publishes the piece comes before the mark, the mark
 * fails and the sleeper sees the piece. If it comes after, it returns the mark, and the counter moves
 * on after the sleeper has read it.
 *
 * A ring of one rank moves nothing: there is nobody to forward to.
 */
#include "impl/transport.h"

#include "impl/pause.h"
#include "impl/scratch.h"

#include <string.h>

#define PIECES_MAX 256 /* more links than this would only make the copies smaller */

int32_t mla_transport_init(struct mla_transport *transport, const struct mla_ring_args *args,
                           const struct mla_layout *layout, struct mla_team *team)
{
    const int64_t size = args->ring_size;
    int64_t pieces_n = args->num_links;
    pieces_n = pieces_n > layout->moved_rows ? layout->moved_rows : pieces_n;
    pieces_n = pieces_n > PIECES_MAX ? PIECES_MAX : pieces_n;

    *transport = (struct mla_transport){.args = args,
                                        .team = team,
                                        .ring_size = size,
                                        .rows_n = layout->moved_rows,
                                        .pieces_n = pieces_n,
                                        .trips_n = size > 1 ? size * pieces_n : 0};
    atomic_init(&transport->next_trip, 0);
    for (int64_t rank = 0; rank < size; rank++) {
        mla_layout_ring_order(layout, rank, transport->steps[rank]);
        for (int64_t i = 0; i < size; i++) {
            const struct mla_ring_step *step = &transport->steps[rank][i];
            transport->upstream[rank][step->source] = step->upstream;
        }
    }
    transport->pieces = mla_scratch_alloc(size * size * pieces_n, sizeof *transport->pieces);
    if (transport->pieces == NULL) {
        return MLA_ERR_NOMEM;
    }
    for (int64_t i = 0; i < size * size * pieces_n; i++) {
        atomic_init(&transport->pieces[i], MLA_PIECE_MISSING);
    }
    return MLA_OK;
}

void mla_transport_free(struct mla_transport *transport)
{
    free(transport->pieces);
    transport->pieces = NULL;
}

static const uint16_t *kv_row(const struct mla_ring_args *args, int64_t rank, int64_t batch,
                              int64_t row)
{
    const int64_t slot = args->has_slot != 0 ? args->kv_cache_batch_idx : batch;
    return args->kv[rank] + (slot * args->kv_rows + row) * args->head_dim;
}

/* A slot keeps its own number in `gathered` when there is room for all, else it uses entry 0. */
static uint16_t *gathered_row(const struct mla_ring_args *args, int64_t rank, int64_t source,
                              int64_t batch, int64_t row)
{
    int64_t entry = batch;
    if (args->has_slot != 0) {
        entry = args->gathered_batch == args->kv_batch ? args->kv_cache_batch_idx : 0;
    }
    const int64_t line = entry * args->gathered_rows + source * args->kv_rows + row;
    return args->gathered[rank] + line * args->head_dim;
}

const uint16_t *mla_transport_shard(const struct mla_transport *transport, int64_t rank,
                                    int64_t source, int64_t batch)
{
    if (source == rank) {
        return kv_row(transport->args, rank, batch, 0);
    }
    return gathered_row(transport->args, rank, source, batch, 0);
}

static atomic_uchar *piece_of(const struct mla_transport *transport, int64_t rank, int64_t source,
                              int64_t piece)
{
    return &transport->pieces[(rank * transport->ring_size + source) * transport->pieces_n + piece];
}

static bool is_present(const struct mla_transport *transport, int64_t rank, int64_t source,
                       int64_t piece)
{
    return atomic_load_explicit(piece_of(transport, rank, source, piece), memory_order_acquire) ==
           MLA_PIECE_PRESENT;
}

/* Copy a claimed piece of every batch entry from where it is to the rank's gathered buffer. */
static void copy_piece(const struct mla_transport *transport, int64_t rank, int64_t source,
                       int64_t piece)
{
    const struct mla_ring_args *args = transport->args;
    const int64_t upstream = transport->upstream[rank][source];
    int64_t first;
    int64_t rows_n;
    mla_layout_split(transport->rows_n, transport->pieces_n, piece, &first, &rows_n);
    const size_t bytes = (size_t)(rows_n * args->head_dim) * sizeof(uint16_t);
    for (int64_t batch = 0; batch < args->batch; batch++) {
        const uint16_t *from = rank == source ? kv_row(args, rank, batch, first)
                                              : gathered_row(args, upstream, source, batch, first);
        memcpy(gathered_row(args, rank, source, batch, first), from, bytes);
    }
}

/* Sleep until a piece that another thread has claimed is there. */
static void await_piece(struct mla_transport *transport, atomic_uchar *mine)
{
    unsigned char state = MLA_PIECE_CLAIMED;
    while (state != MLA_PIECE_PRESENT) {
        const uint64_t seen = mla_team_events(transport->team);
        MLA_PAUSE(MLA_PAUSE_LOOK);
        state = MLA_PIECE_CLAIMED;
        if (atomic_compare_exchange_strong_explicit(mine, &state, MLA_PIECE_WANTED,
                                                    memory_order_acquire, memory_order_acquire) ||
            state == MLA_PIECE_WANTED) {
            mla_team_wait(transport->team, seen);
            state = atomic_load_explicit(mine, memory_order_acquire);
        }
    }
}

/* One hop of one piece, which is there one hop upstream, or at the source in its kv. */
static void pull_piece(struct mla_transport *transport, int64_t rank, int64_t source, int64_t piece)
{
    atomic_uchar *mine = piece_of(transport, rank, source, piece);
    unsigned char state = MLA_PIECE_MISSING;

    MLA_PAUSE(MLA_PAUSE_CLAIM);
    if (!atomic_compare_exchange_strong_explicit(mine, &state, MLA_PIECE_CLAIMED,
                                                 memory_order_acquire, memory_order_acquire)) {
        if (state != MLA_PIECE_PRESENT) {
            await_piece(transport, mine);
        }
        return;
    }
    MLA_PAUSE(MLA_PAUSE_COPY);
    copy_piece(transport, rank, source, piece);
    MLA_PAUSE(MLA_PAUSE_SHOW);
    if (atomic_exchange_explicit(mine, MLA_PIECE_PRESENT, memory_order_release) ==
        MLA_PIECE_WANTED) {
        MLA_PAUSE(MLA_PAUSE_NOTIFY);
        mla_team_notify(transport->team);
    }
}

/* All hops of one piece that are missing up to `rank`. */
static void need_piece(struct mla_transport *transport, int64_t rank, int64_t source, int64_t piece)
{
    int64_t missing[MLA_RING_SIZE_MAX];
    int64_t missing_n = 0;
    for (int64_t at = rank; !is_present(transport, at, source, piece);
         at = transport->upstream[at][source]) {
        missing[missing_n++] = at;
        if (at == source) {
            break;
        }
    }
    while (missing_n > 0) {
        pull_piece(transport, missing[--missing_n], source, piece);
    }
}

static int64_t piece_with(const struct mla_transport *transport, int64_t row)
{
    return mla_layout_part(transport->rows_n, transport->pieces_n, row);
}

bool mla_transport_has(const struct mla_transport *transport, int64_t rank, int64_t source,
                       int64_t first, int64_t n)
{
    const int64_t last = piece_with(transport, first + n - 1);
    for (int64_t piece = piece_with(transport, first); source != rank && piece <= last; piece++) {
        if (!is_present(transport, rank, source, piece)) {
            return false;
        }
    }
    return true;
}

void mla_transport_need(struct mla_transport *transport, int64_t rank, int64_t source,
                        int64_t first, int64_t n)
{
    const int64_t last = piece_with(transport, first + n - 1);
    for (int64_t piece = piece_with(transport, first); source != rank && piece <= last; piece++) {
        need_piece(transport, rank, source, piece);
    }
}

/* Trips go round the sources: the first pieces of all shards come before the second ones. */
bool mla_transport_carry(struct mla_transport *transport)
{
    const int64_t size = transport->ring_size;
    if (atomic_load_explicit(&transport->next_trip, memory_order_relaxed) >= transport->trips_n) {
        return false;
    }
    const int64_t trip = atomic_fetch_add_explicit(&transport->next_trip, 1, memory_order_relaxed);
    if (trip >= transport->trips_n) {
        return false;
    }
    for (int64_t rank = 0; rank < size; rank++) {
        need_piece(transport, (trip + rank) % size, trip % size, trip / size);
    }
    return true;
}
