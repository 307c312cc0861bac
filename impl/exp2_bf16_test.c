/* SPDX-License-Identifier: Apache-2.0
 *
 * exp2_bf16_test.c - every value the kernels' 2^x can take, against the true one.
 *
 * exp2_bf16.h shows that the relative error depends on r = x - k alone, and which r there are. All
 * are taken, by as many threads as there are processors. The reference is the C library's exp2 in
 * double, whose error is below an ulp; REFERENCE allows it four. The vectors of the AVX-512 step
 * are held against the definition bit by bit on the same values, where this CPU has them.
 */
#include "impl/cpu.h"
#include "impl/exp2_bf16.h"
#if defined(MLA_HAS_AVX512BF16)
#include "impl/avx512_probe.h"
#endif

#include <float.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define REFERENCE   0x1p-50
#define THREADS_MAX 64
#define LN2         0x1.62e42fefa39efp-1

/* 16 arguments at a time: negative floats by their bits, or multiples of 2^-24 by their number. */
#define BATCH      16
#define FIRST_BITS UINT32_C(0xb2000000) /* -2^-27 */
#define LAST_BITS  UINT32_C(0xbf000000) /* -1/2 */
#define UPPER_N    (UINT32_C(1) << 23)  /* multiples of 2^-24 in (0, 1/2] */
#define LOWER_N    (LAST_BITS - FIRST_BITS + 1)

struct part {
    uint32_t first; /* batch */
    uint32_t step;
    bool is_vector_checked;
    double worst;
    double worst_slope; /* of what exceeds 2^-23, per unit of |x ln 2|, over |x| <= 1/2 */
    uint32_t wrong_n;
    float wrong; /* an x that breaks a bound, or whose vector differs */
};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/*
 * Argument number i of all; beyond the last one the last again. For 0 < r < 1/2 x is r - 1, so k =
 * -1. To r = 1/2 only an odd multiple of 1/2 leads whose k, the even neighbour, is the lower one.
 */
static float argument(uint32_t i)
{
    if (i < LOWER_N) {
        return float_of(FIRST_BITS + i);
    }
    const uint32_t multiple = i - LOWER_N + 1;
    return multiple < UPPER_N ? (float)multiple * 0x1p-24f - 1.0f : -1.5f;
}

static void check(struct part *part, float x, float got)
{
    const double want = exp2((double)x);
    const double error = fabs((double)got - want) / want;
    const double slope = (error - 0x1p-23) / fabs((double)x * LN2);
    const bool is_right =
        error <= MLA_EXP2_BF16_ERROR - REFERENCE && slope <= MLA_EXP2_BF16_SLOPE - REFERENCE;
    part->worst = error > part->worst ? error : part->worst;
    part->worst_slope = slope > part->worst_slope ? slope : part->worst_slope;
    if (!is_right) {
        part->wrong_n++;
        part->wrong = x;
    }
}

static void check_vector(struct part *part, const float x[BATCH], const float want[BATCH])
{
#if defined(MLA_HAS_AVX512BF16)
    float got[BATCH];
    mla_probe_exp2(x, got);
    for (int i = 0; i < BATCH; i++) {
        if (bits_of(got[i]) != bits_of(want[i])) {
            part->wrong_n++;
            part->wrong = x[i];
        }
    }
#else
    (void)part;
    (void)x;
    (void)want;
#endif
}

static void *run_part(void *context)
{
    struct part *part = context;
    const uint32_t batches_n = (LOWER_N + UPPER_N) / BATCH + 1;
    for (uint32_t batch = part->first; batch < batches_n; batch += part->step) {
        float x[BATCH];
        float value[BATCH];
        for (uint32_t i = 0; i < BATCH; i++) {
            x[i] = argument(batch * BATCH + i);
            value[i] = mla_exp2_bf16(x[i]);
            check(part, x[i], value[i]);
        }
        if (part->is_vector_checked) {
            check_vector(part, x, value);
        }
    }
    return NULL;
}

static void test_all(void **state)
{
    static struct part parts[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t threads_n = processors < 1             ? 1
                               : processors > THREADS_MAX ? THREADS_MAX
                                                          : (uint32_t)processors;
    double worst = 0.0;
    double worst_slope = 0.0;
    (void)state;

    if (!mla_cpu_has_avx512bf16()) {
        print_message("no AVX512-BF16 here: its vectors are not compared\n");
    }
    for (uint32_t i = 0; i < threads_n; i++) {
        parts[i] = (struct part){
            .first = i, .step = threads_n, .is_vector_checked = mla_cpu_has_avx512bf16()};
        assert_int_equal(pthread_create(&threads[i], NULL, run_part, &parts[i]), 0);
    }
    for (uint32_t i = 0; i < threads_n; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint32_t i = 0; i < threads_n; i++) {
        if (parts[i].wrong_n > 0) {
            print_error("%u values break a bound or differ, one of them at %a\n", parts[i].wrong_n,
                        (double)parts[i].wrong);
            fail();
        }
        worst = fmax(worst, parts[i].worst);
        worst_slope = fmax(worst_slope, parts[i].worst_slope);
    }
    print_message("worst relative error %.4g, worst slope %.4g\n", worst, worst_slope);
    assert_true(worst > 0.99 * MLA_EXP2_BF16_ERROR); /* neither bound is loose */
    assert_true(worst_slope > 0.95 * MLA_EXP2_BF16_SLOPE);
}

/* That the error does not depend on k, and the steps from one k to the next. */
static void test_scaling(void **state)
{
    (void)state;
    for (int k = -126; k <= 0; k++) {
        for (int i = -4000; i <= 4000; i++) {
            const float r = (float)i * 0x1p-13f; /* exact beside any k */
            if (fabsf(r) > 0.5f || (float)k + r < -126.0f || (float)k + r > 0.0f) {
                continue;
            }
            const float x = (float)k + r;
            const float got = mla_exp2_bf16(x);
            const double want = exp2((double)x);
            assert_true(fabs((double)got - want) <= want * (MLA_EXP2_BF16_ERROR - REFERENCE));
            if (fabsf(r) < 0.5f) {
                assert_true(got ==
                            ldexpf(mla_exp2_bf16(r < 0.0f ? r : r - 1.0f), r < 0.0f ? k : k + 1));
            }
        }
    }
}

static void test_special(void **state)
{
    float x[BATCH] = {0.0f,
                      -0.0f,
                      -FLT_TRUE_MIN,
                      -0x1p-27f,
                      -0x1p-30f,
                      -126.0f,
                      nextafterf(-126.0f, -200.0f),
                      nextafterf(-126.0f, 0.0f),
                      -150.0f,
                      -FLT_MAX,
                      -INFINITY,
                      NAN,
                      -125.5f,
                      -0.5f,
                      -1.5f,
                      -1.0f};
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_true(mla_exp2_bf16(x[i]) == 1.0f);
    }
    assert_true(mla_exp2_bf16(x[5]) == FLT_MIN);
    assert_int_equal(bits_of(mla_exp2_bf16(x[6])), 0);
    assert_true(mla_exp2_bf16(x[7]) >= FLT_MIN);
    for (int i = 8; i <= 10; i++) {
        assert_int_equal(bits_of(mla_exp2_bf16(x[i])), 0);
    }
    assert_true(isnan(mla_exp2_bf16(x[11])));
    assert_true(mla_exp2_bf16(x[15]) == 0.5f);
#if defined(MLA_HAS_AVX512BF16)
    float got[BATCH];
    if (mla_cpu_has_avx512bf16()) {
        mla_probe_exp2(x, got);
        for (int i = 0; i < BATCH; i++) {
            const float want = mla_exp2_bf16(x[i]);
            assert_true(isnan(want) ? isnan(got[i]) : bits_of(want) == bits_of(got[i]));
        }
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_special),
    };
    return cmocka_run_group_tests_name("exp2_bf16", tests, NULL, NULL);
}
