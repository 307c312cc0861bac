/* SPDX-License-Identifier: Apache-2.0
 *
 * link_end.c - what a symbolic link leads to.
 */
#include "fuzz/link_end.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as Linux itself allows */

bool mla_link_end(const char *path, char *end, size_t end_bytes)
{
    char to[PATH_MAX];
    int n = snprintf(end, end_bytes, "%s", path);
    for (int links = 0; n >= 0 && (size_t)n < end_bytes; links++) {
        ssize_t bytes = readlink(end, to, sizeof to);
        if (bytes < 0)
            return true; /* no link: a file, a folder, or nothing yet */
        if (links == LINKS_MAX) {
            errno = ELOOP;
            return false;
        }
        const char *slash = strrchr(end, '/');
        size_t folder = to[0] == '/' || slash == NULL ? 0 : (size_t)(slash - end) + 1;
        if ((size_t)bytes == sizeof to || folder >= end_bytes)
            break;
        n = snprintf(end + folder, end_bytes - folder, "%.*s", (int)bytes, to) + (int)folder;
    }
    errno = ENAMETOOLONG;
    return false;
}
