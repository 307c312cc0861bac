/* SPDX-License-Identifier: Apache-2.0
 *
 * applied_test.c - the mark of a planted fault can be believed.
 *
 * A call on which a fault leaves no mark must give status, message and bits of the honest kernel with
 * its method: otherwise survivors would be excused that were put to the test. And every fault that
 * some input can expose leaves its mark on one of the drawn cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/call.h"
#include "fuzz/case.h"
#include "fuzz/faults/faults.h"
#include "fuzz/faults/test_share.h"
#include "fuzz/tensors.h"

#define WORK_MAX    3000000 /* multiply-adds of a case in which all faults are compared */
#define CASES_MAX   1500    /* for those that have left no mark so far */
#define METHODS_MAX 32

static bool takes(const struct mla_fault *faults, size_t k, int op)
{
    return (faults[k].operations >> op & 1u) != 0 && mla_test_takes_fault(&faults[k], k);
}

/* Cases in which all faults are compared: fewer under sanitizers. */
static int compared_cases(int op)
{
    const char *text = getenv("MLA_TEST_CASES");
    int n = text == NULL ? 40 : atoi(text);
    return op == MLA_OP_RING ? n : (n + 3) / 4; /* a call of the sparse operation is larger */
}

/* ---- calls ---- */

/* What came of a call: everything that a caller can see. */
struct outcome {
    bool is_made;
    struct mla_call call;
    unsigned char *bytes; /* of all outputs */
    size_t bytes_n;
};

static size_t outputs(const struct mla_tensors *t, unsigned char *bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->list[i].role != MLA_TENSOR_OUTPUT) {
            continue;
        }
        if (bytes) {
            memcpy(bytes + n, t->list[i].guard.data, t->list[i].guard.bytes);
        }
        n += t->list[i].guard.bytes;
    }
    return n;
}

/* Faults of memory may crash: they are called in a process of their own. */
static void make_call(const struct mla_fault *who, struct mla_tensors *t, struct outcome *outcome)
{
    mla_tensors_reset(t);
    mla_call_make(who->kernel, t, who->cause == MLA_CAUSE_MEMORY ? 10 : 0, &outcome->call);
    outcome->bytes_n = outputs(t, NULL);
    outcome->bytes = malloc(outcome->bytes_n);
    assert_non_null(outcome->bytes);
    outputs(t, outcome->bytes);
    outcome->is_made = true;
}

/* The control with that method, called at most once a case. */
static const struct outcome *honest(int method, struct mla_tensors *t, struct outcome *known)
{
    size_t n = 0;
    const struct mla_fault *controls = mla_fault_controls(&n);
    assert_in_range(method, 0, METHODS_MAX - 1);
    for (size_t i = 0; i < n && !known[method].is_made; i++) {
        if (controls[i].method == method) {
            make_call(&controls[i], t, &known[method]);
        }
    }
    assert_true(known[method].is_made);
    return &known[method];
}

/* ---- one case ---- */

static struct mla_case draw(int op, int i)
{
    struct mla_case test;
    struct mla_rng rng = {mla_number_mix((uint64_t)i + 77), 0};
    mla_case_draw(&test, (enum mla_op)op, &rng);
    if (i % 2 == 1) { /* a refusal costs next to nothing, and each rule is one of many */
        mla_case_draw_violation(&test, &rng);
    }
    return test;
}

static void fail_on(const struct mla_fault *fault, const struct mla_case *test)
{
    char line[MLA_CASE_LINE_MAX];
    mla_case_format(test, line);
    fail_msg("%s left no mark and gave another result\n%s", fault->name, line);
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
    return a->call.end == b->call.end && a->call.status == b->call.status &&
           strcmp(a->call.message, b->call.message) == 0 && a->bytes_n == b->bytes_n &&
           memcmp(a->bytes, b->bytes, a->bytes_n) == 0;
}

/* Call every fault, or only those without a mark so far. */
static void run_case(int op, int i, bool only_unmarked, bool *is_marked)
{
    size_t n = 0;
    const struct mla_fault *faults = mla_faults(&n);
    struct mla_case test = draw(op, i);
    struct mla_tensors *t = NULL;
    struct outcome known[METHODS_MAX] = {{0}};
    char error[MLA_CASE_ERROR_MAX];
    if ((!only_unmarked && mla_case_work(&test) > WORK_MAX) ||
        mla_tensors_make(&test, 0, &t, error) != MLA_OK) {
        return;
    }
    for (size_t k = 0; k < n; k++) {
        struct outcome faulty = {0};
        if (!takes(faults, k, op) || (only_unmarked && is_marked[k])) {
            continue;
        }
        mla_fault_reset_applied();
        make_call(&faults[k], t, &faulty);
        bool is_applied = mla_fault_is_applied();
        is_marked[k] = is_marked[k] || is_applied;
        if (!is_applied && !is_same(&faulty, honest(faults[k].method, t, known))) {
            fail_on(&faults[k], &test);
        }
        free(faulty.bytes);
    }
    for (size_t m = 0; m < METHODS_MAX; m++) {
        free(known[m].bytes);
    }
    mla_tensors_free(t);
}

/* ---- tests ---- */

static bool are_all(const bool *is_marked, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (!is_marked[k]) {
            return false;
        }
    }
    return true;
}

static void check_operation(int op)
{
    size_t n = 0, unmarked_n = 0;
    const struct mla_fault *faults = mla_faults(&n);
    bool *is_marked = calloc(n, sizeof *is_marked);
    assert_non_null(is_marked);
    for (int i = 0; i < compared_cases(op); i++) {
        run_case(op, i, false, is_marked);
    }
    for (size_t k = 0; k < n; k++) {
        is_marked[k] = is_marked[k] || faults[k].hidden != NULL || !takes(faults, k, op);
    }
    for (int i = 0; i < CASES_MAX && !are_all(is_marked, n); i++) {
        run_case(op, i, true, is_marked);
    }
    for (size_t k = 0; k < n; k++) {
        if (!is_marked[k]) {
            printf("  %s leaves no mark\n", faults[k].name);
            unmarked_n++;
        }
    }
    free(is_marked);
    assert_int_equal(unmarked_n, 0);
}

static void test_ring_marks(void **state)
{
    (void)state;
    check_operation(MLA_OP_RING);
}

static void test_sparse_marks(void **state)
{
    (void)state;
    check_operation(MLA_OP_SPARSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_marks),
        cmocka_unit_test(test_sparse_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
