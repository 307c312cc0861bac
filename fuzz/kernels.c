/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.c - from names, globs and paths to kernel descriptors.
 */
#include "fuzz/kernels.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/adversary/adversary.h"
#include "fuzz/faults/faults.h"
#include "fuzz/plugin/plugin.h"
#include "impl/registry.h"
#include "oracle/oracle.h"

#define FAULT_PREFIX     "fault:"
#define ADVERSARY_PREFIX "adversary:"
#define RESULT_PREFIX    "file:" /* of outputs that `mlacheck judge` was given */

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

const char *mla_kernels_name(const char *spec)
{
    const char *slash = strrchr(spec, '/'); /* names of kernels hold none */
    return slash == NULL || begins(spec, RESULT_PREFIX) ? spec : slash + 1;
}

/* Another kernel that results could not tell from this one; NULL: there is none. */
static const struct mla_kernel_choice *namesake(const struct mla_kernel_list *kernels,
                                                const struct mla_kernel_choice *choice)
{
    for (size_t i = 0; i < kernels->n; i++) {
        const struct mla_kernel_choice *other = &kernels->list[i];
        if (other->kernel != choice->kernel &&
            strcmp(mla_kernels_name(other->spec), mla_kernels_name(choice->spec)) == 0)
            return other;
    }
    return NULL;
}

static int32_t add(struct mla_kernel_list *kernels, const struct mla_kernel *kernel,
                   const char *prefix, char *error, size_t error_bytes)
{
    const char *wrong = NULL;
    struct mla_kernel_choice *choice = &kernels->list[kernels->n];
    if (kernels->n == MLA_KERNELS_MAX) {
        snprintf(error, error_bytes, "more than %d kernels", MLA_KERNELS_MAX);
        return MLA_ERR_PARAM;
    }
    if (kernel->ring != NULL)
        wrong = mla_bound_model_error(&kernel->ring_model, true);
    if (wrong == NULL && kernel->sparse != NULL)
        wrong = mla_bound_model_error(&kernel->sparse_model, false);
    if (wrong != NULL) {
        snprintf(error, error_bytes, "kernel %s declares an impossible arithmetic model: %s",
                 kernel->name, wrong);
        return MLA_ERR_PARAM;
    }
    if ((size_t)snprintf(choice->spec, sizeof choice->spec, "%s%s", prefix, kernel->name) >=
        sizeof choice->spec) {
        snprintf(error, error_bytes, "kernel = '%s%s': must be shorter than %zu bytes", prefix,
                 kernel->name, sizeof choice->spec);
        return MLA_ERR_PARAM;
    }
    choice->kernel = kernel;
    const struct mla_kernel_choice *other = namesake(kernels, choice);
    if (other != NULL) {
        snprintf(
            error, error_bytes,
            "kernel = '%s': results would call it '%s', as '%s': rename a file, or judge them in "
            "two runs",
            choice->spec, mla_kernels_name(choice->spec), other->spec);
        return MLA_ERR_PARAM;
    }
    kernels->n++;
    return MLA_OK;
}

static int32_t add_matching(struct mla_kernel_list *kernels, const char *glob, const char *prefix,
                            const struct mla_kernel *kernel, char *error, size_t error_bytes)
{
    if (fnmatch(glob, kernel->name, 0) != 0)
        return MLA_OK;
    return add(kernels, kernel, prefix, error, error_bytes);
}

/* " a b c", as far as there is room. */
static void append_name(char *text, size_t bytes, const char *name)
{
    size_t n = strlen(text);
    snprintf(text + n, bytes - n, " %s", name);
}

static int32_t add_builtin(struct mla_kernel_list *kernels, const char *glob, char *error,
                           size_t error_bytes)
{
    size_t all_n, before = kernels->n;
    const struct mla_kernel *const *all = mla_registry_kernels(&all_n);
    for (size_t i = 0; i < all_n; i++)
        if (add_matching(kernels, glob, "", all[i], error, error_bytes) != MLA_OK)
            return MLA_ERR_PARAM;
    if (kernels->n > before)
        return MLA_OK;
    snprintf(error, error_bytes, "kernel = '%.100s': no such kernel; there are:", glob);
    for (size_t i = 0; i < all_n; i++)
        append_name(error, error_bytes, all[i]->name);
    append_name(error, error_bytes, "(and fault:NAME, adversary:NAME, PATH.so)");
    return MLA_ERR_PARAM;
}

static int32_t add_faults(struct mla_kernel_list *kernels, const char *glob, char *error,
                          size_t error_bytes)
{
    size_t n[3], before = kernels->n;
    const struct mla_fault *tables[3] = {mla_faults(&n[0]), mla_fault_controls(&n[1]),
                                         mla_fault_canaries(&n[2])};
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < n[t]; i++)
            if (add_matching(kernels, glob, FAULT_PREFIX, tables[t][i].kernel, error,
                             error_bytes) != MLA_OK)
                return MLA_ERR_PARAM;
    if (kernels->n > before)
        return MLA_OK;
    snprintf(error, error_bytes, "kernel = 'fault:%.100s': no such kernel; there are:", glob);
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < n[t]; i++)
            append_name(error, error_bytes, tables[t][i].name);
    return MLA_ERR_PARAM;
}

static int32_t add_adversaries(struct mla_kernel_list *kernels, const char *glob, char *error,
                               size_t error_bytes)
{
    size_t n[2], before = kernels->n;
    const struct mla_adversary *const *tables[2] = {mla_adversaries(&n[0]),
                                                    mla_adversary_cheats(&n[1])};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < n[t]; i++)
            if (add_matching(kernels, glob, ADVERSARY_PREFIX, &tables[t][i]->kernel, error,
                             error_bytes) != MLA_OK)
                return MLA_ERR_PARAM;
    if (kernels->n > before)
        return MLA_OK;
    snprintf(error, error_bytes, "kernel = 'adversary:%.100s': no such kernel; there are:", glob);
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < n[t]; i++)
            append_name(error, error_bytes, tables[t][i]->kernel.name);
    return MLA_ERR_PARAM;
}

/* A path may hold ".so:" too, a name no slash. */
size_t mla_kernels_plugin(const char *spec)
{
    size_t n = strlen(spec);
    const char *cut = NULL;
    for (const char *at = strstr(spec, ".so:"); at != NULL; at = strstr(at + 1, ".so:"))
        cut = at;
    if (cut != NULL && strchr(cut, '/') == NULL)
        return (size_t)(cut - spec) + 3;
    return n > 3 && strcmp(spec + n - 3, ".so") == 0 ? n : 0;
}

bool mla_kernels_is_path(const char *spec)
{
    bool prefixed = begins(spec, FAULT_PREFIX) || begins(spec, ADVERSARY_PREFIX);
    return !prefixed && (strchr(spec, '/') != NULL || mla_kernels_plugin(spec) > 0);
}

/* Must a plug-in of this path, a ':' after it, not have its name? */
static bool is_reserved(const char *prefix)
{
    static const char *const taken[] = {FAULT_PREFIX, ADVERSARY_PREFIX, RESULT_PREFIX};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (begins(prefix, taken[i]) || begins(mla_kernels_name(prefix), taken[i]))
            return true;
    return false;
}

static int32_t add_plugin(struct mla_kernel_list *kernels, const char *spec, char *error,
                          size_t error_bytes)
{
    char path[MLA_KERNELS_PATH_MAX], prefix[MLA_KERNELS_PATH_MAX + 2];
    const struct mla_kernel *const *loaded;
    size_t loaded_n, n = mla_kernels_plugin(spec), before = kernels->n;
    n = n == 0 ? strlen(spec) : n;
    const char *name = spec[n] == ':' ? spec + n + 1 : "*";
    if (n >= sizeof path) {
        snprintf(error, error_bytes,
                 "kernel = '%.60s...': a plug-in's path must be shorter than "
                 "%zu bytes",
                 spec, sizeof path);
        return MLA_ERR_PARAM;
    }
    snprintf(path, sizeof path, "%.*s", (int)n, spec);
    snprintf(prefix, sizeof prefix, "%s:", path);
    if (is_reserved(prefix)) {
        snprintf(
            error, error_bytes,
            "kernel = '%s': a plug-in's path must not begin with, nor its file be called, fault:, "
            "adversary: or file:",
            spec);
        return MLA_ERR_PARAM;
    }
    int32_t status = mla_plugin_load(path, &loaded, &loaded_n, error, error_bytes);
    if (status != MLA_OK)
        return status;
    for (size_t i = 0; i < loaded_n; i++)
        if (add_matching(kernels, name, prefix, loaded[i], error, error_bytes) != MLA_OK)
            return MLA_ERR_PARAM;
    if (kernels->n > before)
        return MLA_OK;
    snprintf(error, error_bytes, "kernel = '%s': the plug-in %s has no kernel '%s'", spec, path,
             name);
    return MLA_ERR_PARAM;
}

int32_t mla_kernels_add(struct mla_kernel_list *kernels, const char *spec, char *error,
                        size_t error_bytes)
{
    if (begins(spec, FAULT_PREFIX))
        return add_faults(kernels, spec + strlen(FAULT_PREFIX), error, error_bytes);
    if (begins(spec, ADVERSARY_PREFIX))
        return add_adversaries(kernels, spec + strlen(ADVERSARY_PREFIX), error, error_bytes);
    if (mla_kernels_is_path(spec))
        return add_plugin(kernels, spec, error, error_bytes);
    return add_builtin(kernels, spec, error, error_bytes);
}

bool mla_kernel_is_usable(const struct mla_kernel *kernel)
{
    return kernel->usable == NULL || kernel->usable();
}

const char *mla_promise_name(int i)
{
    static const char *const names[] = {"REFUSES",      "INDEX_CHECKED",  "PAD_ZERO",
                                        "STATS",        "NO_FUTURE_LEAK", "SCRATCH_UNTOUCHED",
                                        "BIT_REPEAT",   "BIT_THREADS",    "BIT_LAYOUT",
                                        "BIT_SPELLING", "BIT_SCALE"};
    return i >= 0 && (size_t)i < sizeof names / sizeof names[0] ? names[i] : NULL;
}
