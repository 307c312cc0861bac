/* SPDX-License-Identifier: Apache-2.0
 *
 * build.h - what this program was built from and what it runs on.
 */
#ifndef MLA_MLACHECK_BUILD_H
#define MLA_MLACHECK_BUILD_H

#include "results/store.h"

/* Static texts; isa is read from the CPU. */
struct mla_store_build mla_build_describe(void);

/* "AMD EPYC ..." into text, "unknown" where the system does not say. */
void mla_build_cpu(char *text, size_t text_bytes);

/*
 * Compare the versions of the libraries' headers with those of the libraries in use. text lists
 * them; false: they disagree, and no figure of this process can be trusted.
 */
bool mla_build_versions(char *text, size_t text_bytes);

#endif
