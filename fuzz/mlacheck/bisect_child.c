/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect_child.c - run a program, with a limit, and leave nothing of it behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "fuzz/call.h"
#include "fuzz/mlacheck/bisect.h"

#define NICE           10
#define EXIT_NOT_FOUND 127

/* In the child; only what may be called between fork and exec. */
static void become(const struct mla_child *child, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    (void)signal(SIGPIPE, SIG_DFL);
    if (child->modest)
        (void)!nice(NICE);
    bool ready = getppid() == parent && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
                 (child->out < 0 || dup2(child->out, STDOUT_FILENO) >= 0) &&
                 (child->error < 0 || dup2(child->error, STDERR_FILENO) >= 0) &&
                 (child->folder == NULL || chdir(child->folder) == 0);
    if (ready) /* execvp takes the words for writable, and writes none */
        execvp(child->argv[0], (char *const *)(uintptr_t)child->argv);
    _exit(EXIT_NOT_FOUND);
}

/* Its group is killed before it is waited for: until then nobody else can have its number. */
static enum mla_child_end wait_for(pid_t pid, double seconds, int *status)
{
    double deadline = mla_call_clock() + seconds;
    enum mla_child_end end = MLA_CHILD_ENDED;
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR)
            break;
        if (info.si_pid == pid)
            break;
        if (mla_interrupted || (seconds > 0 && mla_call_clock() > deadline)) {
            end = mla_interrupted ? MLA_CHILD_STOPPED : MLA_CHILD_TIMED_OUT;
            kill(pid, SIGKILL); /* it may not lead its group yet */
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    kill(-pid, SIGKILL); /* what it started, and may have left running */
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return end;
}

enum mla_child_end mla_child_run(const struct mla_child *child, int *code)
{
    int status = 0;
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(child, parent);
    if (pid < 0)
        return MLA_CHILD_NOT_STARTED;
    setpgid(pid, pid);
    enum mla_child_end end = wait_for(pid, child->seconds, &status);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return mla_interrupted ? MLA_CHILD_STOPPED : end;
}
