/* SPDX-License-Identifier: Apache-2.0
 *
 * peak.h - what a core can do: multiply-adds on registers alone, with the widest instruction it has.
 *
 * Machines are shared and drift, so a speed means something only beside the peak of the same moment.
 */
#ifndef MLA_MLACHECK_PEAK_H
#define MLA_MLACHECK_PEAK_H

#include <stdbool.h>
#include <stdint.h>

/* Rising. */
enum mla_peak_isa {
    MLA_PEAK_PORTABLE = 0, /* float32, four lanes, a product and a sum */
    MLA_PEAK_AVX2,         /* float32 FMA, ymm */
    MLA_PEAK_AVX512,       /* float32 FMA, zmm */
    MLA_PEAK_AVX512BF16,   /* vdpbf16ps, zmm: pairs of bf16 into float32 */
    MLA_PEAK_ISAS_N
};

/* "avx512bf16", .. */
const char *mla_peak_name(enum mla_peak_isa isa);
/* Compiled in, and this CPU and operating system have it. */
bool mla_peak_usable(enum mla_peak_isa isa);
enum mla_peak_isa mla_peak_widest(void);
/*
 * Flop/s (a multiply-add is two) of so many threads at once, of a usable set: some 10 ms. Negative
 * when threads could not be had.
 */
double mla_peak_measure(enum mla_peak_isa isa, int threads);

/*
 * The loops, each in a file with flags of its own: rounds times every accumulator, from and to
 * memory only at the ends. They return the flops of that, and leave a sum in *sink, or nobody would
 * have to compute it.
 */
typedef double mla_peak_loop(int64_t rounds, float *sink);
mla_peak_loop mla_peak_loop_portable, mla_peak_loop_avx2, mla_peak_loop_avx512,
    mla_peak_loop_avx512bf16;

#endif
