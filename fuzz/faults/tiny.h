/* SPDX-License-Identifier: Apache-2.0
 *
 * tiny.h - small hand-made calls with their tensors, for tests: a table of ring and sparse shapes.
 *
 * Everything that a call must not read is NaN: cache rows at positions >= logical_n, other slots,
 * pad queries, gathered, cache rows and index slots that no row names. Outputs start as a pattern.
 * Test support, not part of any library.
 */
#ifndef MLA_FAULTS_TINY_H
#define MLA_FAULTS_TINY_H

#include "impl/mla.h"

#define MLA_TINY_POISON 0x7fa5u /* bf16 NaN */

/* The shapes: name and arguments without pointers, NULL-terminated by name. */
struct mla_tiny_ring_shape {
    const char *name;
    struct mla_ring_args args;
};
struct mla_tiny_sparse_shape {
    const char *name;
    struct mla_sparse_args args;
};
const struct mla_tiny_ring_shape *mla_tiny_ring_shapes(size_t *shapes_n);
const struct mla_tiny_sparse_shape *mla_tiny_sparse_shapes(size_t *shapes_n);

/* Two calls with equal shapes get equal inputs. Aborts without memory. */
struct mla_tiny_ring {
    struct mla_ring_args args;
    uint16_t *q[MLA_RING_SIZE_MAX];
    uint16_t *kv[MLA_RING_SIZE_MAX];
    uint16_t *gathered[MLA_RING_SIZE_MAX];
    uint16_t *out[MLA_RING_SIZE_MAX];
    float *stats[MLA_RING_SIZE_MAX];
    size_t q_n, kv_n, gathered_n, out_n, stats_n; /* elements per rank */
};
struct mla_tiny_sparse {
    struct mla_sparse_args args;
    uint16_t *q_lift, *q_pe, *c_kv, *k_pe;
    int32_t *topk;
    uint16_t *out;
    float *stats;
    size_t out_n, stats_n; /* elements */
};
struct mla_tiny_ring *mla_tiny_ring_new(const struct mla_ring_args *shape);
void mla_tiny_ring_free(struct mla_tiny_ring *tiny);
struct mla_tiny_sparse *mla_tiny_sparse_new(const struct mla_sparse_args *shape);
void mla_tiny_sparse_free(struct mla_tiny_sparse *tiny);

/*
 * A ring call of one valid key whose values are awkward bit patterns (subnormals, powers of two,
 * long fractions), and: is every output row those patterns exactly?
 */
struct mla_tiny_ring *mla_tiny_ring_one_key(void);
bool mla_tiny_ring_is_copy(const struct mla_tiny_ring *tiny);

/* Reset the outputs to the pattern. */
void mla_tiny_ring_clear(struct mla_tiny_ring *tiny);
void mla_tiny_sparse_clear(struct mla_tiny_sparse *tiny);

/*
 * Compare the outputs with the naive reference: |y - o| <= 2^-8 |o| + slack for every element (2^-8
 * bounds the bf16 rounding), +0 exactly in rows without keys, and with_stats |max + log(sum) - lse|
 * <= 1e-4 and |max - true maximum| <= 1e-4. Returns how many elements (stats included) fail;
 * NaN fails. Sparse: every row_step-th query.
 */
int64_t mla_tiny_ring_wrong(const struct mla_tiny_ring *tiny, double slack, bool with_stats);
int64_t mla_tiny_sparse_wrong(const struct mla_tiny_sparse *tiny, double slack, bool with_stats,
                              int64_t row_step);

/* Does every row of every gathered buffer hold poison still, or the row of kv whose place it is? */
bool mla_tiny_ring_scratch_allowed(const struct mla_tiny_ring *tiny);

#endif
