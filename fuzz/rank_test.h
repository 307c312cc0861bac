/* SPDX-License-Identifier: Apache-2.0
 *
 * rank_test.h - are the numbers of one sample larger than those of another? Medians, and the test of
 * Mann and Whitney, which asks for nothing but the order of the numbers.
 */
#ifndef MLA_FUZZ_RANK_TEST_H
#define MLA_FUZZ_RANK_TEST_H

#include <stdbool.h>
#include <stddef.h>

#define MLA_RANK_TEST_MAX 64 /* numbers in a sample, at most */

struct mla_rank_test {
    double u;   /* pairs in which a's number is the larger one; equal ones count one half */
    double p;   /* two-sided: the chance of a u at least as far from its mean, if nothing differs */
    bool exact; /* no two numbers are equal: p from all orders; else from the normal curve */
};

/* +inf is a number like any other (what never came), NaN is none. 1 <= a_n, b_n <= 64. */
struct mla_rank_test mla_rank_test(const double *a, size_t a_n, const double *b, size_t b_n);
/* The mean of the middle two for an even n; n >= 1. Sorts the numbers. */
double mla_rank_median(double *numbers, size_t n);

#endif
