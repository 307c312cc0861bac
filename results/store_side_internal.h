/* SPDX-License-Identifier: Apache-2.0
 *
 * store_side_internal.h - what the files of a comparison's side share.
 */
#ifndef MLA_RESULTS_STORE_SIDE_INTERNAL_H
#define MLA_RESULTS_STORE_SIDE_INTERNAL_H

#include "results/store_internal.h"
#include "results/store_side.h"

#define MLA_SIDE_COMMIT_MAX 128
#define MLA_SIDE_TEXTS      17 /* columns kept of a row */

/* The runs of a side: "WITH chosen AS (..)", of those that fit a condition. The latest is the one that started
 * last; of several in one second it is said by uid, which no order of merging changes (store_digest.h). */
#define MLA_SIDE_CHOSEN(condition)                                                                 \
    "WITH chosen AS (SELECT r.id AS run, r.started, r.uid, r.command, r.kernels, b.git_commit, "   \
    "b.dirty,"                                                                                     \
    " b.sanitizer, b.isa FROM run AS r JOIN build AS b ON b.id = r.build WHERE " condition ")"

/* What stands behind the name of a plug-in in its run's list of kernels, "..,FILE.so:NAME@HASH,..": the hash of its
 * file; '' for other kernels, and where an older mlacheck made the list. */
#define MLA_SIDE_KERNEL_FILE(kernels, kernel)                                                      \
    "iif(instr(',' || " kernels ", ',' || " kernel " || '@') = 0, '', substr(" kernels             \
    ", instr(',' || " kernels ", ',' || " kernel " || '@') + length(" kernel ") + 1, 12))"

enum mla_side_kind { MLA_SIDE_ALL = 0, MLA_SIDE_RUN, MLA_SIDE_COMMIT };

struct mla_store_side {
    struct mla_store *store;
    enum mla_side_kind kind;
    int64_t run;
    char commit[MLA_SIDE_COMMIT_MAX];
    bool dirty;
    struct mla_side_facts facts;
    char last_commit[MLA_SIDE_COMMIT_MAX + 8];
    sqlite3_stmt *rows, *figure, *repro;
    bool has_snapshot;   /* a transaction of its own, to read in */
    bool began, has_row; /* of rows: the row it stands on is not taken yet */
    int64_t latest_run;  /* of the key at hand */
    bool latest_dirty;
    char *texts[MLA_SIDE_TEXTS];
    size_t rooms[MLA_SIDE_TEXTS];
};

/* Set the runs of a side to those of a spec, as mla_store_side_open has it. */
int32_t mla_side_choose(struct mla_store_side *side, const char *spec);
/* A statement over `chosen`, its runs bound; NULL: the store has the message. The caller finalizes it. */
sqlite3_stmt *mla_side_prepare(struct mla_store_side *side, const char *query);
/* A figure, which may be one of the texts inf, -inf and nan. */
double mla_side_figure_at(sqlite3_stmt *stmt, int column);

#endif
