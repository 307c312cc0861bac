/* SPDX-License-Identifier: Apache-2.0
 *
 * whole_file.c - a regular file into memory.
 */
#include "fuzz/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "impl/mla.h"

static bool read_all(int fd, uint8_t *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = read(fd, bytes + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? EIO : errno; /* it became shorter meanwhile */
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* Of a file that is open, of n bytes. */
static int32_t read_bytes(int fd, const char *path, size_t n, uint8_t **bytes, char *error,
                          size_t error_bytes)
{
    uint8_t *made = malloc(n + 1);
    if (made == NULL) {
        snprintf(error, error_bytes, "%.200s: out of memory for its %zu bytes", path, n);
        return MLA_ERR_NOMEM;
    }
    if (!read_all(fd, made, n)) {
        snprintf(error, error_bytes, "%.200s: %s", path, strerror(errno));
        free(made);
        return MLA_ERR_PARAM;
    }
    made[n] = 0;
    *bytes = made;
    return MLA_OK;
}

int32_t mla_whole_file_read(const char *path, uint64_t most, uint8_t **bytes, size_t *n,
                            char *error, size_t error_bytes)
{
    struct stat info;
    int32_t status = MLA_ERR_PARAM;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for its writer */
    *bytes = NULL;
    *n = 0;
    if (fd < 0 || fstat(fd, &info) != 0) {
        snprintf(error, error_bytes, "%.200s: %s", path, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        snprintf(error, error_bytes, "%.200s: is no regular file", path);
    } else if ((uint64_t)info.st_size > most) {
        snprintf(error, error_bytes, "%.200s: %jd bytes, more than %" PRIu64, path,
                 (intmax_t)info.st_size, most);
    } else {
        *n = (size_t)info.st_size;
        status = read_bytes(fd, path, *n, bytes, error, error_bytes);
    }
    if (fd >= 0)
        close(fd);
    return status;
}
