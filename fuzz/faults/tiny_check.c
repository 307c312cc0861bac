/* SPDX-License-Identifier: Apache-2.0
 *
 * tiny_check.c - outputs of the small hand-made calls against the naive reference.
 *
 * A loose check that honest kernels pass by a wide margin and that catches a wrong key, column or
 * weight; the certified interval is the oracle's business. Comparisons are written so that NaN
 * fails.
 */
#include "fuzz/faults/tiny.h"

#include "fuzz/faults/naive.h"

#include <math.h>
#include <stdlib.h>

static double *row_new(int64_t columns_n)
{
    double *o = calloc((size_t)columns_n, sizeof *o);
    if (!o) {
        abort(); /* test support: a test without memory is no test */
    }
    return o;
}

static int64_t value_wrong(uint16_t y, double o, bool empty, double slack)
{
    if (empty) {
        return y != 0;
    }
    return !(fabs(mla_naive_bf16(y) - o) <= 0x1p-8 * fabs(o) + slack);
}

static int64_t stats_wrong(float max, float sum, const struct mla_naive_result *expected)
{
    if (expected->keys_n == 0) {
        return !(isinf(max) && max < 0.0f) + !(sum == 0.0f && !signbit(sum));
    }
    double lse = (double)max + log((double)sum);
    return !(fabs(lse - expected->lse) <= 1e-4) + !(fabs((double)max - expected->max) <= 1e-4);
}

int64_t mla_tiny_ring_wrong(const struct mla_tiny_ring *tiny, double slack, bool with_stats)
{
    const struct mla_ring_args *a = &tiny->args;
    double *o = row_new(a->head_dim_v);
    int64_t wrong_n = 0;
    for (int64_t at = 0; at < a->ring_size * a->batch * a->heads * a->q_rows; at++) {
        int64_t r = at % a->q_rows;
        int64_t plane = at / a->q_rows % (a->batch * a->heads);
        int64_t rank = at / a->q_rows / (a->batch * a->heads);
        struct mla_naive_result expected =
            mla_naive_ring(a, rank, plane / a->heads, plane % a->heads, r, o);
        for (int64_t c = 0; c < a->head_dim_v; c++) {
            uint16_t y = tiny->out[rank][(plane * a->q_rows + r) * a->head_dim_v + c];
            wrong_n += value_wrong(y, o[c], expected.keys_n == 0, slack);
        }
        if (with_stats) {
            const float *stats = tiny->stats[rank] + plane * 2 * a->q_rows;
            wrong_n += stats_wrong(stats[r], stats[a->q_rows + r], &expected);
        }
    }
    free(o);
    return wrong_n;
}

int64_t mla_tiny_sparse_wrong(const struct mla_tiny_sparse *tiny, double slack, bool with_stats,
                              int64_t row_step)
{
    const struct mla_sparse_args *a = &tiny->args;
    double *o = row_new(a->latent);
    int64_t wrong_n = 0;
    for (int64_t plane = 0; plane < a->queries * a->heads; plane++) {
        if (plane / a->heads % row_step != 0 && plane / a->heads != a->queries - 1) {
            continue;
        }
        struct mla_naive_result expected =
            mla_naive_sparse(a, plane / a->heads, plane % a->heads, o);
        for (int64_t c = 0; c < a->latent; c++) {
            int64_t l = a->out_order == MLA_OUT_NATURAL ? c : 4 * (c % 128) + c / 128;
            wrong_n +=
                value_wrong(tiny->out[plane * a->latent + c], o[l], expected.keys_n == 0, slack);
        }
        if (with_stats) {
            wrong_n += stats_wrong(tiny->stats[plane * 2], tiny->stats[plane * 2 + 1], &expected);
        }
    }
    free(o);
    return wrong_n;
}

bool mla_tiny_ring_scratch_untouched(const struct mla_tiny_ring *tiny)
{
    for (int64_t rank = 0; rank < tiny->args.ring_size; rank++) {
        for (size_t i = 0; i < tiny->gathered_n; i++) {
            if (tiny->gathered[rank][i] != MLA_TINY_POISON) {
                return false;
            }
        }
    }
    return true;
}
