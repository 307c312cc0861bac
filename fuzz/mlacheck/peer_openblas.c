/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_openblas.c - OpenBLAS in float32: widen while gathering, sgemm, softmax, sgemm, round.
 *
 * The library has no softmax: the one here is written for vector units, with an exponential good to
 * 1e-6, so that it costs what it would in a pipeline somebody cared for.
 */
#include "fuzz/mlacheck/peer.h"
#include "fuzz/mlacheck/peer_gather.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 16

struct stream {
    uint16_t *rows;                 /* the query, before it is widened */
    float *q, *k, *p, *inverse, *o; /* [heads][width], [topk][width], [heads][topk], .. */
};

static void widen(const uint16_t *from, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(&to[i], &bits, sizeof bits);
    }
}

/* To nearest even; no NaN comes here. */
static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* exp(x), x <= 0: 2^n times a polynomial on [-1/2, 1/2]; what is below 2^-126 becomes that. */
static inline float exponential(float x)
{
    float y = x * 1.44269504f;
    y = y < -126 ? -126 : y;
    float shifted = y + 0x1.8p23f; /* the integer part, in the last bits */
    float f = y - (shifted - 0x1.8p23f);
    float value = 1.3333558e-3f;
    uint32_t bits;
    value = value * f + 9.6181291e-3f;
    value = value * f + 5.5504109e-2f;
    value = value * f + 2.4022651e-1f;
    value = value * f + 6.9314718e-1f;
    value = value * f + 1;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;
    float power;
    memcpy(&power, &bits, sizeof power);
    return value * power;
}

/* Scores to weights, not normalised, in place; returns their sum. n is a multiple of LANES. */
static inline __attribute__((always_inline)) float softmax_body(float *s, int64_t n)
{
    float most[LANES], sum[LANES] = {0};
    memcpy(most, s, sizeof most);
    for (int64_t i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++)
            most[j] = s[i + j] > most[j] ? s[i + j] : most[j];
    for (int j = 1; j < LANES; j++)
        most[0] = most[j] > most[0] ? most[j] : most[0];
    float m = most[0];
    for (int64_t i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            s[i + j] = exponential(s[i + j] - m);
            sum[j] += s[i + j];
        }
    for (int j = 1; j < LANES; j++)
        sum[0] += sum[j];
    return sum[0];
}

static float softmax_plain(float *s, int64_t n)
{
    return softmax_body(s, n);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) static float softmax_wide(float *s,
                                                                                        int64_t n)
{
    return softmax_body(s, n);
}

static float softmax(float *s, int64_t n)
{
    static int wide = -1; /* written by whoever comes first, always the same */
    int known = __atomic_load_n(&wide, __ATOMIC_RELAXED);
    if (known < 0) {
        known = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        __atomic_store_n(&wide, known, __ATOMIC_RELAXED);
    }
    return known ? softmax_wide(s, n) : softmax_plain(s, n);
}
#else
static float softmax(float *s, int64_t n)
{
    return softmax_plain(s, n);
}
#endif

static void close_stream(void *stream)
{
    struct stream *s = stream;
    free(s->rows);
    free(s->q);
    free(s->k);
    free(s->p);
    free(s->inverse);
    free(s->o);
    free(s);
}

static void *open_stream(const struct mla_sparse_args *args, char *error, size_t error_bytes)
{
    struct stream *s = calloc(1, sizeof *s);
    size_t width = (size_t)(args->latent + args->rope), heads = (size_t)args->heads;
    size_t keys = (size_t)args->topk;
    openblas_set_num_threads(1); /* of each caller */
    snprintf(error, error_bytes, "out of memory");
    if (s == NULL)
        return NULL;
    s->rows = malloc(heads * width * sizeof *s->rows);
    s->q = malloc(heads * width * sizeof(float));
    s->k = malloc(keys * width * sizeof(float));
    s->p = malloc(heads * keys * sizeof(float));
    s->inverse = malloc(heads * sizeof(float));
    s->o = malloc(heads * (size_t)args->latent * sizeof(float));
    if (s->rows != NULL && s->q != NULL && s->k != NULL && s->p != NULL && s->inverse != NULL &&
        s->o != NULL)
        return s;
    close_stream(s);
    return NULL;
}

static bool run_stream(void *stream, const struct mla_sparse_args *a, int64_t first, int64_t n,
                       uint16_t *out)
{
    struct stream *s = stream;
    int64_t latent = a->latent, width = latent + a->rope, heads = a->heads, keys = a->topk;
    int w = (int)width, h = (int)heads, k = (int)keys, l = (int)latent;
    for (int64_t query = first; query < first + n; query++) {
        const int32_t *index = a->topk_indices + query * keys;
        mla_peer_query(a, query, s->rows);
        widen(s->rows, heads * width, s->q);
        for (int64_t i = 0; i < keys; i++) {
            widen(a->c_kv + index[i] * latent, latent, s->k + i * width);
            widen(a->k_pe + index[i] * a->rope, a->rope, s->k + i * width + latent);
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h, k, w, a->softmax_scale, s->q, w,
                    s->k, w, 0, s->p, k);
        for (int64_t head = 0; head < heads; head++)
            s->inverse[head] = 1 / softmax(s->p + head * keys, keys);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h, l, k, 1, s->p, k, s->k, w, 0,
                    s->o, l);
        for (int64_t head = 0; head < heads; head++)
            for (int64_t c = 0; c < latent; c++)
                out[(query * heads + head) * latent + c] =
                    narrow(s->o[head * latent + c] * s->inverse[head]);
    }
    return true;
}

const struct mla_peer_code mla_peer_module = {open_stream, run_stream, close_stream};
