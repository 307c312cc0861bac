/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.h - the ring operation, for any kernel's inner step.
 */
#ifndef MLA_IMPL_RING_H
#define MLA_IMPL_RING_H

#include "impl/attend.h"
#include "impl/mla.h"

/*
 * Causal MLA over a KV tensor sharded over a ring; formula, shapes, positions and non-finite rules
 * are those of struct mla_ring_args (impl/mla.h).
 *
 *   numerics  those of `attend`; each row goes, in each pass, through the K chunks (or blocks of
 *             the kernel's own block_keys, cut from row 0 of each shard) of the active shards in
 *             visiting order and is normalised once at the end: the bits depend on k_chunk_size,
 *             layout and topology, not on threads, links or q_chunk_size
 *   memory    beyond the tensors: for each thread one tile of the kernel's rows and its scratch
 *   errors    MLA_ERR_PARAM, MLA_ERR_SHAPE (see validate.h), MLA_ERR_NOMEM; then nothing was
 *             written
 *   threads   reentrant; creates and joins its own; the caller's floating-point environment neither
 *             matters nor changes
 *   source    ttnn.transformer.ring_mla
 */
int32_t mla_ring_run(const struct mla_ring_args *args, const struct mla_attend *attend,
                     char *message, size_t message_bytes);

#endif
