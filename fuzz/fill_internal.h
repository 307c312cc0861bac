/* SPDX-License-Identifier: Apache-2.0
 *
 * fill_internal.h - what the filling of both operations shares.
 */
#ifndef MLA_FUZZ_FILL_INTERNAL_H
#define MLA_FUZZ_FILL_INTERNAL_H

#include "fuzz/family.h"
#include "fuzz/fill.h"

/* Poison of one kind, a short cycle of it: big caches are mostly poison, and it must be quick to lay. */
#define MLA_POISON_CYCLE 64
struct mla_poison_cycle {
    uint16_t values[MLA_POISON_CYCLE];
};

struct mla_poison_cycle mla_fill_poison(const struct mla_case *test, int32_t kind);
/* Fill one row; place makes neighbours differ. */
void mla_fill_poison_row(const struct mla_poison_cycle *cycle, int64_t place, int64_t width,
                         uint16_t *row);

/* Widths and scale of the case; the rest is for the operation to say. */
struct mla_family_view mla_fill_view(const struct mla_case *test);

#endif
