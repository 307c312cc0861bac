/* SPDX-License-Identifier: Apache-2.0
 *
 * process.h - does the process that wrote a note still live?
 *
 * A pid alone does not tell: it is used again later. The time at which the process started, as the
 * kernel counts it, makes the pair unique while the machine is up.
 */
#ifndef MLA_RESULTS_PROCESS_H
#define MLA_RESULTS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Start of a process in clock ticks since boot; 0 when it cannot be told. */
uint64_t mla_process_start(int64_t pid);
/* False when there is no such process, or it started at another time (0: any). A zombie is alive while its
 * parent may still ask how it ended. */
bool mla_process_alive(int64_t pid, uint64_t start);

#endif
