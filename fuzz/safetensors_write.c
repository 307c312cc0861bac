/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_write.c - tensors to a safetensors file.
 *
 * The header is padded with spaces to a multiple of 8 bytes, and tensors stand by falling size of their
 * elements: so each is aligned to its own, which the format does not ask but readers like.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/link_end.h"
#include "fuzz/safetensors.h"
#include "impl/mla.h"

#define BITS_MOST 64

/* "BF16", [..], [begin, end]. NULL: memory, or a text that is no UTF-8. */
static json_t *describe(const struct mla_safetensor *t, uint64_t begin)
{
    json_t *shape = json_array();
    for (int64_t i = 0; i < t->axes_n; i++)
        if (json_array_append_new(shape, json_integer(t->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", t->dtype, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + t->bytes));
}

/* false: memory, no UTF-8, or there already. */
static bool set_new(json_t *object, const char *key, json_t *value)
{
    if (value != NULL && json_object_get(object, key) == NULL)
        return json_object_set_new(object, key, value) == 0;
    json_decref(value);
    return false;
}

static bool add_texts(json_t *header, const struct mla_safetensors *file)
{
    json_t *texts = json_object();
    if (file->texts_n > 0 && !set_new(header, "__metadata__", texts))
        return false;
    for (size_t i = 0; i < file->texts_n; i++)
        if (!set_new(texts, file->texts[i].key, json_string(file->texts[i].value)))
            return false;
    if (file->texts_n == 0)
        json_decref(texts);
    return true;
}

/* The tensors in the order they are written in. */
static void order(const struct mla_safetensors *file, const struct mla_safetensor **list)
{
    for (int bits = BITS_MOST; bits > 0; bits--)
        for (size_t i = 0; i < file->n; i++)
            if (mla_safetensors_dtype_bits(file->list[i].dtype) == bits)
                *list++ = &file->list[i];
}

/* The header's text (free), or NULL. */
static char *make_header(const struct mla_safetensors *file, const struct mla_safetensor **list)
{
    uint64_t at = 0;
    char *text = NULL;
    json_t *header = json_object();
    bool ok = add_texts(header, file);
    for (size_t i = 0; i < file->n && ok; i++) {
        ok = set_new(header, list[i]->name, describe(list[i], at));
        at += list[i]->bytes;
    }
    if (ok)
        text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

static bool write_file(FILE *f, const char *header, const struct mla_safetensor **list, size_t n)
{
    size_t text_n = strlen(header), header_n = (text_n + 7) / 8 * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)header_n >> (8 * i));
    bool ok = fwrite(length, 1, 8, f) == 8 && fwrite(header, 1, text_n, f) == text_n &&
              fwrite("       ", 1, header_n - text_n, f) == header_n - text_n;
    for (size_t i = 0; i < n && ok; i++)
        ok = list[i]->bytes == 0 || fwrite(list[i]->data, 1, list[i]->bytes, f) == list[i]->bytes;
    return ok && fflush(f) == 0;
}

static const char *wrong_tensor(const struct mla_safetensor *t)
{
    uint64_t bits = (uint64_t)mla_safetensors_dtype_bits(t->dtype);
    if (bits == 0)
        return "has no dtype of the format";
    for (int64_t i = 0; i < t->axes_n; i++)
        if (t->shape[i] < 0 || __builtin_mul_overflow(bits, (uint64_t)t->shape[i], &bits))
            return "has no possible shape";
    return bits == 8 * (uint64_t)t->bytes ? NULL : "has another size than dtype and shape say";
}

static int32_t refuse(char *error, size_t error_bytes, const char *name, const char *why)
{
    snprintf(error, error_bytes, "%.200s: %s", name, why);
    return MLA_ERR_PARAM;
}

/* errno says why. */
static int32_t disk(char *error, size_t error_bytes, const char *name)
{
    refuse(error, error_bytes, name, strerror(errno));
    return MLA_SAFETENSORS_DISK;
}

int32_t mla_safetensors_put(FILE *stream, const struct mla_safetensors *file, char *error,
                            size_t error_bytes)
{
    for (size_t i = 0; i < file->n; i++)
        if (wrong_tensor(&file->list[i]) != NULL)
            return refuse(error, error_bytes, file->list[i].name, wrong_tensor(&file->list[i]));
    const struct mla_safetensor **list = calloc(file->n + 1, sizeof *list);
    if (list == NULL) {
        refuse(error, error_bytes, "header", "out of memory");
        return MLA_ERR_NOMEM;
    }
    order(file, list);
    char *header = make_header(file, list);
    int32_t status = MLA_OK;
    if (header == NULL)
        status = refuse(error, error_bytes, "header",
                        "a name stands there twice, a text is no UTF-8, or memory is short");
    else if (strlen(header) > MLA_SAFETENSORS_HEADER_MAX)
        status = refuse(error, error_bytes, "header", "longer than 16 MiB");
    else if (!write_file(stream, header, list, file->n))
        status = disk(error, error_bytes, "file");
    free(header);
    free(list);
    return status;
}

/* The stream is closed. false: errno says why. */
static bool finish(FILE *stream, const char *beside, const char *path)
{
    mode_t mask = umask(0);
    umask(mask);
    bool ok = fchmod(fileno(stream), 0666 & ~mask) == 0 && fsync(fileno(stream)) == 0;
    int why = errno;
    if (fclose(stream) != 0 && ok)
        return false;
    errno = ok ? errno : why;
    return ok && rename(beside, path) == 0;
}

int32_t mla_safetensors_write(const char *path, const struct mla_safetensors *file, char *error,
                              size_t error_bytes)
{
    char beside[4096], end[4096], why[400];
    if (!mla_link_end(path, end, sizeof end))
        return disk(error, error_bytes, path);
    if ((size_t)snprintf(beside, sizeof beside, "%s.XXXXXX", end) >= sizeof beside)
        return refuse(error, error_bytes, path, "the path is too long");
    struct stat there; /* a device, say: it would be gone */
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return refuse(error, error_bytes, path, "is no regular file");
    int fd = mkstemp(beside);
    if (fd < 0)
        return disk(error, error_bytes, path);
    FILE *stream = fdopen(fd, "wb");
    if (stream == NULL) {
        int32_t failed = disk(error, error_bytes, path);
        close(fd);
        unlink(beside);
        return failed;
    }
    int32_t status = mla_safetensors_put(stream, file, why, sizeof why);
    if (status != MLA_OK) {
        fclose(stream);
    } else if (!finish(stream, beside, end)) {
        snprintf(why, sizeof why, "%s", strerror(errno));
        status = MLA_SAFETENSORS_DISK;
    }
    if (status != MLA_OK) {
        unlink(beside);
        refuse(error, error_bytes, path, why);
    }
    return status;
}
