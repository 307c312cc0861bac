/* SPDX-License-Identifier: Apache-2.0
 *
 * output_hash_test.c - every bit of every output counts, but for which NaN it is; nothing else does.
 */
#include "fuzz/output_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* after setjmp, stdarg, stddef, stdint */
#include <cmocka.h>

#include "fuzz/judge.h"
#include "fuzz/kernels.h"

static const char line[] =
    "ring v=1 R=2 B=1 H=2 Nq=32 Nk=32 Bk=1 G=64 Bg=1 DH=64 DV=32 L=40 scale=- balanced=0 slot=- "
    "P=- "
    "topology=ring links=1 q_chunk=32 k_chunk=32 threads=1 family=upstream region=normal amount=0 "
    "poison=noise future=- stats=1 seed=5 rows=4 row_seed=1 slow=0 set=- put=-";

/* Outputs hold zeros: what they are filled with before a call is NaN. */
static struct mla_tensors *make(void)
{
    struct mla_case test;
    struct mla_tensors *tensors;
    char error[MLA_CASE_ERROR_MAX];
    assert_int_equal(mla_case_parse(line, strlen(line), &test, error), MLA_OK);
    assert_int_equal(mla_tensors_make(&test, 0, &tensors, error), MLA_OK);
    for (size_t i = 0; i < tensors->n; i++)
        if (tensors->list[i].role == MLA_TENSOR_OUTPUT)
            memset(tensors->list[i].guard.data, 0, tensors->list[i].guard.bytes);
    return tensors;
}

/* Any bit of any output, the last element of the last rank's statistics too. */
static void bits_count(void **state)
{
    (void)state;
    struct mla_tensors *t = make();
    int64_t hash = mla_output_hash(t);
    assert_true(hash > 0 && hash < INT64_C(1) << 48);
    assert_int_equal(mla_output_hash(t), hash);
    for (size_t i = 0; i < t->n; i++) {
        struct mla_tensor *tensor = &t->list[i];
        size_t bytes = (size_t)tensor->elements_n * tensor->element_bytes;
        for (size_t b = 0; b < bytes; b += bytes / 7 + 1) {
            if (tensor->role == MLA_TENSOR_INPUT)
                continue;
            tensor->guard.data[b] ^= 1;
            assert_int_equal(mla_output_hash(t) == hash, tensor->role != MLA_TENSOR_OUTPUT);
            tensor->guard.data[b] ^= 1;
        }
    }
    assert_int_equal(mla_output_hash(t), hash);
    mla_tensors_free(t);
}

static void one_nan(void **state)
{
    (void)state;
    struct mla_tensors *t = make();
    uint16_t *out = t->out[1];
    float *stats = t->stats[0];
    uint32_t nans[2] = {0x7fc00000u, 0xff800001u};
    int64_t hashes[4];
    for (int i = 0; i < 2; i++) {
        out[3] = i == 0 ? 0x7fc0 : 0xff81;
        memcpy(stats, &nans[i], sizeof nans[i]);
        hashes[i] = mla_output_hash(t);
    }
    out[3] = 0x7f80; /* Inf is none */
    hashes[2] = mla_output_hash(t);
    out[3] = 0x8000; /* nor is -0 like +0: these bits are a result */
    hashes[3] = mla_output_hash(t);
    out[3] = 0;
    assert_int_equal(hashes[0], hashes[1]);
    assert_int_not_equal(hashes[1], hashes[2]);
    assert_int_not_equal(hashes[3], mla_output_hash(t));
    mla_tensors_free(t);
}

/* The judge gives it when asked, the same for the same call; of another kernel's outputs another one. */
static int64_t judged(const char *spec, bool ask, enum mla_verdict_kind due)
{
    static struct mla_kernel_list kernels;
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_verdict verdict;
    char error[1024];
    const struct mla_judge_options options = {.oracle_threads = 1, .output_hash = ask};
    kernels.n = 0;
    assert_int_equal(mla_kernels_add(&kernels, spec, error, sizeof error), MLA_OK);
    assert_int_equal(mla_case_parse(line, strlen(line), &test, error), MLA_OK);
    assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
    mla_subject_judge(subject, kernels.list[0].kernel, &options, &verdict);
    mla_subject_free(subject);
    assert_int_equal(verdict.kind, due);
    return verdict.output_hash;
}

static void judge_keeps_it(void **state)
{
    (void)state;
    int64_t hash = judged("scalar", true, MLA_VERDICT_PASS);
    assert_true(hash > 0);
    assert_int_equal(judged("scalar", true, MLA_VERDICT_PASS), hash);
    assert_int_equal(judged("scalar", false, MLA_VERDICT_PASS), 0);
    assert_int_not_equal(judged("emulate-nki", true, MLA_VERDICT_PASS), hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_count),
        cmocka_unit_test(one_nan),
        cmocka_unit_test(judge_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
