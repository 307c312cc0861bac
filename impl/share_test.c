/* SPDX-License-Identifier: Apache-2.0
 *
 * share_test.c - tiles are full while there is work for all, and smaller where threads would idle.
 */
#include "impl/share.h"

#include "impl/test_data.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* By hand: rounds of the threads, times rows + 8, for each halving; the least, the larger of two. */
static void test_rows(void **state)
{
    static const struct {
        int64_t sets_n, lines_n, rows_n, threads, want;
    } cases[] = {
        {300, 128, 128, 2, 128}, /* 150*136 against 300*72 */
        {1, 128, 128, 1, 128},   /* alone: 136, 144, 160, 192 */
        {7, 128, 128, 1, 128},   /* the same seven times */
        {1, 128, 128, 2, 64},    /* 136, 72, 2*40, 4*24 */
        {5, 128, 128, 2, 64},    /* 3*136, 5*72, 10*40, 20*24 */
        {11, 128, 128, 2, 64},   /* 6*136, 11*72 */
        {21, 128, 128, 2, 128},  /* 11*136, 21*72 */
        {1, 128, 128, 8, 16},    /* 136, 72, 40, 24 */
        {1, 128, 128, 256, 16},  /* never less */
        {3, 128, 128, 4, 32},    /* 136, 2*72, 3*40, 6*24 */
        {4, 96, 128, 4, 128},    /* 104: a tile is no longer than its set; 2*72, 3*40, 6*24 */
        {1, 16, 128, 4, 128},    /* one tile of 16 rows, however it is called */
        {2, 48, 32, 3, 16},      /* 2*40, 2*24 */
        {4, 64, 24, 9, 24},      /* half of it would be too little */
        {4, 64, 7, 9, 7},        /* a kernel that takes few rows gets them */
        {1, INT64_C(1) << 50, 128, 2, 128},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(
            mla_share_rows(cases[i].sets_n, cases[i].lines_n, cases[i].rows_n, cases[i].threads),
            cases[i].want);
        assert_true(mla_share_least(cases[i].rows_n) <= cases[i].want);
    }
}

static void test_tiles(void **state)
{
    (void)state;
    assert_int_equal(mla_share_tiles(1, 1, 128), 1);
    assert_int_equal(mla_share_tiles(3, 128, 128), 3);
    assert_int_equal(mla_share_tiles(3, 129, 128), 6);
    assert_int_equal(mla_share_least(128), 16);
    assert_int_equal(mla_share_least(48), 24);
    assert_int_equal(mla_share_least(31), 31);
    assert_int_equal(mla_share_least(1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_tiles),
    };
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
