/* SPDX-License-Identifier: Apache-2.0
 *
 * spoil.c - apply one function to every output element of a finished call.
 */
#include "fuzz/faults/spoil.h"

static void spoil_all(uint16_t *out, int64_t n, uint16_t (*spoil)(uint16_t))
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = spoil(out[i]);
    }
}

void mla_spoil_ring(const struct mla_ring_args *args, uint16_t (*spoil)(uint16_t))
{
    for (int64_t rank = 0; rank < args->ring_size; rank++) {
        spoil_all(args->out[rank], args->batch * args->heads * args->q_rows * args->head_dim_v,
                  spoil);
    }
}

void mla_spoil_sparse(const struct mla_sparse_args *args, uint16_t (*spoil)(uint16_t))
{
    spoil_all(args->out, args->queries * args->heads * args->latent, spoil);
}
