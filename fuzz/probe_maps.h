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
 * used[c]: does column c of query and key take part in the scores? width entries. Every column in turn
 * is the only one that is not 0, and prefers every other key. false: a call did not return, or the row
 * sees one kind of key only.
 */
bool mla_probe_find_score_columns(struct mla_probe *probe, bool *used);

#endif
