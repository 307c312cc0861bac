/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_safetensors.c - any bytes are no safetensors file, or one that holds to every rule.
 *
 * The reader must neither crash nor read beyond its bytes. What it takes must be so: names once, shapes and
 * dtypes that account for every byte once, in order; and written again it must be read as the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/safetensors.h"
#include "fuzz/target.h"

const bool mla_target_reads_lines = false;

bool mla_target_wants(const struct mla_case *test)
{
    (void)test;
    return false;
}

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "a file was taken that breaks a rule: %s\n", what);
    abort();
}

/* Bytes of a tensor by its shape, in another arithmetic than the reader's. */
static size_t bytes_of(const struct mla_safetensor *t)
{
    __int128 bits = mla_safetensors_dtype_bits(t->dtype);
    check(bits > 0, "dtype");
    for (int64_t i = 0; i < t->axes_n; i++) {
        check(t->shape[i] >= 0 && bits < (__int128)1 << 64, "shape");
        bits *= t->shape[i];
    }
    check(bits % 8 == 0 && bits / 8 <= SIZE_MAX, "whole bytes");
    return (size_t)(bits / 8);
}

static void check_file(const struct mla_safetensors *file, const uint8_t *bytes, size_t n)
{
    uint64_t header_n;
    memcpy(&header_n, bytes, 8);
    const uint8_t *at = bytes + 8 + header_n;
    for (size_t i = 0; i < file->n; i++) {
        const struct mla_safetensor *t = &file->list[i];
        check(t->data == at && t->bytes == bytes_of(t), "each byte of one tensor");
        check(mla_safetensors_find(file, t->name) == t, "a name once");
        at += t->bytes;
    }
    check(at == bytes + n, "no bytes left over");
}

static void check_same(const struct mla_safetensors *a, const struct mla_safetensors *b)
{
    check(a->n == b->n && a->texts_n == b->texts_n, "written: counts");
    for (size_t i = 0; i < a->n; i++) {
        const struct mla_safetensor *x = &a->list[i], *y = mla_safetensors_find(b, x->name);
        check(y != NULL && strcmp(x->dtype, y->dtype) == 0 && x->axes_n == y->axes_n &&
                  memcmp(x->shape, y->shape, (size_t)x->axes_n * sizeof x->shape[0]) == 0 &&
                  x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0,
              "written: a tensor");
    }
    for (size_t i = 0; i < a->texts_n; i++) {
        const char *value = mla_safetensors_text(b, a->texts[i].key);
        check(value != NULL && strcmp(value, a->texts[i].value) == 0, "written: metadata");
    }
}

static void check_written(const struct mla_safetensors *file)
{
    char error[400], *text = NULL;
    size_t n;
    struct mla_safetensors again;
    FILE *stream = open_memstream(&text, &n);
    check(stream != NULL && mla_safetensors_put(stream, file, error, sizeof error) == 0, error);
    check(fclose(stream) == 0, "written: memory");
    check(mla_safetensors_parse((const uint8_t *)text, n, &again, error, sizeof error) == 0, error);
    check_same(file, &again);
    mla_safetensors_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[400];
    struct mla_safetensors file;
    uint8_t *bytes =
        malloc(size + (size == 0)); /* of its own, so that what lies behind is watched */
    if (bytes == NULL)
        return 0;
    memcpy(bytes, data, size);
    if (mla_safetensors_parse(bytes, size, &file, error, sizeof error) == MLA_OK) {
        check_file(&file, bytes, size);
        check_written(&file);
        mla_safetensors_free(&file);
    } else {
        check(error[0] != '\0' && file.n == 0 && file.list == NULL, "a refusal without a word");
    }
    free(bytes);
    return 0;
}

/* ---- mutation ---- */

static unsigned draw(unsigned *state, unsigned n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 16) % n;
}

/* One tensor's entry, its bytes from `begin` on; returns where they end. */
static size_t put_tensor(char *text, size_t room, unsigned number, size_t begin, unsigned *state)
{
    static const char *const dtypes[] = {"BF16", "F32", "U8", "F4", "I64", "F6_E2M3"};
    const char *dtype = dtypes[draw(state, 6)];
    unsigned axes_n = draw(state, 4), elements = 1;
    size_t n = (size_t)snprintf(text, room, "%s\"%u\":{\"dtype\":\"%s\",\"shape\":[",
                                number == 0 ? "" : ",", number, dtype);
    for (unsigned i = 0; i < axes_n; i++) {
        unsigned axis = draw(state, 5);
        n += (size_t)snprintf(text + n, room - n, "%s%u", i == 0 ? "" : ",", axis);
        elements *= axis;
    }
    size_t end = begin + elements * (unsigned)mla_safetensors_dtype_bits(dtype) / 8;
    snprintf(text + n, room - n, "],\"data_offsets\":[%zu,%zu]}", begin, end);
    return end;
}

/* A file of a few tensors; valid, but where small elements fill no whole bytes. 0: no room. */
static size_t make_file(uint8_t *data, size_t max_size, unsigned seed)
{
    char text[2048] = "{";
    unsigned state = seed, tensors_n = draw(&state, 6);
    size_t at = 0;
    if (draw(&state, 3) == 0)
        strcat(text, tensors_n == 0 ? "\"__metadata__\":{\"k\":\"v\"}"
                                    : "\"__metadata__\":{\"k\":\"v\"},");
    for (unsigned i = 0; i < tensors_n; i++) {
        size_t n = strlen(text);
        at = put_tensor(text + n, sizeof text - n, i, at, &state);
    }
    strcat(text, draw(&state, 2) == 0 ? "}" : "}  ");
    size_t text_n = strlen(text), n = 8 + text_n + at;
    if (n > max_size)
        return 0;
    memset(data, 0, n);
    data[0] = (uint8_t)text_n;
    data[1] = (uint8_t)(text_n >> 8);
    memcpy(data + 8, text, text_n);
    return n;
}

/* The header changes, and its length with it: of one of another length nothing is read. */
static size_t change_header(uint8_t *data, size_t size, size_t max_size, uint64_t header_n)
{
    size_t tail_n = size - 8 - (size_t)header_n, room = max_size - 8 - tail_n;
    uint8_t *header = malloc(room + 1), *tail = malloc(tail_n + 1);
    if (header != NULL && tail != NULL && room >= header_n && header_n > 0) {
        memcpy(header, data + 8, (size_t)header_n);
        memcpy(tail, data + 8 + header_n, tail_n);
        header_n = LLVMFuzzerMutate(header, (size_t)header_n, room);
        memcpy(data, &header_n, 8);
        memcpy(data + 8, header, (size_t)header_n);
        memcpy(data + 8 + header_n, tail, tail_n);
    }
    free(header);
    free(tail);
    return 8 + (size_t)header_n + tail_n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint64_t header_n = 0;
    size_t made = size < 10 || seed % 8 == 0 ? make_file(data, max_size, seed) : 0;
    if (made > 0)
        return made;
    if (size >= 8)
        memcpy(&header_n, data, 8);
    if (size < 10 || seed % 8 == 1 || header_n > size - 8)
        return LLVMFuzzerMutate(data, size, max_size);
    return change_header(data, size, max_size, header_n);
}

/* Where there is no engine. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data;
    return size < max_size ? size : max_size;
}
