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
    MLA_ALONE_FAILS = 1, /* a verdict; any crash counts too */
    MLA_ALONE_UNKNOWN = 3
};

/*
 * Start this very program again on the case (a fuzz target or its plain replay; Linux only) and wait
 * at most that long; a hang is a failure. Single-threaded callers only: the environment is read.
 */
enum mla_alone mla_alone_run(const struct mla_case *test, bool all_relations, double seconds);

#endif
