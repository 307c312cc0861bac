/* SPDX-License-Identifier: Apache-2.0
 *
 * guard_test.c - guarded memory traps or notices every access outside a tensor.
 */
#include <inttypes.h>
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

#include "fuzz/guard.h"

/* Does writing to data[offset] kill a child? */
static bool traps(const struct mla_guard *guard, long offset)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(STDERR_FILENO);     /* a sanitizer's report is expected here */
        (void)signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
        (void)signal(SIGBUS, SIG_DFL);
        volatile unsigned char *at = guard->data + offset;
        *at = 1;
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void test_places(void **state)
{
    struct mla_guard guard;
    (void)state;
    assert_true(mla_guard_make(&guard, 4096 * 3, 2, MLA_GUARD_END));
    assert_true(traps(&guard, 4096 * 3));
    assert_false(traps(&guard, 4096 * 3 - 1));
    mla_guard_free(&guard);
    assert_true(mla_guard_make(&guard, 100, 2, MLA_GUARD_START));
    assert_int_equal((uintptr_t)guard.data % 4096, 0);
    assert_true(traps(&guard, -1));
    mla_guard_free(&guard);
    assert_true(mla_guard_make(&guard, 4096, 2, MLA_GUARD_ODD));
    assert_int_equal((uintptr_t)guard.data % 4, 2);
    assert_true(traps(&guard, 4096 + 2));
    mla_guard_free(&guard);
}

/* Is a change of that one byte noticed, with its offset? */
static void expect_noticed(struct mla_guard *guard, int64_t at)
{
    int64_t offset = 0;
    unsigned char old = guard->data[at];
    guard->data[at] = 0;
    assert_false(mla_guard_intact(guard, &offset));
    assert_int_equal(offset, at);
    guard->data[at] = old;
    assert_true(mla_guard_intact(guard, &offset));
}

/* On either side alone, the nearest and the farthest byte; beyond them is the page. */
static void test_damage_is_noticed(void **state)
{
    struct mla_guard guard;
    int64_t offset = 0;
    (void)state;
    assert_true(mla_guard_make(&guard, 100, 4, MLA_GUARD_ODD));
    memset(guard.data, 0, guard.bytes);
    assert_true(mla_guard_intact(&guard, &offset));
    expect_noticed(&guard, 100);
    expect_noticed(&guard, 103);
    assert_true(traps(&guard, 104));
    expect_noticed(&guard, -1);
    expect_noticed(&guard, -(4096 - 104));
    assert_true(traps(&guard, -(4096 - 104) - 1));
    mla_guard_free(&guard);
    assert_true(mla_guard_make(&guard, 100, 2, MLA_GUARD_END));
    expect_noticed(&guard, -1);
    expect_noticed(&guard, -(4096 - 100));
    assert_true(traps(&guard, -(4096 - 100) - 1));
    mla_guard_free(&guard);
    assert_true(mla_guard_make(&guard, 100, 2, MLA_GUARD_START));
    expect_noticed(&guard, 100);
    expect_noticed(&guard, 4095);
    assert_true(traps(&guard, 4096));
    mla_guard_free(&guard);
    assert_null(guard.map);
}

/* Of damage on both sides the one before is told. */
static void test_damage_on_both_sides(void **state)
{
    struct mla_guard guard;
    int64_t offset = 0;
    (void)state;
    assert_true(mla_guard_make(&guard, 100, 4, MLA_GUARD_ODD));
    guard.data[100] = 0;
    guard.data[-3] = 0;
    assert_false(mla_guard_intact(&guard, &offset));
    assert_int_equal(offset, -3);
    mla_guard_free(&guard);
}

static void test_too_large(void **state)
{
    struct mla_guard guard;
    (void)state;
    assert_false(mla_guard_make(&guard, (size_t)1 << 62, 2, MLA_GUARD_END));
    assert_null(guard.map);
}

/* Memory is used again, patterned anew and found whole, whatever the last tensor left there. */
static void test_memory_is_used_again(void **state)
{
    struct mla_guard guard;
    int64_t offset = 0;
    (void)state;
    assert_true(mla_guard_make(&guard, 5000, 2, MLA_GUARD_START));
    void *map = guard.map;
    memset(guard.data, 0, 2 * 4096); /* with what lies behind it */
    assert_false(mla_guard_intact(&guard, &offset));
    mla_guard_free(&guard);
    assert_true(mla_guard_make(&guard, 5000, 2, MLA_GUARD_END));
    assert_ptr_equal(guard.map, map);
    assert_true(mla_guard_intact(&guard, &offset));
    assert_true(traps(&guard, 5000));
    assert_true(traps(&guard, -(2 * 4096 - 5000) - 1));
    struct mla_guard other; /* never lent to two at a time */
    assert_true(mla_guard_make(&other, 5000, 2, MLA_GUARD_END));
    assert_ptr_not_equal(other.map, map);
    mla_guard_free(&other);
    mla_guard_free(&guard);
}

/* A pointer that a kernel keeps points to nothing after a while. */
static void test_memory_is_given_back(void **state)
{
    struct mla_guard guard, first;
    (void)state;
    assert_true(mla_guard_make(&first, 9000, 2, MLA_GUARD_END));
    guard = first;
    for (int i = 1; i < MLA_GUARD_USES_MAX; i++) {
        mla_guard_free(&guard);
        assert_true(mla_guard_make(&guard, 9000, 2, MLA_GUARD_END));
        assert_ptr_equal(guard.data, first.data);
    }
    assert_false(traps(&first, 0));
    mla_guard_free(&guard);
    assert_true(traps(&first, 0));
}

/* Large sizes share mappings by steps: every byte between the pages is still looked after. */
static void test_slack_is_patterned(void **state)
{
    struct mla_guard guard;
    int64_t offset = 0;
    (void)state;
    for (int place = 0; place < MLA_GUARD_PLACES_N; place++) {
        size_t bytes = 70 * 4096 + 2; /* 72 pages */
        assert_true(mla_guard_make(&guard, bytes, 2, (enum mla_guard_place)place));
        memset(guard.data, 0, bytes);
        assert_true(mla_guard_intact(&guard, &offset));
        unsigned char *first = (unsigned char *)guard.map + 4096;
        unsigned char *last = (unsigned char *)guard.map + guard.map_bytes - 4096 - 1;
        assert_int_equal(last + 1 - first, 72 * 4096);
        if (first < guard.data)
            expect_noticed(&guard, first - guard.data);
        if (last >= guard.data + bytes)
            expect_noticed(&guard, last - guard.data);
        assert_true(traps(&guard, first - guard.data - 1));
        assert_true(traps(&guard, last - guard.data + 1));
        mla_guard_free(&guard);
    }
}

/* Bytes of this process's address space. */
static int64_t address_space(void)
{
    int64_t pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%" SCNd64, &pages), 1);
    fclose(statm);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Memory for timing: aligned, whole, and given back. (Not: it traps afterwards. Whoever maps next,
 * be it a sanitizer, may get the same place.) */
static void test_plain(void **state)
{
    const int64_t large = 64 << 20;
    struct mla_guard guard;
    (void)state;
    assert_true(mla_guard_make_plain(&guard, 3000001));
    assert_int_equal((uintptr_t)guard.data % (2 << 20), 0);
    assert_int_equal(guard.bytes, 3000001);
    memset(guard.data, 1, guard.bytes);
    assert_false(traps(&guard, 0));
    assert_false(traps(&guard, 3000000));
    mla_guard_free(&guard);
    const int64_t before = address_space();
    for (int i = 0; i < 64; i++) {
        assert_true(mla_guard_make_plain(&guard, (size_t)large));
        mla_guard_free(&guard);
    }
    assert_true(address_space() - before < 8 * large);
    assert_false(mla_guard_make_plain(&guard, SIZE_MAX / 2));
    assert_null(guard.map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_damage_is_noticed),
        cmocka_unit_test(test_damage_on_both_sides),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_memory_is_used_again),
        cmocka_unit_test(test_memory_is_given_back),
        cmocka_unit_test(test_slack_is_patterned),
        cmocka_unit_test(test_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
