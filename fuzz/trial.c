/* SPDX-License-Identifier: Apache-2.0
 *
 * trial.c - a trial seen from outside: start its process, let it go on, bury it.
 *
 * A pair of sockets joins the two: the process writes a byte when its budget is used up and reads one for
 * more; its end closes with it. Only the process itself is believed dead, not its socket, which a kernel
 * may close or hand on.
 */
#include "fuzz/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/call.h"
#include "fuzz/trial_internal.h"

struct mla_trial {
    struct mla_trial_plan plan;
    struct mla_trial_shared *shared;
    pid_t pid; /* 0: none */
    int fd;    /* -1: none */
    enum mla_trial_state state;
};

const char *mla_trial_outcome_name(enum mla_trial_outcome outcome)
{
    static const char *const names[MLA_TRIAL_OUTCOMES_N] = {"not-applied", "survived", "killed"};
    return names[outcome];
}

static void drop_output(void)
{
    int null = open("/dev/null", O_WRONLY);
    if (null < 0)
        return;
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
}

/* Never returns. */
static void child(struct mla_trial *trial, int fd, pid_t parent)
{
    const struct rlimit no_core = {0, 0}; /* writing one takes longer than most trials */
    mla_call_seclude(fd, parent);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (!trial->plan.keep_output)
        drop_output();
    mla_trial_work(&trial->plan, trial->shared, 3);
    trial->shared->finished = true;
    _exit(0);
}

static bool launch(struct mla_trial *trial)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return false;
    fflush(NULL); /* or the child would print it again */
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child(trial, ends[1], parent);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    trial->pid = pid;
    trial->fd = ends[0];
    trial->state = MLA_TRIAL_RUNNING;
    return true;
}

struct mla_trial *mla_trial_start(const struct mla_trial_plan *plan,
                                  const struct mla_trial_budget *budget)
{
    struct mla_trial *trial = calloc(1, sizeof *trial);
    if (trial == NULL)
        return NULL;
    *trial = (struct mla_trial){.plan = *plan, .fd = -1, .state = MLA_TRIAL_ENDED};
    trial->shared = mmap(NULL, sizeof *trial->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial->shared == MAP_FAILED) {
        free(trial);
        return NULL;
    }
    trial->shared->budget = *budget;
    if (!launch(trial)) {
        mla_trial_free(trial);
        return NULL;
    }
    return trial;
}

/* ---- how it ended ---- */

/* Why the process's death says nothing about the kernel; NULL: it died of the kernel's doing. */
static const char *foreign_death(const struct mla_trial_shared *shared, int status)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (shared->noted[0] == '\0')
        return "its process ended before the first case";
    if (number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP)
        return "its process was killed by another (out of memory?)";
    /* A kernel that was seen to handle memory wrongly may have spoiled what the judge stands on. */
    if (shared->result.outcome == MLA_TRIAL_KILLED &&
        (shared->result.detected & MLA_DETECTOR_MEMORY) != 0)
        return NULL;
    if (!shared->in_kernel)
        return number == SIGALRM ? "judging a case took too long, outside the kernel"
                                 : "its process died outside the kernel";
    return NULL;
}

/* The process has died of the kernel. */
static void count_death(struct mla_trial *trial, int status, double cpu_seconds)
{
    struct mla_trial_result *r = &trial->shared->result;
    bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    if (r->outcome == MLA_TRIAL_KILLED) { /* while surveyed */
        for (int i = 0; i < MLA_DETECTORS_N; i++)
            r->detectors[i] += 1u << i == MLA_DETECTOR_CRASH;
        r->surveyed++;
        r->surveyed_failed++;
        return;
    }
    r->outcome = MLA_TRIAL_KILLED;
    r->detected = MLA_DETECTOR_CRASH;
    r->verdict = hung ? MLA_VERDICT_TIMEOUT : MLA_VERDICT_CRASH;
    r->executions++;
    r->judged++;
    r->applied += !trial->plan.marks || trial->shared->applied;
    r->unmarked = r->applied == 0;
    r->cpu_seconds = cpu_seconds;
    memcpy(r->line, trial->shared->noted, sizeof r->line);
    if (hung)
        snprintf(r->reason, sizeof r->reason, "no answer within %g s", trial->plan.case_seconds);
    else if (WIFSIGNALED(status))
        snprintf(r->reason, sizeof r->reason, "signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(r->reason, sizeof r->reason, "process ended inside the kernel, exit %d",
                 WEXITSTATUS(status));
}

/* true: it goes on in another process, which surveys what the first one died of. */
static bool bury(struct mla_trial *trial, int status, double cpu_seconds)
{
    struct mla_trial_shared *shared = trial->shared;
    bool was_hunt = shared->result.outcome != MLA_TRIAL_KILLED;
    (void)kill(-trial->pid, SIGKILL); /* whoever is left in its group */
    close(trial->fd);
    trial->pid = 0;
    trial->fd = -1;
    trial->state = MLA_TRIAL_ENDED;
    if (shared->finished)
        return false;
    const char *foreign = foreign_death(shared, status);
    if (foreign != NULL) {
        snprintf(shared->result.trouble, sizeof shared->result.trouble, "%s", foreign);
        return false;
    }
    count_death(trial, status, cpu_seconds);
    if (!was_hunt || shared->result.verdict == MLA_VERDICT_TIMEOUT)
        return false; /* a hang would only hang again */
    shared->isolated = true;
    shared->in_kernel = false;
    return launch(trial);
}

static double seconds_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

enum mla_trial_state mla_trial_look(struct mla_trial *trial)
{
    char byte;
    int status;
    struct rusage usage;
    if (trial->state != MLA_TRIAL_RUNNING)
        return trial->state;
    if (recv(trial->fd, &byte, 1, 0) == 1) {
        trial->state = MLA_TRIAL_PAUSED;
        return trial->state;
    }
    if (wait4(trial->pid, &status, WNOHANG, &usage) == trial->pid)
        bury(trial, status, seconds_of(&usage));
    return trial->state;
}

/* ---- what its owner wants ---- */

int mla_trial_descriptor(const struct mla_trial *trial)
{
    return trial->fd;
}

void mla_trial_resume(struct mla_trial *trial, const struct mla_trial_budget *budget)
{
    if (trial->state != MLA_TRIAL_PAUSED)
        return;
    trial->shared->budget = *budget;
    trial->state = MLA_TRIAL_RUNNING;
    (void)send(trial->fd, "g", 1, MSG_NOSIGNAL);
}

void mla_trial_stop(struct mla_trial *trial)
{
    __atomic_store_n(&trial->shared->stop, 1, __ATOMIC_RELAXED);
    if (trial->state == MLA_TRIAL_PAUSED)
        mla_trial_resume(trial, &(struct mla_trial_budget){0});
}

const struct mla_trial_result *mla_trial_result(const struct mla_trial *trial)
{
    return &trial->shared->result;
}

void mla_trial_free(struct mla_trial *trial)
{
    if (trial == NULL)
        return;
    if (trial->pid != 0) {
        (void)kill(-trial->pid, SIGKILL);
        (void)kill(trial->pid, SIGKILL); /* its group may not be made yet */
        while (waitpid(trial->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close(trial->fd);
    }
    munmap(trial->shared, sizeof *trial->shared);
    free(trial);
}

bool mla_trial_run(const struct mla_trial_plan *plan, const struct mla_trial_budget *budget,
                   struct mla_trial_result *result)
{
    struct mla_trial *trial = mla_trial_start(plan, budget);
    if (trial == NULL)
        return false;
    while (mla_trial_look(trial) == MLA_TRIAL_RUNNING) {
        struct pollfd p = {.fd = trial->fd, .events = POLLIN};
        (void)poll(&p, 1, 20);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); /* it may have closed its end */
    }
    *result = *mla_trial_result(trial);
    mla_trial_free(trial);
    return true;
}
