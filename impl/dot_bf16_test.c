/* SPDX-License-Identifier: Apache-2.0
 *
 * dot_bf16_test.c - what vdpbf16ps does, against two fmaf in the order claimed.
 *
 * bf16_step.h and the kernels that must match it rely on: the high halves' product is added first;
 * each of the two additions is rounded by itself, to nearest even; subnormal inputs count as zero
 * and subnormal results become zero; and none of this depends on MXCSR. Without AVX512-BF16 nothing
 * is tested, and that is said.
 */
#include "impl/bf16.h"
#include "impl/cpu.h"
#if defined(MLA_HAS_AVX512BF16)
#include "impl/avx512_probe.h"
#endif

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#if defined(MLA_HAS_AVX512BF16)

#define LANES MLA_PROBE_LANES

/* MXCSR: all exceptions masked, and rounding or flushing that must make no difference. */
static const unsigned modes[] = {0x1f80, 0x1f80 | 0x8040, 0x1f80 | 0x2000, 0x1f80 | 0x4000,
                                 0x1f80 | 0x6000};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static float flushed(float value)
{
    return fabsf(value) < FLT_MIN ? copysignf(0.0f, value) : value;
}

static float expected(float acc, uint32_t a, uint32_t b)
{
    const float a_high = flushed(mla_bf16_to_float((uint16_t)(a >> 16)));
    const float b_high = flushed(mla_bf16_to_float((uint16_t)(b >> 16)));
    const float a_low = flushed(mla_bf16_to_float((uint16_t)a));
    const float b_low = flushed(mla_bf16_to_float((uint16_t)b));
    const float half = flushed(fmaf(a_high, b_high, flushed(acc)));
    return flushed(fmaf(a_low, b_low, half));
}

/* A bfloat16 of random sign and significand; spread: how many exponents around `middle`. */
static uint16_t draw(uint64_t *state, unsigned middle, unsigned spread)
{
    const uint64_t r = next_random(state);
    const unsigned exponent = middle + (unsigned)(r >> 32) % spread - spread / 2;
    return (uint16_t)((r & 0x807fU) | (exponent << 7));
}

struct counts {
    long order;  /* cases the other order of the two products would answer differently */
    long once;   /* one rounding instead of two would */
    long halves; /* keeping a subnormal between the two would */
};

static void count(struct counts *counts, float want, float acc, uint32_t a, uint32_t b)
{
    const uint32_t a_swapped = a << 16 | a >> 16;
    const uint32_t b_swapped = b << 16 | b >> 16;
    const double exact =
        (double)mla_bf16_to_float((uint16_t)(a >> 16)) *
            (double)mla_bf16_to_float((uint16_t)(b >> 16)) +
        (double)mla_bf16_to_float((uint16_t)a) * (double)mla_bf16_to_float((uint16_t)b) +
        (double)acc;
    const float half =
        fmaf(mla_bf16_to_float((uint16_t)(a >> 16)), mla_bf16_to_float((uint16_t)(b >> 16)), acc);
    counts->order += expected(acc, a_swapped, b_swapped) != want;
    counts->once += (float)exact != want;
    counts->halves += half != flushed(half) && want != fmaf(mla_bf16_to_float((uint16_t)a),
                                                            mla_bf16_to_float((uint16_t)b), half);
}

/* Random operands of which the product's exponent is near the accumulator's. */
static void compare(unsigned middle, unsigned spread, struct counts *counts)
{
    uint64_t state = 20 + middle;
    for (int turn = 0; turn < 40000; turn++) {
        float acc[LANES];
        float out[LANES];
        uint32_t a[LANES];
        uint32_t b[LANES];
        for (int i = 0; i < LANES; i++) {
            a[i] = draw(&state, middle, spread) | (uint32_t)draw(&state, middle, spread) << 16;
            b[i] = draw(&state, middle, spread) | (uint32_t)draw(&state, middle, spread) << 16;
            const int power = 2 * ((int)middle - 127) + (int)(next_random(&state) % 12) - 6;
            acc[i] = ldexpf((float)(int32_t)next_random(&state), power - 31);
        }
        mla_probe_dot(modes[turn % 5], acc, a, b, out);
        for (int i = 0; i < LANES; i++) {
            const float want = expected(acc[i], a[i], b[i]);
            if (out[i] != want || signbit(out[i]) != signbit(want)) {
                print_error("%a + pairs %08x, %08x with MXCSR %x: %a, expected %a\n",
                            (double)acc[i], a[i], b[i], modes[turn % 5], (double)out[i],
                            (double)want);
                fail();
            }
            count(counts, want, acc[i], a[i], b[i]);
        }
    }
}

static void test_order_and_rounding(void **state)
{
    struct counts counts = {0};
    (void)state;
    if (!mla_cpu_has_avx512bf16()) {
        print_message("no AVX512-BF16 here: nothing tested\n");
        skip();
    }
    compare(127, 9, &counts);
    print_message("order tells in %ld cases, two roundings in %ld\n", counts.order, counts.once);
    assert_true(counts.order > 1000 && counts.once > 1000);
}

/* Products and sums around 2^-126, and operands that are subnormal themselves. */
static void test_flush(void **state)
{
    struct counts counts = {0};
    (void)state;
    if (!mla_cpu_has_avx512bf16()) {
        print_message("no AVX512-BF16 here: nothing tested\n");
        skip();
    }
    compare(64, 5, &counts);
    print_message("a subnormal between the two tells in %ld cases\n", counts.halves);
    assert_true(counts.halves > 1000);

    const uint32_t a[LANES] = {0x007f, 0x007f0000, 0x807f, 0x00010000, 0x3f80, 0};
    const uint32_t b[LANES] = {0x7e80, 0x7e800000, 0x7e80, 0x7f000000, 0x3f80, 0};
    const float acc[LANES] = {0, 0, 0, 1, 0x1p-127f, 0x1p-130f};
    float out[LANES];
    for (size_t mode = 0; mode < sizeof modes / sizeof modes[0]; mode++) {
        mla_probe_dot(modes[mode], acc, a, b, out);
        assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0 && out[3] == 1 && out[4] == 1);
        assert_true(out[5] == 0);
    }
}

#endif

int main(void)
{
#if defined(MLA_HAS_AVX512BF16)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_rounding),
        cmocka_unit_test(test_flush),
    };
    return cmocka_run_group_tests_name("dot_bf16", tests, NULL, NULL);
#else
    puts("dot_bf16_test: this compiler knows no AVX512-BF16, nothing tested");
    return 0;
#endif
}
