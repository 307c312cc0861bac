/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.c - the tensors of a probe, and its calls.
 */
#include "fuzz/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/judge_internal.h"
#include "oracle/visible.h"

/* ---- places and rows ---- */

static bool is_ring(const struct mla_probe *p)
{
    return p->tensors->test.op == MLA_OP_RING;
}

/* Inputs are this probe's own: made by mla_tensors_make, writable. */
static uint16_t *input(const struct mla_probe *p, const char *name, int64_t rank, int64_t at)
{
    struct mla_tensor *tensor = mla_tensors_find(p->tensors, name, rank);
    return (uint16_t *)(void *)tensor->guard.data + at;
}

int64_t mla_probe_lies(const struct mla_probe *p, int64_t place)
{
    return p->lies == NULL ? place : p->lies[place];
}

/* The place that lies at `at`, which must be made. */
static int64_t place_at(const struct mla_probe *p, int64_t at)
{
    int64_t low = 0, high = p->places_n - 1;
    if (p->lies == NULL)
        return at;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (p->lies[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t place_of(const struct mla_probe *p, int64_t rank, int64_t batch, int64_t row)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    return place_at(p, is_ring(p) ? (rank * r->kv_batch + batch) * r->kv_rows + row : row);
}

uint16_t *mla_probe_value(const struct mla_probe *p, int64_t place)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    int64_t at = mla_probe_lies(p, place);
    if (!is_ring(p))
        return input(p, "c_kv", 0, at * MLA_LATENT);
    int64_t per_rank = r->kv_batch * r->kv_rows;
    return input(p, "kv", at / per_rank, at % per_rank * r->head_dim);
}

uint16_t *mla_probe_rope(const struct mla_probe *p, int64_t place)
{
    if (!is_ring(p))
        return input(p, "k_pe", 0, mla_probe_lies(p, place) * p->rope_n);
    return mla_probe_value(p, place) + p->value_n;
}

static int64_t queries_of_rank(const struct mla_probe *p)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    const struct mla_sparse_args *s = &p->tensors->sparse;
    return is_ring(p) ? r->batch * r->heads * r->q_rows : s->queries * s->heads;
}

int64_t mla_probe_queries_n(const struct mla_probe *p)
{
    return queries_of_rank(p) * (is_ring(p) ? p->tensors->ring.ring_size : 1);
}

uint16_t *mla_probe_query_value(const struct mla_probe *p, int64_t query)
{
    int64_t n = queries_of_rank(p);
    if (!is_ring(p))
        return input(p, "q_lift", 0, query * MLA_LATENT);
    return input(p, "q", query / n, query % n * p->tensors->ring.head_dim);
}

uint16_t *mla_probe_query_rope(const struct mla_probe *p, int64_t query)
{
    if (!is_ring(p))
        return input(p, "q_pe", 0, query * p->rope_n);
    return mla_probe_query_value(p, query) + p->value_n;
}

struct mla_row mla_probe_row(const struct mla_probe *p, int64_t query)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    int64_t n = queries_of_rank(p), inside = query % n;
    if (!is_ring(p))
        return (struct mla_row){.head = query % p->tensors->sparse.heads,
                                .row = query / p->tensors->sparse.heads};
    return (struct mla_row){.rank = query / n,
                            .batch = inside / (r->heads * r->q_rows),
                            .head = inside / r->q_rows % r->heads,
                            .row = inside % r->q_rows};
}

int64_t mla_probe_query_number(const struct mla_probe *p, struct mla_row row)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    if (!is_ring(p))
        return row.row * p->tensors->sparse.heads + row.head;
    return ((row.rank * r->batch + row.batch) * r->heads + row.head) * r->q_rows + row.row;
}

/* ---- calls ---- */

double mla_probe_read(const struct mla_probe *p, struct mla_row row, int64_t column)
{
    const uint16_t *out = is_ring(p) ? p->tensors->out[row.rank] : p->tensors->sparse.out;
    return (double)mla_number_from_bf16(out[mla_judge_place(p->tensors, row, column)]);
}

static void read_stats(struct mla_probe *p)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    const float *max, *sum;
    p->max = p->lse = NAN;
    if (!p->has_stats)
        return;
    if (is_ring(p)) {
        max = p->tensors->stats[p->row.rank] +
              (p->row.batch * r->heads + p->row.head) * 2 * r->q_rows + p->row.row;
        sum = max + r->q_rows;
    } else {
        max = p->tensors->sparse.stats + 2 * mla_probe_query_number(p, p->row);
        sum = max + 1;
    }
    p->max = (double)*max;
    p->lse = p->max + log((double)*sum);
}

bool mla_probe_call(struct mla_probe *p)
{
    struct mla_call call;
    mla_tensors_reset(p->tensors);
    mla_call_make(p->kernel, p->tensors, p->call_seconds, &call);
    p->calls_n++;
    for (int64_t c = 0; c < p->value_n; c++)
        p->out[c] = mla_probe_read(p, p->row, c);
    read_stats(p);
    return call.end == MLA_CALL_RETURNED && call.status == MLA_OK;
}

/* ---- numbers ---- */

static void fill(uint16_t *row, int64_t n, float value)
{
    uint16_t bits = mla_number_to_bf16((double)value);
    for (int64_t i = 0; i < n; i++)
        row[i] = bits;
}

void mla_probe_set_values(struct mla_probe *p, float value)
{
    for (int64_t place = 0; place < p->places_n; place++)
        fill(mla_probe_value(p, place), p->value_n, value);
}

static void set_queries(struct mla_probe *p)
{
    for (int64_t i = 0; i < mla_probe_queries_n(p); i++) {
        uint16_t *rope = mla_probe_query_rope(p, i);
        fill(mla_probe_query_value(p, i), p->value_n, 0);
        fill(rope, p->rope_n, 0);
        for (int64_t c = 0; c < p->rope_n && c < MLA_PROBE_PIECES; c++)
            rope[c] = 0x3f80; /* 1 */
    }
}

/* The softmax of probe->scores over the visible places. */
static void set_weights(struct mla_probe *p)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < p->places_n; i++)
        if (p->times[i] > 0)
            max = fmax(max, p->scores[i]);
    for (int64_t i = 0; i < p->places_n; i++) {
        p->weights[i] = p->times[i] > 0 ? exp(p->scores[i] - max) : 0;
        sum += (double)p->times[i] * p->weights[i];
    }
    for (int64_t i = 0; i < p->places_n && sum > 0; i++)
        p->weights[i] /= sum;
    p->lse_due = max + log(sum);
}

void mla_probe_set_scores(struct mla_probe *p, const double *scores)
{
    double scale = (double)mla_case_scale(&p->tensors->test);
    set_queries(p);
    for (int64_t i = 0; i < p->places_n; i++) {
        uint16_t *rope = mla_probe_rope(p, i);
        double rest = scores[i] / scale, held = 0;
        fill(rope, p->rope_n, 0);
        for (int64_t c = 0; c < p->rope_n && c < MLA_PROBE_PIECES; c++) {
            rope[c] = mla_number_to_bf16(rest);
            held += (double)mla_number_from_bf16(rope[c]);
            rest -= (double)mla_number_from_bf16(rope[c]);
        }
        p->scores[i] = scale * held;
    }
    set_weights(p);
}

bool mla_probe_measure(struct mla_probe *p, double *measured)
{
    if ((p->places_n + p->value_n - 1) / p->value_n > MLA_PROBE_CALLS_MAX)
        return false;
    mla_probe_set_values(p, 0);
    for (int64_t first = 0; first < p->places_n; first += p->value_n) {
        for (int64_t c = 0; c < p->value_n && first + c < p->places_n; c++)
            mla_probe_value(p, first + c)[c] = 0x3f80;
        if (!mla_probe_call(p))
            return false;
        for (int64_t c = 0; c < p->value_n && first + c < p->places_n; c++) {
            measured[first + c] = p->out[c];
            mla_probe_value(p, first + c)[c] = 0;
        }
    }
    return true;
}

/* ---- begin and end ---- */

static double dot(const uint16_t *a, const uint16_t *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)mla_number_from_bf16(a[i]) * (double)mla_number_from_bf16(b[i]);
    return sum;
}

/* The rows of the caches that are made, one after the other. false: no memory. */
static bool number_places(struct mla_probe *p)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    const char *name = is_ring(p) ? "kv" : "c_kv";
    int64_t ranks = is_ring(p) ? r->ring_size : 1, n = 0;
    int64_t per_rank = is_ring(p) ? r->kv_batch * r->kv_rows : p->tensors->sparse.keys;
    p->places_n = ranks * per_rank;
    if (!mla_case_is_thin(&p->tensors->test))
        return true;
    for (int64_t rank = 0; rank < ranks; rank++) {
        const struct mla_tensor *cache = mla_tensors_find(p->tensors, name, rank);
        for (size_t e = 0; e < cache->made_n; e++)
            n += cache->made[e].to - cache->made[e].from;
    }
    p->lies = malloc((size_t)n * sizeof *p->lies);
    p->places_n = 0;
    for (int64_t rank = 0; p->lies != NULL && rank < ranks; rank++) {
        const struct mla_tensor *cache = mla_tensors_find(p->tensors, name, rank);
        for (size_t e = 0; e < cache->made_n; e++)
            for (int64_t i = cache->made[e].from; i < cache->made[e].to; i++)
                p->lies[p->places_n++] = rank * per_rank + i;
    }
    return p->lies != NULL;
}

/* times[]: which keys the row sees, by the oracle's own list. */
static bool count_visible(struct mla_probe *p)
{
    const struct mla_ring_args *r = &p->tensors->ring;
    struct mla_oracle_visible visible;
    int64_t batch = r->has_slot ? r->kv_cache_batch_idx : p->row.batch;
    int32_t status = is_ring(p)
                         ? mla_oracle_visible_ring(r, p->row.rank, p->row.row, &visible)
                         : mla_oracle_visible_sparse(&p->tensors->sparse, p->row.row, &visible);
    if (status != MLA_OK)
        return false;
    for (int64_t i = 0; i < visible.keys_n; i++)
        p->times[place_of(p, visible.keys[i].source, batch, visible.keys[i].row)]++;
    p->visible_n = visible.keys_n;
    mla_oracle_visible_free(&visible);
    return true;
}

static void take_case_scores(struct mla_probe *p)
{
    int64_t query = mla_probe_query_number(p, p->row);
    double scale = (double)mla_case_scale(&p->tensors->test), max = -INFINITY;
    for (int64_t i = 0; i < p->places_n; i++) {
        if (p->times[i] == 0)
            continue;
        p->case_scores[i] =
            scale * (dot(mla_probe_query_value(p, query), mla_probe_value(p, i), p->value_n) +
                     dot(mla_probe_query_rope(p, query), mla_probe_rope(p, i), p->rope_n));
        max = fmax(max, p->case_scores[i]);
    }
    for (int64_t i = 0; i < p->places_n; i++)
        if (p->times[i] == 0)
            p->case_scores[i] = p->visible_n > 0 ? max : 0;
}

/* How wrong is the row in the case itself? */
static void take_case_error(struct mla_probe *p)
{
    memcpy(p->scores, p->case_scores, (size_t)p->places_n * sizeof *p->scores);
    set_weights(p);
    p->case_finite = true;
    p->case_lse_off = p->lse - p->lse_due;
    p->case_max_off = p->max;
    for (int64_t i = 0; i < p->places_n; i++)
        if (p->times[i] > 0)
            p->case_max_off = fmin(p->case_max_off, p->max - p->scores[i]);
    for (int64_t c = 0; c < p->value_n; c++) {
        double o = 0, size = 0;
        for (int64_t i = 0; i < p->places_n; i++) {
            if (p->times[i] == 0)
                continue;
            double term = (double)p->times[i] * p->weights[i] *
                          (double)mla_number_from_bf16(mla_probe_value(p, i)[c]);
            o += term;
            size += fabs(term);
        }
        p->case_finite = p->case_finite && isfinite(p->out[c]);
        double error = fabs(p->out[c] - o) / (size > 0 ? size : 1);
        if (error >= p->case_error) {
            p->case_error = error;
            p->case_size = size;
        }
    }
}

bool mla_probe_begin(struct mla_probe *p, const struct mla_case *test,
                     const struct mla_kernel *kernel, struct mla_row row, double call_seconds,
                     char error[MLA_CASE_ERROR_MAX])
{
    *p = (struct mla_probe){.kernel = kernel,
                            .call_seconds = call_seconds,
                            .row = row,
                            .value_n = mla_case_value_width(test),
                            .rope_n = mla_case_width(test) - mla_case_value_width(test)};
    p->has_stats = test->stats && (kernel->promises & MLA_PROMISE_STATS) != 0;
    if (mla_tensors_make(test, 0, &p->tensors, error) != MLA_OK)
        return false;
    snprintf(error, MLA_CASE_ERROR_MAX, "out of memory");
    if (!number_places(p))
        return false;
    snprintf(error, MLA_CASE_ERROR_MAX, "there are too many keys; shrink the case first");
    if (p->places_n > MLA_PROBE_CALLS_MAX * p->value_n)
        return false;
    snprintf(error, MLA_CASE_ERROR_MAX, "out of memory");
    size_t n = (size_t)p->places_n;
    p->times = calloc(n, sizeof *p->times);
    p->case_scores = calloc(n, sizeof *p->case_scores);
    p->scores = calloc(n, sizeof *p->scores);
    p->weights = calloc(n, sizeof *p->weights);
    p->out = calloc((size_t)p->value_n, sizeof *p->out);
    if (p->times == NULL || p->case_scores == NULL || p->scores == NULL || p->weights == NULL ||
        p->out == NULL || !count_visible(p))
        return false;
    take_case_scores(p);
    snprintf(error, MLA_CASE_ERROR_MAX, "the kernel did not return a result when called again");
    if (!mla_probe_call(p))
        return false;
    take_case_error(p);
    return true;
}

void mla_probe_end(struct mla_probe *p)
{
    free(p->out);
    free(p->weights);
    free(p->scores);
    free(p->case_scores);
    free(p->times);
    free(p->lies);
    mla_tensors_free(p->tensors);
    memset(p, 0, sizeof *p);
}
