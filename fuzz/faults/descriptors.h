/* SPDX-License-Identifier: Apache-2.0
 *
 * descriptors.h - the kernels of this folder, one file each. Private; faults.h has the public
 * tables.
 */
#ifndef MLA_FAULTS_DESCRIPTORS_H
#define MLA_FAULTS_DESCRIPTORS_H

#include "impl/mla_kernel.h"

extern const struct mla_kernel mla_fault_last_key_dropped;
extern const struct mla_kernel mla_fault_rescale_forgotten;
extern const struct mla_kernel mla_fault_rope_ignored;
extern const struct mla_kernel mla_fault_natural_order;
extern const struct mla_kernel mla_fault_keys_past_end;
extern const struct mla_kernel mla_fault_causal_one_more;
extern const struct mla_kernel mla_fault_causal_one_less;

extern const struct mla_kernel mla_control_plain;
extern const struct mla_kernel mla_control_plain_reversed;
extern const struct mla_kernel mla_control_plain_two_pass;

extern const struct mla_kernel mla_canary_opposite;
extern const struct mla_kernel mla_canary_nan;

#endif
