/* SPDX-License-Identifier: Apache-2.0
 *
 * crew.h - the same work on several threads at once, timed.
 */
#ifndef MLA_MLACHECK_CREW_H
#define MLA_MLACHECK_CREW_H

#define MLA_CREW_MAX 256

/* One member's work, 0 .. members_n-1. */
typedef void mla_crew_work(void *context, int member);

/*
 * Run members_n (1 .. MLA_CREW_MAX) threads, the caller among them as member 0; let them begin
 * together, wait for all. Seconds from the first beginning to the last end; negative when the
 * threads could not be had.
 */
double mla_crew_run(int members_n, mla_crew_work *work, void *context);

#endif
