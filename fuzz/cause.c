/* SPDX-License-Identifier: Apache-2.0
 *
 * cause.c - names of causes.
 */
#include "fuzz/cause.h"

const char *mla_cause_name(enum mla_cause cause)
{
    static const char *const names[MLA_CAUSES_N] = {
        [MLA_CAUSE_UNKNOWN] = "unknown",
        [MLA_CAUSE_KEYS_MISSING] = "keys-missing",
        [MLA_CAUSE_KEYS_EXTRA] = "keys-extra",
        [MLA_CAUSE_KEYS_TWICE] = "keys-twice",
        [MLA_CAUSE_KEYS_ELSEWHERE] = "keys-elsewhere",
        [MLA_CAUSE_ROWS_MOVED] = "rows-moved",
        [MLA_CAUSE_COLUMNS_MOVED] = "columns-moved",
        [MLA_CAUSE_WEIGHTS_OFF] = "weights-off",
        [MLA_CAUSE_VALUES_OFF] = "values-off",
        [MLA_CAUSE_STATS_OFF] = "stats-off",
        [MLA_CAUSE_PRECISION] = "precision",
        [MLA_CAUSE_NOT_FINITE] = "not-finite",
        [MLA_CAUSE_NOT_WRITTEN] = "not-written",
        [MLA_CAUSE_UNSTEADY] = "unsteady",
        [MLA_CAUSE_MEMORY] = "memory",
        [MLA_CAUSE_STATUS] = "status",
    };
    return names[cause];
}
