/* SPDX-License-Identifier: Apache-2.0
 *
 * store_open_test.c - opening: what is created, what is refused and left as it is, migration.
 *
 * Refused files are compared byte for byte, and nothing may appear beside them.
 */
#include "results/store_internal.h"
#include "results/store_migrate.h"
#include "results/store_test_util.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static int setup(void **state)
{
    *state = test_folder_make();
    return 0;
}

static int teardown(void **state)
{
    test_folder_remove(*state);
    return 0;
}

/* Open must give status, no store, and a message with both texts. */
static void expect_refused(const char *path, int32_t status, const char *text, const char *text2)
{
    char message[1024] = "";
    struct mla_store *store = (struct mla_store *)&message;
    assert_int_equal(mla_store_open(path, &store, message, sizeof message), status);
    assert_null(store);
    if (strstr(message, text) == NULL || strstr(message, text2) == NULL) {
        fail_msg("message '%s' lacks '%s' or '%s'", message, text, text2);
    }
}

/* The same, and the file keeps its bytes and gets no companions. */
static void expect_untouched(const char *folder, const char *name, int32_t status, const char *text,
                             const char *text2)
{
    long before_n = 0, after_n = 0;
    char *before = test_read_file(test_path(folder, name), &before_n);
    int files_n = test_files_n(folder, "");
    assert_true(before_n >= 0);
    expect_refused(test_path(folder, name), status, text, text2);
    char *after = test_read_file(test_path(folder, name), &after_n);
    assert_int_equal(before_n, after_n);
    assert_memory_equal(before, after, (size_t)before_n);
    assert_int_equal(test_files_n(folder, ""), files_n);
    free(before);
    free(after);
}

static void test_new_file(void **state)
{
    const char *path = test_path(*state, "new.db");
    struct mla_store *store = test_open(path);
    assert_string_equal(test_text(path, "PRAGMA journal_mode"), "wal");
    assert_int_equal(test_number(path, "PRAGMA user_version"), MLA_STORE_SCHEMA_VERSION);
    assert_int_equal(test_number(path, "PRAGMA application_id"), 0x6d6c6163);
    assert_int_equal(test_number(path, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
                                       " AND name NOT LIKE 'sqlite_%'"),
                     12);
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    store = test_open(path);
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    assert_int_equal(test_files_n(*state, ""), 3); /* ".", ".." and the file */
}

static void test_empty_file_becomes_ours(void **state)
{
    const char *path = test_path(*state, "empty.db");
    test_write_file(path, "", 0);
    assert_int_equal(mla_store_close(test_open(path)), MLA_STORE_OK);
    assert_int_equal(test_number(path, "PRAGMA user_version"), MLA_STORE_SCHEMA_VERSION);
}

static void test_connection_settings(void **state)
{
    struct mla_store *store = test_open(test_path(*state, "x.db"));
    const char *pragmas[] = {"PRAGMA foreign_keys", "PRAGMA synchronous", "PRAGMA busy_timeout"};
    const int expected[] = {1, 1, 30000};
    for (int i = 0; i < 3; i++) {
        sqlite3_stmt *stmt = NULL;
        assert_int_equal(sqlite3_prepare_v2(store->db, pragmas[i], -1, &stmt, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        assert_int_equal(sqlite3_column_int(stmt, 0), expected[i]);
        assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    }
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
}

static void test_newer_version(void **state)
{
    const char *path = test_path(*state, "newer.db");
    assert_int_equal(mla_store_close(test_open(path)), MLA_STORE_OK);
    test_exec(path, "PRAGMA user_version = 4711");
    expect_untouched(*state, "newer.db", MLA_STORE_ERR_SCHEMA, "version 4711", "version 5");
}

static void test_foreign_database(void **state)
{
    test_exec(test_path(*state, "a.db"), "CREATE TABLE run (x); INSERT INTO run VALUES (1)");
    expect_untouched(*state, "a.db", MLA_STORE_ERR_SCHEMA, "another program", "a.db");
    test_exec(test_path(*state, "b.db"), "PRAGMA application_id = 77; CREATE TABLE t (x)");
    expect_untouched(*state, "b.db", MLA_STORE_ERR_SCHEMA, "another program", "77");
    test_exec(test_path(*state, "c.db"), "PRAGMA user_version = 1");
    expect_untouched(*state, "c.db", MLA_STORE_ERR_SCHEMA, "another program", "user_version 1");
}

/* Another's WAL that was not moved into its database yet must stay where it is. */
static void test_foreign_wal(void **state)
{
    const char *path = test_path(*state, "w.db");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
                                  "CREATE TABLE t (x); INSERT INTO t VALUES (42)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    int off = 0;
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &off);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    long bytes = 0;
    free(test_read_file(test_path(*state, "w.db-wal"), &bytes));
    assert_true(bytes > 0);
    expect_untouched(*state, "w.db", MLA_STORE_ERR_SCHEMA, "another program", "w.db");
    assert_int_equal(test_number(path, "SELECT x FROM t"), 42);
}

static void test_not_a_database(void **state)
{
    char text[3000];
    memset(text, 'x', sizeof text);
    test_write_file(test_path(*state, "short.txt"), "hello\n", 6);
    test_write_file(test_path(*state, "long.txt"), text, sizeof text);
    expect_untouched(*state, "short.txt", MLA_STORE_ERR_OPEN, "not an SQLite database", "short");
    expect_untouched(*state, "long.txt", MLA_STORE_ERR_OPEN, "not an SQLite database", "long");
}

static void test_bad_paths(void **state)
{
    expect_refused(*state, MLA_STORE_ERR_OPEN, "is a folder", *state);
    expect_refused(test_path(*state, "no/such/x.db"), MLA_STORE_ERR_OPEN, "the folder of",
                   "no/such/x.db' is not writable: No such file");
    expect_refused("", MLA_STORE_ERR_OPEN, "empty", "");
    expect_refused(NULL, MLA_STORE_ERR_OPEN, "empty", "");
    const char *pipe_path = test_path(*state, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    expect_refused(pipe_path, MLA_STORE_ERR_OPEN, "not a regular file", "pipe");
    struct mla_store *store = NULL;
    assert_int_equal(mla_store_open(*state, &store, NULL, 0), MLA_STORE_ERR_OPEN);
}

/* As root every folder is writable: a child gives up that right first. */
static int open_as_nobody(const char *path, const char *text)
{
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(77);
        }
        char message[512] = "";
        struct mla_store *store = NULL;
        int32_t status = mla_store_open(path, &store, message, sizeof message);
        _exit(status == MLA_STORE_ERR_OPEN && store == NULL && strstr(message, text) != NULL &&
                      strstr(message, path) != NULL
                  ? 0
                  : 1);
    }
    return test_wait(child);
}

static void test_unwritable(void **state)
{
    const char *inside = test_path(*state, "x.db");
    assert_int_equal(mla_store_close(test_open(inside)), MLA_STORE_OK);
    assert_int_equal(chmod(inside, 0444), 0);
    assert_int_equal(chmod(*state, 0777), 0);
    assert_int_equal(open_as_nobody(inside, "not writable"), 0);
    assert_int_equal(chmod(inside, 0666), 0);
    assert_int_equal(chmod(*state, 0555), 0);
    assert_int_equal(open_as_nobody(inside, "folder"), 0);
    assert_int_equal(open_as_nobody(test_path(*state, "new.db"), "Permission denied"), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(access(test_path(*state, "new.db"), F_OK), -1);
}

/* What cannot be written can be read: today's schema, one of before, and one that is no database. */
static int read_as_nobody(const char *path, int32_t wanted, const char *text)
{
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(77);
        }
        char message[512] = "";
        struct mla_store *store = NULL;
        int32_t status = mla_store_open_read(path, &store, message, sizeof message);
        char *json = NULL;
        bool read = status == MLA_STORE_OK &&
                    mla_store_view_json(store, MLA_VIEW_RUNS, NULL, &json) == MLA_STORE_OK;
        bool right = status == wanted && strstr(read ? json : message, text) != NULL;
        free(json);
        mla_store_close(store);
        _exit(right ? 0 : 1);
    }
    return test_wait(child);
}

static void test_read_only(void **state)
{
    const char *inside = test_path(*state, "x.db"), *text = test_path(*state, "text");
    struct mla_store *store = test_open(inside);
    struct mla_store_build build = {"abc", false, "cc", "", "", ""};
    struct mla_store_run run = {"run by somebody", "a CPU", "scalar", 1};
    assert_int_equal(mla_store_begin_run(store, &build, &run, NULL), MLA_STORE_OK);
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    test_write_file(text, "no database, but long enough to look", 36);
    assert_int_equal(chmod(inside, 0444), 0);
    assert_int_equal(chmod(*state, 0555), 0);
    assert_int_equal(read_as_nobody(inside, MLA_STORE_OK, "run by somebody"), 0);
    assert_int_equal(read_as_nobody(text, MLA_STORE_ERR_OPEN, "is not an SQLite database"), 0);
    assert_int_equal(chmod(*state, 0777), 0);
    assert_int_equal(read_as_nobody(inside, MLA_STORE_OK, "run by somebody"), 0);
    assert_int_equal(access(test_path(*state, "x.db-wal"), F_OK), -1);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(chmod(inside, 0644), 0);
    assert_int_equal(mla_store_open_read(inside, &store, NULL, 0), MLA_STORE_OK);
    mla_store_close(store);
}

/* Names with a meaning to SQLite are plain file names here. */
static void test_special_names(void **state)
{
    const char *names[] = {":memory:", "file:x.db?mode=memory", "a 'b' \"c\" [d]*?%s.db"};
    char *here = getcwd(NULL, 0);
    assert_non_null(here);
    assert_int_equal(chdir(*state), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mla_store_close(test_open(names[i])), MLA_STORE_OK);
        assert_int_equal(access(names[i], F_OK), 0);
    }
    assert_int_equal(chdir(here), 0);
    free(here);
}

static const struct mla_migrate_step later_steps[] = {
    {(const char *)mla_schema_sql},
    {(const char *)mla_schema_2_sql},
    {(const char *)mla_schema_3_sql},
    {(const char *)mla_schema_4_sql},
    {(const char *)mla_schema_5_sql},
    {"ALTER TABLE run ADD COLUMN note TEXT; UPDATE run SET note = 'migrated'"},
};

static void test_migration(void **state)
{
    const char *path = test_path(*state, "old.db");
    int64_t run = 0;
    struct mla_store *store = test_open_run(path, &run);
    assert_int_equal(mla_migrate_steps(store, later_steps, 6), MLA_STORE_OK);
    assert_int_equal(mla_migrate_steps(store, later_steps, 6), MLA_STORE_OK); /* nothing to do */
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    assert_int_equal(test_number(path, "PRAGMA user_version"), 6);
    assert_string_equal(test_text(path, "SELECT note FROM run"), "migrated");
    expect_refused(path, MLA_STORE_ERR_SCHEMA, "version 6", "version 5");
}

static void test_failed_migration(void **state)
{
    const struct mla_migrate_step steps[] = {
        {(const char *)mla_schema_sql},
        {(const char *)mla_schema_2_sql},
        {(const char *)mla_schema_3_sql},
        {(const char *)mla_schema_4_sql},
        {(const char *)mla_schema_5_sql},
        {"ALTER TABLE run ADD COLUMN note TEXT"},
        {"CREATE TABLE extra (x); INSERT INTO no_such_table VALUES (1)"},
    };
    const char *path = test_path(*state, "old.db");
    struct mla_store *store = test_open_run(path, NULL);
    assert_int_equal(mla_migrate_steps(store, steps, 7), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(mla_store_message(store), "from schema version 6 to 7"));
    assert_non_null(strstr(mla_store_message(store), "no_such_table"));
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    assert_int_equal(test_number(path, "PRAGMA user_version"), 5);
    assert_int_equal(test_number(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'extra'"),
                     0);
    assert_int_equal(
        test_number(path, "SELECT count(*) FROM pragma_table_info('run') WHERE name = 'note'"), 0);
    assert_int_equal(mla_store_close(test_open(path)), MLA_STORE_OK);
}

/* Many processes create the same file at once. */
static void test_created_by_many(void **state)
{
    for (int round = 0; round < 20; round++) {
        char name[16];
        (void)snprintf(name, sizeof name, "many%d.db", round);
        const char *path = test_path(*state, name);
        pid_t children[8];
        for (int i = 0; i < 8; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                struct mla_store *store = test_open_run(path, NULL);
                _exit(mla_store_close(store) == MLA_STORE_OK ? 0 : 1);
            }
        }
        for (int i = 0; i < 8; i++) {
            assert_int_equal(test_wait(children[i]), 0);
        }
        assert_int_equal(test_number(path, "SELECT count(*) FROM run"), 8);
        assert_int_equal(test_number(path, "SELECT count(*) FROM build"), 1);
    }
}

/* Somebody writes to the file while it is to become WAL: SQLite may give up at once, we wait. */
static void test_busy_at_first(void **state)
{
    const char *path = test_path(*state, "x.db");
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db = NULL;
        bool ok = sqlite3_open(path, &db) == SQLITE_OK &&
                  sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
                  write(ends[1], "y", 1) == 1;
        test_sleep_ms(300);
        _exit(ok && sqlite3_close(db) == SQLITE_OK ? 0 : 1);
    }
    char begun = 'n';
    assert_int_equal(read(ends[0], &begun, 1), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    struct mla_store *store = test_open(path);
    assert_string_equal(test_text(path, "PRAGMA journal_mode"), "wal");
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    assert_int_equal(test_wait(child), 0);
}

static void test_after_fork(void **state)
{
    const char *path = test_path(*state, "x.db");
    struct mla_store *store = test_open_run(path, NULL);
    pid_t child = fork();
    if (child == 0) {
        struct mla_store_case testcase = test_case(1);
        struct mla_store_verdict verdict = test_verdict(&testcase, "pass");
        bool refused = mla_store_verdict(store, &verdict) == MLA_STORE_ERR_OPEN &&
                       strstr(mla_store_message(store), "child") != NULL &&
                       mla_store_flush(store) == MLA_STORE_ERR_OPEN &&
                       mla_store_close(store) == MLA_STORE_ERR_OPEN;
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(test_wait(child), 0);
    struct mla_store_case testcase = test_case(2);
    struct mla_store_verdict verdict = test_verdict(&testcase, "pass");
    assert_int_equal(mla_store_verdict(store, &verdict), MLA_STORE_OK);
    assert_int_equal(mla_store_close(store), MLA_STORE_OK);
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict"), 1);
}

static void test_no_store(void **state)
{
    (void)state;
    assert_int_equal(mla_store_close(NULL), MLA_STORE_OK);
    assert_int_equal(mla_store_flush(NULL), MLA_STORE_ERR_OPEN);
    assert_non_null(mla_store_message(NULL));
}

static void test_versions(void **state)
{
    (void)state;
    char text[100] = "", expected[100] = "";
    assert_true(mla_store_versions(text, sizeof text));
    (void)snprintf(expected, sizeof expected, "SQLite %s (header %s)", sqlite3_libversion(),
                   SQLITE_VERSION);
    assert_string_equal(text, expected);
    assert_true(mla_store_versions(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_file_becomes_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_connection_settings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newer_version, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_database, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_wal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_a_database, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unwritable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_special_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_migration, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_migration, setup, teardown),
        cmocka_unit_test_setup_teardown(test_created_by_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_busy_at_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_after_fork, setup, teardown),
        cmocka_unit_test(test_no_store),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
