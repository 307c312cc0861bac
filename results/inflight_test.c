/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight_test.c - notes of cases in flight: who dies leaves one, who lives keeps his.
 *
 * Children are killed between begin and end. Notes are then also altered by hand: torn, cut short,
 * under another pid, not notes at all.
 */
#include "results/inflight.h"
#include "results/process.h"
#include "results/store_test_util.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static char *folder;
static char path[256];

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static const char *note_path(pid_t pid)
{
    static char name[400];
    (void)snprintf(name, sizeof name, "%s-inflight-%ld", path, (long)pid);
    return name;
}

/* Cases of processes that vanished. */
static int64_t deaths_n(void)
{
    return test_number(path, "SELECT count(*) FROM verdict WHERE verdict = 'unjudged'"
                             " AND reason = '" MLA_STORE_INTERRUPTED "'");
}

/* A child that opens path and begins case n, then waits; returns when it has begun. */
static pid_t start_child(unsigned n, bool end)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct mla_store *store = test_open_run(path, NULL);
        struct mla_store_case c = test_case(n);
        int32_t status = mla_store_inflight_begin(store, &c, "scalar", "mlacheck run 'x'");
        if (status == MLA_STORE_OK && end) {
            status = mla_store_inflight_end(store);
        }
        char done = status == MLA_STORE_OK ? 'y' : 'n';
        (void)!write(ends[1], &done, 1);
        (void)alarm(60); /* a failing test must not leave it behind */
        (void)pause();
        _exit(1);
    }
    char done = 'n';
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &done, 1), 1);
    (void)close(ends[0]);
    assert_int_equal(done, 'y');
    return child;
}

static void kill_child(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
}

static pid_t dead_child(unsigned n)
{
    pid_t child = start_child(n, false);
    kill_child(child);
    return child;
}

static void reopen(void)
{
    OK(mla_store_close(test_open(path)));
}

/* Nobody knows why it is gone: no failure of the kernel, and told of once. */
static void test_vanished(void **state)
{
    (void)state;
    pid_t child = dead_child(0xabcd);
    assert_int_equal(access(note_path(child), F_OK), 0);
    struct mla_store *store = test_open(path);
    assert_string_equal(
        mla_store_notice(store),
        "run 1 ended while judging case 0000abcd0000 by scalar, which has no verdict in it: "
        "run it again with: mlacheck run 'x'\n");
    OK(mla_store_close(store));
    assert_int_equal(access(note_path(child), F_OK), -1);
    assert_string_equal(
        test_text(path, "SELECT run || '|' || kernel || '|' || verdict || '|' || reason || '|' ||"
                        " relation || '|' || (max_ratio IS NULL) || (elements_n IS NULL)"
                        " FROM verdict"),
        "1|scalar|unjudged|interrupted: the judging process ended while this case ran||11");
    assert_string_equal(
        test_text(path, "SELECT id || '|' || line || '|' || op || '|' || family || '|' || region"
                        " || '|' || heads || '|' || (q_pos_offset IS NULL) || '|' || cores"
                        " FROM testcase"),
        "0000abcd00000000000000000000000000000000000000000000000000000000|ring v=1 heads=43981|"
        "ring|profile|flat|43981|1|0");
    assert_int_equal(test_number(path, "SELECT count(*) FROM finding"), 0);
    store = test_open(path);
    assert_string_equal(mla_store_notice(store), "");
    OK(mla_store_close(store));
    assert_int_equal(deaths_n(), 1);
}

/* A kernel in the process itself, which its signal handler saw end: a crash. One of the case before is not. */
static void test_own_signal(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct mla_store *store = test_open_run(path, NULL);
            struct mla_store_case c = test_case(i), d = test_case(9);
            mla_store_inflight_fatal(store, SIGSEGV); /* no note yet */
            (void)mla_store_inflight_begin(store, &c, "k", "r");
            mla_store_inflight_fatal(store, SIGSEGV);
            if (i == 2) {
                (void)mla_store_inflight_begin(store, &d, "k", "r");
            }
            (void)kill(getpid(), SIGKILL);
        }
        assert_int_equal(test_wait(child), 1000 + SIGKILL);
        reopen();
    }
    assert_string_equal(test_text(path,
                                  "SELECT group_concat(heads || verdict) FROM verdict JOIN testcase"
                                  " ON num = testcase"),
                        "1crash,9unjudged");
    assert_string_equal(test_text(path, "SELECT reason || ' ' || repro FROM finding"),
                        "ended the judging process by signal 11 (Segmentation fault) r");
}

static void test_between_cases(void **state)
{
    (void)state;
    pid_t child = start_child(1, true);
    assert_int_equal(access(note_path(child), F_OK), 0);
    kill_child(child);
    reopen();
    assert_int_equal(deaths_n(), 0);
    assert_int_equal(access(note_path(child), F_OK), -1);
}

static void test_close_removes_the_note(void **state)
{
    (void)state;
    struct mla_store *store = test_open_run(path, NULL);
    struct mla_store_case c = test_case(1);
    OK(mla_store_inflight_end(store)); /* nothing begun: nothing to do */
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
    OK(mla_store_inflight_begin(store, &c, "k", NULL));
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 1);
    OK(mla_store_close(store));
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
    reopen();
    assert_int_equal(deaths_n(), 0);
}

static void test_last_note_counts(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct mla_store *store = test_open_run(path, NULL);
        for (unsigned i = 1; i <= 5; i++) {
            struct mla_store_case c = test_case(i);
            (void)mla_store_inflight_begin(store, &c, i == 5 ? "k" : "a longer name", NULL);
        }
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
    reopen();
    assert_string_equal(test_text(path, "SELECT group_concat(heads || ' ' || kernel) FROM verdict"
                                        " JOIN testcase ON num = testcase"),
                        "5 k");
    assert_int_equal(test_number(path, "SELECT count(*) FROM finding"), 0);
}

static void test_live_is_left_alone(void **state)
{
    (void)state;
    pid_t child = start_child(1, false);
    long before_n = 0, after_n = 0;
    char *before = test_read_file(note_path(child), &before_n);
    reopen();
    char *after = test_read_file(note_path(child), &after_n);
    assert_int_equal(before_n, after_n);
    assert_memory_equal(before, after, (size_t)before_n);
    free(before);
    free(after);
    assert_int_equal(deaths_n(), 0);
    kill_child(child);
    reopen();
    assert_int_equal(deaths_n(), 1);
}

/* Dead, but nobody has waited for it yet: its parent may know more, and has its turn first. */
static void test_zombie(void **state)
{
    (void)state;
    pid_t child = start_child(1, false);
    assert_int_equal(kill(child, SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    reopen();
    assert_int_equal(deaths_n(), 0);
    const struct mla_store_death death = {child, "crash", "seen"};
    struct mla_store *store;
    char message[256];
    OK(mla_store_open_after(path, &death, &store, message, sizeof message));
    OK(mla_store_close(store));
    assert_string_equal(test_text(path, "SELECT verdict || ' ' || reason FROM verdict"),
                        "crash seen");
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
    child = dead_child(2);
    reopen();
    assert_int_equal(deaths_n(), 1);
}

/* Take a dead child's note off the disk (the caller frees it). */
static char *take_note(pid_t child, long *bytes)
{
    char *note = test_read_file(note_path(child), bytes);
    assert_non_null(note);
    assert_true(*bytes > (long)sizeof(struct mla_note_head));
    assert_int_equal(unlink(note_path(child)), 0);
    return note;
}

static void test_pid_used_again(void **state)
{
    (void)state;
    long bytes = 0;
    char *note = take_note(dead_child(1), &bytes);
    /* Now the pid is ours; first with our start time (we live), then with another. */
    struct mla_note_head *head = (struct mla_note_head *)(void *)note;
    head->pid = getpid();
    head->start = mla_process_start(getpid());
    assert_true(head->start > 0);
    test_write_file(note_path(getpid()), note, (size_t)bytes);
    reopen();
    assert_int_equal(deaths_n(), 0);
    assert_int_equal(access(note_path(getpid()), F_OK), 0);
    head->start++;
    test_write_file(note_path(getpid()), note, (size_t)bytes);
    reopen();
    assert_int_equal(deaths_n(), 1);
    assert_int_equal(access(note_path(getpid()), F_OK), -1);
    free(note);
}

/* Whatever is torn is removed without a finding. */
static void test_torn_notes(void **state)
{
    (void)state;
    pid_t child = dead_child(1);
    long bytes = 0;
    char *note = take_note(child, &bytes);
    struct mla_note_head *head = (struct mla_note_head *)(void *)note;
    uint64_t valid = atomic_load(&head->valid);
    unsigned char *body = (unsigned char *)(head + 1);
    for (int kind = 0; kind < 9; kind++) {
        char *torn = malloc((size_t)bytes);
        assert_non_null(torn);
        memcpy(torn, note, (size_t)bytes);
        struct mla_note_head *h = (struct mla_note_head *)(void *)torn;
        unsigned char *b = (unsigned char *)(h + 1);
        size_t keep = (size_t)bytes;
        switch (kind) {
        case 0: /* killed while writing the body */
            atomic_store(&h->valid, 0);
            break;
        case 1: /* a byte of the body did not arrive */
            b[valid / 2] ^= 1;
            break;
        case 2: /* cut short */
            keep = sizeof *h + (size_t)valid - 1;
            break;
        case 3:
            keep = sizeof *h;
            break;
        case 4:
            keep = 0;
            break;
        case 5: /* lengths that lead out of the file */
            atomic_store(&h->valid, UINT64_MAX);
            break;
        case 6: /* the first text says it is endless, and the sum is right */
            memset(b + 27 * sizeof(int64_t), 0xff, 8);
            h->checksum = mla_note_checksum(b, (size_t)valid);
            break;
        case 7: /* a right sum over too little */
            atomic_store(&h->valid, valid - 5);
            h->checksum = mla_note_checksum(b, (size_t)valid - 5);
            break;
        default: /* all zero: died before the head was written */
            memset(torn, 0, (size_t)bytes);
            break;
        }
        test_write_file(note_path(child), torn, keep);
        free(torn);
        reopen();
        assert_int_equal(deaths_n(), 0);
        assert_int_equal(access(note_path(child), F_OK), -1);
    }
    assert_int_equal(head->checksum, mla_note_checksum(body, (size_t)valid));
    test_write_file(note_path(child), note, (size_t)bytes); /* whole it counts */
    reopen();
    assert_int_equal(deaths_n(), 1);
    free(note);
}

/* Make an older note of a note: without signal, and in version 1 without the last number of the case. */
static size_t make_older(char *note, long bytes, int version)
{
    struct mla_note_head *head = (struct mla_note_head *)(void *)note;
    size_t valid = (size_t)atomic_load(&head->valid), numbers = 26 * sizeof(int64_t);
    unsigned char *body = (unsigned char *)note + offsetof(struct mla_note_head, signal);
    memmove(body, head + 1, valid);
    if (version == 1) {
        memmove(body + numbers, body + numbers + 8, valid - numbers - 8);
        valid -= 8;
    }
    memcpy(head->magic, version == 1 ? MLA_NOTE_MAGIC_1 : MLA_NOTE_MAGIC_2, sizeof head->magic);
    atomic_store(&head->valid, valid);
    head->checksum = mla_note_checksum(body, valid);
    return (size_t)bytes - sizeof head->signal;
}

/* What older versions left counts all the same. */
static void test_older_notes(void **state)
{
    (void)state;
    for (int version = 1; version <= 2; version++) {
        pid_t child = dead_child(0x77);
        long bytes = 0;
        char *note = take_note(child, &bytes);
        size_t older = make_older(note, bytes, version);
        test_write_file(note_path(child), note, older);
        free(note);
        reopen();
        assert_int_equal(deaths_n(), version);
        assert_int_equal(access(note_path(child), F_OK), -1);
        assert_string_equal(test_text(path,
                                      "SELECT substr(id, 1, 8) || ' ' || line || ' ' || heads ||"
                                      " ' ' || cores || ' ' || coalesce(sign_coins, 'unknown')"
                                      " FROM testcase"),
                            version == 1 ? "00000077 ring v=1 heads=119 119 0 unknown"
                                         : "00000077 ring v=1 heads=119 119 0 0");
    }
}

/* Files that only look like notes are nobody's to remove. */
static void test_other_files(void **state)
{
    (void)state;
    pid_t dead = dead_child(1);
    long bytes = 0;
    char *note = take_note(dead, &bytes);
    const char *names[] = {"x.db-inflight-999999999", "x.db-inflight-notes.txt",
                           "x.db-inflight-",          "x.db-inflight-12x",
                           "x.db-inflight-0",         "y.db-inflight-12"};
    for (int i = 0; i < 6; i++) {
        const char *text = "my own file, with more than enough bytes for the head of a note ......";
        test_write_file(test_path(folder, names[i]), i == 0 ? text : note,
                        i == 0 ? strlen(text) : (size_t)bytes);
    }
    reopen();
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 5);
    assert_int_equal(test_files_n(folder, "y.db-inflight-"), 1);
    assert_int_equal(deaths_n(), 0);
    free(note);
}

static void test_odd_paths(void **state)
{
    (void)state;
    const char *names[] = {"a b.db",  "it's \"x\".db", "[ab]*?.db",
                           "%s%n.db", "-inflight-7",   "\xc3\xa4\n;$(x).db"};
    for (int i = 0; i < 6; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        pid_t child = dead_child(1);
        assert_int_equal(access(note_path(child), F_OK), 0);
        reopen();
        assert_int_equal(access(note_path(child), F_OK), -1);
        assert_int_equal(deaths_n(), 1);
    }
}

/* Relative paths and links: the note lies beside the real file, wherever the process goes. */
static void test_links_and_folders(void **state)
{
    (void)state;
    reopen();
    const char *link_path = test_path(folder, "link.db");
    assert_int_equal(symlink("x.db", link_path), 0);
    pid_t child = fork();
    if (child == 0) {
        struct mla_store_case c = test_case(1);
        if (chdir(folder) != 0) {
            _exit(1);
        }
        struct mla_store *store = test_open_run("link.db", NULL);
        if (chdir("/") == 0 && mla_store_inflight_begin(store, &c, "k", NULL) == MLA_STORE_OK) {
            (void)kill(getpid(), SIGKILL);
        }
        _exit(1);
    }
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
    assert_int_equal(access(note_path(child), F_OK), 0);
    reopen();
    assert_int_equal(deaths_n(), 1);
}

static void test_exactly_once(void **state)
{
    (void)state;
    for (unsigned round = 1; round <= 12; round++) {
        (void)dead_child(round);
        int gate[2];
        assert_int_equal(pipe(gate), 0);
        pid_t openers[3];
        for (int i = 0; i < 3; i++) {
            openers[i] = fork();
            if (openers[i] == 0) {
                char go;
                (void)close(gate[1]);
                (void)!read(gate[0], &go, 1); /* all start when the parent closes its end */
                _exit(mla_store_close(test_open(path)) == MLA_STORE_OK ? 0 : 1);
            }
        }
        (void)close(gate[0]);
        (void)close(gate[1]);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(test_wait(openers[i]), 0);
        }
        assert_int_equal(deaths_n(), round);
        assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
    }
}

/* Who recovers may die after the commit and before the removal: the note is there again. */
static void test_recovered_before(void **state)
{
    (void)state;
    pid_t child = dead_child(1);
    long bytes = 0;
    char *note = test_read_file(note_path(child), &bytes);
    assert_non_null(note);
    reopen();
    assert_int_equal(deaths_n(), 1);
    test_write_file(note_path(child), note, (size_t)bytes);
    reopen();
    assert_int_equal(deaths_n(), 1);
    assert_int_equal(access(note_path(child), F_OK), -1);
    free(note);
}

/* The database was replaced: run 1 is another run now and must not get the verdict. */
static void test_replaced_database(void **state)
{
    (void)state;
    pid_t child = dead_child(1);
    long bytes = 0;
    char *note = take_note(child, &bytes);
    assert_int_equal(unlink(path), 0);
    (void)unlink(test_path(folder, "x.db-wal"));
    (void)unlink(test_path(folder, "x.db-shm"));
    OK(mla_store_close(test_open_run(path, NULL)));
    test_exec(path, "UPDATE run SET started = '2001-01-01T00:00:00Z'");
    test_write_file(note_path(child), note, (size_t)bytes);
    free(note);
    reopen();
    assert_int_equal(deaths_n(), 1);
    assert_string_equal(test_text(path, "SELECT command || '|' || kernels || '|' || git_commit FROM"
                                        " run JOIN build ON build.id = build WHERE run.id ="
                                        " (SELECT run FROM verdict)"),
                        "(a run that is not in this database)|scalar|unknown");
}

static void test_long_texts(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct mla_store *store = test_open_run(path, NULL);
        struct mla_store_case c = test_case(1);
        char *line = malloc(1000001);
        if (line == NULL) {
            _exit(1);
        }
        memset(line, 'x', 1000000);
        line[1000000] = '\0';
        (void)mla_store_inflight_begin(store, &c, "k", "short");
        c.line = line;
        (void)mla_store_inflight_begin(store, &c, "k", line + 300000);
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
    struct mla_store *store = test_open(path);
    assert_int_equal(strlen(strstr(mla_store_notice(store), "with: xxx")), 700000 + 7);
    OK(mla_store_close(store));
    assert_int_equal(test_number(path, "SELECT length(line) FROM testcase"), 1000000);
}

/* Two stores of one process have a note each. */
static void test_two_stores(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct mla_store *a = test_open_run(path, NULL);
        struct mla_store *b = test_open_run(path, NULL);
        struct mla_store_case c = test_case(1), d = test_case(2);
        bool ok = mla_store_inflight_begin(a, &c, "a", NULL) == MLA_STORE_OK &&
                  mla_store_inflight_begin(b, &d, "b", NULL) == MLA_STORE_OK;
        (void)kill(getpid(), ok ? SIGKILL : SIGTERM);
    }
    assert_int_equal(test_wait(child), 1000 + SIGKILL);
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 2);
    reopen();
    assert_string_equal(test_text(path, "SELECT group_concat(run || kernel) FROM (SELECT * FROM"
                                        " verdict ORDER BY kernel)"),
                        "1a,2b");
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
}

static void test_bad_input(void **state)
{
    (void)state;
    struct mla_store_case c = test_case(1);
    struct mla_store *store = test_open(path);
    assert_int_equal(mla_store_inflight_begin(store, &c, "k", NULL), MLA_STORE_ERR_WRITE);
    assert_non_null(strstr(mla_store_message(store), "no run"));
    OK(mla_store_close(store));
    store = test_open_run(path, NULL);
    assert_int_equal(mla_store_inflight_begin(store, NULL, "k", NULL), MLA_STORE_ERR_WRITE);
    assert_int_equal(mla_store_inflight_begin(store, &c, NULL, NULL), MLA_STORE_ERR_WRITE);
    c.op = "x";
    assert_int_equal(mla_store_inflight_begin(store, &c, "k", NULL), MLA_STORE_ERR_WRITE);
    assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
    OK(mla_store_close(store));
}

static void test_process(void **state)
{
    (void)state;
    uint64_t start = mla_process_start(getpid());
    assert_true(start > 0);
    assert_true(mla_process_alive(getpid(), start));
    assert_true(mla_process_alive(getpid(), 0));
    assert_false(mla_process_alive(getpid(), start + 1));
    assert_false(mla_process_alive(0, 0));
    assert_false(mla_process_alive(-1, 0));
    assert_false(mla_process_alive(999999999, 0));
    assert_false(mla_process_alive(INT64_MAX, 0));
    assert_true(mla_process_alive(1, 0)); /* another user's, perhaps: EPERM is alive */
}

/* Who saw the process die knows better than its note. */
static void test_death_seen_by_the_parent(void **state)
{
    (void)state;
    pid_t other = start_child(1, false), hung = start_child(2, false);
    const struct mla_store_death death = {hung, "timeout", "took too long"};
    struct mla_store *store;
    char message[256];
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    (void)kill(hung, SIGKILL);
    (void)waitpid(hung, NULL, 0);
    OK(mla_store_open_after(path, &death, &store, message, sizeof message));
    OK(mla_store_close(store));
    assert_int_equal(deaths_n(), 1);
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict WHERE verdict = 'timeout'"
                                       " AND reason = 'took too long'"),
                     1);
    assert_int_equal(test_number(path, "SELECT count(*) FROM finding"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_vanished, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_signal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_between_cases, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_removes_the_note, setup, teardown),
        cmocka_unit_test_setup_teardown(test_last_note_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_live_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_zombie, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pid_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_older_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_torn_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links_and_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exactly_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recovered_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced_database, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_stores, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_input, setup, teardown),
        cmocka_unit_test_setup_teardown(test_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_death_seen_by_the_parent, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
