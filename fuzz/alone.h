/* SPDX-License-Identifier: Apache-2.0
 *
 * alone.h - a target's case once more, in a process that has seen no other.
 *
 * A kernel may fail in a target because of calls that other cases made; then the case alone repeats
 * nothing. Forking does not help: the child would inherit what the kernel remembers.
 */
#ifndef MLA_FUZZ_ALONE_H
#define MLA_FUZZ_ALONE_H

#include "fuzz/case.h"

/* Set in the environment of such a process: "all" or "chosen" relations. It ends with the first
 * case, by the codes below. */
#define MLA_ALONE_VARIABLE "MLACHECK_ALONE"

enum mla_alone {
    MLA_ALONE_PASSES = 0,
    MLA_ALONE_FAILS = 1,  /* a verdict; any crash counts too */
    MLA_ALONE_UNKNOWN = 3 /* it could not be run, or was not ready in time: says nothing */
};

/*
 * Start this very program again on the case (a fuzz target or its plain replay) and wait at most that
 * long. It inherits the environment without our variables, except which kernel; it writes no file, and
 * ends if the calling thread does. UNKNOWN on systems other than Linux. Single-threaded callers only:
 * the environment is read.
 */
enum mla_alone mla_alone_run(const struct mla_case *test, bool all_relations, double seconds);

/*
 * How long one such run may take where an engine grants an input `limit` seconds (as text; NULL: no
 * such limit): min(2, limit/8). The two runs after a failure then take a quarter of what the engine
 * grants at most, and it does not mistake them for a hang of the kernel.
 */
double mla_alone_seconds(const char *limit);

#endif
