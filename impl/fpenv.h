/* SPDX-License-Identifier: Apache-2.0
 *
 * fpenv.h - the floating-point environment the kernels compute in.
 *
 * The arithmetic model means round to nearest, subnormals kept, nothing trapped. The caller may
 * have set something else (another rounding direction; on x86-64 flush-to-zero, which FE_DFL_ENV
 * clears as well), so every thread enters the default environment before it computes and leaves
 * with the one it came with, exception flags included.
 */
#ifndef MLA_IMPL_FPENV_H
#define MLA_IMPL_FPENV_H

#include <fenv.h>

static inline void mla_fpenv_enter(fenv_t *callers)
{
    fegetenv(callers);
    fesetenv(FE_DFL_ENV);
}

static inline void mla_fpenv_leave(const fenv_t *callers)
{
    fesetenv(callers);
}

#endif
