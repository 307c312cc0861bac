/* SPDX-License-Identifier: Apache-2.0
 *
 * test_share.h - which planted faults a test takes in this build.
 */
#ifndef MLA_FUZZ_FAULTS_TEST_SHARE_H
#define MLA_FUZZ_FAULTS_TEST_SHARE_H

#include <stdlib.h>

#include "fuzz/call.h"
#include "fuzz/faults/faults.h"

/*
 * Is fault number k of the table taken? All are, but for two cases. The sanitizer of threads would end
 * the process at the first real race, which is what it is for, but leaves nothing to count. And what
 * MLA_TEST_EVERY says (n: every n-th fault) for builds that are ten times slower: sanitizers look at the
 * code that hunts and judges, which is the same for every row; whether each row dies is for other builds.
 */
static inline bool mla_test_takes_fault(const struct mla_fault *fault, size_t k)
{
    const char *text = getenv("MLA_TEST_EVERY");
    long every = text == NULL ? 1 : atol(text);
    return (every < 2 || k % (size_t)every == 0) && !(fault->race && MLA_THREADS_ARE_WATCHED);
}

#endif
