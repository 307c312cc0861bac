/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight_recover.c - at open: turn the notes of dead processes into verdicts, and into findings where
 * somebody saw the kernel fail.
 *
 * For each file named like a note of this database: is its process dead, can it be locked, is it
 * still there? Then commit what it says, and only then remove the file. Who dies in between leaves
 * both; the next one finds the verdict already there. A file that does not look like a note is left
 * alone.
 */
#include "results/inflight.h"
#include "results/process.h"
#include "results/store_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is said of the death of a process: by who saw it, by itself in its last moment, or by nobody. */
#define REASON_BYTES 160
struct death {
    const char *verdict;
    char reason[REASON_BYTES];
};

static void explain_death(const struct mla_note_content *content,
                          const struct mla_store_death *seen, struct death *death)
{
    if (seen != NULL) {
        death->verdict = seen->verdict;
        (void)snprintf(death->reason, REASON_BYTES, "%s", seen->reason);
    } else if (content->signal != 0) {
        death->verdict = "crash";
        (void)snprintf(death->reason, REASON_BYTES, "ended the judging process by signal %d (%s)",
                       content->signal, strsignal(content->signal));
    } else { /* kill -9, out of memory, a power cut: nobody's fault that anybody knows of */
        death->verdict = "unjudged";
        (void)snprintf(death->reason, REASON_BYTES, "%s", MLA_STORE_INTERRUPTED);
    }
}

/* The pid in "<base>-inflight-<pid>[-<number>]", 0 for any other name. */
static int64_t pid_of_name(const char *name, const char *base)
{
    size_t base_n = strlen(base);
    size_t infix_n = strlen(MLA_NOTE_INFIX);
    if (strncmp(name, base, base_n) != 0 || strncmp(name + base_n, MLA_NOTE_INFIX, infix_n) != 0) {
        return 0;
    }
    const char *digits = name + base_n + infix_n;
    size_t digits_n = strspn(digits, "0123456789");
    if (digits_n == 0 || digits_n > 18) {
        return 0;
    }
    const char *rest = digits + digits_n;
    bool numbered =
        rest[0] == '-' && rest[1] != '\0' && rest[1 + strspn(rest + 1, "0123456789")] == '\0';
    return rest[0] == '\0' || numbered ? strtoll(digits, NULL, 10) : 0;
}

/* Has this death been stored before (by a process that died before it could remove the note)? */
static int32_t is_stored(struct mla_store *store, int64_t run,
                         const struct mla_note_content *content, const char *reason, bool *stored)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_FIND_DEATH);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_int(stmt, 1, run);
    code |= mla_sql_bind_text(stmt, 2, content->testcase.id);
    code |= mla_sql_bind_text(stmt, 3, content->kernel);
    code |= mla_sql_bind_text(stmt, 4, reason);
    if (code != 0) {
        return mla_sql_fail(store, "find a death");
    }
    int64_t row = 0;
    int32_t status = mla_sql_int64(store, stmt, "find a death", &row);
    *stored = status == MLA_STORE_OK;
    return status == MLA_STORE_ERR_NOT_FOUND ? MLA_STORE_OK : status;
}

/* For the user, who shall hear of it once. Without memory it is only stored. */
static void add_notice(struct mla_store *store, int64_t run, const struct mla_note_content *content)
{
    size_t n = store->notice == NULL ? 0 : strlen(store->notice);
    size_t more = strlen(content->kernel) + strlen(content->repro) + 160;
    char *grown = realloc(store->notice, n + more);
    if (grown == NULL) {
        return;
    }
    (void)snprintf(
        grown + n, more,
        "run %lld ended while judging case %.12s by %s, which has no verdict in it%s%s\n",
        (long long)run, content->testcase.id, content->kernel,
        content->repro[0] == '\0' ? "" : ": run it again with: ", content->repro);
    store->notice = grown;
}

static int32_t write_death(struct mla_store *store, const struct mla_note_content *content,
                           const struct death *death)
{
    char now[MLA_STORE_TIME_BYTES];
    mla_store_now(now);
    const struct mla_store_verdict row = {.testcase = &content->testcase,
                                          .kernel = content->kernel,
                                          .verdict = death->verdict,
                                          .reason = death->reason,
                                          .max_ratio = -1.0,
                                          .elements_n = MLA_STORE_NULL,
                                          .repro =
                                              content->repro[0] == '\0' ? NULL : content->repro};
    int64_t run = 0;
    bool stored = false;
    int32_t status = mla_write_begin(store);
    if (status == MLA_STORE_OK) {
        status = mla_run_of_note(store, content->run, content->started, content->kernel, now, &run);
    }
    if (status == MLA_STORE_OK) {
        status = is_stored(store, run, content, death->reason, &stored);
    }
    if (status == MLA_STORE_OK && !stored) {
        status = mla_write_verdict(store, run, &row, now);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
    } else if (!stored && strcmp(death->verdict, "unjudged") == 0) {
        add_notice(store, run, content);
    }
    return status;
}

/* Store what a note says if the schema takes it. */
static int32_t store_note(struct mla_store *store, const struct mla_note_content *content,
                          const struct mla_store_death *seen)
{
    struct death death;
    explain_death(content, seen, &death);
    const struct mla_store_verdict row = {.testcase = &content->testcase,
                                          .kernel = content->kernel,
                                          .verdict = death.verdict,
                                          .elements_n = MLA_STORE_NULL};
    bool takes = mla_queue_check_verdict(store, &row) == MLA_STORE_OK;
    return takes ? write_death(store, content, &death) : MLA_STORE_OK;
}

/* Is the locked file still the one under that name (and not removed by who had the lock before)? */
static bool is_still_there(int file, int folder, const char *name)
{
    struct stat opened, named;
    return fstat(file, &opened) == 0 && fstatat(folder, name, &named, 0) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static int32_t recover_file(struct mla_store *store, int folder, const char *name, int64_t pid,
                            const struct mla_store_death *seen)
{
    struct mla_note_content note;
    uint64_t start = 0;
    bool looks_ours = false;
    int32_t status = MLA_STORE_OK;
    int file = openat(folder, name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0) {
        return MLA_STORE_OK; /* gone, another's, or not a file */
    }
    (void)mla_note_read(file, &note, &start, &looks_ours);
    mla_note_free(&note);
    if (looks_ours && (seen != NULL || !mla_process_alive(pid, start)) &&
        mla_note_lock(file, false) && is_still_there(file, folder, name)) {
        if (mla_note_read(file, &note, &start, &looks_ours)) { /* as its owner left it */
            status = store_note(store, &note, seen);
            mla_note_free(&note);
        }
        if (status == MLA_STORE_OK && looks_ours) {
            (void)unlinkat(folder, name, 0);
        }
    }
    (void)close(file);
    return status;
}

int32_t mla_inflight_recover(struct mla_store *store, const struct mla_store_death *death)
{
    const char *base = strrchr(store->path, '/') + 1; /* the path is absolute */
    char *folder_path = strndup(store->path, (size_t)(base - store->path));
    DIR *folder = folder_path == NULL ? NULL : opendir(folder_path);
    if (folder == NULL) {
        int32_t status = mla_store_fail(store, MLA_STORE_ERR_OPEN,
                                        "cannot list the folder of '%s' for in-flight notes: %s",
                                        store->path, strerror(errno));
        free(folder_path);
        return status;
    }
    int32_t status = MLA_STORE_OK;
    struct dirent *entry = readdir(folder);
    for (; status == MLA_STORE_OK && entry != NULL; entry = readdir(folder)) {
        int64_t pid = pid_of_name(entry->d_name, base);
        if (pid > 0) {
            bool seen = death != NULL && death->pid == pid;
            status = recover_file(store, dirfd(folder), entry->d_name, pid, seen ? death : NULL);
        }
    }
    (void)closedir(folder);
    free(folder_path);
    return status;
}
