/* SPDX-License-Identifier: Apache-2.0
 *
 * call.c - calling a kernel directly or isolated.
 *
 * Isolated, the child writes its result into a shared mapping and leaves by _exit; the parent waits
 * on a pipe whose writing end closes with the child, so neither a crash nor a hang can hold it up.
 */
#include "fuzz/call.h"

#include <errno.h>
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

static void direct(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                   struct mla_call *call)
{
    bool stats = (kernel->promises & MLA_PROMISE_STATS) != 0;
    double start = mla_call_clock();
    call->message[0] = '\0';
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
    call->message[sizeof call->message - 1] = '\0';
    call->end = MLA_CALL_RETURNED;
}

/* Never returns. `shared` says "returned" only once everything is in it. */
static void child(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                  struct mla_call *shared, pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
#else
    (void)parent;
#endif
    /* A handler of the parent (a test runner's, an engine's) would take the crash for its own. */
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        (void)signal(fatal[i], SIG_DFL);
    struct mla_call call = {0};
    direct(kernel, tensors, &call);
    call.end = MLA_CALL_CRASHED;
    *shared = call;
    __atomic_store_n((int *)&shared->end, MLA_CALL_RETURNED, __ATOMIC_RELEASE);
    _exit(0);
}

/* True when the pipe's writing end closed within the limit, i.e. the child is gone. */
static bool wait_closed(int fd, double seconds_limit)
{
    double deadline = mla_call_clock() + seconds_limit, left;
    while ((left = deadline - mla_call_clock()) > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = poll(&p, 1, left > 1000 ? 1000000 : (int)(left * 1000) + 1);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
    return false;
}

static void collect(pid_t pid, int fd, double seconds_limit, struct mla_call *shared)
{
    bool closed = wait_closed(fd, seconds_limit);
    int status = 0;
    if (!closed)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!closed) {
        shared->end = MLA_CALL_TIMED_OUT;
        shared->seconds = seconds_limit;
        return;
    }
    if (WIFSIGNALED(status)) {
        shared->end = MLA_CALL_CRASHED;
        shared->signal_or_exit = WTERMSIG(status);
    } else if (WEXITSTATUS(status) != 0 || shared->end != MLA_CALL_RETURNED) {
        shared->end = MLA_CALL_CRASHED;
        shared->signal_or_exit = -WEXITSTATUS(status);
    }
}

static void isolated(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                     double seconds_limit, struct mla_call *call)
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
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(kernel, tensors, shared, parent);
    }
    close(ends[1]);
    if (pid > 0) {
        collect(pid, ends[0], seconds_limit, shared);
        *call = *shared;
    }
    close(ends[0]);
done:
    munmap(shared, sizeof *shared);
}

void mla_call_make(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                   double seconds_limit, struct mla_call *call)
{
    memset(call, 0, sizeof *call);
    if (seconds_limit > 0)
        isolated(kernel, tensors, seconds_limit, call);
    else
        direct(kernel, tensors, call);
}
