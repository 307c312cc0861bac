/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_rows.c - which rows of the inputs hold data, and not what must not be read.
 *
 * Told from the call alone, by the oracle's view of who sees what: a row is data if some row of the
 * call sees it. Keys that a case makes NaN on purpose (`future`) are none.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/exchange.h"
#include "oracle/visible.h"

/* "0-31,40" (free). */
static char *ranges(const bool *valid, int64_t n)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    const char *comma = "";
    if (file == NULL)
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i;
        if (!valid[i])
            continue;
        while (i + 1 < n && valid[i + 1])
            i++;
        fprintf(file, "%s%" PRId64, comma, first);
        if (i > first)
            fprintf(file, "-%" PRId64, i);
        comma = ",";
    }
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void mark_queries(const struct mla_ring_args *a, int64_t rank, bool *valid)
{
    for (int64_t r = 0; r < a->q_rows; r++)
        valid[r] = mla_oracle_query_position(a, rank, r) >= 0;
}

/* Position 0 is seen by every row, and each key by the last row that is no pad: where that stands. */
static int64_t last_position(const struct mla_ring_args *a)
{
    int64_t last = -1;
    for (int64_t d = 0; d < a->ring_size; d++)
        for (int64_t r = 0; r < a->q_rows; r++) {
            int64_t position = mla_oracle_query_position(a, d, r);
            last = position > last ? position : last;
        }
    return last;
}

static void mark_keys(const struct mla_tensors *t, int64_t source, bool *valid)
{
    const struct mla_ring_args *a = &t->ring;
    int64_t last = last_position(a);
    for (int64_t b = 0; b < a->kv_batch; b++)
        for (int64_t r = 0; r < a->kv_rows; r++) {
            int64_t position = mla_oracle_key_position(a, source, r);
            bool ours = !a->has_slot || b == a->kv_cache_batch_idx;
            bool future = t->test.has_future && position >= t->test.future;
            valid[b * a->kv_rows + r] =
                ours && position < a->logical_n && position <= last && !future;
        }
}

static bool mark_cache(const struct mla_sparse_args *a, bool *valid)
{
    for (int64_t q = 0; q < a->queries; q++) {
        struct mla_oracle_visible visible;
        if (mla_oracle_visible_sparse(a, q, &visible) != MLA_OK)
            return false;
        for (int64_t j = 0; j < visible.keys_n; j++)
            valid[visible.keys[j].row] = true;
        mla_oracle_visible_free(&visible);
    }
    return true;
}

char *mla_exchange_valid_rows(const struct mla_tensors *t, const struct mla_tensor *tensor)
{
    bool is_ring = t->test.op == MLA_OP_RING;
    bool is_query = tensor->name[0] == 'q';
    int64_t n = is_ring    ? is_query ? t->ring.q_rows : t->ring.kv_batch * t->ring.kv_rows
                : is_query ? t->sparse.queries
                           : t->sparse.keys;
    bool *valid = calloc((size_t)n, sizeof *valid);
    char *text = NULL;
    bool ok = valid != NULL;
    if (ok && is_ring && is_query)
        mark_queries(&t->ring, tensor->rank, valid);
    else if (ok && is_ring)
        mark_keys(t, tensor->rank, valid);
    else if (ok && is_query)
        memset(valid, 1, (size_t)n * sizeof *valid);
    else
        ok = ok && mark_cache(&t->sparse, valid);
    if (ok)
        text = ranges(valid, n);
    free(valid);
    return text;
}
