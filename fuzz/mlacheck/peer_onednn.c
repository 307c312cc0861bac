/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_onednn.c - oneDNN (2.x): matmul of bf16 into float32, softmax into bf16, matmul into bf16.
 *
 * The keys are the gathered rows transposed, the values their first columns: strides say so, and
 * nothing is copied but by the library itself. The plans (primitives) and all memory are a stream's
 * own, made once. The library's threads are OpenMP's; a stream is told to have one.
 */
#ifdef __linux__
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif

#include "fuzz/mlacheck/peer.h"
#include "fuzz/mlacheck/peer_gather.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Q, ROWS_AS_KEYS, SCORES, P, ROWS_AS_VALUES, OUT, MEMORIES_N };
enum { QK, SOFTMAX, PV, STEPS_N };

struct stream {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t steps[STEPS_N];
    dnnl_memory_desc_t layouts[MEMORIES_N];
    dnnl_memory_t memories[MEMORIES_N];
    uint16_t *q, *rows, *p;
    float *scores;
};

/* In the calling thread, whichever OpenMP the library came with; without one there are no threads. */
static void one_thread(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    void (*set)(int);
    if (symbol == NULL)
        return;
    memcpy(&set, &symbol, sizeof set);
    set(1);
}

static bool layout(dnnl_memory_desc_t *to, int64_t rows, int64_t columns, dnnl_data_type_t type,
                   int64_t row_stride, int64_t column_stride)
{
    const dnnl_dims_t dims = {rows, columns}, strides = {row_stride, column_stride};
    return dnnl_memory_desc_init_by_strides(to, 2, dims, type, strides) == dnnl_success;
}

static bool layouts(struct stream *s, const struct mla_sparse_args *a)
{
    int64_t width = a->latent + a->rope, heads = a->heads, keys = a->topk;
    return layout(&s->layouts[Q], heads, width, dnnl_bf16, width, 1) &&
           layout(&s->layouts[ROWS_AS_KEYS], width, keys, dnnl_bf16, 1, width) &&
           layout(&s->layouts[SCORES], heads, keys, dnnl_f32, keys, 1) &&
           layout(&s->layouts[P], heads, keys, dnnl_bf16, keys, 1) &&
           layout(&s->layouts[ROWS_AS_VALUES], keys, a->latent, dnnl_bf16, width, 1) &&
           layout(&s->layouts[OUT], heads, a->latent, dnnl_bf16, a->latent, 1);
}

/* A plan from its description; attr may be NULL. */
static bool plan(struct stream *s, int step, const void *what, dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t desc;
    if (dnnl_primitive_desc_create(&desc, what, attr, s->engine, NULL) != dnnl_success)
        return false;
    bool ok = dnnl_primitive_create(&s->steps[step], desc) == dnnl_success;
    dnnl_primitive_desc_destroy(desc);
    return ok;
}

static bool plans(struct stream *s, float scale)
{
    dnnl_matmul_desc_t product;
    dnnl_softmax_v2_desc_t softmax;
    dnnl_primitive_attr_t attr;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success)
        return false;
    bool ok =
        dnnl_primitive_attr_set_output_scales(attr, 1, 0, &scale) == dnnl_success &&
        dnnl_matmul_desc_init(&product, &s->layouts[Q], &s->layouts[ROWS_AS_KEYS], NULL,
                              &s->layouts[SCORES]) == dnnl_success &&
        plan(s, QK, &product, attr) &&
        dnnl_softmax_v2_forward_desc_init(&softmax, dnnl_forward_inference, dnnl_softmax_accurate,
                                          &s->layouts[SCORES], &s->layouts[P], 1) == dnnl_success &&
        plan(s, SOFTMAX, &softmax, NULL) &&
        dnnl_matmul_desc_init(&product, &s->layouts[P], &s->layouts[ROWS_AS_VALUES], NULL,
                              &s->layouts[OUT]) == dnnl_success &&
        plan(s, PV, &product, NULL);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

static bool memories(struct stream *s, const struct mla_sparse_args *a)
{
    size_t width = (size_t)(a->latent + a->rope), heads = (size_t)a->heads, keys = (size_t)a->topk;
    s->q = malloc(heads * width * sizeof *s->q);
    s->rows = malloc(keys * width * sizeof *s->rows);
    s->scores = malloc(heads * keys * sizeof *s->scores);
    s->p = malloc(heads * keys * sizeof *s->p);
    if (s->q == NULL || s->rows == NULL || s->scores == NULL || s->p == NULL)
        return false;
    void *const data[MEMORIES_N] = {s->q, s->rows, s->scores, s->p, s->rows, DNNL_MEMORY_NONE};
    for (int i = 0; i < MEMORIES_N; i++)
        if (dnnl_memory_create(&s->memories[i], &s->layouts[i], s->engine, data[i]) != dnnl_success)
            return false;
    return true;
}

static void close_stream(void *stream)
{
    struct stream *s = stream;
    for (int i = 0; i < MEMORIES_N; i++)
        if (s->memories[i] != NULL)
            dnnl_memory_destroy(s->memories[i]);
    for (int i = 0; i < STEPS_N; i++)
        if (s->steps[i] != NULL)
            dnnl_primitive_destroy(s->steps[i]);
    if (s->stream != NULL)
        dnnl_stream_destroy(s->stream);
    if (s->engine != NULL)
        dnnl_engine_destroy(s->engine);
    free(s->q);
    free(s->rows);
    free(s->scores);
    free(s->p);
    free(s);
}

static void *open_stream(const struct mla_sparse_args *args, char *error, size_t error_bytes)
{
    struct stream *s = calloc(1, sizeof *s);
    one_thread(); /* plans are made for as many threads as there are now */
    if (s != NULL && dnnl_engine_create(&s->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags) == dnnl_success &&
        layouts(s, args) && plans(s, args->softmax_scale) && memories(s, args))
        return s;
    snprintf(error, error_bytes, "oneDNN has no such bf16 pipeline on this CPU, or no memory");
    if (s != NULL)
        close_stream(s);
    return NULL;
}

static bool execute(struct stream *s, int step, int from, int with, int to)
{
    dnnl_exec_arg_t args[3] = {{DNNL_ARG_SRC, s->memories[from]}, {DNNL_ARG_DST, s->memories[to]}};
    if (with >= 0)
        args[2] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, s->memories[with]};
    return dnnl_primitive_execute(s->steps[step], s->stream, with < 0 ? 2 : 3, args) ==
           dnnl_success;
}

static bool run_stream(void *stream, const struct mla_sparse_args *args, int64_t first, int64_t n,
                       uint16_t *out)
{
    struct stream *s = stream;
    one_thread();
    for (int64_t query = first; query < first + n; query++) {
        mla_peer_query(args, query, s->q);
        mla_peer_gather(args, args->topk_indices + query * args->topk, args->topk, s->rows);
        if (dnnl_memory_set_data_handle_v2(s->memories[OUT],
                                           out + query * args->heads * args->latent,
                                           s->stream) != dnnl_success ||
            !execute(s, QK, Q, ROWS_AS_KEYS, SCORES) || !execute(s, SOFTMAX, SCORES, -1, P) ||
            !execute(s, PV, P, ROWS_AS_VALUES, OUT) || dnnl_stream_wait(s->stream) != dnnl_success)
            return false;
    }
    return true;
}

const struct mla_peer_code mla_peer_module = {open_stream, run_stream, close_stream};
