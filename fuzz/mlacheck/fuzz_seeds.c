/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_seeds.c - corpus lines as seed files.
 */
#include "fuzz/mlacheck/fuzz_seeds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/case_fields.h"
#include "fuzz/corpus.h"

/* Multiply-adds and bytes: a seed runs before the engine looks at the clock, so only small ones are
 * used. */
#define SEED_WORK_MAX  ((int64_t)12000000)
#define SEED_BYTES_MAX ((int64_t)3000000)

static int write_seed(const struct mla_case *test, const char *folder)
{
    char path[1100], line[MLA_CASE_LINE_MAX], id[MLA_CASE_ID_BYTES];
    size_t n = mla_case_format(test, line);
    mla_case_id(test, id);
    snprintf(path, sizeof path, "%s/corpus-%s/%s", folder,
             test->set_n > 0 ? "reject" : mla_case_op_name(test->op), id);
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(line, 1, n, file) != n) {
        if (file != NULL)
            fclose(file);
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "fuzz", "%s: cannot be written: %s", path,
                                strerror(errno));
    }
    return fclose(file) == 0 ? 0 : MLA_EXIT_ENVIRONMENT;
}

int mla_fuzz_seeds(const struct mla_options *options, const char *folder)
{
    struct mla_corpus corpus = {0};
    char error[MLA_CASE_ERROR_MAX];
    int code = 0;
    for (int i = 0; i < options->sets_n && code == 0; i++)
        if (mla_corpus_read_matching(&corpus, options->sets[i], error, sizeof error) != MLA_OK)
            code = mla_options_fail(MLA_EXIT_USAGE, "fuzz", "--set: %s", error);
    for (size_t i = 0; i < corpus.n && code == 0 && folder != NULL; i++)
        if (!corpus.cases[i].slow && mla_case_work(&corpus.cases[i]) <= SEED_WORK_MAX &&
            mla_case_bytes(&corpus.cases[i]) <= SEED_BYTES_MAX)
            code = write_seed(&corpus.cases[i], folder);
    mla_corpus_free(&corpus);
    return code;
}
