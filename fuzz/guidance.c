/* SPDX-License-Identifier: Apache-2.0
 *
 * guidance.c - features of an execution.
 */
#include "fuzz/guidance.h"

void mla_guidance_note(const struct mla_case *test, const struct mla_verdict *verdict,
                       uint8_t counters[MLA_GUIDANCE_COUNTERS])
{
    (void)test;
    (void)verdict;
    (void)counters;
}
