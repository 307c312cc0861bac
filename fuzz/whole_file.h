/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_file.h - the bytes of a small file that somebody names.
 */
#ifndef MLA_FUZZ_WHOLE_FILE_H
#define MLA_FUZZ_WHOLE_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * All bytes of a regular file (free *bytes; a 0 stands behind them), of at most `most` bytes. Nothing else is
 * waited for or read: no pipe, device or folder. MLA_OK; MLA_ERR_PARAM or MLA_ERR_NOMEM with the path and
 * the reason in error, *bytes NULL then. Thread-safe.
 */
int32_t mla_whole_file_read(const char *path, uint64_t most, uint8_t **bytes, size_t *n,
                            char *error, size_t error_bytes);

#endif
