/* SPDX-License-Identifier: Apache-2.0
 *
 * store_bisect_test.c - searches and their steps: what goes in comes out, in order, once.
 */
#include "results/store_test_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

static char *folder;
static char path[256];
static struct mla_store *store;
static struct mla_store_case testcase;

static int setup(void **state)
{
    (void)state;
    folder = test_folder_make();
    (void)snprintf(path, sizeof path, "%s/x.db", folder);
    store = test_open(path);
    testcase = test_case(1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)mla_store_close(store);
    test_folder_remove(folder);
    return 0;
}

#define OK(call) assert_int_equal((call), MLA_STORE_OK)

static int64_t begin(const char *digit, const char *question)
{
    char key[65] = "";
    int64_t id = 0;
    while (strlen(key) < 64)
        strcat(key, digit);
    const struct mla_store_bisect bisect = {key,    &testcase,       "mine", question, "/here",
                                            "make", "build/mine.so", "c0",   "c9"};
    OK(mla_store_bisect_begin(store, &bisect, &id));
    return id;
}

static struct mla_store_step step_of(const char *commit, enum mla_store_outcome outcome)
{
    struct mla_store_step step = {.outcome = outcome, .tries = 3, .seconds = 1.5};
    (void)snprintf(step.commit, sizeof step.commit, "%s", commit);
    return step;
}

static char seen[1024];

static void see(void *context, const struct mla_store_step *step)
{
    size_t n = strlen(seen);
    ++*(int *)context;
    (void)snprintf(seen + n, sizeof seen - n, "%.64s %.40s %d %d/%d '%.23s' '%.80s' %g;",
                   step->commit, step->configuration, (int)step->outcome, (int)step->failed,
                   (int)step->tries, step->bits, step->text, step->seconds);
}

static const char *steps(int64_t id, int due)
{
    int n = 0;
    seen[0] = '\0';
    OK(mla_store_bisect_steps(store, id, see, &n));
    assert_int_equal(n, due);
    return seen;
}

static void test_steps_come_back(void **state)
{
    (void)state;
    int64_t id = begin("a", "fails");
    assert_string_equal(steps(id, 0), "");
    struct mla_store_step bad = step_of("c9", MLA_STORE_BAD), good = step_of("c0", MLA_STORE_GOOD);
    bad.failed = 3;
    (void)snprintf(bad.text, sizeof bad.text, "fail-certain");
    (void)snprintf(good.bits, sizeof good.bits, "00ff");
    OK(mla_store_bisect_step(store, id, &bad));
    OK(mla_store_bisect_step(store, id, &good));
    assert_string_equal(steps(id, 2), "c9  1 3/3 '' 'fail-certain' 1.5;c0  0 0/3 '00ff' '' 1.5;");
    bad.outcome = MLA_STORE_SKIP; /* another opinion replaces the first, in its place */
    bad.tries = 15;
    OK(mla_store_bisect_step(store, id, &bad));
    (void)snprintf(bad.configuration, sizeof bad.configuration, "threads=2");
    OK(mla_store_bisect_step(store, id, &bad)); /* another step */
    OK(mla_store_close(store));
    store = test_open(path);
    assert_string_equal(steps(id, 3), "c9  2 3/15 '' 'fail-certain' 1.5;"
                                      "c0  0 0/3 '00ff' '' 1.5;"
                                      "c9 threads=2 2 3/15 '' 'fail-certain' 1.5;");
}

static void test_a_search_is_found_again(void **state)
{
    (void)state;
    int64_t first = begin("a", "fails"), second = begin("b", "max_ulp>2");
    struct mla_store_step step = step_of("c1", MLA_STORE_GOOD);
    assert_int_not_equal(first, second);
    assert_int_equal(begin("a", "fails"), first);
    OK(mla_store_bisect_step(store, second, &step));
    (void)steps(first, 0);
    (void)steps(second, 1);
    OK(mla_store_bisect_end(store, second, "c1 c2"));
    assert_string_equal(test_text(path, "SELECT answer FROM bisect WHERE ended IS NOT NULL"),
                        "c1 c2");
    assert_string_equal(test_text(path, "SELECT metric || kernel || testcase FROM bisect_step"),
                        "max_ulp>2mine1");
}

static void test_what_is_refused(void **state)
{
    (void)state;
    int64_t id = begin("a", "fails");
    struct mla_store_step step = step_of("c1", MLA_STORE_BAD);
    assert_int_equal(mla_store_bisect_step(store, id + 1, &step), MLA_STORE_ERR_NOT_FOUND);
    step.failed = 4; /* of three */
    assert_int_equal(mla_store_bisect_step(store, id, &step), MLA_STORE_ERR_WRITE);
    const struct mla_store_bisect bad = {"short", &testcase, "k", "fails", "", "", "", "", ""};
    assert_int_equal(mla_store_bisect_begin(store, &bad, &id), MLA_STORE_ERR_WRITE);
    assert_int_equal(test_number(path, "SELECT count(*) FROM bisect_step"), 0);
    assert_int_equal(test_number(path, "SELECT count(*) FROM bisect"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_search_is_found_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
