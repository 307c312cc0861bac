/* SPDX-License-Identifier: Apache-2.0
 *
 * fatal.c - the handler has a stack of its own, as a kernel may have used up the other.
 */
#include "fuzz/mlacheck/fatal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/call.h"

#define STACK_BYTES ((size_t)64 * 1024)

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
#define SIGNALS_N (sizeof signals / sizeof signals[0])

static struct sigaction before[SIGNALS_N];
static struct mla_store *noted;
static volatile sig_atomic_t in_kernel;

static void on_call(const struct mla_kernel *kernel)
{
    in_kernel = kernel != NULL;
}

/* Raised again it comes when this handler has returned, and meets who was there before. */
static void on_signal(int number)
{
    if (in_kernel)
        mla_store_inflight_fatal(noted, number);
    for (size_t i = 0; i < SIGNALS_N; i++)
        if (signals[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number);
}

void mla_fatal_watch(struct mla_store *store)
{
    static char room[STACK_BYTES];
    stack_t stack;
    struct sigaction action;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = room;
    stack.ss_size = sizeof room;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = sigaltstack(&stack, NULL) == 0 ? SA_ONSTACK : 0;
    noted = store;
    mla_call_watch(on_call);
    for (size_t i = 0; i < SIGNALS_N; i++)
        sigaction(signals[i], &action, &before[i]);
}
