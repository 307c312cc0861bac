/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_ring_keys.c - the keys of a row, in visiting order, and the places they are read from.
 */
#include "fuzz/faults/plain_mask.h"
#include "fuzz/faults/plain_ring.h"

#include <math.h>

int64_t mla_plain_tile_rows(const struct mla_ring_args *args)
{
    return args->k_chunk_size < args->kv_rows ? args->k_chunk_size : args->kv_rows;
}

/* ---- places ---- */

/* Elements before a batch entry of kv. */
static int64_t batch_offset(const struct mla_plain_ring *ring, int64_t kv_batch)
{
    int64_t stride = ring->args->kv_rows * ring->args->head_dim;
    int64_t offset = kv_batch * stride;
    int64_t in_int32 = (int32_t)(uint32_t)(uint64_t)offset;
    int64_t in_bytes = (uint32_t)(2 * (uint64_t)offset) / 2;
    if (offset != in_int32 && mla_plain_has(ring->variant, MLA_FAULT_SLOT_OFFSET_INT32)) {
        return in_int32;
    }
    if (offset != in_bytes && mla_plain_has(ring->variant, MLA_FAULT_SLOT_BYTES_UINT32)) {
        return in_bytes;
    }
    return offset;
}

const uint16_t *mla_plain_shard(const struct mla_plain_ring *ring, int64_t rank, int64_t source,
                                int64_t batch)
{
    const struct mla_ring_args *args = ring->args;
    int64_t kv_batch = ring->plan.slot >= 0 ? ring->plan.slot : batch;
    if (kv_batch > batch && args->gathered_batch == 1 &&
        mla_plain_has(ring->variant, MLA_FAULT_SLOT_LOST_ONE_GATHERED)) {
        kv_batch = 0; /* the one batch entry of `gathered` is taken for the only one there is */
    }
    if (ring->variant.method == MLA_PLAIN_GATHERED) {
        int64_t pitch = args->kv_rows;
        int64_t moved = mla_plain_moved_rows(ring);
        if (source > 0 && moved != pitch &&
            mla_plain_has(ring->variant, MLA_FAULT_GATHERED_PITCH)) {
            pitch = moved;
        }
        int64_t first =
            mla_plain_gathered_batch(ring, batch) * args->gathered_rows + source * pitch;
        return args->gathered[rank] + first * args->head_dim;
    }
    return args->kv[source] + batch_offset(ring, kv_batch);
}

/* The row a key is read from. */
static int64_t row_of(const struct mla_plain_ring *ring, int64_t local)
{
    const struct mla_ring_args *args = ring->args;
    int64_t tile = local / args->k_chunk_size;
    if (tile > 0 && args->heads > 1 &&
        mla_plain_has(ring->variant, MLA_FAULT_TILE_OFFSET_BY_HEADS)) {
        return (tile * args->heads * args->k_chunk_size + local % args->k_chunk_size) %
               args->kv_rows;
    }
    return local;
}

/*
 * Rows that are read though nobody asked for them. The last batch entry ends where the tensor ends:
 * what is read behind it is not the kernel's.
 */
static void read_ahead(const struct mla_plain_ring *ring, int64_t source, const uint16_t *shard,
                       int64_t last)
{
    const struct mla_ring_args *args = ring->args;
    if (ring->variant.fault != MLA_FAULT_PREFETCH_PAST_END &&
        ring->variant.fault != MLA_FAULT_SHORT_TILE_READ_WHOLE) {
        return; /* with other methods the shard is not in kv */
    }
    const uint16_t *end = args->kv[source] + args->kv_batch * args->kv_rows * args->head_dim;
    /* a chunk may be longer than any shard: so much of it is enough to read past the end */
    int64_t longest = args->kv_rows + 32;
    int64_t chunk = args->k_chunk_size < longest ? args->k_chunk_size : longest;
    const uint16_t *tile = shard + last / chunk * chunk * args->head_dim;
    const uint16_t *next = shard + (last + 1) * args->head_dim;
    volatile uint16_t sink = 0;
    if (next >= end && mla_plain_has(ring->variant, MLA_FAULT_PREFETCH_PAST_END)) {
        sink = next[0];
    }
    if (tile + chunk * args->head_dim > end &&
        mla_plain_has(ring->variant, MLA_FAULT_SHORT_TILE_READ_WHOLE)) {
        for (int64_t i = 0; i < chunk; i++) {
            sink = tile[i * args->head_dim];
        }
    }
    (void)sink;
}

/* ---- lists ---- */

static struct mla_plain_key key_at(const struct mla_plain_ring *ring, const uint16_t *row,
                                   int64_t step, int64_t local)
{
    int64_t tiles_n = (ring->args->kv_rows - 1) / ring->args->k_chunk_size + 1;
    return (struct mla_plain_key){.value = row,
                                  .rope = row + ring->args->head_dim_v,
                                  .tile = step * tiles_n + local / ring->args->k_chunk_size};
}

/* A shard of which the row sees nothing is worked through all the same: tile -1, which is the last. */
static int64_t list_last_tile(const struct mla_plain_ring *ring, int64_t step,
                              const uint16_t *shard, struct mla_plain_key *keys)
{
    int64_t rows = mla_plain_tile_rows(ring->args);
    int64_t first = (ring->args->kv_rows - 1) / rows * rows;
    for (int64_t t = first; t < ring->args->kv_rows; t++) {
        keys[t - first] = key_at(ring, shard + t * ring->args->head_dim, step, t);
    }
    return ring->args->kv_rows - first;
}

int64_t mla_plain_list_shard(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                             int64_t step, int64_t source, const uint16_t *shard,
                             struct mla_plain_key *keys)
{
    const struct mla_ring_args *args = ring->args;
    int64_t keys_n = 0, last = 0;
    int64_t far = query->pos > args->q_chunk_size ? query->pos : args->q_chunk_size;
    far = far > ring->plan.logical_n ? far : ring->plan.logical_n;
    struct mla_plain_sight sight = {.ring = ring, .query = query, .source = source};
    for (int64_t t = 0; t < args->kv_rows; t++) {
        sight.local = t;
        sight.pos = mla_plain_key_position(ring, source, t);
        if (t % args->k_chunk_size == 0) {
            sight.tile = t;
            sight.tile_pos = sight.pos;
            if (mla_plain_is_chunked(args) && sight.pos > far) {
                break; /* no fault looks farther, and a cache may be long */
            }
        }
        bool is_hidden = !mla_plain_sees(&sight);
        if (is_hidden && !mla_plain_masks(ring->variant)) {
            continue;
        }
        const uint16_t *row = shard + row_of(ring, t) * args->head_dim;
        if (sight.pos >= ring->plan.logical_n && ring->variant.fault == MLA_FAULT_PAD_SCORE_ZERO) {
            row = ring->zeros;
        }
        last = t;
        keys[keys_n] = key_at(ring, row, step, t);
        keys[keys_n++].hidden = is_hidden;
    }
    if (keys_n > 0) {
        read_ahead(ring, source, shard, last);
    } else if (mla_plain_has(ring->variant, MLA_FAULT_EMPTY_SHARD_LAST_TILE)) {
        keys_n = list_last_tile(ring, step, shard, keys);
    }
    return keys_n;
}

int64_t mla_plain_list_row(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                           const int64_t *order, struct mla_plain_key *keys)
{
    int64_t keys_n = 0;
    for (int64_t step = 0; step < ring->args->ring_size; step++) {
        int64_t source = order[step];
        if ((ring->plan.active >> source & 1u) == 0) {
            continue;
        }
        const uint16_t *shard = mla_plain_shard(ring, query->rank, source, query->batch);
        keys_n += mla_plain_list_shard(ring, query, step, source, shard, keys + keys_n);
    }
    return keys_n;
}

/* ---- hidden keys ---- */

/* One hidden key of a tile that is worked on enters with weight 0: only NaN and Inf are not lost. */
static void add_zero_times(const struct mla_plain_ring *ring, enum mla_plain_fault fault,
                           const uint16_t *value, struct mla_plain_row *row)
{
    for (int64_t c = 0; c < row->value_n; c++) {
        bool is_finite = (value[c] & 0x7f80u) != 0x7f80u;
        if (!is_finite && !isnan(row->o[c]) && mla_plain_has(ring->variant, fault)) {
            row->o[c] = NAN;
        }
    }
}

void mla_plain_touch_hidden(const struct mla_plain_ring *ring, const struct mla_plain_query *query,
                            struct mla_plain_row *row)
{
    const struct mla_ring_args *args = ring->args;
    bool is_future = ring->variant.fault == MLA_FAULT_ZERO_TIMES_FUTURE;
    if (!is_future && ring->variant.fault != MLA_FAULT_ZERO_TIMES_TAIL) {
        return;
    }
    for (int64_t source = 0; source < args->ring_size; source++) {
        const uint16_t *shard = mla_plain_shard(ring, query->rank, source, query->batch);
        for (int64_t t = 0; t < args->kv_rows; t++) {
            int64_t tile = t / args->k_chunk_size * args->k_chunk_size;
            int64_t pos = mla_plain_key_position(ring, source, t);
            int64_t tile_pos = mla_plain_key_position(ring, source, tile);
            bool is_valid = pos < ring->plan.logical_n;
            bool tile_is_seen = tile_pos <= query->pos && tile_pos < ring->plan.logical_n;
            if (tile_is_seen && (is_future ? is_valid && pos > query->pos : !is_valid)) {
                add_zero_times(ring, ring->variant.fault, shard + t * args->head_dim, row);
            }
        }
    }
}
