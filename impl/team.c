/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c - threads, start gate, event counter.
 *
 * Everything shared is guarded by one mutex; the counter is bumped only when somebody waits for what
 * was published, so the lock is never hot. The gate's lock also orders what the workers allocated
 * before it for all that use it after.
 */
#include "impl/team.h"

#include "impl/fpenv.h"
#include "impl/mla.h"
#include "impl/pause.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEAM_SIZE_MAX 256 /* cap when the machine has fewer processors */

struct worker {
    struct mla_team *team;
    const struct mla_team_job *job;
    void *context;
    int64_t number;
    pthread_t thread;
};

int32_t mla_team_init(struct mla_team *team, int64_t workers_n)
{
    *team = (struct mla_team){.workers_n = workers_n, .status = MLA_OK};
    if (pthread_mutex_init(&team->lock, NULL) != 0) {
        return MLA_ERR_NOMEM;
    }
    if (pthread_cond_init(&team->gate, NULL) != 0) {
        pthread_mutex_destroy(&team->lock);
        return MLA_ERR_NOMEM;
    }
    if (pthread_cond_init(&team->event, NULL) != 0) {
        pthread_cond_destroy(&team->gate);
        pthread_mutex_destroy(&team->lock);
        return MLA_ERR_NOMEM;
    }
    return MLA_OK;
}

void mla_team_destroy(struct mla_team *team)
{
    pthread_cond_destroy(&team->event);
    pthread_cond_destroy(&team->gate);
    pthread_mutex_destroy(&team->lock);
}

/* The first error wins. Called with the lock held, or while there is no second thread yet. */
static void record(struct mla_team *team, const char *what, int64_t worker)
{
    if (team->status != MLA_OK) {
        return;
    }
    team->status = MLA_ERR_NOMEM;
    snprintf(team->message, sizeof team->message,
             "%s could not be had (worker %" PRId64 " of %" PRId64 ")", what, worker,
             team->workers_n);
}

/* Report a worker as prepared and wait for the rest; true when all are and none has failed. */
static bool pass_gate(struct mla_team *team, int64_t worker, bool prepared)
{
    pthread_mutex_lock(&team->lock);
    if (!prepared) {
        record(team, "memory", worker);
    }
    team->arrived_n++;
    if (team->arrived_n == team->workers_n) {
        pthread_cond_broadcast(&team->gate);
    }
    while (team->arrived_n < team->workers_n && !team->aborted) {
        pthread_cond_wait(&team->gate, &team->lock);
    }
    const bool is_open = team->status == MLA_OK;
    pthread_mutex_unlock(&team->lock);
    return is_open;
}

static void *work(void *argument)
{
    const struct worker *worker = argument;
    fenv_t callers;
    mla_fpenv_enter(&callers);
    const bool prepared = worker->job->prepare(worker->context, worker->number);
    MLA_PAUSE(MLA_PAUSE_GATE);
    if (pass_gate(worker->team, worker->number, prepared)) {
        MLA_PAUSE(MLA_PAUSE_START);
        worker->job->run(worker->context, worker->number);
    }
    mla_fpenv_leave(&callers);
    return NULL;
}

static void abort_gate(struct mla_team *team, int64_t worker)
{
    pthread_mutex_lock(&team->lock);
    record(team, "a thread", worker);
    team->aborted = true;
    pthread_cond_broadcast(&team->gate);
    pthread_mutex_unlock(&team->lock);
}

int32_t mla_team_run(struct mla_team *team, const struct mla_team_job *job, void *context)
{
    int64_t started_n = 1;
    struct worker *workers = calloc((size_t)team->workers_n, sizeof *workers);
    if (workers == NULL) {
        record(team, "memory", 0);
        return team->status;
    }
    for (int64_t i = 0; i < team->workers_n; i++) {
        workers[i] = (struct worker){.team = team, .job = job, .context = context, .number = i};
    }
    while (started_n < team->workers_n) {
        struct worker *next = &workers[started_n];
        if (pthread_create(&next->thread, NULL, work, next) != 0) {
            break;
        }
        started_n++;
    }
    if (started_n < team->workers_n) {
        abort_gate(team, started_n);
    } else {
        work(&workers[0]);
    }
    for (int64_t i = 1; i < started_n; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    free(workers);
    return team->status;
}

uint64_t mla_team_events(struct mla_team *team)
{
    pthread_mutex_lock(&team->lock);
    const uint64_t events_n = team->events_n;
    pthread_mutex_unlock(&team->lock);
    return events_n;
}

void mla_team_notify(struct mla_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->events_n++;
    pthread_cond_broadcast(&team->event);
    pthread_mutex_unlock(&team->lock);
}

void mla_team_wait(struct mla_team *team, uint64_t seen)
{
    MLA_PAUSE(MLA_PAUSE_WAIT);
    pthread_mutex_lock(&team->lock);
    while (team->events_n == seen) {
        pthread_cond_wait(&team->event, &team->lock);
    }
    pthread_mutex_unlock(&team->lock);
    MLA_PAUSE(MLA_PAUSE_WOKEN);
}

int64_t mla_team_size(int64_t asked, int64_t at_least, int64_t useful)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t processors = online > 0 ? online : 1;
    const int64_t most = processors > TEAM_SIZE_MAX ? processors : TEAM_SIZE_MAX;
    int64_t size = asked;

    if (asked == 0) {
        size = processors > at_least ? processors : at_least;
    }
    size = size > useful ? useful : size;
    size = size > most ? most : size;
    return size < 1 ? 1 : size;
}
