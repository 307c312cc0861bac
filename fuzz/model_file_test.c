/* SPDX-License-Identifier: Apache-2.0
 *
 * model_file_test.c - a model that is written out in a file is the one that was meant; others are refused.
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

#include "fuzz/model_file.h"
#include "impl/registry.h"

static char path[] = "/tmp/model_file_testXXXXXX", error[MLA_MODEL_ERROR_MAX];

static int32_t read_text(const char *text, struct mla_model_file *model)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return mla_model_file_read(path, MLA_OP_SPARSE, model, error);
}

static void put_depth(FILE *file, const char *name, const struct mla_depth *d)
{
    fprintf(file, "%s = %a, %a %a ,%a, %" PRId32 ", %" PRId32 "\n", name, d->constant, d->per_width,
            d->per_key, d->per_block, d->block_keys, d->most_keys);
}

/* Every member of every built-in kernel's models, written out, is read again. */
static void all_members(void **state)
{
    (void)state;
    size_t n;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&n);
    for (size_t i = 0; i < 2 * n; i++) {
        const struct mla_model *m =
            i % 2 == 0 ? &kernels[i / 2]->ring_model : &kernels[i / 2]->sparse_model;
        struct mla_model_file got;
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(
            file,
            "# a comment\n\n  name=a-b.c_D\t\npad_zero = "
            "1\nlse_roundings=7\nadd_u=%a\nproduct_u=%a\n"
            "score_u=%a\narg_form=%d\narg_roundings=%d\nexp_error=%a\nexp_floor=%a\nexp_slope=%a\n"
            "p_u=%a\np_frame=%d\np_block_keys=%d\nsum_rounded=%d\nalpha_u=%a\nrescale_scale_u=%a\n"
            "acc_u=%a\npv_product_u=%a\ndiv_roundings=%d\nflush=%d\nout_round=%d\nstats_max=%d\n"
            "weights_ignore_v=%d\nacc_stores=%d\nshard_block_keys=%d\n",
            m->add_u, m->product_u, m->score_u, m->arg_form, m->arg_roundings, m->exp_error,
            m->exp_floor, m->exp_slope, m->p_u, m->p_frame, m->p_block_keys, m->sum_rounded,
            m->alpha_u, m->rescale_scale_u, m->acc_u, m->pv_product_u, m->div_roundings, m->flush,
            m->out_round, m->stats_max, m->weights_ignore_v, m->acc_stores, m->shard_block_keys);
        put_depth(file, "score_depth", &m->score_depth);
        put_depth(file, "rescales", &m->rescales);
        put_depth(file, "acc_depth", &m->acc_depth);
        put_depth(file, "acc_extra", &m->acc_extra);
        assert_int_equal(fclose(file), 0);
        if (mla_model_file_read(path, i % 2 == 0 ? MLA_OP_RING : MLA_OP_SPARSE, &got, error) !=
            MLA_OK)
            fail_msg("%s", error);
        assert_memory_equal(&got.model, m, sizeof *m);
        assert_string_equal(got.name, "a-b.c_D");
        assert_int_equal(got.lse_roundings, 7);
        assert_true((got.promises & MLA_PROMISE_PAD_ZERO) != 0);
    }
}

static void a_base_and_names(void **state)
{
    (void)state;
    struct mla_model_file got, base;
    assert_int_equal(mla_model_of_kernel("plain-f32", MLA_OP_SPARSE, &base, error), MLA_OK);
    assert_int_equal(read_text("base = plain-f32\nexp_error = 0x1p-20\narg_form = mixed\n"
                               "out_round = truncate\nstats_max=other\np_frame=unknown\n",
                               &got),
                     MLA_OK);
    base.model.exp_error = 0x1p-20;
    base.model.arg_form = MLA_ARG_MIXED;
    base.model.out_round = MLA_OUT_TRUNCATE;
    base.model.stats_max = MLA_STATS_OTHER;
    base.model.p_frame = MLA_P_FRAME_UNKNOWN;
    assert_memory_equal(&got.model, &base.model, sizeof base.model);
    assert_string_equal(got.name, "");
    assert_int_equal(got.promises & MLA_PROMISE_PAD_ZERO, 0);
    assert_int_equal(got.lse_roundings, MLA_LSE_ROUNDINGS);
}

/* Who judges by a kernel's name holds results to what it promises of rows without keys. */
static void a_kernel_by_its_name(void **state)
{
    (void)state;
    size_t n;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&n);
    for (size_t i = 0; i < n; i++) {
        struct mla_model_file got;
        if (kernels[i]->ring == NULL)
            continue;
        if (mla_model_of_kernel(kernels[i]->name, MLA_OP_RING, &got, error) != MLA_OK)
            fail_msg("%s", error);
        assert_memory_equal(&got.model, &kernels[i]->ring_model, sizeof got.model);
        assert_string_equal(got.name, kernels[i]->name);
        assert_int_equal(got.promises & MLA_PROMISE_PAD_ZERO,
                         kernels[i]->promises & MLA_PROMISE_PAD_ZERO);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"add_u\n", ":1: 'add_u': must be key = value"},
        {"\nadd_v = 1\n", ":2: 'add_v': no such key"},
        {"add_u = 0\nadd_u = 0\n", ":2: add_u: given twice"},
        {"add_u = x\n", "must be a finite number"},
        {"add_u = 1x\n", "must be a finite number"},
        {"add_u = nan\n", "must be a finite number"},
        {"add_u = \n", "must be a finite number"},
        {"add_u = 2\n", "an impossible model: add_u"},
        {"div_roundings = -1\n", "must be an integer"},
        {"div_roundings = 1.0\n", "must be an integer"},
        {"score_depth = 1, 2, 3\n", "must be constant"},
        {"score_depth = 1, 2, 3, 4, 5.5, 0\n", "must be constant"},
        {"score_depth = 0, 1, 0, 0, 0, 0, 0\n", "must be constant"},
        {"score_depth = 0, 0, 0, 0, 1e300, 0\n", "must be constant"},
        {"score_depth = 0, 0, 0, 0, 0, -1\n", "must be constant"},
        {"lse_roundings = 1001\n", ":1: lse_roundings = '1001': must be an integer in 0 .. 1000"},
        {"lse_empty = 0.0\n", "lse_empty = '0.0': must be minus-inf or plus-inf"},
        {"lse_empty = inf\n", "must be minus-inf or plus-inf"},
        {"arg_form = sideways\n", "must be difference, scaled or mixed"},
        {"arg_form = 3\n", "must be difference, scaled or mixed"},
        {"pad_zero = 2\n", "must be 0 or 1"},
        {"name = a b\n", "must be letters"},
        {"base = nobody\n", "no such kernel"},
        {"base = *\n", "matches"},
        {"add_u = 0\nbase = scalar\n", "base must come before add_u"},
    };
    struct mla_model_file got;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (read_text(bad[i].text, &got) != MLA_ERR_PARAM || strstr(error, bad[i].error) == NULL)
            fail_msg("%s: '%s'", bad[i].text, error);
    assert_int_equal(mla_model_file_read("/tmp/no such file", MLA_OP_RING, &got, error),
                     MLA_ERR_PARAM);
    assert_int_equal(mla_model_file_read("/tmp", MLA_OP_RING, &got, error), MLA_ERR_PARAM);
}

/* What is no plain text of a sensible size is refused by a word, and nothing is waited for. */
static void odd_files(void **state)
{
    (void)state;
    struct mla_model_file got;
    char pipe[sizeof path + 8];
    static const struct {
        const char *bytes;
        size_t n;
        const char *error;
    } odd[] = {
        {"add_u = 0\0x\n", 12, "holds a NUL byte"},
        {"\0", 1, "holds a NUL byte"},
        {"\xef\xbb\xbf"
         "add_u = 0\n",
         13, "begins with a byte-order mark"},
    };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(odd[i].bytes, 1, odd[i].n, file), odd[i].n);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(mla_model_file_read(path, MLA_OP_RING, &got, error), MLA_ERR_PARAM);
        if (strstr(error, odd[i].error) == NULL || strstr(error, path) == NULL)
            fail_msg("%zu: '%s'", i, error);
    }
    assert_int_equal(truncate(path, INT64_C(1) << 36), 0); /* sparse: takes no disk */
    assert_int_equal(mla_model_file_read(path, MLA_OP_RING, &got, error), MLA_ERR_PARAM);
    assert_non_null(strstr(error, "68719476736 bytes, more than 65536"));
    snprintf(pipe, sizeof pipe, "%s.pipe", path);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int32_t status = mla_model_file_read(pipe, MLA_OP_RING, &got, error);
    unlink(pipe);
    assert_int_equal(status, MLA_ERR_PARAM);
    assert_non_null(strstr(error, "no regular file"));
    static const char *const devices[] = {"/dev/zero", "/dev/null", "/tmp"};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        assert_int_equal(mla_model_file_read(devices[i], MLA_OP_RING, &got, error), MLA_ERR_PARAM);
        assert_non_null(strstr(error, "no regular file"));
    }
}

/* Lines may end as in DOS, the last one not at all, and be long. */
static void plain_texts(void **state)
{
    (void)state;
    struct mla_model_file got;
    char text[2000] = "name = a\r\nlse_empty = plus-inf\r\nlse_roundings = 1000\r\n#";
    size_t n = strlen(text);
    memset(text + n, 'x', 1200);
    strcpy(text + n + 1200, "\npad_zero = 1");
    assert_int_equal(read_text(text, &got), MLA_OK);
    assert_string_equal(got.name, "a");
    assert_int_equal(got.lse_empty, MLA_LSE_EMPTY_PLUS_INF);
    assert_int_equal(got.lse_roundings, 1000);
    assert_true((got.promises & MLA_PROMISE_PAD_ZERO) != 0);
    assert_int_equal(read_text("lse_empty = minus-inf\n", &got), MLA_OK);
    assert_int_equal(got.lse_empty, MLA_LSE_EMPTY_MINUS_INF);
    assert_int_equal(read_text("", &got), MLA_OK);
    assert_int_equal(got.lse_empty, MLA_LSE_EMPTY_MINUS_INF);
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
        cmocka_unit_test(all_members),
        cmocka_unit_test(a_base_and_names),
        cmocka_unit_test(a_kernel_by_its_name),
        cmocka_unit_test(refusals),
        cmocka_unit_test(odd_files),
        cmocka_unit_test(plain_texts),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
