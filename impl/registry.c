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

static const char *const left_out[] = {
#if !defined(MLA_HAS_AVX2)
    "avx2",
#endif
#if !defined(MLA_HAS_AVX512BF16)
    "avx512bf16",
#endif
    NULL,
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

bool mla_registry_is_left_out(const char *name)
{
    for (const char *const *other = left_out; *other != NULL; other++) {
        if (strcmp(*other, name) == 0) {
            return true;
        }
    }
    return false;
}
