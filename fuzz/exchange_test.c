/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_test.c - what is exported is the case and says where its data are; results of any layout
 * arrive where the judge looks.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fuzz/exchange_result.h"
#include "fuzz/family.h"
#include "fuzz/judge.h"

static char error[MLA_EXCHANGE_ERROR_MAX];

static struct mla_tensors *make(const struct mla_case *test)
{
    struct mla_tensors *tensors;
    if (mla_tensors_make_plain(test, &tensors, error) != MLA_OK)
        fail_msg("%s", error);
    return tensors;
}

/* ---- valid rows ---- */

/* Is row i listed in "0-31,40"? */
static bool is_listed(const char *text, int64_t i)
{
    while (*text != '\0') {
        char *end;
        int64_t first = strtoll(text, &end, 10), last = first;
        if (*end == '-')
            last = strtoll(end + 1, &end, 10);
        if (i >= first && i <= last)
            return true;
        text = *end == ',' ? end + 1 : end;
    }
    return false;
}

/* The recipe lays NaN under what must not be read, and never makes one: a row is data iff it has none. */
static void check_rows(const struct mla_tensors *t, const struct mla_tensor *tensor)
{
    int64_t shape[4], n = mla_exchange_shape(&t->test, tensor->name, shape);
    int64_t width = shape[n - 1];
    bool by_head = strcmp(tensor->name, "q") == 0;
    int64_t per_query = t->test.op == MLA_OP_SPARSE && tensor->name[0] == 'q' ? shape[2] : 1;
    const uint16_t *row = (const uint16_t *)(const void *)tensor->guard.data;
    char *text = mla_exchange_valid_rows(t, tensor);
    assert_non_null(text);
    for (int64_t i = 0; i < tensor->elements_n / width; i++, row += width) {
        bool is_nan = (row[0] & 0x7fffu) > 0x7f80u;
        int64_t number = by_head ? i % shape[2] : i / per_query;
        if (is_listed(text, number) == is_nan)
            fail_msg("%s.%" PRId64 " row %" PRId64 " of '%s'", tensor->name, tensor->rank, number,
                     text);
    }
    free(text);
}

static void valid_rows_are_those_without_poison(void **state)
{
    (void)state;
    int64_t futures = 0, slots = 0;
    for (uint64_t i = 0; i < 300; i++) {
        struct mla_case test;
        struct mla_rng rng = {mla_number_mix(i), 0};
        mla_case_draw(&test, (enum mla_op)(i % MLA_OP_N), &rng);
        test.poison = MLA_POISON_NAN;
        test.family = mla_family_find("upstream");
        test.region = MLA_REGION_NORMAL;
        test.amount = 0;
        test.put_n = test.set_n = 0;
        mla_case_set_bits(&test, MLA_CASE_BITS_ALL);
        if (mla_case_is_thin(&test))
            continue;
        futures += test.op == MLA_OP_RING && test.has_future;
        slots += test.op == MLA_OP_RING && test.ring.has_slot;
        struct mla_tensors *t = make(&test);
        for (size_t k = 0; k < t->n; k++)
            if (t->list[k].role == MLA_TENSOR_INPUT && t->list[k].element_bytes == 2)
                check_rows(t, &t->list[k]);
        mla_tensors_free(t);
    }
    assert_true(futures > 5 && slots > 5);
}

/* ---- export ---- */

static char path[] = "/tmp/exchange_testXXXXXX";

static void exported_is_the_case(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test;
        struct mla_safetensors file;
        mla_case_init(&test, (enum mla_op)op);
        test.ring.ring_size = 2;
        test.ring.gathered_rows = 64;
        struct mla_tensors *t = make(&test);
        assert_int_equal(mla_exchange_export(t, "a tool", path, error), MLA_OK);
        assert_int_equal(mla_safetensors_read(path, &file, error, sizeof error), MLA_OK);
        assert_int_equal(file.n, op == MLA_OP_RING ? 4 : 5);
        assert_null(mla_exchange_difference(t, &file, error));
        assert_string_equal(mla_safetensors_text(&file, "tool"), "a tool");
        assert_string_equal(
            mla_safetensors_text(&file, op == MLA_OP_RING ? "scale" : "softmax_scale"),
            op == MLA_OP_RING ? "0x1p-3" : "0x1.555556p-5");
        for (size_t i = 0; i < file.n; i++) { /* another byte, dtype, shape, or none */
            struct mla_safetensor *tensor = &file.list[i], was = *tensor;
            uint8_t *byte = file.bytes + (tensor->data - file.bytes) + tensor->bytes - 1;
            *byte ^= 1;
            assert_non_null(mla_exchange_difference(t, &file, error));
            assert_non_null(strstr(error, was.name));
            assert_non_null(strstr(error, "other numbers"));
            *byte ^= 1;
            tensor->dtype = "F16";
            assert_non_null(mla_exchange_difference(t, &file, error));
            assert_non_null(strstr(error, "dtype"));
            *tensor = was;
            tensor->shape[tensor->axes_n - 1]++;
            assert_non_null(mla_exchange_difference(t, &file, error));
            assert_non_null(strstr(error, "shape"));
            *tensor = was;
            tensor->name = (char *)(uintptr_t) "else";
            assert_non_null(mla_exchange_difference(t, &file, error));
            assert_non_null(strstr(error, was.name));
            *tensor = was;
        }
        mla_safetensors_free(&file);
        mla_tensors_free(t);
    }
}

static void refused_calls_are_not_exported(void **state)
{
    (void)state;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.set_n = 1;
    test.set[0] = (struct mla_violation){"queries", 0, "0"};
    struct mla_tensors *t = make(&test);
    assert_int_equal(mla_exchange_export(t, "", path, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "refused"));
    mla_tensors_free(t);
}

/* ---- results ---- */

/* A number for every place of an output, none of them twice: bf16 holds it, f16 does. */
static float code(int64_t i)
{
    return (float)(128 + i % 128) * (float)(1 << (i / 128 % 8)) *
           (i / 1024 % 2 == 0 ? 1.0f : -1.0f);
}

/* A result tensor with room for padding, filled by what a test does with it. */
struct result {
    struct mla_safetensor tensor;
    float *values;
};

static struct result result(const char *name, int64_t axes_n, const int64_t *shape)
{
    struct result r = {
        .tensor = {.name = (char *)(uintptr_t)name, .dtype = "F32", .axes_n = axes_n}};
    int64_t n = 1;
    for (int64_t i = 0; i < axes_n; i++)
        n *= r.tensor.shape[i] = shape[i];
    r.values = malloc((size_t)n * sizeof *r.values);
    assert_non_null(r.values);
    for (int64_t i = 0; i < n; i++)
        r.values[i] = NAN; /* padding must not be looked at */
    r.tensor.data = (const uint8_t *)r.values;
    r.tensor.bytes = (size_t)n * sizeof *r.values;
    return r;
}

static int32_t load(struct mla_tensors *t, const struct result *results, size_t n)
{
    struct mla_safetensor list[8];
    struct mla_safetensors file = {.n = n, .list = list};
    for (size_t i = 0; i < n; i++)
        list[i] = results[i].tensor;
    for (int i = 0; i < MLA_RING_SIZE_MAX; i++) {
        free(t->wide[i]);
        free(t->lse[i]);
        t->wide[i] = t->lse[i] = NULL;
    }
    error[0] = '\0';
    return mla_exchange_result_load(t, &file, error);
}

/* One ring of 2 heads, 64 rows and 32 columns; padded to 3 heads and 96 rows in tiles of 32. */
static void ring_layouts(void **state)
{
    (void)state;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.heads = 2;
    test.ring.q_rows = test.ring.kv_rows = test.ring.gathered_rows = test.ring.logical_n = 64;
    struct mla_tensors *t = make(&test);
    const struct {
        int64_t axes_n, shape[6], heads, rows;
    } layouts[] = {{4, {1, 2, 64, 32}, 2, 64}, {3, {2, 64, 32}, 2, 64},
                   {4, {1, 3, 96, 32}, 3, 96}, {5, {1, 2, 3, 32, 32}, 2, 96},
                   {4, {2, 3, 32, 32}, 2, 96}, {6, {1, 1, 3, 3, 32, 32}, 3, 96},
                   {4, {2, 2, 32, 32}, 2, 64}};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        struct result r = result(i % 2 == 0 ? "out.0" : "out", layouts[i].axes_n, layouts[i].shape);
        for (int64_t h = 0; h < 2; h++)
            for (int64_t row = 0; row < 64; row++)
                for (int64_t c = 0; c < 32; c++)
                    r.values[(h * layouts[i].rows + row) * 32 + c] = code((h * 64 + row) * 32 + c);
        if (load(t, &r, 1) != MLA_OK)
            fail_msg("layout %zu: %s", i, error);
        assert_int_equal(t->out_format, MLA_FORMAT_F32);
        for (int64_t e = 0; e < 2 * 64 * 32; e++) {
            assert_true(t->wide[0][e] == code(e));
            assert_true(mla_number_from_bf16(t->out[0][e]) == code(e));
        }
        free(r.values);
    }
    mla_tensors_free(t);
}

static void sparse_layouts(void **state)
{
    (void)state;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.queries = 3;
    struct mla_tensors *t = make(&test);
    const struct {
        int64_t axes_n, shape[5], heads;
    } layouts[] = {
        {3, {1, 3, 16 * 512}, 16},   {2, {3, 16 * 512}, 16},       {2, {5, 16 * 512}, 16},
        {3, {2, 2, 16 * 512}, 16},   {4, {1, 2, 2, 16 * 512}, 16}, {3, {3, 16, 512}, 16},
        {4, {1, 3, 16, 512}, 16},    {3, {4, 20, 512}, 20},        {4, {2, 2, 16, 512}, 16},
        {5, {1, 1, 3, 17, 512}, 17}, {5, {1, 3, 1, 16, 512}, 16}};
    /* two of what the case has one of: which is meant? */
    struct result twice = result("out", 3, (const int64_t[]){2, 3, 16 * 512});
    assert_int_equal(load(t, &twice, 1), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "2 times [3, 8192]"));
    free(twice.values);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        struct result r = result("out", layouts[i].axes_n, layouts[i].shape);
        for (int64_t q = 0; q < 3; q++)
            for (int64_t h = 0; h < 16; h++)
                for (int64_t c = 0; c < 512; c++)
                    r.values[(q * layouts[i].heads + h) * 512 + c] = code((q * 16 + h) * 512 + c);
        if (load(t, &r, 1) != MLA_OK)
            fail_msg("layout %zu: %s", i, error);
        for (int64_t e = 0; e < 3 * 16 * 512; e++)
            assert_true(t->wide[0][e] == code(e));
        free(r.values);
    }
    mla_tensors_free(t);
}

/* Halves are what they mean. */
static void dtypes(void **state)
{
    (void)state;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_SPARSE);
    struct mla_tensors *t = make(&test);
    struct result r = result("out", 3, (const int64_t[]){1, 1, 16 * 512});
    static const struct {
        uint16_t bits;
        double value;
    } f16[] = {{0x3c00, 1},       {0xc000, -2},       {0x7bff, 65504},     {0x0001, 0x1p-24},
               {0x0400, 0x1p-14}, {0x7c00, INFINITY}, {0xfc00, -INFINITY}, {0x3555, 0.333251953125},
               {0x8000, -0.0}};
    uint16_t *halves = (uint16_t *)(void *)r.values;
    r.tensor.bytes /= 2;
    memset(halves, 0, r.tensor.bytes);
    for (size_t i = 0; i < sizeof f16 / sizeof f16[0]; i++)
        halves[i] = f16[i].bits;
    r.tensor.dtype = "F16";
    assert_int_equal(load(t, &r, 1), MLA_OK);
    assert_int_equal(t->out_format, MLA_FORMAT_F16);
    for (size_t i = 0; i < sizeof f16 / sizeof f16[0]; i++) {
        assert_true((double)t->wide[0][i] == f16[i].value);
        assert_int_equal(signbit(t->wide[0][i]) != 0, f16[i].bits >> 15);
    }
    r.tensor.dtype = "BF16";
    assert_int_equal(load(t, &r, 1), MLA_OK);
    assert_null(t->wide[0]);
    assert_memory_equal(t->sparse.out, halves, r.tensor.bytes);
    r.tensor.dtype = "I16";
    assert_int_equal(load(t, &r, 1), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "I16"));
    free(r.values);
    mla_tensors_free(t);
}

static void statistics(void **state)
{
    (void)state;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.stats = 1;
    struct mla_tensors *t = make(&test);
    struct result r[3] = {result("out", 4, (const int64_t[]){1, 1, 32, 32}),
                          result("stats", 3, (const int64_t[]){1, 1, 128}),
                          result("lse", 2, (const int64_t[]){1, 48})};
    for (int64_t i = 0; i < 32; i++) { /* 64 maxima and 64 sums, of which 32 each are the case's */
        r[1].values[i] = code(i);
        r[1].values[64 + i] = code(100 + i);
        r[2].values[i] = code(200 + i);
    }
    assert_int_equal(load(t, r, 2), MLA_OK);
    for (int64_t i = 0; i < 32; i++) {
        assert_true(t->stats[0][i] == code(i));
        assert_true(t->stats[0][32 + i] == code(100 + i));
    }
    assert_int_equal(load(t, r, 3), MLA_ERR_PARAM); /* both */
    assert_int_equal(load(t, r, 1), MLA_ERR_PARAM); /* neither, but asked for */
    mla_tensors_free(t);
    test.stats = 0;
    t = make(&test);
    assert_int_equal(load(t, r, 2), MLA_ERR_PARAM);
    free(r[1].values);
    r[1] = r[2];
    assert_int_equal(load(t, r, 2), MLA_OK);
    for (int64_t i = 0; i < 32; i++)
        assert_true(t->lse[0][i] == code(200 + i));
    for (int i = 0; i < 2; i++)
        free(r[i].values);
    mla_tensors_free(t);
}

static void wrong_results(void **state)
{
    (void)state;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 2;
    test.ring.gathered_rows = 64;
    struct mla_tensors *t = make(&test);
    struct result r[3] = {result("out.0", 4, (const int64_t[]){1, 1, 32, 32}),
                          result("out.1", 4, (const int64_t[]){1, 1, 32, 32}),
                          result("extra", 1, (const int64_t[]){1})};
    assert_int_equal(load(t, r, 2), MLA_OK);
    assert_int_equal(load(t, r, 1), MLA_ERR_PARAM);
    assert_non_null(strstr(
        error, "no tensor 'out.1', [1, 1, 32, 32]; the file has 'out.0' F32 [1, 1, 32, 32]"));
    assert_int_equal(load(t, r, 3), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "3 tensors, of which 2"));
    r[1].tensor.dtype = "BF16";
    assert_int_equal(load(t, r, 2), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "differs"));
    r[1].tensor.dtype = "F32";
    static const int64_t wrong[][4] = {{1, 1, 31, 32}, {1, 1, 32, 31}, {1, 1, 32, 33},
                                       {1, 1, 16, 32}, {1, 1, 0, 32},  {32, 32, 1, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(r[1].tensor.shape, wrong[i], sizeof wrong[i]);
        if (load(t, r, 2) != MLA_ERR_PARAM)
            fail_msg("shape %zu was taken", i);
        assert_non_null(strstr(error, "out.1"));
    }
    for (int i = 0; i < 3; i++)
        free(r[i].values);
    mla_tensors_free(t);
}

/* All ranks have the log-sum-exp, or none. */
static void a_log_sum_exp_of_some_ranks(void **state)
{
    (void)state;
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.ring_size = 2;
    test.ring.gathered_rows = 64;
    struct mla_tensors *t = make(&test);
    struct result r[4] = {result("out.0", 4, (const int64_t[]){1, 1, 32, 32}),
                          result("out.1", 4, (const int64_t[]){1, 1, 32, 32}),
                          result("lse.0", 3, (const int64_t[]){1, 1, 32}),
                          result("lse.1", 3, (const int64_t[]){1, 1, 32})};
    const struct result last[3] = {r[0], r[1], r[3]};
    assert_int_equal(load(t, r, 4), MLA_OK);
    assert_int_equal(load(t, r, 3), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "no tensor 'lse.1'"));
    assert_int_equal(load(t, last, 3), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "no tensor 'lse.0'"));
    for (int i = 0; i < 4; i++)
        free(r[i].values);
    mla_tensors_free(t);
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
        cmocka_unit_test(valid_rows_are_those_without_poison),
        cmocka_unit_test(exported_is_the_case),
        cmocka_unit_test(refused_calls_are_not_exported),
        cmocka_unit_test(ring_layouts),
        cmocka_unit_test(sparse_layouts),
        cmocka_unit_test(dtypes),
        cmocka_unit_test(statistics),
        cmocka_unit_test(wrong_results),
        cmocka_unit_test(a_log_sum_exp_of_some_ranks),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
