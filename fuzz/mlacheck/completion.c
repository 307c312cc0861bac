/* SPDX-License-Identifier: Apache-2.0
 *
 * completion.c - `mlacheck completion`: a script for the shell, made of the tables of verbs and flags.
 */
#include <stdio.h>
#include <string.h>

#include "fuzz/mlacheck/options.h"

static const char help[] =
    "usage: mlacheck completion bash\n\n"
    "Prints a script that teaches the shell verbs and flags. example, for ~/.bashrc:\n"
    "  source <(mlacheck completion bash)\n";

static void print_flag(void *context, const char *name, bool has_value)
{
    (void)context;
    (void)has_value;
    printf(" --%s", name);
}

/* The flag's value comes next: file names, which is what the shell does by itself. */
static void print_valued(void *context, const char *name, bool has_value)
{
    int *n = context;
    if (has_value)
        printf("%s--%s", (*n)++ == 0 ? "" : " | ", name);
}

static void print_verb(const struct mla_verb *verb)
{
    int n = 0;
    printf("    %s)\n        flags='", verb->name);
    mla_options_each_flag(verb, print_flag, NULL);
    printf("'\n        case \"$before\" in\n        ");
    mla_options_each_flag(verb, print_valued, &n);
    printf("%s) return ;;\n        esac\n        ;;\n", n == 0 ? "''" : "");
}

static void print_bash(void)
{
    size_t n;
    const struct mla_verb *verbs = mla_verbs(&n);
    printf(
        "# bash completion for mlacheck, made by `mlacheck completion bash`\n"
        "_mlacheck() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} flags=''\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W '--help --version");
    for (size_t i = 0; i < n; i++)
        printf(" %s", verbs[i].name);
    printf("' -- \"$word\")\n        return\n    fi\n"
           "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < n; i++)
        print_verb(&verbs[i]);
    printf("    esac\n"
           "    case $word in\n"
           "    -*) mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\") ;;\n"
           "    esac\n"
           "}\n"
           "complete -o default -F _mlacheck mlacheck\n");
}

int mla_verb_completion(int argc, char **argv)
{
    struct mla_options o;
    int code = mla_options_parse(&o, "completion", "h", argc, argv);
    if (code != 0 || o.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    if (o.words_n != 1 || strcmp(o.words[0], "bash") != 0)
        return mla_options_fail(MLA_EXIT_USAGE, "completion",
                                "name a shell: only bash is known (mlacheck completion --help)");
    print_bash();
    return 0;
}
