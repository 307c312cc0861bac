/* SPDX-License-Identifier: Apache-2.0
 *
 * wide.h - the oracle's innermost loops once more, for machines with wider vector units.
 *
 * Such a loop is written once, as an MLA_ORACLE_INNER function, and called from two functions: a
 * plain one and an MLA_ORACLE_WIDE one, in which the compiler may use AVX-512. What happens to an
 * element, and in which order, is the same in both, and no multiplication is contracted with an
 * addition (-ffp-contract=off), so the bits are the same too; attention_test compares them.
 */
#ifndef MLA_ORACLE_WIDE_H
#define MLA_ORACLE_WIDE_H

#include <stdbool.h>

#define MLA_ORACLE_INNER static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define MLA_ORACLE_WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define MLA_ORACLE_WIDE
#endif

/* May MLA_ORACLE_WIDE functions be called here? */
bool mla_oracle_is_wide(void);

/* For tests: false keeps to the plain functions, in the whole process. */
void mla_oracle_allow_wide(bool allowed);

#endif
