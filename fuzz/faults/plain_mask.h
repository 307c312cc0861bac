/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_mask.h - for the lists of keys: does the planted fault mask hidden keys?
 */
#ifndef MLA_FAULTS_PLAIN_MASK_H
#define MLA_FAULTS_PLAIN_MASK_H

#include "fuzz/faults/plain.h"

/* If so hidden keys are listed with `hidden` set. Leaves the mark alone. */
bool mla_plain_masks(struct mla_plain_variant variant);

#endif
