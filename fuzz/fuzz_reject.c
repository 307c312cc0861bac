/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_reject.c - fuzz target. Property: a call that breaks one rule or two, of either operation,
 * is refused with the status of the first broken rule, a message naming its parameter and value,
 * and not one byte written.
 */
#include "fuzz/target.h"

const bool mla_target_reads_lines = true;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return mla_target_run(data, size, MLA_OP_RING, true);
}

bool mla_target_wants(const struct mla_case *test)
{
    return test->set_n > 0 && !test->slow;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    return mla_target_mutate(data, size, max_size, seed, MLA_OP_RING, true);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t out_size, unsigned int seed)
{
    return mla_target_cross(a, a_size, b, b_size, out, out_size, seed, MLA_OP_RING, true);
}
