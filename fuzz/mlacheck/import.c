/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c - `mlacheck import`: a case of tensors from outside.
 */
#include "fuzz/import.h"

#include <stdio.h>

#include "fuzz/exchange.h"
#include "fuzz/mlacheck/exchange_verbs.h"
#include "results/report_text.h"

static const char help[] =
    "usage: mlacheck import F.safetensors [--pad-index masked] [--param NAME=VALUE]... [flags]\n\n"
    "Makes a case of real tensors and prints its line, which run, export and judge take; its id "
    "goes\n"
    "to stderr. The tensors are kept in results/data (or the folder MLACHECK_DATA), in a file "
    "named "
    "by\n"
    "its SHA-256.\n"
    "  ring    q.D [batch, heads, q_rows, head_dim], kv.D [kv_batch, 1, kv_rows, head_dim] of each "
    "rank\n"
    "  sparse  q_lift [S, H, 512] and q_pe [S, H, Rr], or q for both side by side;\n"
    "          c_kv [S_kv, 512] and k_pe [S_kv, Rr], or kv for both; pages are axes before the "
    "last\n"
    "          topk_indices (or indices) [S, K], I32; masked: topk_length [S], I32, may be there\n"
    "Elements must be bf16: BF16, or F32 or F16 that are bf16 exactly, as a dequantised cache "
    "is.\n\n"
    "  --pad-index masked  an index of -1 or beyond the cache, or from topk_length on, is no key;\n"
    "                      refused (default): it is an error\n"
    "  --param NAME=VALUE  a number of the call by its name in impl/mla.h; else the file's "
    "metadata\n"
    "                      give it. Needed: softmax_scale; ring: head_dim_v. out_order is 1 "
    "(natural)\n"
    "                      and logical_n all keys unless given\n"
    "  --out F             also write what `mlacheck export` would, for judge\n"
    "  --json              end with one JSON object: id, line\n\n"
    "example: mlacheck import cache.safetensors --pad-index masked --param softmax_scale=0.0625 "
    "\\\n"
    "             --out case.safetensors\n";

static int write_case(const struct mla_case *test, const char *path)
{
    char error[MLA_EXCHANGE_ERROR_MAX], tool[128];
    struct mla_tensors *tensors;
    int32_t status = mla_tensors_make_plain(test, &tensors, error);
    if (status == MLA_OK) {
        mla_exchange_tool(tool, sizeof tool);
        status = mla_exchange_export(tensors, tool, path, error);
        mla_tensors_free(tensors);
    }
    return status == MLA_OK ? 0
                            : mla_options_fail(MLA_EXIT_ENVIRONMENT, "import", "--out: %s", error);
}

static void print(const struct mla_case *test, bool json)
{
    char line[MLA_CASE_LINE_MAX], id[MLA_CASE_ID_BYTES];
    mla_case_format(test, line);
    mla_case_id(test, id);
    fprintf(stderr, "case %.12s\n", id); /* the line alone can be given on: --case "$(..)" */
    printf("%s\n", line);
    if (json) {
        printf("{\"id\":\"%s\",\"line\":", id);
        mla_text_json(stdout, line);
        printf("}\n");
    }
}

int mla_verb_import(int argc, char **argv)
{
    struct mla_options o;
    struct mla_safetensors file;
    struct mla_case test;
    char error[MLA_IMPORT_ERROR_MAX];
    int code = mla_options_parse(&o, "import", "aXuJh", argc, argv);
    if (code == 0 && o.help)
        fputs(help, stdout);
    if (code != 0 || o.help)
        return code;
    if (o.words_n != 1)
        return mla_options_fail(MLA_EXIT_USAGE, "import", "give one file");
    int32_t status = mla_safetensors_read(o.words[0], &file, error, sizeof error);
    if (status == MLA_OK) {
        const struct mla_import_options options = {o.params, o.params_n, o.masked};
        status = mla_import(&file, &options, &test, error);
        mla_safetensors_free(&file);
    }
    if (status != MLA_OK)
        return mla_options_fail(status == MLA_ERR_PARAM ? MLA_EXIT_USAGE : MLA_EXIT_ENVIRONMENT,
                                "import", "%s", error);
    code = o.out == NULL ? 0 : write_case(&test, o.out);
    if (code == 0)
        print(&test, o.json);
    return code;
}
