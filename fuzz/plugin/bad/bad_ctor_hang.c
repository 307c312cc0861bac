/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_ctor_hang.c - a plug-in that never finishes loading.
 */
#include <unistd.h>

__attribute__((constructor)) static void hang(void)
{
    for (;;) {
        pause();
    }
}
