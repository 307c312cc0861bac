/* SPDX-License-Identifier: Apache-2.0
 *
 * alone.c - running this program again on one case.
 */
#include "fuzz/alone.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/call.h"

extern char **environ;

/* This environment without the database, which would make it a worker, and with the variable. */
static char **environment(char *variable)
{
    size_t n = 0, kept = 0;
    while (environ[n] != NULL)
        n++;
    char **copy = calloc(n + 2, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n; i++)
        if (strncmp(environ[i], "MLACHECK_DB=", 12) != 0)
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
            (void)waitpid(pid, &status, 0);
            return MLA_ALONE_FAILS;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == MLA_ALONE_PASSES)
        return MLA_ALONE_PASSES;
    bool gave_up = WIFEXITED(status) && WEXITSTATUS(status) == MLA_ALONE_UNKNOWN;
    return gave_up ? MLA_ALONE_UNKNOWN : MLA_ALONE_FAILS;
}

static enum mla_alone spawn(char *path, char *variable, double seconds)
{
    char *arguments[] = {"/proc/self/exe", path, NULL};
    char **variables = environment(variable);
    posix_spawn_file_actions_t actions;
    pid_t pid;
    if (variables == NULL)
        return MLA_ALONE_UNKNOWN;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(&pid, arguments[0], &actions, NULL, arguments, variables);
    posix_spawn_file_actions_destroy(&actions);
    free(variables);
    return error != 0 ? MLA_ALONE_UNKNOWN : wait_for(pid, seconds);
}

enum mla_alone mla_alone_run(const struct mla_case *test, bool all_relations, double seconds)
{
    char path[] = "/tmp/mlacheck-alone-XXXXXX", line[MLA_CASE_LINE_MAX];
    char all[] = MLA_ALONE_VARIABLE "=all", chosen[] = MLA_ALONE_VARIABLE "=chosen";
    size_t n = mla_case_format(test, line);
    int file = mkstemp(path);
    if (file < 0)
        return MLA_ALONE_UNKNOWN;
    bool written = write(file, line, n) == (ssize_t)n;
    close(file);
    enum mla_alone result =
        written ? spawn(path, all_relations ? all : chosen, seconds) : MLA_ALONE_UNKNOWN;
    unlink(path);
    return result;
}
