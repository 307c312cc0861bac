/* SPDX-License-Identifier: Apache-2.0
 *
 * bits.c - prints a fingerprint of a built-in kernel's output bits on drawn cases, one line a case.
 *
 * Two builds (compilers, machines, thread counts) agree bit for bit when their lists are the same:
 * usage: mla_bits KERNEL CASES_OF_EACH_OPERATION
 * A kernel that this machine cannot run ends it with 77. Without arguments it names all kernels.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/call.h"
#include "fuzz/tensors.h"
#include "impl/registry.h"

static int print_case(const struct mla_kernel *kernel, const struct mla_case *test)
{
    struct mla_tensors *tensors;
    struct mla_call call;
    char id[MLA_CASE_ID_BYTES], error[MLA_CASE_ERROR_MAX];
    uint64_t hash = 0;
    if (mla_tensors_make(test, 0, &tensors, error) != MLA_OK) {
        fprintf(stderr, "%s\n", error);
        return 3;
    }
    mla_call_make(kernel, tensors, 0, &call);
    for (size_t i = 0; i < tensors->n; i++)
        if (tensors->list[i].role == MLA_TENSOR_OUTPUT)
            hash = mla_number_mix(hash ^ mla_tensor_hash(&tensors->list[i]));
    mla_case_id(test, id);
    printf("%.12s %" PRId32 " %016" PRIx64 "\n", id, call.status, hash);
    mla_tensors_free(tensors);
    return call.status == MLA_OK ? 0 : 1;
}

static int print_names(void)
{
    size_t n;
    const struct mla_kernel *const *kernels = mla_registry_kernels(&n);
    for (size_t i = 0; i < n; i++)
        printf("%s\n", kernels[i]->name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return print_names();
    const struct mla_kernel *kernel = argc == 3 ? mla_registry_find(argv[1]) : NULL;
    long cases = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    int code = 0;
    if (kernel == NULL || cases < 1) {
        fprintf(stderr, "usage: %s KERNEL CASES\n", argv[0]);
        return 2;
    }
    if (kernel->usable != NULL && !kernel->usable()) {
        fprintf(stderr, "%s: this machine cannot run it\n", kernel->name);
        return 77;
    }
    for (long i = 0; i < cases && code == 0; i++)
        for (int op = 0; op < MLA_OP_N && code == 0; op++) {
            struct mla_case test;
            struct mla_rng rng = {mla_number_at(77, (uint64_t)op, (uint64_t)i, 0), 0};
            mla_case_draw(&test, (enum mla_op)op, &rng);
            test.has_future = 0; /* the bits of unspecified rows are nobody's promise */
            test.future = 0;
            code = print_case(kernel, &test);
        }
    return code;
}
