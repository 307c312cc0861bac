/* SPDX-License-Identifier: Apache-2.0
 *
 * store_sql.h - prepared statements: one table of texts, prepared at first use and kept.
 *
 * Values reach SQL only through bound parameters. Bind functions return SQLite codes, which are
 * OR-ed by callers: zero means that all of them succeeded.
 */
#ifndef MLA_RESULTS_STORE_SQL_H
#define MLA_RESULTS_STORE_SQL_H

#include <sqlite3.h>
#include <stdint.h>

struct mla_store;

enum mla_sql {
    MLA_SQL_BEGIN = 0,
    MLA_SQL_COMMIT,
    MLA_SQL_ROLLBACK,
    MLA_SQL_INSERT_BUILD,
    MLA_SQL_FIND_BUILD,
    MLA_SQL_INSERT_RUN,
    MLA_SQL_END_RUN,
    MLA_SQL_TOUCH_RUN,
    MLA_SQL_FIND_RUN,
    MLA_SQL_LATEST_RUN,
    MLA_SQL_INSERT_CASE,
    MLA_SQL_FIND_CASE,
    MLA_SQL_CASES_BETWEEN,
    MLA_SQL_CASE_LINE,
    MLA_SQL_INSERT_VERDICT,
    MLA_SQL_INSERT_METRIC,
    MLA_SQL_UPSERT_TALLY,
    MLA_SQL_UPSERT_FINDING,
    MLA_SQL_FIND_DEATH,
    MLA_SQL_INSERT_BENCH,
    MLA_SQL_INSERT_TRIAL,
    MLA_SQL_INSERT_CATCH,
    MLA_SQL_INSERT_BISECT,
    MLA_SQL_FIND_BISECT,
    MLA_SQL_UPSERT_STEP,
    MLA_SQL_STEPS,
    MLA_SQL_END_BISECT,
    MLA_SQL_REPORT_METRICS,
    MLA_SQL_REPORT_CASE,
    MLA_SQL_REPORT_REASON,
    MLA_SQL_REPORT_REPRO,
    MLA_SQL_REPORT_RELATION,
    MLA_SQL_N
};

/* The statement, ready for binding; NULL on error with the message set. */
sqlite3_stmt *mla_sql_get(struct mla_store *store, enum mla_sql id);
/* Prepare any text to be kept; NULL on error with the message set. */
sqlite3_stmt *mla_sql_prepare(struct mla_store *store, const char *text);
/* Run a statement without rows to its end and reset it. doing: "store a verdict", for the message.
 */
int32_t mla_sql_run(struct mla_store *store, sqlite3_stmt *stmt, const char *doing);
/* First column of the first row: OK, NOT_FOUND (no row, message not set) or an error. */
int32_t mla_sql_int64(struct mla_store *store, sqlite3_stmt *stmt, const char *doing,
                      int64_t *value);
/* The status of the last SQLite error, its text in the message. */
int32_t mla_sql_fail(struct mla_store *store, const char *doing);
void mla_sql_finalize(struct mla_store *store);

/* Text (NULL binds NULL) that stays alive until the statement is reset. */
int mla_sql_bind_text(sqlite3_stmt *stmt, int index, const char *text);
/* Integer, MLA_STORE_NULL binds NULL. */
int mla_sql_bind_int(sqlite3_stmt *stmt, int index, int64_t value);
/* Finite: a REAL; otherwise the text inf, -inf or nan. */
int mla_sql_bind_figure(sqlite3_stmt *stmt, int index, double value);
/* A ratio: as a figure, negative (there is none) binds NULL. */
int mla_sql_bind_ratio(sqlite3_stmt *stmt, int index, double value);

#endif
