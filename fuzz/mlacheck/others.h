/* SPDX-License-Identifier: Apache-2.0
 *
 * others.h - how much of the processors everybody else takes.
 */
#ifndef MLA_MLACHECK_OTHERS_H
#define MLA_MLACHECK_OTHERS_H

#include <stdbool.h>

/*
 * Processor seconds that others have used since the machine began: other processes, the kernel's
 * interrupts, other machines on the same host. Only differences mean something. Negative where the
 * system does not tell.
 */
double mla_others_seconds(void);

/*
 * Did they use more of `wall` seconds than what threads of our own left them, by a tenth of those
 * threads' time and what the clock of seconds is coarse? Two values of mla_others_seconds.
 */
bool mla_others_disturb(double before, double after, double wall, int threads);

#endif
