/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c - which (head, query row) pairs are judged, and their truths.
 *
 * The draw is a function of row_seed and the shape. Half of the rows stand at the ends of their
 * rank, where limits bite; the rest anywhere. rows > 0 draws (head, query row) pairs one by one;
 * rows < 0 draws query rows, all different, and takes every head of each: heads are not sampled.
 */
#include <pthread.h>
#include <stdlib.h>

#include "fuzz/family.h"
#include "fuzz/judge_internal.h"
#include "oracle/visible.h"

static struct mla_row row_of(int64_t rank, int64_t batch, int64_t head, int64_t row)
{
    return (struct mla_row){.rank = rank, .batch = batch, .head = head, .row = row};
}

static void draw_all(int64_t ranks, int64_t batch, int64_t heads, int64_t rows,
                     struct mla_row *list)
{
    int64_t i = 0;
    for (int64_t d = 0; d < ranks; d++)
        for (int64_t b = 0; b < batch; b++)
            for (int64_t h = 0; h < heads; h++)
                for (int64_t r = 0; r < rows; r++)
                    list[i++] = row_of(d, b, h, r);
}

/* The extents of a case's query rows. */
struct extents {
    int64_t ranks, batch, heads, rows;
};

static struct extents extents_of(const struct mla_case *test)
{
    if (test->op == MLA_OP_RING)
        return (struct extents){test->ring.ring_size, test->ring.batch, test->ring.heads,
                                test->ring.q_rows};
    return (struct extents){1, 1, test->sparse.heads, test->sparse.queries};
}

/* One row of a rank: its first, its last or any. One draw a statement: C leaves the order of
 * evaluation inside a call open. */
static int64_t draw_row(struct mla_rng *rng, int64_t rows)
{
    int64_t place = mla_rng_below(rng, 4);
    int64_t any = mla_rng_below(rng, rows);
    return place == 0 ? 0 : place == 1 ? rows - 1 : any;
}

static void draw_pairs(const struct extents *e, struct mla_rng *rng, int64_t pairs_n,
                       struct mla_row *list)
{
    for (int64_t i = 0; i < pairs_n; i++) {
        int64_t row = draw_row(rng, e->rows);
        int64_t rank = mla_rng_below(rng, e->ranks);
        int64_t entry = mla_rng_below(rng, e->batch);
        int64_t head = mla_rng_below(rng, e->heads);
        list[i] = row_of(rank, entry, head, row);
    }
}

/* Query rows, each with all its heads; one that is taken gives way to the next in line. */
static bool draw_whole(const struct extents *e, struct mla_rng *rng, int64_t whole_n,
                       struct mla_row *list)
{
    int64_t all = e->ranks * e->batch * e->rows;
    bool *taken = calloc((size_t)all, sizeof *taken);
    if (taken == NULL)
        return false;
    for (int64_t i = 0; i < whole_n; i++) {
        int64_t row = draw_row(rng, e->rows);
        int64_t rank = mla_rng_below(rng, e->ranks);
        int64_t entry = mla_rng_below(rng, e->batch);
        int64_t at = (rank * e->batch + entry) * e->rows + row;
        while (taken[at])
            at = (at + 1) % all;
        taken[at] = true;
        for (int64_t h = 0; h < e->heads; h++)
            *list++ = row_of(at / e->rows / e->batch, at / e->rows % e->batch, h, at % e->rows);
    }
    free(taken);
    return true;
}

int64_t mla_rows_all(const struct mla_case *test)
{
    struct extents e = extents_of(test);
    return e.ranks * e.batch * e.heads * e.rows;
}

struct mla_row mla_rows_at(const struct mla_case *test, int64_t i)
{
    struct extents e = extents_of(test);
    return row_of(i / e.rows / e.heads / e.batch, i / e.rows / e.heads % e.batch,
                  i / e.rows % e.heads, i % e.rows);
}

int64_t mla_rows_count(const struct mla_case *test)
{
    struct extents e = extents_of(test);
    int64_t whole = e.ranks * e.batch * e.rows, all = whole * e.heads;
    if (test->rows == 0 || test->rows >= all || test->rows <= -whole)
        return all;
    return test->rows > 0 ? test->rows : -test->rows * e.heads;
}

struct mla_row *mla_rows_draw(const struct mla_case *test, int64_t *rows_n)
{
    struct extents e = extents_of(test);
    struct mla_rng rng = {mla_stream_key(test->row_seed, MLA_STREAM_ROWS), 0};
    *rows_n = mla_rows_count(test);
    struct mla_row *list = malloc((size_t)*rows_n * sizeof *list);
    if (list == NULL)
        return NULL;
    if (*rows_n == e.ranks * e.batch * e.heads * e.rows) {
        draw_all(e.ranks, e.batch, e.heads, e.rows, list);
    } else if (test->rows > 0) {
        draw_pairs(&e, &rng, test->rows, list);
    } else if (!draw_whole(&e, &rng, -test->rows, list)) {
        free(list);
        return NULL;
    }
    return list;
}

bool mla_rows_empty(const struct mla_tensors *t, int64_t rank, int64_t row)
{
    struct mla_oracle_visible visible;
    if (t->test.op == MLA_OP_RING)
        return mla_oracle_query_position(&t->ring, rank, row) < 0;
    if (!t->sparse.has_q_pos_offset ||
        mla_oracle_visible_sparse(&t->sparse, row, &visible) != MLA_OK)
        return false;
    bool empty = visible.keys_n == 0;
    mla_oracle_visible_free(&visible);
    return empty;
}

/* ---- truths ---- */

struct work {
    struct mla_subject *subject;
    int64_t next;   /* atomic */
    int32_t status; /* atomic: the first error */
    bool plain;
};

int32_t mla_rows_truth(const struct mla_tensors *t, struct mla_row row, bool plain,
                       struct mla_truth **truth)
{
    if (plain)
        return t->test.op == MLA_OP_RING ? mla_definition_ring(&t->ring, row, truth)
                                         : mla_definition_sparse(&t->sparse, row, truth);
    return t->test.op == MLA_OP_RING ? mla_truth_ring(&t->ring, row, truth)
                                     : mla_truth_sparse(&t->sparse, row, truth);
}

static void *worker(void *context)
{
    struct work *work = context;
    struct mla_subject *subject = work->subject;
    for (;;) {
        int64_t i = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);
        if (i >= subject->rows_n)
            break;
        if (subject->truths[i] != NULL)
            continue; /* made before an error of another one */
        int32_t status =
            mla_rows_truth(subject->tensors, subject->rows[i], work->plain, &subject->truths[i]);
        if (status != MLA_OK)
            __atomic_store_n(&work->status, status, __ATOMIC_RELAXED);
    }
    mla_oracle_thread_done();
    return NULL;
}

int32_t mla_rows_truths(struct mla_subject *subject, int threads, bool plain)
{
    pthread_t ids[64];
    int started = 0;
    struct work work = {subject, 0, MLA_OK, plain};
    if (subject->truths_made && subject->plain == plain)
        return MLA_OK;
    for (int64_t i = 0; subject->plain != plain && i < subject->rows_n; i++) {
        mla_truth_free(subject->truths[i]);
        subject->truths[i] = NULL;
    }
    subject->plain = plain;
    int helpers = threads > 64 ? 64 : threads - 1;
    while (started < helpers && started + 1 < subject->rows_n &&
           pthread_create(&ids[started], NULL, worker, &work) == 0)
        started++;
    worker(&work); /* with too few threads the work is only slower */
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    subject->truths_made = work.status == MLA_OK;
    return work.status;
}
