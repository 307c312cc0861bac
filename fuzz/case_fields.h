/* SPDX-License-Identifier: Apache-2.0
 *
 * case_fields.h - the table of case fields: one line a field drives formatting, parsing and
 * mutation.
 */
#ifndef MLA_FUZZ_CASE_FIELDS_H
#define MLA_FUZZ_CASE_FIELDS_H

#include "fuzz/case.h"

enum mla_field_kind {
    MLA_FIELD_INT,            /* int64_t, decimal */
    MLA_FIELD_FLAG,           /* int32_t, 0 or 1 */
    MLA_FIELD_NAME,           /* int32_t, one of names */
    MLA_FIELD_SEED,           /* uint64_t, decimal */
    MLA_FIELD_FLOAT,          /* float, %a */
    MLA_FIELD_OPTIONAL_INT,   /* "-" when the flag at has_offset is 0 */
    MLA_FIELD_OPTIONAL_FLOAT, /* likewise */
    MLA_FIELD_SET,            /* the violations */
    MLA_FIELD_PUT,            /* the overrides */
    MLA_FIELD_DATA            /* "file:" and a SHA-256 in hex */
};

struct mla_field {
    const char *key;
    enum mla_field_kind kind;
    size_t offset;
    size_t has_offset;                  /* optional kinds */
    const char *(*name)(int32_t value); /* MLA_FIELD_NAME: NULL beyond the last */
};

/* The fields of an operation in canonical order: those that every version has, which are those that a
 * search may change, and those of a line of that version (1 .. MLA_CASE_VERSION). */
const struct mla_field *mla_case_fields(enum mla_op op, size_t *fields_n);
const struct mla_field *mla_case_fields_of(enum mla_op op, int64_t version, size_t *fields_n);

const char *mla_case_op_name(int32_t op);
const char *mla_case_region_name(int32_t region);
const char *mla_case_indices_name(int32_t indices);
const char *mla_case_poison_name(int32_t poison);

#endif
