/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c - CPUID and XCR0 on x86-64.
 *
 * A feature counts only if the system also saves the registers it uses (XCR0): without that, the
 * instructions trap although CPUID lists them.
 */
#include "impl/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdint.h>

/* Leaf 1, ecx; leaf 7, ebx; leaf 7.1, eax */
#define FMA         (1U << 12)
#define OSXSAVE     (1U << 27)
#define AVX2        (1U << 5)
#define AVX512F     (1U << 16)
#define AVX512DQ    (1U << 17)
#define AVX512BW    (1U << 30)
#define AVX512VL    (1U << 31)
#define AVX512_BF16 (1U << 5)

/* XCR0: xmm and ymm; and masks, upper halves of zmm 0-15, zmm 16-31 */
#define STATE_YMM 0x06U
#define STATE_ZMM 0xe6U

struct features {
    unsigned leaf1_ecx;
    unsigned leaf7_ebx;
    unsigned leaf7_1_eax;
    unsigned states;
};

static bool has_all(unsigned bits, unsigned wanted)
{
    return (bits & wanted) == wanted;
}

static struct features read_features(void)
{
    struct features found = {0};
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) {
        return found;
    }
    found.leaf1_ecx = ecx;
    if (has_all(ecx, OSXSAVE)) {
        __asm__("xgetbv" : "=a"(found.states), "=d"(edx) : "c"(0));
    }
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
        found.leaf7_ebx = ebx;
        if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
            found.leaf7_1_eax = eax;
        }
    }
    return found;
}

bool mla_cpu_has_avx2(void)
{
    const struct features found = read_features();
    return has_all(found.leaf1_ecx, FMA) && has_all(found.leaf7_ebx, AVX2) &&
           has_all(found.states, STATE_YMM);
}

bool mla_cpu_has_avx512bf16(void)
{
    const struct features found = read_features();
    return has_all(found.leaf1_ecx, FMA) &&
           has_all(found.leaf7_ebx, AVX2 | AVX512F | AVX512DQ | AVX512BW | AVX512VL) &&
           has_all(found.leaf7_1_eax, AVX512_BF16) && has_all(found.states, STATE_ZMM);
}

#else

bool mla_cpu_has_avx2(void)
{
    return false;
}

bool mla_cpu_has_avx512bf16(void)
{
    return false;
}

#endif
