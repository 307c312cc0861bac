/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - what a hunt has reached within its processor time.
 */
#include "fuzz/watch.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

double mla_watch_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void mla_watch_begin(struct mla_watch *watch, double limit)
{
    *watch = (struct mla_watch){.limit = limit, .kill_seconds = -1};
}

void mla_watch_learn(struct mla_watch *watch, const struct mla_verdict *verdict,
                     const uint8_t counters[MLA_GUIDANCE_COUNTERS])
{
    watch->executions++;
    for (size_t i = 0; i < MLA_GUIDANCE_COUNTERS; i++) {
        watch->features += counters[i] > watch->seen[i];
        watch->seen[i] |= counters[i];
    }
    if (mla_verdict_is_failure(verdict->kind)) {
        if (watch->kill_seconds >= 0)
            return;
        watch->kill_seconds = mla_watch_clock();
        watch->kill_executions = watch->executions;
        return;
    }
    watch->worst = fmax(watch->worst, fmax(verdict->max_value_ratio, verdict->max_stats_ratio));
    watch->energy = fmax(watch->energy, verdict->max_energy);
}

bool mla_watch_is_over(const struct mla_watch *watch)
{
    return watch->kill_seconds >= 0 || (watch->limit > 0 && mla_watch_clock() >= watch->limit);
}

void mla_watch_print(const struct mla_watch *watch, FILE *file)
{
    bool killed = watch->kill_seconds >= 0;
    fprintf(file,
            "watch worst=%.6g energy=%.6g executions=%" PRId64 " features=%" PRId64
            " kill_seconds=%.6g kill_executions=%.17g\n",
            watch->worst, watch->energy, watch->executions, watch->features,
            killed ? watch->kill_seconds : INFINITY,
            killed ? (double)watch->kill_executions : INFINITY);
}
