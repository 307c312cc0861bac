/* SPDX-License-Identifier: Apache-2.0
 *
 * attend.h - the inner part of a kernel: one block of keys against a tile of query rows.
 *
 * Both operations are the same loop: for each tile of query rows, for each block of keys, scores,
 * one step of the softmax, and the weighted sum of the values. The operations (which rows, which
 * keys, in which order) are written once; a kernel supplies this step as a table of functions and
 * its arithmetic model as data. An online softmax goes through a row's keys once; one that needs
 * the row's maximum first goes through the same blocks in the same order twice. A key is one row of
 * `main` followed by one row of `rope` (the ring has no rope part); its value is the first value_n
 * columns of the main row.
 *
 * The running state of a row is (max, sum, out): max the largest unscaled score so far, sum the sum
 * of exp(scale*(s - max)), kept in one or more parts, out the sum of the same exponentials times
 * the values. It belongs to the row alone, so the result depends neither on tiles nor on threads.
 */
#ifndef MLA_IMPL_ATTEND_H
#define MLA_IMPL_ATTEND_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define MLA_ATTEND_ROWS   128 /* most query rows of a tile */
#define MLA_ATTEND_KEYS   512 /* most keys of a block a kernel may ask for */
#define MLA_ATTEND_PASSES 2   /* most passes over a row's keys */

/* Sizes that hold for all steps of a call. main_n and value_n are multiples of 32, rope_n >= 0. */
struct mla_attend_shape {
    int64_t main_n;
    int64_t rope_n;
    int64_t value_n; /* <= main_n */
    int64_t keys_n;  /* keys in the largest block */
    int64_t sums_n;  /* parts a row's sum is kept in: the kernel's */
    int64_t rows_n;  /* query rows of a full tile: the kernel's */
};

/*
 * A block of keys: key i is row index[i], or row i when index is NULL. Rows are dense. next, if not
 * NULL, are the next_n keys that will follow for the same rows, or, after their last, most likely
 * for other rows: whoever likes may fetch them ahead.
 */
struct mla_attend_keys {
    const uint16_t *main;
    const uint16_t *rope;
    const int32_t *index;
    const struct mla_attend_keys *next;
    int64_t next_n;
};

/* States of consecutive rows: max[r], sum[r*sums_n ..], out[r*value_n ..]. */
struct mla_attend_state {
    float *max;
    float *sum;
    float *out;
};

/* Before its first key a row has max = -inf and sums of 0; out need not be set. */
static inline void mla_attend_begin(const struct mla_attend_shape *shape,
                                    const struct mla_attend_state *state, int64_t row)
{
    state->max[row] = -INFINITY;
    for (int64_t i = 0; i < shape->sums_n; i++) {
        state->sum[row * shape->sums_n + i] = 0.0f;
    }
}

/*
 * Advance the states of the tile's rows 0 .. rows_n-1 by one block. Row r sees the first visible[r]
 * keys of it (0 .. keys_n); no other key takes part in its arithmetic, and a key that no row sees
 * is not read.
 */
typedef void mla_attend_block(const struct mla_attend_shape *shape, void *scratch, int64_t rows_n,
                              const int64_t *visible, const struct mla_attend_keys *keys,
                              float scale, const struct mla_attend_state *state);

struct mla_attend {
    int64_t sums_n;     /* parts a row's sum is kept in, >= 1 */
    int64_t rows_n;     /* query rows of a full tile, 1 .. MLA_ATTEND_ROWS */
    int64_t block_keys; /* keys of a full block, of a shard or of a list, at most MLA_ATTEND_KEYS;
                           0: the operation's own, k_chunk_size or MLA_SPARSE_BLOCK */

    /* Bytes of scratch one worker needs, aligned to 64; 0 when the size overflows. */
    size_t (*scratch_bytes)(const struct mla_attend_shape *shape);

    /* Take query row `row` of a tile into the scratch, in rising order; a tile may have fewer than
     * rows_n rows. Once for all blocks and passes; not always for a row that sees no key. */
    void (*query)(const struct mla_attend_shape *shape, void *scratch, int64_t row,
                  const uint16_t *main, const uint16_t *rope);

    /* The step of each pass; NULL for a pass the kernel does not need. */
    mla_attend_block *block[MLA_ATTEND_PASSES];

    /*
     * Normalise the out of a row that has met all its keys, in place and still in float32; returns
     * its sum. Of a row that met no key the sum is 0 and its out is left alone.
     */
    float (*finish)(const struct mla_attend_shape *shape, const struct mla_attend_state *state,
                    int64_t row);

    /* Round a finished row of value_n floats to bf16 and write it in the given column order (enum
     * mla_out_order); NULL: column by column, to nearest even. */
    void (*store)(const struct mla_attend_shape *shape, const float *row, int32_t out_order,
                  uint16_t *out);
};

static inline int64_t mla_attend_passes(const struct mla_attend *attend)
{
    return attend->block[1] != NULL ? 2 : 1;
}

extern const struct mla_attend mla_attend_scalar;
extern const struct mla_attend mla_attend_plain;
extern const struct mla_attend mla_attend_nki;
extern const struct mla_attend mla_attend_ttnn;
extern const struct mla_attend mla_attend_avx2;       /* MLA_HAS_AVX2 */
extern const struct mla_attend mla_attend_avx512bf16; /* MLA_HAS_AVX512BF16 */

#endif
