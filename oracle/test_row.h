/* SPDX-License-Identifier: Apache-2.0
 *
 * test_row.h - one attention row for the oracle's own tests: a ring of one rank whose last row sees
 * exactly the keys that a test wrote down.
 */
#ifndef MLA_ORACLE_TEST_ROW_H
#define MLA_ORACLE_TEST_ROW_H

#include "oracle/oracle.h"

/* A call of one rank, batch and head; row n-1 sees keys 0 .. n-1. */
struct mla_oracle_test_row {
    struct mla_ring_args args;
    struct mla_row row;
    int64_t n;
    uint16_t *q;  /* the query row, head_dim numbers */
    uint16_t *kv; /* [n rows or more][head_dim] */
    uint16_t *q_all;
    const uint16_t *q_pointers[1];
    const uint16_t *kv_pointers[1];
};

/* Zeroed tensors for n keys. scale 0: absent. Ends the test program if memory is short. */
struct mla_oracle_test_row *mla_oracle_test_row_new(int64_t n, int64_t head_dim, int64_t head_dim_v,
                                                    float scale);
void mla_oracle_test_row_free(struct mla_oracle_test_row *row);

/* bf16 nearest to x, by shifting bits: independent of bf16.c. x a finite binary32. */
uint16_t mla_oracle_test_bf16(float x);
float mla_oracle_test_value(uint16_t b);

/* A counter-based random stream (SplitMix64): uniform bits, in [0, 1), and near N(0, 1). */
struct mla_oracle_test_random {
    uint64_t state;
};
uint64_t mla_oracle_test_bits(struct mla_oracle_test_random *random);
double mla_oracle_test_uniform(struct mla_oracle_test_random *random);
double mla_oracle_test_normal(struct mla_oracle_test_random *random);

#endif
