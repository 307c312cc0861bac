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

/* Begin a run of this program, called with these words (the verb first): its command, build and processor
 * are stored, and the names of the kernels (specs, comma separated), with each plug-in the hash of its file.
 * seed may be MLA_STORE_NULL. The status is the store's. */
int32_t mla_build_begin_run(struct mla_store *store, int argc, char **argv, const char *kernels,
                            int64_t seed, int64_t *run_id);

/*
 * Compare the versions of the libraries' headers with those of the libraries in use. text lists
 * them; false: they disagree, and no figure of this process can be trusted.
 */
bool mla_build_versions(char *text, size_t text_bytes);

#endif
