/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_ctor_crash.c - a plug-in that crashes while it is loaded.
 */
#include <stdint.h>

static volatile uintptr_t nowhere = 64; /* volatile: the compiler must not see through it */

__attribute__((constructor)) static void crash(void)
{
    *(volatile int *)nowhere = 1;
}
