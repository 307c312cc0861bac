/* SPDX-License-Identifier: Apache-2.0
 *
 * naive.c - the two operations in double, one row at a time.
 *
 * A softmax by the book in three loops: all scores, their maximum, the weighted mean. Error about
 * keys * 2^-53 relative, far below the bf16 rounding that its users compare with.
 */
#include "fuzz/faults/naive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double mla_naive_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value = 0.0f;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

void mla_naive_key_place(const struct mla_ring_args *args, int64_t position, int64_t *rank,
                         int64_t *row)
{
    int64_t size = args->ring_size;
    if (args->q_rows < args->kv_rows) {
        *rank = position / args->q_rows % size;
        *row = position / (size * args->q_rows) * args->q_rows + position % args->q_rows;
    } else if (args->is_balanced) {
        int64_t half = args->kv_rows / 2;
        int64_t piece = position / half;
        *rank = piece < size ? piece : 2 * size - 1 - piece;
        *row = (piece < size ? 0 : half) + position % half;
    } else {
        *rank = position / args->kv_rows;
        *row = position % args->kv_rows;
    }
}

int64_t mla_naive_query_position(const struct mla_ring_args *args, int64_t rank, int64_t row)
{
    if (args->q_rows < args->kv_rows && !args->has_prior) {
        int64_t end = (args->logical_n + 31) / 32 * 32;
        return end - (args->ring_size - rank) * args->q_rows + row;
    }
    int64_t first = args->has_prior ? args->kv_actual_isl : 0;
    int64_t end = args->has_prior ? args->logical_n : args->ring_size * args->kv_rows;
    int64_t before = 0; /* positions of this rank that come earlier */
    for (int64_t g = first; g < end; g++) {
        int64_t owner = 0;
        int64_t stored = 0;
        mla_naive_key_place(args, g, &owner, &stored);
        if (owner == rank && (args->has_prior ? before == row : stored == row)) {
            return g;
        }
        before += owner == rank;
    }
    return -1;
}

struct softmax {
    double *scores;
    const uint16_t **values;
    int64_t n;
};

static double dot(const uint16_t *a, const uint16_t *b, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += mla_naive_bf16(a[i]) * mla_naive_bf16(b[i]);
    }
    return sum;
}

static struct mla_naive_result weighted_mean(const struct softmax *s, int64_t columns_n, double *o)
{
    for (int64_t c = 0; c < columns_n; c++) {
        o[c] = 0.0;
    }
    struct mla_naive_result result = {s->n, -(double)INFINITY, -(double)INFINITY};
    if (s->n == 0) {
        return result;
    }
    double max = s->scores[0];
    for (int64_t j = 1; j < s->n; j++) {
        max = fmax(max, s->scores[j]);
    }
    double sum = 0.0;
    for (int64_t j = 0; j < s->n; j++) {
        double weight = exp(s->scores[j] - max);
        sum += weight;
        for (int64_t c = 0; c < columns_n; c++) {
            o[c] += weight * mla_naive_bf16(s->values[j][c]);
        }
    }
    for (int64_t c = 0; c < columns_n; c++) {
        o[c] /= sum;
    }
    result.max = max;
    result.lse = max + log(sum);
    return result;
}

static struct softmax softmax_new(int64_t most)
{
    struct softmax s = {calloc((size_t)most, sizeof(double)),
                        calloc((size_t)most, sizeof(const uint16_t *)), 0};
    if (!s.scores || !s.values) {
        abort(); /* test support: a test without memory is no test */
    }
    return s;
}

static void softmax_free(struct softmax *s)
{
    free((void *)s->values);
    free(s->scores);
}

struct mla_naive_result mla_naive_ring(const struct mla_ring_args *args, int64_t rank,
                                       int64_t batch, int64_t head, int64_t row, double *o)
{
    double scale =
        args->has_scale ? (double)args->scale : (double)(float)(1.0 / sqrt((double)args->head_dim));
    int64_t width = args->head_dim;
    const uint16_t *q = args->q[rank] + ((batch * args->heads + head) * args->q_rows + row) * width;
    int64_t kv_batch = args->has_slot ? args->kv_cache_batch_idx : batch;
    int64_t pos_q = mla_naive_query_position(args, rank, row);
    struct softmax s = softmax_new(args->logical_n);
    for (int64_t g = 0; g <= pos_q && g < args->logical_n; g++) {
        int64_t source = 0;
        int64_t stored = 0;
        mla_naive_key_place(args, g, &source, &stored);
        const uint16_t *k = args->kv[source] + (kv_batch * args->kv_rows + stored) * width;
        s.scores[s.n] = scale * dot(q, k, width);
        s.values[s.n++] = k;
    }
    struct mla_naive_result result = weighted_mean(&s, args->head_dim_v, o);
    softmax_free(&s);
    return result;
}

int64_t mla_naive_listed(const struct mla_sparse_args *args, int64_t q, int64_t j)
{
    if (!args->topk_tiled) {
        return args->topk_indices[q * args->topk + j];
    }
    int64_t at[4] = {q / 128, q % 128 / 8, 16 * (q % 8) + j % 16, j / 16};
    return args->topk_indices[((at[0] * 16 + at[1]) * 128 + at[2]) * (args->topk / 16) + at[3]];
}

struct mla_naive_result mla_naive_sparse(const struct mla_sparse_args *args, int64_t q,
                                         int64_t head, double *o)
{
    int64_t plane = q * args->heads + head;
    int64_t listed_n = args->dense ? args->keys : args->topk;
    struct softmax s = softmax_new(listed_n);
    for (int64_t j = 0; j < listed_n; j++) {
        int64_t index = args->dense ? j : mla_naive_listed(args, q, j);
        int64_t behind = index - q; /* must not exceed the offset; both sides are small or exact */
        if ((args->has_q_pos_offset && behind > args->q_pos_offset) ||
            (args->dense && !args->has_q_pos_offset && behind > 0)) {
            continue;
        }
        const uint16_t *k = args->c_kv + index * args->latent;
        double score =
            dot(args->q_lift + plane * args->latent, k, args->latent) +
            dot(args->q_pe + plane * args->rope, args->k_pe + index * args->rope, args->rope);
        s.scores[s.n] = (double)args->softmax_scale * score;
        s.values[s.n++] = k;
    }
    struct mla_naive_result result = weighted_mean(&s, args->latent, o);
    softmax_free(&s);
    return result;
}
