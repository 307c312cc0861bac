/* SPDX-License-Identifier: Apache-2.0
 *
 * share.h - how many query rows go into a tile, so that no thread stands idle for long.
 *
 * A row's result does not depend on the tile it is in, so tiles may be cut as the number of threads
 * suggests. A large tile reads its keys for many rows at once; with few of them the last thread
 * works alone for a large part of the call. The cost of a cut is the number of rounds the threads
 * need times what a tile costs: its rows, and MLA_SHARE_KEYS rows' worth for reading the keys.
 */
#ifndef MLA_IMPL_SHARE_H
#define MLA_IMPL_SHARE_H

#include <stdint.h>

#define MLA_SHARE_LEAST 16 /* rows: fewer would leave vector lanes empty */
#define MLA_SHARE_KEYS  8

/* Tiles of up to rows_n rows in sets_n sets of lines_n rows each, no tile in two sets. */
static inline int64_t mla_share_tiles(int64_t sets_n, int64_t lines_n, int64_t rows_n)
{
    return sets_n * ((lines_n - 1) / rows_n + 1);
}

/* The smallest tile that mla_share_rows() may choose. */
static inline int64_t mla_share_least(int64_t rows_n)
{
    while (rows_n / 2 >= MLA_SHARE_LEAST) {
        rows_n /= 2;
    }
    return rows_n;
}

/*
 * Rows of a tile for `threads` threads: a full tile of rows_n, halved as often as pays. The counts
 * are those of an accepted call, whose tensors bound tiles * (rows_n + MLA_SHARE_KEYS) far below
 * INT64_MAX.
 */
static inline int64_t mla_share_rows(int64_t sets_n, int64_t lines_n, int64_t rows_n,
                                     int64_t threads)
{
    int64_t best = rows_n;
    int64_t least = INT64_MAX;
    for (int64_t rows = rows_n;; rows /= 2) {
        const int64_t rounds = (mla_share_tiles(sets_n, lines_n, rows) - 1) / threads + 1;
        const int64_t full = rows < lines_n ? rows : lines_n;
        const int64_t cost = rounds * (full + MLA_SHARE_KEYS);
        if (cost < least) {
            least = cost;
            best = rows;
        }
        if (rows / 2 < MLA_SHARE_LEAST) {
            return best;
        }
    }
}

#endif
