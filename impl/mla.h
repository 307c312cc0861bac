/* SPDX-License-Identifier: Apache-2.0
 *
 * mla.h - the two multi-head latent attention (MLA) operations: argument structures and status.
 *
 * This header and mla_kernel.h are all a plug-in author needs; they include nothing but stdint,
 * stddef and stdbool. Conventions that hold for both operations:
 *
 *   - tensors are dense and row-major, the last axis contiguous; no alignment beyond the element's
 *     own may be assumed;
 *   - "bf16" is the bfloat16 bit pattern in a uint16_t (the upper half of a binary32);
 *   - the caller owns all memory; nothing is kept after the call returns; inputs are never written;
 *     inputs may alias inputs, outputs may alias nothing (not checked);
 *   - bad arguments give a negative status and a message "<field> = <value>: <rule>", and then no
 *     byte of any output or scratch has changed;
 *   - calls are reentrant; the same call gives the same bits whatever the number of threads.
 */
#ifndef MLA_IMPL_MLA_H
#define MLA_IMPL_MLA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status of a call. Returned as int32_t; a value not listed here is a fault of the kernel. */
enum mla_status {
    MLA_OK = 0,
    MLA_ERR_PARAM = -1, /* a parameter is outside its range */
    MLA_ERR_SHAPE = -2, /* dimensions are inconsistent, unsupported by definition, or overflow */
    MLA_ERR_INDEX = -3, /* a top-k index names no cache row */
    MLA_ERR_UNSUPPORTED = -4, /* valid, but this kernel does not offer it */
    MLA_ERR_NOMEM = -5,       /* memory or a thread could not be had */
    MLA_ERR_INTERNAL = -6     /* the kernel found itself in an impossible state */
};

/* How the ranks are wired; decides the order in which shards arrive, never the meaning. */
enum mla_topology { MLA_TOPOLOGY_RING = 0, MLA_TOPOLOGY_LINEAR = 1 };

/* Column order of the sparse operation's output. */
enum mla_out_order {
    MLA_OUT_MX4 = 0,    /* latent l of head h at column h*latent + (l mod 4)*(latent/4) + l div 4 */
    MLA_OUT_NATURAL = 1 /* latent l of head h at column h*latent + l */
};

/*
 * Refusals. A call that breaks rules is refused for the first of them, in this order; each group of
 * rules is looked at only where all before it hold. The message names the field whose rule it is, with
 * its value (a null pointer's is 0; how a scale, the size of a tensor or a pointer that must be null is put
 * is free). A rule that ties fields to each other belongs to one of them:
 *
 *   both     args not null; struct_size equal to the size of this version's structure, neither smaller
 *            nor larger (PARAM, before anything else of the structure is read)
 *   ring     PARAM  pointers in the order q, kv, gathered, out, stats: the array, then its entries by rank
 *                   (named kv[1]; read only if ring_size is in 1 .. 32), then the next array. stats itself
 *                   may be null
 *            PARAM  ranges: ring_size, batch, heads, q_rows, kv_rows, kv_batch, gathered_batch >= 1,
 *                   num_links >= 1, threads >= 0, topology, has_scale, is_balanced, has_slot, has_prior
 *                   (a flag is 0 or 1, no other value is taken for true), dim
 *            SHAPE  kv_heads; kv_head_dim against head_dim
 *            SHAPE  multiples of 32: q_rows, kv_rows, head_dim, head_dim_v (and its range), q_chunk_size,
 *                   k_chunk_size; q_rows > kv_rows names q_rows
 *            SHAPE  without a slot kv_batch, then gathered_batch, against batch; gathered_rows
 *            SHAPE  no tensor above 2^62-1 bytes: q, kv, gathered, out, stats (also where stats is null),
 *                   products not taken modulo anything
 *            PARAM  logical_n in 1 .. ring_size*kv_rows
 *            PARAM  balanced: has_prior = 1 names kv_actual_isl; q_rows != kv_rows names q_rows; q_rows/2
 *                   no multiple of q_chunk_size names q_chunk_size; logical_n
 *            PARAM  slot: kv_cache_batch_idx, batch, gathered_batch
 *            PARAM  prior: kv_actual_isl < 0; q_rows >= kv_rows names q_rows; kv_rows % q_rows names kv_rows;
 *                   kv_actual_isl % 32; logical_n - kv_actual_isl names logical_n
 *            PARAM  chunked without prior: kv_rows % q_rows names kv_rows; logical_n rounded up to 32 below
 *                   ring_size*q_rows names logical_n
 *            PARAM  scale
 *   sparse   PARAM  pointers in the order q_lift, q_pe, c_kv, k_pe, topk_indices, out. topk_indices must be
 *                   null exactly if dense is not 0, be it a legal value or not (its range comes later)
 *            PARAM  ranges: queries, keys, cores >= 1, threads >= 0, topk_tiled, dense, has_q_pos_offset,
 *                   out_order; softmax_scale; q_pos_offset
 *            SHAPE  batch, latent, heads, rope, topk (unless dense); queries % cores names queries
 *            SHAPE  no tensor above 2^62-1 bytes: q_lift, q_pe, c_kv, k_pe, topk_indices (whole tiles if
 *                   tiled), out, stats
 *            INDEX  every listed index in 0 .. keys-1, also one that q_pos_offset would drop. The value is
 *                   that of a bad entry; which one, if they differ, is the kernel's affair
 *
 * A field that its flag switches off is never looked at and may hold anything: scale, kv_cache_batch_idx
 * and kv_actual_isl without has_scale, has_slot and has_prior, q_pos_offset (negative, too) without
 * has_q_pos_offset, topk when dense.
 */

#define MLA_RING_SIZE_MAX    32 /* largest ring_size */
#define MLA_TILE             32 /* tile height in rows: every row count of the ring is a multiple */
#define MLA_LATENT           512 /* the sparse operation's latent width */
#define MLA_TOPK_MULTIPLE    128 /* top-k is a multiple of this */
#define MLA_ROPE_MAX         128 /* largest RoPE width */
#define MLA_SPARSE_HEADS_MAX 128

/*
 * ring: causal MLA over one KV tensor sharded over a ring (ttnn.transformer.ring_mla).
 *
 *     out[q] = sum_k softmax_k(scale * <Q[q], KV[k]>) * KV[k][0 : head_dim_v]
 *
 * over the keys k with pos_k <= pos_q and pos_k < logical_n. K is the whole KV row, V its first
 * head_dim_v columns. Each rank d (0 .. ring_size-1) is a query owner and the source of one shard.
 *
 * Per rank (arrays of ring_size pointers):
 *   q         bf16  [batch, heads, q_rows, head_dim]                  input
 *   kv        bf16  [kv_batch, 1, kv_rows, head_dim]                  input
 *   gathered  bf16  [gathered_batch, 1, gathered_rows, head_dim]      scratch: source s at rows
 *                   s*kv_rows ..; batch b at gathered batch b, a slot at its own batch if
 *                   gathered_batch == kv_batch, else at 0; rows beyond the transferred ones and
 *                   other batches stay untouched
 *   out       bf16  [batch, heads, q_rows, head_dim_v]                output
 *   stats     f32   [batch, heads, 2*q_rows, 1]                       optional output: rows
 *                   [0, q_rows) m = max_k scale*<q,k>, rows [q_rows, 2*q_rows) l = sum_k exp(.-m);
 *                   the array is NULL or has ring_size non-null entries
 *
 * Positions (everything else follows from the one rule above):
 *   contiguous  q_rows == kv_rows: pos = d*q_rows + r, for queries and keys
 *   balanced    q_rows == kv_rows, h = q_rows/2: r < h -> d*h + r, else (2*ring_size-1-d)*h + r-h
 *   chunked     q_rows < kv_rows: the cache is block-cyclic in slabs of q_rows rows, local row t of
 *               rank s -> (t div q_rows)*ring_size*q_rows + s*q_rows + t mod q_rows;
 *               without kv_actual_isl the queries are the last chunk, pos_q =
 *               roundup32(logical_n) - ring_size*q_rows + d*q_rows + r;
 *               with it (pad-aware rotation) the queries are positions
 *               kv_actual_isl .. logical_n-1, position g owned by rank
 *               (g div q_rows) mod ring_size, packed in increasing position from row 0; the rows
 *               left over are pad rows
 *
 * K chunks are cut in a rank's own rows: chunk c of a shard is its local rows c*k_chunk_size .. , whatever
 * positions these have, so in the balanced and chunked layouts one may hold keys that are far apart.
 *
 * Pad rows of q are not read; they give out bits +0, m = -inf, l = +0. Keys that no row of the call
 * sees (positions >= logical_n, other slots, scratch) never matter, NaN and Inf included. A row
 * whose own query or any visible key holds NaN or Inf, or for which sum_i |q_i k_i|, its product
 * with the scale, or sum_j |v_jl| may exceed FLT_MAX/2, has unspecified values; other rows do not
 * suffer. -0 and +0 are equal as results.
 */
struct mla_ring_args {
    uint32_t struct_size;       /* sizeof(struct mla_ring_args) */
    int64_t ring_size;          /* R, 1 .. 32 */
    int64_t batch;              /* B >= 1 */
    int64_t heads;              /* H >= 1, query heads */
    int64_t q_rows;             /* Nq, query rows per rank, multiple of 32, <= kv_rows */
    int64_t kv_rows;            /* Nk, KV rows per rank, multiple of 32 */
    int64_t kv_batch;           /* Bk: batch, or the number of cache slots */
    int64_t kv_heads;           /* 1 */
    int64_t kv_head_dim;        /* == head_dim */
    int64_t gathered_rows;      /* G >= ring_size*kv_rows */
    int64_t gathered_batch;     /* Bg: batch; with a slot 1 or kv_batch */
    int64_t head_dim;           /* DH, multiple of 32 */
    int64_t head_dim_v;         /* DV, multiple of 32, 0 < DV < DH */
    int64_t logical_n;          /* L, valid global keys, 1 .. ring_size*kv_rows */
    int32_t has_scale;          /* 0: scale is (float)(1.0/sqrt((double)head_dim)) */
    float scale;                /* finite, > 0 */
    int32_t is_balanced;        /* 1: zig-zag layout; needs logical_n == ring_size*kv_rows */
    int32_t has_slot;           /* 1: kv_cache_batch_idx counts */
    int64_t kv_cache_batch_idx; /* cache slot, 0 .. kv_batch-1; needs batch == 1 */
    int32_t has_prior;          /* 1: kv_actual_isl counts (absent differs from 0) */
    int64_t kv_actual_isl;      /* P, keys valid before this chunk, multiple of 32 */
    int32_t topology;           /* enum mla_topology */
    int64_t num_links;          /* >= 1: pieces a shard moves in, at most 256 of them */
    int64_t q_chunk_size;       /* multiple of 32, >= 32; may exceed or not divide q_rows. A hint:
                                   the kernels here cut the queries as suits them */
    int64_t k_chunk_size;       /* multiple of 32, >= 32; may exceed or not divide kv_rows. A kernel
                                   may cut shards its own way (mla_model.shard_block_keys) */
    int64_t dim;                /* 2: the sequence axis */
    int64_t threads;            /* total for the call; 0: one per rank, beyond that all processors;
                                   the kernels here start no more than max(256, processors). The
                                   result depends neither on this nor on num_links. */
    const uint16_t *const *q;
    const uint16_t *const *kv;
    uint16_t *const *gathered;
    uint16_t *const *out;
    float *const *stats;
};

/*
 * sparse: DeepSeek-V3.2 latent attention over top-k cache rows
 * (nkilib.experimental.mla.deepseek.mla_sparse_attention_cte_kernel).
 *
 * For query row q, head h and the row's multiset of cache rows j:
 *     score_j = <q_lift[q,h], c_kv[j]> + <q_pe[q,h], k_pe[j]>
 *     w       = softmax(softmax_scale * score)
 *     o[l]    = sum_j w_j * c_kv[j][l]
 * A row listed m times counts m times. There is no mask: "future" rows take part too, unless
 * q_pos_offset drops them.
 *
 *   q_lift        bf16  [1, queries, heads, latent]   absorbed latent query
 *   q_pe          bf16  [1, queries, heads, rope]     RoPE query, already rotated
 *   c_kv          bf16  [1, keys, latent]             latent cache: key and value
 *   k_pe          bf16  [1, keys, rope]               RoPE key, already rotated: scores only
 *   topk_indices  i32   flat [1, queries, topk], or tiled [ceil(queries/128), 16, 128, topk/16]:
 *                       tiled[q div 128, (q mod 128) div 8, 16*(q mod 8) + j mod 16, j div 16] =
 *                       flat[q, j]; slots of rows >= queries are never read; NULL exactly
 *                       when dense
 *   out           bf16  [1, queries, heads*latent]    column order: out_order
 *   stats         f32   [1, queries, heads, 2]        optional (NULL): max and sum as in the ring
 *
 * has_q_pos_offset: an index above q_pos_offset + q is dropped from row q's multiset.
 * dense: the row's keys are 0 .. min(keys-1, q_pos_offset + q), offset 0 when absent.
 * A row left without keys gives out +0, max -inf, sum +0.
 *
 * Cache rows that no index names may hold anything and never influence a result. Non-finite and
 * out-of-range rows: as in struct mla_ring_args.
 */
struct mla_sparse_args {
    uint32_t struct_size;     /* sizeof(struct mla_sparse_args) */
    int64_t batch;            /* 1 */
    int64_t queries;          /* S >= 1 */
    int64_t keys;             /* S_kv >= 1, rows of the cache */
    int64_t heads;            /* H, multiple of 16, 16 .. 128 */
    int64_t latent;           /* L, 512 */
    int64_t rope;             /* Rr, 1 .. 128 */
    int64_t topk;             /* K, multiple of 128, >= 128 (ignored when dense) */
    int32_t topk_tiled;       /* 1: tiled index layout */
    int32_t dense;            /* 1: no index list */
    int32_t has_q_pos_offset; /* 1: q_pos_offset counts */
    int64_t q_pos_offset;     /* >= 0 */
    int32_t out_order;        /* enum mla_out_order */
    int64_t cores;            /* n >= 1, queries % n == 0: core i owns rows [i*S/n, (i+1)*S/n) */
    int64_t threads;          /* 0: all processors; as in the ring no more than max(256,
                                 processors) are started. Bits depend on neither this nor cores */
    float softmax_scale;      /* finite, > 0 */
    const uint16_t *q_lift;
    const uint16_t *q_pe;
    const uint16_t *c_kv;
    const uint16_t *k_pe;
    const int32_t *topk_indices;
    uint16_t *out;
    float *stats;
};

#ifdef __cplusplus
}
#endif

#endif
