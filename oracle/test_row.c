/* SPDX-License-Identifier: Apache-2.0
 *
 * test_row.c - one attention row and a random stream for the oracle's own tests.
 */
#include "oracle/test_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *zeroed(size_t n, size_t bytes)
{
    void *memory = calloc(n, bytes);

    if (memory == NULL) {
        (void)fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return memory;
}

struct mla_oracle_test_row *mla_oracle_test_row_new(int64_t n, int64_t head_dim, int64_t head_dim_v,
                                                    float scale)
{
    struct mla_oracle_test_row *made = zeroed(1, sizeof *made);
    const int64_t rows = (n + 31) / 32 * 32;

    made->n = n;
    made->q_all = zeroed((size_t)(rows * head_dim), sizeof *made->q_all);
    made->kv = zeroed((size_t)(rows * head_dim), sizeof *made->kv);
    made->q = made->q_all + (n - 1) * head_dim;
    made->q_pointers[0] = made->q_all;
    made->kv_pointers[0] = made->kv;
    made->row.row = n - 1;
    made->args = (struct mla_ring_args){.struct_size = sizeof made->args,
                                        .ring_size = 1,
                                        .batch = 1,
                                        .heads = 1,
                                        .q_rows = rows,
                                        .kv_rows = rows,
                                        .kv_batch = 1,
                                        .kv_heads = 1,
                                        .kv_head_dim = head_dim,
                                        .gathered_rows = rows,
                                        .gathered_batch = 1,
                                        .head_dim = head_dim,
                                        .head_dim_v = head_dim_v,
                                        .logical_n = rows,
                                        .has_scale = scale > 0.0f,
                                        .scale = scale,
                                        .num_links = 1,
                                        .q_chunk_size = 32,
                                        .k_chunk_size = 32,
                                        .dim = 2,
                                        .q = made->q_pointers,
                                        .kv = made->kv_pointers};
    return made;
}

void mla_oracle_test_row_free(struct mla_oracle_test_row *row)
{
    free(row->kv);
    free(row->q_all);
    free(row);
}

uint16_t mla_oracle_test_bf16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float mla_oracle_test_value(uint16_t b)
{
    const uint32_t bits = (uint32_t)b << 16;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

uint64_t mla_oracle_test_bits(struct mla_oracle_test_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double mla_oracle_test_uniform(struct mla_oracle_test_random *random)
{
    return (double)(mla_oracle_test_bits(random) >> 11) * 0x1p-53;
}

/* Sum of twelve uniforms: close enough to normal, and the same everywhere. */
double mla_oracle_test_normal(struct mla_oracle_test_random *random)
{
    double sum = -6.0;

    for (int i = 0; i < 12; i++) {
        sum += mla_oracle_test_uniform(random);
    }
    return sum;
}
