/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_git.c - questions to git, by its plumbing commands.
 *
 * The repository's own hooks stay out of it, and so do the variables by which git's hooks and aliases
 * point the commands they run at another repository (bisect.c removes them).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/mlacheck/bisect.h"

#define ARGUMENTS_MAX 4096

/* All of a file from its beginning, terminated. NULL without memory. */
static char *read_all(FILE *file)
{
    long n = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text == NULL || fseek(file, 0, SEEK_SET) != 0) {
        free(text);
        return NULL;
    }
    text[fread(text, 1, (size_t)n, file)] = '\0';
    return text;
}

int mla_bisect_git(const struct mla_bisect *b, const char *const *arguments, char **text,
                   int *git_code)
{
    const char *argv[ARGUMENTS_MAX + 8] = {"git", "-C", b->repo, "-c", "core.hooksPath=/dev/null"};
    size_t n = 5;
    *text = NULL;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        if (i == ARGUMENTS_MAX)
            return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "too many commits");
        argv[n++] = arguments[i];
    }
    FILE *file = tmpfile();
    if (file == NULL || fcntl(fileno(file), F_SETFD, FD_CLOEXEC) != 0)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "no temporary file: %s",
                                strerror(errno));
    struct mla_child child = {.argv = argv, .out = fileno(file), .error = -1};
    enum mla_child_end end = mla_child_run(&child, git_code);
    if (end == MLA_CHILD_ENDED && *git_code != 127)
        *text = read_all(file);
    fclose(file);
    if (end == MLA_CHILD_STOPPED)
        return MLA_EXIT_INTERRUPTED;
    if (*text == NULL)
        return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "git could not be run");
    return 0;
}

int mla_bisect_find_repo(struct mla_bisect *b, const char *folder)
{
    char *text;
    int git_code = 0;
    if (strlen(folder) >= sizeof b->repo)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "--repo: the path is too long");
    snprintf(b->repo, sizeof b->repo, "%s", folder);
    int code =
        mla_bisect_git(b, (const char *[]){"rev-parse", "--show-toplevel", NULL}, &text, &git_code);
    if (code != 0)
        return code;
    text[strcspn(text, "\n")] = '\0';
    bool ok = git_code == 0 && text[0] == '/' && strlen(text) < sizeof b->repo;
    if (ok)
        snprintf(b->repo, sizeof b->repo, "%s", text);
    free(text);
    return ok ? 0
              : mla_options_fail(MLA_EXIT_USAGE, "bisect",
                                 "--repo '%s': must be a git repository with a work tree", folder);
}

int mla_bisect_resolve(const struct mla_bisect *b, const char *flag, const char *revision,
                       char hash[MLA_STORE_COMMIT_BYTES])
{
    char name[300], *text;
    int git_code = 0, code = 0;
    bool ok = revision[0] != '-' && strlen(revision) < 256;
    if (ok) {
        snprintf(name, sizeof name, "%s^{commit}", revision);
        code = mla_bisect_git(b, (const char *[]){"rev-parse", "--verify", "--quiet", name, NULL},
                              &text, &git_code);
        if (code != 0)
            return code;
        size_t n = strspn(text, "0123456789abcdef");
        ok = git_code == 0 && n >= 40 && n < MLA_STORE_COMMIT_BYTES;
        snprintf(hash, MLA_STORE_COMMIT_BYTES, "%.*s", (int)n, ok ? text : "");
        free(text);
    }
    return ok ? 0
              : mla_options_fail(MLA_EXIT_USAGE, "bisect", "%s '%.256s': no commit of %s", flag,
                                 revision, b->repo);
}

void mla_bisect_subject(const struct mla_bisect *b, const char *commit, char *text,
                        size_t text_bytes)
{
    char *all = NULL;
    int git_code = 0;
    text[0] = '\0';
    if (mla_bisect_git(b, (const char *[]){"show", "-s", "--format=%s", commit, NULL}, &all,
                       &git_code) == 0 &&
        git_code == 0)
        snprintf(text, text_bytes, "%.*s", (int)strcspn(all, "\n"), all);
    free(all);
}
