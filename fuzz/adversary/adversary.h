/* SPDX-License-Identifier: Apache-2.0
 *
 * adversary.h - kernels that do exactly as much wrong as their model allows.
 *
 * Each follows a declared arithmetic to the letter but chooses what the declaration leaves open:
 * the direction and size of every rounding, the order of keys, blocks and sums, what is flushed.
 * It chooses at random, or against one output element of each row. The verdict may accuse none of
 * them: that is what makes it a theorem about all kernels of that model, and `mlacheck selfcheck`
 * tests it. The closer they come to their bound, the less the bound gives away.
 *
 * A blind one forms its weights without looking at V, as weights_ignore_v promises and the
 * row-energy test assumes; what it does to the sums over V it may choose in their sight. All others
 * do not make that promise.
 *
 * Cheats are the control: adversaries that exceed what they declare, and must be accused.
 */
#ifndef MLA_ADVERSARY_ADVERSARY_H
#define MLA_ADVERSARY_ADVERSARY_H

#include "impl/mla_kernel.h"

/* How a score is summed. */
enum mla_adversary_score {
    MLA_SCORE_SEQUENTIAL = 0, /* one after the other; greedily in the order that rounds most */
    MLA_SCORE_LANES,          /* 16 lanes, then pairwise */
    MLA_SCORE_TREE            /* pairwise */
};

#define MLA_ADVERSARY_CHUNKS       (-1) /* block_keys: the model's K chunks, shard by shard */
#define MLA_ADVERSARY_SPARSE_CHUNK 128  /* and the sparse operation's, without p_block_keys */
#define MLA_ADVERSARY_LANES        16   /* lanes of MLA_SCORE_LANES */
#define MLA_ADVERSARY_PARTS        4    /* most states that are merged */
#define MLA_ADVERSARY_LEVELS       16   /* of a pairwise sum: blocks of up to 2^15 keys */

/* What is done, beside the model's numbers. */
struct mla_adversary_plan {
    int32_t block_keys;  /* of the online softmax; 0: two-pass; MLA_ADVERSARY_CHUNKS */
    int32_t parts;       /* states kept apart and merged at the end; 0 and 1: one */
    int32_t score;       /* enum mla_adversary_score */
    bool is_tree;        /* the keys of a block are summed pairwise, then added */
    bool restarts;       /* a block is summed from nothing and then added, all by fused
                            multiply-adds: products are exact, and alpha*out + sum rounds once */
    bool has_free_order; /* keys in any order; else as listed */
    bool is_log2;        /* scale*log2(e) is one rounded constant, and exp2 the exponential */
    bool peeks;          /* blind by its plan, yet weights are pushed where V is longest: a cheat */
    bool is_blind;       /* weights are chosen without V */
    bool stores_twice;   /* accumulators of few bits are stored after a rescale too */
    bool refines;        /* aims a second time, from where the first shot went */
};

struct mla_adversary {
    const char *what; /* one sentence */
    struct mla_adversary_plan plan;
    const struct mla_model *uses; /* NULL: what the kernel declares. Cheats: what they do */
    struct mla_kernel kernel;
};

/* The tables; static. Kernels' names are unique over both. */
const struct mla_adversary *const *mla_adversaries(size_t *adversaries_n);
const struct mla_adversary *const *mla_adversary_cheats(size_t *cheats_n);

/*
 * The operations by an adversary, for every call that must be accepted; calls that must be refused
 * are not recognised. Threads, cores and links are ignored, `gathered` is not touched. All choices
 * are a function of the shape, the row and the query's bits, so the same call gives the same bits.
 * MLA_OK, or MLA_ERR_NOMEM with nothing promised about the outputs. Thread-safe.
 */
int32_t mla_adversary_ring(const struct mla_adversary *adversary, const struct mla_ring_args *args,
                           char *message, size_t message_bytes);
int32_t mla_adversary_sparse(const struct mla_adversary *adversary,
                             const struct mla_sparse_args *args, char *message,
                             size_t message_bytes);

#endif
