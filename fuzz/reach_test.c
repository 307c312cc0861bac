/* SPDX-License-Identifier: Apache-2.0
 *
 * reach_test.c - what drawing and mutating must be able to reach: one line for each condition that is
 * known to trigger faults in such kernels, each met in so many draws and, starting from the plainest
 * case, in so many mutations. Prints what is rare.
 *
 * Which keys are where and in which order shards are visited is asked of the oracle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/case_fields.h"
#include "fuzz/draw.h"
#include "fuzz/indices.h"
#include "fuzz/judge_internal.h"
#include "oracle/visible.h"

#define CLAUSES_MAX 256
#define DRAWS       200000
#define RARE        20

/* Fewer under sanitizers, where only the way is checked and not the arrival. */
static uint64_t draws(void)
{
    const char *text = getenv("MLA_TEST_DRAWS");
    return text == NULL ? DRAWS : strtoull(text, NULL, 10);
}

/* How often each clause was met, in the order in which they are listed. */
struct tally {
    const char *names[CLAUSES_MAX];
    int64_t met[CLAUSES_MAX];
    size_t n; /* clauses of the case at hand so far */
};

static void clause(struct tally *tally, const char *name, bool holds)
{
    assert_true(tally->n < CLAUSES_MAX);
    tally->names[tally->n] = name;
    tally->met[tally->n++] += holds;
}

static bool is_near(int64_t value, int64_t edge, int64_t by)
{
    return value == edge + by;
}

/* An edge of logical_n: itself, one less, one more. */
static void edge(struct tally *t, const char *const names[3], bool applies, int64_t L, int64_t at)
{
    for (int64_t by = -1; by <= 1; by++)
        clause(t, names[by + 1], applies && is_near(L, at, by));
}

static bool is_no_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0xffff) != 0;
}

/* ---- ring ---- */

/* Which steps of a rank's walk over the shards hold a key that some row of it sees. */
static void find_empty_steps(const struct mla_ring_args *r, bool empty[3])
{
    int64_t order[MLA_RING_SIZE_MAX];
    memset(empty, 0, 3 * sizeof *empty);
    for (int64_t d = 0; d < r->ring_size; d++) {
        int64_t last = -1;
        for (int64_t q = 0; q < r->q_rows; q += MLA_TILE) {
            int64_t position = mla_oracle_query_position(r, d, q + MLA_TILE - 1);
            last = position > last ? position : last;
        }
        if (last < 0)
            continue;
        mla_oracle_visiting_order(r, d, order);
        for (int64_t i = 0; i < r->ring_size; i++) {
            bool visible = false;
            for (int64_t k = 0; k < r->kv_rows; k += MLA_TILE) {
                int64_t position = mla_oracle_key_position(r, order[i], k);
                visible = visible || (position <= last && position < r->logical_n);
            }
            int64_t place = i == 0 ? 0 : i == r->ring_size - 1 ? 2 : 1;
            empty[place] = empty[place] || (!visible && r->ring_size > 1);
        }
    }
}

static void ring_sizes(struct tally *t, const struct mla_ring_args *r)
{
    int64_t R = r->ring_size;
    static const char *const names[] = {"R=1", "R=2", "R=3", "R=4", "R=5", "R=6", "R=7", "R=8"};
    for (int64_t i = 0; i < 8; i++)
        clause(t, names[i], R == i + 1);
    clause(t, "R in 9..31", R > 8 && R < 32);
    clause(t, "R=32", R == 32);
    clause(t, "odd R, linear", R % 2 == 1 && R > 1 && r->topology == MLA_TOPOLOGY_LINEAR);
    clause(t, "even R, ring", R % 2 == 0 && R > 2 && r->topology == MLA_TOPOLOGY_RING);
    clause(t, "several links", r->num_links > 1);
    clause(t, "more links than rows of a shard's tile", r->num_links > 32);
    clause(t, "fewer threads than ranks", r->threads > 0 && r->threads < R);
    clause(t, "a thread a rank", r->threads == R && R > 1);
    clause(t, "more threads than ranks", r->threads > R && R > 1);
    clause(t, "all processors", r->threads == 0);
    clause(t, "heads not divisible by threads", r->threads > 1 && r->heads % r->threads != 0);
    clause(t, "rows not divisible by threads", r->threads > 1 && r->q_rows % r->threads != 0);
    clause(t, "batch 1", r->batch == 1);
    clause(t, "batch 2", r->batch == 2);
    clause(t, "more batches", r->batch > 2);
    clause(t, "many heads", r->heads > 8);
    clause(t, "DH 64 DV 32", r->head_dim == 64 && r->head_dim_v == 32);
    clause(t, "DH 576 DV 128", r->head_dim == 576 && r->head_dim_v == 128);
    clause(t, "DH 576 DV 512", r->head_dim == 576 && r->head_dim_v == 512);
    clause(t, "one tile of rope", r->head_dim - r->head_dim_v == 32);
    clause(t, "spare rows of gathered", r->gathered_rows > R * r->kv_rows);
    clause(t, "scale absent", !r->has_scale);
    clause(t, "scale not DH^-0.5", r->has_scale && r->scale > 0.5f);
}

static void ring_lengths(struct tally *t, const struct mla_ring_args *r)
{
    static const char *const one[] = {"L=0 (never)", "L=1", "L=2"};
    static const char *const tile[] = {"L=31", "L=32", "L=33"};
    static const char *const chunk[] = {"L=k_chunk-1", "L=k_chunk", "L=k_chunk+1"};
    static const char *const tiles[] = {"L=32R-1", "L=32R", "L=32R+1"};
    static const char *const tiles2[] = {"L=64R-1", "L=64R", "L=64R+1"};
    static const char *const shard[] = {"L=Nk-1", "L=Nk", "L=Nk+1"};
    static const char *const last[] = {"L=(R-1)Nk-1", "L=(R-1)Nk", "L=(R-1)Nk+1"};
    static const char *const slab[] = {"chunked L=R*Nq-1", "chunked L=R*Nq", "chunked L=R*Nq+1"};
    int64_t R = r->ring_size, L = r->logical_n, Nk = r->kv_rows, all = R * Nk;
    bool contiguous = r->q_rows == Nk && !r->is_balanced;
    bool chunked = r->q_rows < Nk && !r->has_prior;
    clause(t, one[1], contiguous && L == 1);
    clause(t, one[2], contiguous && L == 2);
    edge(t, tile, contiguous && all > 64, L, 32);
    edge(t, chunk, contiguous && all / 2 > r->k_chunk_size, L, r->k_chunk_size);
    edge(t, tiles, contiguous && R > 1 && r->q_rows > 32, L, 32 * R);
    edge(t, tiles2, contiguous && R > 1 && r->q_rows > 64, L, 64 * R);
    edge(t, shard, contiguous && R > 1, L, Nk);
    edge(t, last, contiguous && R > 2, L, all - Nk);
    edge(t, slab, chunked, L, R * r->q_rows);
    clause(t, "L=R*Nk-1", L == all - 1);
    clause(t, "L=R*Nk", L == all && contiguous);
    clause(t, "chunked L=R*Nk", L == all && chunked);
    clause(t, "chunked L=R*Nk-1", L == all - 1 && chunked);
    clause(t, "chunked, L across a slab", chunked && L % (R * r->q_rows) == 1);
    clause(t, "L not divisible by R", L % R != 0);
    clause(t, "L < 2R", L < 2 * R && R > 1);
    clause(t, "L not divisible by k_chunk", L % r->k_chunk_size != 0 && L > r->k_chunk_size);
    clause(t, "several last ranks empty", contiguous && R > 3 && L <= all - 2 * Nk);
    clause(t, "L < q_chunk", L < r->q_chunk_size);
    clause(t, "more than 512 keys", L > 512);
    clause(t, "1024 keys", L >= 1024);
}

static void ring_chunks(struct tally *t, const struct mla_ring_args *r)
{
    bool empty[3];
    int64_t half = r->q_rows / 2;
    find_empty_steps(r, empty);
    clause(t, "first shard visited without a visible key", empty[0]);
    clause(t, "middle shard visited without a visible key", empty[1]);
    clause(t, "last shard visited without a visible key", empty[2]);
    clause(t, "one-tile chunks, several tiles", r->k_chunk_size == 32 && r->kv_rows >= 96);
    clause(t, "k_chunk > Nk", r->k_chunk_size > r->kv_rows);
    clause(t, "k_chunk does not divide Nk",
           r->k_chunk_size < r->kv_rows && r->kv_rows % r->k_chunk_size != 0);
    clause(t, "Nq < q_chunk", r->q_rows < r->q_chunk_size);
    clause(t, "q_chunk does not divide Nq",
           r->q_chunk_size < r->q_rows && r->q_rows % r->q_chunk_size != 0);
    clause(t, "balanced", r->is_balanced);
    clause(t, "balanced, odd R", r->is_balanced && r->ring_size % 2 == 1 && r->ring_size > 1);
    clause(t, "balanced, half shard not a multiple of k_chunk",
           r->is_balanced && half % r->k_chunk_size != 0 && r->k_chunk_size > 32);
    clause(t, "balanced, k_chunk straddles the half",
           r->is_balanced && half % r->k_chunk_size != 0 && half > r->k_chunk_size);
    clause(t, "balanced, k_chunk straddles the half, several ranks",
           r->is_balanced && half % r->k_chunk_size != 0 && half > r->k_chunk_size &&
               r->ring_size > 1);
    clause(t, "balanced, half of more than 96, not of whole chunks",
           r->is_balanced && half % r->k_chunk_size != 0 && half > 96 && half > r->k_chunk_size);
    clause(t, "balanced, q_chunk smaller than the half", r->is_balanced && half > r->q_chunk_size);
}

static void ring_rotation(struct tally *t, const struct mla_ring_args *r)
{
    int64_t R = r->ring_size, Nq = r->q_rows, slab = R * Nq, P = r->kv_actual_isl;
    int64_t n = r->logical_n - P, rank = P / Nq % R;
    bool on = r->has_prior, full = on && n == slab;
    clause(t, "P absent, chunked", !on && r->kv_rows > Nq);
    clause(t, "P=0", on && P == 0);
    clause(t, "P one tile", on && P == 32);
    clause(t, "P one tile short of k_chunk", on && P == r->k_chunk_size - 32 && P > 0);
    clause(t, "P not a multiple of k_chunk", on && P % r->k_chunk_size != 0);
    clause(t, "boundary rank first, inside", on && R > 2 && rank == 0 && P % Nq != 0);
    clause(t, "boundary rank in the middle", on && R > 2 && rank > 0 && rank < R - 1);
    clause(t, "boundary rank in the middle, inside, full",
           full && R > 2 && rank > 0 && rank < R - 1 && P % Nq != 0);
    clause(t, "boundary rank last", on && R > 1 && rank == R - 1);
    clause(t, "boundary rank last, inside", on && R > 1 && rank == R - 1 && P % Nq != 0);
    clause(t, "wraps to the next slab", on && P % slab + n > slab);
    clause(t, "wraps on the boundary rank", on && P % Nq != 0 && P % slab + n > slab && full);
    clause(t, "P whole slabs", on && P > 0 && P % slab == 0);
    clause(t, "P one tile before a slab", on && P % slab == slab - 32);
    clause(t, "P one tile into a slab", on && P > 32 && P % slab == 32);
    clause(t, "one tile of new tokens", on && n == 32 && slab > 32);
    clause(t, "two tiles of new tokens", on && n == 64 && slab > 64);
    clause(t, "new tokens fill the call", full);
    clause(t, "one tile short of it", on && n == slab - 32 && n > 0);
    clause(t, "ranks of nothing but pad rows", on && n <= slab - Nq);
    clause(t, "later slabs unused", on && r->logical_n <= R * r->kv_rows - slab);
    clause(t, "cache full", on && r->logical_n == R * r->kv_rows);
}

static void ring_slots(struct tally *t, const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    int64_t slot = r->kv_cache_batch_idx, last = r->kv_batch - 1;
    bool thin = mla_case_is_thin(test);
    clause(t, "one slot of one", r->has_slot && last == 0);
    clause(t, "first slot of several", r->has_slot && slot == 0 && last > 0);
    clause(t, "middle slot", r->has_slot && slot > 0 && slot < last);
    clause(t, "last slot", r->has_slot && slot == last && last > 0);
    clause(t, "gathered for every slot", r->has_slot && last > 0 && r->gathered_batch > 1);
    clause(t, "gathered for one slot", r->has_slot && last > 0 && r->gathered_batch == 1);
    clause(t, "slot, chunked", r->has_slot && r->kv_rows > r->q_rows);
    clause(t, "slot, rotated", r->has_slot && r->has_prior);
    clause(t, "slot, balanced", r->has_slot && r->is_balanced);
    clause(t, "slot beyond 2^31 elements", thin && slot * r->kv_rows * r->head_dim > INT32_MAX);
    clause(t, "slot 0 of a huge cache", thin && slot == 0);
    clause(t, "dominant key at a shard's edge",
           test->region == MLA_REGION_ONE_EDGE && test->amount % 2 == 1 && r->ring_size > 1);
    clause(t, "slot 8 of a small cache", r->has_slot && slot >= 8 && !thin);
    clause(t, "batch entry 4", r->batch > 4);
    clause(t, "more threads than 64", r->threads > 64);
    clause(t, "k_chunk beyond 31 bits", r->k_chunk_size > INT32_MAX);
    clause(t, "q_chunk beyond 31 bits", r->q_chunk_size > INT32_MAX);
    clause(t, "DH beyond 1024", r->head_dim > 1024);
    clause(t, "DV beyond 512", r->head_dim_v > 512);
    clause(t, "scale that is no bf16", r->has_scale && is_no_bf16(r->scale));
    clause(t, "scale below 2^-100", r->has_scale && r->scale < 0x1p-100f);
    clause(t, "scale above 2^126", r->has_scale && r->scale > 0x1p126f);
    clause(t, "future is NaN", test->has_future);
    clause(t, "future within the sequence", test->has_future && test->future < r->logical_n);
}

/* ---- sparse ---- */

/* What a row's list is like, and what of it q_pos_offset drops. */
struct list_facts {
    bool empty, leading, interior, trailing, partly;
    bool duplicates, across, all_same, distinct, sorted, reversed, first_row, last_row, not_zero;
};

static int compare(const void *a, const void *b)
{
    int32_t x, y;
    x = *(const int32_t *)a;
    y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void find_order(const int32_t *list, int64_t n, int64_t keys, struct list_facts *f)
{
    int32_t ordered[MLA_DEEP_KEYS];
    memcpy(ordered, list, (size_t)n * sizeof *list);
    qsort(ordered, (size_t)n, sizeof *ordered, compare);
    f->distinct = f->sorted = f->reversed = true;
    for (int64_t j = 1; j < n; j++) {
        f->distinct = f->distinct && ordered[j] != ordered[j - 1];
        f->sorted = f->sorted && list[j] >= list[j - 1];
        f->reversed = f->reversed && list[j] <= list[j - 1];
        f->across = f->across || (j >= 128 && list[j] == list[j - 128]);
    }
    f->duplicates = !f->distinct;
    f->all_same = ordered[0] == ordered[n - 1];
    f->sorted = f->sorted && !f->all_same;
    f->reversed = f->reversed && !f->all_same;
    f->first_row = ordered[0] == 0;
    f->last_row = ordered[n - 1] == keys - 1;
    f->not_zero = list[0] != 0;
}

static void find_dropped(const int32_t *list, int64_t n, int64_t frontier, struct list_facts *f)
{
    bool any = false;
    f->partly = false;
    for (int64_t block = 0; block < n / 128; block++) {
        int64_t dropped = 0;
        for (int64_t j = 128 * block; j < 128 * (block + 1); j++)
            dropped += list[j] > frontier;
        any = any || dropped < 128;
        f->partly = f->partly || (dropped > 0 && dropped < 128);
        f->leading = f->leading || (dropped == 128 && block == 0);
        f->interior = f->interior || (dropped == 128 && block > 0 && block < n / 128 - 1);
        f->trailing = f->trailing || (dropped == 128 && block == n / 128 - 1 && block > 0);
    }
    f->empty = !any;
    f->leading = f->leading && any; /* otherwise the row is empty, another thing */
    f->interior = f->interior && any;
}

static bool keys_are(const struct mla_sparse_args *s, int64_t just_above)
{
    return s->keys > just_above && s->keys < just_above + 4;
}

static void sparse_lists(struct tally *t, const struct mla_case *test)
{
    const struct mla_sparse_args *s = &test->sparse;
    int32_t list[MLA_DEEP_KEYS];
    struct list_facts f = {0};
    bool listed = !s->dense;
    if (listed) {
        mla_indices_fill(test, 0, list);
        find_order(list, s->topk, s->keys, &f);
        if (s->has_q_pos_offset)
            find_dropped(list, s->topk, s->q_pos_offset, &f);
    }
    clause(t, "a row left empty", f.empty);
    clause(t, "leading block dropped", f.leading);
    clause(t, "leading block dropped, topk 384 and more", f.leading && s->topk > 256);
    clause(t, "interior block dropped", f.interior);
    clause(t, "trailing block dropped", f.trailing);
    clause(t, "a block partly dropped", f.partly);
    clause(t, "duplicates", f.duplicates);
    clause(t, "duplicates across blocks", f.across && !f.all_same);
    clause(t, "all entries the same", f.all_same && s->keys > 1);
    clause(t, "distinct", listed && f.distinct);
    clause(t, "sorted", listed && f.sorted && s->keys > 2);
    clause(t, "reversed", listed && f.reversed && s->keys > 2);
    clause(t, "first cache row listed", listed && f.first_row);
    clause(t, "last cache row listed", listed && f.last_row && s->keys > 1);
    clause(t, "list does not begin with 0", listed && f.not_zero);
    clause(t, "neither first nor last row listed",
           listed && !f.first_row && !f.last_row && s->keys > 1);
    clause(t, "huge cache, its last row listed", mla_case_is_thin(test) && f.last_row);
    clause(t, "huge cache, its first row listed", mla_case_is_thin(test) && f.first_row);
    clause(t, "list beyond 2^16, flat cache",
           listed && f.last_row && keys_are(s, 65536) && !mla_case_is_thin(test));
    clause(t, "list beyond 4096", listed && f.last_row && keys_are(s, 4096));
    clause(t, "k_pe beyond 2^31 bytes, its end listed",
           mla_case_is_thin(test) && s->keys * s->rope > 1 << 30 && f.last_row);
    clause(t, "k_pe beyond 2^32 bytes, its end listed",
           mla_case_is_thin(test) && s->keys > 1 << 24 && s->rope == 128 && f.last_row);
    clause(t, "huge cache, offset in force", mla_case_is_thin(test) && s->has_q_pos_offset);
}

static void sparse_shapes(struct tally *t, const struct mla_case *test)
{
    static const char *const topk[] = {"K=128", "K=256", "K=384", "K=512", "K=640"};
    const struct mla_sparse_args *s = &test->sparse;
    int64_t S = s->queries, keys = s->keys;
    for (int64_t i = 0; i < 5; i++)
        clause(t, topk[i], !s->dense && s->topk == 128 * (i + 1));
    clause(t, "K > 4096", !s->dense && s->topk > 4096);
    clause(t, "dense, a row of more than 4096 keys",
           s->dense && s->keys > 4096 && s->has_q_pos_offset && s->q_pos_offset >= 4096);
    clause(t, "tiled, a row beyond 136", s->topk_tiled && S > 136);
    clause(t, "tiled, a third tile of rows", s->topk_tiled && S > 256);
    clause(t, "more than 64 threads", s->threads > 64);
    clause(t, "scale that is no bf16", is_no_bf16(s->softmax_scale));
    clause(t, "scale below 2^-100", s->softmax_scale < 0x1p-100f);
    clause(t, "scale above 2^126", s->softmax_scale > 0x1p126f);
    clause(t, "640 < K <= 1024", !s->dense && s->topk > 640 && s->topk <= 1024);
    clause(t, "1024 < K < 2048", !s->dense && s->topk > 1024 && s->topk < 2048);
    clause(t, "K=2048", !s->dense && s->topk == 2048);
    clause(t, "H=16", s->heads == 16);
    clause(t, "H=32", s->heads == 32);
    clause(t, "32 < H <= 64", s->heads > 32 && s->heads <= 64);
    clause(t, "64 < H < 128", s->heads > 64 && s->heads < 128);
    clause(t, "H=128", s->heads == 128);
    clause(t, "S=1", S == 1);
    clause(t, "S=2", S == 2);
    clause(t, "S=n", S == s->cores && S > 1);
    clause(t, "1 < n < S", s->cores > 1 && s->cores < S);
    clause(t, "tiled S=127", s->topk_tiled && S == 127);
    clause(t, "tiled S=128", s->topk_tiled && S == 128);
    clause(t, "tiled S=129", s->topk_tiled && S == 129);
    clause(t, "flat S=129", !s->topk_tiled && S == 129);
    clause(t, "tiled, K > 128", s->topk_tiled && s->topk > 128 && !s->dense);
    clause(t, "tiled S>128, cores of rows no multiple of 8",
           s->topk_tiled && S > 128 && s->cores > 1 && S / s->cores % 8 != 0 && !s->dense);
    clause(t, "several rows a core, several cores, a list",
           s->cores > 1 && s->cores < S && !s->dense);
    clause(t, "S=4 on 2 cores", S == 4 && s->cores == 2);
    clause(t, "rows left over by 2 threads", s->threads == 2 && S > 2 && S % 2 != 0);
    clause(t, "tiled, a second group of rows", s->topk_tiled && S > 8 && !s->dense);
    clause(t, "S_kv=1", keys == 1);
    clause(t, "S_kv=2", keys == 2);
    clause(t, "S_kv<K", keys < s->topk);
    clause(t, "S_kv=K-1", keys == s->topk - 1);
    clause(t, "S_kv=K", keys == s->topk);
    clause(t, "S_kv=K+1", keys == s->topk + 1);
    clause(t, "S_kv just above 4096", keys > 4096 && keys < 4100);
    clause(t, "S_kv just above 2^16", keys > 65536 && keys < 65540);
    clause(t, "S_kv beyond 2^31 elements", keys > 1 << 22);
    clause(t, "S_kv beyond 2^32 elements", keys > 1 << 23);
    clause(t, "Rr=1", s->rope == 1);
    clause(t, "Rr=63", s->rope == 63);
    clause(t, "Rr=64", s->rope == 64);
    clause(t, "Rr=65", s->rope == 65);
    clause(t, "Rr=127", s->rope == 127);
    clause(t, "Rr=128", s->rope == 128);
    clause(t, "natural order", s->out_order == MLA_OUT_NATURAL);
    clause(t, "heads not divisible by threads", s->threads > 1 && s->heads % s->threads != 0);
    clause(t, "more threads than rows", s->threads > S);
    clause(t, "threads do not divide rows", s->threads > 1 && S % s->threads != 0);
}

static void sparse_offsets(struct tally *t, const struct mla_sparse_args *s)
{
    int64_t offset = s->q_pos_offset, keys = s->keys;
    bool on = s->has_q_pos_offset;
    clause(t, "offset absent", !on);
    clause(t, "offset 0", on && offset == 0);
    clause(t, "offset 1", on && offset == 1);
    clause(t, "offset S_kv-2", on && keys > 2 && offset == keys - 2);
    clause(t, "offset S_kv-1", on && keys > 2 && offset == keys - 1);
    clause(t, "offset beyond S_kv", on && offset >= keys && offset < INT64_MAX);
    clause(t, "offset at the end of an int",
           on && offset - INT32_MAX + 1 >= 0 && offset <= INT32_MAX);
    clause(t, "offset just beyond an unsigned int",
           on && offset > UINT32_MAX && offset <= (int64_t)UINT32_MAX + 1);
    clause(t, "offset INT64_MAX", on && offset == INT64_MAX);
    clause(t, "offset inside", on && offset > 1 && offset < keys - 2);
    clause(t, "dense", s->dense);
    clause(t, "dense, several rows", s->dense && s->queries > 1);
    clause(t, "dense, more than 32 rows, prefix",
           s->dense && !on && s->queries > 32 && keys > s->queries);
    clause(t, "dense, one key for row 0", s->dense && (!on || offset == 0) && keys > 1);
    clause(t, "dense, more than 512 keys", s->dense && keys > 512 && offset >= 512);
    clause(t, "dense, keys not a multiple of 128", s->dense && keys % 128 != 0 && keys > 128);
}

/* ---- data ---- */

/* Scores and values of what is drawn: the regions are counted one by one beside these. */
static void data(struct tally *t, const struct mla_case *test)
{
    const int64_t a = test->amount;
    const int32_t region = test->region;
    bool is_ring = test->op == MLA_OP_RING;
    int64_t keys = is_ring              ? test->ring.logical_n
                   : test->sparse.dense ? test->sparse.keys
                                        : test->sparse.topk;
    int64_t threads = is_ring ? test->ring.threads : test->sparse.threads;
    bool blocks = keys > 128 && (is_ring || !test->sparse.dense);
    bool profile = test->family == mla_family_find("profile");
    bool flat = region == MLA_REGION_FLAT;
    clause(t, "block maxima rise by 1 bit", region == MLA_REGION_RISING && a == 1 && blocks);
    clause(t, "block maxima rise by 8 bits", region == MLA_REGION_RISING && a == 8 && blocks);
    clause(t, "block maxima fall by > 88", region == MLA_REGION_FALLING && blocks);
    clause(t, "second half + 100", region == MLA_REGION_HALF && blocks);
    clause(t, "all < -1e4", region == MLA_REGION_DEEP && a < 2);
    clause(t, "all < -5e4", region == MLA_REGION_DEEP && a == 3);
    clause(t, "all < -1e5", region == MLA_REGION_DEEP && a > 4);
    clause(t, "all < -1e5 and near one another", region == MLA_REGION_SUNK && a > 4);
    clause(t, "all > 1e5", region == MLA_REGION_LOFTY && a > 4);
    clause(t, "raw beyond 65504", region == MLA_REGION_RAW && a < 4);
    clause(t, "raw beyond 65504 on the way", region == MLA_REGION_RAW && a >= 4);
    clause(t, "dominant at +1e3 .. 1e5", region == MLA_REGION_SATURATED && test->seed % 2 == 0);
    clause(t, "values to 1e5", region == MLA_REGION_LARGE && a == 0);
    clause(t, "values to 1e37", region == MLA_REGION_LARGE && a == 8);
    clause(t, "more than 512 equal weights", keys > 512 && flat && profile);
    clause(t, "faint, in threads", region == MLA_REGION_FAINT && threads > 1);
    clause(t, "heads differ, several heads",
           region == MLA_REGION_HEADS && (!is_ring || test->ring.heads > 1));
    clause(t, "weights of e^-64 .. e^-72 alone", region == MLA_REGION_BENEATH && a == 5);
    clause(t, "weights of e^-88 .. e^-96 alone", region == MLA_REGION_BENEATH && a == 8);
    clause(t, "huge poison", test->poison == MLA_POISON_HUGE);
    clause(t, "NaN poison", test->poison == MLA_POISON_NAN);
    clause(t, "statistics asked for", test->stats);
    clause(t, "all rows judged", test->rows == 0);
    clause(t, "some rows judged", test->rows < 0);
}

static void clauses(struct tally *t, const struct mla_case *test)
{
    t->n = 0;
    data(t, test);
    if (test->op == MLA_OP_RING) {
        ring_sizes(t, &test->ring);
        ring_lengths(t, &test->ring);
        ring_chunks(t, &test->ring);
        ring_rotation(t, &test->ring);
        ring_slots(t, test);
        return;
    }
    sparse_shapes(t, test);
    sparse_lists(t, test);
    sparse_offsets(t, &test->sparse);
}

/* ---- broken rules ---- */

/* Place of the broken entry of the list; -1: something else is broken. */
static int64_t bad_entry(const struct mla_case *test)
{
    bool is_index = strcmp(test->set[0].field, "topk_indices") == 0;
    return is_index && strcmp(test->set[0].value, "null") != 0 ? test->set[0].at : -1;
}

static bool sets(const struct mla_case *test, const char *field, const char *value)
{
    return strcmp(test->set[0].field, field) == 0 &&
           (value == NULL || strcmp(test->set[0].value, value) == 0);
}

static void broken_rules(struct tally *t, const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    int64_t at = bad_entry(test), row = at < 0 ? -1 : at / s->topk, bad;
    bad = at < 0 ? 0 : strtoll(test->set[0].value, NULL, 10);
    t->n = 0;
    clause(t, "two rules", test->set_n == 2);
    if (test->op == MLA_OP_RING) {
        clause(t, "uneven halves", r->is_balanced && sets(test, "q_chunk_size", NULL));
        clause(t, "slot outside", r->has_slot && sets(test, "kv_cache_batch_idx", NULL));
        clause(t, "first slot outside",
               r->has_slot && sets(test, "kv_cache_batch_idx", NULL) &&
                   strtoll(test->set[0].value, NULL, 10) == r->kv_batch);
        clause(t, "chunked, too short",
               !r->has_prior && r->kv_rows > r->q_rows && sets(test, "logical_n", NULL));
        clause(t, "kv_heads", sets(test, "kv_heads", NULL));
        clause(t, "product 0 mod 2^64", sets(test, "heads", "72057594037927936"));
        clause(t, "product small mod 2^64", sets(test, "heads", "72057594037927937"));
        clause(t, "scale NaN", sets(test, "scale", "nan"));
        return;
    }
    clause(t, "product 0 mod 2^64, queries", sets(test, "queries", "4611686018427387904"));
    clause(t, "product 0 mod 2^64, keys", sets(test, "keys", "4611686018427387904"));
    clause(t, "product 0 mod 2^64, topk", sets(test, "topk", "4611686018427387904"));
    clause(t, "scale NaN", sets(test, "softmax_scale", "nan"));
    clause(t, "scale 0", sets(test, "softmax_scale", "0"));
    clause(t, "rows that cores do not divide", s->cores > 1 && sets(test, "queries", NULL));
    clause(t, "bad entry", at >= 0);
    clause(t, "bad entry, first row", row == 0);
    clause(t, "bad entry, later row", row > 0);
    clause(t, "bad entry, later core", s->cores > 1 && row >= s->queries / s->cores);
    clause(t, "bad entry, second tile of rows", s->topk_tiled && row >= 128);
    clause(t, "bad entry -1", at >= 0 && bad == -1);
    clause(t, "bad entry S_kv", at >= 0 && bad == s->keys);
}

/* Every enum value, and every region of every family. */
struct values {
    int64_t recipes[16][MLA_REGION_N];
    int64_t indices[MLA_INDICES_N], poison[MLA_POISON_N];
};

static void count_values(struct values *v, const struct mla_case *test)
{
    v->recipes[test->family][test->region]++;
    v->indices[test->indices]++;
    v->poison[test->poison]++;
}

static int report(const struct tally *t, const char *op, int64_t cases_n, int64_t least)
{
    int missed = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->met[i] < (least > RARE ? least : RARE))
            printf("  %s: %s: %lld of %lld\n", op, t->names[i], (long long)t->met[i],
                   (long long)cases_n);
        missed += t->met[i] < least;
    }
    return missed;
}

static int report_values(const struct values *v, const char *op)
{
    size_t families_n;
    const struct mla_family *const *families = mla_families(&families_n);
    int missed = 0;
    for (size_t f = 0; f < families_n; f++)
        for (size_t r = 0; r < families[f]->regions_n; r++)
            if (v->recipes[f][families[f]->regions[r]] == 0) {
                printf("  %s: family %s, region %s: never\n", op, families[f]->name,
                       mla_case_region_name((int32_t)families[f]->regions[r]));
                missed++;
            }
    for (int i = 0; i < MLA_INDICES_N; i++)
        missed += v->indices[i] == 0;
    for (int i = 0; i < MLA_POISON_N; i++)
        missed += v->poison[i] == 0;
    return missed;
}

static void test_draws_reach_every_clause(void **state)
{
    int missed = 0;
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct tally tally = {.n = 0};
        struct values values = {0};
        for (uint64_t i = 0; i < draws(); i++) {
            struct mla_rng rng = {mla_number_mix(i), 0};
            struct mla_case test;
            mla_case_draw(&test, (enum mla_op)op, &rng);
            clauses(&tally, &test);
            count_values(&values, &test);
        }
        missed += report(&tally, mla_case_op_name(op), (int64_t)draws(), 2);
        missed += report_values(&values, mla_case_op_name(op));
    }
    if (draws() >= DRAWS)
        assert_int_equal(missed, 0);
}

/* Is a row judged at which the positions of its rank jump? */
static bool judges_a_seam(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    int64_t rows_n;
    bool found = false;
    struct mla_row *rows = mla_rows_draw(test, &rows_n);
    assert_non_null(rows);
    for (int64_t i = 0; i < rows_n && !found; i++)
        found = rows[i].row + 1 < r->q_rows &&
                mla_oracle_query_position(r, rows[i].rank, rows[i].row + 1) !=
                    mla_oracle_query_position(r, rows[i].rank, rows[i].row) + 1;
    free(rows);
    return found;
}

/* Among calls that have such rows and judge few, aiming makes them twice as frequent at least. */
static void test_rows_at_seams_are_aimed_at(void **state)
{
    int plain = 0, aimed = 0, cases_n = 0;
    (void)state;
    for (uint64_t i = 0; cases_n < 300; i++) {
        struct mla_rng rng = {mla_number_mix(i + 5), 0};
        struct mla_case test;
        mla_case_draw(&test, MLA_OP_RING, &rng);
        if (!test.ring.is_balanced || test.rows == 0)
            continue;
        test.rows = -1;
        test.row_seed = i % 65536;
        plain += judges_a_seam(&test);
        mla_draw_aim(&test, &rng);
        aimed += judges_a_seam(&test);
        cases_n++;
    }
    printf("  before a seam: %d of %d drawn, %d aimed\n", plain, cases_n, aimed);
    assert_true(aimed > 2 * plain && aimed > cases_n / 8);
}

/* From the plainest case by mutation alone; back to it now and then, as a kept corpus would be. */
static void test_mutations_reach_every_clause(void **state)
{
    int missed = 0;
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct tally tally = {.n = 0};
        struct values values = {0};
        struct mla_rng rng = {99, 0};
        struct mla_case test;
        for (uint64_t i = 0; i < 2 * draws(); i++) {
            if (i % 100 == 0)
                mla_case_init(&test, (enum mla_op)op);
            mla_case_mutate(&test, &rng);
            clauses(&tally, &test);
            count_values(&values, &test);
        }
        missed += report(&tally, mla_case_op_name(op), 2 * (int64_t)draws(), 1);
        missed += report_values(&values, mla_case_op_name(op));
    }
    if (draws() >= DRAWS)
        assert_int_equal(missed, 0);
}

/* Each once in 400 refused calls or more often: that is what a hunt has time for. */
static void test_violations_reach_every_clause(void **state)
{
    int missed = 0;
    const int64_t n = (int64_t)draws() / 10;
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct tally tally = {.n = 0};
        for (int64_t i = 0; i < n; i++) {
            struct mla_rng rng = {mla_number_mix((uint64_t)i), 0};
            struct mla_case test;
            mla_case_draw(&test, (enum mla_op)op, &rng);
            mla_case_draw_violation(&test, &rng);
            broken_rules(&tally, &test);
        }
        missed += report(&tally, mla_case_op_name(op), n, n / 400);
    }
    if (draws() >= DRAWS)
        assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_reach_every_clause),
        cmocka_unit_test(test_rows_at_seams_are_aimed_at),
        cmocka_unit_test(test_mutations_reach_every_clause),
        cmocka_unit_test(test_violations_reach_every_clause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
