/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance_internal.h - cells of counters, and what the files of the guidance share.
 */
#ifndef MLA_FUZZ_GUIDANCE_INTERNAL_H
#define MLA_FUZZ_GUIDANCE_INTERNAL_H

#include "fuzz/guidance.h"

/* A number in mixed radix: start with {0, 1} and add the classes, each digit kept in its extent. */
struct mla_guidance_cell {
    int64_t index, size;
};

static inline void mla_guidance_digit(struct mla_guidance_cell *cell, int64_t digit, int64_t extent)
{
    digit = digit < 0 ? 0 : digit >= extent ? extent - 1 : digit;
    cell->index = cell->index * extent + digit;
    cell->size *= extent;
}

/* One group's counters. */
struct mla_guidance_slot {
    uint8_t *counters;
    int64_t n;
};

/* A cell whose extents do not make up the group sets nothing: the group then never moves, which its
 * test sees. */
static inline void mla_guidance_set(struct mla_guidance_slot slot, struct mla_guidance_cell cell)
{
    if (cell.size == slot.n && cell.index < slot.n)
        slot.counters[cell.index] = 1;
}

/* ---- classes of a case ---- */

#define MLA_GUIDANCE_MODES 4
/* ring: contiguous, balanced, chunked, rotated; sparse: list or dense, without and with an offset */
int64_t mla_guidance_mode(const struct mla_case *test);

#define MLA_GUIDANCE_PAIRS 64
/* The case's (family, region) as one number, families in their order. */
int64_t mla_guidance_pair(const struct mla_case *test);

/* ---- notes: one function a group ---- */

#define MLA_GUIDANCE_RING_CELLS (MLA_GUIDANCE_MODES * 4 * 6 * MLA_GUIDANCE_PAIRS)
#define MLA_GUIDANCE_RING_STEPS (MLA_GUIDANCE_MODES * 3 * 5 * 2 * 3 * 2 * 2)
void mla_guidance_ring_cells(const struct mla_case *test, const struct mla_verdict *verdict,
                             struct mla_guidance_slot slot);
void mla_guidance_ring_steps(const struct mla_case *test, const struct mla_verdict *verdict,
                             struct mla_guidance_slot slot);

#define MLA_GUIDANCE_SPARSE_CELLS (4 * 4 * 16 * 2 * 2)
#define MLA_GUIDANCE_SPARSE_DATA  (5 * 4 * MLA_GUIDANCE_PAIRS)
void mla_guidance_sparse_cells(const struct mla_case *test, const struct mla_verdict *verdict,
                               struct mla_guidance_slot slot);
void mla_guidance_sparse_data(const struct mla_case *test, const struct mla_verdict *verdict,
                              struct mla_guidance_slot slot);

#endif
