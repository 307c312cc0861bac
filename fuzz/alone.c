/* SPDX-License-Identifier: Apache-2.0
 *
 * alone.c - running this program again on one case.
 */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz/alone.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "fuzz/call.h"

#define SECONDS 2.0

double mla_alone_seconds(const char *limit)
{
    double share = limit == NULL ? SECONDS : strtod(limit, NULL) / 8;
    return share < SECONDS ? share : SECONDS;
}

#ifdef __linux__

extern char **environ;

/* Ours make a process a worker, or let it draw a case of its own; the kernel it needs. */
static bool is_kept(const char *variable)
{
    return strncmp(variable, "MLACHECK_", 9) != 0 || strncmp(variable, "MLACHECK_KERNEL=", 16) == 0;
}

static char **environment(char *variable)
{
    size_t n = 0, kept = 0;
    while (environ[n] != NULL)
        n++;
    char **copy = calloc(n + 2, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n; i++)
        if (is_kept(environ[i]))
            copy[kept++] = environ[i];
    if (copy != NULL)
        copy[kept] = variable;
    return copy;
}

static enum mla_alone wait_for(pid_t pid, double seconds)
{
    double deadline = mla_call_clock() + seconds;
    int status;
    for (;;) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid)
            break;
        if (ended < 0 && errno != EINTR)
            return MLA_ALONE_UNKNOWN;
        if (mla_call_clock() > deadline) {
            kill(pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
            return MLA_ALONE_UNKNOWN; /* slow and stuck look the same from here */
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == MLA_ALONE_PASSES)
        return MLA_ALONE_PASSES;
    bool gave_up = WIFEXITED(status) && WEXITSTATUS(status) == MLA_ALONE_UNKNOWN;
    return gave_up ? MLA_ALONE_UNKNOWN : MLA_ALONE_FAILS;
}

/* In the child; only what may be called between fork and exec. */
static void become(char **arguments, char **variables, pid_t parent)
{
    int null = open("/dev/null", O_WRONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execve("/proc/self/exe", arguments, variables);
    }
    _exit(MLA_ALONE_UNKNOWN);
}

static enum mla_alone spawn(int file, char *variable, double seconds)
{
    char path[64],
        artifacts[] = "-artifact_prefix=/proc/"; /* is there, as engines ask; holds no file */
    char *arguments[] = {"alone", path, artifacts, NULL};
    char **variables = environment(variable);
    if (variables == NULL)
        return MLA_ALONE_UNKNOWN;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(arguments, variables, parent);
    free(variables);
    return pid < 0 ? MLA_ALONE_UNKNOWN : wait_for(pid, seconds);
}

enum mla_alone mla_alone_run(const struct mla_case *test, bool all_relations, double seconds)
{
    char line[MLA_CASE_LINE_MAX];
    char all[] = MLA_ALONE_VARIABLE "=all", chosen[] = MLA_ALONE_VARIABLE "=chosen";
    size_t n = mla_case_format(test, line);
    int file = memfd_create("case", 0); /* which the child inherits */
    if (file < 0)
        return MLA_ALONE_UNKNOWN;
    enum mla_alone result = write(file, line, n) == (ssize_t)n
                                ? spawn(file, all_relations ? all : chosen, seconds)
                                : MLA_ALONE_UNKNOWN;
    close(file);
    return result;
}

#else

enum mla_alone mla_alone_run(const struct mla_case *test, bool all_relations, double seconds)
{
    (void)test;
    (void)all_relations;
    (void)seconds;
    return MLA_ALONE_UNKNOWN;
}

#endif
