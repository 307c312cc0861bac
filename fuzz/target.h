/* SPDX-License-Identifier: Apache-2.0
 *
 * target.h - what the fuzz targets share: bytes to case to verdict.
 *
 * Environment, all optional:
 *   MLACHECK_KERNEL  kernel to run (default scalar)
 *   MLACHECK_DB      database: verdicts are counted there, faults stored as findings, and the run
 *                    goes on; without it a fault is printed and aborts, as fuzz engines expect
 *   MLACHECK_RUN     id of the run in that database that this process belongs to
 *   MLACHECK_SINCE   ISO 8601 time: cases at which a process died since then are not run again
 */
#ifndef MLA_FUZZ_TARGET_H
#define MLA_FUZZ_TARGET_H

#include "fuzz/case.h"

/* Run one input; returns 0, the value an engine expects. */
int mla_target_run(const uint8_t *data, size_t size, enum mla_op op, bool reject);

/* Structure-aware mutation and crossover over case lines; return the new size. */
size_t mla_target_mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed,
                         enum mla_op op, bool reject);
size_t mla_target_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                        uint8_t *out, size_t out_size, unsigned int seed, enum mla_op op,
                        bool reject);

/* Is this case one of the target's own? */
bool mla_target_wants(const struct mla_case *test);

/* The engine's entry points, defined by each target. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t out_size, unsigned int seed);

#endif
