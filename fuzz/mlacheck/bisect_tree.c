/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_tree.c - the folder of a search: its lock, and the work tree that commits are built in.
 *
 * A process that was killed leaves its tree registered with the repository; the next one removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/kernels.h"
#include "fuzz/mlacheck/bisect.h"

#define PLUGIN_NAME_MAX (1 + 64 + 1 + 12 + 3 + 1) /* "/COMMIT-FLAGS.so" and its end */

int mla_bisect_trouble(const char *what, const char *path)
{
    return mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "%s '%s': %s", what, path,
                            strerror(errno));
}

void mla_bisect_inside(const struct mla_bisect *b, const char *name, char path[MLA_BISECT_PATH])
{
    snprintf(path, MLA_BISECT_PATH, "%.*s/%.*s", MLA_BISECT_PATH - 200, b->folder, 180, name);
}

int mla_bisect_folder(struct mla_bisect *b)
{
    char hex[65], path[MLA_BISECT_PATH];
    if (b->folder[0] != '\0')
        return 0;
    mla_bisect_hash(hex, b->repo, b->build, b->plugin, NULL);
    int n = snprintf(path, sizeof path, "%s.bisect", b->options.db);
    if (n < 0 || (size_t)n + 220 > sizeof path)
        return mla_options_fail(MLA_EXIT_USAGE, "bisect", "--db: the path is too long");
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return mla_bisect_trouble("cannot make", path);
    snprintf(path + n, sizeof path - (size_t)n, "/%.16s", hex);
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return mla_bisect_trouble("cannot make", path);
    char *full = realpath(path, NULL); /* builds work elsewhere */
    bool ok = full != NULL && strlen(full) + 220 < sizeof b->folder;
    if (ok && b->plugin != NULL && strlen(full) + PLUGIN_NAME_MAX > MLA_KERNELS_PATH_MAX) {
        int code = mla_options_fail(
            MLA_EXIT_USAGE, "bisect",
            "--db: '%s' would hold the plug-ins, whose paths must be shorter than %d bytes", full,
            MLA_KERNELS_PATH_MAX);
        free(full);
        return code;
    }
    if (ok)
        snprintf(b->folder, sizeof b->folder, "%s", full);
    free(full);
    return ok ? 0 : mla_bisect_trouble("cannot use", path);
}

/*
 * One search at a time. The descriptor is the only one that is inherited, on purpose: while a build lives on
 * whose search was killed, it is not yet our turn. A search that ends unlocks it for all who hold it, or a
 * server that a build has started would keep the next one out.
 */
static int take_lock(struct mla_bisect *b)
{
    char path[MLA_BISECT_PATH];
    bool told = false;
    mla_bisect_inside(b, "lock", path);
    int lock = open(path, O_RDWR | O_CREAT, 0644);
    if (lock < 0)
        return mla_bisect_trouble("cannot open", path);
    while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        bool failed = errno != EWOULDBLOCK && errno != EINTR;
        int code = failed ? mla_bisect_trouble("cannot lock", path) : MLA_EXIT_INTERRUPTED;
        if (failed || mla_interrupted) {
            close(lock);
            return code;
        }
        if (!told)
            fprintf(stderr, "waiting for another search, or for a build that outlived it (%s)\n",
                    path);
        told = true;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    b->lock = lock;
    return 0;
}

/* Of whoever was here before, too. Failing is no harm: `worktree add` will say so. */
static void remove_tree(const struct mla_bisect *b, const char *tree)
{
    int code = 0, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct mla_child git = {.argv = (const char *[]){"git", "-C", b->repo, "worktree", "remove",
                                                     "--force", "--force", tree, NULL},
                            .out = null,
                            .error = null};
    struct mla_child rm = {
        .argv = (const char *[]){"rm", "-rf", "--", tree, NULL}, .out = null, .error = null};
    int interrupted = mla_interrupted;
    mla_interrupted = 0; /* a stop is when it is needed most */
    (void)mla_child_run(&git, &code);
    if (access(tree, F_OK) == 0)
        (void)mla_child_run(&rm, &code);
    mla_interrupted = mla_interrupted || interrupted;
    close(null);
}

int mla_bisect_tree(struct mla_bisect *b)
{
    char tree[MLA_BISECT_PATH], *text = NULL;
    int git_code = 0, code = mla_bisect_folder(b);
    if (code != 0 || b->lock >= 0)
        return code;
    code = take_lock(b);
    if (code != 0)
        return code;
    mla_bisect_inside(b, "tree", tree);
    remove_tree(b, tree);
    /* If a build removes the tree's .git, no git command in it may find the repository around our folder. */
    if (setenv("GIT_CEILING_DIRECTORIES", b->folder, 1) != 0)
        return mla_bisect_trouble("cannot name", b->folder);
    code = mla_bisect_git(b,
                          (const char *[]){"worktree", "add", "--force", "--force", "--detach",
                                           "--no-checkout", "--quiet", tree, b->bad, NULL},
                          &text, &git_code);
    free(text);
    if (code == 0 && git_code != 0)
        code =
            mla_options_fail(MLA_EXIT_ENVIRONMENT, "bisect", "git made no work tree at %s", tree);
    return code;
}

void mla_bisect_tree_end(struct mla_bisect *b)
{
    char tree[MLA_BISECT_PATH];
    if (b->lock < 0)
        return;
    mla_bisect_inside(b, "tree", tree);
    remove_tree(b, tree);
    (void)flock(b->lock, LOCK_UN);
    close(b->lock);
    b->lock = -1;
}
