/* SPDX-License-Identifier: Apache-2.0
 *
 * durability_test.c - kill -9 at random moments of judging: what was judged and committed is there, and is
 * what an undisturbed process judges.
 *
 * A child judges a list of small cases over and over and tells through a pipe how many verdicts are
 * committed. It is killed at a moment that a seeded generator chooses: while it opens, judges, writes or
 * waits for the lock. MLA_TEST_KILLS sets how often.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/case_fields.h"
#include "fuzz/kernels.h"
#include "fuzz/record.h"
#include "results/store_test_util.h"

#define CASES_N     12
#define FLUSH_EVERY 2  /* verdicts */
#define ROUNDS_A_DB 25 /* then a new file: checks cost what was stored */
#define MOMENT_US   10000

static struct mla_case cases[CASES_N];
static struct mla_kernel_list kernels; /* an honest one and one that fails */
static char *folder;
static char path[256], reference[256];

static int kills_n(void)
{
    const char *text = getenv("MLA_TEST_KILLS");
    return text == NULL ? 200 : atoi(text);
}

static void draw_cases(void)
{
    for (uint64_t i = 0; i < CASES_N; i++) {
        struct mla_rng rng = {mla_number_mix(i), 0};
        struct mla_case *test = &cases[i];
        mla_case_draw(test, MLA_OP_RING, &rng);
        test->seed |= 1; /* no large one */
        test->ring.ring_size = 1 + test->ring.ring_size % 2;
        test->ring.heads = test->ring.batch = test->ring.kv_batch = 1;
        test->ring.has_slot = 0;
        test->ring.q_rows = test->ring.kv_rows = MLA_TILE;
        test->ring.head_dim = 64;
        test->ring.threads = 1;
        test->rows = 2;
        mla_case_fix(test);
    }
}

static int setup(void **state)
{
    char error[256];
    (void)state;
    folder = test_folder_make_fast();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    (void)snprintf(reference, sizeof reference, "%s/reference.db", folder);
    draw_cases();
    memset(&kernels, 0, sizeof kernels);
    return mla_kernels_add(&kernels, "scalar", error, sizeof error) != MLA_OK ||
           mla_kernels_add(&kernels, "fault:canary-nan", error, sizeof error) != MLA_OK;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

/* One verdict, noted before and stored after, as `run` does it. */
static int32_t judge(struct mla_store *store, const struct mla_case *test,
                     const struct mla_kernel_choice *choice, bool forked)
{
    struct mla_verdict verdict;
    struct mla_subject *subject = NULL;
    struct mla_store_case row;
    char line[MLA_CASE_LINE_MAX], repro[MLA_REPRO_MAX], error[MLA_CASE_ERROR_MAX];
    const struct mla_judge_options options = {.seconds_limit = forked ? 20 : 0,
                                              .oracle_threads = 1};
    mla_case_format(test, line);
    mla_record_case(test, line, &row);
    if (mla_subject_make(test, &subject, error) != MLA_OK)
        return MLA_STORE_ERR_NOMEM;
    int32_t status = mla_store_inflight_begin(store, &row, choice->spec,
                                              mla_record_repro(choice->spec, line, false, repro));
    mla_subject_judge(subject, choice->kernel, &options, &verdict);
    mla_subject_free(subject);
    if (status == MLA_STORE_OK)
        status = mla_store_inflight_end(store);
    return status == MLA_STORE_OK ? mla_record_store(store, test, choice->spec, &verdict) : status;
}

/* Judge all cases with both kernels, rounds_n times (0: until killed), telling what is committed. */
static int32_t judge_all(const char *file, int rounds_n, bool forked, int report)
{
    struct mla_store *store = test_open_run(file, NULL);
    int32_t status = MLA_STORE_OK;
    unsigned n = 0;
    for (int round = 0; status == MLA_STORE_OK && (rounds_n == 0 || round < rounds_n); round++)
        for (size_t i = 0; status == MLA_STORE_OK && i < CASES_N * kernels.n; i++) {
            status = judge(store, &cases[i / kernels.n], &kernels.list[i % kernels.n], forked);
            if (status != MLA_STORE_OK || ++n % FLUSH_EVERY != 0)
                continue;
            status = mla_store_flush(store);
            if (status == MLA_STORE_OK && write(report, &n, sizeof n) != (ssize_t)sizeof n)
                status = MLA_STORE_ERR_WRITE;
        }
    return status == MLA_STORE_OK ? mla_store_close(store) : status;
}

struct child {
    pid_t pid;
    int report;
};

static struct child begin_judging(bool forked)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)alarm(60); /* a failing test must not leave it behind */
        _exit(judge_all(path, 0, forked, ends[1]) == MLA_STORE_OK ? 0 : 1);
    }
    (void)close(ends[1]);
    return (struct child){pid, ends[0]};
}

/* Kill it after a random time, in some rounds counted from its first report. Committed verdicts. */
static unsigned kill_at_random(struct child child, struct mla_rng *rng)
{
    unsigned committed = 0, value = 0;
    struct pollfd first = {.fd = child.report, .events = POLLIN};
    if (mla_rng_below(rng, 8) != 0)
        (void)poll(&first, 1, 20000);
    (void)usleep((useconds_t)mla_rng_below(rng, MOMENT_US));
    assert_int_equal(kill(child.pid, SIGKILL), 0);
    while (read(child.report, &value, sizeof value) == (ssize_t)sizeof value)
        committed = value;
    (void)close(child.report);
    assert_int_equal(test_wait(child.pid), 1000 + SIGKILL);
    return committed;
}

/* In a child too: judging keeps shared mappings for later, which children must not have in common. */
static void make_reference(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        _exit(judge_all(reference, 1, false, null) == MLA_STORE_OK ? 0 : 1);
    }
    assert_int_equal(test_wait(pid), 0);
    assert_int_equal(test_number(reference, "SELECT count(*) FROM verdict"), CASES_N * 2);
    assert_true(test_number(reference, "SELECT count(*) FROM finding") > 0);
}

/* Verdicts of a run that a process gave; those of deaths aside. */
static int64_t stored_of(int64_t run)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM verdict WHERE run = %lld AND verdict <> 'unjudged'",
                   (long long)run);
    return test_number(path, sql);
}

/* Every stored verdict is one of the undisturbed process, with all of its statistics. */
static void check_file(void)
{
    char sql[1024];
    assert_string_equal(test_text(path, "PRAGMA integrity_check"), "ok");
    assert_int_equal(test_number(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    (void)snprintf(
        sql, sizeof sql,
        "ATTACH '%s' AS r; CREATE TEMP TABLE due AS SELECT t.id, v.kernel, v.verdict, v.relation,"
        " v.max_ratio, v.element, v.got, (SELECT count(*) FROM r.metric WHERE verdict = v.id) AS n"
        " FROM r.verdict AS v JOIN r.testcase AS t ON t.num = v.testcase;"
        "CREATE TEMP TABLE one (n CHECK (n = 0)); INSERT INTO one SELECT count(*) FROM"
        " (SELECT t.id, v.kernel, v.verdict, v.relation, v.max_ratio, v.element, v.got,"
        " (SELECT count(*) FROM main.metric WHERE verdict = v.id) FROM main.verdict AS v"
        " JOIN main.testcase AS t ON t.num = v.testcase WHERE v.verdict <> 'unjudged'"
        " EXCEPT SELECT * FROM due)",
        reference);
    test_exec(path, sql); /* ends the test if a row is left over */
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict AS v WHERE verdict ="
                                       " 'fail-certain' AND NOT EXISTS"
                                       " (SELECT 1 FROM finding AS f WHERE (f.testcase, f.kernel,"
                                       " f.verdict) = (v.testcase, v.kernel, v.verdict))"),
                     0);
    /* A process that vanished is nobody's failure. */
    assert_int_equal(test_number(path,
                                 "SELECT count(*) FROM finding WHERE verdict <> 'fail-certain'"
                                 " OR kernel = 'scalar'"),
                     0);
    assert_int_equal(test_number(path, "SELECT count(*) FROM verdict WHERE verdict = 'unjudged'"
                                       " AND reason <> '" MLA_STORE_INTERRUPTED "'"),
                     0);
}

static int64_t latest_run(void)
{
    return test_number(path, "SELECT coalesce(max(id), 0) FROM run");
}

/* Open as the next command would: notes become verdicts. */
static void open_again(void)
{
    assert_int_equal(mla_store_close(test_open(path)), MLA_STORE_OK);
}

static void test_killed_while_judging(void **state)
{
    struct mla_rng rng = {1, 0};
    int64_t committed_n = 0, deaths_n = 0;
    (void)state;
    make_reference();
    for (int round = 0; round < kills_n(); round++) {
        if (round % ROUNDS_A_DB == 0)
            (void)unlink(path);
        int64_t before = round % ROUNDS_A_DB == 0 ? 0 : latest_run();
        struct child child = begin_judging(round % 4 == 3);
        unsigned committed = kill_at_random(child, &rng);
        open_again();
        assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
        int64_t run = latest_run();
        assert_true(run == before ? committed == 0 : stored_of(run) >= committed);
        check_file();
        committed_n += committed;
        if (round % ROUNDS_A_DB == ROUNDS_A_DB - 1)
            deaths_n +=
                test_number(path, "SELECT count(*) FROM verdict WHERE verdict = 'unjudged'");
    }
    print_message("%d kills, %lld verdicts committed before them, %lld deaths noted\n", kills_n(),
                  (long long)committed_n, (long long)deaths_n);
    assert_true(committed_n > kills_n());
    assert_true(deaths_n > 0 || kills_n() < ROUNDS_A_DB);
}

/* Two at once on one file: one dies, is recovered while the other writes, and takes nothing with it. */
static void test_killed_beside_another(void **state)
{
    struct mla_rng rng = {2, 0};
    (void)state;
    make_reference();
    for (int round = 0; round < kills_n() / 20; round++) {
        int64_t before = round == 0 ? 0 : latest_run();
        struct child first = begin_judging(false), second = begin_judging(round % 2 == 1);
        int64_t committed = kill_at_random(first, &rng);
        open_again();
        committed += kill_at_random(second, &rng);
        open_again();
        int64_t stored = 0;
        for (int64_t run = latest_run(); run > before; run--)
            stored += stored_of(run);
        assert_true(stored >= committed);
        assert_int_equal(test_files_n(folder, "x.db-inflight-"), 0);
        check_file();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed_while_judging, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed_beside_another, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
