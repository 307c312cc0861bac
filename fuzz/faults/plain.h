/* SPDX-License-Identifier: Apache-2.0
 *
 * plain.h - one plain tiled online-softmax kernel per operation, with named places to plant a
 * fault.
 *
 * The two kernels are the vehicle for planted faults and for the honest controls beside them:
 * float32, written straight from the definition in impl/mla.h, sharing nothing with the kernels in
 * impl. But for three methods a ring call has one thread, reads every source rank's kv directly and
 * never touches `gathered`. A fault is a value of enum mla_plain_fault that the kernel asks for by
 * name at one site.
 */
#ifndef MLA_FAULTS_PLAIN_H
#define MLA_FAULTS_PLAIN_H

#include "impl/mla.h"
#include "impl/mla_kernel.h"

/* What is wrong. Each is explained where it is planted and in its row of faults.def. */
enum mla_plain_fault {
    MLA_FAULT_NONE = 0,
#define FAULT(id, name, class, reports, operations, method, cause, what)             MLA_FAULT_##id,
#define HIDDEN_FAULT(id, name, class, reports, operations, method, cause, what, why) MLA_FAULT_##id,
#include "fuzz/faults/faults.def"
#undef FAULT
#undef HIDDEN_FAULT
};

/* How the row is worked through. All are honest; they differ in order and in rounding. */
enum mla_plain_method {
    MLA_PLAIN_ONLINE = 0,       /* tile by tile, running maximum, float32 probabilities */
    MLA_PLAIN_REVERSED,         /* the same from the last key to the first */
    MLA_PLAIN_TWO_PASS,         /* maximum first; probabilities rounded to bf16 for P*V only */
    MLA_PLAIN_ROWS_REVERSED,    /* ONLINE; rows and heads from the last to the first */
    MLA_PLAIN_ONE_TILE,         /* ONLINE; all keys of a row are one tile */
    MLA_PLAIN_TILES_32,         /* ONLINE; tiles of 32 keys, whatever the call says */
    MLA_PLAIN_BF16_SUMS,        /* ONLINE; both accumulators rounded to bf16 after every tile */
    MLA_PLAIN_TWO_PASS_ROUNDED, /* maximum first; the sum adds the rounded probabilities too */
    MLA_PLAIN_TWO_PASS_FLOAT,   /* maximum first; probabilities stay float32 */
    MLA_PLAIN_LOWER_SHIFT,      /* the same; the reference point lies 0.5 below the maximum */
    MLA_PLAIN_BLOCKED,          /* the same; sums in lanes, pairs and parts of 16 keys */
    MLA_PLAIN_MERGED,   /* every shard (sparse: tile) by itself, the partial results then merged */
    MLA_PLAIN_GATHERED, /* ring: shards are copied into `gathered` first and read there */
    MLA_PLAIN_TRAVELLING, /* ring: a thread each rank, shards move from rank to rank meanwhile */
    MLA_PLAIN_PAIRED      /* ring: two threads share each tile. Sparse: these three as ONLINE */
};

struct mla_plain_variant {
    enum mla_plain_fault fault;
    enum mla_plain_method method;
};

/*
 * Is this fault planted in the variant? Sets the mark of mla_fault_is_applied, so it is asked last
 * in a condition, when everything holds that makes the fault differ from the honest way:
 *
 *     if (tile_is_last && mla_plain_has(variant, MLA_FAULT_KEYS_PAST_END))
 */
bool mla_plain_has(struct mla_plain_variant variant, enum mla_plain_fault fault);

/*
 * The operations as impl/mla.h defines them, for every call that must be accepted (all layouts,
 * slots, pad rows, index layouts and column orders; threads, cores and links are ignored,
 * `gathered` is not touched). Tiles: k_chunk_size rows of each shard, shards in the order in which
 * the ring or the line delivers them; 128 kept entries of the sparse operation's list.
 *
 * masking      hidden keys are skipped, never multiplied by a zero weight
 * non-finite   a row that sees NaN or Inf has unspecified values; other rows do not suffer
 * numerics     MLA_PLAIN_*_MODEL below
 * errors       refusals by impl/validate.h (rules, not arithmetic: the one thing shared with impl);
 *              MLA_ERR_NOMEM, nothing written
 * threads      reentrant
 */
int32_t mla_plain_ring(const struct mla_ring_args *args, struct mla_plain_variant variant,
                       char *message, size_t message_bytes);
int32_t mla_plain_sparse(const struct mla_sparse_args *args, struct mla_plain_variant variant,
                         char *message, size_t message_bytes);

/*
 * The order in which shards reach a rank: its own, then alternately rank+1, rank-1, rank+2, ... as
 * far as anything comes from that side; a side that is used up leaves the rest to the other. On the
 * ring ring_size/2 shards come from below and the rest from above; on the line nothing wraps
 * around. order has ring_size entries.
 */
void mla_plain_visit_order(int64_t ring_size, int32_t topology, int64_t rank, int64_t *order);

/* Everything. A planted fault promises what the kernel around it would keep. */
#define MLA_PLAIN_PROMISES                                                                         \
    (MLA_PROMISE_REFUSES | MLA_PROMISE_INDEX_CHECKED | MLA_PROMISE_PAD_ZERO | MLA_PROMISE_STATS |  \
     MLA_PROMISE_NO_FUTURE_LEAK | MLA_PROMISE_SCRATCH_UNTOUCHED | MLA_PROMISE_BIT_REPEAT |         \
     MLA_PROMISE_BIT_THREADS | MLA_PROMISE_BIT_LAYOUT | MLA_PROMISE_BIT_SPELLING |                 \
     MLA_PROMISE_BIT_SCALE)

/*
 * The arithmetic of MLA_PLAIN_ONLINE and MLA_PLAIN_REVERSED, line by line (plain_row.c); u = 2^-24:
 *
 *   score      sum of `width` products, one after the other. A bf16 x bf16 product has at most 16
 *              significant bits and is exact (underflow is the oracle's business); the first
 * addition is to 0 and exact, so width-1 roundings: per_width 1 is one more than needed. argument
 * (s - m) * scale: one subtraction, one product; scale is the call's own float32. m is the running
 * maximum of unscaled scores, exact.                  2 roundings expf       libm. glibc
 * (sysdeps/ieee754/flt-32/e_expf.c, since 2.28) states 0.502 ulp in the worst case, its manual
 * lists 1 ulp; 1 ulp <= 2^-23 relative. Declared 2^-22, which leaves room for other libms of 2 ulp.
 * Subnormal results are kept: a true value above 2^-149 is never returned as 0. expf(0) = 1
 * exactly. p          stays float32, and the sum adds that same p. rescale    alpha = expf((m_old -
 * m_new) * scale), once per tile after a key's own: at most blocks - 1 factors; O and l are
 * multiplied by the same alpha. O and l    product p*v 1 rounding (24 x 8 bits), one addition a
 * key, one multiply a tile; l has no product. In the tile of a row's first key O and l are 0 and
 * the multiply is exact. tiles      visible rows are a prefix of each shard in every layout, so the
 * tiles that hold a visible key are ceil(visible / k_chunk_size) per shard: block_keys 0. Sparse
 * tiles count kept entries: ceil(keys / 128). out        O / l, 1 rounding, then to bf16, nearest
 * even. stats      m * scale, one rounding of the shift used; l as it is.
 *
 * No fused operation is used (-ffp-contract=off); subnormals are kept; V is read only for O.
 */
#define MLA_PLAIN_ONLINE_MODEL(tile_keys)                                                          \
    {                                                                                              \
        .add_u = 0x1p-24, .score_depth = {.per_width = 1.0}, .arg_form = MLA_ARG_DIFFERENCE,       \
        .arg_roundings = 2, .exp_error = 0x1p-22, .exp_floor = 0x1p-149,                           \
        .p_frame = MLA_P_FRAME_UNKNOWN, .sum_rounded = 1,                                          \
        .rescales = {.per_block = 1.0, .block_keys = (tile_keys)},                                 \
        .acc_depth = {.constant = 1.0,                                                             \
                      .per_key = 1.0,                                                              \
                      .per_block = 1.0,                                                            \
                      .block_keys = (tile_keys)},                                                  \
        .div_roundings = 1, .out_round = MLA_OUT_NEAREST, .stats_max = MLA_STATS_ROUNDED,          \
        .weights_ignore_v = 1                                                                      \
    }
#define MLA_PLAIN_SPARSE_TILE           128
#define MLA_PLAIN_ONLINE_RING_MODEL     MLA_PLAIN_ONLINE_MODEL(0)
#define MLA_PLAIN_ONLINE_SPARSE_MODEL   MLA_PLAIN_ONLINE_MODEL(MLA_PLAIN_SPARSE_TILE)
#define MLA_PLAIN_REVERSED_RING_MODEL   MLA_PLAIN_ONLINE_RING_MODEL
#define MLA_PLAIN_REVERSED_SPARSE_MODEL MLA_PLAIN_ONLINE_SPARSE_MODEL

/* The same operations in the same order: only who does them, and where keys are read, differs. */
#define MLA_PLAIN_GATHERED_RING_MODEL     MLA_PLAIN_ONLINE_RING_MODEL
#define MLA_PLAIN_GATHERED_SPARSE_MODEL   MLA_PLAIN_ONLINE_SPARSE_MODEL
#define MLA_PLAIN_TRAVELLING_RING_MODEL   MLA_PLAIN_ONLINE_RING_MODEL
#define MLA_PLAIN_TRAVELLING_SPARSE_MODEL MLA_PLAIN_ONLINE_SPARSE_MODEL
#define MLA_PLAIN_PAIRED_RING_MODEL       MLA_PLAIN_ONLINE_RING_MODEL
#define MLA_PLAIN_PAIRED_SPARSE_MODEL     MLA_PLAIN_ONLINE_SPARSE_MODEL

/*
 * The arithmetic of MLA_PLAIN_MERGED where it differs. A part is all keys of one shard (sparse: 128
 * kept entries); n parts hold a key of the row.
 *
 *   p          expf((s - m_i) * scale) with the part's own maximum m_i; no rescale inside a part
 *   merge      with m the larger of the two maxima: O = O*a + O_i*b, l likewise, a = expf((m_old -
 *              m) * scale), b = expf((m_i - m) * scale). Merging the first part multiplies O = 0 by
 *              a = 0 and its own by b = 1: exact. A key of part 0 meets the a of n-1 later merges,
 *              one of part i > 0 the b of its own and n-1-i of a: n-1 factors at most.
 *   O and l    product p*v 1 rounding, at most keys-1 additions in the part (the first is to 0), a
 *              multiply and an addition for each of at most n-1 merges.
 *   stats      m is the largest score, exact, scaled with one rounding.
 *
 * A shard that shows a row anything is one block: shard_block_keys no shard reaches.
 */
#define MLA_PLAIN_MERGED_MODEL(tile_keys, shard_keys)                                              \
    {                                                                                              \
        .add_u = 0x1p-24, .score_depth = {.per_width = 1.0}, .arg_form = MLA_ARG_DIFFERENCE,       \
        .arg_roundings = 2, .exp_error = 0x1p-22, .exp_floor = 0x1p-149,                           \
        .p_frame = MLA_P_FRAME_UNKNOWN, .sum_rounded = 1,                                          \
        .rescales = {.per_block = 1.0, .block_keys = (tile_keys)},                                 \
        .acc_depth = {.constant = 1.0,                                                             \
                      .per_key = 1.0,                                                              \
                      .per_block = 2.0,                                                            \
                      .block_keys = (tile_keys)},                                                  \
        .div_roundings = 1, .out_round = MLA_OUT_NEAREST, .stats_max = MLA_STATS_ROUNDED,          \
        .weights_ignore_v = 1, .shard_block_keys = (shard_keys)                                    \
    }
#define MLA_PLAIN_MERGED_RING_MODEL   MLA_PLAIN_MERGED_MODEL(0, 1 << 30)
#define MLA_PLAIN_MERGED_SPARSE_MODEL MLA_PLAIN_MERGED_MODEL(MLA_PLAIN_SPARSE_TILE, 0)

/*
 * The arithmetic of MLA_PLAIN_TWO_PASS where it differs:
 *
 *   p          expf((s - max) * scale) with the row's maximum; l adds it as it is, P*V uses it
 *              rounded to bf16 (nearest): p_u = 2^-8, frame ROW, sum_rounded 0.
 *              A p below 2^-126 is rounded to a bf16 subnormal with an absolute error up to 2^-134;
 *              exp_floor = 2^-126 covers that.
 *   rescale    none.
 *   O and l    bf16 x bf16 is exact: one addition a key, nothing else.
 */
#define MLA_PLAIN_TWO_PASS_MODEL                                                                   \
    {                                                                                              \
        .add_u = 0x1p-24, .score_depth = {.per_width = 1.0}, .arg_form = MLA_ARG_DIFFERENCE,       \
        .arg_roundings = 2, .exp_error = 0x1p-22, .exp_floor = 0x1p-126, .p_u = 0x1p-8,            \
        .p_frame = MLA_P_FRAME_ROW, .sum_rounded = 0, .acc_depth = {.per_key = 1.0},               \
        .div_roundings = 1, .out_round = MLA_OUT_NEAREST, .stats_max = MLA_STATS_ROUNDED,          \
        .weights_ignore_v = 1                                                                      \
    }
#define MLA_PLAIN_TWO_PASS_RING_MODEL   MLA_PLAIN_TWO_PASS_MODEL
#define MLA_PLAIN_TWO_PASS_SPARSE_MODEL MLA_PLAIN_TWO_PASS_MODEL

#include "fuzz/faults/plain_models.h"

#endif
