/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_rows_test.c - medians, spreads and ratios of given times; what others take.
 */
#include "fuzz/call.h"
#include "fuzz/mlacheck/bench.h"
#include "fuzz/mlacheck/others.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void test_median(void **state)
{
    (void)state;
    double odd[] = {5, 1, 4, 2, 3}, even[] = {8, 1, 2, 4}, one[] = {7};
    assert_true(mla_bench_median(odd, 5) == 3);
    assert_true(mla_bench_median(even, 4) == 3);
    assert_true(mla_bench_median(one, 1) == 7);
}

static void test_times(void **state)
{
    (void)state;
    struct mla_bench_row row = {.flops = 1};
    double times[] = {2, 8, 4, 3, 5};
    mla_bench_set_times(&row, times, 5);
    assert_true(row.seconds == 4);
    assert_true(row.spread == 1.5); /* (8 - 2) / 4 */
    assert_int_equal(row.reps, 5);
}

static void add(struct mla_bench *bench, const char *name, bool is_peer, int threads,
                double seconds)
{
    struct mla_bench_row *row = mla_bench_add_row(bench);
    assert_non_null(row);
    row->name = name;
    row->is_peer = is_peer;
    row->threads = threads;
    row->seconds = seconds;
}

/* A peer is compared with the fastest kernel of its own thread count; gains are of one's own first. */
static void test_relations(void **state)
{
    (void)state;
    struct mla_bench bench = {.rows_n = 0};
    add(&bench, "slow", false, 1, 1); /* of an earlier shape */
    add(&bench, "slow", false, 1, 8);
    add(&bench, "slow", false, 2, 4);
    add(&bench, "fast", false, 1, 2);
    add(&bench, "fast", false, 2, 5);
    add(&bench, "peer", true, 1, 6);
    add(&bench, "peer", true, 2, 3);
    mla_bench_relate(&bench, 1);
    const double gains[] = {1, 1, 2, 1, 0.4, 1, 2}, ratios[] = {0, 0, 0, 0, 0, 3, 0.75};
    for (int i = 1; i < 7; i++) {
        assert_true(bench.rows[i].times_first == gains[i]);
        assert_true(bench.rows[i].ratio == ratios[i]);
    }
    assert_string_equal(bench.rows[5].against, "fast");
    assert_string_equal(bench.rows[6].against, "slow");
    assert_null(bench.rows[2].against);
    free(bench.rows);
}

/* More rows than there is room for at first. */
static void test_growth(void **state)
{
    (void)state;
    struct mla_bench bench = {.rows_n = 0};
    for (int i = 0; i < 300; i++)
        add(&bench, "k", false, i + 1, 1);
    for (int i = 0; i < 300; i++)
        assert_int_equal(bench.rows[i].threads, i + 1);
    free(bench.rows);
}

/* What a child spends is others' time. */
static void test_others(void **state)
{
    (void)state;
    double before = mla_others_seconds();
    if (before < 0)
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    while (child == 0)
        if ((double)clock() / CLOCKS_PER_SEC > 0.5)
            _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(mla_others_seconds() - before > 0.4);
}

/* A tenth below the best of its own set and thread count. */
static void test_low_peaks(void **state)
{
    (void)state;
    static struct mla_bench bench;
    bench.best_peak[MLA_PEAK_AVX2][2] = 100;
    bench.best_peak[MLA_PEAK_AVX512][2] = 1000;
    assert_true(mla_bench_is_low(&bench, MLA_PEAK_AVX2, 2, 89));
    assert_false(mla_bench_is_low(&bench, MLA_PEAK_AVX2, 2, 91));
    assert_true(mla_bench_is_low(&bench, MLA_PEAK_AVX512, 2, 100));
    assert_false(mla_bench_is_low(&bench, MLA_PEAK_AVX2, 1, 1));
}

/* The best is remembered, of every set; of one thread and the run's set all are. */
static void test_peaks(void **state)
{
    (void)state;
    static struct mla_bench bench;
    bench.isa = MLA_PEAK_PORTABLE;
    double best = 0;
    for (int i = 0; i < 3; i++) {
        double peak = mla_bench_peak(&bench, MLA_PEAK_PORTABLE, 1 + i % 2);
        assert_true(peak > 0);
        best = i % 2 == 0 && peak > best ? peak : best;
    }
    assert_true(bench.best_peak[MLA_PEAK_PORTABLE][1] == best);
    assert_true(bench.best_peak[MLA_PEAK_PORTABLE][2] > 0);
    assert_int_equal(bench.peaks_n, 2);
    free(bench.peaks);
}

static void spin(void *context, int number)
{
    double end = mla_call_clock() + 0.3;
    (void)context;
    (void)number;
    while (mla_call_clock() < end)
        continue;
}

/* What we spend is not: with all processors full, theirs and ours together are no more than all. */
static void test_ours(void **state)
{
    (void)state;
    int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    double before = mla_others_seconds(), start = mla_call_clock(), ours = (double)clock();
    if (before < 0 || processors > MLA_CREW_MAX)
        skip();
    assert_true(mla_crew_run(processors, false, spin, NULL) > 0);
    ours = ((double)clock() - ours) / CLOCKS_PER_SEC;
    double theirs = mla_others_seconds() - before, wall = mla_call_clock() - start;
    assert_true(theirs + ours <= processors * (wall + 0.03)); /* accounts come in ticks of 0.01 s */
}

static void test_disturbance(void **state)
{
    (void)state;
    assert_false(mla_others_disturb(5, 5, 10, 256));
    assert_true(mla_others_disturb(5, 5 + 2000, 10, 256));
    assert_false(mla_others_disturb(-1, 2000, 10, 256));
    assert_false(mla_others_disturb(5, -1, 10, 256));
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int all = (int)processors;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK), coarse = tick * (double)processors;
    assert_false(mla_others_disturb(0, 0.99 * all + coarse, 10, all)); /* a tenth of ten seconds */
    assert_true(mla_others_disturb(0, 1.01 * all + coarse, 10, all));
    if (processors > 1) { /* a processor is left to others */
        assert_false(mla_others_disturb(0, 10 + 0.99 * (all - 1) + coarse, 10, all - 1));
        assert_true(mla_others_disturb(0, 10 + 1.01 * (all - 1) + coarse, 10, all - 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),      cmocka_unit_test(test_times),
        cmocka_unit_test(test_relations),   cmocka_unit_test(test_growth),
        cmocka_unit_test(test_others),      cmocka_unit_test(test_ours),
        cmocka_unit_test(test_disturbance), cmocka_unit_test(test_low_peaks),
        cmocka_unit_test(test_peaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
