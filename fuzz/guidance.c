/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance.c - features of an execution: the table of groups, and those that see errors.
 *
 * Classes of shape are the kernel's business only as far as every kernel shares them: the mode, the
 * number of keys and of blocks the call names.
 */
#include "fuzz/guidance.h"

#include <math.h>

#include "fuzz/family.h"
#include "fuzz/guidance_internal.h"

/* ---- classes ---- */

int64_t mla_guidance_mode(const struct mla_case *test)
{
    const struct mla_ring_args *r = &test->ring;
    if (test->op == MLA_OP_SPARSE)
        return 2 * (test->sparse.dense != 0) + (test->sparse.has_q_pos_offset != 0);
    return r->is_balanced ? 1 : r->q_rows == r->kv_rows ? 0 : r->has_prior ? 3 : 2;
}

int64_t mla_guidance_pair(const struct mla_case *test)
{
    size_t families_n;
    int64_t pair = 0;
    const struct mla_family *const *families = mla_families(&families_n);
    for (int32_t f = 0; f < test->family && (size_t)f < families_n; f++)
        pair += (int64_t)families[f]->regions_n;
    if (mla_family_name(test->family) == NULL)
        return pair;
    const struct mla_family *family = families[test->family];
    for (size_t i = 0; i < family->regions_n; i++)
        if ((int32_t)family->regions[i] == test->region)
            return pair + (int64_t)i;
    return pair;
}

static int64_t keys_of(const struct mla_case *test)
{
    return test->op == MLA_OP_RING ? test->ring.logical_n
           : test->sparse.dense    ? test->sparse.keys
                                   : test->sparse.topk;
}

static int64_t blocks_of(const struct mla_case *test)
{
    int64_t block = test->op == MLA_OP_RING ? test->ring.k_chunk_size : 128;
    int64_t keys = test->op == MLA_OP_RING ? test->ring.kv_rows : keys_of(test);
    return keys / block + (keys % block != 0); /* a chunk may be as long as a number can be */
}

/* ---- errors ---- */

/*
 * Octaves below 1/8, quarters of one up to the bound, where an honest kernel's worst cases lie and
 * every step counts; beyond it the size of a fault.
 */
static const double edges[MLA_GUIDANCE_BUCKETS - 1] = {
    0x1p-12, 0x1p-11, 0x1p-10, 0x1p-9,  0x1p-8, 0x1p-7,  0x1p-6,  0x1p-5,  0x1p-4,
    0x1p-3,  0.14865, 0.17678, 0.21022, 0.25,   0.29730, 0.35355, 0.42045, 0.5,
    0.59460, 0.70711, 0.84090, 1.0,     2.0,    4.0,     16.0,    1e6,     INFINITY};

int32_t mla_guidance_bucket(double ratio)
{
    int32_t bucket = 0;
    while (bucket < MLA_GUIDANCE_BUCKETS - 1 && !(ratio < edges[bucket])) /* NaN: the last */
        bucket++;
    return bucket;
}

enum stage { STAGE_VALUES, STAGE_STATS, STAGE_ENERGY, STAGES_N };

/* Worst err/B of a stage; negative: it judged nothing. */
static double stage_ratio(const struct mla_verdict *verdict, enum stage stage)
{
    return stage == STAGE_VALUES  ? verdict->max_value_ratio
           : stage == STAGE_STATS ? verdict->max_stats_ratio
                                  : verdict->max_energy;
}

/* Stage x shape x err/B. */
#define SHAPE_ERRORS (STAGES_N * MLA_OP_N * MLA_GUIDANCE_MODES * 4 * 3 * MLA_GUIDANCE_BUCKETS)
static void note_shape_errors(const struct mla_case *test, const struct mla_verdict *verdict,
                              struct mla_guidance_slot slot)
{
    int64_t keys = keys_of(test);
    for (int stage = 0; stage < STAGES_N; stage++) {
        struct mla_guidance_cell cell = {0, 1};
        double ratio = stage_ratio(verdict, (enum stage)stage);
        if (ratio < 0)
            continue;
        mla_guidance_digit(&cell, stage, STAGES_N);
        mla_guidance_digit(&cell, test->op, MLA_OP_N);
        mla_guidance_digit(&cell, mla_guidance_mode(test), MLA_GUIDANCE_MODES);
        mla_guidance_digit(&cell, (keys > 32) + (keys > 128) + (keys > 512), 4);
        mla_guidance_digit(&cell, blocks_of(test) - 1, 3);
        mla_guidance_digit(&cell, mla_guidance_bucket(ratio), MLA_GUIDANCE_BUCKETS);
        mla_guidance_set(slot, cell);
    }
}

/* Stage x kind of data x err/B. */
#define DATA_ERRORS (STAGES_N * MLA_OP_N * MLA_GUIDANCE_PAIRS * MLA_GUIDANCE_BUCKETS)
static void note_data_errors(const struct mla_case *test, const struct mla_verdict *verdict,
                             struct mla_guidance_slot slot)
{
    for (int stage = 0; stage < STAGES_N; stage++) {
        struct mla_guidance_cell cell = {0, 1};
        double ratio = stage_ratio(verdict, (enum stage)stage);
        if (ratio < 0)
            continue;
        mla_guidance_digit(&cell, stage, STAGES_N);
        mla_guidance_digit(&cell, test->op, MLA_OP_N);
        mla_guidance_digit(&cell, mla_guidance_pair(test), MLA_GUIDANCE_PAIRS);
        mla_guidance_digit(&cell, mla_guidance_bucket(ratio), MLA_GUIDANCE_BUCKETS);
        mla_guidance_set(slot, cell);
    }
}

/* ---- the table ---- */

/* A new group is a line here: its size and its function. */
static const struct {
    const char *name;
    int64_t n;
    bool errors;
    void (*note)(const struct mla_case *test, const struct mla_verdict *verdict,
                 struct mla_guidance_slot slot);
} groups[] = {
    {"shape-errors", SHAPE_ERRORS, true, note_shape_errors},
    {"data-errors", DATA_ERRORS, true, note_data_errors},
    {"ring-cells", MLA_GUIDANCE_RING_CELLS, false, mla_guidance_ring_cells},
    {"ring-steps", MLA_GUIDANCE_RING_STEPS, false, mla_guidance_ring_steps},
    {"sparse-cells", MLA_GUIDANCE_SPARSE_CELLS, false, mla_guidance_sparse_cells},
    {"sparse-data", MLA_GUIDANCE_SPARSE_DATA, false, mla_guidance_sparse_data},
};
#define GROUPS_N (sizeof groups / sizeof groups[0])

bool mla_guidance_group(size_t i, struct mla_guidance_group *group)
{
    int64_t first = 0;
    if (i >= GROUPS_N)
        return false;
    for (size_t k = 0; k < i; k++)
        first += groups[k].n;
    *group = (struct mla_guidance_group){groups[i].name, first, groups[i].n, groups[i].errors};
    return true;
}

void mla_guidance_note(const struct mla_case *test, const struct mla_verdict *verdict,
                       uint8_t counters[MLA_GUIDANCE_COUNTERS])
{
    int64_t first = 0;
    if (test->set_n > 0)
        return;
    for (size_t i = 0; i < GROUPS_N && first + groups[i].n <= MLA_GUIDANCE_COUNTERS; i++) {
        groups[i].note(test, verdict, (struct mla_guidance_slot){counters + first, groups[i].n});
        first += groups[i].n;
    }
}
