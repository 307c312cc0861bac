/* SPDX-License-Identifier: Apache-2.0
 *
 * store_connect.c - from a path to a connection to a database that is ours, in WAL mode.
 *
 * Looks before it writes: a file that is not ours stays as it is, byte for byte. What SQLite would
 * misread or only complain about later (special names, pipes, folders that take no files) is
 * refused first, in words that name the path.
 */
#include "results/store_internal.h"
#include "results/store_migrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The folder and name of notes must not depend on the working directory or on links. */
static int32_t resolve_path(struct mla_store *store)
{
    char *resolved = realpath(store->path, NULL);
    if (resolved == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "cannot resolve '%s': %s", store->path,
                              strerror(errno));
    }
    free(store->path);
    store->path = resolved;
    return MLA_STORE_OK;
}

/* WAL mode makes files beside the database: its folder must take them. */
static int32_t check_folder(struct mla_store *store)
{
    char *slash = strrchr(store->path, '/'); /* there is one: see take_path */
    char after = slash[1];
    slash[1] = '\0';
    int error = access(store->path, W_OK | X_OK) == 0 ? 0 : errno;
    slash[1] = after;
    if (error == 0) {
        return MLA_STORE_OK;
    }
    return mla_store_fail(store, MLA_STORE_ERR_OPEN, "the folder of '%s' is not writable: %s",
                          store->path, strerror(error));
}

/* Refuse what SQLite would misread: special names, folders, pipes. Sets store->path. */
static int32_t take_path(struct mla_store *store, const char *path)
{
    if (path == NULL || path[0] == '\0') {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "the path of the database is empty");
    }
    /* "./" keeps ":memory:" and "file:..." what they are here: file names. */
    size_t bytes = strlen(path) + 3;
    store->path = malloc(bytes);
    if (store->path == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to open '%s'", path);
    }
    (void)snprintf(store->path, bytes, "%s%s", path[0] == '/' ? "" : "./", path);
    struct stat info;
    if (stat(store->path, &info) != 0) {
        return check_folder(store); /* new */
    }
    if (S_ISDIR(info.st_mode)) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "'%s' is a folder, not a database", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "'%s' is not a regular file", path);
    }
    int32_t status = resolve_path(store);
    return status == MLA_STORE_OK ? check_folder(store) : status;
}

static int32_t connect_file(struct mla_store *store)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(store->path, &store->db, flags, NULL);
    if (code == SQLITE_NOMEM || store->db == NULL) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to open '%s'", store->path);
    }
    if (code != SQLITE_OK) {
        int error = sqlite3_system_errno(store->db);
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "cannot open '%s': %s (%s)", store->path,
                              sqlite3_errmsg(store->db), error == 0 ? "-" : strerror(error));
    }
    if (sqlite3_db_readonly(store->db, "main") != 0) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "'%s' is not writable", store->path);
    }
    (void)sqlite3_busy_timeout(store->db, MLA_STORE_BUSY_MS);
    /* Until the file is known to be ours: closing must not move another's WAL into its database. */
    struct stat info;
    const char *wal = sqlite3_filename_wal(sqlite3_db_filename(store->db, "main"));
    if (stat(wal, &info) == 0 && info.st_size > 0) {
        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    return MLA_STORE_OK;
}

/*
 * One try to set WAL mode; *mode_is_wal tells whether the file now is in it. SQLite does not wait
 * for others in this step (it may give SQLITE_BUSY at once), so set_wal tries again.
 */
static int try_wal(struct mla_store *store, bool *mode_is_wal)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
    }
    if (code == SQLITE_ROW) {
        const char *mode = (const char *)sqlite3_column_text(stmt, 0);
        *mode_is_wal = mode != NULL && strcmp(mode, "wal") == 0;
    }
    (void)sqlite3_finalize(stmt);
    return code;
}

static int32_t set_wal(struct mla_store *store)
{
    const struct timespec pause = {0, 10000000};
    int64_t until = mla_queue_clock_ns() + (int64_t)MLA_STORE_BUSY_MS * 1000000;
    bool mode_is_wal = false;
    int code = try_wal(store, &mode_is_wal);
    while ((code & 0xff) == SQLITE_BUSY && mla_queue_clock_ns() < until) {
        (void)nanosleep(&pause, NULL);
        code = try_wal(store, &mode_is_wal);
    }
    if (code != SQLITE_ROW) {
        (void)mla_sql_fail(store, "set WAL mode");
        return MLA_STORE_ERR_OPEN;
    }
    if (!mode_is_wal) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN,
                              "'%s' lies where SQLite cannot use WAL mode (a network folder?)",
                              store->path);
    }
    return MLA_STORE_OK;
}

static int32_t configure(struct mla_store *store)
{
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    int32_t status = set_wal(store);
    if (status != MLA_STORE_OK) {
        return status;
    }
    /* NORMAL in WAL mode: kill -9 loses nothing committed; a power cut may lose the last commits.
     */
    if (sqlite3_exec(store->db, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON", NULL, NULL,
                     NULL) != SQLITE_OK) {
        (void)mla_sql_fail(store, "set up the connection");
        return MLA_STORE_ERR_OPEN;
    }
    return MLA_STORE_OK;
}

int32_t mla_connect(struct mla_store *store, const char *path)
{
    int64_t version = 0;
    int32_t status = take_path(store, path);
    if (status == MLA_STORE_OK) {
        status = connect_file(store);
    }
    if (status == MLA_STORE_OK) {
        status = mla_migrate_identify(store, MLA_STORE_SCHEMA_VERSION, &version);
    }
    if (status == MLA_STORE_OK) {
        status = resolve_path(store);
    }
    if (status == MLA_STORE_OK) {
        status = configure(store);
    }
    return status;
}
