/* SPDX-License-Identifier: Apache-2.0
 *
 * thin_test.c - caches beyond 2^31 elements: what is made of them, what is watched, and that a kernel
 * which forms offsets in 32 bits is found out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/indices.h"
#include "fuzz/judge.h"
#include "fuzz/tensors.h"
#include "impl/registry.h"

#define HUGE_KEYS (((int64_t)1 << 22) + 129)

static struct mla_case sparse_case(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_SPARSE);
    test.sparse.keys = HUGE_KEYS;
    test.sparse.queries = 2;
    test.indices = MLA_INDICES_ENDS;
    test.poison = MLA_POISON_HUGE;
    test.seed = 5;
    return test;
}

static struct mla_case ring_case(void)
{
    struct mla_case test;
    mla_case_init(&test, MLA_OP_RING);
    test.ring.has_slot = 1;
    test.ring.ring_size = 2;
    test.ring.gathered_rows = 64;
    test.ring.logical_n = 50;
    test.ring.kv_batch = INT32_MAX / (32 * 64) + 3;
    test.ring.kv_cache_batch_idx = test.ring.kv_batch - 1;
    test.seed = 5;
    return test;
}

static struct mla_tensors *make(const struct mla_case *test)
{
    struct mla_tensors *t;
    char error[MLA_CASE_ERROR_MAX];
    if (mla_tensors_make(test, 0, &t, error) != MLA_OK)
        fail_msg("%s", error);
    return t;
}

static void test_the_rule(void **state)
{
    struct mla_case test = sparse_case();
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    assert_true(mla_case_is_thin(&test));
    assert_true(mla_case_bytes(&test) < 8 << 20);
    assert_null(mla_case_problem(&test, 8 << 20, error));
    test.sparse.keys = ((int64_t)1 << 22) - 1; /* 2^31 - 512 elements: whole, and counted so */
    assert_false(mla_case_is_thin(&test));
    assert_true(mla_case_bytes(&test) > (int64_t)4 << 30);
    test.sparse.keys = (int64_t)1 << 27; /* address space has an end */
    assert_non_null(mla_case_problem(&test, INT64_MAX, error));
    assert_non_null(strstr(error, "mapped"));
    test = ring_case();
    assert_true(mla_case_is_thin(&test));
    assert_null(mla_case_problem(&test, 1 << 20, error));
    test.ring.kv_batch = INT32_MAX / (32 * 64);
    test.ring.kv_cache_batch_idx = 0;
    assert_false(mla_case_is_thin(&test));
}

/* Listed rows hold numbers, their neighbours poison, all others zeros. */
static void test_rows_of_a_sparse_cache(void **state)
{
    struct mla_case test = sparse_case();
    struct mla_tensors *t = make(&test);
    const uint16_t *c_kv = t->sparse.c_kv, *k_pe = t->sparse.k_pe;
    bool first = false, last = false;
    (void)state;
    for (int64_t q = 0; q < 2; q++) {
        int32_t list[128];
        mla_indices_fill(&test, q, list);
        for (int64_t j = 0; j < 128; j++) {
            double x = mla_number_from_bf16(c_kv[(int64_t)list[j] * 512 + 7]);
            assert_true(x != 0 && x > -100 && x < 100);
            first = first || list[j] < 64;
            last = last || list[j] >= HUGE_KEYS - 64;
        }
    }
    assert_true(first && last);
    assert_int_equal(c_kv[HUGE_KEYS / 2 * 512], 0);
    assert_int_equal(k_pe[HUGE_KEYS / 2 * 64], 0);
    int64_t made = 0, poisoned = 0;
    for (size_t i = 0; i < t->made_n; i++)
        for (int64_t row = t->made[i].from; row < t->made[i].to; row++) {
            made++;
            poisoned += (c_kv[row * 512] & 0x7fff) == MLA_BF16_LARGEST;
        }
    assert_true(made < 2 * 128 * 3 && made > poisoned && poisoned > 0);
    mla_tensors_free(t);
}

static void test_slots_of_a_ring_cache(void **state)
{
    struct mla_case test = ring_case();
    struct mla_tensors *t = make(&test);
    int64_t slot = test.ring.kv_cache_batch_idx * 32 * 64;
    (void)state;
    assert_true(slot > INT32_MAX - 64 * 32 * 2);
    for (int64_t d = 0; d < 2; d++) {
        assert_int_not_equal(t->kv[d][slot] & 0x7fff, 0);
        assert_int_equal(t->kv[d][slot - 32 * 64], MLA_BF16_NAN); /* the slot before it */
        assert_int_equal(t->kv[d][0], 0);
    }
    mla_tensors_free(t);
}

/* Changes of what is made are noticed; copies and second makings agree. */
static void test_watched(void **state)
{
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test = op == MLA_OP_RING ? ring_case() : sparse_case();
        struct mla_tensors *t = make(&test), *again = make(&test), *copy;
        char error[MLA_CASE_ERROR_MAX];
        struct mla_tensor *cache = mla_tensors_find(t, op == MLA_OP_RING ? "kv" : "c_kv", 0);
        size_t i = (size_t)(cache - t->list);
        int64_t offset;
        assert_int_equal(mla_tensors_copy(t, &test, 1, &copy, error), MLA_OK);
        assert_int_equal(mla_tensor_hash(cache), mla_tensor_hash(&again->list[i]));
        assert_int_equal(mla_tensor_hash(cache), mla_tensor_hash(&copy->list[i]));
        assert_int_equal(mla_tensor_check(&copy->list[i]), cache->check);
        int64_t row = cache->made[cache->made_n - 1].to - 1;
        cache->guard.data[(size_t)(row * cache->row_elements) * 2 + 1] ^= 1;
        assert_true(mla_tensor_check(cache) != cache->check);
        assert_true(mla_guard_intact(&cache->guard, &offset));
        mla_tensors_free(copy);
        mla_tensors_free(again);
        mla_tensors_free(t);
    }
}

/* Every kernel of the tree on both, relations included. */
static void test_kernels_pass(void **state)
{
    size_t n;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&n);
    (void)state;
    for (int op = 0; op < MLA_OP_N; op++) {
        struct mla_case test = op == MLA_OP_RING ? ring_case() : sparse_case();
        struct mla_subject *subject;
        char error[MLA_CASE_ERROR_MAX];
        assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
        for (size_t i = 0; i < n; i++) {
            struct mla_verdict verdict;
            struct mla_judge_options options = {.oracle_threads = 1, .relations = ~0u};
            if (kernels[i]->usable != NULL && !kernels[i]->usable())
                continue;
            mla_subject_judge(subject, kernels[i], &options, &verdict);
            if (mla_verdict_is_failure(verdict.kind))
                fail_msg("%s: %s", kernels[i]->name, verdict.reason);
        }
        mla_subject_free(subject);
    }
}

/* What comes of 32 bits: scalar, given the cache row that row * 1024 bytes, kept to 32 bits, name. */
static int32_t narrow_sparse(const struct mla_sparse_args *args, char *message,
                             size_t message_bytes)
{
    struct mla_sparse_args wrong = *args;
    int64_t n = mla_indices_elements(args);
    int32_t *list = malloc((size_t)n * sizeof *list);
    assert_non_null(list);
    for (int64_t i = 0; i < n; i++)
        list[i] = (int32_t)((uint32_t)args->topk_indices[i] * (uint32_t)1024 / 1024);
    wrong.topk_indices = list;
    int32_t status = mla_registry_find("scalar")->sparse(&wrong, message, message_bytes);
    free(list);
    return status;
}

static void test_narrow_offsets_are_found(void **state)
{
    struct mla_kernel narrow = *mla_registry_find("scalar");
    struct mla_case test = sparse_case();
    struct mla_subject *subject;
    struct mla_verdict verdict;
    struct mla_judge_options options = {.oracle_threads = 1};
    char error[MLA_CASE_ERROR_MAX];
    (void)state;
    narrow.name = "narrow";
    narrow.sparse = narrow_sparse;
    assert_int_equal(mla_subject_make(&test, &subject, error), MLA_OK);
    mla_subject_judge(subject, &narrow, &options, &verdict);
    assert_true(mla_verdict_is_failure(verdict.kind));
    mla_subject_free(subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rule),
        cmocka_unit_test(test_rows_of_a_sparse_cache),
        cmocka_unit_test(test_slots_of_a_ring_cache),
        cmocka_unit_test(test_watched),
        cmocka_unit_test(test_kernels_pass),
        cmocka_unit_test(test_narrow_offsets_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
