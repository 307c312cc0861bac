/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c - `mlacheck export`: a case's tensors as a safetensors file.
 */
#include <stdio.h>

#include "fuzz/exchange.h"
#include "fuzz/mlacheck/exchange_verbs.h"
#include "fuzz/mlacheck/options.h"
#include "results/report_text.h"

static const char help[] =
    "usage: mlacheck export ID|--case 'LINE' --out F.safetensors [flags]\n\n"
    "Writes the inputs of a case for a kernel that runs elsewhere; its output comes back through\n"
    "`mlacheck judge`. Tensors are BF16 and I32 (the index list), by their names in impl/mla.h; "
    "ring:\n"
    "q.0, kv.0, .. for each rank. The metadata hold the case line, every argument of the call by "
    "its\n"
    "name (scale: the one in force, a C99 hexadecimal number), and valid_rows.TENSOR, the rows "
    "that\n"
    "hold data: all others hold what a kernel must not read (see poison in the case line).\n\n"
    "  ID             a stored case by the beginning of its id (>= 4 digits)\n"
    "  --case 'LINE'  one canonical case line\n"
    "  --out FILE     the file to write; one that is there is replaced\n"
    "  --db FILE      default results/mlacheck.db, where ids are looked up\n"
    "  --json         end with one JSON object: file, case\n\n"
    "example: mlacheck export 9f31c02a --out case.safetensors\n";

int mla_verb_export(int argc, char **argv)
{
    struct mla_options o;
    struct mla_case test;
    struct mla_tensors *tensors;
    char error[MLA_EXCHANGE_ERROR_MAX], tool[128], id[MLA_CASE_ID_BYTES];
    int code = mla_options_parse(&o, "export", "cudJh", argc, argv);
    if (code == 0 && o.help)
        fputs(help, stdout);
    if (code != 0 || o.help)
        return code;
    if (o.out == NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "export", "give --out FILE");
    code = mla_exchange_case(&o, "export", &test);
    if (code != 0)
        return code;
    if (mla_tensors_make_plain(&test, &tensors, error) != MLA_OK)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "export", "%s", error);
    mla_exchange_tool(tool, sizeof tool);
    int32_t status = mla_exchange_export(tensors, tool, o.out, error);
    mla_tensors_free(tensors);
    if (status != MLA_OK)
        return mla_options_fail(status == MLA_ERR_PARAM ? MLA_EXIT_USAGE : MLA_EXIT_ENVIRONMENT,
                                "export", "%s", error);
    mla_case_id(&test, id);
    printf("case %.12s written to %s\n", id, o.out);
    if (o.json) {
        printf("{\"case\":\"%s\",\"file\":", id);
        mla_text_json(stdout, o.out);
        printf("}\n");
    }
    return MLA_EXIT_PASSED;
}
