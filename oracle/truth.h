/* SPDX-License-Identifier: Apache-2.0
 *
 * truth.h - the inside of struct mla_truth, and how it is made.
 *
 * gather.c finds the tensors' rows that belong to one output row, attention.c (fast) or definition.c
 * (plain) evaluates the definition on them, and the files of the bound read the result. Numbers
 * marked "upper" are never below the real value they stand for.
 */
#ifndef MLA_ORACLE_TRUTH_H
#define MLA_ORACLE_TRUTH_H

#include "oracle/oracle.h"

#include <mpfr.h>

/*
 * One query row and its keys. A row has two parts (ring: head_dim columns and none; sparse: latent
 * and rope); the value of a key is the first columns_n columns of its first part.
 */
struct mla_oracle_input {
    const uint16_t *query[2];
    const uint16_t **keys[2]; /* keys_n pointers for each part; not owned */
    int64_t part_n[2];
    int64_t keys_n;
    int64_t columns_n;
    int64_t chunk_keys; /* the call's k_chunk_size; 0: sparse, which has no shards */
    int64_t shards_n;
    int64_t shard_n[MLA_RING_SIZE_MAX]; /* visible keys by shard, in the order of the schedule */
    float scale;                        /* sigma */
    bool is_pad;                        /* the row holds no token: its query is not read */
};

struct mla_truth {
    int32_t state;                 /* enum mla_row_state */
    struct mla_oracle_input input; /* what it was made from; the arrays of keys are owned */
    int64_t keys_n;
    int64_t width;
    int64_t columns_n;
    bool is_ring;
    double scale;
    bool has_subnormal_value; /* false: no value is subnormal */

    /* Per key j, state OK only. */
    const uint16_t **value; /* V row: input.keys[0] */
    double *magnitude;      /* scale * sum_i |q_i k_ji|, upper */
    double *lost;           /* the part of it where q_i or k_ji is subnormal, upper */
    double *score;          /* |x_j|, x_j = scale * sum_i q_i k_ji, upper */
    double *gap;            /* M - x_j, upper and at most 1 + 2^-52 times too large */
    double *weight;         /* w_j, upper, at most 1 + 2^-49 times too large, at least 2^-600 */

    /* The i-th key that the ring's schedule visits: input.shard_n[0] keys of the first shard by local
     * row, then the next shard's. NULL: in the order of their index. */
    int64_t *visit;

    /* Per column l, state OK only. */
    double *out;            /* o_l */
    double *out_radius;     /* |out - o_l| at most */
    double *out_low;        /* out + out_low is o_l .. */
    double *out_low_radius; /* .. up to this: at most 2^-64 sum_j w_j|v_jl|, or 2^-190 */
    double *abs_value;      /* sum_j |v_jl|, upper */

    double max;         /* M, nearest */
    double log_sum_exp; /* nearest to exact_lse */
    double log_sum;     /* ln Z, the double nearest to a number within 2^-62 of it */
    bool has_exact;     /* the two below are initialised */
    mpfr_t exact_max;   /* M, exact */
    mpfr_t exact_lse;   /* M + ln Z, within 2^-62 (1 + |M + ln Z|) */
};

/* Smallest weight stored: keeps products of weights and bf16 values out of the subnormal doubles.
 */
#define MLA_ORACLE_WEIGHT_MIN 0x1p-600

/*
 * x, the result of at most n operations on non-negative doubles that are themselves upper bounds,
 * made an upper bound. Each operation to nearest loses at most a factor 1 - 2^-53, so n of them and
 * the product formed here lose less than (1 - 2^-53)^(n+1) > 1/(1 + (n+2) 2^-52) for n < 2^50; the
 * constant is representable. Exact zero stays zero. Needs results in the normal range, or zero.
 */
static inline double mla_oracle_up(double x, int64_t n)
{
    return x * (1.0 + (double)(n + 2) * 0x1p-52);
}

/* The same downward. */
static inline double mla_oracle_down(double x, int64_t n)
{
    return x * (1.0 - (double)(n + 2) * 0x1p-52);
}

/* MPFR's exponent range and flags belong to the thread's user; inside the oracle the full range. */
struct mla_oracle_mpfr_state {
    mpfr_exp_t emin;
    mpfr_exp_t emax;
    mpfr_flags_t flags;
};
struct mla_oracle_mpfr_state mla_oracle_mpfr_enter(void);
void mla_oracle_mpfr_leave(const struct mla_oracle_mpfr_state *state);

/* truth.c: what input says by itself; the arrays of a row with keys (zeroed). */
void mla_oracle_truth_begin(const struct mla_oracle_input *input, struct mla_truth *truth);
bool mla_oracle_truth_allocate(struct mla_truth *truth);

/*
 * chunks.c: the K chunks of a ring's row under a model. The truth is made once and judged under many
 * models, each of which may cut the shards in its own way (shard_block_keys).
 *
 * Returns how many chunks have a visible key; chunk, if it is not NULL, gets for the i-th key visited
 * the number of its chunk among those, 0, 1, .. A sparse row has none: returns -1, writes nothing.
 */
int64_t mla_oracle_chunks(const struct mla_truth *truth, const struct mla_model *model,
                          int64_t *chunk);

/* Evaluate the definition on input into a zeroed truth. MLA_OK, _NOMEM, or _INTERNAL (a sum that
 * must be exact was not). On error the caller frees what there is with mla_truth_free. */
int32_t mla_oracle_define(const struct mla_oracle_input *input, struct mla_truth *truth);

/* The same fast. MLA_OK or _NOMEM; *is_fine false: the radii are wider than struct mla_truth
 * promises, and the truth must be made by mla_oracle_define instead. */
int32_t mla_oracle_attend(const struct mla_oracle_input *input, struct mla_truth *truth,
                          bool *is_fine);

#endif
