/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.h - the kernels a run is about, from what the user wrote.
 *
 *   NAME or GLOB            built-in kernels; no match is an error, never another kernel
 *   fault:NAME or GLOB      kernels with planted faults, honest controls and canaries
 *   adversary:NAME or GLOB  kernels that use all the freedom of a model, and cheats
 *   PATH.so                 all kernels of a plug-in (anything with a '/' or ending in .so)
 *   PATH.so:NAME            one of them
 *
 * Results name a plug-in's kernel by its file's base name, "k.so:mine": where it lies differs between machines.
 */
#ifndef MLA_FUZZ_KERNELS_H
#define MLA_FUZZ_KERNELS_H

#include "impl/mla_kernel.h"

#define MLA_KERNELS_MAX 512

/* Bytes of a plug-in's path, its end included. */
#define MLA_KERNELS_PATH_MAX 200

struct mla_kernel_choice {
    const struct mla_kernel *kernel;
    char spec[256]; /* what selects exactly this kernel again; in results: mla_kernels_name of it */
};

struct mla_kernel_list {
    size_t n;
    struct mla_kernel_choice list[MLA_KERNELS_MAX];
};

/*
 * Add what spec names. MLA_OK; MLA_ERR_PARAM: matches nothing, or a plug-in that cannot be used, or
 * a model that is not well formed, or a plug-in whose kernel's name another one has already; error names
 * it and lists what there is. Descriptors of plug-ins stay loaded.
 */
int32_t mla_kernels_add(struct mla_kernel_list *kernels, const char *spec, char *error,
                        size_t error_bytes);

/*
 * What results call the kernel of a choice: "k.so:mine" of "../x/k.so:mine", and of "file:a/b", whose outputs
 * came by a file, and of all others the spec itself. Points into spec.
 */
const char *mla_kernels_name(const char *spec);

/* The length of the path in PATH.so or PATH.so:NAME; 0: spec is neither. */
size_t mla_kernels_plugin(const char *spec);

/* Does the spec mean a file, by its ending or by a slash? */
bool mla_kernels_is_path(const char *spec);

/* Can it run on this CPU? One that cannot is named as skipped, never counted as passed. */
bool mla_kernel_is_usable(const struct mla_kernel *kernel);

/* "REFUSES", ..: of bit i of a kernel's promises; NULL beyond the last. */
const char *mla_promise_name(int i);

#endif
