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

#include <dirent.h>
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

#include "fuzz/trap.h"

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

/* What a process is to do. */
struct task {
    const struct mla_call_around *around; /* NULL: nothing but the call */
    const struct mla_kernel *kernel;
    struct mla_tensors *tensors;
    bool is_cramped; /* calls with little room for a message, which shall all give the status due */
    int32_t due;
};

#define UNTOUCHED 0x5a /* of a message's bytes, before a cramped call */

/* The kernel's own function; one that does not promise statistics is not asked for them. */
static int32_t ask(const struct task *task, char *message, size_t room)
{
    const struct mla_kernel *kernel = task->kernel;
    bool stats = (kernel->promises & MLA_PROMISE_STATS) != 0;
    struct mla_ring_args ring = task->tensors->ring;
    struct mla_sparse_args sparse = task->tensors->sparse;
    ring.stats = stats ? ring.stats : NULL;
    sparse.stats = stats ? sparse.stats : NULL;
    return task->tensors->test.op == MLA_OP_RING ? kernel->ring(&ring, message, room)
                                                 : kernel->sparse(&sparse, message, room);
}

static void direct(const struct task *task, char *message, size_t room, struct mla_call *call)
{
    fenv_t environment;
    announce(task->kernel);
    fegetenv(&environment);
    double start = mla_call_clock();
    call->status = ask(task, message, room);
    call->seconds += mla_call_clock() - start;
    call->changed_environment = call->changed_environment || !environment_is_default();
    fesetenv(&environment);
    announce(NULL);
}

static enum mla_message_fault message_fault(const char *message, size_t bytes, size_t room)
{
    for (size_t i = room; i < bytes; i++)
        if (message[i] != UNTOUCHED)
            return MLA_MESSAGE_OVERRUN;
    bool terminated = room == 0 || memchr(message, '\0', room) != NULL;
    return terminated ? MLA_MESSAGE_FITS : MLA_MESSAGE_UNTERMINATED;
}

static void perform_cramped(const struct task *task, struct mla_cramped *done)
{
    static const size_t rooms[] = {8, 1, 0};
    char message[sizeof done->call.message];
    done->call.status = task->due;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0] && done->fault == MLA_MESSAGE_FITS &&
                       done->call.status == task->due;
         i++) {
        memset(message, UNTOUCHED, sizeof message);
        done->room = rooms[i];
        direct(task, rooms[i] == 0 ? NULL : message, rooms[i], &done->call);
        done->fault = message_fault(message, sizeof message, rooms[i]);
    }
}

/* All of a task, in this process. Whether the call ends is for others to say. */
static void perform(const struct task *task, struct mla_cramped *done)
{
    char message[sizeof done->call.message] = "";
    if (task->is_cramped) {
        perform_cramped(task, done);
        return;
    }
    direct(task, message, sizeof message, &done->call);
    make_printable(message, sizeof message);
    memcpy(done->call.message, message, sizeof message);
}

static void perform_amid(const struct task *task, bool is_secluded, struct mla_cramped *done)
{
    static const struct mla_call_around nothing;
    const struct mla_call_around *around = task->around == NULL ? &nothing : task->around;
    if (around->before != NULL)
        around->before(around->context);
    if (is_secluded)
        mla_trap_set(task->tensors);
    perform(task, done);
    done->call.input_written = is_secluded ? mla_trap_written() : -1;
    if (around->after != NULL)
        around->after(around->context);
}

/* ---- in a child ---- */

#define GRACE_MILLISECONDS 200 /* one that was waited for may be listed a moment longer */

/* How many threads this process has; 0 where that cannot be known. */
static int count_threads(void)
{
    int n = 0;
    DIR *folder = MLA_THREADS_ARE_WATCHED ? NULL : opendir("/proc/self/task");
    if (folder == NULL)
        return 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

/* Are there more than before, for good? */
static bool left_threads(int before)
{
    for (int i = 0; i < GRACE_MILLISECONDS && count_threads() > before; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return before > 0 && count_threads() > before;
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
static void child(const struct task *task, struct mla_cramped *shared, int pipe_end, pid_t parent)
{
    mla_call_seclude(pipe_end, parent);
    mla_call_watch(NULL); /* the parent sees how it ends */
    int threads = count_threads();
    perform_amid(task, true, shared);
    shared->call.left_thread = left_threads(threads);
    __atomic_store_n((int *)&shared->call.end, MLA_CALL_RETURNED, __ATOMIC_RELEASE);
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

static void isolated(const struct task *task, double seconds_limit, struct mla_cramped *done)
{
    int ends[2] = {-1, -1};
    struct mla_cramped *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    done->call.end = MLA_CALL_NOT_MADE;
    snprintf(done->call.message, sizeof done->call.message, "cannot fork a child for the kernel");
    if (shared == MAP_FAILED)
        return;
    if (pipe(ends) != 0)
        goto done;
    shared->call.end = MLA_CALL_CRASHED;
    fflush(NULL); /* or the child would print it again */
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child(task, shared, ends[1], parent);
    close(ends[1]);
    if (pid > 0) {
        collect(pid, ends[0], seconds_limit, &shared->call);
        *done = *shared;
        done->call.message[sizeof done->call.message - 1] = '\0';
    }
    close(ends[0]);
done:
    munmap(shared, sizeof *shared);
}

static void make(const struct task *task, double seconds_limit, struct mla_cramped *done)
{
    memset(done, 0, sizeof *done);
    if (seconds_limit > 0)
        isolated(task, seconds_limit, done);
    else
        perform_amid(task, false, done);
}

void mla_call_make_amid(const struct mla_call_around *around, const struct mla_kernel *kernel,
                        struct mla_tensors *tensors, double seconds_limit, struct mla_call *call)
{
    struct task task = {.around = around, .kernel = kernel, .tensors = tensors};
    struct mla_cramped done;
    make(&task, seconds_limit, &done);
    *call = done.call;
}

void mla_call_make(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                   double seconds_limit, struct mla_call *call)
{
    mla_call_make_amid(NULL, kernel, tensors, seconds_limit, call);
}

void mla_call_make_cramped(const struct mla_kernel *kernel, struct mla_tensors *tensors,
                           int32_t due, double seconds_limit, struct mla_cramped *cramped)
{
    struct task task = {.kernel = kernel, .tensors = tensors, .is_cramped = true, .due = due};
    make(&task, seconds_limit, cramped);
}
