/* SPDX-License-Identifier: Apache-2.0
 *
 * model_file.h - the arithmetic of a kernel that runs elsewhere, declared in a small text file.
 *
 * Lines "key = value"; empty ones and those that begin with # are skipped. Keys, each at most once:
 *
 *   name             what the kernel is called in results: letters, digits, '.', '_', '-'
 *   base             first: a built-in kernel whose model (not its promises) the others change; without
 *                    it all are 0
 *   pad_zero         1: rows without keys hold +0 (MLA_PROMISE_PAD_ZERO), and lse_empty; else they are not judged
 *   lse_roundings    float32 roundings in forming max + ln(sum) as one number, 0 .. 1000 (default 4: the
 *                    maximum scaled, a logarithm within one last place, which counts 2, the sum)
 *   lse_empty        what stands for log-sum-exp in rows without keys: minus-inf (default: the logarithm of
 *                    an empty sum) or plus-inf (FlashMLA's word for them); looked at with pad_zero only
 *   and every member of struct mla_model by its name: a number, decimal or as C99 has it (0x1p-24); a
 *   depth as its six members in order, "0, 1, 0, 0, 0, 0"; enumerations by their names in lower case
 *   without prefix (arg_form = difference) or by number
 */
#ifndef MLA_FUZZ_MODEL_FILE_H
#define MLA_FUZZ_MODEL_FILE_H

#include "fuzz/case.h"
#include "fuzz/tensors.h"
#include "impl/mla_kernel.h"

#define MLA_MODEL_NAME_MAX  64
#define MLA_MODEL_ERROR_MAX 1024
#define MLA_LSE_ROUNDINGS   4

/* A model to judge results by: nobody calls it. */
struct mla_model_file {
    char name[MLA_MODEL_NAME_MAX]; /* "" if the file gives none */
    uint64_t promises;             /* PAD_ZERO, if promised; STATS, NO_FUTURE_LEAK */
    struct mla_model model;
    int32_t lse_roundings;
    int32_t lse_empty; /* enum mla_lse_empty */
};

/*
 * Read a model for an operation. MLA_OK; MLA_ERR_PARAM with file, line and rule in error: no regular
 * file of plain text up to 64 KiB, a key unknown or given twice, a value that is none, a model that is not well formed
 * (mla_bound_model_error).
 */
int32_t mla_model_file_read(const char *path, enum mla_op op, struct mla_model_file *model,
                            char error[MLA_MODEL_ERROR_MAX]);

/* What a built-in kernel, plug-in, .. declares, its promise of PAD_ZERO too, by its name
 * (mla_kernels_add), which must be one. */
int32_t mla_model_of_kernel(const char *spec, enum mla_op op, struct mla_model_file *model,
                            char error[MLA_MODEL_ERROR_MAX]);

/* May this be the name of a kernel elsewhere? */
bool mla_model_name_is_valid(const char *name);

#endif
