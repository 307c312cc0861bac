/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.c - `mlacheck judge`: a verdict on output that was computed elsewhere.
 *
 * The case line in the exported file says what is true; the file's tensors must be that case's, byte by
 * byte, so that nothing else was computed. Then the results go where a kernel would have put them, and
 * oracle and judge are those of `run`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/exchange_result.h"
#include "fuzz/judge.h"
#include "fuzz/kernels.h"
#include "fuzz/mlacheck/build.h"
#include "fuzz/mlacheck/counts.h"
#include "fuzz/mlacheck/exchange_verbs.h"
#include "fuzz/mlacheck/options.h"
#include "fuzz/mlacheck/table.h"
#include "fuzz/model_file.h"
#include "fuzz/record.h"
#include "results/report_text.h"

static const char help[] =
    "usage: mlacheck judge F.safetensors --result OUT.safetensors --model FILE|NAME [flags]\n\n"
    "F is what `mlacheck export` wrote, OUT what a kernel elsewhere made of its tensors:\n"
    "  out    BF16, F16 or F32; ring: out.0, out.1, .. [batch, heads, q_rows, head_dim_v]; "
    "sparse:\n"
    "         out [queries, heads*512] or [queries, heads, 512], columns in the call's out_order\n"
    "  stats  optional, F32: maxima and sums as in impl/mla.h; or\n"
    "  lse    optional, F32: max + ln(sum), [batch, heads, q_rows] or [queries, heads]; the "
    "model's\n"
    "         lse_empty says what it is in rows without keys\n"
    "Rows and heads may be padded, rows stand in tiles: only those of the case are looked at. "
    "Metadata\n"
    "of OUT may name the kernel, and the case, which is then compared: {\"kernel\": "
    "\"my-kernel\",\n"
    "\"case_id\": ..}. Give the dtype that the kernel "
    "itself\n"
    "rounds to: F32 results are held to the interval before any rounding to bf16.\n\n"
    "  --result OUT      the results\n"
    "  --model FILE      the kernel's arithmetic, lines of key = value (README: Kernels "
    "elsewhere)\n"
    "  --model NAME      or that of a kernel here: NAME, PATH.so:NAME\n"
    "  --oracle WHICH    fast (default), or definition: the plain evaluation in MPFR\n"
    "  --db FILE         default results/mlacheck.db; the verdict is stored as of kernel "
    "file:NAME\n"
    "  --json            end with one JSON object of counts, as run does, and the rows there are\n"
    "  --verbose         a line for a pass too\n\n"
    "exit: 0 passed, 1 a fault, 2 bad usage or input, 3 environment, 77 nothing could be judged\n\n"
    "example: mlacheck judge case.safetensors --result out.safetensors --model plain-f32\n";

struct judge {
    struct mla_options options;
    struct mla_case test;
    struct mla_subject *subject;
    struct mla_safetensors inputs, results;
    struct mla_model_file model;
    struct mla_kernel kernel;
    struct mla_store *store;
    struct mla_verdict verdict;
    char spec[MLA_MODEL_NAME_MAX + 8];
    char repro[MLA_REPRO_MAX];
};

static int fail(const char *flag, const char *error)
{
    return mla_options_fail(MLA_EXIT_USAGE, "judge", "%s%s%s", flag, flag[0] == '\0' ? "" : ": ",
                            error);
}

/* ---- input ---- */

static int read_files(struct judge *j)
{
    char error[MLA_EXCHANGE_ERROR_MAX];
    const char *path = j->options.words[0];
    if (mla_safetensors_read(path, &j->inputs, error, sizeof error) != MLA_OK)
        return fail("", error);
    const char *format = mla_safetensors_text(&j->inputs, "format"),
               *line = mla_safetensors_text(&j->inputs, "case");
    if (format == NULL || strcmp(format, MLA_EXCHANGE_FORMAT) != 0 || line == NULL)
        return mla_options_fail(
            MLA_EXIT_USAGE, "judge",
            "%s: its metadata name no case of format %s: is it one of `mlacheck "
            "export`?",
            path, MLA_EXCHANGE_FORMAT);
    if (mla_case_parse(line, strlen(line), &j->test, error) != MLA_OK ||
        mla_case_problem(&j->test, INT64_MAX, error) != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "judge", "%s: its case: %s", path, error);
    if (j->test.set_n > 0)
        return mla_options_fail(MLA_EXIT_USAGE, "judge",
                                "%s: the case is a call that must be refused", path);
    if (mla_safetensors_read(j->options.result, &j->results, error, sizeof error) != MLA_OK)
        return fail("--result", error);
    return 0;
}

/* The case as it is judged: statistics are if there are some, whatever its line asks of a kernel here. */
static struct mla_case case_of(const struct judge *j)
{
    struct mla_case test = j->test;
    test.stats = mla_exchange_has_stats(&j->results);
    return test;
}

/* What names and shapes tell, before anything is made, which takes its time: are both files of this case? */
static int check_files(const struct judge *j)
{
    char id[MLA_CASE_ID_BYTES], error[MLA_EXCHANGE_ERROR_MAX];
    struct mla_case test = case_of(j);
    const char *said = mla_safetensors_text(&j->results, "case_id");
    mla_case_id(&j->test, id);
    if (mla_exchange_mismatch(&test, &j->inputs, error) != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "judge", "%s: %s", j->options.words[0], error);
    if (said != NULL && strcmp(said, id) != 0)
        return mla_options_fail(MLA_EXIT_USAGE, "judge",
                                "--result: the results are of case %.12s, not %.12s", said, id);
    if (mla_exchange_result_check(&test, &j->results, error) != MLA_OK)
        return fail("--result", error);
    return 0;
}

/* A plug-in, a file (if it is there, or has a slash), or the name of a kernel. */
static int read_model(struct judge *j)
{
    char error[MLA_MODEL_ERROR_MAX];
    const char *spec = j->options.model;
    bool is_file =
        mla_kernels_plugin(spec) == 0 && (strchr(spec, '/') != NULL || access(spec, F_OK) == 0);
    enum mla_op op = (enum mla_op)j->test.op;
    int32_t status = is_file ? mla_model_file_read(spec, op, &j->model, error)
                             : mla_model_of_kernel(spec, op, &j->model, error);
    if (status != MLA_OK)
        return fail(is_file ? "--model" : "--model, no file of that name", error);
    const char *own = mla_safetensors_text(&j->results, "kernel");
    if (own != NULL && !mla_model_name_is_valid(own))
        return fail("--result", "metadata 'kernel': must be letters, digits, '.', '_' and '-', at "
                                "most 63");
    const char *name = own != NULL ? own : j->model.name[0] != '\0' ? j->model.name : "unnamed";
    snprintf(j->spec, sizeof j->spec, "file:%s", name);
    j->kernel = (struct mla_kernel){.abi = MLA_KERNEL_ABI,
                                    .struct_size = sizeof j->kernel,
                                    .name = name,
                                    .promises = j->model.promises,
                                    .ring_model = j->model.model,
                                    .sparse_model = j->model.model};
    return 0;
}

/* The case's tensors with the results in them. */
static int make_subject(struct judge *j)
{
    char error[MLA_EXCHANGE_ERROR_MAX];
    const struct mla_case test = case_of(j);
    int32_t status = mla_subject_make(&test, &j->subject, error);
    if (status != MLA_OK)
        return mla_options_fail(status == MLA_ERR_NOMEM ? MLA_EXIT_ENVIRONMENT : MLA_EXIT_USAGE,
                                "judge", "%s", error);
    struct mla_tensors *tensors = mla_subject_tensors(j->subject);
    if (mla_exchange_difference(tensors, &j->inputs, error) != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "judge", "%s: %s", j->options.words[0], error);
    tensors->lse_roundings = j->model.lse_roundings;
    tensors->lse_empty = (enum mla_lse_empty)j->model.lse_empty;
    status = mla_exchange_result_load(tensors, &j->results, error);
    return status == MLA_OK ? 0 : fail("--result", error);
}

static void make_repro(struct judge *j)
{
    snprintf(j->repro, sizeof j->repro, "mlacheck judge");
    mla_record_append_word(j->repro, j->options.words[0]);
    mla_record_append_word(j->repro, "--result");
    mla_record_append_word(j->repro, j->options.result);
    mla_record_append_word(j->repro, "--model");
    mla_record_append_word(j->repro, j->options.model);
    if (j->options.plain_oracle)
        strncat(j->repro, " --oracle definition", sizeof j->repro - strlen(j->repro) - 1);
}

/* ---- the run ---- */

static int begin(struct judge *j, int argc, char **argv)
{
    int64_t id;
    if ((j->store = mla_options_store(&j->options, "judge")) == NULL)
        return MLA_EXIT_ENVIRONMENT;
    if (mla_build_begin_run(j->store, argc, argv, j->spec, (int64_t)j->options.seed, &id) !=
        MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "judge", "%s", mla_store_message(j->store));
    printf("mlacheck run %" PRId64 ": 1 cases, kernels %s, seed %" PRIu64 "\n", id, j->spec,
           j->options.seed);
    return 0;
}

static int judge(struct judge *j)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const struct mla_judge_options options = {.oracle_threads =
                                                  processors < 1 ? 1 : (int)processors,
                                              .plain_oracle = j->options.plain_oracle,
                                              .row_tests = 1 + mla_judge_row_tests(&j->test)};
    mla_subject_judge_results(j->subject, &j->kernel, &options, &j->verdict);
    j->verdict.repro = j->repro;
    mla_verdict_report(&j->test, j->spec, &j->verdict, j->options.verbose);
    if (mla_record_store(j->store, &j->test, j->spec, &j->verdict) != MLA_STORE_OK ||
        mla_store_end_run(j->store) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "judge", "%s", mla_store_message(j->store));
    return 0;
}

static int finish(const struct judge *j)
{
    struct mla_counts counts = {0};
    mla_counts_add(&counts, &j->verdict);
    mla_table_print(stdout, j->store, MLA_VIEW_SUMMARY, NULL);
    mla_counts_print(&counts, 0);
    int64_t all = mla_rows_all(&j->test);
    printf("%" PRId64 " of %" PRId64 " rows of the results were judged%s\n", counts.rows_judged,
           all,
           j->test.rows != 0 ? " (rows=0 in the case line that is exported asks for all)" : "");
    fputs("executed: ", stdout);
    mla_text_plain(stdout, j->spec);
    putchar('\n');
    if (j->options.json) {
        mla_counts_print_json(&counts, 0);
        printf(",\"rows\":%" PRId64 ",\"executed\":[", all);
        mla_text_json(stdout, j->spec);
        fputs("],\"skipped\":[]}\n", stdout);
    }
    return mla_counts_exit("judge", &counts);
}

static int check_usage(const struct mla_options *o)
{
    if (o->words_n != 1)
        return mla_options_fail(MLA_EXIT_USAGE, "judge", "give one exported file");
    if (o->result == NULL || o->model == NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "judge", "give --result and --model");
    if (o->no_oracle)
        return mla_options_fail(MLA_EXIT_USAGE, "judge",
                                "--oracle 'none': must be fast or definition");
    return 0;
}

int mla_verb_judge(int argc, char **argv)
{
    static struct judge j; /* large */
    int code = mla_options_parse(&j.options, "judge", "fmOdJvh", argc, argv);
    if (code == 0 && j.options.help)
        fputs(help, stdout);
    if (code != 0 || j.options.help)
        return code;
    code = check_usage(&j.options);
    code = code != 0 ? code : read_files(&j);
    code = code != 0 ? code : read_model(&j);
    code = code != 0 ? code : check_files(&j);
    code = code != 0 ? code : make_subject(&j);
    if (code == 0) {
        make_repro(&j);
        code = begin(&j, argc, argv);
    }
    code = code != 0 ? code : judge(&j);
    code = code != 0 ? code : finish(&j);
    mla_subject_free(j.subject);
    mla_safetensors_free(&j.inputs);
    mla_safetensors_free(&j.results);
    if (mla_store_close(j.store) != MLA_STORE_OK)
        code = mla_options_fail(MLA_EXIT_ENVIRONMENT, "judge", "the database could not be written");
    return code;
}
