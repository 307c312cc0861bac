/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_result.c - results from files to where the judge looks.
 */
#include "fuzz/exchange_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/exchange_layout.h"

static int32_t no_memory(char error[MLA_EXCHANGE_ERROR_MAX])
{
    snprintf(error, MLA_EXCHANGE_ERROR_MAX, "out of memory for the results");
    return MLA_ERR_NOMEM;
}

static float from_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    float fraction = (float)(bits & 0x3ff);
    float value = exponent == 31  ? fraction != 0 ? NAN : INFINITY
                  : exponent == 0 ? ldexpf(fraction, -24)
                                  : ldexpf(1024 + fraction, exponent - 25);
    return (bits & 0x8000u) != 0 ? -value : value;
}

float mla_exchange_element(const struct mla_safetensor *t, int64_t i)
{
    uint16_t half;
    float value;
    if (strcmp(t->dtype, "F32") == 0) {
        memcpy(&value, t->data + 4 * i, sizeof value);
        return value;
    }
    memcpy(&half, t->data + 2 * i, sizeof half);
    return strcmp(t->dtype, "F16") == 0 ? from_f16(half) : mla_number_from_bf16(half);
}

/* ---- one rank ---- */

static bool load_out(struct mla_tensors *t, const struct mla_exchange_rank *results, int64_t rank)
{
    const struct mla_exchange_extent e = mla_exchange_extent(&t->test);
    struct mla_tensor *to = mla_tensors_find(t, "out", rank);
    uint16_t *out = (uint16_t *)(void *)to->guard.data;
    float *wide = NULL;
    if (results->format != MLA_FORMAT_BF16) {
        wide = t->wide[rank] = malloc((size_t)to->elements_n * sizeof *wide);
        if (wide == NULL)
            return false;
    }
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t h = 0; h < e.heads; h++)
            for (int64_t r = 0; r < e.rows; r++) {
                int64_t from = mla_exchange_row_at(&e, &results->out, b, h, r);
                int64_t place =
                    (e.is_ring ? (b * e.heads + h) * e.rows + r : r * e.heads + h) * e.columns;
                for (int64_t c = 0; c < e.columns; c++) {
                    float value = mla_exchange_element(results->out.tensor, from + c);
                    out[place + c] = mla_number_to_bf16((double)value);
                    if (wide != NULL)
                        wide[place + c] = value;
                }
            }
    return true;
}

static void load_stats(struct mla_tensors *t, const struct mla_exchange_view *v, int64_t rank)
{
    const struct mla_exchange_extent e = mla_exchange_extent(&t->test);
    float *to = (float *)(void *)mla_tensors_find(t, "stats", rank)->guard.data;
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t h = 0; h < e.heads; h++)
            for (int64_t r = 0; r < e.rows; r++) {
                int64_t max = mla_exchange_row_at(&e, v, b, h, r);
                int64_t sum = e.is_ring ? max + v->dims[2] / 2 : max + 1;
                int64_t place =
                    e.is_ring ? (b * e.heads + h) * 2 * e.rows + r : (r * e.heads + h) * 2;
                to[place] = mla_exchange_element(v->tensor, max);
                to[place + (e.is_ring ? e.rows : 1)] = mla_exchange_element(v->tensor, sum);
            }
}

static bool load_lse(struct mla_tensors *t, const struct mla_exchange_view *v, int64_t rank)
{
    const struct mla_exchange_extent e = mla_exchange_extent(&t->test);
    float *to = t->lse[rank] = malloc((size_t)(e.batch * e.heads * e.rows) * sizeof *t->lse[rank]);
    if (to == NULL)
        return false;
    for (int64_t b = 0; b < e.batch; b++)
        for (int64_t h = 0; h < e.heads; h++)
            for (int64_t r = 0; r < e.rows; r++)
                to[e.is_ring ? (b * e.heads + h) * e.rows + r : r * e.heads + h] =
                    mla_exchange_element(v->tensor, mla_exchange_row_at(&e, v, b, h, r));
    return true;
}

/* ---- all of them ---- */

int32_t mla_exchange_result_load(struct mla_tensors *t, const struct mla_safetensors *file,
                                 char error[MLA_EXCHANGE_ERROR_MAX])
{
    int64_t ranks = t->test.op == MLA_OP_RING ? t->ring.ring_size : 1;
    int32_t status = mla_exchange_result_check(&t->test, file, error);
    for (int64_t d = 0; d < ranks && status == MLA_OK; d++) {
        struct mla_exchange_rank r;
        status = mla_exchange_layout(&t->test, file, d, &r, error);
        if (status != MLA_OK)
            break;
        t->out_format = r.format;
        if (r.stats.tensor != NULL)
            load_stats(t, &r.stats, d);
        if (!load_out(t, &r, d) || (r.lse.tensor != NULL && !load_lse(t, &r.lse, d)))
            status = no_memory(error);
    }
    return status;
}
