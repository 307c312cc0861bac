/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink_internal.h - what the files of shrinking share.
 */
#ifndef MLA_FUZZ_SHRINK_INTERNAL_H
#define MLA_FUZZ_SHRINK_INTERNAL_H

#include "fuzz/case.h"
#include "oracle/oracle.h"

/* shrink_measure.c: family and region as one number, 0 the plainest, and back with amount 0 or the one
 * nearest to it. false: there is no such number. */
int64_t mla_shrink_recipe_rank(const struct mla_case *test);
bool mla_shrink_set_recipe(struct mla_case *test, int64_t rank);

/* shrink_rows.c: judge every row, or as many as cost little. */
void mla_shrink_widen(struct mla_case *test);
/* shrink_rows.c: judge this row alone, by the least row_seed that draws it. false: none was found. */
bool mla_shrink_aim(struct mla_case *test, struct mla_row row);

#endif
