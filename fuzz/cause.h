/* SPDX-License-Identifier: Apache-2.0
 *
 * cause.h - what can be wrong with a kernel's results, in the words a verdict is explained in.
 *
 * Planted faults say which cause is theirs; blame says which it found. Kept in a header of its own so
 * that neither needs the other.
 */
#ifndef MLA_FUZZ_CAUSE_H
#define MLA_FUZZ_CAUSE_H

enum mla_cause {
    MLA_CAUSE_UNKNOWN = 0,
    MLA_CAUSE_KEYS_MISSING, /* visible keys take no part */
    MLA_CAUSE_KEYS_EXTRA, /* keys that must not be seen take part: future, beyond the end, other slot,
                                 dropped, or memory that is no key at all */
    MLA_CAUSE_KEYS_TWICE,     /* visible keys count more often than they are listed, or less */
    MLA_CAUSE_KEYS_ELSEWHERE, /* keys are read from another place than their own */
    MLA_CAUSE_ROWS_MOVED,     /* rows are right, but another row's: rank, head, batch or offset */
    MLA_CAUSE_COLUMNS_MOVED,  /* columns are right, in another order */
    MLA_CAUSE_WEIGHTS_OFF, /* the right keys with wrong weights: score, scale, maximum, rescale */
    MLA_CAUSE_VALUES_OFF,  /* right weights, wrong sum of values */
    MLA_CAUSE_STATS_OFF,   /* the output is right, its statistics are not */
    MLA_CAUSE_PRECISION,   /* every step is right, but rounded more coarsely than declared */
    MLA_CAUSE_NOT_FINITE,  /* NaN or Inf where there is a number */
    MLA_CAUSE_NOT_WRITTEN, /* outputs keep their old bytes */
    MLA_CAUSE_UNSTEADY, /* the same call gives different results: a race, or state of another call */
    MLA_CAUSE_MEMORY,   /* memory read or written outside what is allowed; a crash, a hang */
    MLA_CAUSE_STATUS,   /* the call's answer is wrong: refused, accepted, or its message */
    MLA_CAUSES_N
};

/* "keys-missing", ... */
const char *mla_cause_name(enum mla_cause cause);

#endif
