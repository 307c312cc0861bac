/* SPDX-License-Identifier: Apache-2.0
 *
 * plugin.c - load a plug-in, and find out in a child first whether that is survivable.
 *
 * The child does exactly what the parent will do and sends the outcome back through a pipe, in one
 * write that a pipe takes whole. The parent waits for the child, not for the pipe: a constructor
 * may have left a process of its own behind that keeps the pipe open.
 */
#include "fuzz/plugin/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_MOST 3600.0

/* What the child reports. Smaller than PIPE_BUF, so that it arrives whole or not at all. */
struct outcome {
    int32_t status;
    char reason[1024];
};

typedef const struct mla_kernel *const *kernels_function(size_t *kernels_n);

/* "plug-in <path>: <reason>" to the caller. */
static int32_t report(char *message, size_t message_bytes, const char *path,
                      const struct outcome *outcome)
{
    if (message && message_bytes > 0) {
        if (outcome->status == MLA_OK) {
            message[0] = '\0';
        } else {
            snprintf(message, message_bytes, "plug-in %s: %s", path, outcome->reason);
        }
    }
    return outcome->status;
}

static void refuse(struct outcome *outcome, int32_t status, const char *what, const char *detail)
{
    outcome->status = status;
    snprintf(outcome->reason, sizeof outcome->reason, "%s%s%s", what, detail[0] ? ": " : "",
             detail);
}

/*
 * Is it a regular file that starts like an ELF object? dlopen would block on a FIFO and has a less
 * clear answer for the rest. On success *full is the absolute path, to be freed.
 */
static void examine_file(const char *path, char **full, struct outcome *outcome)
{
    struct stat info;
    unsigned char magic[4] = {0};
    outcome->status = MLA_OK;
    *full = realpath(path, NULL);
    if (!*full || stat(*full, &info) != 0) {
        refuse(outcome, MLA_ERR_PARAM, "cannot be found", strerror(errno));
        return;
    }
    if (!S_ISREG(info.st_mode)) {
        refuse(outcome, MLA_ERR_PARAM, "not a regular file", "");
        return;
    }
    int file = open(*full, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        refuse(outcome, MLA_ERR_PARAM, "cannot be opened", strerror(errno));
        return;
    }
    ssize_t got = read(file, magic, sizeof magic);
    close(file);
    if (got != (ssize_t)sizeof magic || memcmp(magic, "\177ELF", 4) != 0) {
        refuse(outcome, MLA_ERR_PARAM, "not an ELF shared object", "");
    }
}

/* Load, look up, ask, check. Never unloads, not even what it refuses. */
static void load_as_found(const char *full, const struct mla_kernel *const **kernels,
                          size_t *kernels_n, struct outcome *outcome)
{
    dlerror();
    void *handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *detail = dlerror();
        refuse(outcome, MLA_ERR_PARAM, "cannot be loaded", detail ? detail : "no reason given");
        return;
    }
    void *symbol = dlsym(handle, "mla_plugin_kernels");
    if (!symbol) {
        refuse(outcome, MLA_ERR_PARAM, "does not export mla_plugin_kernels", "");
        return;
    }
    /* POSIX guarantees that a function fits a data pointer; ISO C has no cast that says so. */
    kernels_function *ask = NULL;
    memcpy(&ask, &symbol, sizeof ask);
    size_t n = 0;
    const struct mla_kernel *const *found = ask(&n);
    outcome->status = mla_plugin_check(found, n, outcome->reason, sizeof outcome->reason);
    if (outcome->status == MLA_OK) {
        *kernels = found;
        *kernels_n = n;
    }
}

/* Constructors may change the floating-point mode (-ffast-math links one that does): undo it. */
static void load_and_check(const char *full, const struct mla_kernel *const **kernels,
                           size_t *kernels_n, struct outcome *outcome)
{
    fenv_t environment;
    fegetenv(&environment);
    load_as_found(full, kernels, kernels_n, outcome);
    fesetenv(&environment);
}

/* The child: no core file, no inherited crash handler (it would hide the signal), and a last resort
 * in case the parent is gone. Ends without running this program's exit handlers. */
static void probe_child(const char *full, double seconds, int reply)
{
    static const int signals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE, SIGABRT, SIGTRAP,
                                  SIGALRM, SIGTERM, SIGINT, SIGHUP, SIGSYS};
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        signal(signals[i], SIG_DFL);
    }
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    alarm((unsigned)seconds + 20u);
    struct outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    const struct mla_kernel *const *kernels = NULL;
    size_t kernels_n = 0;
    load_and_check(full, &kernels, &kernels_n, &outcome);
    ssize_t sent = write(reply, &outcome, sizeof outcome);
    _exit(sent == (ssize_t)sizeof outcome ? 0 : 1);
}

static double now(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Wait for the child until the time is up. 1: ended, *status set; 0: still running; -1: not ours.
 */
static int wait_for(pid_t child, double seconds, int *status)
{
    double end = now() + seconds;
    struct timespec pause = {0, 1000000};
    for (;;) {
        pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child) {
            return 1;
        }
        if (ended < 0 && errno != EINTR) {
            return -1;
        }
        if (!(now() < end)) {
            return 0;
        }
        nanosleep(&pause, NULL);
    }
}

/* What became of the child, into *outcome. */
static void judge_child(pid_t child, double seconds, int reply, struct outcome *outcome)
{
    int status = 0;
    char detail[64];
    int waited = wait_for(child, seconds, &status);
    if (waited == 0) {
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        snprintf(detail, sizeof detail, "still loading after %g s", seconds);
        refuse(outcome, MLA_ERR_PARAM, detail, "");
        return;
    }
    struct outcome reported;
    ssize_t got = read(reply, &reported, sizeof reported);
    if (waited == 1 && WIFSIGNALED(status)) {
        snprintf(detail, sizeof detail, "signal %d", WTERMSIG(status));
        refuse(outcome, MLA_ERR_PARAM, "crashed while loading", detail);
    } else if (got == (ssize_t)sizeof reported) {
        *outcome = reported;
        outcome->reason[sizeof outcome->reason - 1] = '\0';
    } else if (waited == 1) {
        snprintf(detail, sizeof detail, "exited with status %d while loading", WEXITSTATUS(status));
        refuse(outcome, MLA_ERR_PARAM, detail, "");
    } else {
        refuse(outcome, MLA_ERR_INTERNAL, "the child that loads it cannot be waited for",
               strerror(errno));
    }
}

static void probe(const char *full, double seconds, struct outcome *outcome)
{
    int ends[2];
    if (pipe(ends) != 0) {
        refuse(outcome, MLA_ERR_INTERNAL, "no pipe to a child", strerror(errno));
        return;
    }
    /* Reading must not wait for a grandchild that holds the other end. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fflush(stdout); /* a constructor that calls exit would print what is pending a second time */
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        probe_child(full, seconds, ends[1]);
    }
    if (child < 0) {
        refuse(outcome, MLA_ERR_INTERNAL, "no child process", strerror(errno));
    } else {
        judge_child(child, seconds, ends[0], outcome);
    }
    close(ends[1]);
    close(ends[0]);
}

static void bad_path(struct outcome *outcome)
{
    refuse(outcome, MLA_ERR_PARAM, "path = 0: a file name is needed", "");
}

int32_t mla_plugin_probe(const char *path, double seconds, char *message, size_t message_bytes)
{
    struct outcome outcome;
    char *full = NULL;
    memset(&outcome, 0, sizeof outcome);
    if (!path) {
        bad_path(&outcome);
        return report(message, message_bytes, "(null)", &outcome);
    }
    if (!(seconds > 0.0 && seconds <= SECONDS_MOST)) {
        outcome.status = MLA_ERR_PARAM;
        snprintf(outcome.reason, sizeof outcome.reason, "seconds = %g: must be in (0, %g]", seconds,
                 SECONDS_MOST);
        return report(message, message_bytes, path, &outcome);
    }
    examine_file(path, &full, &outcome);
    if (outcome.status == MLA_OK) {
        probe(full, seconds, &outcome);
    }
    free(full);
    return report(message, message_bytes, path, &outcome);
}

int32_t mla_plugin_load(const char *path, const struct mla_kernel *const **kernels,
                        size_t *kernels_n, char *message, size_t message_bytes)
{
    struct outcome outcome;
    char *full = NULL;
    memset(&outcome, 0, sizeof outcome);
    *kernels = NULL;
    *kernels_n = 0;
    if (!path) {
        bad_path(&outcome);
        return report(message, message_bytes, "(null)", &outcome);
    }
    examine_file(path, &full, &outcome);
    if (outcome.status == MLA_OK) {
        probe(full, MLA_PLUGIN_SECONDS, &outcome);
    }
    if (outcome.status == MLA_OK) {
        load_and_check(full, kernels, kernels_n, &outcome);
    }
    free(full);
    return report(message, message_bytes, path, &outcome);
}
