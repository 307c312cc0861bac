/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_gather.h - the first step of every peer: rows side by side. Inline, for modules.
 */
#ifndef MLA_MLACHECK_PEER_GATHER_H
#define MLA_MLACHECK_PEER_GATHER_H

#include <string.h>

#include "impl/mla.h"

/* Rows index[0 .. n) of both caches side by side: n rows of latent + rope elements. */
static inline void mla_peer_gather(const struct mla_sparse_args *args, const int32_t *index,
                                   int64_t n, uint16_t *rows)
{
    size_t latent = (size_t)args->latent, rope = (size_t)args->rope;
    for (int64_t i = 0; i < n; i++, rows += latent + rope) {
        memcpy(rows, args->c_kv + (size_t)index[i] * latent, latent * sizeof *rows);
        memcpy(rows + latent, args->k_pe + (size_t)index[i] * rope, rope * sizeof *rows);
    }
}

/* The query's heads likewise: heads rows of latent + rope elements. */
static inline void mla_peer_query(const struct mla_sparse_args *args, int64_t query, uint16_t *rows)
{
    size_t latent = (size_t)args->latent, rope = (size_t)args->rope;
    for (int64_t head = 0; head < args->heads; head++, rows += latent + rope) {
        size_t row = (size_t)(query * args->heads + head);
        memcpy(rows, args->q_lift + row * latent, latent * sizeof *rows);
        memcpy(rows + latent, args->q_pe + row * rope, rope * sizeof *rows);
    }
}

#endif
