/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c - the table of built-in kernels. A new kernel is one line here and one file.
 */
#include "impl/registry.h"

#include "impl/kernels.h"

#include <string.h>

static const struct mla_kernel *const kernels[] = {
    &mla_kernel_ttnn,       &mla_kernel_nki, &mla_kernel_plain, &mla_kernel_scalar,
#if defined(MLA_HAS_AVX2)
    &mla_kernel_avx2,
#endif
#if defined(MLA_HAS_AVX512BF16)
    &mla_kernel_avx512bf16,
#endif
};

const struct mla_kernel *const *mla_registry_kernels(size_t *n)
{
    *n = sizeof kernels / sizeof kernels[0];
    return kernels;
}

const struct mla_kernel *mla_registry_find(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i]->name, name) == 0) {
            return kernels[i];
        }
    }
    return NULL;
}
