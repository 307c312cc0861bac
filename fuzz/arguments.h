/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.h - from a case to the argument structures of a call, and rule-breaking by field name.
 */
#ifndef MLA_FUZZ_ARGUMENTS_H
#define MLA_FUZZ_ARGUMENTS_H

#include "fuzz/case.h"

/* The complete call of a case, violations not applied; all pointers are NULL. */
struct mla_ring_args mla_arguments_ring(const struct mla_case *test);
struct mla_sparse_args mla_arguments_sparse(const struct mla_case *test);

enum mla_argument_kind {
    MLA_ARGUMENT_U32,
    MLA_ARGUMENT_I32,
    MLA_ARGUMENT_I64,
    MLA_ARGUMENT_FLOAT,
    MLA_ARGUMENT_POINTER, /* may be set to null */
    MLA_ARGUMENT_RANKED   /* array of per-rank pointers: "q" the array, "q[2]" an entry */
};

/* One settable field of an argument structure. */
struct mla_argument {
    const char *name;
    enum mla_argument_kind kind;
    size_t offset;
};
const struct mla_argument *mla_arguments(enum mla_op op, size_t *arguments_n);

/*
 * Apply a violation to a call whose pointers are set. args: struct mla_ring_args or _sparse_args of
 * op; per-rank arrays are written through, so they must be the caller's own. "topk_indices" with a
 * number is not handled here (it changes a tensor). false: no such field, or the value does not
 * fit.
 */
bool mla_arguments_set(enum mla_op op, void *args, const struct mla_violation *violation);

#endif
