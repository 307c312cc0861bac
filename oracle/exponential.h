/* SPDX-License-Identifier: Apache-2.0
 *
 * exponential.h - e^-t to 96 bits, with a proved error, some twenty times faster than mpfr_exp at
 * 113 bits.
 */
#ifndef MLA_ORACLE_EXPONENTIAL_H
#define MLA_ORACLE_EXPONENTIAL_H

#include <stdbool.h>

/* Arguments are integers in units of 2^-118. */
#define MLA_ORACLE_EXP_SHIFT 118

/* Beyond this argument the result is 0: e^-416 < 2^-600. */
#define MLA_ORACLE_EXP_MAX 416

/* head + tail; head has at most 45 significant bits, so its product with a bf16 is exact. */
struct mla_oracle_exp {
    double head;
    double tail;
};

/*
 * e^-(t 2^-118) for 0 <= t: relative error below MLA_ORACLE_EXP_ERROR for an argument that is itself
 * too small by less than 2^-118, exactly 1 for t = 0, and 0 for t >= 416 * 2^118. The tables must
 * have been made. Thread-safe.
 */
#define MLA_ORACLE_EXP_ERROR 0x1p-96
struct mla_oracle_exp mla_oracle_exp(unsigned __int128 t);

/* Make the tables, once a process. Thread-safe. */
void mla_oracle_exp_prepare(void);

#endif
