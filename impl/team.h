/* SPDX-License-Identifier: Apache-2.0
 *
 * team.h - the threads of one call: created and prepared before a gate, released together, joined.
 *
 * Nothing a caller can see may change unless the call is going to succeed. So every thread is
 * created and every worker has allocated its memory before the gate opens; if any of that fails,
 * the gate never opens, no worker runs, and the first error is the call's. Past the gate nothing
 * can fail that a program is told of; only memory that is first touched there may still be lost, on
 * a system that hands out more than it has (overcommit).
 *
 * Workers that wait for one another's data do so on one event counter: who makes something visible
 * notifies; who finds nothing to do waits for the counter to leave the value it read before it
 * looked, so that no event between looking and sleeping is lost.
 */
#ifndef MLA_IMPL_TEAM_H
#define MLA_IMPL_TEAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLA_TEAM_MESSAGE_BYTES 160

struct mla_team {
    pthread_mutex_t lock;
    pthread_cond_t gate;  /* arrived_n, aborted */
    pthread_cond_t event; /* events_n */
    int64_t workers_n;
    int64_t arrived_n; /* workers that have prepared */
    bool aborted;      /* some worker will never arrive */
    uint64_t events_n;
    int32_t status; /* the first error, MLA_OK so far */
    char message[MLA_TEAM_MESSAGE_BYTES];
};

/* What the workers do. Both get the caller's context and the worker's number, 0 .. workers_n-1. */
struct mla_team_job {
    bool (*prepare)(void *context,
                    int64_t worker);            /* before the gate: allocate; false: no memory */
    void (*run)(void *context, int64_t worker); /* past the gate */
};

/* workers_n >= 1. MLA_OK, or MLA_ERR_NOMEM and then there is nothing to destroy. */
int32_t mla_team_init(struct mla_team *team, int64_t workers_n);
void mla_team_destroy(struct mla_team *team);

/*
 * Run the job on workers_n threads, the calling one being worker 0, and join them. All of them run
 * it in the default floating-point environment; the caller's is as before on return. Returns
 * MLA_OK, or the first error with team->message saying what could not be had; then no run() was
 * called. Memory that prepare() took is the caller's to release in either case, after this returns.
 */
int32_t mla_team_run(struct mla_team *team, const struct mla_team_job *job, void *context);

/* The event counter: read it, look for work, wait for it to move on. */
uint64_t mla_team_events(struct mla_team *team);
void mla_team_notify(struct mla_team *team);
void mla_team_wait(struct mla_team *team, uint64_t seen);

/*
 * How many threads a call gets: `asked` of them, for 0 all processors and at least `at_least`;
 * never more than `useful`, nor than a bound far above any sensible count. >= 1.
 */
int64_t mla_team_size(int64_t asked, int64_t at_least, int64_t useful);

#endif
