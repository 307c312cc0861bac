/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_kernels.c - the kernels that are made for speed, and with which instructions.
 *
 * They are what `bench` times unless told otherwise. Those that imitate other systems' arithmetic
 * are not made to be fast, and only timed when named.
 */
#include <string.h>

#include "fuzz/mlacheck/bench.h"

static const struct {
    const char *name;
    enum mla_peak_isa isa;
} known[] = {
    {"avx512bf16", MLA_PEAK_AVX512BF16},
    {"avx2", MLA_PEAK_AVX2},
    {"scalar", MLA_PEAK_PORTABLE},
};
#define KNOWN_N (sizeof known / sizeof known[0])

bool mla_bench_kernel_isa(const char *name, enum mla_peak_isa *isa)
{
    for (size_t i = 0; i < KNOWN_N; i++)
        if (strcmp(known[i].name, name) == 0) {
            *isa = known[i].isa;
            return true;
        }
    return false;
}

const char *mla_bench_kernel_default(size_t i)
{
    return i < KNOWN_N ? known[i].name : NULL;
}
