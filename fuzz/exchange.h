/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.h - a case's tensors out as a safetensors file, and the results of others in.
 *
 * Names in files: those of impl/mla.h; ring: with the rank behind, "q.0", "kv.3", "out.1". Shapes are
 * those of impl/mla.h too, bf16 is BF16, the index list I32. Metadata of an exported file:
 *
 *   format      "mlacheck-1"
 *   tool        the program's version
 *   op          ring or sparse
 *   case        the canonical line; case_id: its SHA-256
 *   <argument>  every number of the call under its name in impl/mla.h, decimal or %a; scale is the one
 *               in force
 *   valid_rows.<tensor>  which rows of an input hold data, "0-31,40": all others hold what must not be
 *               read. q: rows 0 .. q_rows-1, alike for every batch entry and head; kv: rows of all slots
 *               counted through; caches: their rows. Query rows of the sparse operation: all
 */
#ifndef MLA_FUZZ_EXCHANGE_H
#define MLA_FUZZ_EXCHANGE_H

#include "fuzz/safetensors.h"
#include "fuzz/tensors.h"

#define MLA_EXCHANGE_FORMAT    "mlacheck-1"
#define MLA_EXCHANGE_ERROR_MAX 1024

/* Name and shape of a case's tensor in files; returns the number of axes (at most 4). */
#define MLA_EXCHANGE_NAME_MAX 32
void mla_exchange_name(const struct mla_case *test, const char *base, int64_t rank,
                       char name[MLA_EXCHANGE_NAME_MAX]);
int64_t mla_exchange_shape(const struct mla_case *test, const char *base, int64_t shape[4]);

/* For messages: "[1, 2]"; and what a file holds, "out F32 [1, 2], lse F32 [2], 3 more". */
#define MLA_EXCHANGE_SHAPE_MAX 200
#define MLA_EXCHANGE_LIST_MAX  400
void mla_exchange_shape_text(const int64_t *shape, int64_t n, char text[MLA_EXCHANGE_SHAPE_MAX]);
void mla_exchange_list(const struct mla_safetensors *file, char text[MLA_EXCHANGE_LIST_MAX]);

/* The ranges of the rows of an input that hold data, as above (free); NULL without memory. */
char *mla_exchange_valid_rows(const struct mla_tensors *tensors, const struct mla_tensor *tensor);

/*
 * Write the inputs of a case. MLA_OK, or as mla_safetensors_write with the reason in error;
 * MLA_ERR_PARAM: a case that must be refused, one with thin caches.
 */
int32_t mla_exchange_export(const struct mla_tensors *tensors, const char *tool, const char *path,
                            char error[MLA_EXCHANGE_ERROR_MAX]);

/* Does the file hold the inputs of a case by name, dtype and shape, and nothing else? NULL, or what is
 * wrong in error, by the name of the first tensor that is another one. */
const char *mla_exchange_mismatch(const struct mla_case *test, const struct mla_safetensors *file,
                                  char error[MLA_EXCHANGE_ERROR_MAX]);

/* The same with every byte of these tensors. */
const char *mla_exchange_difference(const struct mla_tensors *tensors,
                                    const struct mla_safetensors *file,
                                    char error[MLA_EXCHANGE_ERROR_MAX]);

#endif
