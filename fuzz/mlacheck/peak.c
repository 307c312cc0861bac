/* SPDX-License-Identifier: Apache-2.0
 *
 * peak.c - which loop this CPU can run, how long, and the portable one.
 */
#include "fuzz/mlacheck/peak.h"

#include <stddef.h>
#include <unistd.h>

#include "fuzz/call.h"
#include "fuzz/mlacheck/crew.h"

#define SECONDS 0.01 /* of one measurement: long beside a clock tick, short beside a call */

/*
 * Twelve chains of x = x*0.5 + 1, which tend to 2: more chains than a sum and a product wait for
 * each other, and no more than fit into 16 registers with the two constants.
 */
#define CHAINS 12
typedef float lanes __attribute__((vector_size(16)));

double mla_peak_loop_portable(int64_t rounds, float *sink)
{
    volatile float half_value = 0.5f, one_value = 1;
    float h = half_value, o = one_value;
    lanes half = {h, h, h, h}, one = {o, o, o, o}, x[CHAINS], sum = {0, 0, 0, 0};
    for (int i = 0; i < CHAINS; i++)
        x[i] = (lanes){(float)i, 1, 2, 3};
    for (int64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            x[i] = x[i] * half + one;
    }
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    *sink = sum[0] + sum[1] + sum[2] + sum[3];
    return 2.0 * 4 * CHAINS * (double)rounds;
}

/* The operating system's part (it must save the wide registers) is asked for by the compiler's
 * run-time, which reads XCR0. */
#if defined(MLA_PEAK_X86)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") != 0;
}

static bool has_avx512bf16(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
}
#endif

static bool always(void)
{
    return true;
}

static const struct set {
    const char *name;
    mla_peak_loop *loop; /* NULL: not compiled in */
    bool (*usable)(void);
} sets[MLA_PEAK_ISAS_N] = {
    [MLA_PEAK_PORTABLE] = {"portable", mla_peak_loop_portable, always},
#if defined(MLA_PEAK_X86)
    [MLA_PEAK_AVX2] = {"avx2", mla_peak_loop_avx2, has_avx2},
    [MLA_PEAK_AVX512] = {"avx512", mla_peak_loop_avx512, has_avx512},
    [MLA_PEAK_AVX512BF16] = {"avx512bf16", mla_peak_loop_avx512bf16, has_avx512bf16},
#else
    [MLA_PEAK_AVX2] = {"avx2", NULL, always},
    [MLA_PEAK_AVX512] = {"avx512", NULL, always},
    [MLA_PEAK_AVX512BF16] = {"avx512bf16", NULL, always},
#endif
};

const char *mla_peak_name(enum mla_peak_isa isa)
{
    return sets[isa].name;
}

bool mla_peak_usable(enum mla_peak_isa isa)
{
    return sets[isa].loop != NULL && sets[isa].usable();
}

enum mla_peak_isa mla_peak_widest(void)
{
    int isa = MLA_PEAK_ISAS_N - 1;
    while (!mla_peak_usable((enum mla_peak_isa)isa))
        isa--;
    return (enum mla_peak_isa)isa;
}

struct work {
    mla_peak_loop *loop;
    int64_t rounds;
    double flops[MLA_CREW_MAX];
};

static void member(void *context, int number)
{
    struct work *work = context;
    float sink;
    work->flops[number] = work->loop(work->rounds, &sink);
    *(volatile float *)&sink = sink;
}

/* How many rounds take SECONDS on one core; found once for each set. */
static int64_t rounds_of(enum mla_peak_isa isa)
{
    static int64_t known[MLA_PEAK_ISAS_N];
    struct work work = {.loop = sets[isa].loop, .rounds = 1 << 10};
    while (known[isa] == 0) {
        double start = mla_call_clock();
        member(&work, 0);
        double seconds = mla_call_clock() - start;
        if (seconds >= SECONDS / 4)
            known[isa] = (int64_t)((double)work.rounds * SECONDS / seconds);
        work.rounds *= 2;
    }
    return known[isa];
}

double mla_peak_measure(enum mla_peak_isa isa, int threads)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct work work = {.loop = sets[isa].loop, .rounds = rounds_of(isa)};
    if (threads > processors && processors > 0) /* they take turns, and have no longer together */
        work.rounds = work.rounds * processors / threads + 1;
    double seconds = mla_crew_run(threads, true, member, &work), flops = 0;
    for (int i = 0; i < threads; i++)
        flops += work.flops[i];
    return seconds > 0 ? flops / seconds : -1;
}
