/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kernels.h - the built-in kernels this CPU can run, for tests that run them all.
 */
#ifndef MLA_IMPL_TEST_KERNELS_H
#define MLA_IMPL_TEST_KERNELS_H

#include "impl/registry.h"

#include <stdio.h>

/* Says which ones are left out. */
static inline const struct mla_kernel *const *test_kernels(size_t *n)
{
    static const struct mla_kernel *usable[64];
    size_t all_n;
    const struct mla_kernel *const *all = mla_registry_kernels(&all_n);
    *n = 0;
    for (size_t i = 0; i < all_n && *n < sizeof usable / sizeof usable[0]; i++) {
        if (all[i]->usable == NULL || all[i]->usable()) {
            usable[(*n)++] = all[i];
        } else {
            printf("not usable on this CPU, left out: %s\n", all[i]->name);
        }
    }
    return usable;
}

#endif
