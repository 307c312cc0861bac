/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h - tensors in files of the public safetensors format, read strictly.
 *
 * A file is: the header's length (8 bytes, little-endian), the header (JSON), the tensors' bytes. The
 * header is an object: a tensor's name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets
 * from the first byte after the header, and "__metadata__" to an object of strings. Numbers are
 * little-endian, tensors dense and row-major.
 *
 * A file is refused as a whole at the first rule it breaks. The rules of the format: no more header
 * than there is file; it begins with { and ends with }, then only spaces; valid JSON and UTF-8 without
 * a name twice; dtypes that the format lists; begin and end apart by what dtype and shape say; tensors
 * that together cover every byte once, without gap, overlap or bytes left over. Our own: a header of at
 * most 16 MiB (the format's readers take up to 100 MB), nested as deep as the format needs, of at most
 * 4096 tensors with at most 16 axes. Tensors may stand anywhere in the file (the format aligns none), so
 * their elements are to be copied, not pointed at.
 */
#ifndef MLA_FUZZ_SAFETENSORS_H
#define MLA_FUZZ_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MLA_SAFETENSORS_HEADER_MAX  ((uint64_t)16 << 20)
#define MLA_SAFETENSORS_TENSORS_MAX 4096
#define MLA_SAFETENSORS_AXES_MAX    16

struct mla_safetensor {
    char *name;
    const char *dtype; /* "BF16", ..: a static string */
    int64_t axes_n;
    int64_t shape[MLA_SAFETENSORS_AXES_MAX];
    const uint8_t *data;
    size_t bytes;
};

struct mla_safetensors_text {
    char *key, *value;
};

struct mla_safetensors {
    size_t n;
    struct mla_safetensor *list; /* by place in the file */
    size_t texts_n;
    struct mla_safetensors_text *texts; /* the metadata, in the file's order */
    uint8_t *bytes;                     /* the file, if it was read from one: data points into it */
    size_t bytes_n;
};

/*
 * The tensors of a file's bytes, which must outlive *file. MLA_OK; or MLA_ERR_PARAM with the rule that
 * is broken and by whom in error, or MLA_ERR_NOMEM: there is nothing to free then. Thread-safe.
 */
int32_t mla_safetensors_parse(const uint8_t *bytes, size_t bytes_n, struct mla_safetensors *file,
                              char *error, size_t error_bytes);
/* The same of a file by its path, which is named in error. MLA_ERR_PARAM also if it cannot be read. */
int32_t mla_safetensors_read(const char *path, struct mla_safetensors *file, char *error,
                             size_t error_bytes);
void mla_safetensors_free(struct mla_safetensors *file);

/* The tensor of that name, or NULL. */
const struct mla_safetensor *mla_safetensors_find(const struct mla_safetensors *file,
                                                  const char *name);
/* The metadata under that key, or NULL. */
const char *mla_safetensors_text(const struct mla_safetensors *file, const char *key);
/* Product of the shape. */
int64_t mla_safetensor_elements(const struct mla_safetensor *tensor);

/* "jansson 2.14 (header 2.14)" into text; false when header and library disagree. */
bool mla_safetensors_versions(char *text, size_t text_bytes);

/* Bits of an element of that dtype; 0: the format has no such dtype. */
int mla_safetensors_dtype_bits(const char *dtype);

/* Write list and texts of *file to a stream, as mla_safetensors_write does. */
int32_t mla_safetensors_put(FILE *stream, const struct mla_safetensors *file, char *error,
                            size_t error_bytes);

/*
 * Write list and texts of *file (bytes are not looked at): wide elements first, so that every tensor is
 * aligned to its own. Each tensor's bytes must be what dtype and shape say, names and metadata UTF-8 and
 * none twice. The same input gives the same file. It is written beside `path` and then put in its place,
 * so a failure leaves what was there. MLA_OK, MLA_ERR_PARAM (not written; error says why),
 * MLA_ERR_NOMEM, MLA_SAFETENSORS_DISK (folder or disk do not take the file; error says why).
 */
#define MLA_SAFETENSORS_DISK (-100)
int32_t mla_safetensors_write(const char *path, const struct mla_safetensors *file, char *error,
                              size_t error_bytes);

#endif
