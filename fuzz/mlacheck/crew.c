/* SPDX-License-Identifier: Apache-2.0
 *
 * crew.c - threads behind a gate; each notes its own begin and end, so neither their making nor
 * their joining is timed. Threads that a gate lets go wake one after the other, up to a millisecond
 * apart on a busy machine, so they wait for each other once more, awake: the time is of all at once.
 */
#include "fuzz/mlacheck/crew.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "fuzz/call.h"

#define PATIENCE 0.001 /* seconds; who yields at once gives a busy machine his whole turn */

struct crew {
    mla_crew_work *work;
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    enum { CLOSED, OPEN, CANCELLED } gate;
    int members_n;
    atomic_int awake;
    bool take_turns; /* more members than processors: who waits must leave his to another */
};

struct member {
    struct crew *crew;
    int number;
    pthread_t thread;
    double begin, end;
};

static void *run(void *argument)
{
    struct member *member = argument;
    struct crew *crew = member->crew;
    pthread_mutex_lock(&crew->lock);
    while (crew->gate == CLOSED)
        pthread_cond_wait(&crew->opened, &crew->lock);
    bool go = crew->gate == OPEN;
    pthread_mutex_unlock(&crew->lock);
    atomic_fetch_add(&crew->awake, 1);
    double woken = mla_call_clock();
    while (go && atomic_load(&crew->awake) < crew->members_n)
        if (crew->take_turns || mla_call_clock() > woken + PATIENCE)
            sched_yield();
    member->begin = mla_call_clock();
    if (go)
        crew->work(crew->context, member->number);
    member->end = mla_call_clock();
    return NULL;
}

double mla_crew_run(int members_n, bool with_caller, mla_crew_work *work, void *context)
{
    struct crew crew = {.work = work,
                        .context = context,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .opened = PTHREAD_COND_INITIALIZER,
                        .members_n = members_n,
                        .take_turns = members_n > sysconf(_SC_NPROCESSORS_ONLN)};
    struct member members[MLA_CREW_MAX];
    int first = with_caller ? 1 : 0, n = first;
    for (int i = 0; i < MLA_CREW_MAX; i++)
        members[i] = (struct member){.crew = &crew, .number = i};
    while (n < members_n && n < MLA_CREW_MAX &&
           pthread_create(&members[n].thread, NULL, run, &members[n]) == 0)
        n++;
    pthread_mutex_lock(&crew.lock);
    crew.gate = n == members_n ? OPEN : CANCELLED;
    pthread_cond_broadcast(&crew.opened);
    pthread_mutex_unlock(&crew.lock);
    if (with_caller)
        run(&members[0]);
    double begin = 0, end = 0;
    for (int i = 0; i < n; i++) {
        if (i >= first)
            pthread_join(members[i].thread, NULL);
        begin = i == 0 || members[i].begin < begin ? members[i].begin : begin;
        end = i == 0 || members[i].end > end ? members[i].end : end;
    }
    pthread_cond_destroy(&crew.opened);
    pthread_mutex_destroy(&crew.lock);
    return n == members_n && n > 0 ? end - begin : -1;
}
