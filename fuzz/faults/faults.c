/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.c - the tables of planted faults, honest controls and canaries.
 *
 * To add a fault: name it in enum mla_plain_fault (plain.h), plant it where that name is asked for
 * (plain_ring.c, plain_sparse.c, plain_row.c), copy a fault_*.c and change the names, declare it in
 * descriptors.h, add a row here, the file in CMakeLists.txt and a triggering call in faults_test.c.
 * A fault that is not one site in the plain kernel is its own fault_*.c with any code in it.
 */
#include "fuzz/faults/faults.h"

#include "fuzz/faults/descriptors.h"

enum {
    RING = MLA_FAULT_ON_RING,
    SPARSE = MLA_FAULT_ON_SPARSE,
    BOTH = MLA_FAULT_ON_RING | MLA_FAULT_ON_SPARSE
};

/* clang-format off */
static const struct mla_fault faults[] = {
    {"last-key-dropped", "M12_SHARD_LENGTH_FLOOR", "B12", BOTH, &mla_fault_last_key_dropped,
     "The last valid key takes no part."},
    {"rescale-forgotten", "M13_TRIP_COUNT_PARTITION", "B26", BOTH, &mla_fault_rescale_forgotten,
     "The accumulator is not rescaled when the running maximum rises."},
    {"rope-ignored", "M25_DIM_STRIDE_MIX", "B30", BOTH, &mla_fault_rope_ignored,
     "Scores are formed over the value columns only; the RoPE columns are ignored."},
    {"natural-order", "M40_OUTPUT_PERMUTATION", "B176", SPARSE, &mla_fault_natural_order,
     "Output columns are in natural order where the 4-pack was asked for."},
    {"keys-past-end", "M14_PAD_COLUMNS_LIVE", "B34 B38", RING, &mla_fault_keys_past_end,
     "The tile that holds the last valid key is not cut at logical_n."},
    {"causal-one-more", "M08_CAUSAL_OFFSET", "B19", BOTH, &mla_fault_causal_one_more,
     "Every row sees one key beyond its causal frontier."},
    {"causal-one-less", "M08_CAUSAL_OFFSET", "B18", BOTH, &mla_fault_causal_one_less,
     "Every row misses the last key of its causal frontier."},
};

static const struct mla_fault controls[] = {
    {"plain", "", "", BOTH, &mla_control_plain,
     "The kernel the faults are planted in, without any."},
    {"plain-reversed", "", "", BOTH, &mla_control_plain_reversed,
     "Keys visited from the last to the first."},
    {"plain-two-pass", "", "", BOTH, &mla_control_plain_two_pass,
     "Maximum first, probabilities rounded to bf16 for the product with V."},
};

static const struct mla_fault canaries[] = {
    {"canary-opposite", "", "", BOTH, &mla_canary_opposite,
     "Every output is the largest finite value of the wrong sign."},
    {"canary-nan", "", "", BOTH, &mla_canary_nan,
     "Every output is a NaN."},
};
/* clang-format on */

const struct mla_fault *mla_faults(size_t *faults_n)
{
    *faults_n = sizeof faults / sizeof faults[0];
    return faults;
}

const struct mla_fault *mla_fault_controls(size_t *controls_n)
{
    *controls_n = sizeof controls / sizeof controls[0];
    return controls;
}

const struct mla_fault *mla_fault_canaries(size_t *canaries_n)
{
    *canaries_n = sizeof canaries / sizeof canaries[0];
    return canaries;
}
