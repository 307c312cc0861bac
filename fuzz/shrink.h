/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink.h - the smallest case on which a kernel still fails in the same way.
 *
 * Greedy: every step of a table (shrink_steps.h) is proposed again and again until none applies any
 * more. A proposal is accepted if it is legal, simpler, and its verdict is alike (likeness.h). All calls
 * of the kernel are made in forked children under a limit, so that crashes and hangs shrink as well.
 *
 * No luck: a proposal must fail alike in each of TRIES tries, 10 of them if the kernel did not fail in
 * every try on the case it began with. So a fault that comes and goes can only become steadier, and
 * may not shrink at all; the case it began with is never lost.
 */
#ifndef MLA_FUZZ_SHRINK_H
#define MLA_FUZZ_SHRINK_H

#include "fuzz/judge.h"

#define MLA_SHRINK_TRIES          3
#define MLA_SHRINK_TRIES_UNSTEADY 10

struct mla_shrink_options {
    double seconds;           /* in all; <= 0: no limit */
    double call_seconds;      /* of one kernel call; > 0 */
    int64_t judged_max;       /* verdicts in all; <= 0: no limit */
    int64_t bytes_max;        /* tensors of a case at most */
    int oracle_threads;       /* >= 1 */
    bool plain_oracle;        /* see mla_judge_options */
    bool relations;           /* false: the relations are not asked */
    const volatile int *stop; /* not NULL: end soon when it is not 0 */
    void (*progress)(void *context, const char *step, int64_t judged); /* may be NULL */
    void *context;
};

enum mla_shrink_end {
    MLA_SHRINK_MINIMAL = 0, /* no step of the table applies any more */
    MLA_SHRINK_OUT_OF_TIME, /* or of verdicts: the best so far */
    MLA_SHRINK_STOPPED,     /* by options.stop: the best so far */
    MLA_SHRINK_NO_FAILURE   /* the kernel did not fail on the case it began with */
};

struct mla_shrunk {
    enum mla_shrink_end end;
    struct mla_case test;       /* the smallest case found; without failure: the first */
    struct mla_verdict verdict; /* on it */
    struct mla_verdict first;   /* on the case it began with */
    int tries_n, failed_n;      /* how often that was judged, and failed like the first failure */
    int64_t judged;             /* verdicts in all */
    int64_t steps;              /* proposals accepted */
};

/*
 * Shrink a case without a problem. MLA_OK with *shrunk filled; MLA_ERR_NOMEM or MLA_ERR_PARAM with
 * error saying why the first case could not be judged. The result depends on nothing but the case, the
 * kernel's behaviour and the limits; shrinking a minimal result again changes nothing.
 */
int32_t mla_shrink(const struct mla_case *test, const struct mla_kernel *kernel,
                   const struct mla_shrink_options *options, struct mla_shrunk *shrunk,
                   char error[MLA_CASE_ERROR_MAX]);

#endif
