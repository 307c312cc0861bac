/* SPDX-License-Identifier: Apache-2.0
 *
 * crew.h - the same work on several threads at once, timed.
 */
#ifndef MLA_MLACHECK_CREW_H
#define MLA_MLACHECK_CREW_H

#include <stdbool.h>

#define MLA_CREW_MAX 256

/* One member's work, 0 .. members_n-1. */
typedef void mla_crew_work(void *context, int member);

/*
 * Run members_n (1 .. MLA_CREW_MAX) threads, let them begin together, wait for all. Seconds from the
 * first beginning to the last end; negative when the threads could not be had.
 *
 * with_caller: member 0 is the caller. Had it slept meanwhile, the threads that a kernel starts next
 * would share its processor for some milliseconds, all having been as busy. Not for code of
 * libraries, which may leave a thread in another state than they found it.
 */
double mla_crew_run(int members_n, bool with_caller, mla_crew_work *work, void *context);

#endif
