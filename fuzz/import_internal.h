/* SPDX-License-Identifier: Apache-2.0
 *
 * import_internal.h - what the import of both operations shares.
 */
#ifndef MLA_FUZZ_IMPORT_INTERNAL_H
#define MLA_FUZZ_IMPORT_INTERNAL_H

#include "fuzz/import.h"

/* An import under way. */
struct mla_import {
    const struct mla_safetensors *file;
    const struct mla_import_options *options;
    struct mla_case *test;
    char *error;                 /* MLA_IMPORT_ERROR_MAX */
    struct mla_safetensors made; /* the case's tensors; their data and names are the import's */
    bool *used;                  /* of each tensor of the file */
};

/* A complaint; returns MLA_ERR_PARAM. */
__attribute__((format(printf, 2, 3))) int32_t mla_import_refuse(const struct mla_import *import,
                                                                const char *format, ...);
int32_t mla_import_no_memory(const struct mla_import *import);

/* The file's tensor of that name, which counts as used; NULL: there is none. */
const struct mla_safetensor *mla_import_find(struct mla_import *import, const char *name);
/* Its last n axes, if all before them are 1; else a complaint that says what it should be. */
int32_t mla_import_axes(const struct mla_import *import, const struct mla_safetensor *tensor,
                        int64_t n, const char *what, int64_t *axes);
/* A new tensor of the case of that many bf16 (or int32) elements, its shape open; NULL: no memory. */
struct mla_safetensor *mla_import_add(struct mla_import *import, const char *name, int64_t elements,
                                      size_t element_bytes);
/* Rows of `width` bf16 numbers: columns from .. from+width-1 of each row of a tensor. */
int32_t mla_import_columns(const struct mla_import *import, const struct mla_safetensor *from,
                           int64_t first, int64_t width, uint16_t *to);

/* The tensors of the sparse operation, when the parameters are known. */
int32_t mla_import_sparse(struct mla_import *import);

#endif
