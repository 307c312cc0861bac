/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_test.c - the loops do the multiply-adds they say, and a crew works at once.
 */
#include "fuzz/mlacheck/crew.h"
#include "fuzz/mlacheck/peak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>
#include <pthread.h>

/*
 * The loops of float32 and bf16 start chain i at i and add 2^-10 for each multiply-add. What 1024
 * rounds leave, all exact in float32, so tells how many one lane of every chain made; times the
 * lanes, two flops each, that is what the loop must claim. (vdpbf16ps makes two in a lane.)
 */
static void expect_counts(enum mla_peak_isa isa, mla_peak_loop *loop, int chains, int lanes)
{
    float sink = 0;
    if (!mla_peak_usable(isa)) {
        printf("%s: not here, skipped\n", mla_peak_name(isa));
        return;
    }
    double claimed = loop(1024, &sink);
    double made = ((double)sink - chains * (chains - 1) / 2.0) * 0x1p10;
    assert_true(made > 0);
    assert_true(claimed == 2 * made * lanes);
}

static void test_counts(void **state)
{
    (void)state;
#if defined(MLA_PEAK_X86)
    expect_counts(MLA_PEAK_AVX2, mla_peak_loop_avx2, 12, 8);
    expect_counts(MLA_PEAK_AVX512, mla_peak_loop_avx512, 24, 16);
    expect_counts(MLA_PEAK_AVX512BF16, mla_peak_loop_avx512bf16, 24, 16);
#else
    (void)expect_counts;
#endif
}

/* x = x/2 + 1 from (i, 1, 2, 3), twelve chains: after n rounds x is 2 + (x0 - 2) * 2^-n. */
static void test_portable(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) {
        float sink = 0;
        double off = 0;
        for (int i = 0; i < 12; i++)
            off += (i - 2) + (1 - 2) + (2 - 2) + (3 - 2);
        assert_true(mla_peak_loop_portable(n, &sink) == 2.0 * 4 * 12 * n);
        assert_true((double)sink == 2.0 * 4 * 12 + off / (1 << n));
    }
}

static void test_sets(void **state)
{
    (void)state;
    assert_true(mla_peak_usable(MLA_PEAK_PORTABLE));
    assert_true(mla_peak_usable(mla_peak_widest()));
    for (int isa = 0; isa < MLA_PEAK_ISAS_N; isa++) {
        assert_non_null(mla_peak_name((enum mla_peak_isa)isa));
        if (isa > (int)mla_peak_widest())
            assert_false(mla_peak_usable((enum mla_peak_isa)isa));
        if (mla_peak_usable((enum mla_peak_isa)isa))
            for (int threads = 1; threads <= 3; threads++)
                assert_true(mla_peak_measure((enum mla_peak_isa)isa, threads) > 0);
    }
}

struct meeting {
    pthread_barrier_t all;
    int visits[5];
};

/* Returns only when all members are there: a crew that works one after the other hangs. */
static void meet(void *context, int number)
{
    struct meeting *meeting = context;
    meeting->visits[number]++;
    pthread_barrier_wait(&meeting->all);
}

static void test_crew(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) {
        struct meeting meeting = {.visits = {0}};
        assert_int_equal(pthread_barrier_init(&meeting.all, NULL, (unsigned)n), 0);
        assert_true(mla_crew_run(n, n % 2 == 0, meet, &meeting) > 0);
        for (int i = 0; i < 5; i++)
            assert_int_equal(meeting.visits[i], i < n);
        pthread_barrier_destroy(&meeting.all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_portable),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_crew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
