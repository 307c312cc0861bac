/* SPDX-License-Identifier: Apache-2.0
 *
 * case_draw.c - random cases, weighted toward the geometry in which such kernels have failed.
 *
 * Lengths come from the boundaries of their case (tile, chunk, shard, ring: draw_edges.c) and their
 * neighbours, because faults live there and a uniform draw rarely meets them; all weights stand in
 * draw_weights.c. A draw fills fields freely; mla_case_fix then makes the result legal and small, so
 * the two share no rules.
 */
#include <math.h>
#include <stdlib.h>

#include "fuzz/draw.h"
#include "fuzz/judge_internal.h"
#include "oracle/visible.h"

static void draw_data(struct mla_case *test, struct mla_rng *rng)
{
    mla_draw_recipe(test, rng);
    test->poison = (int32_t)mla_rng_below(rng, MLA_POISON_N);
    test->indices = (int32_t)mla_draw_choice(rng, MLA_CHOICE_INDICES);
    test->stats = mla_rng_chance(rng, 1, 2);
    test->seed = mla_rng_next(rng) >> 32;
    test->row_seed = mla_rng_next(rng) >> 48;
    test->rows = mla_draw_choice(rng, MLA_CHOICE_ROWS);
}

float mla_draw_scale(struct mla_rng *rng)
{
    int64_t bits = mla_rng_below(rng, 1 << 23), power = mla_rng_below(rng, 15) - 10;
    if (mla_rng_chance(rng, 1, 2))
        return ldexpf(1.0f + (float)bits * 0x1p-23f, (int)power);
    static const float scales[] = {0x1.555556p-5f, /* 576^-0.5 */
                                   0x1.279a74p-4f, /* 192^-0.5 */
                                   0x1.14f5b8p-3f, /* with YaRN: 0.135234 */
                                   1.0f,           0x1p-6f, 0x1p-2f, 0x1p4f, 0x1.fp-10f};
    return scales[mla_rng_below(rng, (int64_t)(sizeof scales / sizeof scales[0]))];
}

float mla_draw_extreme_scale(struct mla_case *test, struct mla_rng *rng)
{
    static const float scales[] = {0x1p-149f,   0x1.8p-127f, 0x1p-120f, 0x1.8p-110f,
                                   0x1.9p-101f, 0x1.4p+110f, 0x1p+126f, 0x1.fp+127f};
    static const enum mla_region regions[] = {MLA_REGION_FLAT, MLA_REGION_CLUSTERS,
                                              MLA_REGION_EQUAL_MAXIMA, MLA_REGION_ONE_EDGE};
    int64_t scale = mla_rng_below(rng, (int64_t)(sizeof scales / sizeof scales[0]));
    int64_t region = mla_rng_below(rng, 4);
    test->family = mla_family_find("profile"); /* its scores are divided by the factor */
    test->region = (int32_t)(scale < 2 ? MLA_REGION_FLAT : regions[region]);
    return scales[scale];
}

void mla_draw_leave_a_row(struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    int64_t rows_n, least = r->logical_n - 1;
    struct mla_row *rows = test->has_future ? mla_rows_draw(test, &rows_n) : NULL;
    if (rows == NULL)
        return;
    for (int64_t i = 0; i < rows_n; i++) {
        int64_t last = mla_oracle_query_position(r, rows[i].rank, rows[i].row); /* key it sees */
        least = last < least ? last : least;                                    /* -1: pad row */
    }
    test->future = least < test->future ? test->future : least + 1;
    free(rows);
}

void mla_case_draw(struct mla_case *test, enum mla_op op, struct mla_rng *rng)
{
    mla_case_init(test, op);
    draw_data(test, rng);
    if (op == MLA_OP_RING)
        mla_draw_ring(test, rng);
    else
        mla_draw_sparse(test, rng);
    mla_case_fix(test);
    if (test->rows != 0 && mla_draw_chance(rng, mla_draw_chances.aim))
        mla_draw_aim(test, rng);
    mla_draw_leave_a_row(test);
}
