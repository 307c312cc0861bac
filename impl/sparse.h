/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse.h - the sparse operation, for any kernel's inner step.
 */
#ifndef MLA_IMPL_SPARSE_H
#define MLA_IMPL_SPARSE_H

#include "impl/attend.h"
#include "impl/mla.h"

#define MLA_SPARSE_BLOCK 128 /* keys between two looks at the row's maximum */

/*
 * DeepSeek-V3.2 latent attention over top-k cache rows; formula, shapes and non-finite rules are
 * those of struct mla_sparse_args (impl/mla.h).
 *
 *   numerics  those of `attend`; each (row, head) goes, in each pass, through blocks of
 *             MLA_SPARSE_BLOCK keys (or the kernel's own block_keys) in listed order, dropped ones
 *             taken out first; the bits depend on the order of the list, not on its layout, cores or
 *             threads
 *   errors    MLA_ERR_PARAM, MLA_ERR_SHAPE, MLA_ERR_INDEX (see validate.h), MLA_ERR_NOMEM; then
 *             nothing was written
 *   threads   reentrant; creates and joins its own; the caller's floating-point environment neither
 *             matters nor changes
 *   source    nkilib.experimental.mla.deepseek.mla_sparse_attention_cte_kernel
 */
int32_t mla_sparse_run(const struct mla_sparse_args *args, const struct mla_attend *attend,
                       char *message, size_t message_bytes);

#endif
