/* SPDX-License-Identifier: Apache-2.0
 *
 * descriptors.h - the kernels with files of their own. Private; faults.h has the public tables.
 */
#ifndef MLA_FAULTS_DESCRIPTORS_H
#define MLA_FAULTS_DESCRIPTORS_H

#include "impl/mla_kernel.h"

extern const struct mla_kernel mla_canary_opposite;
extern const struct mla_kernel mla_canary_nan;

#endif
