/* SPDX-License-Identifier: Apache-2.0
 *
 * spoil.h - apply one function to every output element of a finished call: what canaries are made
 * of.
 */
#ifndef MLA_FAULTS_SPOIL_H
#define MLA_FAULTS_SPOIL_H

#include "impl/mla.h"

/* out[i] = spoil(out[i]) for every element of the call's outputs; stats are left alone. */
void mla_spoil_ring(const struct mla_ring_args *args, uint16_t (*spoil)(uint16_t));
void mla_spoil_sparse(const struct mla_sparse_args *args, uint16_t (*spoil)(uint16_t));

#endif
