/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16_agree_test.c - where the kernels with bf16 weights must give the bits of the float32 one.
 *
 * scalar keeps its weights in float32, avx2 and avx512bf16 round them to bf16: on most data their
 * outputs differ, and may. Two places where they may not:
 *
 *   exact data   Every operation is exact in both, up to the division, which then has the same
 *                operands. Scores, small integers, are equal, so that all weights are exp(0) = 1 and the
 *                sums are sums of integers below 2^24; or one key stands so far above all others that
 *                their weights are 0 (family exact says by how much). All output bits are equal, but for
 *                the signs of zeros.
 *   one value    An output element for which the oracle accepts one bf16 value only under scalar's
 *                model, and one only under the other's. Each kernel must then give its own; where
 *                the two are the same value, the kernels must agree.
 *
 * How many elements these are is printed; a case without any fails, and so do cases of ordinary data
 * in none of which the two kernels differ: that would be one kernel under two names.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/call.h"
#include "fuzz/judge_internal.h"
#include "fuzz/tensors.h"
#include "impl/registry.h"

#define RING(seed, family, region, amount)                                                         \
    "ring v=1 R=2 B=1 H=2 Nq=288 Nk=288 Bk=1 G=576 Bg=1 DH=576 DV=512 L=570 scale=0x1.14f5b8p-3 "  \
    "balanced=0 slot=- P=- topology=ring links=2 q_chunk=64 k_chunk=96 threads=2 family=" family   \
    " region=" region " amount=" amount " poison=nan future=- stats=1 seed=" seed                  \
    " rows=12 row_seed=1 slow=0 set=- put=-"
#define SPARSE(seed, family, region, amount)                                                       \
    "sparse v=1 S=3 S_kv=900 H=16 Rr=64 K=640 tiled=1 dense=0 offset=- order=mx4 cores=1 "         \
    "threads=2 scale=0x1.555556p-5 family=" family " region=" region " amount=" amount             \
    " indices=uniform poison=nan stats=1 seed=" seed " rows=12 row_seed=1 slow=0 set=- put=-"

static const char *const exact[] = {
    RING("11", "exact", "flat", "0"),   RING("12", "exact", "flat", "4"),
    RING("13", "exact", "select", "0"), SPARSE("14", "exact", "flat", "0"),
    SPARSE("15", "exact", "flat", "4"), SPARSE("16", "exact", "select", "0"),
};

static const char *const ordinary[] = {
    RING("21", "upstream", "normal", "0"), RING("22", "profile", "flat", "1"),
    RING("23", "profile", "rising", "4"),  SPARSE("24", "upstream", "normal", "0"),
    SPARSE("25", "profile", "flat", "1"),  SPARSE("26", "profile", "rising", "4"),
};

static const char *const names[] = {"avx2", "avx512bf16"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct mla_tensors *run(const struct mla_kernel *kernel, const char *line)
{
    struct mla_case test;
    struct mla_tensors *tensors = NULL;
    struct mla_call call;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_case_parse(line, strlen(line), &test, error) != MLA_OK ||
        mla_case_problem(&test, INT64_MAX, error) != NULL ||
        mla_tensors_make(&test, 0, &tensors, error) != MLA_OK)
        fail_msg("%s: %s", line, error);
    mla_call_make(kernel, tensors, 0, &call);
    assert_int_equal(call.status, MLA_OK);
    return tensors;
}

/* A kernel with bf16 weights that is in this build and can run here, or NULL. */
static const struct mla_kernel *kernel_here(const char *name)
{
    const struct mla_kernel *kernel = mla_registry_find(name);
    if (kernel != NULL && (kernel->usable == NULL || kernel->usable()))
        return kernel;
    printf("%s: not on this machine, skipped\n", name);
    return NULL;
}

/* ---- exact data ---- */

static bool is_zero(const struct mla_tensor *tensor, int64_t element)
{
    uint32_t bits = 0;
    memcpy(&bits, tensor->guard.data + (size_t)element * tensor->element_bytes,
           tensor->element_bytes);
    return bits == 0 || bits == 1u << (8 * tensor->element_bytes - 1);
}

/* Elements of all outputs, statistics included. Their bits must be equal, or both be zeros: what
 * sign the sum of zeros has depends on which zeros were added. */
static int64_t expect_equal(const struct mla_tensors *a, const struct mla_tensors *b)
{
    int64_t elements_n = 0;
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct mla_tensor *from = &a->list[i], *with = &b->list[i];
        size_t bytes = from->element_bytes;
        for (int64_t e = 0; from->role == MLA_TENSOR_OUTPUT && e < from->elements_n; e++) {
            size_t at = (size_t)e * bytes;
            if (memcmp(from->guard.data + at, with->guard.data + at, bytes) != 0 &&
                !(is_zero(from, e) && is_zero(with, e)))
                fail_msg("seed %" PRIu64 ": %s, rank %" PRId64 ", element %" PRId64 " differs",
                         a->test.seed, from->name, from->rank, e);
            elements_n++;
        }
    }
    return elements_n;
}

static void test_exact_data(void **state)
{
    int kernels_n = 0;
    (void)state;
    for (size_t k = 0; k < COUNT(names); k++) {
        const struct mla_kernel *kernel = kernel_here(names[k]);
        int64_t elements_n = 0;
        if (kernel == NULL)
            continue;
        for (size_t i = 0; i < COUNT(exact); i++) {
            struct mla_tensors *plain = run(mla_registry_find("scalar"), exact[i]);
            struct mla_tensors *narrow = run(kernel, exact[i]);
            int64_t n = expect_equal(plain, narrow);
            assert_true(n > 0);
            elements_n += n;
            mla_tensors_free(narrow);
            mla_tensors_free(plain);
        }
        printf("%s: %" PRId64 " elements of exact data equal scalar's\n", kernel->name, elements_n);
        kernels_n++;
    }
    if (kernels_n == 0)
        skip();
}

/* ---- one value ---- */

struct counts {
    int64_t elements, single_both, same, different, outputs_differ;
};

static uint16_t output(const struct mla_tensors *t, struct mla_row row, int64_t column)
{
    const uint16_t *out = t->test.op == MLA_OP_RING ? t->out[row.rank] : t->sparse.out;
    return out[mla_judge_place(t, row, column)];
}

static void expect_only(const struct mla_kernel *kernel, const struct mla_tensors *t,
                        struct mla_row row, int64_t column, const struct mla_bound *bound)
{
    double got = (double)mla_number_from_bf16(output(t, row, column));
    if (!(got == (double)bound->lo))
        fail_msg("%s seed %" PRIu64 " rank %" PRId64 " head %" PRId64 " row %" PRId64
                 " column %" PRId64 " is %a, can only be %a",
                 kernel->name, t->test.seed, row.rank, row.head, row.row, column, got,
                 (double)bound->lo);
}

static void compare_row(const struct mla_kernel *const kernels[2],
                        struct mla_tensors *const tensors[2], struct mla_row row,
                        struct counts *counts)
{
    struct mla_truth *truth;
    struct mla_bound *bounds[2];
    assert_int_equal(mla_rows_truth(tensors[0], row, false, &truth), MLA_OK);
    int64_t columns_n = mla_truth_info(truth).columns_n;
    for (int i = 0; i < 2; i++) {
        bounds[i] = calloc((size_t)columns_n, sizeof *bounds[i]);
        assert_non_null(bounds[i]);
        const struct mla_model *model = tensors[0]->test.op == MLA_OP_RING
                                            ? &kernels[i]->ring_model
                                            : &kernels[i]->sparse_model;
        assert_int_equal(mla_bound_row(truth, model, bounds[i]), MLA_BOUND_OK);
    }
    for (int64_t c = 0; c < columns_n; c++) {
        bool single[2];
        for (int i = 0; i < 2; i++) {
            single[i] = bounds[i][c].lo == bounds[i][c].hi;
            if (single[i])
                expect_only(kernels[i], tensors[i], row, c, &bounds[i][c]);
        }
        bool equal = bounds[0][c].lo == bounds[1][c].lo;
        counts->elements++;
        counts->single_both += single[0] && single[1];
        counts->same += single[0] && single[1] && equal;
        counts->different += single[0] && single[1] && !equal;
        counts->outputs_differ += output(tensors[0], row, c) != output(tensors[1], row, c);
    }
    free(bounds[1]);
    free(bounds[0]);
    mla_truth_free(truth);
}

static struct counts compare(const struct mla_kernel *kernel, const char *line)
{
    const struct mla_kernel *const kernels[2] = {mla_registry_find("scalar"), kernel};
    struct mla_tensors *const tensors[2] = {run(kernels[0], line), run(kernels[1], line)};
    struct counts counts = {0};
    int64_t rows_n;
    struct mla_row *rows = mla_rows_draw(&tensors[0]->test, &rows_n);
    assert_non_null(rows);
    for (int64_t r = 0; r < rows_n; r++)
        compare_row(kernels, tensors, rows[r], &counts);
    free(rows);
    mla_tensors_free(tensors[1]);
    mla_tensors_free(tensors[0]);
    return counts;
}

static void test_one_value(void **state)
{
    int kernels_n = 0;
    (void)state;
    for (size_t k = 0; k < COUNT(names); k++) {
        const struct mla_kernel *kernel = kernel_here(names[k]);
        int64_t differ_n = 0;
        if (kernel == NULL)
            continue;
        for (size_t i = 0; i < COUNT(ordinary); i++) {
            struct counts counts = compare(kernel, ordinary[i]);
            printf("%s, case %zu: of %" PRId64 " elements %" PRId64
                   " have one value under both models, the same %" PRId64 ", different %" PRId64
                   "; outputs differ in %" PRId64 "\n",
                   kernel->name, i, counts.elements, counts.single_both, counts.same,
                   counts.different, counts.outputs_differ);
            assert_true(counts.same > 0);
            assert_true(counts.outputs_differ < counts.elements);
            differ_n += counts.outputs_differ;
        }
        assert_true(differ_n > 0);
        kernels_n++;
    }
    if (kernels_n == 0)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_data),
        cmocka_unit_test(test_one_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
