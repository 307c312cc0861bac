/* SPDX-License-Identifier: Apache-2.0
 *
 * crew.c - threads behind a gate; each notes its own begin and end, so neither their making nor
 * their joining is timed.
 */
#include "fuzz/mlacheck/crew.h"

#include <pthread.h>
#include <stdbool.h>

#include "fuzz/call.h"

struct crew {
    mla_crew_work *work;
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    enum { CLOSED, OPEN, CANCELLED } gate;
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
    member->begin = mla_call_clock();
    if (go)
        crew->work(crew->context, member->number);
    member->end = mla_call_clock();
    return NULL;
}

double mla_crew_run(int members_n, mla_crew_work *work, void *context)
{
    struct crew crew = {work, context, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, CLOSED};
    struct member members[MLA_CREW_MAX];
    int n = 0;
    for (bool ok = true; ok && n < members_n && n < MLA_CREW_MAX; n += ok) {
        members[n] = (struct member){.crew = &crew, .number = n};
        ok = pthread_create(&members[n].thread, NULL, run, &members[n]) == 0;
    }
    pthread_mutex_lock(&crew.lock);
    crew.gate = n == members_n ? OPEN : CANCELLED;
    pthread_cond_broadcast(&crew.opened);
    pthread_mutex_unlock(&crew.lock);
    double begin = 0, end = 0;
    for (int i = 0; i < n; i++) {
        pthread_join(members[i].thread, NULL);
        begin = i == 0 || members[i].begin < begin ? members[i].begin : begin;
        end = i == 0 || members[i].end > end ? members[i].end : end;
    }
    pthread_cond_destroy(&crew.opened);
    pthread_mutex_destroy(&crew.lock);
    return n == members_n && n > 0 ? end - begin : -1;
}
