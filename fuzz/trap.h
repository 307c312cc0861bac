/* SPDX-License-Identifier: Apache-2.0
 *
 * trap.h - inputs that cannot be written while a kernel runs.
 *
 * Comparing inputs afterwards misses who writes the numbers that were there, which spoils the call of
 * another thread all the same.
 */
#ifndef MLA_FUZZ_TRAP_H
#define MLA_FUZZ_TRAP_H

#include "fuzz/tensors.h"

/*
 * For a process that was forked to make one call: make the inputs of that call read-only in it. The
 * first write to one is remembered, then allowed, so that the call goes on and all else that is wrong
 * with it is seen too. Takes the signal SIGSEGV; any other cause of it ends the process as ever.
 * Tensors in memory without guards are left alone, as is all where the right cannot be taken.
 */
void mla_trap_set(const struct mla_tensors *tensors);

/* The place in the list of tensors of the first input that was written since, or -1. */
int mla_trap_written(void);

#endif
