/* SPDX-License-Identifier: Apache-2.0
 *
 * wide.c - what this machine can do.
 */
#include "oracle/wide.h"

static bool is_forbidden;

void mla_oracle_allow_wide(bool allowed)
{
    is_forbidden = !allowed;
}

bool mla_oracle_is_wide(void)
{
#if defined(__x86_64__)
    return !is_forbidden && __builtin_cpu_supports("avx512f") != 0 &&
           __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0;
#else
    return false;
#endif
}
