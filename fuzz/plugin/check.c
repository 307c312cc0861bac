/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - are the descriptors of a plug-in well formed?
 *
 * What a compiler would have checked had the plug-in been built with this program. The ABI number
 * comes first: if it differs, no other field can be trusted to be where this program expects it.
 */
#include "fuzz/plugin/plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_MOST    63
#define KERNELS_MOST 1024

/* Length of a well-formed name, 0 otherwise. Reads no further than the first bad character. */
static size_t name_length(const char *name)
{
    size_t length = 0;
    while (length <= NAME_MOST && name[length] != '\0') {
        char c = name[length];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) {
            return 0;
        }
        length++;
    }
    return length <= NAME_MOST ? length : 0;
}

static bool is_taken(const struct mla_kernel *const *kernels, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(kernels[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Entry i, the ones before it being well formed. Writes a reason into `why` and returns false. */
static bool check_one(const struct mla_kernel *const *kernels, size_t i, char *why,
                      size_t why_bytes)
{
    const struct mla_kernel *kernel = kernels[i];
    if (!kernel) {
        snprintf(why, why_bytes, "kernel %zu is a null pointer", i);
    } else if (kernel->abi != MLA_KERNEL_ABI) {
        snprintf(why, why_bytes,
                 "kernel %zu was built for kernel ABI %" PRIu32 ", this program has ABI %" PRIu32,
                 i, kernel->abi, (uint32_t)MLA_KERNEL_ABI);
    } else if (kernel->struct_size != sizeof *kernel) {
        snprintf(why, why_bytes,
                 "kernel %zu has struct_size = %" PRIu32 ", this program has %zu (of ABI %" PRIu32
                 ")",
                 i, kernel->struct_size, sizeof *kernel, (uint32_t)MLA_KERNEL_ABI);
    } else if (!kernel->name) {
        snprintf(why, why_bytes, "kernel %zu has name = 0: a name is needed", i);
    } else if (name_length(kernel->name) == 0) {
        snprintf(why, why_bytes, "kernel %zu has name = '%.80s': 1 to %d characters of [a-z0-9-]",
                 i, kernel->name, NAME_MOST);
    } else if (is_taken(kernels, i, kernel->name)) {
        snprintf(why, why_bytes, "kernel %zu has name = '%s': used twice", i, kernel->name);
    } else if (kernel->promises & ~(uint64_t)MLA_PROMISE_ALL) {
        snprintf(why, why_bytes,
                 "kernel '%s' has promises = 0x%" PRIx64 ": unknown bits 0x%" PRIx64, kernel->name,
                 kernel->promises, kernel->promises & ~(uint64_t)MLA_PROMISE_ALL);
    } else if (!kernel->ring && !kernel->sparse) {
        snprintf(why, why_bytes, "kernel '%s' offers neither ring nor sparse", kernel->name);
    } else {
        return true;
    }
    return false;
}

int32_t mla_plugin_check(const struct mla_kernel *const *kernels, size_t kernels_n, char *message,
                         size_t message_bytes)
{
    char why[256] = "";
    if (kernels_n == 0) {
        snprintf(why, sizeof why, "it offers zero kernels");
    } else if (kernels_n > KERNELS_MOST) {
        snprintf(why, sizeof why, "it claims %zu kernels: at most %d", kernels_n, KERNELS_MOST);
    } else if (!kernels) {
        snprintf(why, sizeof why, "its array of %zu kernels is a null pointer", kernels_n);
    } else {
        size_t i = 0;
        while (i < kernels_n && check_one(kernels, i, why, sizeof why)) {
            i++;
        }
    }
    if (message && message_bytes > 0) {
        snprintf(message, message_bytes, "%s", why);
    }
    return why[0] == '\0' ? MLA_OK : MLA_ERR_PARAM;
}
