/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink_rows.c - which rows of a shrinking case are judged.
 *
 * A line cannot name a row: it is drawn. But the draw is a function of row_seed and the shape, so a
 * seed can be looked for that draws the row that fails, and that alone.
 */
#include <stdlib.h>

#include "fuzz/judge_internal.h"
#include "fuzz/shrink_internal.h"

/* What judging may cost, in ns: 1 for a key and column, 10 us for a row (case_fix.c has the same). */
#define JUDGED_MAX ((int64_t)60000000)
#define ROW_COST   ((int64_t)15000)

#define SEEDS_MAX ((uint64_t)1 << 18)

void mla_shrink_widen(struct mla_case *test)
{
    bool is_ring = test->op == MLA_OP_RING;
    const struct mla_ring_args *r = &test->ring;
    const struct mla_sparse_args *s = &test->sparse;
    int64_t keys = is_ring ? r->logical_n : s->dense ? s->keys : s->topk;
    int64_t heads = is_ring ? r->heads : s->heads;
    int64_t all = is_ring ? r->ring_size * r->batch * r->q_rows : s->queries;
    int64_t width = mla_case_width(test) + mla_case_value_width(test);
    int64_t most = JUDGED_MAX / (ROW_COST + keys * width) / heads;
    test->rows = most >= all ? 0 : most < 1 ? -1 : -most;
}

static bool is_same(struct mla_row a, struct mla_row b)
{
    return a.rank == b.rank && a.batch == b.batch && a.head == b.head && a.row == b.row;
}

bool mla_shrink_aim(struct mla_case *test, struct mla_row row)
{
    test->rows = 1;
    for (test->row_seed = 0; test->row_seed < SEEDS_MAX; test->row_seed++) {
        int64_t rows_n;
        struct mla_row *drawn = mla_rows_draw(test, &rows_n);
        bool found = drawn != NULL && rows_n == 1 && is_same(drawn[0], row);
        free(drawn);
        if (found)
            return true;
    }
    return false;
}
