/* SPDX-License-Identifier: Apache-2.0
 *
 * transport.c - hop-by-hop movement of KV shards through the gathered buffers.
 *
 * Why it cannot deadlock: along either direction a shard k hops from its source depends only on the
 * same shard k-1 hops away, and the source itself depends on nothing. The visiting order guarantees
 * that the upstream neighbour is to receive whatever is expected from it.
 *
 * A ring of one rank moves nothing: there is nobody to forward to.
 */
#include "impl/transport.h"

#include "impl/scratch.h"

#include <string.h>

#define PIECES_MAX 256 /* more links than this would only make the copies smaller */

int32_t mla_transport_init(struct mla_transport *transport, const struct mla_ring_args *args,
                           const struct mla_layout *layout)
{
    const int64_t size = args->ring_size;
    int64_t pieces_n = args->num_links;
    pieces_n = pieces_n > layout->moved_rows ? layout->moved_rows : pieces_n;
    pieces_n = pieces_n > PIECES_MAX ? PIECES_MAX : pieces_n;

    *transport = (struct mla_transport){
        .args = args, .ring_size = size, .rows_n = layout->moved_rows, .pieces_n = pieces_n};
    for (int64_t rank = 0; rank < size; rank++) {
        mla_layout_ring_order(layout, rank, transport->steps[rank]);
        for (int64_t source = 0; source < size; source++) {
            atomic_init(&transport->present_n[rank][source], 0);
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

/* Copy one claimed piece of every batch entry from where it is to the rank's gathered buffer. */
static void copy_piece(const struct mla_transport *transport, int64_t rank,
                       const struct mla_ring_step *step, int64_t piece)
{
    const struct mla_ring_args *args = transport->args;
    int64_t first;
    int64_t rows_n;
    mla_layout_split(transport->rows_n, transport->pieces_n, piece, &first, &rows_n);
    const size_t bytes = (size_t)(rows_n * args->head_dim) * sizeof(uint16_t);
    for (int64_t batch = 0; batch < args->batch; batch++) {
        const uint16_t *from = step->hop == MLA_HOP_OWN
                                   ? kv_row(args, rank, batch, first)
                                   : gathered_row(args, step->upstream, step->source, batch, first);
        memcpy(gathered_row(args, rank, step->source, batch, first), from, bytes);
    }
}

/* Try to move one piece; false when it is not there yet, or not ours to move. */
static bool pull_piece(struct mla_transport *transport, int64_t rank,
                       const struct mla_ring_step *step, int64_t piece)
{
    atomic_uchar *mine = piece_of(transport, rank, step->source, piece);
    unsigned char expected = MLA_PIECE_MISSING;

    if (atomic_load_explicit(mine, memory_order_relaxed) != MLA_PIECE_MISSING) {
        return false;
    }
    if (step->hop != MLA_HOP_OWN &&
        atomic_load_explicit(piece_of(transport, step->upstream, step->source, piece),
                             memory_order_acquire) != MLA_PIECE_PRESENT) {
        return false;
    }
    if (!atomic_compare_exchange_strong_explicit(mine, &expected, MLA_PIECE_CLAIMED,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        return false;
    }
    copy_piece(transport, rank, step, piece);
    atomic_store_explicit(mine, MLA_PIECE_PRESENT, memory_order_release);
    /* The release sequence of these increments makes every piece visible to who reads the last. */
    atomic_fetch_add_explicit(&transport->present_n[rank][step->source], 1, memory_order_release);
    return true;
}

static bool all_present(const struct mla_transport *transport, int64_t rank, int64_t source)
{
    return atomic_load_explicit(&transport->present_n[rank][source], memory_order_acquire) ==
           transport->pieces_n;
}

int64_t mla_transport_pull(struct mla_transport *transport, int64_t rank)
{
    int64_t moved_n = 0;
    for (int64_t i = 0; transport->ring_size > 1 && i < transport->ring_size; i++) {
        const struct mla_ring_step *step = &transport->steps[rank][i];
        if (all_present(transport, rank, step->source)) {
            continue;
        }
        for (int64_t piece = 0; piece < transport->pieces_n; piece++) {
            moved_n += pull_piece(transport, rank, step, piece) ? 1 : 0;
        }
    }
    return moved_n;
}

bool mla_transport_present(const struct mla_transport *transport, int64_t rank, int64_t source)
{
    return source == rank || all_present(transport, rank, source);
}

bool mla_transport_complete(const struct mla_transport *transport, int64_t rank)
{
    for (int64_t source = 0; transport->ring_size > 1 && source < transport->ring_size; source++) {
        if (!all_present(transport, rank, source)) {
            return false;
        }
    }
    return true;
}
