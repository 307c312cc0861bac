/* SPDX-License-Identifier: Apache-2.0
 *
 * store_find.c - a case by the beginning of its id.
 *
 * Ids are hex texts with an index, so a prefix is a range: from the prefix up to the prefix with
 * its last digit raised by one character ('9' to ':', 'f' to 'g').
 */
#include "results/store_internal.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX_MIN 4
#define PREFIX_MAX 64

static bool is_prefix(const char *prefix)
{
    size_t n = strspn(prefix, "0123456789abcdef");
    return prefix[n] == '\0' && n >= PREFIX_MIN && n <= PREFIX_MAX;
}

/* How many cases (2: two or more) lie in [low, high), and the number of the first. */
static int32_t cases_between(struct mla_store *store, const char *low, const char *high,
                             int *cases_n, int64_t *num)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_CASES_BETWEEN);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    if ((mla_sql_bind_text(stmt, 1, low) | mla_sql_bind_text(stmt, 2, high)) != 0) {
        return mla_sql_fail(store, "find a case");
    }
    *cases_n = 0;
    int code = sqlite3_step(stmt);
    for (; code == SQLITE_ROW; code = sqlite3_step(stmt)) {
        if ((*cases_n)++ == 0) {
            *num = sqlite3_column_int64(stmt, 0);
        }
    }
    int32_t status = code == SQLITE_DONE ? MLA_STORE_OK : mla_sql_fail(store, "find a case");
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return status;
}

int32_t mla_find_case(struct mla_store *store, const char *prefix, int64_t *num)
{
    if (prefix == NULL || !is_prefix(prefix)) {
        return mla_store_fail(store, MLA_STORE_ERR_NOT_FOUND,
                              "case id '%.80s' is not %d to %d lower-case hex digits",
                              prefix == NULL ? "(null)" : prefix, PREFIX_MIN, PREFIX_MAX);
    }
    char high[PREFIX_MAX + 1];
    size_t n = strlen(prefix);
    memcpy(high, prefix, n + 1);
    high[n - 1]++;
    int cases_n = 0;
    int32_t status = cases_between(store, prefix, high, &cases_n, num);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (cases_n == 0) {
        return mla_store_fail(store, MLA_STORE_ERR_NOT_FOUND, "no case '%s' in '%s'", prefix,
                              store->path);
    }
    if (cases_n > 1) {
        return mla_store_fail(store, MLA_STORE_ERR_AMBIGUOUS,
                              "case id '%s' fits several cases in '%s': give more digits", prefix,
                              store->path);
    }
    return MLA_STORE_OK;
}

int32_t mla_store_find_line(struct mla_store *store, const char *prefix, char **line)
{
    *line = NULL;
    int32_t status = mla_store_flush(store);
    int64_t num = 0;
    if (status == MLA_STORE_OK) {
        status = mla_find_case(store, prefix, &num);
    }
    if (status != MLA_STORE_OK) {
        return status;
    }
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_CASE_LINE);
    if (stmt == NULL || mla_sql_bind_int(stmt, 1, num) != 0 || sqlite3_step(stmt) != SQLITE_ROW) {
        status = mla_sql_fail(store, "read a case");
    } else {
        *line = strdup((const char *)sqlite3_column_text(stmt, 0));
        if (*line == NULL) {
            status = mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to read a case");
        }
    }
    (void)sqlite3_reset(stmt);
    return status;
}
