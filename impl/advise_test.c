/* SPDX-License-Identifier: Apache-2.0
 *
 * advise_test.c - what is recommended for huge pages, as the kernel itself tells it.
 *
 * On Linux /proc/self/smaps lists the flag "hg" for ranges with that advice. Where there is no such
 * list, or the kernel has no huge pages, only what must never happen is tested: changed bytes, a
 * changed errno.
 */
#include "impl/advise.h"

#include "impl/test_data.h"

#include <stdbool.h>
#include <stdio.h>

#define REGION ((size_t)16 << 20)

/* Does the mapping that holds `at` carry the advice? -1: nobody says. */
static int is_advised(const void *at)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[1000];
    bool is_inside = false;
    int advised = -1;
    while (maps != NULL && advised < 0 && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from;
        unsigned long to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            is_inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        } else if (is_inside && strncmp(line, "VmFlags:", 8) == 0) {
            advised = strstr(line, " hg") != NULL;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return advised;
}

static unsigned char *map(void)
{
    unsigned char *region =
        mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(region != MAP_FAILED);
    return region;
}

static bool can_be_asked(void)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    unsigned char *region = map();
    const int answer = madvise(region, REGION, MADV_HUGEPAGE);
    const bool can = answer == 0 && is_advised(region) == 1;
    munmap(region, REGION);
    return can;
#else
    return false;
#endif
}

static void test_large(void **state)
{
    const long page = sysconf(_SC_PAGESIZE);
    unsigned char *region = map();
    const size_t n = REGION - 2 * (size_t)page;
    (void)state;
    memset(region, 0x5a, REGION);
    errno = EXDEV;
    mla_advise_huge(region + 100,
                    (int64_t)n); /* from inside the first page into the last but one */
    assert_int_equal(errno, EXDEV);
    for (size_t i = 0; i < REGION; i += 997) {
        assert_int_equal(region[i], 0x5a);
    }
    if (can_be_asked()) {
        assert_int_equal(is_advised(region), 0);
        assert_int_equal(is_advised(region + page), 1);
        assert_int_equal(is_advised(region + REGION / 2), 1);
        assert_int_equal(is_advised(region + REGION - 2 * page - 1), 1);
        assert_int_equal(is_advised(region + REGION - 2 * page), 0);
    } else {
        print_message("no advice to be seen here: only bytes and errno were compared\n");
    }
    munmap(region, REGION);
}

/* Less than 4 MiB is left alone; an address nothing is mapped at does no harm. */
static void test_small_or_nothing(void **state)
{
    unsigned char *region = map();
    (void)state;
    mla_advise_huge(region, (4 << 20) - 1);
    assert_true(is_advised(region) <= 0);
    munmap(region, REGION);
    errno = 0;
    mla_advise_huge(region, (int64_t)REGION);
    assert_int_equal(errno, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_small_or_nothing),
    };
    return cmocka_run_group_tests_name("advise", tests, NULL, NULL);
}
