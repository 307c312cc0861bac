/* SPDX-License-Identifier: Apache-2.0
 *
 * process.c - existence by kill(pid, 0), state and start time from /proc/<pid>/stat.
 *
 * The second field of stat is the program's name in brackets and may hold blanks and brackets
 * itself: fields are counted from the last bracket. Without /proc the pid alone decides.
 */
#include "results/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct stat_line {
    char state;
    int64_t parent;
    uint64_t start;
};

/* false when it cannot be read. */
static bool read_stat(int64_t pid, struct stat_line *stat)
{
    char path[48];
    (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    char line[1024];
    size_t n = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[n] = '\0';
    const char *field = strrchr(line, ')');
    if (field == NULL || field[1] != ' ') {
        return false;
    }
    field += 2; /* field 3, the state */
    stat->state = *field;
    for (int number = 3; number < 22; number++) {
        field = strchr(field, ' ');
        if (field == NULL) {
            return false;
        }
        field++;
        if (number + 1 == 4) {
            stat->parent = strtoll(field, NULL, 10);
        }
    }
    stat->start = strtoull(field, NULL, 10);
    return true;
}

uint64_t mla_process_start(int64_t pid)
{
    struct stat_line stat = {0};
    return read_stat(pid, &stat) ? stat.start : 0;
}

bool mla_process_alive(int64_t pid, uint64_t start)
{
    if (pid <= 0 || (int64_t)(pid_t)pid != pid) {
        return false;
    }
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
        return false;
    }
    struct stat_line stat = {0};
    if (!read_stat(pid, &stat)) {
        return true;
    }
    if (start != 0 && stat.start != 0 && stat.start != start) {
        return false;
    }
    /* Process 1 need not wait for anybody, as in a container. */
    return stat.state != 'X' && (stat.state != 'Z' || stat.parent > 1);
}
