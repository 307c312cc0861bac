/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_test.c - files that break one rule of the format each, and what is written read again.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/safetensors.h"
#include "impl/mla.h"

/* A file of that header and so many bytes of data; *n its length (free). */
static uint8_t *make(const char *header, size_t data_n, size_t *n)
{
    size_t header_n = strlen(header);
    *n = 8 + header_n + data_n;
    uint8_t *bytes = calloc(*n, 1);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(header_n >> (8 * i));
    memcpy(bytes + 8, header, header_n);
    return bytes;
}

static int32_t parse(const char *header, size_t data_n, char error[400])
{
    size_t n;
    struct mla_safetensors file;
    uint8_t *bytes = make(header, data_n, &n);
    int32_t status = mla_safetensors_parse(bytes, n, &file, error, 400);
    if (status == MLA_OK)
        mla_safetensors_free(&file);
    free(bytes);
    return status;
}

#define ONE(dtype, shape, offsets)                                                                 \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                                         \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first "},"                          \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

static const struct {
    const char *header;
    size_t data_n;
    const char *error; /* NULL: it is a file */
} files[] = {
    {"{}", 0, NULL},
    {"{}   ", 0, NULL},
    {ONE("F32", "[]", "[0,4]"), 4, NULL},
    {ONE("F32", "[0,3]", "[0,0]"), 0, NULL},
    {ONE("F4", "[2]", "[0,1]"), 1, NULL},
    {ONE("U8", "[0,4294967296,2147483648]", "[0,0]"), 0, NULL},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, NULL},
    {TWO("[0,4]", "[4,8]"), 8, NULL},
    {TWO("[4,8]", "[0,4]"), 8, NULL},
    {"{\"__metadata__\":{\"k\":\"v\"}}", 0, NULL},
    {"{\"__metadata__\":{}}", 0, NULL},
    {"{ \"a\" : {\"shape\":[1],\"data_offsets\":[0,1],\"dtype\":\"BOOL\"} }", 1, NULL},
    /* the header */
    {"", 0, "must begin with {"},
    {" {}", 0, "must begin with {"},
    {"{}\n", 0, "then only spaces"},
    {"{}\t ", 0, "then only spaces"},
    {"[]", 0, "must begin with {"},
    {"\xef\xbb\xbf{}", 0, "must begin with {"},
    {"{", 0, "must begin with {"},
    {"{\"a\"}", 0, "no valid JSON"},
    {"{} {}", 0, "no valid JSON"},
    {"{\"a\":1,}", 0, "no valid JSON"},
    {"{\"\xff\":1}", 0, "no valid JSON"},
    {"{\"\\u0000\":1}", 0, "no valid JSON"},
    {"{\"a\":[[[[1]]]]}", 0, "nested deeper"},
    {"{\"__metadata__\":{\"k\":\"v\"},\"__metadata__\":{}}", 0, "duplicate"},
    {"{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}}", 0, "duplicate"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
     "duplicate"},
    {"{\"__metadata__\":[]}", 0, "object of strings"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "'k' must be a string"},
    /* a tensor */
    {"{\"a\":1}", 0, "object of dtype"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, "object of dtype"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":1}}", 0,
     "object of dtype"},
    {"{\"a\":{\"dtype\":8,\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "none of the format's"},
    {ONE("F33", "[0]", "[0,0]"), 0, "'F33' is none"},
    {ONE("bf16", "[0]", "[0,0]"), 0, "'bf16' is none"},
    {ONE("U8", "{}", "[0,0]"), 0, "shape must be an array"},
    {ONE("U8", "[-1]", "[0,0]"), 0, "axis 0 must be an integer"},
    {ONE("U8", "[1.0]", "[0,1]"), 1, "axis 0 must be an integer"},
    {ONE("U8", "[\"1\"]", "[0,1]"), 1, "axis 0 must be an integer"},
    {ONE("U8", "[1,true]", "[0,1]"), 1, "axis 1 must be an integer"},
    {ONE("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "17 axes"},
    {ONE("U8", "[9223372036854775808]", "[0,1]"), 1, "no valid JSON"},
    {ONE("U8", "[4294967296,4294967296]", "[0,0]"), 0, "2^64-1 elements"},
    {ONE("U8", "[4294967296,4294967296,0]", "[0,0]"), 0, "2^64-1 elements"},
    {ONE("F64", "[2147483648,2147483648]", "[0,0]"), 0, "2^64-1 bits"},
    {ONE("F4", "[3]", "[0,2]"), 2, "no whole bytes"},
    {ONE("F6_E2M3", "[2]", "[0,2]"), 2, "no whole bytes"},
    {ONE("U8", "[1]", "{}"), 1, "[begin, end]"},
    {ONE("U8", "[1]", "[0]"), 1, "[begin, end]"},
    {ONE("U8", "[1]", "[0,1,1]"), 1, "[begin, end]"},
    {ONE("U8", "[1]", "[-1,0]"), 1, "must be integers"},
    {ONE("U8", "[1]", "[0,1.0]"), 1, "must be integers"},
    {ONE("U8", "[1]", "[1,0]"), 1, "after their end"},
    {ONE("U8", "[2]", "[0,2]"), 1, "ends at byte 2 of 1"},
    {ONE("U8", "[1]", "[9223372036854775806,9223372036854775807]"), 1, "ends at byte"},
    {ONE("F32", "[1]", "[0,3]"), 3, "span 3 bytes, but dtype and shape take 4"},
    {ONE("F32", "[1]", "[0,8]"), 8, "span 8 bytes, but dtype and shape take 4"},
    /* all of them */
    {TWO("[0,4]", "[2,6]"), 6, "overlaps"},
    {TWO("[0,4]", "[0,4]"), 4, "overlaps"},
    {TWO("[0,4]", "[5,9]"), 9, "1 bytes before it belong to none"},
    {ONE("U8", "[1]", "[1,2]"), 2, "1 bytes before it belong to none"},
    {ONE("U8", "[1]", "[0,1]"), 3, "2 bytes at the end"},
    {"{}", 1, "1 bytes at the end"},
};

static void each_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char error[400] = "";
        int32_t status = parse(files[i].header, files[i].data_n, error);
        if (status != (files[i].error == NULL ? MLA_OK : MLA_ERR_PARAM) ||
            (files[i].error != NULL && strstr(error, files[i].error) == NULL))
            fail_msg("%s: status %" PRId32 ", '%s'", files[i].header, status, error);
    }
}

/* Every dtype of the format takes the room it takes. */
static void each_dtype(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t bytes; /* of 8 elements */
    } dtypes[] = {{"F64", 64}, {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F32", 32},
                  {"I32", 32}, {"U32", 32},    {"BF16", 16},   {"F16", 16},    {"I16", 16},
                  {"U16", 16}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"I8", 8},
                  {"U8", 8},   {"BOOL", 8},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        for (size_t wrong = 0; wrong < 3; wrong++) {
            char error[400], header[200];
            size_t n = dtypes[i].bytes + wrong - 1; /* one byte less, right, one more */
            snprintf(header, sizeof header,
                     "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%zu]}}",
                     dtypes[i].name, n);
            int32_t status = parse(header, n, error);
            if (status != (wrong == 1 ? MLA_OK : MLA_ERR_PARAM))
                fail_msg("%s: %s", header, error);
        }
}

/* A long header is read up to our own limit, and no further. */
static void long_headers(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        char error[400] = "";
        size_t n = (size_t)MLA_SAFETENSORS_HEADER_MAX + more;
        char *header = malloc(n + 1);
        assert_non_null(header);
        memset(header, ' ', n);
        memcpy(header, "{}", 2);
        header[n] = '\0';
        int32_t status = parse(header, 0, error);
        free(header);
        assert_int_equal(status, more == 0 ? MLA_OK : MLA_ERR_PARAM);
        assert_true(more == 0 || strstr(error, "more than 16777216") != NULL);
    }
}

static void lengths(void **state)
{
    (void)state;
    char error[400];
    size_t n;
    struct mla_safetensors file;
    uint8_t *bytes = make(ONE("U8", "[3]", "[0,3]"), 3, &n);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(mla_safetensors_parse(bytes, cut, &file, error, sizeof error),
                         MLA_ERR_PARAM);
    for (int i = 0; i < 8; i++) { /* a header longer than the file, and than any file's */
        uint8_t was = bytes[i];
        bytes[i] = 0xff;
        assert_int_equal(mla_safetensors_parse(bytes, n, &file, error, sizeof error),
                         MLA_ERR_PARAM);
        assert_non_null(strstr(error, "a header of"));
        bytes[i] = was;
    }
    assert_int_equal(mla_safetensors_parse(bytes, n, &file, error, sizeof error), MLA_OK);
    mla_safetensors_free(&file);
    free(bytes);
}

/* A terminal is not steered by a name. */
static void names_are_tamed(void **state)
{
    (void)state;
    char error[400];
    assert_int_equal(parse("{\"\\u001b[2J\":1}", 0, error), MLA_ERR_PARAM);
    assert_null(strchr(error, 0x1b));
}

static void too_many(void **state)
{
    (void)state;
    char error[400], *header = malloc(400000), *at = header;
    assert_non_null(header);
    for (int i = 0; i <= MLA_SAFETENSORS_TENSORS_MAX; i++)
        at += sprintf(at, "%c\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                      i == 0 ? '{' : ',', i);
    strcpy(at, "}");
    assert_int_equal(parse(header, 0, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "more than 4096"));
    free(header);
}

static char path[] = "/tmp/safetensors_testXXXXXX";

static struct mla_safetensor small[3] = {
    {"bytes", "U8", 1, {3}, (const uint8_t *)"abc", 3},
    {"halves", "BF16", 2, {1, 2}, (const uint8_t *)"1234", 4},
    {"words", "I32", 0, {0}, (const uint8_t *)"wxyz", 4},
};
static struct mla_safetensors_text texts[2] = {{"case", "a \"line\"\n"}, {"unit", "\xc2\xb5"}};

static void written_is_read(void **state)
{
    (void)state;
    char error[400];
    const struct mla_safetensors all = {.n = 3, .list = small, .texts_n = 2, .texts = texts};
    struct mla_safetensors file;
    assert_int_equal(mla_safetensors_write(path, &all, error, sizeof error), MLA_OK);
    assert_int_equal(mla_safetensors_read(path, &file, error, sizeof error), MLA_OK);
    assert_int_equal(file.n, 3);
    assert_string_equal(file.list[0].name, "words"); /* wide ones first: all are aligned */
    for (size_t i = 0; i < 3; i++) {
        const struct mla_safetensor *t = mla_safetensors_find(&file, small[i].name);
        assert_non_null(t);
        assert_string_equal(t->dtype, small[i].dtype);
        assert_int_equal(t->axes_n, small[i].axes_n);
        assert_memory_equal(t->shape, small[i].shape, (size_t)t->axes_n * sizeof t->shape[0]);
        assert_int_equal(t->bytes, small[i].bytes);
        assert_memory_equal(t->data, small[i].data, t->bytes);
        assert_int_equal(
            (size_t)(t->data - file.bytes) % (size_t)(mla_safetensors_dtype_bits(t->dtype) / 8), 0);
    }
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(mla_safetensors_text(&file, texts[i].key), texts[i].value);
    assert_null(mla_safetensors_text(&file, "nothing"));
    assert_null(mla_safetensors_find(&file, "nothing"));
    mla_safetensors_free(&file);
}

/* What cannot be written leaves the file that was there. */
static void bad_is_not_written(void **state)
{
    (void)state;
    char error[400];
    struct mla_safetensors file;
    struct mla_safetensor twice[2] = {small[0], small[0]}, sized = small[0], typed = small[0];
    struct mla_safetensors_text odd = {"k", "\xff"};
    sized.bytes = 2;
    typed.dtype = "U9";
    const struct mla_safetensors bad[] = {{.n = 2, .list = twice},
                                          {.n = 1, .list = &sized},
                                          {.n = 1, .list = &typed},
                                          {.texts_n = 1, .texts = &odd}};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(mla_safetensors_write(path, &bad[i], error, sizeof error), MLA_ERR_PARAM);
    assert_int_equal(mla_safetensors_write("/tmp/no such folder/x", &(struct mla_safetensors){0},
                                           error, sizeof error),
                     MLA_SAFETENSORS_DISK);
    assert_int_equal(mla_safetensors_read(path, &file, error, sizeof error), MLA_OK);
    assert_int_equal(file.n, 3);
    mla_safetensors_free(&file);
}

/* What others may do with a file is the umask's affair. */
static void the_umask_counts(void **state)
{
    (void)state;
    static const mode_t masks[] = {0077, 0022, 0002};
    char error[400];
    struct stat info;
    const mode_t before = umask(0);
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        umask(masks[i]);
        int32_t status =
            mla_safetensors_write(path, &(struct mla_safetensors){0}, error, sizeof error);
        mode_t after = umask(before);
        assert_int_equal(status, MLA_OK);
        assert_int_equal(after, masks[i]);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0666 & ~masks[i]);
    }
}

/* A pipe or a device is not replaced by a file. */
static void only_files_are_replaced(void **state)
{
    (void)state;
    char error[400], pipe[sizeof path + 8];
    struct stat info;
    snprintf(pipe, sizeof pipe, "%s.pipe", path);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int32_t status = mla_safetensors_write(pipe, &(struct mla_safetensors){0}, error, sizeof error);
    int there = stat(pipe, &info);
    unlink(pipe);
    assert_int_equal(status, MLA_ERR_PARAM);
    assert_non_null(strstr(error, "no regular file"));
    assert_int_equal(there, 0);
    assert_true(S_ISFIFO(info.st_mode));
}

/* Without elements, though the axes before the 0 have 2^63 (the sanitizer of integers would say so). */
static void no_elements(void **state)
{
    (void)state;
    const struct mla_safetensor empty = {.axes_n = 3,
                                         .shape = {INT64_C(1) << 32, INT64_C(1) << 31, 0}};
    assert_int_equal(mla_safetensor_elements(&empty), 0);
}

static void no_files(void **state)
{
    (void)state;
    char error[400];
    struct mla_safetensors file;
    assert_int_equal(mla_safetensors_read("/tmp", &file, error, sizeof error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "no regular file"));
    assert_int_equal(mla_safetensors_read("/tmp/no such file", &file, error, sizeof error),
                     MLA_ERR_PARAM);
    assert_non_null(strstr(error, "/tmp/no such file"));
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule),
        cmocka_unit_test(each_dtype),
        cmocka_unit_test(long_headers),
        cmocka_unit_test(lengths),
        cmocka_unit_test(names_are_tamed),
        cmocka_unit_test(too_many),
        cmocka_unit_test(written_is_read),
        cmocka_unit_test(bad_is_not_written),
        cmocka_unit_test(no_files),
        cmocka_unit_test(the_umask_counts),
        cmocka_unit_test(only_files_are_replaced),
        cmocka_unit_test(no_elements),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
