/* SPDX-License-Identifier: Apache-2.0
 *
 * build.h - what this program was built from and what it runs on.
 */
#ifndef MLA_MLACHECK_BUILD_H
#define MLA_MLACHECK_BUILD_H

#include "fuzz/kernels.h"
#include "results/store.h"

/* Static texts; isa is read from the CPU. */
struct mla_store_build mla_build_describe(void);

/* "AMD EPYC ..." into text, "unknown" where the system does not say. */
void mla_build_cpu(char *text, size_t text_bytes);

/* SHA-256 of a file. false, and hex "": it cannot be read. */
bool mla_build_hash_file(const char *path, char hex[65]);

/* The kernels of a list that this CPU can run, as a run stores them: comma separated, a plug-in's with "@" and
 * the beginning of its file's hash behind, as that is no part of any commit; "none". To be freed; NULL without
 * memory. */
char *mla_build_kernels(const struct mla_kernel_list *kernels);

/* Begin a run of this program, called with these words (the verb first): its command, build and processor
 * are stored, with the kernels as they are given. seed may be MLA_STORE_NULL. The status is the store's. */
int32_t mla_build_begin_run(struct mla_store *store, int argc, char **argv, const char *kernels,
                            int64_t seed, int64_t *run_id);
/* Write what is buffered, and end the run where it is whole: one that an interruption cut off stays without an
 * end, as one that was killed, so that whoever reads it knows that what it did not reach is not gone. */
int32_t mla_build_end_run(struct mla_store *store, bool is_whole);

/*
 * Compare the versions of the libraries' headers with those of the libraries in use. text lists
 * them; false: they disagree, and no figure of this process can be trusted.
 */
bool mla_build_versions(char *text, size_t text_bytes);

#endif
