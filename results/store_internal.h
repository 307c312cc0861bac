/* SPDX-License-Identifier: Apache-2.0
 *
 * store_internal.h - what the files of the store share; nobody else includes it.
 *
 * One struct holds the connection, the cached statements, the queue and the in-flight note. Every
 * function here returns an enum mla_store_status and leaves its text in the store's message.
 */
#ifndef MLA_RESULTS_STORE_INTERNAL_H
#define MLA_RESULTS_STORE_INTERNAL_H

#include "results/inflight.h"
#include "results/store.h"
#include "results/store_queue.h"
#include "results/store_sql.h"

#include <sqlite3.h>
#include <sys/types.h>

#define MLA_STORE_BUSY_MS 30000 /* patience with other writers */
/* What helps with a damaged file; follows "damaged: ". */
#define MLA_STORE_SALVAGE                                                                          \
    "`sqlite3 FILE .recover | sqlite3 NEW` saves what can be read, a copy of the file all of it"
#define MLA_STORE_TIME_BYTES 32 /* "2025-01-02T03:04:05Z" and room */

struct mla_store {
    sqlite3 *db;
    char *path; /* absolute, symbolic links resolved */
    pid_t pid;  /* the process that opened it */
    char message[2048];
    sqlite3_stmt *stmts[MLA_SQL_N];
    sqlite3_stmt *views[MLA_VIEW_N][4]; /* [keyed, as JSON]: see store_view.c */
    int64_t run;                        /* the current run, 0 for none */
    char run_started[MLA_STORE_TIME_BYTES];
    struct mla_queue queue;
    struct mla_note note;
    char *notice; /* NULL: none */
};

/* Set the message and return status. */
int32_t mla_store_fail(struct mla_store *store, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* OK, or an error: store is NULL, or used in a process that did not open it. */
int32_t mla_store_usable(struct mla_store *store);
/* The time now as an ISO 8601 UTC text. */
void mla_store_now(char text[MLA_STORE_TIME_BYTES]);

/* Connect to the file, new or ours, in WAL mode; sets path and db. Refuses any other file. */
int32_t mla_connect(struct mla_store *store, const char *path);

/* Write a case unless it is there; its row number. Within a transaction. */
int32_t mla_write_case(struct mla_store *store, const struct mla_store_case *testcase,
                       int64_t *num);
/* Write one verdict of a run, with its case, metrics and finding; within a transaction. */
int32_t mla_write_verdict(struct mla_store *store, int64_t run,
                          const struct mla_store_verdict *verdict, const char *now);
/* Count an addition to a run: of two copies of it the one with more is the later. */
int32_t mla_write_touch(struct mla_store *store, int64_t run);
/* Begin, commit, or take back (keeping the message) a write transaction. */
int32_t mla_write_begin(struct mla_store *store);
int32_t mla_write_commit(struct mla_store *store);
void mla_write_rollback(struct mla_store *store);

/*
 * The run a dead process worked for: id when it is the run that started then, else (the database
 * was replaced meanwhile) a new run that says so. Within a transaction.
 */
int32_t mla_run_of_note(struct mla_store *store, int64_t id, const char *started,
                        const char *kernel, const char *now, int64_t *run);

/* The row number of the one case whose id begins with prefix. */
int32_t mla_find_case(struct mla_store *store, const char *prefix, int64_t *num);

/* Turn the notes of dead processes into verdicts and findings. */
int32_t mla_inflight_recover(struct mla_store *store, const struct mla_store_death *death);
/* Remove this store's note; always succeeds. */
void mla_inflight_close(struct mla_store *store);

#endif
