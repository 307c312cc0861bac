/* SPDX-License-Identifier: Apache-2.0
 *
 * import_test.c - what comes in is what was meant: numbers, parameters, and lists with padding.
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

#include "fuzz/exchange.h"
#include "fuzz/import.h"
#include "oracle/visible.h"

static char folder[] = "/tmp/import_testXXXXXX", path[64], error[MLA_IMPORT_ERROR_MAX];

static const struct mla_import_options plain, masked = {.masked = true};

static struct mla_tensors *tensors_of(const struct mla_case *test)
{
    struct mla_tensors *tensors;
    if (mla_tensors_make_plain(test, &tensors, error) != MLA_OK)
        fail_msg("%s", error);
    return tensors;
}

/* ---- round trip ---- */

/* An exported case comes back with the same numbers for the same call; lists come back flat. */
static void exported_cases_come_back(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 60; i++) {
        struct mla_case test, again;
        struct mla_safetensors file;
        struct mla_rng rng = {mla_number_mix(i), 0};
        mla_case_draw(&test, (enum mla_op)(i % MLA_OP_N), &rng);
        test.set_n = 0;
        test.sparse.topk_tiled = 0;
        if (mla_case_is_thin(&test))
            continue;
        struct mla_tensors *t = tensors_of(&test), *u;
        assert_int_equal(mla_exchange_export(t, "", path, error), MLA_OK);
        assert_int_equal(mla_safetensors_read(path, &file, error, sizeof error), MLA_OK);
        if (mla_import(&file, &plain, &again, error) != MLA_OK)
            fail_msg("%s", error);
        u = tensors_of(&again);
        assert_null(mla_exchange_difference(u, &file, error));
        assert_true(mla_case_scale(&again) == mla_case_scale(&test));
        /* all else of the call: pointers apart, and what flags switch off */
        again.ring.scale = test.ring.scale;
        assert_memory_equal(&again.ring, &test.ring, sizeof test.ring);
        if (test.op == MLA_OP_SPARSE) {
            again.sparse.topk = test.sparse.dense ? test.sparse.topk : again.sparse.topk;
            assert_int_equal(again.sparse.queries, test.sparse.queries);
            assert_int_equal(again.sparse.keys, test.sparse.keys);
            assert_int_equal(again.sparse.topk, test.sparse.topk);
            assert_int_equal(again.sparse.has_q_pos_offset, test.sparse.has_q_pos_offset);
            assert_int_equal(again.sparse.q_pos_offset, test.sparse.q_pos_offset);
            assert_int_equal(again.sparse.out_order, test.sparse.out_order);
        }
        mla_safetensors_free(&file);
        mla_tensors_free(t);
        mla_tensors_free(u);
    }
}

/* Of many rows some are judged, counted over all ranks: 2 x 9 x 64 here. */
static void many_rows_are_sampled(void **state)
{
    static const char line[] =
        "ring v=1 R=2 B=1 H=%d Nq=64 Nk=64 Bk=1 G=128 Bg=1 DH=64 DV=32 L=128 scale=- balanced=0 "
        "slot=- P=- topology=ring links=1 q_chunk=32 k_chunk=32 threads=0 family=upstream "
        "region=normal amount=0 poison=nan future=- stats=0 seed=1 rows=0 row_seed=1 slow=0 set=- "
        "put=-";
    (void)state;
    for (int heads = 8; heads <= 9; heads++) {
        char text[MLA_CASE_LINE_MAX];
        struct mla_case test, again;
        struct mla_safetensors file;
        snprintf(text, sizeof text, line, heads);
        assert_int_equal(mla_case_parse(text, strlen(text), &test, error), MLA_OK);
        struct mla_tensors *t = tensors_of(&test);
        assert_int_equal(mla_exchange_export(t, "", path, error), MLA_OK);
        assert_int_equal(mla_safetensors_read(path, &file, error, sizeof error), MLA_OK);
        assert_int_equal(mla_import(&file, &plain, &again, error), MLA_OK);
        assert_int_equal(again.rows, heads == 8 ? 0 : 256);
        mla_safetensors_free(&file);
        mla_tensors_free(t);
    }
}

/* ---- files made by hand ---- */

#define S    3
#define KEYS 10
#define H    16
#define WIDE (MLA_LATENT + 4)
#define K    6

static uint16_t query[S * H * WIDE], cache[KEYS * WIDE];
static float cache_f32[KEYS * WIDE];
static int32_t lists[S * K], lengths[S];
static struct mla_safetensor made[8];
static struct mla_safetensors_text texts[4];
static struct mla_safetensors file;

static void add(const char *name, const char *dtype, const void *data, size_t bytes, int64_t axes_n,
                int64_t a, int64_t b, int64_t c)
{
    made[file.n++] =
        (struct mla_safetensor){(char *)(uintptr_t)name, dtype, axes_n, {a, b, c}, data, bytes};
}

/* Three queries of 16 heads, ten cache rows of latent and RoPE in one tensor, as FlashMLA has them. */
static void make(void)
{
    static const int32_t entries[S * K] = {3,  -1, 9,  3,  10, 2147483647, /* 3, 9, 3 */
                                           -1, -1, 12, -5, -1, -1,         /* none */
                                           0,  1,  2,  3,  4,  5};         /* 0, 1: of length 2 */
    memset(&file, 0, sizeof file);
    memcpy(lists, entries, sizeof lists);
    lengths[0] = lengths[1] = K;
    lengths[2] = 2;
    for (size_t i = 0; i < S * H * WIDE; i++)
        query[i] = (uint16_t)(0x3f00 + i % 251);
    for (size_t i = 0; i < KEYS * WIDE; i++) {
        cache[i] = (uint16_t)(0x3e00 + i % 509);
        cache_f32[i] = mla_number_from_bf16(cache[i]);
    }
    file.list = made;
    file.texts = texts;
    file.texts_n = 1;
    texts[0] = (struct mla_safetensors_text){(char *)(uintptr_t) "softmax_scale",
                                             (char *)(uintptr_t) "0.25"};
    add("q", "BF16", query, sizeof query, 3, S, H, WIDE);
    add("kv", "BF16", cache, sizeof cache, 2, KEYS, WIDE, 0);
    add("indices", "I32", lists, sizeof lists, 3, S, 1, K);
    add("topk_length", "I32", lengths, sizeof lengths, 1, S, 0, 0);
}

static void keys_are(const struct mla_tensors *t, int64_t row, int64_t n, const int64_t *due)
{
    struct mla_oracle_visible visible;
    assert_int_equal(mla_oracle_visible_sparse(&t->sparse, row, &visible), MLA_OK);
    assert_int_equal(visible.keys_n, n);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(visible.keys[i].row, due[i]);
    mla_oracle_visible_free(&visible);
}

static void check_flash(const struct mla_case *test)
{
    struct mla_tensors *t = tensors_of(test);
    assert_int_equal(test->sparse.rope, 4);
    assert_int_equal(test->sparse.out_order, MLA_OUT_NATURAL);
    assert_true(test->sparse.softmax_scale == 0.25f);
    keys_are(t, 0, 3, (const int64_t[]){3, 9, 3});
    keys_are(t, 1, 0, NULL);
    keys_are(t, 2, 2, (const int64_t[]){0, 1});
    for (int64_t r = 0; r < S * H; r++) {
        assert_memory_equal(t->sparse.q_lift + r * 512, query + r * WIDE, 1024);
        assert_memory_equal(t->sparse.q_pe + r * 4, query + r * WIDE + 512, 8);
    }
    for (int64_t r = 0; r < KEYS; r++) {
        assert_memory_equal(t->sparse.c_kv + r * 512, cache + r * WIDE, 1024);
        assert_memory_equal(t->sparse.k_pe + r * 4, cache + r * WIDE + 512, 8);
    }
    for (int64_t i = KEYS * 512; i < test->sparse.keys * 512; i++)
        assert_true((t->sparse.c_kv[i] & 0x7fff) > 0x7f80);
    mla_tensors_free(t);
}

static void padding_is_no_key(void **state)
{
    (void)state;
    struct mla_case test, same;
    make();
    assert_int_equal(mla_import(&file, &masked, &test, error), MLA_OK);
    check_flash(&test);
    /* a dequantised cache in float32 is the same case, its pages counted through */
    made[1] =
        (struct mla_safetensor){(char *)(uintptr_t) "kv",   "F32",           3, {KEYS / 2, 2, WIDE},
                                (const uint8_t *)cache_f32, sizeof cache_f32};
    assert_int_equal(mla_import(&file, &masked, &same, error), MLA_OK);
    assert_string_equal(test.data, same.data);
    cache_f32[17] += 0x1p-20f;
    assert_int_equal(mla_import(&file, &masked, &same, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "tensor 'kv': element 17"));
}

/* The file's own q_pos_offset drops keys beside the padding. */
static void padding_and_an_offset(void **state)
{
    (void)state;
    struct mla_case test;
    const char *params[] = {"q_pos_offset=3"};
    const struct mla_import_options options = {params, 1, true};
    make();
    assert_int_equal(mla_import(&file, &options, &test, error), MLA_OK);
    struct mla_tensors *t = tensors_of(&test);
    keys_are(t, 0, 2, (const int64_t[]){3, 3});
    keys_are(t, 2, 2, (const int64_t[]){0, 1});
    mla_tensors_free(t);
}

static void with_params(const char *param, const char *names)
{
    struct mla_case test;
    const char *params[] = {param};
    const struct mla_import_options options = {params, 1, true};
    assert_int_equal(mla_import(&file, &options, &test, error), MLA_ERR_PARAM);
    if (strstr(error, names) == NULL)
        fail_msg("%s: '%s'", param, error);
}

static void refused(const struct mla_import_options *options, const char *names)
{
    struct mla_case test;
    assert_int_equal(mla_import(&file, options, &test, error), MLA_ERR_PARAM);
    if (strstr(error, names) == NULL)
        fail_msg("'%s' does not name '%s'", error, names);
    make();
}

static void refusals(void **state)
{
    (void)state;
    make();
    with_params("softmax_scale", "NAME=VALUE");
    with_params("queries=3", "NAME=VALUE");
    with_params("softmax_scale=x", "softmax_scale = 'x'");
    with_params("softmax_scale=-1", "softmax_scale");
    with_params("out_order=2", "out_order");
    file.n = 3; /* no topk_length */
    refused(&plain, "entry 1 = -1: names no row");
    refused(&plain, "only with --pad-index masked");
    file.texts_n = 0;
    refused(&masked, "softmax_scale is missing");
    lengths[1] = K + 1;
    refused(&masked, "topk_length of row 1");
    for (int i = 0; i < S * K; i++)
        lists[i] = 0;
    file.n = 3;
    refused(&plain, "multiple of 128");
    made[2].dtype = "F32";
    refused(&masked, "must be I32");
    made[0].dtype = "I16";
    refused(&masked, "tensor 'q': dtype I16");
    made[0].name = (char *)(uintptr_t) "queries";
    refused(&masked, "'q_lift' and 'q_pe', or 'q'");
    made[1].shape[1] = 500;
    made[1].bytes = KEYS * 1000;
    refused(&masked, "tensor 'kv': the last axis");
    made[1].shape[1] = WIDE - 1;
    refused(&masked, "a RoPE width of 3");
    made[0].shape[1] = 0;
    refused(&masked, "must not be empty");
    add("extra", "U8", cache, 1, 0, 0, 0, 0);
    refused(&masked, "tensor 'extra': is none");
    texts[file.texts_n++] =
        (struct mla_safetensors_text){(char *)(uintptr_t) "op", (char *)(uintptr_t) "ring"};
    refused(&masked, "metadata op = 'ring'");
    texts[file.texts_n++] =
        (struct mla_safetensors_text){(char *)(uintptr_t) "dense", (char *)(uintptr_t) "1"};
    refused(&masked, "dense");
}

static void a_parameter_given_twice(void **state)
{
    (void)state;
    const char *params[] = {"softmax_scale=0.5", "out_order=1", "softmax_scale=0.25"};
    const struct mla_import_options options = {params, 3, true};
    make();
    refused(&options, "--param 'softmax_scale=0.25': given twice");
}

/* A tensor without axes has no last one. */
static void scalars_are_refused(void **state)
{
    (void)state;
    make();
    made[0] = (struct mla_safetensor){(char *)(uintptr_t) "q", "BF16",         0, {0},
                                      (const uint8_t *)query,  sizeof query[0]};
    refused(&masked, "tensor 'q': the last axis");
    made[1] = (struct mla_safetensor){(char *)(uintptr_t) "c_kv", "BF16",         0, {0},
                                      (const uint8_t *)cache,     sizeof cache[0]};
    add("k_pe", "BF16", cache, KEYS * 4 * sizeof cache[0], 2, KEYS, 4, 0);
    refused(&masked, "tensor 'c_kv': the last axis");
}

/* ---- the file of a case ---- */

/* A process of the same number, in another container, may be writing too. */
static void others_of_this_number_do_not_matter(void **state)
{
    (void)state;
    struct mla_case test;
    char name[128];
    make();
    snprintf(name, sizeof name, "%s/import-%jd.safetensors", folder, (intmax_t)getpid());
    assert_int_equal(mkdir(name, 0700), 0);
    int32_t status = mla_import(&file, &masked, &test, error);
    assert_int_equal(rmdir(name), 0);
    assert_int_equal(status, MLA_OK);
}

static void changed_files_are_noticed(void **state)
{
    (void)state;
    struct mla_case test;
    struct mla_tensors *t;
    char name[128];
    make();
    assert_int_equal(mla_import(&file, &masked, &test, error), MLA_OK);
    snprintf(name, sizeof name, "%s/%s.safetensors", folder, test.data);
    struct mla_case other = test; /* another shape than the file's */
    other.sparse.keys++;
    assert_int_equal(mla_tensors_make_plain(&other, &t, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "tensor 'c_kv'"));
    FILE *f = fopen(name, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, -1, SEEK_END), 0);
    assert_int_equal(fputc(0x55, f), 0x55);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(mla_tensors_make_plain(&test, &t, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "was changed"));
    assert_int_equal(unlink(name), 0);
    assert_int_equal(mla_tensors_make_plain(&test, &t, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "No such file"));
}

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL || setenv("MLACHECK_DATA", folder, 1) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/exported", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exported_cases_come_back),
        cmocka_unit_test(many_rows_are_sampled),
        cmocka_unit_test(padding_is_no_key),
        cmocka_unit_test(padding_and_an_offset),
        cmocka_unit_test(refusals),
        cmocka_unit_test(changed_files_are_noticed),
        cmocka_unit_test(a_parameter_given_twice),
        cmocka_unit_test(scalars_are_refused),
        cmocka_unit_test(others_of_this_number_do_not_matter),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
