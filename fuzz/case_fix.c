/* SPDX-License-Identifier: Apache-2.0
 *
 * case_fix.c - makes a changed case legal and small again: every field to its nearest legal value.
 *
 * The order matters: sizes, then the mode they allow, then the lengths that depend on both, then
 * cost.
 */
#include "fuzz/case.h"

#include <math.h>

#include "fuzz/draw.h"

/* Multiply-adds of a fuzzing case, most of a millisecond of the scalar kernel, and bytes of its
 * tensors, which cost as much again; the same for a large case. */
#define RING_WORK_MAX     ((int64_t)6500000)
#define SPARSE_WORK_MAX   ((int64_t)4700000)
#define BYTES_MAX         ((int64_t)1100000)
#define RING_LARGE_WORK   ((int64_t)60000000)
#define SPARSE_LARGE_WORK ((int64_t)40000000)
#define RING_LARGE_BYTES  ((int64_t)8000000)
#define SPARSE_MEDIUM     ((int64_t)12000000)
#define RING_MEDIUM       ((int64_t)15000000)
#define CHUNK_MAX         ((int64_t)1 << 40)
#define TALL_MAX          ((int64_t)264) /* rows of a list, most of it dropped */
#define MEDIUM_TALL_MAX   ((int64_t)144)
#define STAIRS_MAX        ((int64_t)39) /* dense rows that see their prefix, where S is large */
#define RING_SLOW_WORK    ((int64_t)600000)
#define SPARSE_SLOW_WORK  ((int64_t)300000)

/* More slots or cache rows than this mean a thin cache (mla_case_is_thin): there are either few, or
 * so many that offsets leave 32 bits. */
#define THIN_SLOTS_FROM ((int64_t)256)
#define THIN_ROWS_FROM  ((int64_t)1 << 20)
/* Address space is not free: ranks of a thin ring. */
#define THIN_RING_MAX 2

/* What the judged rows may cost, in ns: 1 for a key and column, 100 for a column of the output, and
 * 10 us for the row. */
#define JUDGED_MAX  ((int64_t)2200000)
#define COLUMN_COST ((int64_t)100)
#define ROW_COST    ((int64_t)10000)

bool mla_case_may_be_large(const struct mla_case *test)
{
    return test->seed % MLA_LARGE_SEEDS == 0;
}

bool mla_case_may_be_medium(const struct mla_case *test)
{
    return test->seed % MLA_MEDIUM_SEEDS == 0;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int64_t tiles(int64_t rows, int64_t most)
{
    return clamp(rows / MLA_TILE, 1, most) * MLA_TILE;
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* A few tiles; or more rows than an int counts, which is as cheap as a shard, but not so many that a
 * position and a chunk leave 64 bits: whoever adds them there is no worse a kernel. */
static int64_t chunk(int64_t rows)
{
    return rows > INT32_MAX ? tiles(rows, CHUNK_MAX / MLA_TILE) : tiles(rows, 16);
}

static void fix_ring_sizes(struct mla_ring_args *r, bool large)
{
    r->ring_size = clamp(r->ring_size, 1, large ? MLA_RING_SIZE_MAX : 8);
    r->batch = clamp(r->batch, 1, 5);
    r->heads = clamp(r->heads, 1, large ? 17 : 5);
    r->head_dim = tiles(r->head_dim, large ? 34 : 18);
    r->head_dim = r->head_dim < 64 ? 64 : r->head_dim;
    r->head_dim_v = clamp(tiles(r->head_dim_v, large ? 34 : 18), 32, r->head_dim - 32);
    r->q_rows = tiles(r->q_rows, 10);
    r->q_chunk_size = chunk(r->q_chunk_size);
    r->k_chunk_size = chunk(r->k_chunk_size);
    r->num_links = clamp(r->num_links, 1, 64);
    r->threads = clamp(r->threads, 0, MLA_THREADS_MAX);
}

/* The mode follows from the flags: balanced, else rotated with P, else by kv_rows. */
static void fix_ring_mode(struct mla_ring_args *r)
{
    int64_t slabs = clamp(r->kv_rows / r->q_rows, 1, 32);
    if (r->is_balanced) {
        r->has_prior = 0;
        r->q_rows = round_up(r->q_rows, 64);
        if (r->q_rows / 2 % r->q_chunk_size != 0)
            r->q_chunk_size = 32;
        slabs = 1;
    }
    if (r->has_prior && slabs < 2)
        slabs = 2;
    r->kv_rows = slabs * r->q_rows;
    if (!r->has_prior)
        r->kv_actual_isl = 0;
}

static void fix_ring_length(struct mla_ring_args *r)
{
    int64_t all = r->ring_size * r->kv_rows, slab = r->ring_size * r->q_rows;
    r->logical_n = clamp(r->logical_n, 1, all);
    if (r->is_balanced)
        r->logical_n = all;
    if (r->has_prior) {
        r->kv_actual_isl = clamp(r->kv_actual_isl / MLA_TILE * MLA_TILE, 0, all - MLA_TILE);
        r->logical_n = clamp(round_up(r->logical_n, MLA_TILE), r->kv_actual_isl + MLA_TILE,
                             r->kv_actual_isl + slab < all ? r->kv_actual_isl + slab : all);
    } else if (r->kv_rows > r->q_rows) {
        r->logical_n = clamp(r->logical_n, slab - MLA_TILE + 1, all);
    }
}

/* So many slots that the last two begin beyond 2^31 elements; a slot near the end stays there. */
static void fix_thin_ring(struct mla_ring_args *r)
{
    int64_t slot = r->kv_rows * r->head_dim, from_end = r->kv_batch - 1 - r->kv_cache_batch_idx;
    r->ring_size = clamp(r->ring_size, 1, THIN_RING_MAX);
    r->kv_batch = INT32_MAX / slot + 3;
    if (from_end >= 0 && from_end < r->kv_cache_batch_idx)
        r->kv_cache_batch_idx = r->kv_batch - 1 - from_end;
    r->kv_cache_batch_idx = clamp(r->kv_cache_batch_idx, 0, r->kv_batch - 1);
    r->gathered_batch = 1;
}

static void fix_ring_slot(struct mla_ring_args *r)
{
    if (!r->has_slot) {
        r->kv_batch = r->gathered_batch = r->batch;
        r->kv_cache_batch_idx = 0;
        return;
    }
    r->batch = 1;
    if (r->kv_batch > THIN_SLOTS_FROM) {
        fix_thin_ring(r);
        return;
    }
    r->kv_batch = clamp(r->kv_batch, 1, 17);
    r->kv_cache_batch_idx = clamp(r->kv_cache_batch_idx, 0, r->kv_batch - 1);
    r->gathered_batch = r->gathered_batch == 1 ? 1 : r->kv_batch;
}

static void fix_ring_gathered(struct mla_ring_args *r)
{
    int64_t all = r->ring_size * r->kv_rows;
    r->gathered_rows = clamp(r->gathered_rows, all, all + 64);
}

static void fix_ring_shape(struct mla_ring_args *r, bool large)
{
    fix_ring_sizes(r, large);
    fix_ring_mode(r);
    fix_ring_slot(r); /* may change ring_size */
    fix_ring_length(r);
    fix_ring_gathered(r);
}

/* Wide rings: fewer keys rather than fewer ranks, where the mode allows it. */
static void shrink_length(struct mla_ring_args *r)
{
    if (r->is_balanced || r->kv_rows > r->q_rows)
        r->ring_size--;
    else
        r->logical_n = r->logical_n * 3 / 4;
}

/* Processors take some hundred times as long for a product that is subnormal. */
static bool is_slow_arithmetic(const struct mla_case *test)
{
    return test->region == MLA_REGION_SUBNORMAL || test->region == MLA_REGION_TINY;
}

/* Halve what costs most and matters least, until the case is small. */
static void shrink_ring(struct mla_case *test)
{
    struct mla_ring_args *r = &test->ring;
    bool large = mla_case_may_be_large(test);
    bool heads_first = (test->seed >> 8) % 2 == 0; /* several rows a rank, or several heads */
    int64_t most = is_slow_arithmetic(test)       ? RING_SLOW_WORK
                   : large                        ? RING_LARGE_WORK
                   : mla_case_may_be_medium(test) ? RING_MEDIUM
                                                  : RING_WORK_MAX;
    int64_t bytes = large ? RING_LARGE_BYTES : BYTES_MAX;
    while (mla_case_work(test) > most || mla_case_bytes(test) > bytes) {
        if (r->heads > 2 && !(r->q_rows == MLA_TILE && large))
            r->heads = 2;
        else if (r->q_rows > 64)
            r->q_rows -= r->is_balanced ? 2 * MLA_TILE : MLA_TILE;
        else if (r->gathered_batch > 1 && r->has_slot)
            r->gathered_batch = 1;
        else if (r->batch > 1)
            r->batch = 1;
        else if (r->has_slot && r->kv_batch > 3 && !mla_case_is_thin(test))
            r->kv_batch = 3;
        else if (r->ring_size > 8 && r->logical_n > 64)
            shrink_length(r);
        else if (r->head_dim > 160 && r->ring_size > 2)
            r->head_dim = 160;
        else if (r->kv_rows > 2 * r->q_rows)
            r->kv_rows -= r->q_rows;
        else if (r->heads > 1 && heads_first)
            r->heads = r->heads / 2;
        else if (r->q_rows > 32 && !r->is_balanced)
            r->q_rows = 32;
        else if (r->heads > 1)
            r->heads = r->heads / 2;
        else if (r->head_dim > 96 && r->ring_size > 4)
            r->head_dim = 96;
        else if (r->ring_size > 2)
            r->ring_size--;
        else if (r->head_dim > 160)
            r->head_dim = 160;
        else
            break; /* the smallest there is */
        fix_ring_shape(r, large);
    }
}

/* Only data whose scores are divided by the factor give numbers at its ends. */
static float factor(const struct mla_case *test, float scale)
{
    bool any = test->family == mla_family_find("profile");
    return isfinite(scale) && scale > 0 && (any || (scale > 0x1p-100f && scale < 0x1p100f))
               ? scale
               : 0x1p-4f;
}

static void fix_ring(struct mla_case *test)
{
    struct mla_ring_args *r = &test->ring;
    fix_ring_shape(r, mla_case_may_be_large(test));
    shrink_ring(test);
    int64_t all = r->ring_size * r->kv_rows;
    if (!r->has_scale)
        r->scale = 0;
    if (r->has_scale)
        r->scale = factor(test, r->scale);
    test->future = test->has_future ? clamp(test->future, 0, all) : 0;
}

/* Of distinct rows of the cache, those below the offset: a row keeps few of its list, and many rows
 * cost little. */
static bool is_mostly_dropped(const struct mla_case *test)
{
    const struct mla_sparse_args *s = &test->sparse;
    return !s->dense && s->topk == 128 && s->heads == 16 && s->has_q_pos_offset &&
           s->q_pos_offset <= s->keys / 16 - s->queries && test->indices <= MLA_INDICES_REVERSED;
}

/* The q-th row of distinct rows of a cache of 1000 keeps about q / 8 of its list. */
static bool drops_most(const struct mla_case *test)
{
    const struct mla_sparse_args *s = &test->sparse;
    return s->has_q_pos_offset && s->q_pos_offset == 0 && s->keys >= 1000 &&
           test->indices <= MLA_INDICES_REVERSED;
}

/* Work that mla_case_work does not count rightly, and that any case may have: height alone. Of rows
 * as tall as the index tile's edge only the smallest head and list. */
static bool is_cheap_height(const struct mla_case *test)
{
    const struct mla_sparse_args *s = &test->sparse;
    bool small = s->heads == 16 && (s->dense || s->topk == 128);
    if (mla_case_may_be_medium(test) && s->queries >= 127)
        return small && !s->dense && s->keys <= 1024 &&
               ((mla_case_may_be_large(test) && s->queries <= 131) || drops_most(test));
    if (mla_case_may_be_medium(test) && s->dense && !s->has_q_pos_offset)
        return small && s->queries <= STAIRS_MAX && s->keys <= s->queries + 8;
    return is_mostly_dropped(test) && s->queries <= 12;
}

/* Depth alone: one row, and the fewest heads. */
static bool is_deep(const struct mla_case *test)
{
    const struct mla_sparse_args *s = &test->sparse;
    return mla_case_may_be_large(test) && s->queries == 1 && s->heads == 16 &&
           !is_slow_arithmetic(test);
}

static void fix_sparse(struct mla_case *test)
{
    struct mla_sparse_args *s = &test->sparse;
    bool large = mla_case_may_be_large(test);
    bool medium = mla_case_may_be_medium(test);
    int64_t most = large ? SPARSE_LARGE_WORK : medium ? SPARSE_MEDIUM : SPARSE_WORK_MAX;
    if (is_slow_arithmetic(test)) {
        most = SPARSE_SLOW_WORK;
        s->dense = 1; /* a list has 128 entries at least */
    }
    bool thin = s->keys >= THIN_ROWS_FROM && !s->dense;
    s->queries = clamp(s->queries, 1,
                       thin                  ? 2
                       : large               ? TALL_MAX
                       : medium && !s->dense ? MEDIUM_TALL_MAX
                       : medium              ? STAIRS_MAX
                                             : 12);
    s->keys = thin ? clamp(s->keys, (INT32_MAX >> 9) + 2, ((int64_t)1 << 24) + 200)
                   : clamp(s->keys, 1,
                           large    ? 65538
                           : medium ? 4098
                                    : 700);
    s->heads = clamp(s->heads / 16, 1, 8) * 16;
    s->rope = clamp(s->rope, 1, MLA_ROPE_MAX);
    s->topk = clamp(s->topk / 128, 1, thin ? 2 : large ? MLA_DEEP_KEYS / 128 : 16) * 128;
    s->threads = clamp(s->threads, 0, MLA_THREADS_MAX);
    if (s->dense)
        s->keys = clamp(s->keys, 1, large ? MLA_DEEP_KEYS : 2048);
    if (!s->has_q_pos_offset)
        s->q_pos_offset = 0;
    s->q_pos_offset = s->q_pos_offset < 0 ? 0 : s->q_pos_offset;
    s->softmax_scale = factor(test, s->softmax_scale);
    while (!is_cheap_height(test) && !is_deep(test) && mla_case_work(test) > most) {
        if (s->queries > 2)
            s->queries = s->queries / 2;
        else if (s->heads > 16)
            s->heads = 16;
        else if (s->queries > 1)
            s->queries = 1;
        else if (s->dense)
            s->keys /= 2;
        else
            s->topk = s->topk / 256 * 128;
    }
    s->cores = clamp(s->cores, 1, s->queries);
    if (s->queries % s->cores != 0)
        s->cores = 1;
    test->has_future = 0;
    test->future = 0;
}

/* A row costs the oracle a time proportional to its keys: judge fewer where they are many. */
static void fix_rows(struct mla_case *test)
{
    bool is_ring = test->op == MLA_OP_RING;
    int64_t keys = is_ring              ? test->ring.logical_n
                   : test->sparse.dense ? test->sparse.keys
                                        : test->sparse.topk;
    int64_t columns = mla_case_width(test) + mla_case_value_width(test);
    int64_t row = keys * columns + COLUMN_COST * mla_case_value_width(test) + ROW_COST;
    int64_t heads = is_ring ? test->ring.heads : test->sparse.heads;
    int64_t all = is_ring ? test->ring.ring_size * test->ring.batch * test->ring.q_rows
                          : test->sparse.queries;
    int64_t most = clamp(JUDGED_MAX / (heads * row), 1, all);
    int64_t asked = test->rows == 0      ? all
                    : test->rows > 0     ? test->rows
                    : test->rows <= -all ? all
                                         : -test->rows;
    asked = clamp(asked, 1, most);
    test->rows = asked == all ? 0 : -asked;
}

void mla_case_fix(struct mla_case *test)
{
    size_t families_n;
    const struct mla_family *family = mla_families(&families_n)[test->family];
    if (!mla_family_knows(test->family, test->region))
        test->region = (int32_t)family->regions[0];
    test->amount = clamp(test->amount, family->amount_min, family->amount_max);
    if (test->op == MLA_OP_RING)
        fix_ring(test);
    else
        fix_sparse(test);
    fix_rows(test);
    mla_case_set_bits(test, clamp(test->bits, 1, MLA_CASE_BITS_ALL));
    test->slow = 0;
}
