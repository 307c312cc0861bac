/* SPDX-License-Identifier: Apache-2.0
 *
 * mla_kernel.h - what a kernel under test declares: its descriptor, promises and arithmetic model.
 *
 * A kernel is a static descriptor; built-in and plug-in kernels use the same one. The model is not
 * a tolerance but a description of the arithmetic: from it and the case's own numbers the oracle
 * computes, for every output element, the set of results that arithmetic can produce. An element
 * outside it is a fault. Declare more error than you make and faults hide; declare less and honest
 * runs fail.
 */
#ifndef MLA_IMPL_MLA_KERNEL_H
#define MLA_IMPL_MLA_KERNEL_H

#include "mla.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MLA_KERNEL_ABI 1u

/*
 * A count of roundings that depends on the case:
 *     constant + per_width*width + per_key*min(keys, most_keys) + per_block*blocks
 * width: columns of a key (ring head_dim, sparse latent + rope). keys: keys the row sees, copies
 * counted. most_keys: 0 for all of them; > 0 for a sum that starts from nothing every so many keys at
 * most and is then added to what is held (which is what per_block counts): the way of a term through
 * its own part has at most so many roundings, however many keys there are. blocks: ceil(keys /
 * block_keys); for block_keys = 0 (ring only) the K chunks the row sees: the sum over shards of
 * ceil(visible keys of the shard / k_chunk_size), or, if shard_block_keys of the model is > 0, that
 * in the place of the call's k_chunk_size. constant may be negative (blocks - 1); a total below 0
 * counts as 0. The other terms are in [0, 1e9], block_keys and most_keys >= 0.
 */
struct mla_depth {
    double constant;
    double per_width;
    double per_key;
    double per_block;
    int32_t block_keys;
    int32_t most_keys;
};

/* How the exponential's argument is formed from score s, running maximum m and the scale. */
enum mla_arg_form {
    MLA_ARG_DIFFERENCE = 0, /* s - m, then times the scale */
    MLA_ARG_SCALED = 1,     /* scaled score minus scaled shift, the scaled shift kept */
    MLA_ARG_MIXED = 2       /* the unscaled m scaled anew at each use */
};

/*
 * The frame of p: the shift it is formed in before p_u rounds it. With p_u 2^-8 (to nearest bf16,
 * ties to even) or 2^-7 (toward zero to bf16) the rounded value of most p is then one known number,
 * and the kernel is held to it: far fewer results are accepted than by the size of p_u alone. With
 * any other p_u the frame means nothing. Whoever is not sure says UNKNOWN.
 *
 * ROW promises: every p of a row is formed with the largest of all the row's scores (two passes).
 *
 * BLOCKS promises an online softmax over blocks of keys:
 *   - the keys a row sees are taken in order. Sparse: as listed (dense: by index), those beyond
 *     q_pos_offset left out. Ring: shard by shard in the order of the ring's schedule (below), in
 *     each by local row;
 *   - blocks are cut from that order: p_block_keys keys each, the last one shorter; or, for 0 (ring
 *     only), the K chunks: rows 0 .. c-1 of each shard, the next c, and so on, as far as the row sees
 *     them; c is shard_block_keys if that is > 0, else the call's k_chunk_size. (It sees a prefix of
 *     every shard, so all its chunks of a shard but the last are full; a chunk never reaches into the
 *     next shard.) Shards and chunks it sees nothing of are no blocks;
 *   - p is formed with the largest score of its own block and all blocks before it;
 *   - afterwards it is only carried on by rescale factors, at most one for each later block. Two
 *     states with maxima of their own that are merged are not BLOCKS.
 *
 * The schedule of rank d: its own shard; then for h = 1, 2, .. the shard h ranks on (d+h), while h
 * <= b, and the one h ranks back (d-h), while h <= f. Ring (mod ring_size): b = (ring_size-1) div
 * 2, f the rest; linear: b = ring_size-1-d, f = d.
 */
enum mla_p_frame { MLA_P_FRAME_UNKNOWN = 0, MLA_P_FRAME_ROW = 1, MLA_P_FRAME_BLOCKS = 2 };

/*
 * Where the acc_u roundings are. UNKNOWN: anywhere on a term's path; each term of a sum may meet its
 * own.
 *
 * BLOCKS promises, with p_frame BLOCKS and acc_extra = k times its blocks (per_block k >= 1 whole,
 * block_keys p_block_keys, all else 0): after each block that holds a key of the row, and only then,
 * the running out of every column is brought up to date and stored,
 *     out = round(alpha * out + what the block's keys add),
 * k = 1, one rounding of relative size acc_u of the whole column's sum, whatever its direction; in
 * the first block of what its keys add alone. For k > 1 some of the k roundings may be of
 * alpha * out instead, before the block adds to it; never of a block's own sum, nor of part of one.
 * The sum likewise, or each of the parts it is kept in. All else (the product with alpha, additions)
 * is in acc_depth. Then a rounding is known to be relative to what is held at that time, and where
 * values of both signs cancel that is little: far fewer results are accepted. It only helps where
 * the frame of p is of use (p_u 2^-8 or 2^-7). Whoever is not sure says UNKNOWN.
 */
enum mla_acc_stores { MLA_ACC_STORES_UNKNOWN = 0, MLA_ACC_STORES_BLOCKS = 1 };

/* Final rounding of the output to bf16. */
enum mla_out_round {
    MLA_OUT_NEAREST = 0, /* to nearest, ties to even */
    MLA_OUT_TRUNCATE = 1 /* toward zero */
};

/* What the reported maximum (stats) is. With SHIFT and ROUNDED the reported sum is the one formed with that
 * shift; where p_frame is declared it is held to that frame by itself, too. */
enum mla_stats_max {
    MLA_STATS_SHIFT = 0,   /* exactly the shift the sum was formed with */
    MLA_STATS_ROUNDED = 1, /* that shift scaled anew, with at most arg_roundings roundings */
    MLA_STATS_OTHER = 2    /* another reference point not above the maximum: only max + log(sum) is
                              judged */
};

/*
 * The arithmetic model. Errors are relative unless said otherwise; u = 2^-24 for round-to-nearest
 * float32. All depths count roundings on the longest path.
 */
struct mla_model {
    double add_u;                 /* unit roundoff of additions: 2^-24; 2^-23 if truncating */
    struct mla_depth score_depth; /* roundings from a q*k product to the score, in any order */
    double product_u;             /* error of a q*k product; 0: exact (bf16 x bf16 in float32) */
    double score_u;               /* extra rounding of the finished score; 2^-8 for bf16 scores */
    int32_t arg_form;             /* enum mla_arg_form */
    int32_t arg_roundings;        /* roundings forming the exponential's argument, a rounded
                                     constant scale*log2(e) counted */
    double exp_error;             /* error of the exponential, of the rescale factor too */
    double exp_floor;             /* largest true exponential that may be returned as 0 */
    double exp_slope;           /* > 0: exp(0), and a rescale factor while the maximum stays, are 1
                                   exactly (alpha_u included), and the exponential's error at its
                                   computed argument x is at most exp_slope*|x| + 2 add_u as well;
                                   0: nothing is said of small arguments */
    double p_u;                 /* rounding of p before P*V: 0, 2^-8 nearest bf16, 2^-7 truncated */
    int32_t p_frame;            /* enum mla_p_frame */
    int32_t p_block_keys;       /* for MLA_P_FRAME_BLOCKS; 0: the K chunks, shard by shard */
    int32_t sum_rounded;        /* 1: the denominator adds the rounded p */
    struct mla_depth rescales;  /* most rescale factors one key's weight can meet, merges counted;
                                   a factor of exactly 1 is free when exp(0) is exactly 1 */
    double alpha_u;             /* extra rounding of the rescale factor; O and l share it */
    double rescale_scale_u;     /* error of the scale used inside a rescale; 2^-7 if cut to bf16 */
    struct mla_depth acc_depth; /* roundings from p*v to the finished O (the product if inexact,
                                   additions, rescale multiplies, merges); the same for the sum */
    double acc_u;               /* extra rounding of stored accumulators; 2^-8 for bf16 */
    struct mla_depth acc_extra; /* how many acc_u roundings are on the longest path */
    double pv_product_u;        /* error of a p*v product beyond add_u */
    int32_t div_roundings;      /* quotient 1; reciprocal and multiply 2 plus its error in u */
    int32_t flush;              /* 1: subnormal inputs, products, sums, results may become 0 */
    int32_t out_round;          /* enum mla_out_round */
    int32_t stats_max;          /* enum mla_stats_max */
    int32_t weights_ignore_v;   /* 1: p, m, rescale factors and l never depend on V's values */
    int32_t acc_stores;         /* enum mla_acc_stores */
    int32_t shard_block_keys;   /* ring, > 0: the kernel cuts each shard, from its first row, into
                                   chunks of so many rows whatever the call's k_chunk_size; these
                                   are the K chunks that p_block_keys 0 and block_keys 0 mean.
                                   0: the call's. Sparse: must be 0 */
};

/* Promises. What is not promised is not tested, and is counted as unsupported. */
enum mla_promise {
    MLA_PROMISE_REFUSES = 1u << 0,           /* every refusal, in order, before UNSUPPORTED */
    MLA_PROMISE_INDEX_CHECKED = 1u << 1,     /* bad top-k indices give MLA_ERR_INDEX */
    MLA_PROMISE_PAD_ZERO = 1u << 2,          /* pad rows and empty rows give +0, -inf, +0 */
    MLA_PROMISE_STATS = 1u << 3,             /* stats are written when asked for */
    MLA_PROMISE_NO_FUTURE_LEAK = 1u << 4,    /* a key hidden from a row never reaches it, be it NaN:
                                                with BIT_REPEAT no bit of the row depends on it */
    MLA_PROMISE_SCRATCH_UNTOUCHED = 1u << 5, /* gathered is written only where the ring says */
    MLA_PROMISE_BIT_REPEAT = 1u << 6,        /* the same call gives the same bits */
    MLA_PROMISE_BIT_THREADS = 1u << 7,       /* bits depend on no thread, core or link count */
    MLA_PROMISE_BIT_LAYOUT = 1u << 8,        /* flat = tiled, heads and batch may be permuted */
    MLA_PROMISE_BIT_SPELLING = 1u << 9, /* nor does it matter how a call is put: P absent or the
                                                same P given, one rank balanced or not, q_pos_offset
                                                absent or beyond all keys */
    MLA_PROMISE_BIT_SCALE = 1u << 10    /* 2^k V with the same scores gives 2^k times the output
                                                and the same statistics, bit for bit, where no number
                                                on the way is subnormal or overflows */
};
#define MLA_PROMISE_ALL 0x7ffu

/*
 * A kernel. Descriptors and the strings in them are static. ring and sparse return an enum
 * mla_status; message may be NULL or message_bytes 0, otherwise it is always terminated. A call
 * leaves the floating-point environment of its caller as it was, and no thread or process behind.
 */
struct mla_kernel {
    uint32_t abi;         /* MLA_KERNEL_ABI; another number is refused, naming both */
    uint32_t struct_size; /* sizeof(struct mla_kernel). ABI 1 is not released: a plug-in built with
                             an older header is refused with both sizes, never read as this one */
    const char *name;     /* [a-z0-9-]+ */
    uint64_t promises;    /* enum mla_promise */
    struct mla_model ring_model;
    struct mla_model sparse_model;
    bool (*usable)(void);                                    /* can it run on this CPU; NULL: yes */
    bool (*ring_supports)(const struct mla_ring_args *);     /* NULL: everything not refused */
    bool (*sparse_supports)(const struct mla_sparse_args *); /* NULL: everything not refused */
    int32_t (*ring)(const struct mla_ring_args *, char *message, size_t message_bytes);
    int32_t (*sparse)(const struct mla_sparse_args *, char *message, size_t message_bytes);
};

/*
 * The one symbol a plug-in exports: its kernels and how many they are. The array and the
 * descriptors stay valid for the life of the process.
 */
const struct mla_kernel *const *mla_plugin_kernels(size_t *kernels_n);

#ifdef __cplusplus
}
#endif

#endif
