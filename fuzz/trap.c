/* SPDX-License-Identifier: Apache-2.0
 *
 * trap.c - read-only inputs and the handler of the signal that a write to one raises.
 */
#include "fuzz/trap.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

/* A handler gets no context: the tensors of the one call this process makes. */
static const struct mla_tensors *watched;
static atomic_int first_written = -1;

/* Only the handler's own memory and system calls: it may have stopped any code, on any thread. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (size_t i = 0; info->si_code > 0 && i < watched->n; i++) {
        const struct mla_tensor *tensor = &watched->list[i];
        int none = -1;
        if (tensor->role != MLA_TENSOR_INPUT || !mla_guard_holds(&tensor->guard, info->si_addr))
            continue;
        atomic_compare_exchange_strong(&first_written, &none, (int)i);
        if (mla_guard_set_writable(&tensor->guard, true))
            return; /* and the write is made again */
    }
    (void)signal(number, SIG_DFL);
    if (info->si_code <= 0) /* sent by somebody; else the fault repeats itself */
        (void)raise(number);
}

void mla_trap_set(const struct mla_tensors *tensors)
{
    struct sigaction action;
    if (tensors->plain)
        return;
    watched = tensors;
    atomic_store(&first_written, -1);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSEGV, &action, NULL) != 0)
        return;
    for (size_t i = 0; i < tensors->n; i++)
        if (tensors->list[i].role == MLA_TENSOR_INPUT)
            (void)mla_guard_set_writable(&tensors->list[i].guard, false);
}

int mla_trap_written(void)
{
    return atomic_load(&first_written);
}
