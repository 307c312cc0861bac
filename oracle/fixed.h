/* SPDX-License-Identifier: Apache-2.0
 *
 * fixed.h - exact scores: integers in units of 2^-266, wide enough for any sum of bf16 products.
 *
 * A finite bf16 is a multiple of 2^-133 below 2^128, so a product is a multiple of 2^-266 below
 * 2^256, and a sum of up to 2^53 of them stays below 2^309. MLA_ORACLE_FIXED_LIMBS words of two's
 * complement hold 576 bits: sign, 309 bits before the point and 266 after it. Sums, differences and
 * comparisons of scores are exact whatever the inputs.
 */
#ifndef MLA_ORACLE_FIXED_H
#define MLA_ORACLE_FIXED_H

#include <mpfr.h>
#include <stdbool.h>
#include <stdint.h>

#define MLA_ORACLE_FIXED_LIMBS 9
#define MLA_ORACLE_FIXED_UNIT  (-266) /* the lowest bit counts 2^-266 */

struct mla_oracle_fixed {
    uint64_t limb[MLA_ORACLE_FIXED_LIMBS]; /* lowest first */
};

/* x += y, for a double y that is a multiple of 2^-266 below 2^309. */
void mla_oracle_fixed_add(struct mla_oracle_fixed *x, double y);

/* x = sum over i of bins[i] 2^(i-266), i < bins_n <= 512, |bins[i]| < 2^62. */
void mla_oracle_fixed_from_bins(struct mla_oracle_fixed *x, const int64_t *bins, int bins_n);

/* a > b */
bool mla_oracle_fixed_greater(const struct mla_oracle_fixed *a, const struct mla_oracle_fixed *b);

/* a - b */
struct mla_oracle_fixed mla_oracle_fixed_minus(const struct mla_oracle_fixed *a,
                                               const struct mla_oracle_fixed *b);

/* |x| as a double, rounded up: at most 1 + 2^-52 times too large, exact for 0. */
double mla_oracle_fixed_abs_up(const struct mla_oracle_fixed *x);

/*
 * floor(x * scale * 2^shift) of an x >= 0, for 0 <= shift <= 200 and a positive binary32 scale;
 * UINT128 all ones (saturated) where it does not fit 128 bits.
 */
unsigned __int128 mla_oracle_fixed_scaled(const struct mla_oracle_fixed *x, double scale,
                                          int shift);

/* to = x, exactly (the precision of to is set). */
void mla_oracle_fixed_get(mpfr_t to, const struct mla_oracle_fixed *x);

#endif
