/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.h - the built-in kernels, all of them or one by name.
 */
#ifndef MLA_IMPL_REGISTRY_H
#define MLA_IMPL_REGISTRY_H

#include "impl/mla_kernel.h"

#include <stdbool.h>

/* All built-in kernels, slowest first, whether this CPU can run them or not; their number in *n. */
const struct mla_kernel *const *mla_registry_kernels(size_t *n);

/* The kernel of that exact name, or NULL: an unknown name never falls back to another kernel. */
const struct mla_kernel *mla_registry_find(const char *name);

/* Is it the name of a kernel that other builds have, for another processor or with another compiler? */
bool mla_registry_is_left_out(const char *name);

#endif
