/* SPDX-License-Identifier: Apache-2.0
 *
 * store_source.c - copy a database through SQLite's backup, without leaving a trace beside it.
 *
 * A reader of a WAL database makes files beside it (and cannot take them away again), and cannot read at
 * all where it may not make them. So a file without a WAL, which nobody has open, is read as one that
 * does not change; that it did not is looked at afterwards, and if it did, it is read again in the
 * ordinary way, beside a WAL that is there now.
 */
#include "results/store_source.h"

#include "results/store_internal.h"
#include "results/store_migrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PAGES_A_STEP 1024

/* What must not change while a file is read as one that does not. */
struct look {
    bool still; /* no WAL and no journal: all of it is in the file */
    off_t bytes;
    struct timespec modified;
    struct timespec changed;
};

static bool exists_beside(const char *path, const char *suffix)
{
    struct stat info;
    size_t bytes = strlen(path) + strlen(suffix) + 1;
    char *name = malloc(bytes);
    if (name == NULL) {
        return true; /* the careful answer */
    }
    (void)snprintf(name, bytes, "%s%s", path, suffix);
    bool there = stat(name, &info) == 0;
    free(name);
    return there;
}

static struct look look_at(const char *path)
{
    struct look look = {0};
    struct stat info;
    if (stat(path, &info) == 0) {
        look.still = !exists_beside(path, "-wal") && !exists_beside(path, "-journal");
        look.bytes = info.st_size;
        look.modified = info.st_mtim;
        look.changed = info.st_ctim;
    }
    return look;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_same_look(const struct look *a, const struct look *b)
{
    return a->still && b->still && a->bytes == b->bytes && is_same_time(a->modified, b->modified) &&
           is_same_time(a->changed, b->changed);
}

/* "file:/a%20b?immutable=1" of "/a b"; NULL without memory. */
static char *still_uri(const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~";
    size_t room = 3 * strlen(path) + 32, used = 0;
    char *uri = malloc(room);
    if (uri == NULL) {
        return NULL;
    }
    used = (size_t)snprintf(uri, room, "file:");
    for (; *path != '\0'; path++) {
        bool as_is = strchr(plain, *path) != NULL;
        used += (size_t)snprintf(uri + used, room - used, as_is ? "%c" : "%%%02X",
                                 (unsigned char)*path);
    }
    (void)snprintf(uri + used, room - used, "?immutable=1");
    return uri;
}

static int32_t fail_reading(struct mla_store *source, const char *doing)
{
    (void)mla_sql_fail(source, doing);
    return MLA_STORE_ERR_OPEN;
}

static int32_t open_source(struct mla_store *source, bool still)
{
    char *uri = still ? still_uri(source->path) : NULL;
    if (still && uri == NULL) {
        return mla_store_fail(source, MLA_STORE_ERR_NOMEM, "no memory to open '%s'", source->path);
    }
    int flags = SQLITE_OPEN_READONLY | (still ? SQLITE_OPEN_URI : 0);
    int code = sqlite3_open_v2(still ? uri : source->path, &source->db, flags, NULL);
    free(uri);
    if (source->db == NULL) {
        return mla_store_fail(source, MLA_STORE_ERR_NOMEM, "no memory to open '%s'", source->path);
    }
    (void)sqlite3_busy_timeout(source->db, MLA_STORE_BUSY_MS);
    /* Everything below is read as of one moment, whoever writes meanwhile. */
    if (code == SQLITE_OK) {
        code =
            sqlite3_exec(source->db, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    }
    if (code == SQLITE_OK || code == SQLITE_NOTADB) { /* the latter has its own words */
        return MLA_STORE_OK;
    }
    return fail_reading(source, "read");
}

static bool is_stopped(const volatile int *stop)
{
    return stop != NULL && *stop != 0;
}

/* Copy a whole database; the message is of source. */
static int32_t copy(struct mla_store *source, sqlite3 *to, const char *schema,
                    const volatile int *stop)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, schema, source->db, "main");
    int code = SQLITE_OK;
    while (backup != NULL && code == SQLITE_OK && !is_stopped(stop)) {
        code = sqlite3_backup_step(backup, PAGES_A_STEP);
    }
    int end = sqlite3_backup_finish(backup); /* of NULL: no error */
    if (is_stopped(stop)) {
        return mla_store_fail(source, MLA_STORE_ERR_STOPPED, "stopped while '%s' was read",
                              source->path);
    }
    if (backup != NULL && code == SQLITE_DONE && end == SQLITE_OK) {
        return MLA_STORE_OK;
    }
    return mla_store_fail(source, MLA_STORE_ERR_OPEN,
                          "cannot copy '%s' to a temporary database: %s (SQLite error %d); its "
                          "place must have room (SQLITE_TMPDIR names another)",
                          source->path, backup == NULL ? sqlite3_errmsg(to) : sqlite3_errstr(code),
                          code);
}

/* Bring an older copy to today's schema on its way. */
static int32_t copy_migrated(struct mla_store *source, struct mla_store *store, const char *schema,
                             const volatile int *stop)
{
    struct mla_store old = {.path = source->path};
    if (sqlite3_open("", &old.db) != SQLITE_OK) {
        (void)sqlite3_close(old.db);
        return mla_store_fail(source, MLA_STORE_ERR_NOMEM, "no memory to copy '%s'", source->path);
    }
    int32_t status = copy(source, old.db, "main", stop);
    if (status == MLA_STORE_OK) {
        status = mla_migrate(&old);
        if (status == MLA_STORE_OK) {
            status = copy(&old, store->db, schema, stop);
        }
        if (status != MLA_STORE_OK) {
            memcpy(source->message, old.message, sizeof source->message);
        }
    }
    mla_sql_finalize(&old);
    (void)sqlite3_close(old.db);
    return status;
}

static int32_t copy_source(struct mla_store *source, struct mla_store *store, const char *schema,
                           const volatile int *stop)
{
    int64_t version = 0;
    int32_t status = mla_migrate_identify(source, MLA_STORE_SCHEMA_VERSION, &version);
    if (status != MLA_STORE_OK) {
        return status;
    }
    if (version == 0) {
        return mla_store_fail(source, MLA_STORE_ERR_OPEN, "'%s' is empty", source->path);
    }
    return version == MLA_STORE_SCHEMA_VERSION ? copy(source, store->db, schema, stop)
                                               : copy_migrated(source, store, schema, stop);
}

/* Open, copy, close. *still tells whether the file was read as one that does not change. */
static int32_t read_source(struct mla_store *store, char *path, const char *schema, bool still,
                           const volatile int *stop)
{
    struct mla_store source = {.path = path};
    int32_t status = open_source(&source, still);
    if (status == MLA_STORE_OK) {
        status = copy_source(&source, store, schema, stop);
    }
    if (status != MLA_STORE_OK) {
        memcpy(store->message, source.message, sizeof store->message);
    }
    mla_sql_finalize(&source);
    (void)sqlite3_close(source.db);
    return status;
}

/* Rows of a check that finds nothing: one "ok", or none. */
static int count_trouble(void *context, int columns_n, char **values, char **names)
{
    (void)names;
    *(int *)context += columns_n == 1 && values[0] != NULL && strcmp(values[0], "ok") == 0 ? 0 : 1;
    return 0;
}

/* An older program that had the file open while it was migrated may have begun a run without a name. */
static int32_t check_names(struct mla_store *store, const char *path)
{
    int64_t run = 0;
    sqlite3_stmt *stmt = mla_sql_prepare(store, "SELECT id FROM src.run WHERE uid IS NULL LIMIT 1");
    if (stmt == NULL) {
        return MLA_STORE_ERR_OPEN;
    }
    int32_t status = mla_sql_int64(store, stmt, "read the names of runs", &run);
    (void)sqlite3_finalize(stmt);
    if (status == MLA_STORE_ERR_NOT_FOUND) {
        return MLA_STORE_OK;
    }
    if (status != MLA_STORE_OK) {
        return status;
    }
    return mla_store_fail(
        store, MLA_STORE_ERR_OPEN,
        "run %lld of '%s' has no name: an older mlacheck began it while this one migrated the "
        "file; "
        "`UPDATE run SET uid = lower(hex(randomblob(16))) WHERE uid IS NULL` gives it one",
        (long long)run, path);
}

/* What is damaged must not half come in. */
static int32_t check_copy(struct mla_store *store, const char *path)
{
    int trouble_n = 0;
    int code = sqlite3_exec(store->db, "PRAGMA src.quick_check(1); PRAGMA src.foreign_key_check",
                            count_trouble, &trouble_n, NULL);
    if (code != SQLITE_OK || trouble_n > 0) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN,
                              "'%s' is damaged: nothing of it was taken; " MLA_STORE_SALVAGE, path);
    }
    return check_names(store, path);
}

static int32_t resolve(struct mla_store *store, const char *path, char **resolved)
{
    struct stat info, own;
    if (path == NULL || path[0] == '\0') {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "the path of a source is empty");
    }
    *resolved = realpath(path, NULL);
    if (*resolved == NULL || stat(*resolved, &info) != 0) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "cannot read '%s': %s", path,
                              strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "'%s' is not a regular file", path);
    }
    if (stat(store->path, &own) == 0 && own.st_dev == info.st_dev && own.st_ino == info.st_ino) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN, "'%s' cannot be merged into itself", path);
    }
    return MLA_STORE_OK;
}

static int32_t copy_to(struct mla_store *store, char *path, const char *schema,
                       const volatile int *stop)
{
    struct look before = look_at(path);
    int32_t status = read_source(store, path, schema, before.still, stop);
    struct look after = look_at(path);
    if (before.still && status != MLA_STORE_ERR_STOPPED && !is_same_look(&before, &after)) {
        status = read_source(store, path, schema, false, stop);
    }
    return status;
}

int32_t mla_source_attach(struct mla_store *store, const char *path, const volatile int *stop)
{
    char *resolved = NULL;
    int32_t status = resolve(store, path, &resolved);
    if (status == MLA_STORE_OK &&
        sqlite3_exec(store->db, "ATTACH '' AS src", NULL, NULL, NULL) != SQLITE_OK) {
        status = mla_sql_fail(store, "make a temporary database");
    } else if (status == MLA_STORE_OK) {
        status = copy_to(store, resolved, "src", stop);
        status = status == MLA_STORE_OK ? check_copy(store, resolved) : status;
        if (status != MLA_STORE_OK) {
            mla_source_detach(store);
        }
    }
    free(resolved);
    return status;
}

int32_t mla_source_read(struct mla_store *store, char *path)
{
    if (sqlite3_open("", &store->db) != SQLITE_OK) {
        return mla_store_fail(store, MLA_STORE_ERR_NOMEM, "no memory to copy '%s'", path);
    }
    return copy_to(store, path, "main", NULL);
}

void mla_source_detach(struct mla_store *store)
{
    (void)sqlite3_exec(store->db, "DETACH src", NULL, NULL, NULL);
}
