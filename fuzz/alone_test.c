/* SPDX-License-Identifier: Apache-2.0
 *
 * alone_test.c - running a case again: what its process is given, what is made of its end.
 *
 * This program is started again by what it tests; what it then does follows the case's seed.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/alone.h"

#define ENOUGH 60.0 /* seconds, for a process that ends by itself */
#define SIGN   100  /* a descriptor that is held open as long as the process lives */

enum act { PASS = 1, FAIL, GIVE_UP, CRASH, OTHER_EXIT, HANG, LOOK_CHOSEN, LOOK_ALL };

extern char **environ;

/* ---- the process that is started ---- */

static int ours_n(void)
{
    int n = 0;
    for (char **variable = environ; *variable != NULL; variable++)
        n += strncmp(*variable, "MLACHECK_", 9) == 0;
    return n;
}

/* The kernel and what is asked, and no other variable of ours. */
static int look(const char *asked)
{
    const char *kernel = getenv("MLACHECK_KERNEL");
    bool right = kernel != NULL && strcmp(kernel, "of the test") == 0 && ours_n() == 2 &&
                 strcmp(getenv(MLA_ALONE_VARIABLE), asked) == 0;
    return right ? MLA_ALONE_PASSES : MLA_ALONE_FAILS;
}

static int act(const char *path)
{
    char line[MLA_CASE_LINE_MAX], error[MLA_CASE_ERROR_MAX];
    struct mla_case test;
    FILE *file = fopen(path, "r");
    size_t n = file == NULL ? 0 : fread(line, 1, sizeof line, file);
    if (mla_case_parse(line, n, &test, error) != MLA_OK)
        return MLA_ALONE_UNKNOWN;
    switch (test.seed) {
    case PASS:
        return MLA_ALONE_PASSES;
    case FAIL:
        return MLA_ALONE_FAILS;
    case CRASH:
        (void)signal(SIGTERM, SIG_DFL);
        (void)raise(SIGTERM); /* any signal; this one leaves no core */
        break;
    case OTHER_EXIT:
        return 77;
    case HANG:
        (void)!write(SIGN, "!", 1);
        for (;;)
            pause();
    case LOOK_CHOSEN:
        return look("chosen");
    case LOOK_ALL:
        return look("all");
    default:
        break;
    }
    return MLA_ALONE_UNKNOWN;
}

/* ---- the tests ---- */

static enum mla_alone run(enum act act, bool all, double seconds)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.seed = act;
    return mla_alone_run(&test, all, seconds);
}

static void test_ends(void **state)
{
    (void)state;
    assert_int_equal(run(PASS, false, ENOUGH), MLA_ALONE_PASSES);
    assert_int_equal(run(FAIL, false, ENOUGH), MLA_ALONE_FAILS);
    assert_int_equal(run(CRASH, false, ENOUGH), MLA_ALONE_FAILS);
    assert_int_equal(run(OTHER_EXIT, false, ENOUGH), MLA_ALONE_FAILS);
    assert_int_equal(run(GIVE_UP, false, ENOUGH), MLA_ALONE_UNKNOWN);
}

/* Who is slow is not accused, and is gone. */
static void test_deadline(void **state)
{
    (void)state;
    assert_int_equal(run(HANG, false, 0.1), MLA_ALONE_UNKNOWN);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_environment(void **state)
{
    static const char *const others[] = {"DB",   "RUN",         "SINCE",    "LIMIT", "GUIDANCE",
                                         "SEED", "CPU_SECONDS", "COUNTERS", "FAULTS"};
    (void)state;
    setenv("MLACHECK_KERNEL", "of the test", 1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "MLACHECK_%s", others[i]);
        setenv(name, "random", 1);
    }
    assert_int_equal(run(LOOK_CHOSEN, false, ENOUGH), MLA_ALONE_PASSES);
    assert_int_equal(run(LOOK_CHOSEN, true, ENOUGH), MLA_ALONE_FAILS);
    assert_int_equal(run(LOOK_ALL, true, ENOUGH), MLA_ALONE_PASSES);
}

/* A worker that is killed meanwhile takes its process along: the sign is closed. */
static void test_dies_with_its_parent(void **state)
{
    int ends[2];
    char sign;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t worker = fork();
    if (worker == 0) {
        dup2(ends[1], SIGN);
        close(ends[1]);
        run(HANG, false, ENOUGH);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &sign, 1), 1); /* it runs */
    kill(worker, SIGKILL);
    assert_int_equal(waitpid(worker, NULL, 0), worker);
    struct pollfd closed = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&closed, 1, 20000), 1);
    assert_int_equal(read(ends[0], &sign, 1), 0);
    close(ends[0]);
}

/* Two runs and the judging itself, within what an engine grants. */
static void test_seconds(void **state)
{
    (void)state;
    assert_true(mla_alone_seconds(NULL) == 2);
    assert_true(mla_alone_seconds("30") == 2);
    assert_true(mla_alone_seconds("10") == 1.25);
    assert_true(mla_alone_seconds("1") == 0.125);
    assert_true(mla_alone_seconds("?") == 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seconds),     cmocka_unit_test(test_ends),
        cmocka_unit_test(test_deadline),    cmocka_unit_test(test_dies_with_its_parent),
        cmocka_unit_test(test_environment),
    };
    if (argc > 1 && getenv(MLA_ALONE_VARIABLE) != NULL)
        return act(argv[1]);
#ifndef __linux__
    return 0; /* nothing is run again there */
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
