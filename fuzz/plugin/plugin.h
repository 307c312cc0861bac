/* SPDX-License-Identifier: Apache-2.0
 *
 * plugin.h - kernels from outside: load a shared object that exports mla_plugin_kernels.
 *
 * A plug-in is a file its author built from two headers (impl/mla.h, impl/mla_kernel.h) and nothing
 * else of this project. Loading runs its constructors, which may crash or hang; so a forked child
 * loads it first, under a time limit, and only what survived there is loaded here. What was loaded
 * is never unloaded: descriptors, and reports of sanitizers, point into it.
 */
#ifndef MLA_PLUGIN_PLUGIN_H
#define MLA_PLUGIN_PLUGIN_H

#include "impl/mla_kernel.h"

#define MLA_PLUGIN_SECONDS 10.0 /* how long mla_plugin_load lets loading take */

/*
 * Load the plug-in at path and hand out its kernels.
 *
 * path       a regular file; a name without '/' means the working directory, no library path is
 *            searched
 * kernels    the plug-in's own array, valid for the life of the process; kernels_n entries, >= 1,
 *            that passed mla_plugin_check
 * errors     MLA_ERR_PARAM: this file cannot be used (missing, not an ELF object, a symbol it needs
 *            or mla_plugin_kernels missing, a crash or more than MLA_PLUGIN_SECONDS while loading,
 *            anything mla_plugin_check refuses); MLA_ERR_INTERNAL: this process could not find out
 *            (no pipe, no child). The message names the path and the reason; *kernels is NULL,
 *            *kernels_n 0. Nothing is printed here; a plug-in's constructors may print
 * threads    call it before starting threads: the child of a process with threads may find a lock
 *            of the loader taken for ever, which then counts as taking too long
 */
int32_t mla_plugin_load(const char *path, const struct mla_kernel *const **kernels,
                        size_t *kernels_n, char *message, size_t message_bytes);

/*
 * Would mla_plugin_load take it? Loads and checks in a forked child that is killed after `seconds`
 * (0 < seconds <= 3600). Status and message as there; a crash is "crashed while loading: signal
 * 11", an exit "exited with status 3 while loading", too long "still loading after 10 s".
 */
int32_t mla_plugin_probe(const char *path, double seconds, char *message, size_t message_bytes);

/*
 * Are these descriptors well formed? In order, for each: not NULL; abi == MLA_KERNEL_ABI (nothing
 * else is read before); struct_size; name of [a-z0-9-]+, at most 63 characters, unique in the list;
 * no unknown promise; at least one operation. kernels_n must be 1 .. 1024. MLA_OK with an empty
 * message, or MLA_ERR_PARAM with the reason (which names no path). Pure; any thread.
 */
int32_t mla_plugin_check(const struct mla_kernel *const *kernels, size_t kernels_n, char *message,
                         size_t message_bytes);

#endif
