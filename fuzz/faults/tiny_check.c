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
#include <string.h>

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

/* The row of kv that may stand at a row of gathered, NULL: none. Slabs whose first key (rank 0's) is
 * not valid do not travel with kv_actual_isl. */
static const uint16_t *source_row(const struct mla_tiny_ring *tiny, int64_t batch, int64_t row)
{
    const struct mla_ring_args *a = &tiny->args;
    int64_t source = row / a->kv_rows, local = row % a->kv_rows;
    int64_t slot = a->has_slot ? a->kv_cache_batch_idx : batch;
    bool is_its_place = !a->has_slot || batch == (a->gathered_batch == a->kv_batch ? slot : 0);
    bool travels = !a->has_prior || local / a->q_rows * a->ring_size * a->q_rows < a->logical_n;
    if (source >= a->ring_size || !is_its_place || !travels) {
        return NULL;
    }
    return tiny->kv[source] + (slot * a->kv_rows + local) * a->head_dim;
}

static bool is_poison(const uint16_t *row, int64_t columns_n)
{
    for (int64_t c = 0; c < columns_n; c++) {
        if (row[c] != MLA_TINY_POISON) {
            return false;
        }
    }
    return true;
}

bool mla_tiny_ring_scratch_allowed(const struct mla_tiny_ring *tiny)
{
    const struct mla_ring_args *a = &tiny->args;
    int64_t rows_n = a->gathered_batch * a->gathered_rows;
    for (int64_t at = 0; at < a->ring_size * rows_n; at++) {
        const uint16_t *row = tiny->gathered[at / rows_n] + at % rows_n * a->head_dim;
        const uint16_t *source =
            source_row(tiny, at % rows_n / a->gathered_rows, at % a->gathered_rows);
        bool is_source = source && memcmp(row, source, (size_t)a->head_dim * sizeof *row) == 0;
        if (!is_source && !is_poison(row, a->head_dim)) {
            return false;
        }
    }
    return true;
}
