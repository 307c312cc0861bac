/* SPDX-License-Identifier: Apache-2.0
 *
 * fatal.h - a kernel called in this process that ends it by a signal: the in-flight note is to say so.
 */
#ifndef MLA_MLACHECK_FATAL_H
#define MLA_MLACHECK_FATAL_H

#include "results/store.h"

/*
 * From now on a fatal signal while a kernel runs in this process (mla_call_watch) is written into the store's
 * note, so that the next open takes it for the kernel's crash; then the signal does what it did before. Signals
 * outside of a kernel are not the kernel's. Once a process; the store must be open as long as kernels are called.
 */
void mla_fatal_watch(struct mla_store *store);

#endif
