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
 *   MLACHECK_FAULTS  pass: faults are neither printed, stored nor fatal (to merge a corpus)
 *
 * and for measuring (scripts/measure-guidance):
 *   MLACHECK_GUIDANCE     on (default): the counters of guidance.h are features to the engine; off: it
 *                         has coverage only; random: inputs are ignored, every execution is a draw
 *   MLACHECK_SEED         of the random arm's stream (default 1)
 *   MLACHECK_CPU_SECONDS  processor seconds after which, or at the first fault, the process prints the
 *                         line of watch.h on stdout and ends with 0
 *   MLACHECK_COUNTERS     file to which the counters raised are written at exit, one number a line
 */
#ifndef MLA_FUZZ_TARGET_H
#define MLA_FUZZ_TARGET_H

#include "fuzz/case.h"

/* Run one input; returns 0, the value an engine expects. */
int mla_target_run(const uint8_t *data, size_t size, enum mla_op op, bool reject);

/*
 * Structure-aware mutation and crossover over case lines; return the new size. One mutation in sixteen
 * is the engine's own, on the bytes of the line: its change of a decimal number mostly leaves a line
 * that is a case, with a length no rule of ours would have chosen, and any other change decodes to a
 * fresh draw, which a search needs a share of. Everything else would be noise: bytes mean nothing here.
 */
size_t mla_target_mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed,
                         enum mla_op op, bool reject);
size_t mla_target_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                        uint8_t *out, size_t out_size, unsigned int seed, enum mla_op op,
                        bool reject);

/* Are case lines this target's inputs? */
extern const bool mla_target_reads_lines;
/* Is this case one of the target's own? */
bool mla_target_wants(const struct mla_case *test);

/* The engine's own mutator; where there is no engine a weak one stands in that changes nothing. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* The engine's entry points, defined by each target. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t out_size, unsigned int seed);

#endif
