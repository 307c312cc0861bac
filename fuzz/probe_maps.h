/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_maps.h - probes of where a result stands: of another row, in another column?
 */
#ifndef MLA_FUZZ_PROBE_MAPS_H
#define MLA_FUZZ_PROBE_MAPS_H

#include "fuzz/probe.h"

/*
 * from[n]: number of the query row whose query made row n, -1 where that cannot be told (it sees one
 * kind of key only, or its result is neither of the two it could be). One bit of the number a call:
 * the query's one column chooses between two groups of keys, of value 1 and 0. from has
 * mla_probe_queries_n entries. false: a call did not return.
 */
bool mla_probe_find_rows(struct mla_probe *probe, int64_t *from);

/*
 * map[c]: which column of the values stands in column c of the row, -1: none alone does. All keys have
 * the same value, so what weights there are does not matter; *total is their sum, 1 if they are
 * normalised; NaN if the row is not finite. false: a call did not return.
 */
bool mla_probe_find_columns(struct mla_probe *probe, int64_t *map, double *total);

/*
 * How many columns of query and key take part in the scores: value_n counts those that are also value,
 * rope_n the others; a column that counts twice counts as two. Found by groups of columns that are not 0
 * together: from the weight of the keys they speak against, or, where the row sees one key only, from the
 * statistics. false: a call did not return, or neither can tell.
 */
struct mla_probe_columns {
    int64_t value_n, rope_n;
};
bool mla_probe_count_score_columns(struct mla_probe *probe, struct mla_probe_columns *columns);

#endif
