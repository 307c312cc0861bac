/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mode.h - floating-point modes a caller may be in, none of which may show in a result.
 *
 * Directed roundings everywhere; flush-to-zero and denormals-are-zero where the machine is an
 * x86-64, whose mode register is read back as a whole, exception flags included.
 */
#ifndef MLA_IMPL_TEST_MODE_H
#define MLA_IMPL_TEST_MODE_H

#include <fenv.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TEST_MODES_N 3
#else
#define TEST_MODES_N 2
#endif

/* 0: upward, 1: downward, 2: subnormals flushed. Flags are cleared. */
static inline void test_mode_set(int mode)
{
    fesetenv(FE_DFL_ENV);
    if (mode < 2) {
        fesetround(mode == 0 ? FE_UPWARD : FE_DOWNWARD);
        return;
    }
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040U);
#endif
}

static inline void test_mode_reset(void)
{
    fesetenv(FE_DFL_ENV);
}

/* Everything a mode consists of, as one number. */
static inline uint32_t test_mode_get(void)
{
#if defined(__x86_64__)
    return (uint32_t)fegetround() << 16 | _mm_getcsr();
#else
    return (uint32_t)fegetround() << 16 | (uint32_t)fetestexcept(FE_ALL_EXCEPT);
#endif
}

#endif
