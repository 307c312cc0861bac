/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_test.c - `mlacheck compare` on databases of the test's own: what is a regression and what is not, and a
 * planted fault in an honest kernel's place.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

#include "fuzz/judge.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/compare.h"
#include "fuzz/record.h"
#include "fuzz/relations.h"

volatile int mla_interrupted;

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static char folder[64], db[128], other_db[128], set[128], golden[128];
static char output[65536]; /* of the last command */
static struct mla_store *store;

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/compare_test.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(db, sizeof db, "%s/x.db", folder);
    snprintf(other_db, sizeof other_db, "%s/y.db", folder);
    snprintf(set, sizeof set, "%s/few.txt", folder);
    snprintf(golden, sizeof golden, "%s/golden.csv", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    const char *const files[] = {db, other_db, set, golden};
    char path[160];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (int end = 0; end < 3; end++) {
            snprintf(path, sizeof path, "%s%s", files[i],
                     (const char *const[]){"", "-wal", "-shm"}[end]);
            unlink(path);
        }
    snprintf(path, sizeof path, "%s/out", folder);
    unlink(path);
    return rmdir(folder);
}

/* Call the verb; what it prints goes into output. */
static int compare(const char *a, const char *b, const char *c, const char *d, const char *e,
                   const char *f, const char *g)
{
    const char *const words[] = {"compare", a, b, c, d, e, f, g};
    char *argv[12] = {NULL}, path[160];
    int argc = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && words[i] != NULL; i++)
        argv[argc++] = strdup(words[i]);
    snprintf(path, sizeof path, "%s/out", folder);
    fflush(NULL);
    int own[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    int code = mla_verb_compare(argc, argv);
    fflush(NULL);
    dup2(own[0], STDOUT_FILENO);
    dup2(own[1], STDERR_FILENO);
    lseek(file, 0, SEEK_SET);
    ssize_t n = read(file, output, sizeof output - 1);
    output[n < 0 ? 0 : n] = '\0';
    close(file);
    close(own[0]);
    close(own[1]);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return code;
}

static int runs(const char *a, const char *b)
{
    return compare("--db", db, a, b, "--json", "--quiet", NULL);
}

static void expect(const char *text)
{
    if (strstr(output, text) == NULL)
        fail_msg("looked for '%s' in:\n%s", text, output);
}

static void expect_not(const char *text)
{
    if (strstr(output, text) != NULL)
        fail_msg("found '%s' in:\n%s", text, output);
}

/* Neither control characters nor what UTF-8 spells them in two bytes. */
static void expect_letters(void)
{
    for (const char *c = output; *c != '\0'; c++)
        if (*c != '\n' &&
            ((unsigned char)*c < ' ' || *c == 0x7f || (*c == '\xc2' && (unsigned char)c[1] < 0xa0)))
            fail_msg("control character %d in:\n%s", *c, output);
}

/* ---- databases ---- */

static void open_store(const char *path)
{
    char message[512];
    OK(mla_store_open(path, &store, message, sizeof message));
}

static void close_store(void)
{
    OK(mla_store_close(store));
}

static const char *isa = "avx2"; /* of the machine that the next runs are of */

static void begin(const char *commit, const char *sanitizer)
{
    const struct mla_store_build build = {commit, false, "clang 14", "-O2", sanitizer, isa};
    const struct mla_store_run run = {"run", "a CPU", "k", 7};
    OK(mla_store_begin_run(store, &build, &run, NULL));
}

/* relation: "" for the plain verdict; looked_at: bits of relations, negative: not stored */
static void put_looked(unsigned n, const char *kernel, const char *verdict, double ratio,
                       double hash, const char *relation, double looked_at)
{
    char line[32];
    struct mla_store_case c = {.line = line, .op = "ring", .family = "exact", .region = ""};
    const struct mla_store_metric metrics[3] = {
        {"output_hash", hash}, {"max_err_over_bound", ratio}, {"relations", looked_at}};
    snprintf(c.id, sizeof c.id, "%08x%056d", n, 0);
    snprintf(line, sizeof line, "ring case %u", n);
    const struct mla_store_verdict v = {.testcase = &c,
                                        .kernel = kernel,
                                        .verdict = verdict,
                                        .relation = relation,
                                        .reason = "so it is",
                                        .max_ratio = ratio,
                                        .elements_n = 1,
                                        .metrics = metrics,
                                        .metrics_n = ratio < 0       ? 0
                                                     : looked_at < 0 ? 2
                                                                     : 3,
                                        .repro = "mlacheck run --this"};
    OK(mla_store_verdict(store, &v));
}

static void put(unsigned n, const char *kernel, const char *verdict, double ratio, double hash)
{
    put_looked(n, kernel, verdict, ratio, hash, "", -1);
}

/* ---- what moved ---- */

static void nothing_moved(void **state)
{
    (void)state;
    open_store(db);
    for (int run = 0; run < 2; run++) {
        begin("aaaa1", "");
        put(1, "k", "pass", 0.5, 77);
        put(2, "k", "refused", -1, 0);
        put(3, "k", "fail-certain", 2, 5);
        put(4, "k", "unsupported", -1, 0);
    }
    close_store();
    assert_int_equal(runs("1", "2"), MLA_EXIT_PASSED);
    expect("4 pairs compared, 0 regressions\n");
    expect(
        "{\"paired\":4,\"regressed\":0,\"moved\":{\"regressions\":0,\"new_failures\":0,\"fixed\":0,"
        "\"lost\":0,\"not_comparable\":0,\"unsteady\":0,\"bits_changed\":0},\"regressions\":[],"
        "\"new_failures\":[],"
        "\"fixed\":[],"
        "\"lost\":[],\"not_comparable\":[],\"unsteady\":[],\"bits_changed\":[],\"shifts\":[],"
        "\"shift_tests\":0,");
    expect("\"same_bits\":1,\"changed_bits\":0,\"unknown_bits\":0,\"worst\":[2,2],"
           "\"new_worst\":null}");
    expect_not("kept apart");
}

/* A plug-in is known by its file: built anew it is told of, and only then. */
static void plugin_rebuilt(void **state)
{
    (void)state;
    static const char *const files[] = {"012345678901", "012345678901", "abcdefabcdef"};
    open_store(db);
    for (int run = 0; run < 4; run++) {
        char kernels[64] = "./k.so:k,./k.so:kk"; /* by an older mlacheck */
        const struct mla_store_build build = {"aaaa1", false, "clang 14", "-O2", "", "avx2"};
        const struct mla_store_run row = {"run", "a CPU", kernels, 7};
        if (run < 3)
            snprintf(kernels, sizeof kernels, "./k.so:kk@%s,./k.so:k@%s,x", files[0], files[run]);
        OK(mla_store_begin_run(store, &build, &row, NULL));
        put(1, "./k.so:k", "pass", 0.5, 77);
        put(2, "./k.so:k", "pass", 0.5, 77);
        put(1, "./k.so:kk", "pass", 0.5, 77);
        put(1, "x", "pass", 0.5, 77);
    }
    close_store();
    assert_int_equal(runs("1", "3"), MLA_EXIT_PASSED);
    expect("kernel file changed: ./k.so:k (012345678901 -> abcdefabcdef)\n");
    expect_not("kernel file changed: ./k.so:kk");
    expect("\"kernel\":\"./"
           "k.so:k\",\"sanitizer\":\"\",\"isa\":\"avx2\",\"kernel_file_changed\":true,");
    assert_int_equal(runs("1", "2"), MLA_EXIT_PASSED);
    expect_not("kernel file changed");
    assert_int_equal(runs("1", "4"), MLA_EXIT_PASSED);
    expect_not("kernel file changed");
    assert_int_equal(runs("aaaa1", "3"), MLA_EXIT_PASSED);
    expect_not("kernel file changed");
}

/* Runs of one commit, of this program's, do not speak for a plug-in that was built anew. */
static void plugin_mended(void **state)
{
    (void)state;
    static const struct {
        const char *commit, *kernels, *verdict;
    } stored[] = {
        {"aaaa1", "./k.so:k@012345678901", "fail-certain"},
        {"aaaa1", "./k.so:k@abcdefabcdef", "pass"},
        {"bbbb1", "./k.so:k", "fail-certain"}, /* by an older mlacheck: nothing is known */
        {"bbbb1", "another,./k.so:k", "pass"},
    };
    open_store(db);
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        const struct mla_store_build build = {
            stored[i].commit, false, "clang 14", "-O2", "", "avx2"};
        const struct mla_store_run row = {"run", "a CPU", stored[i].kernels, 7};
        OK(mla_store_begin_run(store, &build, &row, NULL));
        put(1, "./k.so:k", stored[i].verdict, 0.5, 77);
    }
    close_store();
    assert_int_equal(runs("1", "aaaa1"), MLA_EXIT_PASSED);
    expect("FIXED ring/./k.so:k");
    expect_not("flaky");
    assert_int_equal(runs("4", "bbbb1"), MLA_EXIT_FAULT);
    expect("flaky in B: failed 1 of 2");
}

/* One case a row: what it was, what it is, and whether that alone makes exit code 1. */
static void each_move(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *word;
        int code;
    } moves[] = {
        {"pass", "fail-certain", "REGRESSION", MLA_EXIT_FAULT},
        {"pass", "fail-improbable", "REGRESSION", MLA_EXIT_FAULT},
        {"pass", "crash", "REGRESSION", MLA_EXIT_FAULT},
        {"refused", "timeout", "REGRESSION", MLA_EXIT_FAULT},
        {"unjudged", "fail-certain", "REGRESSION", MLA_EXIT_FAULT}, /* it failed nowhere before */
        {"fail-certain", "crash", "1 pairs compared, 0 regressions\n", MLA_EXIT_PASSED},
        {"crash", "pass", "FIXED", MLA_EXIT_PASSED},
        {"pass", "unsupported", "LOST", MLA_EXIT_PASSED},
        {"fail-certain", "unjudged", "LOST", MLA_EXIT_PASSED},
        {"unjudged", "pass", "1 pairs compared, 0 regressions\n", MLA_EXIT_PASSED},
    };
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        open_store(db);
        begin("aaaa1", "");
        put(1, "k", moves[i].before, -1, 0);
        if (strcmp(moves[i].before, "unjudged") == 0)
            put(9, "k", "pass", 0.5, 1);
        begin("bbbb2", "");
        put(1, "k", moves[i].after, -1, 0);
        close_store();
        int code = runs("aaaa", "bbbb2");
        if (code != moves[i].code)
            fail_msg("%s -> %s: %d\n%s", moves[i].before, moves[i].after, code, output);
        expect(moves[i].word);
        if (code == MLA_EXIT_FAULT) {
            expect(": so it is\n  repro: mlacheck run --this\n");
            expect("\"regressed\":1");
        }
        teardown(state);
        setup(state);
    }
}

/* A case that only B judged: new for a kernel that already failed, a regression for one that did not. */
static void failures_of_new_cases(void **state)
{
    (void)state;
    open_store(db);
    begin("aaaa1", "");
    put(1, "good", "pass", 0.5, 1);
    put(1, "bad", "fail-certain", 3, 1);
    put(1, "unseen", "unjudged", -1, 0);
    begin("bbbb1", "");
    put(1, "good", "pass", 0.5, 1);
    put(1, "bad", "fail-certain", 3, 1);
    put(2, "bad", "fail-certain", 4, 1);
    put(2, "unknown", "fail-certain", 4, 1);
    put(2, "unseen", "fail-certain", 4, 1); /* it passed nothing in A */
    begin("cccc1", "");
    put(1, "good", "pass", 0.5, 1);
    put(2, "good", "fail-certain", 4, 1);
    close_store();
    assert_int_equal(runs("1", "2"), MLA_EXIT_PASSED);
    expect("NEW ring/bad case=000000020000 not judged -> fail-certain, err/bound - -> 4: so it is");
    expect("NEW ring/unknown");
    expect("NEW ring/unseen");
    expect("only in B: ring/unknown (1 cases)");
    expect("WORST ring/bad err/bound 3 -> 4, case=000000020000 (not in A)");
    assert_int_equal(runs("1", "3"), MLA_EXIT_FAULT);
    expect(
        "REGRESSION ring/good case=000000020000 not judged -> fail-certain, err/bound - -> 4; the "
        "kernel failed nowhere in A: so it is");
    expect("only in A: ring/bad (1 cases)");
    assert_int_equal(compare("--db", db, "1", "3", "--verbose", NULL, NULL), MLA_EXIT_FAULT);
    expect("only in A: ring/bad case=000000010000 fail-certain\n");
    expect("only in B: ring/good case=000000020000 fail-certain\n");
}

static void bits_and_worst(void **state)
{
    (void)state;
    open_store(db);
    begin("aaaa1", "");
    put(1, "k", "pass", 0.25, 1);
    put(2, "k", "pass", 0.5, 2);
    put(3, "k", "pass", 0.5, 0);
    begin("bbbb1", "");
    put(1, "k", "pass", 0.75, 9);
    put(2, "k", "pass", 0.5, 2);
    put(3, "k", "pass", 0.5, 3);
    close_store();
    assert_int_equal(runs("1", "2"), MLA_EXIT_PASSED);
    expect("BITS ring/k case=000000010000 pass -> pass, err/bound 0.25 -> 0.75");
    expect("WORST ring/k err/bound 0.5 -> 0.75, case=000000010000 (there it was 0.25)");
    expect("\"same_bits\":1,\"changed_bits\":1,\"unknown_bits\":1,\"worst\":[0.5,0.75],"
           "\"new_worst\":\"000000010000\"}");
    expect("3 pairs compared, 0 regressions; 1 pass in both with other output bits");
    assert_int_equal(runs("2", "1"), MLA_EXIT_PASSED);
    expect_not("WORST");
    /* NaN is the worst, whatever comes after it */
    open_store(db);
    begin("cccc1", "");
    put(1, "k", "fail-certain", NAN, 1);
    put(2, "k", "pass", 0.75, 2);
    close_store();
    assert_int_equal(runs("1", "3"), MLA_EXIT_FAULT);
    expect("WORST ring/k err/bound 0.5 -> nan, case=000000010000 (there it was 0.25)");
}

/* A database may come from anywhere: what it says reaches the terminal as letters only. */
static void texts_are_tamed(void **state)
{
    (void)state;
    open_store(db);
    begin("a\033[1m1", "");
    put(1, "k\033[31m", "pass", 0.5, 1);
    begin("b\xc2\x9b"
          "1",
          "asan\r");
    put(1, "k\033[31m", "pass", 0.5, 1);
    begin("c\a1", "");
    put(1, "k\033[31m", "fail-certain", 2, 1);
    close_store();
    assert_int_equal(compare("--db", db, "1", "3", "--verbose", "--json", NULL), MLA_EXIT_FAULT);
    expect("[31m");
    expect_letters();
    assert_int_equal(runs("1", "2"), MLA_EXIT_NOTHING);
    expect("sanitizer asan ");
    expect_letters();
}

/* Of what is no verdict that turned only the first are listed, and how many more there are. */
static void many(void **state)
{
    (void)state;
    open_store(db);
    for (int run = 0; run < 2; run++) {
        begin("aaaa1", "");
        for (unsigned n = 1; n <= 25; n++) {
            put(n, "k", "pass", 0.5, run + 1);
            put(n, "f", run == 0 ? "pass" : "crash", -1, 0);
        }
    }
    close_store();
    assert_int_equal(runs("1", "2"), MLA_EXIT_FAULT);
    expect("REGRESSION: 5 more (--verbose: all)\n");
    expect("BITS: 5 more (--verbose: all)\n");
    expect("\"regressed\":25,\"moved\":{\"regressions\":25,");
    char *json = strstr(output, "{\"paired\"");
    assert_non_null(json);
    expect("{\"case\":\"000000190000\",\"op\":\"ring\",\"kernel\":\"f\"");
    assert_null(strstr(json, "{\"case\":\"000000190000\",\"op\":\"ring\",\"kernel\":\"k\""));
    assert_int_equal(compare("--db", db, "1", "2", "--json", "--verbose", NULL), MLA_EXIT_FAULT);
    expect("{\"case\":\"000000190000\",\"op\":\"ring\",\"kernel\":\"k\"");
}

static void builds_apart(void **state)
{
    (void)state;
    open_store(db);
    begin("aaaa1", "");
    put(1, "k", "pass", 0.5, 1);
    begin("aaaa1", "address");
    put(1, "k", "fail-certain", 2, 1);
    close_store();
    assert_int_equal(runs("1", "2"), MLA_EXIT_NOTHING);
    expect("kept apart: builds with no sanitizer for avx2 are only in A");
    expect("kept apart: builds with sanitizer address for avx2 are only in B");
    expect("0 pairs compared, 0 regressions");
}

/* A fault now and then in the runs of one commit is one, and said to be unsteady. */
static void now_and_then(void **state)
{
    (void)state;
    open_store(db);
    begin("aaaa1", "");
    put(1, "k", "pass", 0.5, 1);
    begin("bbbb1", "");
    put(1, "k", "crash", -1, 0);
    begin("bbbb1", "");
    put(1, "k", "pass", 0.5, 1);
    close_store();
    assert_int_equal(runs("aaaa", "bbbb"), MLA_EXIT_FAULT);
    expect("REGRESSION ring/k");
    expect("UNSTEADY ring/k case=000000010000 pass -> crash, err/bound 0.5 -> 0.5; flaky in B: "
           "failed 1 of 2");
    expect("\"judged\":[1,2],\"failed\":[0,1],");
}

/* The same in one run: who failed once failed. */
static void again_in_a_run(void **state)
{
    (void)state;
    open_store(db);
    begin("aaaa1", "");
    put(1, "k", "pass", 0.5, 1);
    put(1, "k", "pass", 0.5, 1);
    begin("bbbb1", "");
    put(1, "k", "pass", 0.5, 1);
    put(1, "k", "fail-certain", 2, 1);
    put(1, "k", "pass", 0.5, 1);
    close_store();
    assert_int_equal(runs("1", "2"), MLA_EXIT_FAULT);
    expect(
        "REGRESSION ring/k case=000000010000 pass -> fail-certain, err/bound 0.5 -> 2; flaky in B: "
        "failed 1 of 3: so it is");
    expect("UNSTEADY ring/k");
    assert_int_equal(runs("2", "1"), MLA_EXIT_PASSED);
    expect("FIXED ring/k case=000000010000 fail-certain -> pass, err/bound 2 -> 0.5; flaky in A: "
           "failed 1 "
           "of 3");
}

/* A failure by a relation is fixed only where the other side looked at it, and worse only where it did too. */
static void relations_apart(void **state)
{
    size_t n, heads = 0;
    const struct mla_relation *relations = mla_relations(&n);
    (void)state;
    while (strcmp(relations[heads].name, "heads") != 0)
        heads++;
    open_store(db);
    begin("aaaa1", "");
    put_looked(1, "k", "fail-certain", 0.5, 1, "heads", (double)(1u << heads));
    begin("bbbb1", ""); /* --no-relations */
    put_looked(1, "k", "pass", 0.5, 1, "", 0);
    begin("cccc1", "");
    put_looked(1, "k", "pass", 0.5, 1, "", (double)(1u << heads));
    begin("dddd1", ""); /* by an older mlacheck */
    put(1, "k", "pass", 0.5, 1);
    begin("eeee1", "");
    put_looked(1, "k", "fail-certain", 0.5, 1, "", 0);
    close_store();
    for (int other = 2; other <= 4; other += 2) {
        assert_int_equal(runs("1", other == 2 ? "2" : "4"), MLA_EXIT_PASSED);
        expect("APART ring/k case=000000010000 fail-certain -> pass, err/bound 0.5 -> 0.5; not "
               "comparable: "
               "B did not look at relation heads");
        expect("1 failed in A by a relation that B did not look at: not comparable\n");
        expect("\"fixed\":0,\"lost\":0,\"not_comparable\":1,");
    }
    assert_int_equal(runs("1", "3"), MLA_EXIT_PASSED);
    expect("1 failed in A and pass in B");
    assert_int_equal(runs("5", "2"), MLA_EXIT_PASSED); /* the plain verdict failed: fixed */
    expect("1 failed in A and pass in B");
    /* As on a case that A did not judge. */
    assert_int_equal(runs("2", "1"), MLA_EXIT_FAULT);
    expect("REGRESSION ring/k case=000000010000 pass -> fail-certain, err/bound 0.5 -> 0.5; A did "
           "not look "
           "at relation heads; the kernel failed nowhere in A");
    expect("1 fail in B and were not judged in A");
    assert_int_equal(runs("3", "1"), MLA_EXIT_FAULT);
    expect("1 passed in A and fail in B");
}

/* The medians of n runs of each side, all of B's above all of A's. */
static void shifted_runs(int n)
{
    open_store(db);
    for (int i = 0; i < 2 * n; i++) {
        begin(i < n ? "aaaa1" : "bbbb1", "");
        put(1, "k", "pass", (i < n ? 0.125 : 0.25) + i / 1024.0, 1);
    }
    close_store();
}

static void shifts(void **state)
{
    (void)state;
    shifted_runs(6); /* by hand: 2 of the 924 orders are as far apart, p = 2/924 = 0.0021645 */
    assert_int_equal(runs("aaaa", "bbbb"), MLA_EXIT_PASSED);
    expect("SHIFT ring/k max_err_over_bound: median 0.127441 of 6 runs -> 0.258301 of 6 runs, "
           "p = 0.0022 (cases a run: A 1 to 1, B 1 to 1)\n");
    expect("1 of 1 tests below p = 0.01; if nothing moved, 0.01 would be");
    expect("\"metric\":\"max_err_over_bound\",\"runs\":[6,6],\"medians\":[0.127441,0.258301],"
           "\"p\":0.0021645,\"exact\":true}],\"shift_tests\":1,");
    teardown(state);
    setup(state);
    shifted_runs(5);
    assert_int_equal(runs("aaaa", "bbbb"), MLA_EXIT_PASSED);
    expect_not("SHIFT");
    expect(
        "distributions: not compared: 6 runs of the command `run` with the same build are needed "
        "on each side, A has 5 runs and B 5");
}

static void files(void **state)
{
    (void)state;
    open_store(db);
    begin("aaaa1", "");
    put(1, "k", "pass", 0.5, 1);
    OK(mla_store_tally(store, "ring", "k", "exact", "pass", 12, 0.5));
    close_store();
    open_store(other_db);
    begin("bbbb1", "");
    put(1, "k", "fail-certain", 5, 1);
    close_store();
    assert_int_equal(compare("--db", "/nowhere/z.db", db, other_db, NULL, NULL, NULL),
                     MLA_EXIT_FAULT);
    expect("REGRESSION ring/k case=000000010000 pass -> fail-certain, err/bound 0.5 -> 5");
    expect("A: 12 cases of hunts were counted without a row: not compared");
    assert_int_equal(compare("--db", db, "aaaa1", other_db, NULL, NULL, NULL), MLA_EXIT_FAULT);
    assert_int_equal(compare(other_db, "1", "--db", db, NULL, NULL, NULL), MLA_EXIT_PASSED);
    expect("FIXED");
}

static void wrong_words(void **state)
{
    (void)state;
    open_store(db);
    begin("aaaa1", "");
    close_store();
    assert_int_equal(runs("1", "7"), MLA_EXIT_USAGE);
    expect("'7' is neither a run nor");
    assert_int_equal(runs("1", "/nowhere/y.db"), MLA_EXIT_ENVIRONMENT);
    expect("/nowhere/y.db");
    assert_int_equal(compare("--db", db, "1", NULL, NULL, NULL, NULL), MLA_EXIT_USAGE);
    expect("give two runs, commits or databases");
    assert_int_equal(compare("--db", db, "1", "1", "--update", NULL, NULL), MLA_EXIT_USAGE);
    assert_int_equal(compare("--db", db, "--golden", "/nowhere/g.csv", "1", NULL, NULL),
                     MLA_EXIT_ENVIRONMENT);
    expect("/nowhere/g.csv");
    assert_int_equal(compare("--db", db, "--golden", golden, "--update", "1", NULL),
                     MLA_EXIT_USAGE);
    expect("give --set");
    assert_int_equal(runs("1", "1"), MLA_EXIT_NOTHING);
}

/* ---- real verdicts ---- */

static const char *const lines[] = {
    "ring v=1 R=3 B=1 H=1 Nq=96 Nk=96 Bk=1 G=288 Bg=1 DH=64 DV=32 L=31 scale=- balanced=0 slot=- "
    "P=- "
    "topology=ring links=1 q_chunk=32 k_chunk=64 threads=0 family=coded region=select amount=0 "
    "poison=noise future=- stats=1 seed=1003 rows=8 row_seed=1 slow=0 set=- put=-",
    "ring v=1 R=1 B=1 H=1 Nq=32 Nk=32 Bk=1 G=32 Bg=1 DH=64 DV=32 L=32 scale=- balanced=0 slot=- "
    "P=- "
    "topology=ring links=1 q_chunk=32 k_chunk=32 threads=1 family=upstream region=normal amount=0 "
    "poison=noise future=- stats=1 seed=7 rows=8 row_seed=1 slow=0 set=- put=-"};

/* Judge the first n lines by a kernel, and store it under the name of an honest one. */
static void judge_as(const char *spec, const char *name, const char *commit, size_t n)
{
    static struct mla_kernel_list kernels;
    char error[1024];
    kernels.n = 0;
    assert_int_equal(mla_kernels_add(&kernels, spec, error, sizeof error), MLA_OK);
    open_store(db);
    begin(commit, "");
    for (size_t i = 0; i < n; i++) {
        struct mla_case test;
        struct mla_subject *subject;
        struct mla_verdict verdict;
        const struct mla_judge_options options = {.oracle_threads = 1, .output_hash = true};
        assert_int_equal(mla_case_parse(lines[i], strlen(lines[i]), &test, error), MLA_OK);
        assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
        mla_subject_judge(subject, kernels.list[0].kernel, &options, &verdict);
        OK(mla_record_store(store, &test, name, &verdict));
        mla_subject_free(subject);
    }
    close_store();
}

static int with_golden(const char *run, const char *update)
{
    if (update != NULL) /* everything that is stored */
        return compare("--golden", golden, "--set", set, update, db, NULL);
    return compare("--golden", golden, "--set", set, "--db", db, run);
}

static void write_set(void)
{
    FILE *file = fopen(set, "w");
    assert_non_null(file);
    fprintf(file, "%s\n%s\n", lines[0], lines[1]);
    fclose(file);
}

/* The fault moves in: both comparisons say so. A kernel that is only less exact: the golden file does. */
static void planted(void **state)
{
    (void)state;
    write_set();
    judge_as("scalar", "scalar", "aaaa1", 2);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_PASSED);
    expect("1 rows written, 1 in all");
    judge_as("scalar", "scalar", "bbbb1", 2);
    judge_as("fault:keys-past-end", "scalar", "cccc1", 2);
    judge_as("emulate-nki", "scalar", "dddd1", 2);
    assert_int_equal(runs("1", "2"), MLA_EXIT_PASSED);
    expect("\"same_bits\":2,");
    assert_int_equal(with_golden("2", NULL), MLA_EXIT_PASSED);
    expect("golden: 1 rows compared: 1 the same");
    expect_not("--update");
    assert_int_equal(runs("1", "3"), MLA_EXIT_FAULT);
    expect("REGRESSION ring/scalar case=e0719d6308b2 pass -> fail-certain");
    assert_int_equal(with_golden("3", NULL), MLA_EXIT_FAULT);
    expect("WORSE ring/scalar on few: passed 2 -> 1, failed 0 -> 1");
    expect("with --update writes the new figures");
    assert_int_equal(runs("1", "4"), MLA_EXIT_PASSED);
    expect("1 pass in both with other output bits"); /* the other case has one exact answer */
    assert_int_equal(with_golden("4", NULL), MLA_EXIT_FAULT);
    expect("WORSE ring/scalar on few: max_err_over_bound");
}

/* Better is no fault, and the way to keep it is said; half a set is no summary. */
static void better(void **state)
{
    (void)state;
    write_set();
    judge_as("emulate-nki", "scalar", "aaaa1", 2);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_PASSED);
    judge_as("scalar", "scalar", "bbbb1", 2);
    assert_int_equal(with_golden("2", NULL), MLA_EXIT_PASSED);
    expect("BETTER ring/scalar on few: max_err_over_bound");
    expect("with --update writes the new figures");
    judge_as("scalar", "scalar", "cccc1", 1);
    assert_int_equal(with_golden("3", NULL), MLA_EXIT_FAULT);
    expect("cases 2 -> 1");
    unlink(db);
    judge_as("scalar", "scalar", "cccc1", 1);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_USAGE);
    expect("ring/scalar was judged on 1 of 2 cases of few: all are needed");
    judge_as("scalar", "plain-f32", "cccc1", 2);
    assert_int_equal(with_golden("2", NULL), MLA_EXIT_FAULT);
    expect("MISSING ring/scalar on few");
    expect("NEW ring/plain-f32 on few");
}

/* Another set under the same name, and a kernel that this CPU cannot run. */
static void not_comparable(void **state)
{
    (void)state;
    write_set();
    judge_as("scalar", "scalar", "aaaa1", 2);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_PASSED);
    FILE *file = fopen(set, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", lines[1]);
    fclose(file);
    assert_int_equal(with_golden("1", NULL), MLA_EXIT_USAGE);
    expect("the set holds other cases now");
    write_set();
    open_store(db);
    begin("bbbb1", "");
    for (size_t i = 0; i < 2; i++) {
        struct mla_case test;
        char error[MLA_CASE_ERROR_MAX];
        struct mla_verdict verdict = {.kind = MLA_VERDICT_UNSUPPORTED, .relation = ""};
        snprintf(verdict.reason, sizeof verdict.reason, "%s", MLA_REASON_NOT_USABLE);
        assert_int_equal(mla_case_parse(lines[i], strlen(lines[i]), &test, error), MLA_OK);
        OK(mla_record_store(store, &test, "scalar", &verdict));
    }
    close_store();
    assert_int_equal(with_golden("2", NULL), MLA_EXIT_NOTHING);
    expect("skipped ring/scalar on few: the kernel is not usable on this CPU");
}

static int whole_with_golden(const char *flag)
{
    return compare("--golden", golden, "--set", set, db, flag, NULL);
}

/* A merged database: each machine is held against the file, if it judged the whole set or nobody did. */
static void golden_of_machines(void **state)
{
    (void)state;
    write_set();
    judge_as("scalar", "scalar", "aaaa1", 2);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_PASSED);
    isa = "sse2";
    judge_as("scalar", "scalar", "aaaa1", 1);
    assert_int_equal(whole_with_golden(NULL), MLA_EXIT_PASSED);
    expect("golden: 1 rows compared: 1 the same");
    judge_as("scalar", "scalar", "bbbb1", 2);
    assert_int_equal(whole_with_golden(NULL), MLA_EXIT_PASSED);
    expect("golden: 2 rows compared: 2 the same");
    assert_int_equal(whole_with_golden("--update"), MLA_EXIT_PASSED);
    judge_as("fault:keys-past-end", "scalar", "cccc1", 2);
    assert_int_equal(whole_with_golden("--update"), MLA_EXIT_USAGE);
    expect("ring/scalar differs between machines (avx2 and sse2: passed 2 -> 1, failed 0 -> 1");
    assert_int_equal(whole_with_golden(NULL), MLA_EXIT_FAULT);
    expect("WORSE ring/scalar on few for sse2: passed 2 -> 1, failed 0 -> 1");
    isa = "avx2";
}

/* Two runs of one commit that pass with other bits: the file's are kept by neither. */
static void golden_of_unsteady_bits(void **state)
{
    (void)state;
    write_set();
    judge_as("scalar", "scalar", "aaaa1", 2);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_PASSED);
    judge_as("plain-f32", "scalar", "aaaa1", 2);
    whole_with_golden(NULL); /* their errors may differ, too, and either way */
    expect("-> unsteady");
}

/* A kernel that is in the file and nowhere else was renamed or lost: it is missed by its name. */
static void golden_of_renamed(void **state)
{
    (void)state;
    write_set();
    judge_as("scalar", "old-name", "aaaa1", 2);
    assert_int_equal(compare("--golden", golden, "--set", set, "--kernel", "old-name", db),
                     MLA_EXIT_ENVIRONMENT); /* no file yet */
    const char *const update[] = {"--golden", golden, "--set", set};
    assert_int_equal(
        compare(update[0], update[1], update[2], update[3], "--update", "--kernel=old-name", db),
        MLA_EXIT_PASSED);
    unlink(db);
    judge_as("scalar", "scalar", "bbbb1", 2);
    assert_int_equal(whole_with_golden(NULL), MLA_EXIT_FAULT);
    expect("MISSING ring/old-name on few: kernel old-name is in the golden file but was not run");
    expect("NEW ring/scalar on few");
    expect("gone or renamed for good: delete its rows in");
    judge_as("scalar", "old-name", "cccc1", 2);
    assert_int_equal(whole_with_golden(NULL), MLA_EXIT_PASSED);
    expect("golden: 1 rows compared: 1 the same");
}

/* What a run did not reach because it was interrupted is not gone: the comparison says that it may be that. */
static void golden_of_a_run_cut_off(void **state)
{
    (void)state;
    write_set();
    judge_as("scalar", "scalar", "aaaa1", 2);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_PASSED);
    judge_as("scalar", "scalar", "bbbb1", 1);
    assert_int_equal(whole_with_golden("--json"), MLA_EXIT_PASSED);
    expect("B: 2 of its runs did not end");
    expect("\"runs_not_ended\":2}");
    assert_int_equal(with_golden("2", NULL), MLA_EXIT_FAULT);
    expect("B: 1 of its runs did not end");
    open_store(db);
    for (int64_t run = 1; run <= 2; run++) {
        OK(mla_store_join_run(store, run));
        OK(mla_store_end_run(store));
    }
    close_store();
    assert_int_equal(with_golden("2", NULL), MLA_EXIT_FAULT);
    expect("cases 2 -> 1");
    expect_not("did not end");
}

static void golden_of_a_set_twice(void **state)
{
    (void)state;
    write_set();
    judge_as("scalar", "scalar", "aaaa1", 2);
    assert_int_equal(compare("--golden", golden, "--set", set, "--set", set, db),
                     MLA_EXIT_ENVIRONMENT);
    assert_int_equal(with_golden("", "--update"), MLA_EXIT_PASSED);
    assert_int_equal(compare("--golden", golden, "--set", set, "--set", set, db), MLA_EXIT_USAGE);
    expect("there is one named few already, its cases would count twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(plugin_rebuilt, setup, teardown),
        cmocka_unit_test_setup_teardown(plugin_mended, setup, teardown),
        cmocka_unit_test_setup_teardown(each_move, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_of_new_cases, setup, teardown),
        cmocka_unit_test_setup_teardown(bits_and_worst, setup, teardown),
        cmocka_unit_test_setup_teardown(texts_are_tamed, setup, teardown),
        cmocka_unit_test_setup_teardown(many, setup, teardown),
        cmocka_unit_test_setup_teardown(builds_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(now_and_then, setup, teardown),
        cmocka_unit_test_setup_teardown(again_in_a_run, setup, teardown),
        cmocka_unit_test_setup_teardown(relations_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(shifts, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_words, setup, teardown),
        cmocka_unit_test_setup_teardown(planted, setup, teardown),
        cmocka_unit_test_setup_teardown(better, setup, teardown),
        cmocka_unit_test_setup_teardown(golden_of_machines, setup, teardown),
        cmocka_unit_test_setup_teardown(golden_of_unsteady_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(golden_of_renamed, setup, teardown),
        cmocka_unit_test_setup_teardown(golden_of_a_run_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(golden_of_a_set_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(not_comparable, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
