/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect.c - `mlacheck bisect`: the commit, or the setting, that broke a case.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/kernels.h"
#include "fuzz/mlacheck/bisect.h"
#include "fuzz/mlacheck/build.h"

static const char help[] =
    "usage: mlacheck bisect ID|--case 'LINE' --good COMMIT [--bad COMMIT] [--kernel NAME] [flags]\n"
    "       mlacheck bisect ID|--case 'LINE' --config GOOD --config BAD [flags]\n\n"
    "Looks for the first bad commit. Kernels are built for each commit and judged by this program. "
    "Both "
    "ends\n"
    "are verified first; what cannot be built is skipped. The same command goes on where it was "
    "stopped.\n\n"
    "  ID               a stored case by the beginning of its id (>= 4 digits)\n"
    "  --case 'LINE'    one canonical case line\n"
    "  --kernel NAME    the kernel's name in the plug-in (default: the finding's, or the only "
    "one)\n"
    "  --good COMMIT    an ancestor of the bad one that is known to be good\n"
    "  --bad COMMIT     default HEAD\n"
    "what is bad (default: a verdict that is a fault)\n"
    "  --where 'FIGURE>NUMBER'   a figure of the verdict, as in 'max_err_ratio>0.5'; also >=, <, "
    "<=\n"
    "  --bits           output bits that differ from the good end's\n"
    "what is built (default: this project's own kernels, of the repository here)\n"
    "  --repo DIR       the repository (default: here)\n"
    "  --build COMMAND  run by `sh -c` in a clean work tree of each commit; exit 125 skips it\n"
    "  --plugin PATH    the plug-in that it makes, in the tree; must not need other files of the "
    "tree\n"
    "  --time SECONDS   of one build (default 1800)\n"
    "a configuration is KEY=VALUE[,KEY=VALUE]...: fields of the case line (threads, q_chunk, "
    "k_chunk, "
    "topology, ..),\n"
    "kernel (as `run` takes it; a name in the plug-in where one is built), cc and cflags (compiler "
    "and "
    "flags\n"
    "for the build, as CC and CFLAGS, of the commit --bad); the answer is a smallest set of "
    "settings that "
    "turn\n"
    "the good one bad: without any one of them it is good again\n"
    "flags\n"
    "  --tries N        verdicts of a commit, fresh processes each (default 3; 5 N for the ends "
    "and the "
    "answer)\n"
    "  --limit SECONDS  of one kernel call (default 60, slow cases 3600)\n"
    "  --relations, --no-relations, --oracle WHICH   as for `run`\n"
    "  --db FILE        default results/mlacheck.db: steps are stored there; builds go to "
    "FILE.bisect\n"
    "  --json           end with one JSON object\n"
    "  --verbose        show what kernels print\n\n"
    "example: mlacheck bisect 9f31c02ab7d1 --kernel mine --good v1.0 --repo ~/kernels \\\n"
    "             --build 'make mine.so' --plugin mine.so\n\n"
    "exit: 1 the commit (or a range, or the settings) is found, 2 bad usage, or an end that is not "
    "as "
    "said,\n"
    "3 environment, 130 interrupted\n";

#define TRIES      3
#define TRIES_MOST 200

/* ---- the case ---- */

static int read_line(struct mla_bisect *b, const char *flag, const char *line)
{
    char error[MLA_CASE_ERROR_MAX];
    long pages = sysconf(_SC_PHYS_PAGES);
    int64_t bytes_max = (int64_t)pages * sysconf(_SC_PAGESIZE) / 3;
    if (mla_case_parse(line, strlen(line), &b->test, error) != MLA_OK ||
        mla_case_problem(&b->test, bytes_max, error) != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "%s: %s", flag, error);
    return 0;
}

static int read_case(struct mla_bisect *b)
{
    const struct mla_options *o = &b->options;
    char *line;
    if (o->cases_n == 1)
        return read_line(b, "--case", o->cases[0]);
    if (mla_store_find_line(b->store, o->words[0], &line) != MLA_STORE_OK)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "ID '%s': %s", o->words[0],
                                mla_store_message(b->store));
    int code = read_line(b, "ID", line);
    free(line);
    return code;
}

/* "a/b.so:name": a plug-in's kernel goes by its name, for every commit has a plug-in of its own. */
static const char *plain_name(const char *spec)
{
    size_t n = mla_kernels_plugin(spec);
    return n > 0 && spec[n] == ':' ? spec + n + 1 : spec;
}

/* The kernel of the case's findings, if all are of one. */
static int take_finding(void *context, int columns_n, const char *const *names,
                        const char *const *values)
{
    struct mla_bisect *b = context;
    for (int i = 0; i < columns_n; i++) {
        if (strcmp(names[i], "kernel") != 0 || values[i] == NULL)
            continue;
        const char *name = plain_name(values[i]);
        if (b->kernel[0] != '\0' && strcmp(b->kernel, name) != 0) {
            b->kernel[0] = '\0';
            return 1;
        }
        snprintf(b->kernel, sizeof b->kernel, "%s", name);
    }
    return 0;
}

static int read_kernel(struct mla_bisect *b)
{
    const struct mla_options *o = &b->options;
    if (o->kernels_n > 1)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "give one --kernel");
    if (o->kernels_n == 1) {
        const char *name = o->configs_n > 0 ? o->kernels[0] : plain_name(o->kernels[0]);
        if (strlen(name) >= sizeof b->kernel)
            return mla_options_fail(MLA_EXIT_USAGE, "bisect", "--kernel: the name is too long");
        snprintf(b->kernel, sizeof b->kernel, "%s", name);
    } else if (o->words_n == 1) {
        (void)mla_store_view(b->store, MLA_VIEW_FINDINGS, o->words[0], take_finding, b);
    }
    return 0;
}

/* ---- the question and what is built ---- */

static int read_question(struct mla_bisect *b)
{
    char error[1024];
    const struct mla_options *o = &b->options;
    if (o->bits && o->where != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "--bits and --where exclude each other");
    snprintf(b->question, sizeof b->question, "%s", o->bits ? "bits" : "fails");
    if (o->where == NULL)
        return 0;
    const char *rule = mla_bisect_condition_parse(o->where, &b->condition, error, sizeof error);
    if (rule != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "--where '%s': must be %s", o->where,
                                rule);
    snprintf(b->question, sizeof b->question, "%s%s%.17g", b->condition.metric, b->condition.op,
             b->condition.number);
    return 0;
}

/* Without --build: are these our own kernels? They are built as this program was, unless CC says more. */
static int use_recipe(struct mla_bisect *b)
{
    char name[MLA_STORE_COMMIT_BYTES + 32], *text;
    int git_code = 0;
    snprintf(name, sizeof name, "%s:impl/registry.h", b->bad);
    int code = mla_bisect_git(b, (const char *[]){"cat-file", "-t", name, NULL}, &text, &git_code);
    free(text);
    if (code == 0 && git_code != 0)
        code =
            mla_options_fail(MLA_EXIT_USAGE, "bisect",
                             "%s is not mlacheck's repository: give --build and --plugin", b->repo);
    b->build = mla_bisect_recipe;
    b->plugin = mla_bisect_recipe_plugin;
    if (getenv("CC") == NULL)
        setenv("CC", strncmp(mla_build_describe().compiler, "Clang", 5) == 0 ? "clang" : "gcc", 1);
    return code;
}

/* Has a path a part ".."? What lies outside the tree may be another commit's. */
static bool leaves(const char *path)
{
    for (; *path != '\0'; path += strcspn(path, "/"), path += strspn(path, "/"))
        if (strcspn(path, "/") == 2 && strncmp(path, "..", 2) == 0)
            return true;
    return false;
}

static int read_build(struct mla_bisect *b)
{
    const struct mla_options *o = &b->options;
    if ((o->build == NULL) != (o->plugin == NULL))
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "--build and --plugin belong together");
    if (o->plugin != NULL &&
        (o->plugin[0] == '/' || leaves(o->plugin) || strlen(o->plugin) >= MLA_BISECT_PATH))
        return mla_options_fail(MLA_EXIT_USAGE, "bisect",
                                "--plugin '%.80s': must be a path in the tree", o->plugin);
    int code = mla_bisect_find_repo(b, o->repo == NULL ? "." : o->repo);
    if (code == 0)
        code = mla_bisect_resolve(b, "--bad", o->bad == NULL ? "HEAD" : o->bad, b->bad);
    b->build = o->build;
    b->plugin = o->plugin;
    return code == 0 && o->build == NULL ? use_recipe(b) : code;
}

static int read_ends(struct mla_bisect *b)
{
    char *text;
    int git_code = 0;
    if (b->options.good == NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect",
                                "give --good, a commit that is known to be good");
    int code = read_build(b);
    code = code != 0 ? code : mla_bisect_resolve(b, "--good", b->options.good, b->good);
    if (code != 0)
        return code;
    code = mla_bisect_git(b, (const char *[]){"merge-base", "--is-ancestor", b->good, b->bad, NULL},
                          &text, &git_code);
    free(text);
    if (code == 0 && (git_code != 0 || strcmp(b->good, b->bad) == 0))
        code = mla_options_fail(MLA_EXIT_USAGE, "bisect",
                                "--good %.12s: must be an ancestor of the bad commit %.12s",
                                b->good, b->bad);
    return code;
}

static int read_configs(struct mla_bisect *b)
{
    const struct mla_options *o = &b->options;
    if (o->configs_n != 2 || o->good != NULL)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect",
                                "give --config twice, the good one first, and no --good");
    bool built = o->build != NULL;
    for (int i = 0; i < 2; i++)
        built = built || strncmp(o->configs[i], "cc=", 3) == 0 ||
                strncmp(o->configs[i], "cflags=", 7) == 0 ||
                strstr(o->configs[i], ",cc=") != NULL || strstr(o->configs[i], ",cflags=") != NULL;
    return built ? read_build(b) : 0;
}

/* ---- the verb ---- */

static int check_flags(struct mla_bisect *b)
{
    const struct mla_options *o = &b->options;
    if (o->cases_n + o->words_n != 1)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "give one case: its ID, or --case");
    if (o->number > TRIES_MOST)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "--tries: must be at most %d",
                                TRIES_MOST);
    b->tries = o->number > 0 ? o->number : TRIES;
    return read_question(b);
}

/* By which git's hooks and aliases point what they run at their own repository. */
static void forget_repository(void)
{
    static const char *const names[] = {"GIT_DIR",        "GIT_WORK_TREE",
                                        "GIT_INDEX_FILE", "GIT_PREFIX",
                                        "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
                                        "GIT_NAMESPACE",  "GIT_ALTERNATE_OBJECT_DIRECTORIES"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

int mla_verb_bisect(int argc, char **argv)
{
    static struct mla_bisect b = {.lock = -1, .build = "", .plugin = ""};
    int code = mla_options_parse(&b.options, "bisect", "kcldtrROJvheBLgxWCIy", argc, argv);
    if (code != 0 || b.options.help) {
        if (code == 0)
            fputs(help, stdout);
        return code;
    }
    forget_repository();
    bool config = b.options.configs_n > 0;
    code = check_flags(&b);
    if (code == 0)
        code = config ? read_configs(&b) : read_ends(&b);
    if (code == 0) {
        b.store = b.options.words_n == 1 ? mla_options_read_store(&b.options, "bisect")
                                         : mla_options_store(&b.options, "bisect");
        code = b.store == NULL ? MLA_EXIT_ENVIRONMENT : read_case(&b);
    }
    code = code != 0 ? code : read_kernel(&b);
    if (code == 0)
        code = config ? mla_bisect_configuration(&b) : mla_bisect_search(&b);
    mla_bisect_tree_end(&b);
    free(b.steps);
    if (mla_store_close(b.store) != MLA_STORE_OK)
        code =
            mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "the database could not be written");
    if (code == MLA_EXIT_INTERRUPTED)
        fprintf(stderr, "interrupted: the same command goes on from here\n");
    return code;
}
