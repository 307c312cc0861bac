/* SPDX-License-Identifier: Apache-2.0
 *
 * store_test_util.c - helpers of the store's tests.
 *
 * They abort on trouble of their own (no folder, no memory): a test that cannot set itself up must
 * not pass.
 */
#include "results/store_test_util.h"

#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "store_test_util: %s\n", what);
        abort();
    }
}

char *test_folder_make(void)
{
    char *folder = strdup("/tmp/mla-store-test-XXXXXX");
    must(folder != NULL && mkdtemp(folder) != NULL, "cannot make a folder");
    return folder;
}

char *test_folder_make_fast(void)
{
    char *folder = strdup("/dev/shm/mla-store-test-XXXXXX");
    must(folder != NULL, "no memory");
    if (mkdtemp(folder) != NULL) {
        return folder;
    }
    free(folder);
    return test_folder_make();
}

void test_folder_remove(char *folder)
{
    DIR *listing = opendir(folder);
    must(listing != NULL, "cannot list a folder");
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        (void)unlinkat(dirfd(listing), entry->d_name, 0);
    }
    (void)closedir(listing);
    must(rmdir(folder) == 0, "cannot remove a folder");
    free(folder);
}

const char *test_path(const char *folder, const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

struct mla_store_case test_case(unsigned n)
{
    static char lines[8][64];
    static unsigned next;
    char *line = lines[next++ % 8];
    struct mla_store_case testcase;
    memset(&testcase, 0, sizeof testcase);
    (void)snprintf(testcase.id, sizeof testcase.id, "%08x%056x", n, 0U);
    (void)snprintf(line, sizeof lines[0], "ring v=1 heads=%u", n);
    testcase.line = line;
    testcase.op = "ring";
    testcase.family = "profile";
    testcase.region = "flat";
    testcase.heads = n;
    testcase.q_pos_offset = MLA_STORE_NULL;
    return testcase;
}

struct mla_store_verdict test_verdict(const struct mla_store_case *testcase, const char *verdict)
{
    struct mla_store_verdict v;
    memset(&v, 0, sizeof v);
    v.testcase = testcase;
    v.kernel = "scalar";
    v.verdict = verdict;
    v.max_ratio = 0.25;
    v.elements_n = 64;
    return v;
}

struct mla_store *test_open(const char *path)
{
    struct mla_store *store = NULL;
    char message[512];
    if (mla_store_open(path, &store, message, sizeof message) != MLA_STORE_OK) {
        (void)fprintf(stderr, "%s\n", message);
    }
    must(store != NULL, "cannot open a store");
    return store;
}

struct mla_store *test_open_run(const char *path, int64_t *run)
{
    const struct mla_store_build build = {"c0ffee", false, "clang 14", "-O2", "", "avx2"};
    const struct mla_store_run begun = {"run --set upstream", "a CPU", "scalar,avx2", 7};
    struct mla_store *store = test_open(path);
    must(mla_store_begin_run(store, &build, &begun, run) == MLA_STORE_OK, "cannot begin a run");
    return store;
}

static sqlite3 *connect_file(const char *path)
{
    sqlite3 *db = NULL;
    must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK,
         "cannot connect");
    (void)sqlite3_busy_timeout(db, 20000);
    return db;
}

int64_t test_number(const char *path, const char *sql)
{
    sqlite3 *db = connect_file(path);
    sqlite3_stmt *stmt = NULL;
    int64_t number = -2;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    code = code == SQLITE_OK ? sqlite3_step(stmt) : code;
    if (code == SQLITE_ROW) {
        number = sqlite3_column_int64(stmt, 0);
    } else if (code == SQLITE_DONE) {
        number = -1;
    } else {
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return number;
}

const char *test_text(const char *path, const char *sql)
{
    static char texts[4][4096];
    static unsigned next;
    char *text = texts[next++ % 4];
    sqlite3 *db = connect_file(path);
    sqlite3_stmt *stmt = NULL;
    (void)snprintf(text, sizeof texts[0], "(none)");
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    code = code == SQLITE_OK ? sqlite3_step(stmt) : code;
    if (code == SQLITE_ROW) {
        const char *value = (const char *)sqlite3_column_text(stmt, 0);
        (void)snprintf(text, sizeof texts[0], "%s", value == NULL ? "(null)" : value);
    } else if (code != SQLITE_DONE) {
        (void)snprintf(text, sizeof texts[0], "(error: %s)", sqlite3_errmsg(db));
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return text;
}

void test_exec(const char *path, const char *sql)
{
    sqlite3 *db = connect_file(path);
    bool ok = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    if (!ok) {
        (void)fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    }
    must(ok, sql);
    (void)sqlite3_close(db);
}

char *test_read_file(const char *path, long *bytes)
{
    *bytes = -1;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    must(fseek(file, 0, SEEK_END) == 0, "cannot seek");
    long size = ftell(file);
    rewind(file);
    char *data = malloc((size_t)size + 1);
    must(data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size, "cannot read");
    data[size] = '\0';
    (void)fclose(file);
    *bytes = size;
    return data;
}

void test_write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0,
         "cannot write");
}

int test_files_n(const char *folder, const char *prefix)
{
    DIR *listing = opendir(folder);
    must(listing != NULL, "cannot list a folder");
    int files_n = 0;
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        files_n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 ? 1 : 0;
    }
    (void)closedir(listing);
    return files_n;
}

int test_wait(pid_t child)
{
    int state = 0;
    pid_t waited = waitpid(child, &state, 0);
    while (waited < 0 && errno == EINTR) {
        waited = waitpid(child, &state, 0);
    }
    must(waited == child, "cannot wait for a child");
    return WIFEXITED(state) ? WEXITSTATUS(state) : 1000 + WTERMSIG(state);
}

void test_sleep_ms(long ms)
{
    struct timespec pause = {ms / 1000, (ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}
