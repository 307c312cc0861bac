/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_parse.c - a safetensors file's bytes to its tensors, every rule of the format checked.
 *
 * Nothing of the header is believed before it was compared with what is there: lengths before they are
 * used, the depth of the JSON before the parser recurses into it, products before they are formed.
 */
#include "fuzz/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl/mla.h"

#define DEPTH_MAX 3 /* header, tensor, shape */

static const struct dtype {
    const char *name;
    int bits;
} dtypes[] = {{"F64", 64},    {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F32", 32},
              {"I32", 32},    {"U32", 32},    {"BF16", 16},   {"F16", 16},    {"I16", 16},
              {"U16", 16},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"I8", 8},      {"U8", 8},
              {"F8_E8M0", 8}, {"BOOL", 8},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
#define DTYPES_N (sizeof(dtypes) / sizeof(dtypes[0]))

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < DTYPES_N; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

int mla_safetensors_dtype_bits(const char *dtype)
{
    const struct dtype *found = find_dtype(dtype);
    return found == NULL ? 0 : found->bits;
}

/* What is being parsed, and where a complaint goes. */
struct parse {
    const uint8_t *data; /* after the header */
    uint64_t data_n;
    struct mla_safetensors *file;
    char *error;
    size_t error_bytes;
};

/* Names come from outside: whatever might steer a terminal becomes a question mark. */
static void tame(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

__attribute__((format(printf, 2, 3))) static int32_t refuse(const struct parse *p,
                                                            const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(p->error, p->error_bytes, format, list);
    va_end(list);
    tame(p->error);
    return MLA_ERR_PARAM;
}

static int32_t no_memory(const struct parse *p)
{
    refuse(p, "out of memory");
    return MLA_ERR_NOMEM;
}

/* ---- one tensor ---- */

/* A number of the header in 0 .. 2^63-1; -1: it is none. */
static int64_t count_of(const json_t *value)
{
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static int32_t parse_shape(const struct parse *p, const json_t *shape, struct mla_safetensor *t)
{
    if (!json_is_array(shape))
        return refuse(p, "tensor '%.80s': shape must be an array", t->name);
    t->axes_n = (int64_t)json_array_size(shape);
    if (t->axes_n > MLA_SAFETENSORS_AXES_MAX)
        return refuse(p, "tensor '%.80s': %" PRId64 " axes, more than %d", t->name, t->axes_n,
                      MLA_SAFETENSORS_AXES_MAX);
    for (int64_t i = 0; i < t->axes_n; i++) {
        t->shape[i] = count_of(json_array_get(shape, (size_t)i));
        if (t->shape[i] < 0)
            return refuse(p, "tensor '%.80s': axis %" PRId64 " must be an integer in 0 .. 2^63-1",
                          t->name, i);
    }
    return MLA_OK;
}

/* Bytes that dtype and shape say. */
static int32_t sized(const struct parse *p, const struct mla_safetensor *t, int bits,
                     uint64_t *bytes)
{
    uint64_t elements = 1, all_bits;
    for (int64_t i = 0; i < t->axes_n; i++)
        if (__builtin_mul_overflow(elements, (uint64_t)t->shape[i], &elements))
            return refuse(p, "tensor '%.80s': its shape has more than 2^64-1 elements", t->name);
    if (__builtin_mul_overflow(elements, (uint64_t)bits, &all_bits))
        return refuse(p, "tensor '%.80s': its shape takes more than 2^64-1 bits", t->name);
    if (all_bits % 8 != 0)
        return refuse(p, "tensor '%.80s': %" PRIu64 " elements of %d bits fill no whole bytes",
                      t->name, elements, bits);
    *bytes = all_bits / 8;
    return MLA_OK;
}

static int32_t parse_place(const struct parse *p, const json_t *offsets, uint64_t due,
                           struct mla_safetensor *t)
{
    if (!json_is_array(offsets) || json_array_size(offsets) != 2)
        return refuse(p, "tensor '%.80s': data_offsets must be [begin, end]", t->name);
    int64_t begin = count_of(json_array_get(offsets, 0)),
            end = count_of(json_array_get(offsets, 1));
    if (begin < 0 || end < 0)
        return refuse(p, "tensor '%.80s': data_offsets must be integers in 0 .. 2^63-1", t->name);
    if (begin > end)
        return refuse(p,
                      "tensor '%.80s': data_offsets begin at %" PRId64 ", after their end %" PRId64,
                      t->name, begin, end);
    if ((uint64_t)end > p->data_n)
        return refuse(p, "tensor '%.80s': ends at byte %" PRId64 " of %" PRIu64, t->name, end,
                      p->data_n);
    if ((uint64_t)(end - begin) != due)
        return refuse(p,
                      "tensor '%.80s': data_offsets span %" PRId64
                      " bytes, but dtype and shape take %" PRIu64,
                      t->name, end - begin, due);
    t->data = p->data + begin;
    t->bytes = (size_t)due;
    return MLA_OK;
}

static int32_t parse_tensor(const struct parse *p, const char *name, const json_t *value)
{
    struct mla_safetensor *t = &p->file->list[p->file->n];
    uint64_t bytes = 0;
    if ((t->name = strdup(name)) == NULL)
        return no_memory(p);
    p->file->n++;
    const json_t *dtype = json_object_get(value, "dtype"), *shape = json_object_get(value, "shape"),
                 *offsets = json_object_get(value, "data_offsets");
    if (dtype == NULL || shape == NULL || offsets == NULL || json_object_size(value) != 3)
        return refuse(p, "tensor '%.80s': must be an object of dtype, shape and data_offsets",
                      name);
    if (!json_is_string(dtype) || find_dtype(json_string_value(dtype)) == NULL)
        return refuse(p, "tensor '%.80s': dtype '%.40s' is none of the format's", name,
                      json_is_string(dtype) ? json_string_value(dtype) : "(no string)");
    const struct dtype *found = find_dtype(json_string_value(dtype));
    t->dtype = found->name;
    int32_t status = parse_shape(p, shape, t);
    status = status != MLA_OK ? status : sized(p, t, found->bits, &bytes);
    return status != MLA_OK ? status : parse_place(p, offsets, bytes, t);
}

/* ---- all of them ---- */

static int compare_places(const void *a, const void *b)
{
    const struct mla_safetensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Every byte belongs to exactly one tensor. */
static int32_t check_cover(const struct parse *p)
{
    const uint8_t *at = p->data;
    qsort(p->file->list, p->file->n, sizeof *p->file->list, compare_places);
    for (size_t i = 0; i < p->file->n; i++) {
        const struct mla_safetensor *t = &p->file->list[i];
        if (t->data < at)
            return refuse(p, "tensor '%.80s': overlaps the one before it in the file", t->name);
        if (t->data > at)
            return refuse(p, "tensor '%.80s': %td bytes before it belong to none", t->name,
                          t->data - at);
        at += t->bytes;
    }
    if (at != p->data + p->data_n)
        return refuse(p, "%td bytes at the end belong to no tensor", p->data + p->data_n - at);
    return MLA_OK;
}

static int32_t parse_texts(const struct parse *p, json_t *metadata)
{
    const char *key;
    json_t *value;
    struct mla_safetensors *file = p->file;
    if (!json_is_object(metadata))
        return refuse(p, "__metadata__ must be an object of strings");
    file->texts = calloc(json_object_size(metadata) + 1, sizeof *file->texts);
    if (file->texts == NULL)
        return no_memory(p);
    json_object_foreach(metadata, key, value)
    {
        struct mla_safetensors_text *text = &file->texts[file->texts_n];
        if (!json_is_string(value))
            return refuse(p, "__metadata__: '%.80s' must be a string", key);
        file->texts_n++;
        text->key = strdup(key);
        text->value = strdup(json_string_value(value));
        if (text->key == NULL || text->value == NULL)
            return no_memory(p);
    }
    return MLA_OK;
}

static int32_t parse_entries(const struct parse *p, json_t *header)
{
    const char *name;
    json_t *value;
    int32_t status = MLA_OK;
    if (json_object_size(header) > MLA_SAFETENSORS_TENSORS_MAX)
        return refuse(p, "%zu tensors, more than %d", json_object_size(header),
                      MLA_SAFETENSORS_TENSORS_MAX);
    p->file->list = calloc(json_object_size(header) + 1, sizeof *p->file->list);
    if (p->file->list == NULL)
        return no_memory(p);
    json_object_foreach(header, name, value)
    {
        status = strcmp(name, "__metadata__") == 0 ? parse_texts(p, value)
                                                   : parse_tensor(p, name, value);
        if (status != MLA_OK)
            return status;
    }
    return check_cover(p);
}

/* ---- the header ---- */

/* Brackets outside strings; whether they match is the parser's affair. */
static int depth_of(const char *text, size_t n)
{
    int depth = 0, most = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string && (text[i] == '{' || text[i] == '['))
            most = ++depth > most ? depth : most;
        else if (!in_string && (text[i] == '}' || text[i] == ']'))
            depth--;
    }
    return most;
}

static int32_t parse_header(const struct parse *p, const char *text, size_t n)
{
    json_error_t wrong;
    while (n > 0 && text[n - 1] == ' ')
        n--;
    if (n < 2 || text[0] != '{' || text[n - 1] != '}')
        return refuse(p, "the header must begin with { and end with }, then only spaces");
    if (depth_of(text, n) > DEPTH_MAX)
        return refuse(p, "the header is nested deeper than %d", DEPTH_MAX);
    json_t *header = json_loadb(text, n, JSON_REJECT_DUPLICATES, &wrong);
    if (header == NULL)
        return refuse(p, "the header is no valid JSON: %s (byte %d)", wrong.text, wrong.position);
    int32_t status = parse_entries(p, header);
    json_decref(header);
    return status;
}

int32_t mla_safetensors_parse(const uint8_t *bytes, size_t bytes_n, struct mla_safetensors *file,
                              char *error, size_t error_bytes)
{
    struct parse p = {.file = file, .error = error, .error_bytes = error_bytes};
    uint64_t header_n = 0;
    *file = (struct mla_safetensors){0};
    if (bytes_n < 8)
        return refuse(&p, "%zu bytes: too short for the header's length (8 bytes)", bytes_n);
    for (int i = 7; i >= 0; i--)
        header_n = header_n << 8 | bytes[i];
    if (header_n > MLA_SAFETENSORS_HEADER_MAX)
        return refuse(&p, "a header of %" PRIu64 " bytes: more than %" PRIu64, header_n,
                      MLA_SAFETENSORS_HEADER_MAX);
    if (header_n > bytes_n - 8)
        return refuse(&p, "a header of %" PRIu64 " bytes in a file of %zu", header_n, bytes_n);
    p.data = bytes + 8 + header_n;
    p.data_n = bytes_n - 8 - header_n;
    int32_t status = parse_header(&p, (const char *)bytes + 8, (size_t)header_n);
    if (status != MLA_OK)
        mla_safetensors_free(file);
    return status;
}
