/* SPDX-License-Identifier: Apache-2.0
 *
 * choice.h - one rounding, made by somebody who may choose its direction and size.
 *
 * Values are carried in double. A rounding of relative size u turns the exact x into x(1 + u*t) with
 * a chosen |t| <= 1 - 10^-6; the millionth pays for the double arithmetic around it (2^-53 against
 * 10^-6 * 2^-24). Below the normal range the freedom is absolute: one spacing of the subnormals,
 * or, where subnormals are flushed, zero.
 */
#ifndef MLA_ADVERSARY_CHOICE_H
#define MLA_ADVERSARY_CHOICE_H

#include <math.h>
#include <stdbool.h>

#include "fuzz/number.h"

#define MLA_CHOICE_MOST   (1.0 - 1e-6)
#define MLA_CHOICE_NORMAL 0x1p-126 /* smallest normal binary32 and bf16 */

struct mla_choice {
    struct mla_rng rng;
    bool is_greedy; /* goes the way it is asked to; otherwise anywhere */
    bool flushes;
};

/* A share of the allowed rounding, in [-1, 1]: all of it towards dir, or at random; often an end. */
static inline double mla_choice_share(struct mla_choice *choice, double dir)
{
    if (choice->is_greedy)
        return dir * MLA_CHOICE_MOST;
    uint64_t bits = mla_rng_next(&choice->rng);
    if ((bits & 3) == 0)
        return (bits & 4) != 0 ? MLA_CHOICE_MOST : -MLA_CHOICE_MOST;
    return (2.0 * mla_number_unit(bits) - 1.0) * MLA_CHOICE_MOST;
}

/* Yes or no: yes if it takes a number in the direction dir, or at random. */
static inline bool mla_choice_yes(struct mla_choice *choice, double gain)
{
    return choice->is_greedy ? gain > 0.0 : (mla_rng_next(&choice->rng) >> 63) != 0;
}

/* A result below the normal range. u = 0: an exact operation, which can only be flushed. */
static inline double mla_choice_subnormal(struct mla_choice *choice, double x, double u, double dir)
{
    if (choice->flushes)
        return mla_choice_yes(choice, -x * dir) ? 0.0 : x;
    return u > 0.0 ? x + mla_choice_share(choice, dir) * fmax(0x1p-149, 0x1p-126 * u) : x;
}

/* x after a rounding of relative size u, pushed towards dir (+1 up, -1 down). Zero stays zero. */
static inline double mla_choice_round(struct mla_choice *choice, double x, double u, double dir)
{
    if (x == 0.0)
        return x;
    if (fabs(x) < MLA_CHOICE_NORMAL)
        return mla_choice_subnormal(choice, x, u, dir);
    return u > 0.0 ? x + fabs(x) * u * mla_choice_share(choice, dir) : x;
}

/* An input element: may count as zero where it is subnormal and subnormals are flushed. */
static inline double mla_choice_input(struct mla_choice *choice, double x, double dir)
{
    return choice->flushes && x != 0.0 && fabs(x) < MLA_CHOICE_NORMAL
               ? mla_choice_subnormal(choice, x, 0.0, dir)
               : x;
}

#endif
