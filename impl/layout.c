/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c - the integer maps of both operations.
 *
 * Overflow: an accepted ring call has ring_size * kv_rows <= gathered_rows, an int64, and every
 * position is below that or, for a query row past the end, below it plus one round of slabs
 * (ring_size * q_rows <= ring_size * kv_rows); tensor sizes are bounded far below INT64_MAX / 2, so
 * sums of two positions fit.
 */
#include "impl/layout.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

struct mla_layout mla_layout_of(const struct mla_ring_args *args)
{
    struct mla_layout layout = {
        .mode = MLA_LAYOUT_CONTIGUOUS,
        .topology = args->topology,
        .ring_size = args->ring_size,
        .q_rows = args->q_rows,
        .kv_rows = args->kv_rows,
        .logical_n = args->logical_n,
        .prior = 0,
        .moved_rows = args->kv_rows,
    };
    if (args->is_balanced != 0) {
        layout.mode = MLA_LAYOUT_BALANCED;
    } else if (args->has_prior != 0) {
        const int64_t round = layout.ring_size * layout.q_rows;
        const int64_t slabs_n = round_up(layout.logical_n, round) / round;
        layout.mode = MLA_LAYOUT_ROTATED;
        layout.prior = args->kv_actual_isl;
        layout.moved_rows = min_of(slabs_n * layout.q_rows, layout.kv_rows);
    } else if (args->q_rows < args->kv_rows) {
        layout.mode = MLA_LAYOUT_CHUNKED;
    }
    return layout;
}

static int64_t balanced_position(const struct mla_layout *layout, int64_t rank, int64_t row)
{
    const int64_t half = layout->q_rows / 2;
    if (row < half) {
        return rank * half + row;
    }
    return (2 * layout->ring_size - 1 - rank) * half + (row - half);
}

/*
 * The new tokens start in round prior div (R*Nq). A rank owns of that round what is left of its
 * slab at or after prior, then the start of its slab in the next round; together at most one slab,
 * since at most R*Nq tokens are new.
 */
static int64_t rotated_position(const struct mla_layout *layout, int64_t rank, int64_t row)
{
    const int64_t round = layout->ring_size * layout->q_rows;
    const int64_t slab = layout->prior / round * round + rank * layout->q_rows;
    const int64_t start = max_of(layout->prior, slab);
    const int64_t current_n = max_of(slab + layout->q_rows - start, 0);
    const int64_t position = row < current_n ? start + row : slab + round + (row - current_n);
    return position < layout->logical_n ? position : -1;
}

int64_t mla_layout_query_position(const struct mla_layout *layout, int64_t rank, int64_t row)
{
    switch (layout->mode) {
    case MLA_LAYOUT_BALANCED:
        return balanced_position(layout, rank, row);
    case MLA_LAYOUT_ROTATED:
        return rotated_position(layout, rank, row);
    case MLA_LAYOUT_CHUNKED:
        return round_up(layout->logical_n, MLA_TILE) - layout->ring_size * layout->q_rows +
               rank * layout->q_rows + row;
    default:
        return rank * layout->q_rows + row;
    }
}

int64_t mla_layout_key_position(const struct mla_layout *layout, int64_t rank, int64_t row)
{
    switch (layout->mode) {
    case MLA_LAYOUT_BALANCED:
        return balanced_position(layout, rank, row);
    case MLA_LAYOUT_ROTATED:
    case MLA_LAYOUT_CHUNKED:
        return row / layout->q_rows * layout->ring_size * layout->q_rows + rank * layout->q_rows +
               row % layout->q_rows;
    default:
        return rank * layout->kv_rows + row;
    }
}

int64_t mla_layout_visible_rows(const struct mla_layout *layout, int64_t source, int64_t position)
{
    const int64_t limit = min_of(position + 1, layout->logical_n); /* positions below it count */
    const int64_t rows = layout->kv_rows;
    const int64_t slab = layout->q_rows;
    const int64_t round = layout->ring_size * slab;
    const int64_t half = rows / 2;
    const int64_t mirror = 2 * layout->ring_size - 1 - source;

    switch (layout->mode) {
    case MLA_LAYOUT_BALANCED:
        return clamp(limit - source * half, 0, half) + clamp(limit - mirror * half, 0, half);
    case MLA_LAYOUT_ROTATED:
    case MLA_LAYOUT_CHUNKED:
        return min_of(limit / round * slab + clamp(limit % round - source * slab, 0, slab), rows);
    default:
        return clamp(limit - source * rows, 0, rows);
    }
}

bool mla_layout_step_active(const struct mla_layout *layout, int64_t rank, int64_t source)
{
    switch (layout->mode) {
    case MLA_LAYOUT_BALANCED:
        return true;
    case MLA_LAYOUT_ROTATED:
    case MLA_LAYOUT_CHUNKED:
        return source * layout->q_rows < layout->logical_n;
    default:
        return source <= rank && source * layout->kv_rows < layout->logical_n;
    }
}

void mla_layout_ring_order(const struct mla_layout *layout, int64_t rank,
                           struct mla_ring_step steps[MLA_RING_SIZE_MAX])
{
    const int64_t size = layout->ring_size;
    const bool is_linear = layout->topology == MLA_TOPOLOGY_LINEAR;
    const int64_t forward_n = is_linear ? rank : size / 2; /* ceil((R-1)/2) = R div 2 */
    const int64_t backward_n = size - 1 - forward_n;
    int64_t forward = 0;
    int64_t backward = 0;

    steps[0] = (struct mla_ring_step){.source = rank, .upstream = rank, .hop = MLA_HOP_OWN};
    for (int64_t i = 1; i < size; i++) {
        const bool want_backward = i % 2 == 1;
        const bool is_backward = backward < backward_n && (want_backward || forward == forward_n);
        if (is_backward) {
            backward++;
            steps[i] = (struct mla_ring_step){.source = (rank + backward) % size,
                                              .upstream = (rank + 1) % size,
                                              .hop = MLA_HOP_BACKWARD};
        } else {
            forward++;
            steps[i] = (struct mla_ring_step){.source = (rank + size - forward) % size,
                                              .upstream = (rank + size - 1) % size,
                                              .hop = MLA_HOP_FORWARD};
        }
    }
}

int64_t mla_layout_out_column(int32_t out_order, int64_t latent, int64_t l)
{
    return out_order == MLA_OUT_NATURAL ? l : l % 4 * (latent / 4) + l / 4;
}

/* Tiled blocks are [ceil(queries/128), 16, 128, topk/16]: 8 queries a block, 16 rows each. */
int64_t mla_layout_topk_index(bool is_tiled, int64_t topk, int64_t query, int64_t j)
{
    if (!is_tiled) {
        return query * topk + j;
    }
    const int64_t tile = query / 128;
    const int64_t block = query % 128 / 8;
    const int64_t line = 16 * (query % 8) + j % 16;
    return ((tile * 16 + block) * 128 + line) * (topk / 16) + j / 16;
}

int64_t mla_layout_dense_keys(int64_t keys, int64_t offset, int64_t query)
{
    return mla_layout_index_reached(keys - 1, offset, query) ? keys : offset + query + 1;
}

bool mla_layout_index_reached(int64_t index, int64_t offset, int64_t query)
{
    return index - query <= offset;
}

void mla_layout_split(int64_t rows_n, int64_t parts_n, int64_t part, int64_t *first, int64_t *n)
{
    const int64_t base = rows_n / parts_n;
    const int64_t extra = rows_n % parts_n;
    *first = part * base + min_of(part, extra);
    *n = base + (part < extra ? 1 : 0);
}

int64_t mla_layout_part(int64_t rows_n, int64_t parts_n, int64_t row)
{
    const int64_t base = rows_n / parts_n;
    const int64_t extra = rows_n % parts_n;
    const int64_t longer_n = extra * (base + 1); /* rows of the parts with one row more */
    return row < longer_n ? row / (base + 1) : extra + (row - longer_n) / base;
}
