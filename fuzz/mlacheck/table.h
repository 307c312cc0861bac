/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h - aligned text tables from a view of the store.
 */
#ifndef MLA_MLACHECK_TABLE_H
#define MLA_MLACHECK_TABLE_H

#include <stdio.h>

#include "results/store.h"

/* Print a view as a table ("(none)" when empty). The status is the store's. */
int32_t mla_table_print(FILE *file, struct mla_store *store, enum mla_store_view view,
                        const char *key);

#endif
