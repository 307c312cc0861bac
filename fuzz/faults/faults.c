/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.c - the tables of planted faults, honest controls and canaries, and their kernels.
 *
 * To add a fault: a row in faults.def, and its site in the plain kernel (plain_*.c), where
 * mla_plain_has asks for it. A fault that is not one site of the plain kernel is its own file with
 * any code in it, called from such a site.
 *
 * The ABI hands a kernel nothing but its call, so every row needs two functions of its own, which
 * only say which variant of the plain kernel they are. KERNEL makes them: the one place in the tree
 * where a macro makes functions.
 */
#include "fuzz/faults/faults.h"

#include "fuzz/faults/descriptors.h"
#include "fuzz/faults/plain.h"

enum {
    RING = MLA_FAULT_ON_RING,
    SPARSE = MLA_FAULT_ON_SPARSE,
    BOTH = MLA_FAULT_ON_RING | MLA_FAULT_ON_SPARSE
};

#define KERNEL(id, kernel_name, fault, operations, method)                                         \
    static int32_t ring_##id(const struct mla_ring_args *args, char *message, size_t bytes)        \
    {                                                                                              \
        struct mla_plain_variant variant = {fault, MLA_PLAIN_##method};                            \
        return mla_plain_ring(args, variant, message, bytes);                                      \
    }                                                                                              \
    static int32_t sparse_##id(const struct mla_sparse_args *args, char *message, size_t bytes)    \
    {                                                                                              \
        struct mla_plain_variant variant = {fault, MLA_PLAIN_##method};                            \
        return mla_plain_sparse(args, variant, message, bytes);                                    \
    }                                                                                              \
    static const struct mla_kernel kernel_##id = {                                                 \
        .abi = MLA_KERNEL_ABI,                                                                     \
        .struct_size = sizeof(struct mla_kernel),                                                  \
        .name = kernel_name,                                                                       \
        .promises = MLA_PLAIN_PROMISES,                                                            \
        .ring_model = MLA_PLAIN_##method##_RING_MODEL,                                             \
        .sparse_model = MLA_PLAIN_##method##_SPARSE_MODEL,                                         \
        .ring = ((operations)&MLA_FAULT_ON_RING) ? ring_##id : NULL,                               \
        .sparse = ((operations)&MLA_FAULT_ON_SPARSE) ? sparse_##id : NULL,                         \
    };

/* ---- kernels ---- */

#define FAULT(id, name, class, reports, operations, method, cause, what)                           \
    KERNEL(id, name, MLA_FAULT_##id, operations, method)
#define HIDDEN_FAULT(id, name, class, reports, operations, method, cause, what, why)               \
    KERNEL(id, name, MLA_FAULT_##id, operations, method)
#include "fuzz/faults/faults.def"
#undef FAULT
#undef HIDDEN_FAULT

#define CONTROL(id, name, method, what) KERNEL(id, name, MLA_FAULT_NONE, BOTH, method)
#include "fuzz/faults/controls.def"
#undef CONTROL

/* ---- tables ---- */

/* Races are the faults of methods with threads that make results unsteady. */
#define IS_RACE(method, cause)                                                                     \
    ((MLA_PLAIN_##method == MLA_PLAIN_TRAVELLING || MLA_PLAIN_##method == MLA_PLAIN_PAIRED) &&     \
     MLA_CAUSE_##cause == MLA_CAUSE_UNSTEADY)

static const struct mla_fault faults[] = {
#define FAULT(id, name, class, reports, operations, method, cause, what)                           \
    {name,                                                                                         \
     class,                                                                                        \
     reports,                                                                                      \
     operations,                                                                                   \
     &kernel_##id,                                                                                 \
     what,                                                                                         \
     MLA_CAUSE_##cause,                                                                            \
     NULL,                                                                                         \
     MLA_PLAIN_##method,                                                                           \
     IS_RACE(method, cause)},
#define HIDDEN_FAULT(id, name, class, reports, operations, method, cause, what, why)               \
    {name,                                                                                         \
     class,                                                                                        \
     reports,                                                                                      \
     operations,                                                                                   \
     &kernel_##id,                                                                                 \
     what,                                                                                         \
     MLA_CAUSE_##cause,                                                                            \
     why,                                                                                          \
     MLA_PLAIN_##method,                                                                           \
     IS_RACE(method, cause)},
#include "fuzz/faults/faults.def"
#undef FAULT
#undef HIDDEN_FAULT
};

static const struct mla_fault controls[] = {
#define CONTROL(id, name, method, what)                                                            \
    {name, "", "", BOTH, &kernel_##id, what, MLA_CAUSE_UNKNOWN, NULL, MLA_PLAIN_##method, false},
#include "fuzz/faults/controls.def"
#undef CONTROL
};

static const struct mla_fault canaries[] = {
    {"canary-opposite", "", "", BOTH, &mla_canary_opposite,
     "Every output is the largest finite value of the wrong sign.", MLA_CAUSE_UNKNOWN, NULL, -1,
     false},
    {"canary-nan", "", "", BOTH, &mla_canary_nan, "Every output is a NaN.", MLA_CAUSE_NOT_FINITE,
     NULL, -1, false},
};

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
