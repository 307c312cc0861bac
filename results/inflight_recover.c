/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight_recover.c - at open: turn the notes of dead processes into crash verdicts and findings.
 *
 * For each file named like a note of this database: is its process dead, can it be locked, is it
 * still there? Then commit the finding, and only then remove the file. Who dies in between leaves
 * both; the next one finds the verdict already there. A file that does not look like a note is left
 * alone.
 */
#include "results/inflight.h"
#include "results/process.h"
#include "results/store_fields.h"
#include "results/store_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_BYTES_MAX ((off_t)1 << 30)

/* A note in memory. */
struct note_text {
    struct mla_note_head head;
    unsigned char *body;
    size_t body_bytes;
};

/* What is said of a death nobody saw. */
static const struct mla_store_death unseen = {0, "crash", "process died while this case ran"};

/* What a note says; texts are copies in one block. */
struct note_content {
    int64_t run;
    struct mla_store_case testcase;
    const char *id, *kernel, *repro, *started;
    char *texts;
};

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

static bool read_fully(int file, void *data, size_t bytes, off_t offset)
{
    unsigned char *end = data;
    while (bytes > 0) {
        ssize_t n = pread(file, end, bytes, offset);
        if (n <= 0) {
            return false;
        }
        end += n;
        offset += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Read head and, when there is a whole note, its body. *looks_ours: may the file be removed? */
static bool read_note(int file, struct note_text *note, bool *looks_ours)
{
    static const char nothing[sizeof note->head.magic];
    struct stat info;
    memset(note, 0, sizeof *note);
    *looks_ours = false;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > NOTE_BYTES_MAX) {
        return false;
    }
    if (info.st_size == 0) { /* died right after creating it */
        *looks_ours = true;
        return false;
    }
    if (!read_fully(file, &note->head, sizeof note->head, 0)) {
        return false;
    }
    bool unwritten = memcmp(note->head.magic, nothing, sizeof nothing) == 0;
    *looks_ours = unwritten || memcmp(note->head.magic, MLA_NOTE_MAGIC, sizeof nothing) == 0 ||
                  memcmp(note->head.magic, MLA_NOTE_MAGIC_1, sizeof nothing) == 0;
    uint64_t valid = atomic_load_explicit(&note->head.valid, memory_order_relaxed);
    if (!*looks_ours || unwritten || valid == 0 ||
        valid > (uint64_t)info.st_size - sizeof note->head) {
        return false;
    }
    note->body_bytes = (size_t)valid;
    note->body = malloc(note->body_bytes);
    if (note->body == NULL ||
        !read_fully(file, note->body, note->body_bytes, (off_t)sizeof note->head)) {
        *looks_ours = false; /* perhaps whole: leave it to the next open */
        return false;
    }
    return mla_note_checksum(note->body, note->body_bytes) == note->head.checksum;
}

static bool get(const unsigned char **at, const unsigned char *end, void *data, size_t bytes)
{
    if ((size_t)(end - *at) < bytes) {
        return false;
    }
    memcpy(data, *at, bytes);
    *at += bytes;
    return true;
}

/* The next text, copied to *room and terminated; NULL when the body ends before it. */
static const char *get_text(const unsigned char **at, const unsigned char *end, char **room)
{
    uint64_t length = 0;
    char *text = *room;
    if (!get(at, end, &length, sizeof length) || length > (uint64_t)(end - *at) ||
        !get(at, end, text, (size_t)length)) {
        return NULL;
    }
    text[length] = '\0';
    *room += length + 1;
    return text;
}

/* Take the body apart; false when it is not what inflight.c writes. content->texts is to be freed.
 */
static bool parse_note(const struct note_text *note, struct note_content *content)
{
    const unsigned char *at = note->body;
    const unsigned char *end = note->body + note->body_bytes;
    memset(content, 0, sizeof *content);
    bool old = memcmp(note->head.magic, MLA_NOTE_MAGIC_1, sizeof note->head.magic) == 0;
    content->testcase.sign_coins = MLA_STORE_NULL;
    bool ok = get(&at, end, &content->run, sizeof content->run);
    for (int i = 0; ok && i < MLA_CASE_NUMBERS_N - (old ? 1 : 0); i++) {
        ok = get(&at, end, mla_case_number(&content->testcase, i), sizeof(int64_t));
    }
    /* Each text's length takes more room in the body than its NUL does here. */
    content->texts = malloc(note->body_bytes + 1);
    char *room = content->texts;
    if (!ok || room == NULL) {
        return false;
    }
    const char **texts[4] = {&content->id, &content->kernel, &content->repro, &content->started};
    for (int i = 0; i < 4 + MLA_CASE_TEXTS_N; i++) {
        const char **text = i < 4 ? texts[i] : mla_case_text(&content->testcase, i - 4);
        *text = get_text(&at, end, &room);
        if (*text == NULL) {
            return false;
        }
    }
    if (at != end || strlen(content->id) != 64) {
        return false;
    }
    memcpy(content->testcase.id, content->id, 65);
    return true;
}

/* Has this death been stored before (by a process that died before it could remove the note)? */
static int32_t is_stored(struct mla_store *store, int64_t run, const struct note_content *content,
                         const char *reason, bool *stored)
{
    sqlite3_stmt *stmt = mla_sql_get(store, MLA_SQL_FIND_CRASH);
    if (stmt == NULL) {
        return MLA_STORE_ERR_WRITE;
    }
    int code = mla_sql_bind_int(stmt, 1, run);
    code |= mla_sql_bind_text(stmt, 2, content->id);
    code |= mla_sql_bind_text(stmt, 3, content->kernel);
    code |= mla_sql_bind_text(stmt, 4, reason);
    if (code != 0) {
        return mla_sql_fail(store, "find a crash");
    }
    int64_t row = 0;
    int32_t status = mla_sql_int64(store, stmt, "find a crash", &row);
    *stored = status == MLA_STORE_OK;
    return status == MLA_STORE_ERR_NOT_FOUND ? MLA_STORE_OK : status;
}

static int32_t write_crash(struct mla_store *store, const struct note_content *content,
                           const struct mla_store_death *death)
{
    char now[MLA_STORE_TIME_BYTES];
    mla_store_now(now);
    const struct mla_store_verdict crash = {.testcase = &content->testcase,
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
        status = mla_write_verdict(store, run, &crash, now);
    }
    if (status == MLA_STORE_OK) {
        status = mla_write_commit(store);
    }
    if (status != MLA_STORE_OK) {
        mla_write_rollback(store);
    }
    return status;
}

/* Store what a note says if it says something whole. */
static int32_t store_note(struct mla_store *store, const struct note_text *note,
                          const struct mla_store_death *death)
{
    struct note_content content;
    int32_t status = MLA_STORE_OK;
    bool whole = parse_note(note, &content);
    if (whole) {
        struct mla_store_verdict crash = {.testcase = &content.testcase,
                                          .kernel = content.kernel,
                                          .verdict = "crash",
                                          .elements_n = MLA_STORE_NULL};
        whole = mla_queue_check_verdict(store, &crash) == MLA_STORE_OK;
    }
    if (whole) {
        status = write_crash(store, &content, death);
    }
    free(content.texts);
    return status;
}

/* Is the locked file still the one under that name (and not removed by who had the lock before)? */
static bool is_still_there(int file, int folder, const char *name)
{
    struct stat opened, named;
    return fstat(file, &opened) == 0 && fstatat(folder, name, &named, 0) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static int32_t recover_file(struct mla_store *store, int folder, const char *name, int64_t pid,
                            const struct mla_store_death *death)
{
    struct note_text note;
    bool looks_ours = false;
    int32_t status = MLA_STORE_OK;
    int file = openat(folder, name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0) {
        return MLA_STORE_OK; /* gone, another's, or not a file */
    }
    bool whole = read_note(file, &note, &looks_ours);
    if (looks_ours && !mla_process_alive(pid, note.head.start) && mla_note_lock(file, false) &&
        is_still_there(file, folder, name)) {
        free(note.body);
        whole = read_note(file, &note, &looks_ours); /* as its owner left it */
        if (whole) {
            status = store_note(store, &note, death);
        }
        if (status == MLA_STORE_OK && looks_ours) {
            (void)unlinkat(folder, name, 0);
        }
    }
    free(note.body);
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
            status = recover_file(store, dirfd(folder), entry->d_name, pid, seen ? death : &unseen);
        }
    }
    (void)closedir(folder);
    free(folder_path);
    return status;
}
