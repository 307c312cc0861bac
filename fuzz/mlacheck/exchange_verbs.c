/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_verbs.c - the case that a verb is about, and what is printed of it.
 */
#include "fuzz/mlacheck/exchange_verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/mlacheck/build.h"

int mla_exchange_case(const struct mla_options *o, const char *verb, struct mla_case *test)
{
    char error[MLA_CASE_ERROR_MAX], *line = NULL;
    int code = 0;
    if (o->cases_n + o->words_n != 1)
        return mla_options_fail(MLA_EXIT_USAGE, verb, "give one ID or one --case");
    if (o->words_n == 1) {
        struct mla_store *store = mla_options_look_store(o, verb);
        if (store == NULL)
            return MLA_EXIT_ENVIRONMENT;
        if (mla_store_find_line(store, o->words[0], &line) != MLA_STORE_OK)
            code = mla_options_fail(MLA_EXIT_USAGE, verb, "ID '%s': %s", o->words[0],
                                    mla_store_message(store));
        mla_store_close(store);
        if (code != 0)
            return code;
    }
    const char *text = line != NULL ? line : o->cases[0];
    if (mla_case_parse(text, strlen(text), test, error) != MLA_OK ||
        mla_case_problem(test, INT64_MAX, error) != NULL)
        code =
            mla_options_fail(MLA_EXIT_USAGE, verb, "%s: %s", line != NULL ? "ID" : "--case", error);
    free(line);
    return code;
}

void mla_exchange_tool(char *text, size_t text_bytes)
{
    struct mla_store_build build = mla_build_describe();
    snprintf(text, text_bytes, "mlacheck, commit %.12s%s", build.commit,
             build.dirty ? " (dirty)" : "");
}
