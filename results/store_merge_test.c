/* SPDX-License-Identifier: Apache-2.0
 *
 * store_merge_test.c - merging: nothing is lost or counted twice, in any order, and sources stay as they are.
 *
 * Contents are compared as texts in which numbers of rows are replaced by what they stand for, built from
 * the schema itself: a table or column that the merge does not know of shows, and so does one that the
 * files merged here leave empty. store_merge_end_test.c has what goes wrong on the way.
 */
#include "results/store_merge_test_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static char *folder;

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make_fast();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

/* folder/name, kept apart from the few buffers of test_path. */
static const char *in_folder(const char *name)
{
    static char paths[32][256];
    static unsigned next;
    char *path = paths[next++ % 32];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void assert_same_content(const char *a, const char *b)
{
    char *of_a = test_content(a), *of_b = test_content(b);
    assert_string_equal(of_a, of_b);
    free(of_a);
    free(of_b);
}

/* Every table and column of an old file that had something in all of them, and of later versions. */
static void test_everything_comes(void **state)
{
    (void)state;
    const char *old = in_folder("old.db"), *into = in_folder("into.db");
    test_dump_load(MLA_TEST_V4_SQL, old);
    test_exec(old, "UPDATE testcase SET (batch, q_rows, kv_rows, head_dim, head_dim_v, logical_n,"
                   " kv_actual_isl, kv_cache_batch_idx, is_balanced, topology, num_links,"
                   " q_chunk_size, k_chunk_size, q_pos_offset) ="
                   " (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14) WHERE num = 2;"
                   "INSERT INTO bisect_step (metric, kernel, git_commit, outcome)"
                   " VALUES ('max_ulp', 'scalar', 'c0ffee', 'good')");
    test_merge(into, old);
    test_machine_write(old, 1, 3); /* migrates it; what later versions have */
    test_machine_go_on(old, 1, 3);
    test_merge(into, old);
    char *gaps = test_empty_columns(into);
    assert_string_equal(gaps, "");
    free(gaps);
    assert_same_content(old, into);
}

static void test_twice(void **state)
{
    (void)state;
    const char *from = in_folder("from.db"), *into = in_folder("into.db");
    test_machine_write(from, 1, 40);
    struct mla_store_merged first = test_merge(into, from);
    assert_int_equal(first.runs_new, 2);
    assert_int_equal(first.runs_later, 0);
    assert_int_equal(first.verdicts, 40);
    char *before = test_content(into);
    struct mla_store_merged second = test_merge(into, from), none = {0};
    assert_memory_equal(&second, &none, sizeof none);
    char *after = test_content(into);
    assert_string_equal(before, after);
    assert_same_content(from, into);
    free(before);
    free(after);
}

/* Two copies of one old file, of two versions; two machines; one of these earlier and later. */
#define FILES_N 6
static const char *files[FILES_N];

static void make_files(void)
{
    const char *names[FILES_N] = {"v1.db", "v4.db", "a.db", "b.db", "b1.db", "b2.db"};
    for (int i = 0; i < FILES_N; i++) {
        files[i] = strdup(in_folder(names[i]));
        assert_non_null(files[i]);
    }
    test_dump_load(MLA_TEST_V1_SQL, files[0]);
    test_dump_load(MLA_TEST_V4_SQL, files[1]);
    test_machine_write(files[2], 1, 12);
    test_machine_write(files[3], 2, 12);
    test_file_copy(files[3], files[4]);
    test_machine_go_on(files[3], 2, 5);
    test_exec(files[3], "UPDATE finding SET state = 'fixed' WHERE id % 3 = 0");
    test_file_copy(files[3], files[5]);
    test_machine_go_on(files[3], 3, 4);
    test_exec(files[2], "UPDATE finding SET state = 'fixed' WHERE id % 2 = 0;"
                        "UPDATE finding SET state = 'known' WHERE id = 3");
}

/* A random order, some pairs merged with each other first. */
static void merge_in_some_order(const char *into, unsigned *seed)
{
    int order[FILES_N];
    for (int i = 0; i < FILES_N; i++) {
        int j = (int)(test_random(seed) % (unsigned)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < FILES_N; i++) {
        bool paired = i + 1 < FILES_N && test_random(seed) % 3 == 0;
        if (paired) {
            const char *pair = in_folder("pair.db");
            (void)unlink(pair);
            test_merge(pair, files[order[i]]);
            test_merge(pair, files[order[i + 1]]);
            test_merge(into, pair);
            i++;
        } else {
            test_merge(into, files[order[i]]);
        }
        if (test_random(seed) % 4 == 0) { /* again */
            test_merge(into, files[order[test_random(seed) % (unsigned)(i + 1)]]);
        }
    }
}

static void test_any_order(void **state)
{
    (void)state;
    unsigned seed = 7;
    char *expected = NULL;
    make_files();
    for (int round = 0; round < 6; round++) {
        char name[16];
        (void)snprintf(name, sizeof name, "into%d.db", round);
        merge_in_some_order(in_folder(name), &seed);
        char *content = test_content(in_folder(name));
        if (round == 0) {
            expected = content;
        } else {
            assert_string_equal(content, expected);
            free(content);
        }
    }
    /* 5 runs of the old file, two of each machine; of the second one the latest copy. */
    assert_int_equal(test_number(in_folder("into0.db"), "SELECT count(*) FROM run"), 9);
    assert_int_equal(test_number(in_folder("into0.db"), "SELECT count(*) FROM verdict"),
                     5 + 12 + 12 + 5 + 4);
    assert_string_equal(test_text(in_folder("into0.db"), "PRAGMA integrity_check"), "ok");
    free(expected);
    for (int i = 0; i < FILES_N; i++) {
        free((void *)(uintptr_t)files[i]);
    }
}

/* A run goes on at home: its later copy replaces the earlier one, and not the other way round. */
static void test_later_copy(void **state)
{
    (void)state;
    const char *home = in_folder("home.db"), *early = in_folder("early.db");
    const char *into = in_folder("into.db");
    test_machine_write(home, 1, 10);
    test_file_copy(home, early);
    test_merge(into, home);
    test_machine_go_on(home, 1, 7);
    struct mla_store_merged went_on = test_merge(into, home);
    assert_int_equal(went_on.runs_new, 0);
    assert_int_equal(went_on.runs_later, 2);
    assert_same_content(home, into);
    struct mla_store_merged back = test_merge(into, early);
    assert_int_equal(back.runs_later, 0);
    assert_same_content(home, into);
}

/* Of a step that two files have, the one of more tries stays; and the first start, and the later end. */
static void test_searches(void **state)
{
    (void)state;
    const char *into = in_folder("into.db"), *other = in_folder("other.db");
    const char *both = "SELECT group_concat(git_commit || ' ' || tries || ' ' || outcome, ',')"
                       " FROM (SELECT * FROM bisect_step WHERE bisect IS NOT NULL ORDER BY 1)";
    const char *search = "SELECT started || ' ' || ended || ' ' || answer FROM bisect";
    test_machine_write(into, 1, 1);  /* c5: 3 tries, bad */
    test_machine_go_on(into, 1, 4);  /* 7 */
    test_machine_write(other, 2, 1); /* c5: 3 tries, skipped */
    test_exec(into, "UPDATE bisect SET started = '2026-01-02T00:00:00Z',"
                    " ended = '2026-01-03T00:00:00Z'");
    test_exec(other, "UPDATE bisect SET started = '2026-01-01T00:00:00Z'");
    test_merge(into, other);
    assert_string_equal(test_text(into, both), "c5 7 bad,of 1 7 bad,of 2 3 skip");
    assert_string_equal(test_text(into, search), "2026-01-01T00:00:00Z 2026-01-03T00:00:00Z of 4");
    test_machine_go_on(other, 2, 5); /* 8 */
    test_exec(other, "UPDATE bisect SET started = '2026-01-02T00:00:00Z',"
                     " ended = '2026-01-04T00:00:00Z'");
    test_merge(into, other);
    assert_string_equal(test_text(into, both), "c5 8 skip,of 1 7 bad,of 2 8 skip");
    assert_string_equal(test_text(into, search), "2026-01-01T00:00:00Z 2026-01-04T00:00:00Z of 5");
}

/* Of two copies of a step of as many tries one stays, whole, and the same in any order: every column decides. */
static void test_tied_steps(void **state)
{
    (void)state;
    static const char *const differences[][2] = {
        {"failed = NULL", "failed = 1"},
        {"outcome = 'bad'", "outcome = 'skip'"},
        {"outcome = 'bad'", "outcome = 'good'"},
        {"seconds = 1.5", "seconds = 2.5"},
        {"seconds = NULL", "seconds = 0.5"},
        {"bits = NULL", "bits = '12'"},
        {"output = 'no such file'", "output = 'y'"},
        {"outcome = 'good', output = 'z'", "outcome = 'skip', output = 'a'"},
    };
    const char *machine = in_folder("machine.db");
    const char *copies[2] = {in_folder("a.db"), in_folder("b.db")};
    const char *merged[2] = {in_folder("ab.db"), in_folder("ba.db")};
    test_machine_write(machine, 1, 1);
    for (size_t i = 0; i < sizeof differences / sizeof differences[0]; i++) {
        for (int f = 0; f < 2; f++) {
            char sql[256];
            (void)snprintf(sql, sizeof sql, "UPDATE bisect_step SET %s WHERE bisect IS NOT NULL",
                           differences[i][f]);
            (void)unlink(copies[f]);
            (void)unlink(merged[f]);
            test_file_copy(machine, copies[f]);
            test_exec(copies[f], sql);
        }
        for (int order = 0; order < 2; order++) {
            test_merge(merged[order], copies[order]);
            test_merge(merged[order], copies[1 - order]);
        }
        assert_same_content(merged[0], merged[1]);
        assert_same_content(merged[0], copies[1]); /* the greater of the two */
    }
}

static int64_t grown(const char *path, int64_t *before)
{
    int64_t now = test_number(path, "SELECT writes FROM run"), more = now - *before;
    *before = now;
    return more;
}

/* Whatever is added to a run makes its copy the later one; pruning does not. */
static void test_every_addition_counts(void **state)
{
    (void)state;
    int64_t writes = 0;
    const char *path = in_folder("x.db");
    struct mla_store *store = test_open_run(path, NULL);
    struct mla_store_case c = test_case(1);
    const struct mla_store_verdict v = test_verdict(&c, "pass");
    const struct mla_store_trial trial = {.role = "fault",
                                          .fault = "f",
                                          .class = "",
                                          .op = "ring",
                                          .search = "guided",
                                          .outcome = "survived"};
    const struct mla_store_bench bench = {.op = "ring",
                                          .shape = "tiny",
                                          .testcase = c.id,
                                          .kernel = "scalar",
                                          .threads = 1,
                                          .seconds = 0.5,
                                          .flops = 1,
                                          .peak = 1,
                                          .isa = "portable",
                                          .reps = 1};
    assert_int_equal(grown(path, &writes), 0);
    OK(mla_store_verdict(store, &v));
    OK(mla_store_flush(store));
    assert_true(grown(path, &writes) > 0);
    OK(mla_store_tally(store, "ring", "k", "full", "pass", 1, 0.5));
    OK(mla_store_flush(store));
    assert_true(grown(path, &writes) > 0);
    OK(mla_store_trial(store, &trial));
    assert_true(grown(path, &writes) > 0);
    OK(mla_store_bench(store, &bench));
    assert_true(grown(path, &writes) > 0);
    OK(mla_store_prune(store, 1, 1, NULL));
    assert_int_equal(grown(path, &writes), 0);
    OK(mla_store_end_run(store));
    assert_true(grown(path, &writes) > 0);
    OK(mla_store_close(store));
}

/* What a hunt's home moved into tallies does not count a second time elsewhere, pruned here or there. */
static void test_pruned_copies(void **state)
{
    (void)state;
    const char *home = in_folder("home.db"), *into = in_folder("into.db");
    const char *cases = "SELECT sum(cases) FROM runs";
    test_machine_write(home, 1, 30);
    test_merge(into, home);
    int64_t before = test_number(home, cases);
    test_prune(home, 1);
    assert_true(test_number(home, "SELECT count(*) FROM verdict") < 30);
    test_merge(into, home);
    assert_int_equal(test_number(into, cases), before);
    assert_int_equal(test_number(into, "SELECT count(*) FROM verdict"), 30); /* the same, in full */
    test_machine_go_on(home, 1, 6);
    test_merge(into, home);
    assert_int_equal(test_number(into, cases), before + 12); /* a tally too */
    assert_int_equal(test_number(into, "SELECT count(*) FROM verdict"),
                     test_number(home, "SELECT count(*) FROM verdict"));
    /* Pruned twice, apart and differently: one way of the two, whoever is merged into whom. */
    const char *other = in_folder("other.db");
    test_file_copy(home, other);
    test_exec(home,
              "DELETE FROM metric; DELETE FROM verdict WHERE id = (SELECT max(id) FROM verdict)");
    test_exec(other,
              "DELETE FROM metric; DELETE FROM verdict WHERE id = (SELECT min(id) FROM verdict)");
    const char *one = in_folder("one.db"), *two = in_folder("two.db");
    test_merge(one, home);
    test_merge(one, other);
    test_merge(two, other);
    test_merge(two, home);
    char *of_one =
        test_text_of(one, "SELECT group_concat(kernel || verdict || reason) FROM verdict");
    char *of_two =
        test_text_of(two, "SELECT group_concat(kernel || verdict || reason) FROM verdict");
    assert_string_equal(of_one, of_two);
    free(of_one);
    free(of_two);
}

/* First and last sighting, and the state, of a finding that two files have. */
static const struct finding_case {
    const char *mine, *theirs; /* state, first seen, last seen */
    const char *joined;
} finding_cases[] = {
    {"'open', '05', '10'", "'open', '03', '08'", "open 03 10 mine"},
    {"'open', '05', '08'", "'open', '06', '10'", "open 05 10 theirs"},
    {"'fixed', '05', '10'", "'open', '03', '08'", "fixed 03 10 mine"},
    {"'fixed', '05', '08'", "'open', '06', '10'", "open 05 10 theirs"},
    {"'open', '05', '08'", "'fixed', '06', '10'", "fixed 05 10 theirs"},
    {"'known', '05', '08'", "'open', '06', '10'", "known 05 10 theirs"},
    {"'fixed', '05', '10'", "'known', '06', '08'", "known 05 10 mine"},
};

static void write_finding(const char *path, const char *who, const char *what)
{
    char sql[1024];
    OK(mla_store_close(test_open_run(path, NULL)));
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO testcase (id, line, op, family, region)"
        " VALUES ('%064d', 'ring', 'ring', 'f', '');"
        "INSERT INTO finding (testcase, kernel, verdict, state, first_seen, last_seen,"
        " first_run, last_run, reason, repro) SELECT 1, 'k', 'crash', %s, 1, 1, '%s', '%s'",
        7, what, who, who);
    test_exec(path, sql);
}

static void test_findings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof finding_cases / sizeof finding_cases[0]; i++) {
        const char *mine = in_folder("mine.db"), *theirs = in_folder("theirs.db");
        const char *query = "SELECT state || ' ' || first_seen || ' ' || last_seen || ' ' || reason"
                            " FROM finding";
        (void)unlink(mine);
        (void)unlink(theirs);
        write_finding(mine, "mine", finding_cases[i].mine);
        write_finding(theirs, "theirs", finding_cases[i].theirs);
        const char *first = in_folder("first.db"), *second = in_folder("second.db");
        test_file_copy(mine, first);
        test_file_copy(theirs, second);
        test_merge(first, theirs);
        test_merge(second, mine);
        assert_string_equal(test_text(first, query), finding_cases[i].joined);
        assert_same_content(first, second);
    }
}

/* The same sighting in two copies of a file: who says fixed said it afterwards. */
static void test_fixed_in_a_copy(void **state)
{
    (void)state;
    const char *home = in_folder("home.db"), *into = in_folder("into.db");
    test_machine_write(home, 1, 10);
    test_merge(into, home);
    test_exec(home, "UPDATE finding SET state = 'fixed'");
    test_merge(into, home);
    assert_int_equal(test_number(into, "SELECT count(*) FROM finding WHERE state <> 'fixed'"), 0);
    test_exec(home, "UPDATE finding SET state = 'open'");
    test_merge(home, into);
    assert_int_equal(test_number(home, "SELECT count(*) FROM finding WHERE state <> 'fixed'"), 0);
}

/* A case of version 1 learns what was not asked then, from either side. */
static void test_sign_coins(void **state)
{
    (void)state;
    const char *query = "SELECT sign_coins FROM testcase WHERE line = 'ring v=1 heads=2'";
    const char *old = in_folder("old.db"), *newer = in_folder("newer.db");
    test_dump_load(MLA_TEST_V1_SQL, old);
    test_dump_load(MLA_TEST_V4_SQL, newer);
    test_merge(in_folder("a.db"), old);
    assert_int_equal(test_number(in_folder("a.db"), query), 0); /* NULL */
    test_merge(in_folder("a.db"), newer);
    test_merge(in_folder("b.db"), newer);
    test_merge(in_folder("b.db"), old);
    assert_int_equal(test_number(in_folder("a.db"), query), 1);
    assert_int_equal(test_number(in_folder("b.db"), query), 1);
}

/* Runs begun in the same second by the same command have names of their own, in children too. */
static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d.db", i);
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < 10; k++) {
                if (mla_store_close(test_open_run(in_folder(name), NULL)) != MLA_STORE_OK) {
                    _exit(1);
                }
            }
            _exit(0);
        }
        assert_int_equal(test_wait(child), 0);
        test_merge(in_folder("all.db"), in_folder(name));
    }
    assert_int_equal(test_number(in_folder("all.db"), "SELECT count(DISTINCT uid) FROM run"), 40);
}

/* The latest run is the one begun last, whatever its number became. */
static int keep_first(void *context, int columns_n, const char *const *names,
                      const char *const *values)
{
    (void)columns_n;
    (void)names;
    (void)snprintf(context, 64, "%s", values[1]);
    return 1;
}

static void test_newest_first(void **state)
{
    (void)state;
    char first[64] = "";
    const char *into = in_folder("into.db"), *old = in_folder("old.db");
    OK(mla_store_close(test_open_run(into, NULL)));
    int64_t own = test_number(into, "SELECT id FROM run");
    test_dump_load(MLA_TEST_V4_SQL, old);
    test_merge(into, old);
    struct mla_store *store = test_open(into);
    OK(mla_store_view(store, MLA_VIEW_RUN, NULL, keep_first, first));
    assert_int_equal(strtoll(first, NULL, 10), own);
    OK(mla_store_close(store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_everything_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_later_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_searches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tied_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_addition_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pruned_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_findings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fixed_in_a_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sign_coins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest_first, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
