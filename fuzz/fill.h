/* SPDX-License-Identifier: Apache-2.0
 *
 * fill.h - the numbers of a case: the family's rows where something reads them, poison elsewhere.
 */
#ifndef MLA_FUZZ_FILL_H
#define MLA_FUZZ_FILL_H

#include "fuzz/tensors.h"

/* Fill the input tensors of an allocated case. false when memory for an index list is missing. */
bool mla_fill_ring(struct mla_tensors *tensors);
bool mla_fill_sparse(struct mla_tensors *tensors);
/*
 * Cut every finite number of the filled inputs to the case's `bits` most significant bits, counted
 * from its leading one, toward zero. So the sign stays, what is not 0 stays so (subnormals too), and
 * the cut magnitude is a function of the magnitude alone: coins that were independent of magnitudes
 * still are.
 */
void mla_fill_cut(struct mla_tensors *tensors);

#endif
