/* SPDX-License-Identifier: Apache-2.0
 *
 * data_file.h - cases whose inputs come from outside: files named by their contents.
 *
 * A case line with data=file:HASH means the safetensors file HASH.safetensors in the folder of the
 * environment variable MLACHECK_DATA (default results/data), whose SHA-256 is HASH and which holds the
 * case's inputs as exchange.h names them. The line alone is then not enough to repeat a case: the file
 * goes with it.
 */
#ifndef MLA_FUZZ_DATA_FILE_H
#define MLA_FUZZ_DATA_FILE_H

#include "fuzz/safetensors.h"
#include "fuzz/tensors.h"

#define MLA_DATA_PATH_MAX 4096

/* Fill the inputs of allocated tensors from their case's file. MLA_OK; MLA_ERR_PARAM: no such file, other
 * contents than its name says, other tensors than the case's, an index that names no cache row;
 * MLA_ERR_NOMEM. */
int32_t mla_data_fill(struct mla_tensors *tensors, char error[MLA_CASE_ERROR_MAX]);

/* Put a file of these tensors (without metadata) into the folder, which is made if need be. hash: its
 * name. MLA_OK, or as mla_safetensors_write with the reason in error. */
int32_t mla_data_store(const struct mla_safetensors *file, char hash[MLA_CASE_ID_BYTES],
                       char *error, size_t error_bytes);

#endif
