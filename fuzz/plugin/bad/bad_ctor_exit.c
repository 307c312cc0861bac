/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_ctor_exit.c - a plug-in that ends the process that loads it.
 */
#include <unistd.h>

__attribute__((constructor)) static void leave(void)
{
    _exit(3);
}
