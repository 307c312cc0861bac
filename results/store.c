/* SPDX-License-Identifier: Apache-2.0
 *
 * store.c - open and close, the message, the versions.
 *
 * Opening: connect (store_connect.c), migrate (store_migrate.c), then the notes of dead processes
 * (inflight_recover.c). store_queue.c and store_write.c write, store_view.c and store_find.c read.
 */
#include "results/store.h"

#include "results/store_internal.h"
#include "results/store_migrate.h"
#include "results/store_source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int32_t mla_store_fail(struct mla_store *store, int32_t status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(store->message, sizeof store->message, format, arguments);
    va_end(arguments);
    return status;
}

int32_t mla_store_usable(struct mla_store *store)
{
    if (store == NULL) {
        return MLA_STORE_ERR_OPEN;
    }
    if (getpid() != store->pid) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN,
                              "the store belongs to process %ld, not to its child %ld",
                              (long)store->pid, (long)getpid());
    }
    return MLA_STORE_OK;
}

void mla_store_now(char text[MLA_STORE_TIME_BYTES])
{
    time_t seconds = time(NULL);
    struct tm utc;
    memset(&utc, 0, sizeof utc);
    (void)gmtime_r(&seconds, &utc);
    (void)strftime(text, MLA_STORE_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

const char *mla_store_message(const struct mla_store *store)
{
    return store == NULL ? "no store is open" : store->message;
}

const char *mla_store_notice(const struct mla_store *store)
{
    return store == NULL || store->notice == NULL ? "" : store->notice;
}

bool mla_store_versions(char *text, size_t text_bytes)
{
    if (text != NULL && text_bytes > 0) {
        (void)snprintf(text, text_bytes, "SQLite %s (header %s)", sqlite3_libversion(),
                       SQLITE_VERSION);
    }
    return sqlite3_libversion_number() == SQLITE_VERSION_NUMBER &&
           strcmp(sqlite3_sourceid(), SQLITE_SOURCE_ID) == 0;
}

static int32_t open_steps(struct mla_store *store, const char *path,
                          const struct mla_store_death *death)
{
    int32_t status = mla_connect(store, path);
    if (status == MLA_STORE_OK) {
        status = mla_migrate(store);
    }
    if (status == MLA_STORE_OK) {
        status = mla_inflight_recover(store, death);
    }
    return status;
}

static void release(struct mla_store *store)
{
    mla_inflight_close(store);
    mla_queue_clear(&store->queue);
    free(store->queue.verdicts);
    free(store->queue.tallies);
    mla_sql_finalize(store);
    (void)sqlite3_close(store->db);
    free(store->path);
    free(store->notice);
    free(store);
}

int32_t mla_store_open(const char *path, struct mla_store **store, char *message,
                       size_t message_bytes)
{
    return mla_store_open_after(path, NULL, store, message, message_bytes);
}

static struct mla_store *begin_open(void)
{
    struct mla_store *opened = calloc(1, sizeof *opened);
    if (opened != NULL) {
        opened->pid = getpid();
        opened->note.file = -1;
        opened->queue.tried_ns = mla_queue_clock_ns();
    }
    return opened;
}

/* Hand it over, or say why not and release it. */
static int32_t end_open(struct mla_store *opened, int32_t status, struct mla_store **store,
                        char *message, size_t message_bytes)
{
    if (message != NULL && message_bytes > 0) {
        (void)snprintf(message, message_bytes, "%s", status == MLA_STORE_OK ? "" : opened->message);
    }
    *store = status == MLA_STORE_OK ? opened : NULL;
    if (status != MLA_STORE_OK) {
        release(opened);
    }
    return status;
}

int32_t mla_store_open_after(const char *path, const struct mla_store_death *death,
                             struct mla_store **store, char *message, size_t message_bytes)
{
    struct mla_store *opened = begin_open();
    *store = NULL;
    if (opened == NULL) {
        if (message != NULL && message_bytes > 0) {
            (void)snprintf(message, message_bytes, "no memory to open '%s'",
                           path == NULL ? "" : path);
        }
        return MLA_STORE_ERR_NOMEM;
    }
    return end_open(opened, open_steps(opened, path, death), store, message, message_bytes);
}

/* A regular file that can be read, and itself or its folder not written. */
static bool is_closed(const char *path, char **resolved)
{
    struct stat info;
    *resolved = path == NULL ? NULL : realpath(path, NULL);
    if (*resolved == NULL || stat(*resolved, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    char *slash = strrchr(*resolved, '/'), after = slash[1];
    slash[1] = '\0';
    bool folder = access(*resolved, W_OK | X_OK) == 0;
    slash[1] = after;
    return !folder || access(*resolved, W_OK) != 0;
}

int32_t mla_store_open_read(const char *path, struct mla_store **store, char *message,
                            size_t message_bytes)
{
    char *resolved = NULL;
    struct mla_store *opened = is_closed(path, &resolved) ? begin_open() : NULL;
    if (opened == NULL) {
        free(resolved);
        return mla_store_open(path, store, message, message_bytes);
    }
    opened->path = resolved;
    return end_open(opened, mla_source_read(opened, resolved), store, message, message_bytes);
}

int32_t mla_store_close(struct mla_store *store)
{
    if (store == NULL) {
        return MLA_STORE_OK;
    }
    if (getpid() != store->pid) {
        /* In a forked child: closing here would drop the parent's locks. Leave everything. */
        return MLA_STORE_ERR_OPEN;
    }
    int32_t status = mla_store_flush(store);
    release(store);
    return status;
}
