/* SPDX-License-Identifier: Apache-2.0
 *
 * call.c - calling a kernel directly or isolated.
 *
 * Isolated, the child writes its result into a shared mapping and leaves by _exit; the parent waits
 * on a pipe whose writing end closes with the child, so neither a crash nor a hang can hold it up.
 */
#ifdef __linux__
#define _GNU_SOURCE /* close_range */
#endif

#include "fuzz/call.h"

#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

double mla_call_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Rounding to nearest, subnormals kept: what the judge's own arithmetic needs too. */
static bool environment_is_default(void)
{
    volatile float small = FLT_MIN;
    volatile float half = small * 0.5f;
    return fegetround() == FE_TONEAREST && half != 0;
}

/* A message is printed and stored as one line of plain text, whatever the kernel put there. */
static void make_printable(char *text, size_t bytes)
{
    text[bytes - 1] = '\0';
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
            *text = '?';
}

static void (*watcher)(const struct mla_kernel *kernel); /* NULL: none */

void mla_call_watch(void (*watch)(const struct mla_kernel *kernel))
{
    watcher = watch;
}

static void announce(const struct mla_kernel *kernel)
{
    if (watcher != NULL)
        watcher(kernel);
}

/* What is done before a call, in its process. */
struct before {
    void (*run)(void *context); /* NULL: nothing */
    void *context;
};

static void direct(struct before before, const struct mla_kernel *kernel,
                   struct mla_tensors *tensors, struct mla_call *call)
{
    if (before.run != NULL)
        before.run(before.context);
    fenv_t environment;
    bool stats = (kernel->promises & MLA_PROMISE_STATS) != 0;
    call->message[0] = '\0';
    announce(kernel);
    fegetenv(&environment);
    double start = mla_call_clock();
    if (tensors->test.op == MLA_OP_RING) {
        struct mla_ring_args args = tensors->ring;
        args.stats = stats ? args.stats : NULL;
        call->status = kernel->ring(&args, call->message, sizeof call->message);
    } else {
        struct mla_sparse_args args = tensors->sparse;
        args.stats = stats ? args.stats : NULL;
        call->status = kernel->sparse(&args, call->message, sizeof call->message);
    }
    call->seconds = mla_call_clock() - start;
    call->changed_environment = !environment_is_default();
    fesetenv(&environment);
    announce(NULL);
    make_printable(call->message, sizeof call->message);
    call->end = MLA_CALL_RETURNED;
}

static void close_rest(int keep)
{
    dup2(keep, 3);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    (void)close_range(4, ~0U, 0);
#else
    for (int fd = 4; fd < 1024; fd++)
        (void)close(fd);
#endif
}

void mla_call_seclude(int keep, pid_t parent)
{
    static const int fatal[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE, SIGABRT,
                                SIGINT,  SIGTERM, SIGHUP, SIGALRM};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        (void)signal(fatal[i], SIG_DFL);
    setpgid(0, 0); /* what the kernel leaves behind can be found and ended */
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
#else
    (void)parent;
#endif
    close_rest(keep);
}

/* Never returns. `shared` says "returned" only once everything is in it. */
static void child(struct before before, const struct mla_kernel *kernel,
                  struct mla_tensors *tensors, struct mla_call *shared, int pipe_end, pid_t parent)
{
    mla_call_seclude(pipe_end, parent);
    mla_call_watch(NULL); /* the parent sees how it ends */
    struct mla_call call = {0};
    direct(before, kernel, tensors, &call);
    call.end = MLA_CALL_CRASHED;
    *shared = call;
    __atomic_store_n((int *)&shared->end, MLA_CALL_RETURNED, __ATOMIC_RELEASE);
    _exit(0);
}

/*
 * Wait for the child until the deadline. The pipe's writing end closes with the child and ends the
 * poll at once; a kernel may close it early, or hand it to a process of its own, so only the child
 * itself is believed. false: it had to be killed.
 */
static bool wait_child(pid_t pid, int fd, double seconds_limit, int *status)
{
    double deadline = mla_call_clock() + seconds_limit;
    bool open = true;
    for (;;) {
        pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended == pid)
            return true;
        if (mla_call_clock() >= deadline)
            break;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (open && poll(&p, 1, 20) > 0)
            open = false;
        else if (!open)
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return false;
}

static void collect(pid_t pid, int fd, double seconds_limit, struct mla_call *shared)
{
    int status = 0;
    bool ended = wait_child(pid, fd, seconds_limit, &status);
    /* Whoever is left in the child's group could still write to the tensors. */
    bool left_behind = kill(-pid, SIGKILL) == 0;
    if (!ended) {
        shared->end = MLA_CALL_TIMED_OUT;
        shared->seconds = seconds_limit;
    } else if (WIFSIGNALED(status)) {
        shared->end = MLA_CALL_CRASHED;
        shared->signal_or_exit = WTERMSIG(status);
    } else if (WEXITSTATUS(status) != 0 || shared->end != MLA_CALL_RETURNED) {
        shared->end = MLA_CALL_CRASHED;
        shared->signal_or_exit = -WEXITSTATUS(status);
    } else if (left_behind) {
        shared->left_process = true;
    }
}

static void isolated(struct before before, const struct mla_kernel *kernel,
                     struct mla_tensors *tensors, double seconds_limit, struct mla_call *call)
{
    int ends[2] = {-1, -1};
    struct mla_call *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    call->end = MLA_CALL_NOT_MADE;
    snprintf(call->message, sizeof call->message, "cannot fork a child for the kernel");
    if (shared == MAP_FAILED)
        return;
    if (pipe(ends) != 0)
        goto done;
    shared->end = MLA_CALL_CRASHED;
    fflush(NULL); /* or the child would print it again */
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child(before, kernel, tensors, shared, ends[1], parent);
    close(ends[1]);
    if (pid > 0) {
        collect(pid, ends[0], seconds_limit, shared);
        *call = *shared;
        call->message[sizeof call->message - 1] = '\0';
    }
    close(ends[0]);
done:
    munmap(shared, sizeof *shared);
}

void mla_call_make_after(void (*run)(void *context), void *context, const struct mla_kernel *kernel,
                         struct mla_tensors *tensors, double seconds_limit, struct mla_call *call)
{
    struct before before = {run, context};
    memset(call, 0, sizeof *call);
    if (seconds_limit > 0)
        isolated(before, kernel, tensors, seconds_limit, call);
    else
        direct(before, kernel, tensors, call);
}

void mla_call_make(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                   double seconds_limit, struct mla_call *call)
{
    mla_call_make_after(NULL, NULL, kernel, tensors, seconds_limit, call);
}
