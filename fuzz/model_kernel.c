/* SPDX-License-Identifier: Apache-2.0
 *
 * model_kernel.c - the declared arithmetic of a kernel that is here, for judging another one by.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/kernels.h"
#include "fuzz/model_file.h"

int32_t mla_model_of_kernel(const char *spec, enum mla_op op, struct mla_model_file *model,
                            char error[MLA_MODEL_ERROR_MAX])
{
    struct mla_kernel_list *kernels = calloc(1, sizeof *kernels);
    int32_t status = MLA_ERR_NOMEM;
    snprintf(error, MLA_MODEL_ERROR_MAX, "out of memory");
    if (kernels != NULL)
        status = mla_kernels_add(kernels, spec, error, MLA_MODEL_ERROR_MAX);
    if (status == MLA_OK && kernels->n != 1) {
        snprintf(error, MLA_MODEL_ERROR_MAX, "'%.200s': matches %zu kernels", spec, kernels->n);
        status = MLA_ERR_PARAM;
    }
    if (status == MLA_OK) {
        const struct mla_kernel *kernel = kernels->list[0].kernel;
        *model = (struct mla_model_file){
            .promises = MLA_PROMISE_STATS | MLA_PROMISE_NO_FUTURE_LEAK |
                        (kernel->promises & MLA_PROMISE_PAD_ZERO),
            .model = op == MLA_OP_RING ? kernel->ring_model : kernel->sparse_model,
            .lse_roundings = MLA_LSE_ROUNDINGS};
        snprintf(model->name, sizeof model->name, "%.63s", kernel->name);
        if ((op == MLA_OP_RING ? kernel->ring == NULL : kernel->sparse == NULL)) {
            snprintf(error, MLA_MODEL_ERROR_MAX, "'%.200s': does not offer this operation", spec);
            status = MLA_ERR_PARAM;
        }
    }
    free(kernels);
    return status;
}
