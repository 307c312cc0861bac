/* SPDX-License-Identifier: Apache-2.0
 *
 * report_gnuplot.c - script and drawings go through nameless files, so that neither side waits for
 * the other.
 */
#include "results/report_gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results/store_internal.h"

extern char **environ;

/* All of a file from its beginning; NULL on error. */
static char *read_whole(FILE *file)
{
    if (fseek(file, 0, SEEK_END) != 0) {
        return NULL;
    }
    long bytes = ftell(file);
    char *text = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
    rewind(file);
    if (text == NULL || fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(text);
        return NULL;
    }
    text[bytes] = '\0';
    return text;
}

/* 0, or an errno. *code: the exit status as of waitpid. */
static int spawn(int in, int out, int complaints, int *code)
{
    static const char *const words[] = {"gnuplot", "-d", "-", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        return failed;
    }
    failed = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    failed = failed != 0 ? failed : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    failed = failed != 0 ? failed
                         : posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
    failed = failed != 0
                 ? failed
                 : posix_spawnp(&child, words[0], &actions, NULL, (char *const *)words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    while (failed == 0 && waitpid(child, code, 0) < 0) {
        failed = errno == EINTR ? 0 : errno;
    }
    return failed;
}

static int32_t explain(struct mla_store *store, int error, int code, FILE *complaints)
{
    if (error != 0) {
        return mla_store_fail(store, MLA_STORE_ERR_OPEN,
                              "gnuplot cannot be run (%s): the HTML report needs it; install the "
                              "package gnuplot-nox or run scripts/setup",
                              strerror(error));
    }
    char *text = read_whole(complaints);
    int32_t status = mla_store_fail(store, MLA_STORE_ERR_OPEN, "gnuplot failed (status %d): %.600s",
                                    WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code),
                                    text != NULL ? text : "");
    free(text);
    return status;
}

int32_t mla_gnuplot(struct mla_store *store, const char *script, size_t bytes, char **output)
{
    *output = NULL;
    FILE *in = tmpfile(), *out = tmpfile(), *complaints = tmpfile();
    int32_t status = MLA_STORE_OK;
    if (in == NULL || out == NULL || complaints == NULL || fwrite(script, 1, bytes, in) != bytes ||
        fflush(in) != 0 || lseek(fileno(in), 0, SEEK_SET) != 0) {
        status = mla_store_fail(store, MLA_STORE_ERR_OPEN, "no temporary file for gnuplot: %s",
                                strerror(errno));
    } else {
        int code = 0, error = spawn(fileno(in), fileno(out), fileno(complaints), &code);
        if (error != 0 || code != 0) {
            status = explain(store, error, code, complaints);
        } else if ((*output = read_whole(out)) == NULL) {
            status = mla_store_fail(store, MLA_STORE_ERR_OPEN, "gnuplot's drawings cannot be read");
        }
    }
    FILE *files[] = {in, out, complaints};
    for (size_t i = 0; i < 3; i++) {
        if (files[i] != NULL) {
            (void)fclose(files[i]);
        }
    }
    return status;
}
