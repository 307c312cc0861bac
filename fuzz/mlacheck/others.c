/* SPDX-License-Identifier: Apache-2.0
 *
 * others.c - Linux's account of all processors, less our own time.
 */
#include "fuzz/mlacheck/others.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SHARE 0.1 /* of our threads' time that may be missing */
#define TICKS 1   /* a processor's account may be off so many ticks */

static double own_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double mla_others_seconds(void)
{
    unsigned long long user, nice, system, idle, wait, irq, soft, steal;
    FILE *file = fopen("/proc/stat", "r");
    if (file == NULL)
        return -1;
    int n = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                   &idle, &wait, &irq, &soft, &steal);
    fclose(file);
    if (n != 8)
        return -1;
    return (double)(user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK) -
           own_seconds();
}

bool mla_others_disturb(double before, double after, double wall, int threads)
{
    double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    double tick = 1 / (double)sysconf(_SC_CLK_TCK);
    double left = threads < processors ? processors - threads : 0;
    if (before < 0 || after < 0)
        return false;
    return after - before > left * wall + SHARE * threads * wall + TICKS * tick * processors;
}
