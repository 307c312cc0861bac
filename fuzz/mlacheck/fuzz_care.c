/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_care.c - what keeps hunts healthy for weeks.
 */
#include "fuzz/mlacheck/fuzz_care.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define KEEP_WORST  8 /* executions of a cell (mla_store_prune) */
#define KEEP_NEWEST 8
#define FILES_MAX   8192 /* a corpus of more is merged: half a minute of executions */

void mla_fuzz_prune(const struct mla_options *options)
{
    struct mla_store *store = mla_options_store(options, "fuzz");
    if (store == NULL)
        return;
    if (mla_store_prune(store, KEEP_WORST, KEEP_NEWEST, NULL) != MLA_STORE_OK)
        fprintf(stderr, "mlacheck fuzz: %s\n", mla_store_message(store));
    mla_store_close(store);
}

/* ---- folders of files ---- */

/* Its files; -1 when it cannot be read. */
static long count_files(const char *path)
{
    DIR *listing = opendir(path);
    long n = 0;
    if (listing == NULL)
        return -1;
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        n += entry->d_name[0] != '.';
    closedir(listing);
    return n;
}

/* A folder with its files. One that is not there is no error. */
static void remove_folder(const char *path)
{
    DIR *listing = opendir(path);
    if (listing == NULL)
        return;
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        unlinkat(dirfd(listing), entry->d_name, 0);
    closedir(listing);
    rmdir(path);
}

/* ---- merging ---- */

struct merge {
    char program[1024], corpus[1024], merged[1040], log[1024];
};

/* In the child: no database, for what is run again was stored when it was found. */
static void become(const struct merge *merge, const struct mla_options *options)
{
    char limit[64];
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    unsetenv("MLACHECK_DB");
    unsetenv("MLACHECK_GUIDANCE");
    setenv("MLACHECK_FAULTS", "pass", 1);
    setenv("MLACHECK_KERNEL", options->kernels_n > 0 ? options->kernels[0] : "scalar", 1);
    snprintf(limit, sizeof limit, "-timeout=%d",
             options->limit > 0 ? (int)(options->limit + 0.999) : 30);
    int fd = open(merge->log, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    execl(merge->program, merge->program, "-merge=1", merge->merged, merge->corpus, limit,
          "-max_len=2048", "-rss_limit_mb=4096", (char *)NULL);
    _exit(3);
}

/* Wait; Ctrl-C ends it. */
static bool ends_well(pid_t pid)
{
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        if (mla_interrupted)
            kill(-pid, SIGKILL); /* with the process that runs the inputs */
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The merged corpus takes the place of the old one, which stays until it has. */
static bool replace(const struct merge *merge)
{
    char old[1040];
    snprintf(old, sizeof old, "%s.old", merge->corpus);
    remove_folder(old);
    if (rename(merge->corpus, old) != 0)
        return false;
    if (rename(merge->merged, merge->corpus) != 0) {
        rename(old, merge->corpus);
        return false;
    }
    remove_folder(old);
    return true;
}

static void merge_corpus(const struct mla_options *options, const struct merge *merge,
                         const char *op)
{
    long before = count_files(merge->corpus);
    if (before <= 0 || (!options->merge && before <= FILES_MAX))
        return;
    remove_folder(merge->merged);
    bool done = mkdir(merge->merged, 0755) == 0;
    if (done) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            become(merge, options);
        done = ends_well(pid);
    }
    long after = done ? count_files(merge->merged) : 0;
    done = done && after > 0 && replace(merge);
    remove_folder(merge->merged);
    if (done)
        printf("corpus of %s merged: %ld files, %ld before\n", op, after, before);
    else if (!mla_interrupted)
        fprintf(stderr, "mlacheck fuzz: the corpus of %s could not be merged; see %s\n", op,
                merge->log);
}

void mla_fuzz_merge(const struct mla_options *options, const char *programs, const char *folder)
{
    static const char *const names[] = {"ring", "sparse", "reject"};
    for (int i = 0; i < 3 && !mla_interrupted; i++) {
        struct merge merge;
        snprintf(merge.program, sizeof merge.program, "%s/fuzz_%s", programs, names[i]);
        snprintf(merge.corpus, sizeof merge.corpus, "%s/corpus-%s", folder, names[i]);
        snprintf(merge.merged, sizeof merge.merged, "%s.merged", merge.corpus);
        snprintf(merge.log, sizeof merge.log, "%s/%s-merge.log", folder, names[i]);
        merge_corpus(options, &merge, names[i]);
    }
}
