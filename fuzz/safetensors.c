/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.c - a safetensors file by its path, and what is looked up in it. Its rules: safetensors_parse.c.
 */
#include "fuzz/safetensors.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/whole_file.h"
#include "impl/mla.h"

int32_t mla_safetensors_read(const char *path, struct mla_safetensors *file, char *error,
                             size_t error_bytes)
{
    char why[400];
    uint8_t *bytes;
    size_t n;
    *file = (struct mla_safetensors){0};
    int32_t status = mla_whole_file_read(path, PTRDIFF_MAX - 1, &bytes, &n, error, error_bytes);
    if (status != MLA_OK)
        return status;
    status = mla_safetensors_parse(bytes, n, file, why, sizeof why);
    if (status != MLA_OK) {
        snprintf(error, error_bytes, "%.200s: %s", path, why);
        free(bytes);
        return status;
    }
    file->bytes = bytes;
    file->bytes_n = n;
    return MLA_OK;
}

void mla_safetensors_free(struct mla_safetensors *file)
{
    for (size_t i = 0; i < file->n; i++)
        free(file->list[i].name);
    for (size_t i = 0; i < file->texts_n; i++) {
        free(file->texts[i].key);
        free(file->texts[i].value);
    }
    free(file->list);
    free(file->texts);
    free(file->bytes);
    *file = (struct mla_safetensors){0};
}

const struct mla_safetensor *mla_safetensors_find(const struct mla_safetensors *file,
                                                  const char *name)
{
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->list[i].name, name) == 0)
            return &file->list[i];
    return NULL;
}

const char *mla_safetensors_text(const struct mla_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->texts_n; i++)
        if (strcmp(file->texts[i].key, key) == 0)
            return file->texts[i].value;
    return NULL;
}

int64_t mla_safetensor_elements(const struct mla_safetensor *tensor)
{
    uint64_t elements = 1; /* on the way to 0 it may pass 2^63 */
    for (int64_t i = 0; i < tensor->axes_n; i++)
        elements *= (uint64_t)tensor->shape[i];
    return (int64_t)elements;
}

bool mla_safetensors_versions(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "jansson %s (header %s)", jansson_version_str(), JANSSON_VERSION);
    return jansson_version_cmp(JANSSON_MAJOR_VERSION, JANSSON_MINOR_VERSION,
                               JANSSON_MICRO_VERSION) == 0;
}
